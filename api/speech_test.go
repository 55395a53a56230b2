package api_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/api"
)

const (
	speechPath = "/v1/audio/speech"
	speechBody = `{"model":"eta-4o-mini-tts","input":"Ahoy, 🦊","voice":"coral"}`
	characters = 7 // of the text
	speechCost = characters * 60
)

// speaker replaces the vendors: it answers as the test says.
type speaker struct {
	mu    sync.Mutex
	asked []string
	speak func(ctx context.Context) (io.ReadCloser, error)
}

func (s *speaker) Speak(ctx context.Context, model string, routes []mediagate.Route, params json.RawMessage) (io.ReadCloser, error) {
	s.mu.Lock()
	s.asked = append(s.asked, fmt.Sprintf("%s %s %s", model, routes[0].Upstream, params))
	s.mu.Unlock()
	if s.speak == nil {
		return io.NopCloser(strings.NewReader("sound")), nil
	}
	return s.speak(ctx)
}

func (s *speaker) calls() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked
}

// pipes is a vendor that streams its sound. Its call ends with ctx.
func (s *speaker) pipes() *io.PipeWriter {
	r, w := io.Pipe()
	s.speak = func(ctx context.Context) (io.ReadCloser, error) {
		context.AfterFunc(ctx, func() { _ = r.CloseWithError(&mediagate.Error{Kind: mediagate.KindAmbiguous, Err: ctx.Err()}) })
		return r, nil
	}
	return w
}

func fails(err error) func(context.Context) (io.ReadCloser, error) {
	return func(context.Context) (io.ReadCloser, error) { return nil, err }
}

// money waits until the account holds nothing, and compares the amount it has spent.
func (g *gateway) wantSpent(want mediagate.Micros) {
	g.t.Helper()
	g.wantMoney(0, want)
}

func (g *gateway) wantMoney(held, spent mediagate.Micros) {
	g.t.Helper()
	var a mediagate.Account
	eventually(g.t, "the money", func() bool {
		var err error
		a, err = g.store.Account(g.t.Context(), g.account.ID)
		g.must(err)
		return a.Held == held
	})
	k, err := g.store.Key(g.t.Context(), g.keyRow.ID)
	g.must(err)
	total := 100 * mediagate.MicrosPerUnit
	if diff := cmp.Diff([]mediagate.Micros{total - held - spent, held, spent, held, spent}, []mediagate.Micros{a.Available, a.Held, a.Spent, k.Held, k.Spent}); diff != "" {
		g.t.Errorf("available, held, spent, the key's held, spent (-want +got):\n%s", diff)
	}
	report, err := g.store.CheckLedger(g.t.Context())
	g.must(err)
	if !report.OK {
		g.t.Errorf("the ledger: %q", report.Problems)
	}
}

func TestSpeech(t *testing.T) {
	t.Parallel()
	g := newGateway(t)
	spent := mediagate.Micros(0)
	for format, mimeType := range map[string]string{
		"": "audio/mpeg", "mp3": "audio/mpeg", "opus": "audio/opus", "aac": "audio/aac", "flac": "audio/flac", "wav": "audio/wav", "pcm": "audio/pcm",
	} {
		body := speechBody
		if format != "" {
			body = strings.TrimSuffix(body, "}") + `,"response_format":"` + format + `"}`
		}
		if a := g.post(speechPath, body); a.status != 200 || a.body != "sound" || a.header.Get("Content-Type") != mimeType {
			t.Errorf("format %q: %d %v %q", format, a.status, a.header, a.body)
		}
		spent += speechCost
		g.wantSpent(spent)
	}
	if asked := g.speaker.calls(); len(asked) != 7 || !strings.HasPrefix(asked[0], `eta-4o-mini-tts gpt-4o-mini-tts {"input":"Ahoy, 🦊","response_format":"`) {
		t.Errorf("asked %q", asked)
	}
	var transfers []string
	rows, _, err := g.store.Ledger(t.Context(), g.account.ID, "", "", 2)
	g.must(err)
	for _, row := range rows {
		transfers = append(transfers, string(row.Kind)+" "+row.Amount.String()+" "+row.TaskID[:min(7, len(row.TaskID))])
	}
	if diff := cmp.Diff([]string{"post 0.00042 speech_", "hold 0.00042 speech_"}, transfers); diff != "" {
		t.Errorf("ledger (-want +got):\n%s", diff)
	}
	if a := g.get("/v1/tasks"); !strings.Contains(a.body, `"data":[]`) {
		t.Errorf("there is a task: %s", a.body)
	}
	if a := g.quote(speechPath, speechBody); a.at("cost") != 0.00042 || len(g.speaker.calls()) != 7 {
		t.Errorf("the quote: %d %s", a.status, a.body)
	}
}

