package providertest

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/providers"
)

// strangeReplies are answers that no vendor verdict can be read from.
func (s Suite) strangeReplies(good Reply) map[string]Reply {
	html := "<html><body>Bad Gateway</body></html>"
	withFault := func(f Fault) Reply {
		r := good
		r.Fault = f
		return r
	}
	return map[string]Reply{
		"stalled head":             withFault(StallHead),
		"stalled body":             withFault(StallBody),
		"cut before the head":      withFault(CutHead),
		"cut in the body":          withFault(CutBody),
		"endless body":             withFault(Huge),
		"empty 200":                {},
		"HTML 200":                 {Body: html, Header: map[string]string{"Content-Type": "text/html"}},
		"HTML 200 as JSON":         {Body: html},
		"HTML 502":                 {Status: http.StatusBadGateway, Body: html},
		"empty 503":                {Status: http.StatusServiceUnavailable},
		"JSON 500":                 {Status: http.StatusInternalServerError, Body: `{"error":"oops"}`},
		"acceptance with 500":      {Status: http.StatusInternalServerError, Body: good.Body},
		"redirect":                 {Status: http.StatusTemporaryRedirect, Header: map[string]string{"Location": "/elsewhere"}},
		"204":                      {Status: http.StatusNoContent},
		"array":                    {Body: `[]`},
		"null":                     {Body: `null`},
		"empty object":             {Body: `{}`},
		"half a document":          {Body: good.Body[:len(good.Body)/2]},
		"two documents":            {Body: good.Body + good.Body},
		"all fields of odd types":  {Body: `{"code":[],"message":{},"data":7,"output":"x","request_id":null}`},
		"deeply nested":            {Body: strings.Repeat(`{"data":`, 50_000) + "1" + strings.Repeat("}", 50_000)},
		"success by its code only": {Body: `{"code":0,"message":"SUCCEED","data":{}}`},
	}
}

