package vendorhttp

import (
	"context"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"testing/iotest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mediagate/mediagate"
)

// seen is a request as the server received it.
type seen struct {
	Method, Path, Type, Accept, Body string
	Length                           int64
	Close                            bool
}

// echo starts a server that reports the requests it receives.
func echo(t *testing.T) (address string, got <-chan seen) {
	t.Helper()
	requests := make(chan seen, 10)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return // the request was cut off
		}
		requests <- seen{r.Method, r.URL.RequestURI(), r.Header.Get("Content-Type"), r.Header.Get("Accept"), string(body), r.ContentLength, r.Close}
		_, _ = io.WriteString(w, "{}")
	}))
	t.Cleanup(server.Close)
	return server.URL, requests
}

func TestRequests(t *testing.T) {
	t.Parallel()
	const accept = "application/json"
	for name, tc := range map[string]struct {
		call Call
		want seen
	}{
		"get":             {Call{Effect: Reads, Path: "/a?b=c"}, seen{Method: "GET", Path: "/v1/a?b=c", Accept: accept}},
		"poll by POST":    {Call{Effect: Reads, Path: "/a", Body: JSON(struct{}{})}, seen{Method: "POST", Path: "/v1/a", Type: accept, Accept: accept, Body: "{}", Length: 2}},
		"submit":          {Call{Effect: Submits, Body: JSON(struct{}{})}, seen{Method: "POST", Path: "/v1", Type: accept, Accept: accept, Body: "{}", Length: 2, Close: true}},
		"submit by PUT":   {Call{Effect: Submits, Method: "PUT", Body: JSON(struct{}{})}, seen{Method: "PUT", Path: "/v1", Type: accept, Accept: accept, Body: "{}", Length: 2, Close: true}},
		"stop":            {Call{Effect: Stops, Method: "DELETE", Path: "/1"}, seen{Method: "DELETE", Path: "/v1/1", Accept: accept, Close: true}},
		"POST of no body": {Call{Effect: Stops, Method: "POST", Path: "/1"}, seen{Method: "POST", Path: "/v1/1", Accept: accept, Close: true}},
		"form": {
			Call{Effect: Reads, Body: Form(url.Values{"a": {"b c"}})},
			seen{Method: "POST", Path: "/v1", Type: "application/x-www-form-urlencoded", Accept: accept, Body: "a=b+c", Length: 5},
		},
		"stream": {
			Call{Effect: Submits, Body: Streamed("image/png", strings.NewReader("abc"), 3)},
			seen{Method: "POST", Path: "/v1", Type: "image/png", Accept: accept, Body: "abc", Length: 3, Close: true},
		},
		"stream of unknown length": {
			Call{Effect: Submits, Body: Streamed("image/png", iotest.OneByteReader(strings.NewReader("abc")), -1)},
			seen{Method: "POST", Path: "/v1", Type: "image/png", Accept: accept, Body: "abc", Length: -1, Close: true},
		},
		"another answer": {
			Call{Effect: Reads, Header: http.Header{"Accept": {"audio/*"}}},
			seen{Method: "GET", Path: "/v1", Accept: "audio/*"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			address, got := echo(t)
			if _, err := open(t, address+"/v1", Options{}).Do(t.Context(), tc.call); err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(tc.want, <-got); d != "" {
				t.Error(d)
			}
		})
	}
}

// A call may go to another host than the channel's. Errors must not name that host either.
func TestOtherHost(t *testing.T) {
	t.Parallel()
	address, got := echo(t)
	c := open(t, "http://127.0.0.1:1", Options{})
	if _, err := c.Do(t.Context(), Call{Effect: Reads, Base: address, Path: "/token", Body: Form(url.Values{"a": {"b"}})}); err != nil {
		t.Fatal(err)
	}
	if r := <-got; r.Path != "/token" {
		t.Errorf("the path is %s, want /token", r.Path)
	}
	_, err := c.Do(t.Context(), Call{Effect: Reads, Base: "http://oauth-gw:1", Path: "/token"})
	if !mediagate.Is(err, mediagate.KindTransient) || strings.Contains(err.Error(), "oauth-gw") {
		t.Errorf("Do: %v", err)
	}
}