// TestSpeechRefusals checks that a speech without sound is answered with an error like all others
// and is not charged.
func TestSpeechRefusals(t *testing.T) {
	t.Parallel()
	g := newGateway(t)
	vendor := func(kind mediagate.Kind) error {
		return &mediagate.Error{Kind: kind, Message: "words of the vendor's", Err: errors.New("https://vendor.example.com")}
	}
	throttled := &mediagate.Error{Kind: mediagate.KindThrottled, RetryAfter: 7 * time.Second, Message: "slow down"}
	for name, test := range map[string]struct {
		err        error
		status     int
		kind       string
		message    string
		retryAfter string
	}{
		"refused as invalid": {vendor(mediagate.KindInvalid), 502, "bad_gateway", "gateway temporarily unavailable", ""},
		"refused content":    {vendor(mediagate.KindModerated), 422, "invalid_request_error", "words of the vendor's", ""},
		"throttled":          {throttled, 429, "rate_limit_error", "too many speeches", "7"},
		"throttled, no time": {vendor(mediagate.KindThrottled), 429, "rate_limit_error", "too many speeches", "1"},
		"full":               {vendor(mediagate.KindCapacity), 429, "rate_limit_error", "too many speeches", "1"},
		"out of funds":       {vendor(mediagate.KindFunds), 503, "server_error", "try again", "1"},
		"no credentials":     {vendor(mediagate.KindCredentials), 503, "server_error", "try again", "1"},
		"no channel":         {vendor(mediagate.KindShutOut), 503, "server_error", "try again", "1"},
		"no such model":      {vendor(mediagate.KindNoModel), 502, "bad_gateway", "no longer has the model", ""},
		"nonsense":           {vendor(mediagate.KindVendor), 502, "bad_gateway", "gateway temporarily unavailable", ""},
		"no database":        {vendor(mediagate.KindUnavailable), 503, "server_error", "try again", "1"},
		"our fault":          {errAway, 500, "server_error", "internal error", ""},
	} {
		g.speaker.speak = fails(test.err)
		a := g.post(speechPath, speechBody)
		t.Log(name)
		a.wantError(t, test.status, test.kind, test.message)
		a.wantWait(t, test.retryAfter)
		if strings.Contains(a.body, "vendor.example.com") {
			t.Errorf("the answer gives the vendor away: %s", a.body)
		}
		g.wantSpent(0)
	}
	g.speaker.speak = func(context.Context) (io.ReadCloser, error) { panic("a bug") }
	g.post(speechPath, speechBody).wantError(t, 500, "server_error", "internal error")
	g.wantSpent(0)
}

