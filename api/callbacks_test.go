package api_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/mediagate/mediagate/api"
	"github.com/mediagate/mediagate/internal/hint"
)

// hintStore records hints instead of the polling table.
type hintStore struct {
	api.Store
	mu      sync.Mutex
	hints   []string
	fail    error
	blocked chan struct{} // nil: none is
}

func (s *hintStore) Hint(ctx context.Context, taskID string, n int) (bool, error) {
	if s.blocked != nil {
		select {
		case <-s.blocked:
		case <-ctx.Done():
			return false, ctx.Err()
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hints = append(s.hints, fmt.Sprint(taskID, ".", n))
	return taskID != "task_ended", s.fail
}

func (s *hintStore) seen() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Sorted(slices.Values(s.hints))
}

// called returns a gateway that vendors call back, and the keys of its tokens.
func called(t *testing.T) (*gateway, *hintStore, hint.Keys) {
	t.Helper()
	keys, err := hint.NewKeys([][]byte{bytes.Repeat([]byte{1}, 32)})
	must(t, err)
	var store *hintStore
	g := newGateway(t, func(c *api.Config) {
		store = &hintStore{Store: c.Store}
		c.Store, c.OpenHint = store, keys.Open
	})
	return g, store, keys
}

func (g *gateway) callback(token, body string) answer {
	g.t.Helper()
	return g.send(request{method: http.MethodPost, path: "/callbacks/" + token, body: body})
}

// TestCallbacks checks that a callback makes the poll of its token's attempt due, whatever its
// body, and that the log does not hold the token.
func TestCallbacks(t *testing.T) {
	t.Parallel()
	g, store, keys := called(t)
	for _, body := range []string{"", "{}", "no JSON", `{"status":"succeed","task_id":"other"}`, "\xff\x00", strings.Repeat("x", 10<<10)} {
		if a := g.callback(keys.Token("task_1", 1), body); a.status != http.StatusNoContent || a.body != "" {
			t.Errorf("%.20q: %d %q", body, a.status, a.body)
		}
	}
	g.callback(keys.Token("task_1", 2), "")
	g.callback(keys.Token("task_ended", 1), "")
	eventually(t, "each is written", func() bool { return len(slices.Compact(store.seen())) == 3 })
	if got, want := slices.Compact(store.seen()), []string{"task_1.1", "task_1.2", "task_ended.1"}; !slices.Equal(got, want) {
		t.Errorf("hints %v, want %v", got, want)
	}
	eventually(t, "each is counted", func() bool {
		n := g.server.Callbacks()
		return n["due"] >= 2 && n["idle"] == 1 && n["unknown"]+n["dropped"]+n["challenge"] == 0
	})
	if strings.Contains(g.log.String(), keys.Token("task_1", 1)) || !strings.Contains(g.log.String(), `"/callbacks/:token"`) {
		t.Error("the log has the token, or lacks the call")
	}
}

// TestWrongCallbacks checks that a wrong token costs no query and gets the same answer as a right
// one.
func TestWrongCallbacks(t *testing.T) {
	t.Parallel()
	g, store, keys := called(t)
	own := keys.Token("task_1", 1)
	tokens := []string{"x", own[:len(own)-1], strings.Replace(own, "task_1", "task_2", 1), strings.Replace(own, ".1.", ".2.", 1), strings.Repeat("x", 4000)}
	for _, token := range tokens {
		if a := g.callback(token, "{}"); a.status != http.StatusNoContent || a.body != "" {
			t.Errorf("%.20s: %d %q", token, a.status, a.body)
		}
	}
	if n := g.server.Callbacks(); n["unknown"] != int64(len(tokens)) {
		t.Errorf("counted: %+v", n)
	}
	if text := g.log.String(); strings.Contains(text, "/callbacks/") {
		t.Errorf("each is a line of the log, which anybody could fill:\n%s", text)
	}
	g.callback(own, "")
	eventually(t, "the right one is written", func() bool { return len(store.seen()) == 1 })
	if got := store.seen(); !slices.Equal(got, []string{"task_1.1"}) {
		t.Errorf("hints %v", got)
	}
	g.send(request{method: http.MethodGet, path: "/callbacks/" + own}).wantError(t, 405, "invalid_request_error", "method not allowed: GET /callbacks/"+own)
	for _, path := range []string{"/callbacks", "/callbacks/", "/callbacks/" + own + "/", "/callbacks/" + own + "/x"} {
		g.send(request{method: http.MethodPost, path: path}).wantError(t, 404, "not_found_error", "no such route: POST "+path)
	}
}

func TestWithoutTokens(t *testing.T) {
	t.Parallel()
	g := newGateway(t)
	g.callback("task_1.1.x", "{}").wantStatus(t, http.StatusNoContent)
}

// TestChallenge checks that a challenge is returned: MiniMax tests an address with one.
func TestChallenge(t *testing.T) {
	t.Parallel()
	g, _, keys := called(t)
	for body, want := range map[string]string{
		`{"challenge":"a-b_c"}`:                             `{"challenge":"a-b_c"}`,
		`{"challenge":"<é\"\u00e9>","x":[{}]}`:              `{"challenge":"<é\"\u00e9>"}`,
		` { "challenge" : 12345678901234567890 } `:          `{"challenge":12345678901234567890}`,
		`{"challenge":-1.5}`:                                `{"challenge":-1.5}`,
		`{"challenge":null}`:                                "",
		`{"challenge":{"a":1}}`:                             "",
		`{"challenge":["a"]}`:                               "",
		`{"challenge":true}`:                                "",
		`["challenge"]`:                                     "",
		`{"challenge":"a"`:                                  "",
		`{"challenge":"` + strings.Repeat("a", 5000) + `"}`: "",
	} {
		for _, token := range []string{keys.Token("task_1", 1), "unknown"} {
			a := g.callback(token, body)
			status := http.StatusOK
			if want == "" {
				status = http.StatusNoContent
			}
			if a.status != status || strings.TrimSpace(a.body) != want {
				t.Errorf("%.40s: %d %s", body, a.status, a.body)
			}
			if want != "" && a.header.Get("Content-Type") != "application/json" {
				t.Errorf("type %q", a.header.Get("Content-Type"))
			}
		}
	}
}

// TestBodiesOfCallbacks checks that a long body is not read, and that a missing one is not
// awaited.
func TestBodiesOfCallbacks(t *testing.T) {
	t.Parallel()
	g, _, keys := called(t)
	path := "POST /callbacks/" + keys.Token("task_1", 1) + " HTTP/1.1\r\nHost: gateway\r\n"
	for name, test := range map[string]struct {
		text   string
		closes bool
	}{
		"announced, 10 MB":     {fmt.Sprintf("%sContent-Length: %d\r\n\r\n{", path, 10<<20), true},
		"chunked, long":        {path + "Transfer-Encoding: chunked\r\n\r\n4001\r\n" + strings.Repeat("x", 16385) + "\r\n1\r\nx", true},
		"chunked, short":       {path + "Transfer-Encoding: chunked\r\n\r\n3\r\n{}\n\r\n0\r\n\r\n", true},
		"of a vendor's length": {fmt.Sprintf("%sContent-Length: %d\r\n\r\n%s", path, 16<<10, strings.Repeat("x", 16<<10)), false},
		"half of it":           {path + "Content-Length: 20\r\n\r\n{}", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := dial(t, g.serve())
			s.send(test.text)
			a := s.answer()
			if a.status != http.StatusNoContent || (a.header.Get("Connection") == "close") != test.closes {
				t.Errorf("%d, connection %q", a.status, a.header.Get("Connection"))
			}
			if test.closes {
				return
			}
			s.send(request{path: "/healthz"}.text("1.1"))
			s.answer().wantStatus(t, http.StatusOK, "the next call on the connection")
		})
	}
}