func TestEffectIsDemanded(t *testing.T) {
	t.Parallel()
	address, got := echo(t)
	c := open(t, address, Options{})
	for _, effect := range []Effect{0, Stops + 1} {
		if _, err := c.Do(t.Context(), Call{Effect: effect, Body: JSON(struct{}{})}); !mediagate.Is(err, mediagate.KindInternal) {
			t.Errorf("effect %d: %v", effect, err)
		}
	}
	if len(got) != 0 {
		t.Error("a call without an effect was made")
	}
}

// The meaning of a lost answer follows from the effect.
func TestLostAnswers(t *testing.T) {
	t.Parallel()
	var calls atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		calls.Add(1)
		panic(http.ErrAbortHandler)
	}))
	t.Cleanup(server.Close)
	for name, tc := range map[string]struct {
		effect Effect
		kind   mediagate.Kind
	}{
		"submits": {Submits, mediagate.KindAmbiguous}, "stops": {Stops, mediagate.KindTransient}, "reads": {Reads, mediagate.KindTransient},
	} {
		calls.Store(0)
		_, err := open(t, server.URL, Options{}).Do(t.Context(), Call{Effect: tc.effect, Body: JSON(struct{}{})})
		if !mediagate.Is(err, tc.kind) {
			t.Errorf("%s: %v, want %v", name, err, tc.kind)
		}
		if n := calls.Load(); n != 1 {
			t.Errorf("%s: %d requests", name, n)
		}
	}
}

// A vendor that has read no byte cannot have a job.
func TestUnreached(t *testing.T) {
	t.Parallel()
	var calls atomic.Int32
	stranger := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { calls.Add(1) }))
	stranger.Config.ErrorLog = log.New(io.Discard, "", 0)
	stranger.StartTLS() // with an untrusted certificate
	t.Cleanup(stranger.Close)
	closed := httptest.NewServer(nil)
	closed.Close()
	for name, address := range map[string]string{
		"refused connection": closed.URL,
		"untrusted":          stranger.URL,
		// A label of 64 characters is no valid host, so the resolver rejects it by itself.
		"no such host": "http://" + strings.Repeat("a", 64) + ".example.com",
	} {
		for effect, kind := range map[Effect]mediagate.Kind{Submits: mediagate.KindUnreached, Stops: mediagate.KindTransient, Reads: mediagate.KindTransient} {
			_, err := open(t, address, Options{}).Do(t.Context(), Call{Effect: effect, Body: JSON([]byte("{}"))})
			if !mediagate.Is(err, kind) {
				t.Errorf("%s: %v: %v, want %v", name, effect, err, kind)
			}
		}
	}
	if n := calls.Load(); n != 0 {
		t.Errorf("%d requests were sent to a vendor without a trusted certificate", n)
	}
}

// The client may or may not notice before the first byte that the vendor hung up. In both cases the
// error must be true: KindUnreached only if no byte arrived.
func TestHangUp(t *testing.T) {
	t.Parallel()
	var config net.ListenConfig
	l, err := config.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	received := make(chan int64, 1)
	go func() {
		conn, err := l.Accept()
		if err != nil {
			received <- 0
			return
		}
		_ = conn.(*net.TCPConn).CloseWrite()
		n, _ := io.Copy(io.Discard, conn)
		_ = conn.Close()
		received <- n
	}()
	_, err = open(t, "http://"+l.Addr().String(), Options{}).Do(t.Context(), Call{Effect: Submits, Body: JSON([]byte("{}"))})
	_ = l.Close()
	n := <-received
	if !mediagate.Is(err, mediagate.KindAmbiguous) && (!mediagate.Is(err, mediagate.KindUnreached) || n > 0) {
		t.Errorf("%d bytes arrived: %v", n, err)
	}
}

