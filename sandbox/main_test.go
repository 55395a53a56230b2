package sandbox_test

import (
	"bytes"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"go.uber.org/goleak"

	"github.com/mediagate/mediagate/sandbox"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// clock is moved by the test.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func newClock() *clock { return &clock{now: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)} }

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// bundle is a running sandbox.
type bundle struct {
	*sandbox.Server
	url   string
	clock *clock
	http  *http.Client
	stop  func()
}

func setup(t *testing.T) *bundle {
	t.Helper()
	return open(t, t.TempDir(), newClock(), nil)
}

func open(t *testing.T, dir string, c *clock, accounts []sandbox.Account) *bundle {
	t.Helper()
	s, err := sandbox.New(sandbox.Config{Dir: dir, Now: c.Now, Accounts: accounts})
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(s.Handler())
	b := &bundle{Server: s, url: srv.URL, clock: c, http: srv.Client()}
	b.stop = sync.OnceFunc(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		srv.Close()
	})
	t.Cleanup(b.stop)
	return b
}

// answer is a decoded response.
type answer struct {
	status int
	body   map[string]any
	raw    []byte
}

// at digs into the answer: at("data", "task_id"); numbers index arrays.
func (a answer) at(path ...any) any {
	var v any = a.body
	for _, p := range path {
		switch p := p.(type) {
		case string:
			m, _ := v.(map[string]any)
			v = m[p]
		case int:
			l, _ := v.([]any)
			if p >= len(l) {
				return nil
			}
			v = l[p]
		}
	}
	return v
}

func (a answer) text(path ...any) string {
	s, _ := a.at(path...).(string)
	return s
}

func (b *bundle) call(t *testing.T, method, path string, header map[string]string, body any) answer {
	t.Helper()
	var in io.Reader = http.NoBody
	switch v := body.(type) {
	case nil:
	case string:
		in = strings.NewReader(v)
	default:
		raw, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		in = bytes.NewReader(raw)
	}
	url := path
	if strings.HasPrefix(path, "/") {
		url = b.url + path
	}
	req, err := http.NewRequestWithContext(t.Context(), method, url, in)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	for k, v := range header {
		req.Header.Set(k, v)
	}
	resp, err := b.http.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	out := answer{status: resp.StatusCode, raw: raw}
	if len(raw) > 0 && raw[0] == '{' {
		if err := json.Unmarshal(raw, &out.body); err != nil {
			t.Fatal(err)
		}
	}
	return out
}

var (
	klingKey = map[string]string{"Authorization": "Bearer sandbox-kling-api-key"}
	dashKey  = map[string]string{"Authorization": "Bearer sk-sandbox-dashscope"}
)

func (b *bundle) kling(t *testing.T, method, path string, body any) answer {
	t.Helper()
	return b.call(t, method, "/kling/v1/videos/"+path, klingKey, body)
}

func (b *bundle) dash(t *testing.T, body any) answer {
	t.Helper()
	return b.call(t, "POST", "/dashscope/api/v1/services/aigc/multimodal-generation/generation", dashKey, body)
}

type m = map[string]any

// with copies the object, sets the fields and removes those that are nil.
func with(base m, changes m) m {
	out := maps.Clone(base)
	for k, v := range changes {
		if v == nil {
			delete(out, k)
		} else {
			out[k] = v
		}
	}
	return out
}

func textVideo() m { return m{"model_name": "kling-v3", "prompt": "a fox", "duration": "5"} }

func image(prompt string) m {
	return m{"model": "z-image-turbo", "input": m{"messages": []m{{"role": "user", "content": []m{{"text": prompt}}}}}}
}

// jobs asks the control endpoint.
func (b *bundle) jobs(t *testing.T, query string) []any {
	t.Helper()
	got := b.call(t, "GET", "/_sandbox/jobs"+query, nil, nil)
	jobs, ok := got.at("jobs").([]any)
	if got.status != 200 || !ok {
		t.Fatalf("jobs: %d %s", got.status, got.raw)
	}
	return jobs
}

func token(t *testing.T, secret string, method jwt.SigningMethod, claims jwt.MapClaims, typ any) string {
	t.Helper()
	tok := jwt.NewWithClaims(method, claims)
	if typ == nil {
		delete(tok.Header, "typ")
	} else {
		tok.Header["typ"] = typ
	}
	var key any = []byte(secret)
	if method == jwt.SigningMethodNone {
		key = jwt.UnsafeAllowNoneSignatureType
	}
	s, err := tok.SignedString(key)
	if err != nil {
		t.Fatal(err)
	}
	return s
}