// TestFloodOfCallbacks checks that each attempt is written once a round, for any number of
// callbacks, and that the number of waiting hints is limited.
func TestFloodOfCallbacks(t *testing.T) {
	t.Parallel()
	g, store, keys := called(t)
	store.blocked = make(chan struct{})
	g.callback(keys.Token("task_first", 1), "")
	const rest = 10_000
	for range rest {
		g.callback(keys.Token("task_1", 1), "")
	}
	close(store.blocked)
	eventually(t, "both are written", func() bool { return slices.Contains(store.seen(), "task_1.1") })
	if n := len(store.seen()); n > 5 {
		t.Errorf("written %d times", n)
	}
}

// TestCallbackWithoutDatabase checks that a callback is answered without the database, though its
// hint is lost.
func TestCallbackWithoutDatabase(t *testing.T) {
	t.Parallel()
	g, store, keys := called(t)
	store.fail = errors.New("the database is away")
	g.callback(keys.Token("task_1", 1), "").wantStatus(t, http.StatusNoContent)
	eventually(t, "it is counted", func() bool { return g.server.Callbacks()["dropped"] == 1 })
	store.mu.Lock()
	store.fail = nil
	store.mu.Unlock()
	g.callback(keys.Token("task_1", 1), "")
	eventually(t, "the next one is written", func() bool { return g.server.Callbacks()["due"] == 1 })
}