func (s Suite) submit(t *testing.T) {
	t.Helper()
	for name, reply := range s.strangeReplies(s.Accepted) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			vendor := s.Vendor(t, reply)
			err := s.submitKind(t.Context(), s.Open(t, vendor.URL, hasty(reply)))
			s.check(t, err, Row{Kind: mediagate.KindAmbiguous}, vendor.URL)
			if n := len(vendor.InLine()); n != 1 {
				t.Errorf("%d requests, want 1", n)
			}
		})
	}
	// A 4xx proves that there is no job, whoever on the way gave it.
	for status, kind := range map[int]mediagate.Kind{
		http.StatusForbidden:             mediagate.KindCredentials,
		http.StatusNotFound:              mediagate.KindNotFound,
		http.StatusRequestTimeout:        mediagate.KindAmbiguous,
		http.StatusRequestEntityTooLarge: mediagate.KindInvalid,
		http.StatusTooManyRequests:       mediagate.KindThrottled,
	} {
		t.Run(fmt.Sprintf("HTML %d", status), func(t *testing.T) {
			t.Parallel()
			vendor := s.Vendor(t, Reply{Status: status, Body: "<html><body>go away</body></html>"})
			s.check(t, s.submitKind(t.Context(), s.Open(t, vendor.URL, providers.Options{})), Row{Kind: kind}, vendor.URL)
		})
	}
	good := map[string]Reply{"accepted": s.Accepted}
	if !s.operation(t).Streams { // else it is no JSON, and its type is what tells
		good["accepted as text/html"] = Reply{Body: s.Accepted.Body, Header: map[string]string{"Content-Type": "text/html; charset=utf-8"}}
		good["accepted with unknown fields"] = Reply{Body: `{"news":{"a":[1,{}]},` + strings.TrimPrefix(s.Accepted.Body, "{")}
	}
	for name, reply := range good {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			vendor := s.Vendor(t, reply)
			got, err := s.send(t.Context(), s.Open(t, vendor.URL, providers.Options{}), s.job())
			if err != nil {
				t.Fatalf("Submit: %v", err)
			}
			diff(t, "submission", s.Submission, got)
			if n := len(vendor.InLine()); n != 1 {
				t.Errorf("%d requests, want 1", n)
			}
		})
	}
	t.Run("refusal repeats secrets", func(t *testing.T) {
		t.Parallel()
		refused := s.Refused("")
		refused.Echo = func(r Request) string { return s.Refused(s.leak(r) + " " + strings.Join(s.Secrets, " ")).Body }
		vendor := s.Vendor(t, refused)
		err := s.submitKind(t.Context(), s.Open(t, vendor.URL, providers.Options{}))
		s.check(t, err, Row{Kind: mediagate.KindInvalid}, vendor.URL)
	})
	t.Run("refusal without words", func(t *testing.T) {
		t.Parallel()
		vendor := s.Vendor(t, s.Refused(""))
		err := s.submitKind(t.Context(), s.Open(t, vendor.URL, providers.Options{}))
		s.check(t, err, Row{Kind: mediagate.KindInvalid, Code: mediagate.CodeInvalidParameters}, vendor.URL)
	})
	t.Run("unreadable params", func(t *testing.T) {
		t.Parallel()
		vendor := s.Vendor(t)
		suite := s
		suite.Job.Params = []byte(`{"prompt":`)
		suite.check(t, suite.submitKind(t.Context(), s.Open(t, vendor.URL, providers.Options{})), Row{Kind: mediagate.KindInvalid}, vendor.URL)
		if n := len(vendor.Requests()); n != 0 {
			t.Errorf("%d requests, want none", n)
		}
	})
	t.Run("unknown operation", func(t *testing.T) {
		t.Parallel()
		vendor := s.Vendor(t)
		suite := s
		suite.Job.Operation = "somersault"
		suite.check(t, suite.submitKind(t.Context(), s.Open(t, vendor.URL, providers.Options{})), Row{Kind: mediagate.KindNotFound}, vendor.URL)
		if n := len(vendor.Requests()); n != 0 {
			t.Errorf("%d requests, want none", n)
		}
	})
	t.Run("one request each under load", func(t *testing.T) {
		t.Parallel()
		const jobs = 20
		vendor := s.Vendor(t)
		for range jobs {
			vendor.Add(s.Accepted)
		}
		p := s.Open(t, vendor.URL, providers.Options{})
		var wg sync.WaitGroup
		for range jobs {
			wg.Go(func() {
				if err := s.submitKind(t.Context(), p); err != nil {
					t.Errorf("Submit: %v", err)
				}
			})
		}
		wg.Wait()
		if n := len(vendor.InLine()); n != jobs {
			t.Errorf("%d requests for %d submissions", n, jobs)
		}
	})
}

// callback holds what an operation says of the address for callbacks against what its
// submission tells the vendor, in whatever generation or dialect the channel has.
func (s Suite) callback(t *testing.T) {
	t.Helper()
	const address = "https://gateway.example.com/callbacks/task_01JZZZZZZZZZZZZZZZZZZZZZZZ.1.acZqgBg_n8PjnF6R9YdG1Q"
	for _, job := range s.jobs() {
		t.Run(job.Operation, func(t *testing.T) {
			t.Parallel()
			vendor := s.Vendor(t, s.Accepted)
			job.Inputs, job.Sink, job.CallbackURL = Inputs(s.Files), NewSink(), address
			_, _ = s.send(t.Context(), s.Open(t, vendor.URL, providers.Options{}), job) // the acceptance may be another operation's
			told := 0
			for _, r := range vendor.Requests() {
				told += strings.Count(r.Body, `"`+address+`"`)
			}
			if want := s.described().Operations[job.Operation].Callback; told > 1 || want != (told == 1) {
				t.Errorf("the vendor is told the address %d times, and the description says %t", told, want)
			}
		})
	}
}

// leak is a text with all that must not come back.
func (s Suite) leak(r Request) string {
	var text strings.Builder
	text.WriteString("no luck with " + r.Header.Get("Authorization") + " at http://" + r.Host + r.Path + " (" + r.Host + ", 127.0.0.1)")
	for name, secret := range s.Channel.Credentials {
		text.WriteString(" " + name + "=" + secret.Reveal() + " '" + secret.Reveal() + "'")
	}
	return text.String()
}

