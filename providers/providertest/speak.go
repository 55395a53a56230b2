package providertest

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/providers"
)

// send submits a job. Of an operation that streams it hears the answer to its
// end, and keeps it as the outcome's one file.
func (s Suite) send(ctx context.Context, p providers.Provider, job mediagate.Job) (mediagate.Submission, error) {
	speaker, ok := p.(providers.Speaker)
	if !ok || !s.streams(job.Operation) {
		return p.Submit(ctx, job)
	}
	sound, err := speaker.Speak(ctx, job)
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

// streams reports whether an operation does. One that there is not goes where
// the others go.
func (s Suite) streams(operation string) bool {
	operations := s.described().Operations
	if op, ok := operations[operation]; ok {
		return op.Streams
	}
	return operations[s.Job.Operation].Streams
}

// speak covers an answer that is passed on while it arrives.
func (s Suite) speak(t *testing.T) {
	t.Helper()
	if !s.operation(t).Streams {
		return
	}
	half := len(s.Accepted.Body) / 2
	// begin speaks the job by a vendor that stops after half of its answer until
	// it may go on, and then says the rest if it is to.
	begin := func(t *testing.T, whole bool) (sound io.ReadCloser, proceed func(), left <-chan struct{}) {
		t.Helper()
		wait, gone := make(chan struct{}), make(chan struct{})
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			defer close(gone)
			_, _ = io.Copy(io.Discard, r.Body)
			for name, value := range s.Accepted.Header {
				w.Header().Set(name, value)
			}
			_, _ = io.WriteString(w, s.Accepted.Body[:half])
			_ = http.NewResponseController(w).Flush()
			select {
			case <-wait:
			case <-r.Context().Done():
			}
			if !whole {
				panic(http.ErrAbortHandler) // the server's own way to cut a connection
			}
			_, _ = io.WriteString(w, s.Accepted.Body[half:])
		}))
		t.Cleanup(server.Close)
		t.Cleanup(server.CloseClientConnections)
		sound, err := s.Open(t, server.URL, providers.Options{}).(providers.Speaker).Speak(t.Context(), s.job())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = sound.Close() })
		first := make([]byte, half)
		if _, err := io.ReadFull(sound, first); err != nil || string(first) != s.Accepted.Body[:half] {
			t.Fatalf("the first half: %q, %v", first, err)
		}
		return sound, func() { close(wait) }, gone
	}
	t.Run("passes on what there is", func(t *testing.T) {
		t.Parallel()
		sound, proceed, _ := begin(t, true)
		proceed()
		rest, err := io.ReadAll(sound)
		if err != nil || string(rest) != s.Accepted.Body[half:] {
			t.Errorf("the rest: %q, %v", rest, err)
		}
	})
	t.Run("tells a break from an end", func(t *testing.T) {
		t.Parallel()
		sound, proceed, _ := begin(t, false)
		proceed()
		rest, err := io.ReadAll(sound)
		s.check(t, err, Row{Kind: mediagate.KindAmbiguous}, "")
		if len(rest) != 0 {
			t.Errorf("more came: %q", rest)
		}
	})
	t.Run("ends the call when it is closed", func(t *testing.T) {
		t.Parallel()
		sound, _, left := begin(t, true)
		if err := sound.Close(); err != nil {
			t.Error(err)
		}
		<-left
	})
	t.Run("is no task", func(t *testing.T) {
		t.Parallel()
		vendor := s.Vendor(t, s.Accepted)
		_, err := s.Open(t, vendor.URL, providers.Options{}).Submit(t.Context(), s.job())
		s.check(t, err, Row{Kind: mediagate.KindNotFound}, vendor.URL)
		if n := len(vendor.Requests()); n != 0 {
			t.Errorf("%d requests, want none", n)
		}
	})
	t.Run("arrives to the byte", func(t *testing.T) {
		t.Parallel()
		reply := s.Accepted
		reply.Body += strings.Repeat(string([]byte{0, 0xff, '\r', '\n'}), 300_000)
		sound, err := s.Open(t, s.Vendor(t, reply).URL, providers.Options{}).(providers.Speaker).Speak(t.Context(), s.job())
		if err != nil {
			t.Fatal(err)
		}
		defer sound.Close()
		if got, err := io.ReadAll(sound); err != nil || !bytes.Equal(got, []byte(reply.Body)) {
			t.Errorf("%d of %d bytes, or others: %v", len(got), len(reply.Body), err)
		}
	})
}