// TestSpeechIsModeratedFirst checks that the vendor gets no request that breaks a rule or cannot
// be paid.
func TestSpeechIsModeratedFirst(t *testing.T) {
	t.Parallel()
	g := newGateway(t)
	for name, test := range map[string]struct {
		body    string
		status  int
		kind    string
		message string
	}{
		"no text":          {`{"model":"eta-4o-mini-tts","voice":"ash"}`, 400, "invalid_request_error", "input is required"},
		"another model":    {strings.Replace(speechBody, "eta-4o-mini-tts", "alpha-v3", 1), 400, "invalid_request_error", "alpha-v3"},
		"longer than 1 MB": {`{"x":"` + strings.Repeat("a", 1<<20) + `"}`, 413, "invalid_request_error", ""},
	} {
		t.Run(name, func(t *testing.T) {
			g.post(speechPath, test.body).wantError(t, test.status, test.kind, test.message)
		})
	}
	_, short := g.newKey(mediagate.Key{Quota: speechCost - 1})
	g.send(request{method: http.MethodPost, path: speechPath, key: short, body: speechBody}).wantError(t, 402, "payment_required", "quota")
	_, other := g.newKey(mediagate.Key{Unlimited: true, Models: []string{"alpha-*"}})
	g.send(request{method: http.MethodPost, path: speechPath, key: other, body: speechBody}).wantError(t, 403, "permission_error", "eta-4o-mini-tts")
	g.send(request{method: http.MethodPost, path: speechPath, body: speechBody}).wantError(t, 401, "authentication_error", "No Authorization header")
	g.get("/v1/models/eta-4o-mini-tts/schema").wantError(t, 404, "not_found_error", "no contract")
	if asked := g.speaker.calls(); len(asked) != 0 {
		t.Errorf("asked %q", asked)
	}
	g.wantSpent(0)
}

// TestSpeechHasNoIdempotency checks that an idempotency key is ignored: a speech is not stored as
// a submit.
func TestSpeechHasNoIdempotency(t *testing.T) {
	t.Parallel()
	g := newGateway(t)
	for _, key := range []string{"once", "once", "not\u00a0ASCII", ""} {
		a := g.send(request{method: http.MethodPost, path: speechPath, key: g.key, body: speechBody, header: http.Header{"Idempotency-Key": {key}}})
		if a.status != 200 {
			t.Errorf("%q: %d %s", key, a.status, a.body)
		}
	}
	g.wantSpent(4 * speechCost)
}

// listening returns a gateway on a socket and a client's connection to it.
type listening struct {
	*gateway
	stop   func() // the server, and waits until it has
	client *http.Client
	url    string
}

func listen(t *testing.T, changes ...func(*api.Config)) *listening {
	t.Helper()
	g := newGateway(t, changes...)
	address, stop := g.serveUntil()
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	return &listening{gateway: g, stop: stop, client: &http.Client{Transport: transport}, url: "http://" + address}
}

// hear begins a speech. Its client leaves by cancel.
func (l *listening) hear() (answer *http.Response, cancel func()) {
	l.t.Helper()
	ctx, cancel := context.WithCancel(l.t.Context())
	l.t.Cleanup(cancel)
	answer, err := l.ask(ctx)
	l.must(err)
	return answer, cancel
}

// ask sends the request of a speech.
func (l *listening) ask(ctx context.Context) (*http.Response, error) {
	l.t.Helper()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, l.url+speechPath, strings.NewReader(speechBody))
	l.must(err)
	req.Header.Set("Authorization", "Bearer "+l.key)
	answer, err := l.client.Do(req)
	if err == nil {
		l.t.Cleanup(func() { _ = answer.Body.Close() })
	}
	return answer, err
}

func TestSpeechPassesOnEachPieceAtOnce(t *testing.T) {
	t.Parallel()
	l := listen(t)
	vendor := l.speaker.pipes()
	go func() { _, _ = vendor.Write([]byte("a")) }()
	answer, _ := l.hear()
	if answer.StatusCode != 200 || answer.ContentLength != -1 || answer.Header.Get("X-Request-Id") == "" {
		t.Fatalf("%d %v", answer.StatusCode, answer.Header)
	}
	piece := make([]byte, 8)
	for _, want := range []string{"a", "b", "c"} {
		if want != "a" {
			_, _ = vendor.Write([]byte(want)) // returns once it was read
		}
		if n, err := answer.Body.Read(piece); err != nil || string(piece[:n]) != want {
			t.Fatalf("%q, %v, want %q", piece[:n], err, want)
		}
	}
	l.wantMoney(speechCost, 0)
	_ = vendor.Close()
	if rest, err := io.ReadAll(answer.Body); err != nil || len(rest) != 0 {
		t.Errorf("the end: %q, %v", rest, err)
	}
	l.wantSpent(speechCost)
}