// reach covers what goes wrong before the vendor has read a request.
func (s Suite) reach(t *testing.T) {
	t.Helper()
	unreached := Row{Kind: mediagate.KindUnreached}
	t.Run("refused connection", func(t *testing.T) {
		t.Parallel()
		address := "http://" + closedPort(t)
		s.check(t, s.submitKind(t.Context(), s.Open(t, address, short())), unreached, address)
	})
	t.Run("no such host", func(t *testing.T) {
		t.Parallel()
		// A label of 64 characters can be no host: the resolver says so itself.
		address := "http://" + strings.Repeat("a", 64) + ".example.com"
		s.check(t, s.submitKind(t.Context(), s.Open(t, address, short())), unreached, address)
	})
	t.Run("certificate that nobody trusts", func(t *testing.T) {
		t.Parallel()
		var calls atomic.Int32
		server := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { calls.Add(1) }))
		server.Config.ErrorLog = silent()
		server.StartTLS()
		t.Cleanup(server.Close)
		s.check(t, s.submitKind(t.Context(), s.Open(t, server.URL, short())), unreached, server.URL)
		if calls.Load() != 0 {
			t.Error("a request was sent to a vendor that nobody vouches for")
		}
	})
	t.Run("caller gone", func(t *testing.T) {
		t.Parallel()
		vendor := s.Vendor(t, s.Accepted)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		s.check(t, s.submitKind(ctx, s.Open(t, vendor.URL, providers.Options{})), unreached, vendor.URL)
		if n := len(vendor.Requests()); n != 0 {
			t.Errorf("%d requests, want none", n)
		}
	})
	t.Run("send_before has passed", func(t *testing.T) {
		t.Parallel()
		now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
		opt := short()
		opt.Now = func() time.Time { return now }
		for _, before := range []time.Time{now.Add(-time.Hour), now} {
			vendor := s.Vendor(t, s.Accepted)
			suite := s
			suite.Job.SendBefore = before
			s.check(t, suite.submitKind(t.Context(), s.Open(t, vendor.URL, opt)), unreached, vendor.URL)
			if n := len(vendor.InLine()); n != 0 {
				t.Errorf("%d requests, want none", n)
			}
		}
		vendor := s.Vendor(t, s.Accepted)
		suite := s
		suite.Job.SendBefore = now.Add(time.Nanosecond)
		if err := suite.submitKind(t.Context(), s.Open(t, vendor.URL, opt)); err != nil {
			t.Errorf("Submit in time: %v", err)
		}
	})
	t.Run("closed before the request was read", func(t *testing.T) {
		t.Parallel()
		address, received := hangUp(t)
		err := s.submitKind(t.Context(), s.Open(t, "http://"+address, short()))
		// Whether the closing was noticed before the first byte is a matter
		// of luck; what is claimed must be true.
		switch mediagate.KindOf(err) {
		case mediagate.KindAmbiguous:
		case mediagate.KindUnreached:
			// Bytes may also be of a call before it, or of a body with the
			// client's files: it is streamed, and broke off.
			if received() && len(s.Before) == 0 && len(s.Files) == 0 {
				t.Errorf("said to be unreached, but bytes arrived: %v", err)
			}
		default:
			t.Errorf("kind %v: %v", mediagate.KindOf(err), err)
		}
		s.discreet(t, err.Error(), address)
	})
}

// closedPort is an address at which nobody listens.
func closedPort(t *testing.T) string {
	t.Helper()
	l := listen(t)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	return l.Addr().String()
}

func listen(t *testing.T) net.Listener {
	t.Helper()
	var config net.ListenConfig
	l, err := config.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// hangUp accepts one connection and closes it at once. received tells, after
// the client has returned, whether any byte had come.
func hangUp(t *testing.T) (address string, received func() bool) {
	t.Helper()
	l := listen(t)
	got := make(chan bool, 1)
	go func() {
		conn, err := l.Accept()
		if err != nil {
			got <- false
			return
		}
		_ = conn.(*net.TCPConn).CloseWrite()
		n, _ := io.Copy(io.Discard, conn)
		_ = conn.Close()
		got <- n > 0
	}()
	t.Cleanup(func() { _ = l.Close() })
	return l.Addr().String(), func() bool { return <-got }
}