// A streamed body that breaks off leaves an incomplete request, which no vendor can act on.
func TestBodyThatBreaksOff(t *testing.T) {
	t.Parallel()
	image := &mediagate.Error{Kind: mediagate.KindInvalid, Code: string(mediagate.CodeImageProcessing), Message: "image_urls[0] is too large"}
	away := mediagate.Errorf(mediagate.KindTransient, "the server of image_urls[0] is away")
	for name, tc := range map[string]struct {
		effect Effect
		rest   error
		length int64
		want   error
		kind   mediagate.Kind
	}{
		"the client's fault":     {Submits, image, -1, image, mediagate.KindInvalid},
		"known length":           {Submits, image, 100_000, image, mediagate.KindInvalid},
		"a server away":          {Submits, away, -1, nil, mediagate.KindUnreached},
		"a foreign error":        {Submits, errors.New("disk full"), -1, nil, mediagate.KindUnreached},
		"shorter than said":      {Submits, io.EOF, 100_000, nil, mediagate.KindUnreached},
		"a read's":               {Reads, away, -1, nil, mediagate.KindTransient},
		"a read, client's fault": {Reads, image, -1, image, mediagate.KindInvalid},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			address, got := echo(t)
			body := io.MultiReader(strings.NewReader(strings.Repeat("x", 50_000)), iotest.ErrReader(tc.rest))
			_, err := open(t, address, Options{}).Do(t.Context(), Call{Effect: tc.effect, Body: Streamed("image/png", body, tc.length)})
			if !mediagate.Is(err, tc.kind) || tc.want != nil && !errors.Is(err, tc.want) {
				t.Errorf("Do: %v, want %v", err, tc.kind)
			}
			if len(got) != 0 {
				t.Error("the server got a whole request")
			}
		})
	}
}

// After end, outgoing gives out nothing more.
func TestOutgoingStaysShut(t *testing.T) {
	t.Parallel()
	reader, writer := io.Pipe()
	out := &outgoing{r: reader, left: -1}
	read := make(chan error, 1)
	go func() {
		_, err := out.Read(make([]byte, 10))
		read <- err
	}()
	if _, err := writer.Write([]byte("a")); err != nil { // Read waits for this
		t.Fatal(err)
	}
	if err := <-read; err != nil {
		t.Fatal(err)
	}
	go func() {
		_, err := out.Read(make([]byte, 10))
		read <- err
	}()
	if whole, err := out.end(); whole || err != nil {
		t.Errorf("end = %v, %v", whole, err)
	}
	if err := writer.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-read; !errors.Is(err, errShut) {
		t.Errorf("Read of a shut body: %v", err)
	}
}

func TestHeadLimit(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.ReadAll(r.Body)
		<-r.Context().Done()
	}))
	t.Cleanup(server.Close)
	// The last two limits include the time to connect. They are long because a busy machine
	// connects late.
	for name, tc := range map[string]struct {
		opt    Options
		limits Limits
		effect Effect
		kind   mediagate.Kind
	}{
		"of the call":       {Options{}, Limits{Header: 20 * time.Millisecond}, Reads, mediagate.KindTransient},
		"of the process":    {Options{Timeouts: Timeouts{ReadHeader: 20 * time.Millisecond}}, Limits{Header: time.Hour, Total: time.Hour}, Reads, mediagate.KindTransient},
		"of a submission":   {Options{}, Limits{Header: 20 * time.Millisecond}, Submits, mediagate.KindAmbiguous},
		"of the whole call": {Options{}, Limits{Total: time.Second}, Submits, mediagate.KindAmbiguous},
		"of all submits":    {Options{Timeouts: Timeouts{Submit: time.Second}}, Limits{Total: time.Hour}, Submits, mediagate.KindAmbiguous},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := open(t, server.URL, tc.opt).Do(t.Context(), Call{Effect: tc.effect, Body: JSON(struct{}{}), Limits: tc.limits})
			if !mediagate.Is(err, tc.kind) {
				t.Errorf("Do: %v, want %v", err, tc.kind)
			}
			if errors.Is(err, context.Canceled) {
				t.Errorf("a limit of our own looks like the caller's cancellation: %v", err)
			}
		})
	}
}

func TestStream(t *testing.T) {
	t.Parallel()
	next := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusCreated)
		_, _ = io.WriteString(w, "first")
		_ = http.NewResponseController(w).Flush()
		<-next
		_, _ = io.WriteString(w, " second")
	}))
	t.Cleanup(server.Close)
	s, err := open(t, server.URL, Options{}).Stream(t.Context(), Call{Effect: Submits, Body: JSON(struct{}{})})
	if err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 5)
	if _, err := io.ReadFull(s.Body, b); err != nil || string(b) != "first" || s.Status != http.StatusCreated {
		t.Errorf("read %q, %v, status %d before the answer has ended", b, err, s.Status)
	}
	close(next)
	rest, err := s.Whole(7)
	if err != nil || string(rest.Body) != " second" || rest.Status != http.StatusCreated {
		t.Errorf("the rest is %q, %v", rest.Body, err)
	}
}

