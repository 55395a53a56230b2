package providertest

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/providers"
)

// send submits a job. If the operation streams, send reads the answer to its end and returns it as
// the only file of the outcome.
func (s Suite) send(ctx context.Context, p providers.Provider, job mediagate.Job) (mediagate.Submission, error) {
	if !s.streams(job.Operation) {
		return p.Submit(ctx, job)
	}
	sound, err := p.(providers.Speaker).Speak(ctx, job)
	if err != nil {
		return mediagate.Submission{}, err
	}
	defer sound.Close()
	media, err := job.Sink.Store(ctx, 0, sound)
	if err != nil {
		return mediagate.Submission{}, err
	}
	return mediagate.Submission{Outcome: &mediagate.Outcome{Succeeded: true, Media: []mediagate.Media{media}}}, nil
}

// streams reports whether an operation streams. An unknown operation counts like the suite's.
func (s Suite) streams(operation string) bool {
	a, _ := s.Vendors.Adapter(s.Channel.Provider)
	if op, ok := a.Description.Operations[operation]; ok {
		return op.Streams
	}
	return a.Description.Operations[s.Job.Operation].Streams
}

// speak tests an answer that is passed on while it arrives.
func (s Suite) speak(t *testing.T) {
	if !s.operation(t).Streams {
		return
	}
	const goesOn, breaks, isLeft = "passes on what there is", "tells a break from an end",
		"ends the call when it is closed"
	for _, name := range []string{goesOn, breaks, isLeft} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			first, rest := s.Accepted.Body[:len(s.Accepted.Body)/2], s.Accepted.Body[len(s.Accepted.Body)/2:]+"\x00\xff\r\n"
			heard, left := make(chan struct{}), make(chan struct{}) // first half read; client gone
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				for name, value := range s.Accepted.Header {
					w.Header().Set(name, value)
				}
				_, _ = io.WriteString(w, first)
				_ = http.NewResponseController(w).Flush()
				select {
				case <-heard:
				case <-r.Context().Done():
				}
				switch name {
				case goesOn:
					_, _ = io.WriteString(w, rest)
				case breaks:
					panic(http.ErrAbortHandler) // closes the connection
				case isLeft:
					<-r.Context().Done()
					close(left)
				}
			}))
			t.Cleanup(server.Close)
			sound, err := s.Open(t, server.URL, providers.Options{}).(providers.Speaker).Speak(t.Context(), s.job())
			if err != nil {
				t.Fatal(err)
			}
			defer sound.Close()
			got := make([]byte, len(first))
			if _, err := io.ReadFull(sound, got); err != nil || string(got) != first {
				t.Errorf("the first half: %q, %v", got, err)
			}
			close(heard)
			switch name {
			case goesOn:
				if got, err = io.ReadAll(sound); err != nil || string(got) != rest {
					t.Errorf("the rest: %q, %v", got, err)
				}
			case breaks:
				_, err = io.ReadAll(sound)
				s.check(t, err, Row{Kind: mediagate.KindAmbiguous}, server.URL)
			case isLeft:
				if err := sound.Close(); err != nil {
					t.Error(err)
				}
				<-left
			}
		})
	}
	t.Run("is no task", func(t *testing.T) {
		t.Parallel()
		vendor, p := s.connect(t, s.Accepted)
		_, err := p.Submit(t.Context(), s.job())
		s.check(t, err, Row{Kind: mediagate.KindNotFound}, vendor.URL)
		if n := len(vendor.Requests()); n != 0 {
			t.Errorf("%d requests, want none", n)
		}
	})
}