// TestSpeechThatBreaks checks that the client can recognize a broken speech.
func TestSpeechThatBreaks(t *testing.T) {
	t.Parallel()
	l := listen(t)
	vendor := l.speaker.pipes()
	go func() { _, _ = vendor.Write([]byte("half")) }()
	answer, _ := l.hear()
	half := make([]byte, 4)
	_, err := io.ReadFull(answer.Body, half)
	l.must(err)
	_ = vendor.CloseWithError(mediagate.Errorf(mediagate.KindAmbiguous, "the vendor's answer was lost"))
	if rest, err := io.ReadAll(answer.Body); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("the client saw an end: %q, %v", rest, err)
	}
	l.wantSpent(0)
	eventually(l.t, "the log line", func() bool { return strings.Contains(l.log.String(), `"end":"voided","bytes":4`) })
}

// TestSpeechThatIsLeft checks that a client that leaves, once the vendor has the request, is
// charged and that the vendor's call ends.
func TestSpeechThatIsLeft(t *testing.T) {
	t.Parallel()
	t.Run("in the middle", func(t *testing.T) {
		t.Parallel()
		l := listen(t)
		vendor := l.speaker.pipes()
		go func() { _, _ = vendor.Write([]byte("half")) }()
		_, leave := l.hear()
		leave()
		eventually(l.t, "the end of the vendor's call", func() bool { _, err := vendor.Write(nil); return err != nil })
		l.wantSpent(speechCost)
	})
	for name, test := range map[string]struct {
		kind mediagate.Kind
		want mediagate.Micros
	}{
		"while the vendor has it": {mediagate.KindAmbiguous, speechCost},
		"before it was sent":      {mediagate.KindUnreached, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := listen(t)
			asked, ended := make(chan struct{}), make(chan struct{})
			l.speaker.speak = func(ctx context.Context) (io.ReadCloser, error) {
				close(asked)
				<-ctx.Done()
				close(ended)
				return nil, mediagate.Errorf(test.kind, "over")
			}
			ctx, leave := context.WithCancel(t.Context())
			go func() {
				<-asked
				leave()
			}()
			if answer, err := l.ask(ctx); err == nil {
				t.Errorf("there is an answer: %d", answer.StatusCode)
			}
			<-ended
			l.wantSpent(test.want)
		})
	}
}

// TestSpeechWaitsForItsClient checks that nothing is read from the vendor while the client reads
// nothing.
func TestSpeechWaitsForItsClient(t *testing.T) {
	t.Parallel()
	l := listen(t)
	vendor := l.speaker.pipes()
	var sent atomic.Int64
	go func() {
		piece := make([]byte, 64<<10)
		for {
			n, err := vendor.Write(piece)
			sent.Add(int64(n))
			if err != nil {
				return
			}
		}
	}()
	answer, leave := l.hear()
	// Until all buffers on the way are full.
	last := int64(-1)
	eventually(l.t, "a stop", func() bool {
		time.Sleep(50 * time.Millisecond)
		before := last
		last = sent.Load()
		return before == last
	})
	if last > 64<<20 {
		t.Errorf("%d bytes were read for nobody", last)
	}
	if _, err := io.CopyN(io.Discard, answer.Body, last); err != nil {
		t.Error(err)
	}
	eventually(l.t, "more", func() bool { return sent.Load() > last })
	leave()
	l.wantSpent(speechCost)
}

// TestSpeechWithoutEnd checks that an endless speech is cut after the limit in the model's file.
func TestSpeechWithoutEnd(t *testing.T) {
	t.Parallel()
	const shorter = "id: eta-4o-mini-tts\noperations: [{endpoint: /v1/audio/speech, max_bytes: 1MiB}]\n"
	l := listen(t, func(c *api.Config) { c.Catalog = overlay(t, shorter) })
	l.speaker.speak = func(context.Context) (io.ReadCloser, error) { return io.NopCloser(endless{}), nil }
	answer, _ := l.hear()
	n, err := io.Copy(io.Discard, answer.Body)
	if !errors.Is(err, io.ErrUnexpectedEOF) || n < 1<<20 || n > 2<<20 {
		t.Errorf("%d bytes, %v", n, err)
	}
	l.wantSpent(0)
}

type endless struct{}

func (endless) Read(p []byte) (int, error) { return len(p), nil }