// Whole fails if the rest is longer than its limit, even if the stream itself may be longer.
func TestWholeIsBounded(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusBadRequest)
		_, _ = io.WriteString(w, "12345678")
	}))
	t.Cleanup(server.Close)
	for _, limit := range []int64{8, 7} {
		s, err := open(t, server.URL, Options{}).Stream(t.Context(), Call{Effect: Submits, Body: JSON(struct{}{}), Limits: Limits{Bytes: 1 << 20}})
		if err != nil {
			t.Fatal(err)
		}
		a, err := s.Whole(limit)
		if fine := err == nil && string(a.Body) == "12345678"; fine != (limit == 8) || !fine && !mediagate.Is(err, mediagate.KindAmbiguous) {
			t.Errorf("within %d bytes: %q, %v", limit, a.Body, err)
		}
	}
}

// An answer that breaks off in the middle leaves a submission ambiguous.
func TestBrokenStreams(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		limits Limits
		rest   func(http.ResponseWriter, *http.Request)
	}{
		"cut":     {Limits{}, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }},
		"stalled": {Limits{Stall: 20 * time.Millisecond}, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }},
		"slow": {Limits{Total: time.Second}, func(w http.ResponseWriter, r *http.Request) {
			for r.Context().Err() == nil {
				_, _ = io.WriteString(w, ".")
				_ = http.NewResponseController(w).Flush()
				time.Sleep(time.Millisecond)
			}
		}},
		"too long": {Limits{Bytes: 6}, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "second") }},
	} {
		for effect, kind := range map[Effect]mediagate.Kind{Submits: mediagate.KindAmbiguous, Reads: mediagate.KindTransient} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					_, _ = io.ReadAll(r.Body)
					_, _ = io.WriteString(w, "first")
					_ = http.NewResponseController(w).Flush()
					tc.rest(w, r)
				}))
				t.Cleanup(server.Close)
				s, err := open(t, server.URL, Options{}).Stream(t.Context(), Call{Effect: effect, Body: JSON(struct{}{}), Limits: tc.limits})
				if err != nil {
					t.Fatal(err)
				}
				b, err := io.ReadAll(s.Body)
				if !mediagate.Is(err, kind) || !strings.HasPrefix(string(b), "first") || errors.Is(err, context.Canceled) {
					t.Errorf("read %.20q, %v, want %v", b, err, kind)
				}
				if _, again := s.Body.Read(make([]byte, 1)); !errors.Is(again, err) {
					t.Errorf("read again: %v", again)
				}
				_ = s.Body.Close()
			})
		}
	}
}

func TestBeforeSubmission(t *testing.T) {
	t.Parallel()
	for kind, want := range map[mediagate.Kind]mediagate.Kind{
		mediagate.KindTransient: mediagate.KindUnreached, mediagate.KindCredentials: mediagate.KindCredentials, mediagate.KindInvalid: mediagate.KindInvalid,
	} {
		if got := BeforeSubmission(mediagate.Errorf(kind, "no token")); mediagate.KindOf(got) != want {
			t.Errorf("%v becomes %v, want %v", kind, got, want)
		}
	}
	if err := BeforeSubmission(nil); err != nil {
		t.Error(err)
	}
}

func TestDecodeParams(t *testing.T) {
	t.Parallel()
	for params, param := range map[string]string{
		`{"prompt":"a"}`: "-", `{"prompt":"a","list":[{"a":1}]}`: "-",
		`{"prompt":"a","turbo":true}`: "turbo", `{"list":[{"b":1}]}`: "b",
		`{"prompt":`: "", `{"prompt":1}`: "", `{} {}`: "", ``: "",
	} {
		var p struct {
			Prompt string              `json:"prompt"`
			List   []struct{ A int64 } `json:"list"`
		}
		err := DecodeParams([]byte(params), &p)
		var e *mediagate.Error
		if errors.As(err, &e) == (param == "-") || e != nil && (e.Kind != mediagate.KindInvalid || e.Param != param || e.Message == "") {
			t.Errorf("%s: %v, want %q", params, err, param)
		}
	}
}
