package providertest

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/providers"
)

func (s Suite) submitKind(ctx context.Context, p providers.Provider) error {
	_, err := s.send(ctx, p, s.job())
	return err
}

func (s Suite) submit(t *testing.T) {
	rows := meaninglessReplies(s.Accepted, mediagate.KindAmbiguous)
	// A 4xx proves that there is no job, even if a proxy sent it.
	for status, kind := range map[int]mediagate.Kind{
		http.StatusForbidden:             mediagate.KindCredentials,
		http.StatusNotFound:              mediagate.KindNotFound,
		http.StatusRequestTimeout:        mediagate.KindAmbiguous,
		http.StatusRequestEntityTooLarge: mediagate.KindInvalid,
		http.StatusTooManyRequests:       mediagate.KindThrottled,
	} {
		rows[fmt.Sprintf("HTML %d", status)] = Row{
			Reply: Reply{Status: status, Body: "<html><body>go away</body></html>"}, Kind: kind,
		}
	}
	leaking := s.Refused("")
	leaking.Echo = func(r Request) string { return s.Refused(s.secretText(r) + " " + strings.Join(s.Secrets, " ")).Body }
	rows["refusal repeats secrets"] = Row{Reply: leaking, Kind: mediagate.KindInvalid}
	rows["refusal without words"] = Row{
		Reply: s.Refused(""), Kind: mediagate.KindInvalid, Code: mediagate.CodeInvalidParameters,
	}
	maps.Copy(rows, s.SubmitRows)
	s.rows(t, rows, s.submitKind)

	good := map[string]Reply{"accepted": s.Accepted}
	if !s.operation(t).Streams { // a stream is not JSON, and its type has a meaning
		good["accepted as text/html"] = Reply{
			Body: s.Accepted.Body, Header: map[string]string{"Content-Type": "text/html; charset=utf-8"},
		}
		good["accepted with unknown fields"] = Reply{Body: `{"news":{"a":[1,{}]},` + strings.TrimPrefix(s.Accepted.Body, "{")}
	}
	for name, reply := range good {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			vendor, p := s.connect(t, reply)
			got, err := s.send(t.Context(), p, s.job())
			if err != nil {
				t.Fatalf("Submit: %v", err)
			}
			diff(t, "submission", s.Submission, got)
			if n := len(vendor.Unrouted()); n != 1 {
				t.Errorf("%d requests, want 1", n)
			}
			for _, x := range s.BeforeSubmit {
				if len(vendor.RequestsOn(x.Route)) == 0 {
					t.Errorf("%s was not called", x.Route)
				}
			}
			requests := vendor.Requests()
			if last := requests[len(requests)-1]; last.route != "" {
				t.Errorf("%s came after the submission", last.route)
			}
		})
	}
	t.Run("unknown operation", func(t *testing.T) {
		t.Parallel()
		vendor, p := s.connect(t)
		job := s.job()
		job.Operation = "somersault"
		_, err := s.send(t.Context(), p, job)
		s.check(t, err, Row{Kind: mediagate.KindNotFound}, vendor.URL)
		if n := len(vendor.Requests()); n != 0 {
			t.Errorf("%d requests, want none", n)
		}
	})
}

// beforeSubmit tests the calls that Submit makes before the call that submits. If one of them
// fails, it is certain that nothing was submitted.
func (s Suite) beforeSubmit(t *testing.T) {
	s.breakCalls(t, s.BeforeSubmit, s.Accepted, 0, mediagate.KindUnreached, s.submitKind)
}

// callback compares Operation.Callback with what a submission sends, in the channel's generation or
// dialect of the API.
func (s Suite) callback(t *testing.T) {
	const address = "https://gateway.example.com/callbacks/task_01JZZZZZZZZZZZZZZZZZZZZZZZ.1.acZqgBg_n8PjnF6R9YdG1Q"
	for _, job := range s.jobs() {
		t.Run(job.Operation, func(t *testing.T) {
			t.Parallel()
			vendor, p := s.connect(t, s.Accepted)
			job.Inputs, job.Sink, job.CallbackURL = Inputs(s.Files), NewSink(), address
			_, _ = s.send(t.Context(), p, job) // the acceptance may be that of another operation
			sent := 0
			for _, r := range vendor.Requests() {
				sent += strings.Count(r.Body, `"`+address+`"`)
			}
			if want := s.adapter(t).Description.Operations[job.Operation].Callback; sent > 1 || want != (sent == 1) {
				t.Errorf("the vendor got the callback address %d times, and the description has Callback %t", sent, want)
			}
		})
	}
}

// secretText returns a text with everything that must not appear in errors.
func (s Suite) secretText(r Request) string {
	var text strings.Builder
	text.WriteString("no luck with " + r.Header.Get("Authorization") +
		" at http://" + r.Host + r.Path + " (" + r.Host + ", 127.0.0.1)")
	for name, secret := range s.Channel.Credentials {
		text.WriteString(" " + name + "=" + secret.Reveal() + " '" + secret.Reveal() + "'")
	}
	return text.String()
}

// unreached tests failures before the vendor has read a request. The tests of vendorhttp cover the
// network itself.
func (s Suite) unreached(t *testing.T) {
	unreached := Row{Kind: mediagate.KindUnreached}
	t.Run("refused connection", func(t *testing.T) {
		t.Parallel()
		server := httptest.NewServer(nil)
		server.Close()
		s.check(t, s.submitKind(t.Context(), s.Open(t, server.URL, providers.Options{})), unreached, server.URL)
	})
	t.Run("caller gone", func(t *testing.T) {
		t.Parallel()
		vendor, p := s.connect(t, s.Accepted)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		s.check(t, s.submitKind(ctx, p), unreached, vendor.URL)
		if n := len(vendor.Requests()); n != 0 {
			t.Errorf("%d requests, want none", n)
		}
	})
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for name, before := range map[string]time.Time{
		"send_before has passed": now, "send_before has not passed": now.Add(time.Nanosecond),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			vendor := s.Vendor(t, s.Accepted)
			job := s.job()
			job.SendBefore = before
			_, err := s.send(t.Context(), s.Open(t, vendor.URL, providers.Options{Now: func() time.Time { return now }}), job)
			late := before.Equal(now)
			if late {
				s.check(t, err, unreached, vendor.URL)
			}
			if n := len(vendor.Unrouted()); (err != nil) != late || (n == 0) != late {
				t.Errorf("%d requests, %v", n, err)
			}
		})
	}
}