// TestSpeechOutlastsItsBody checks that the time limits of a request's body do not apply to its
// answer.
func TestSpeechOutlastsItsBody(t *testing.T) {
	t.Parallel()
	const stall = 500 * time.Millisecond // the body itself has to be read within it
	l := listen(t, func(c *api.Config) { c.BodyPace = stall })
	vendor := l.speaker.pipes()
	go func() { _, _ = vendor.Write([]byte("a")) }()
	answer, _ := l.hear()
	time.Sleep(3 * stall) // for the old deadline to pass
	_, _ = vendor.Write([]byte("b"))
	_ = vendor.Close()
	if all, err := io.ReadAll(answer.Body); err != nil || string(all) != "ab" {
		t.Errorf("%q, %v", all, err)
	}
	l.wantSpent(speechCost)
}

// TestSpeechAndTheEndOfTheServer checks that a stopping server lets speeches end within its grace
// period, cuts the others and does not charge them.
func TestSpeechAndTheEndOfTheServer(t *testing.T) {
	t.Parallel()
	t.Run("ends in time", func(t *testing.T) {
		t.Parallel()
		l := listen(t)
		vendor := l.speaker.pipes()
		go func() { _, _ = vendor.Write([]byte("half")) }()
		answer, _ := l.hear()
		stopped := make(chan struct{})
		go func() {
			l.stop()
			close(stopped)
		}()
		eventually(l.t, "the end of listening", func() bool {
			var d net.Dialer
			conn, err := d.DialContext(t.Context(), "tcp", strings.TrimPrefix(l.url, "http://"))
			if err == nil {
				_ = conn.Close()
			}
			return err != nil
		})
		_, _ = vendor.Write([]byte(" and half"))
		_ = vendor.Close()
		if all, err := io.ReadAll(answer.Body); err != nil || string(all) != "half and half" {
			t.Errorf("%q, %v", all, err)
		}
		<-stopped
		l.wantSpent(speechCost)
	})
	t.Run("takes too long", func(t *testing.T) {
		t.Parallel()
		l := listen(t, func(c *api.Config) { c.Grace = 50 * time.Millisecond })
		vendor := l.speaker.pipes()
		go func() { _, _ = vendor.Write([]byte("half")) }()
		answer, _ := l.hear()
		l.stop()
		if rest, err := io.ReadAll(answer.Body); err == nil {
			t.Errorf("the client saw an end: %q", rest)
		}
		l.wantSpent(0)
	})
}

// TestSpeechesLeftBehind checks that any process, also a successor, voids the holds that a
// process left.
func TestSpeechesLeftBehind(t *testing.T) {
	t.Parallel()
	g := newGateway(t)
	for i := range 2 {
		g.must(g.store.OpenSpeech(t.Context(), mediagate.Speech{
			ID: fmt.Sprintf("speech_%d", i), AccountID: g.account.ID, KeyID: g.keyRow.ID, Model: "eta-4o-mini-tts", Hold: 1000,
		}, time.Duration(i+1)*30*time.Second))
	}
	g.wantMoney(2000, 0)
	g.clock.advance(30 * time.Second)
	g.serve()
	eventually(g.t, "the first hold's end", func() bool {
		a, err := g.store.Account(t.Context(), g.account.ID)
		g.must(err)
		return a.Held == 1000
	})
	g.wantMoney(1000, 0)
}

// TestSpeechOfAHalfClosedConnection checks that a client that closes its sending side counts as
// gone: it cannot be told from one that left.
func TestSpeechOfAHalfClosedConnection(t *testing.T) {
	t.Parallel()
	g := newGateway(t)
	vendor := g.speaker.pipes()
	go func() { _, _ = vendor.Write([]byte("half")) }()
	s := dial(t, g.serve())
	s.send(request{method: http.MethodPost, path: speechPath, key: g.key, body: speechBody}.text("1.1"))
	line, err := s.answers.ReadString('\n')
	if err != nil || !strings.Contains(line, "200") {
		t.Fatalf("%q, %v", line, err)
	}
	s.finish()
	g.wantSpent(speechCost)
}
