package api_test

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/api"
)

const mebibyte = 1 << 20

// padded is a submit of exactly so many bytes.
func padded(size int) string {
	start, end := `{"model":"alpha-v3","prompt":"a","other":"`, `"}`
	return start + strings.Repeat("x", size-len(start)-len(end)) + end
}

// fourBodies is room for four of the largest bodies, of which one is a key's
// share, beside the part for small ones.
const fourBodies = (4*mebibyte + 2000) * 8 / 7

func tight(t *testing.T, wait time.Duration) *gateway {
	t.Helper()
	return newGateway(t, smallBodies(t), func(c *api.Config) { c.BodyBudget, c.BodyWait = fourBodies, wait })
}

// holding is a submit of which the last byte is missing.
func (g *gateway) holding(t *testing.T, address, key string, fields ...string) (s *socket, last string) {
	t.Helper()
	before := api.Bodies(g.server)
	text := request{method: "POST", path: videos, key: key, body: padded(mebibyte)}.text("1.1", fields...)
	s = dial(t, address)
	s.send(text[:len(text)-1])
	eventually(t, "its body is under way", func() bool { return api.Bodies(g.server) == before+1 })
	return s, text[len(text)-1:]
}

// TestAnnouncedMedia: keys that announce all the media there is room for, and
// send none of it, leave others the room for usual bodies.
func TestAnnouncedMedia(t *testing.T) {
	t.Parallel()
	g := newGateway(t, func(c *api.Config) { c.BodyWait = 50 * time.Millisecond })
	address := g.serve()
	for _, key := range []string{g.other(), g.other()} {
		before := api.Bodies(g.server)
		dial(t, address).send(request{method: "POST", path: videos, key: key}.text("1.1", "Content-Length: "+strconv.Itoa(30*mebibyte)))
		eventually(t, "its body is under way", func() bool { return api.Bodies(g.server) == before+1 })
	}
	s := dial(t, address)
	s.send(request{method: "POST", path: videos, key: g.key, body: padded(mebibyte)}.text("1.1"))
	s.answer().taskID(t)
}

// TestBodiesOfOneKey: what one key has under way leaves no room for more of
// its own, and all of it for others.
func TestBodiesOfOneKey(t *testing.T) {
	t.Parallel()
	g := tight(t, 50*time.Millisecond)
	address, other := g.serve(), g.other()
	account := g.account.ID
	large := request{method: "POST", path: videos, key: g.key, body: padded(mebibyte)}
	held, last := g.holding(t, address, g.key)
	quote := large
	quote.path = "/v1/quote"
	chunked := request{method: "POST", path: videos, key: g.key}.text("1.1", "Transfer-Encoding: chunked") +
		strings.Repeat("1000\r\n"+strings.Repeat(" ", 0x1000)+"\r\n", 200) + "0\r\n\r\n"
	for name, text := range map[string]string{
		"submit": large.text("1.1"), "quote": quote.text("1.1"), "in chunks": chunked,
		"asking before": strings.TrimSuffix(large.text("1.1", "Expect: 100-continue"), large.body),
	} {
		s := dial(t, address)
		s.send(text)
		a := s.answer()
		a.wantError(t, 429, "rate_limit_error", "bodies under way")
		if after := a.header.Get("Retry-After"); after != "1" {
			t.Errorf("%s: Retry-After %q", name, after)
		}
	}
	for name, r := range map[string]request{
		"another key":  {method: "POST", path: videos, key: other, body: padded(mebibyte)},
		"the operator": {method: "PATCH", path: "/admin/v1/accounts/" + account, key: adminKey, body: `{"name":"b","other":"` + strings.Repeat("x", mebibyte-100) + `"}`},
	} {
		s := dial(t, address)
		s.send(r.text("1.1"))
		if a := s.answer(); a.status != 200 {
			t.Errorf("%s: %d %s", name, a.status, a.body)
		}
	}
	held.send(last)
	held.answer().taskID(t)
	eventually(t, "the room is back", func() bool { return api.Bodies(g.server) == 0 })
	s := dial(t, address)
	s.send(large.text("1.1"))
	s.answer().taskID(t)
}

// TestBodiesOfOneAccount: a key that makes more keys has no more room by them than
// a half of all.
func TestBodiesOfOneAccount(t *testing.T) {
	t.Parallel()
	g := tight(t, 50*time.Millisecond)
	address := g.serve()
	submit := func(key string) answer {
		s := dial(t, address)
		s.send(request{method: "POST", path: videos, key: key, body: padded(mebibyte)}.text("1.1"))
		return s.answer()
	}
	var keys []string
	for range 3 {
		keys = append(keys, g.manage(g.key, "POST", "", `{"name":"child","unlimited":true}`).text("key"))
	}
	g.holding(t, address, keys[0])
	held, last := g.holding(t, address, keys[1])
	submit(keys[2]).wantError(t, 429, "rate_limit_error", "bodies under way with the keys of this account")
	if a := submit(g.other()); a.status != 200 {
		t.Errorf("another account: %d %s", a.status, a.body)
	}
	held.send(last)
	held.answer().taskID(t)
	submit(keys[2]).taskID(t)
}

// TestBodiesOfTheProcess: when all is taken, the largest get a 503 and what
// still fits passes.
func TestBodiesOfTheProcess(t *testing.T) {
	t.Parallel()
	g := tight(t, 50*time.Millisecond)
	address := g.serve()
	var held []*socket
	var last string
	for range 4 {
		s, end := g.holding(t, address, g.other())
		held, last = append(held, s), end
	}
	for name, key := range map[string]string{"submit": g.key, "the operator": adminKey} {
		r := request{method: "POST", path: videos, key: key, body: padded(mebibyte)}
		if key == adminKey {
			r.path = "/admin/v1/accounts"
		}
		s := dial(t, address)
		s.send(r.text("1.1"))
		a := s.answer()
		a.wantError(t, 503, "server_error", "temporarily unavailable")
		if after := a.header.Get("Retry-After"); after != "1" {
			t.Errorf("%s: Retry-After %q", name, after)
		}
	}
	g.submit(videos, videoBody) // small ones have room of their own
	for _, s := range held {
		s.send(last)
		s.answer().taskID(t)
	}
}

// TestBodyWaitsForRoom: a burst is taken in, one after the other.
func TestBodyWaitsForRoom(t *testing.T) {
	t.Parallel()
	g := tight(t, time.Minute)
	address := g.serve()
	held, last := g.holding(t, address, g.key)
	s := dial(t, address)
	s.send(request{method: "POST", path: videos, key: g.key, body: padded(mebibyte)}.text("1.1"))
	eventually(t, "it waits", func() bool { return api.Bodies(g.server) == 2 })
	held.send(last)
	held.answer().taskID(t)
	s.answer().taskID(t)
}

// TestRoomComesBack: however a body ends, its room is free again.
func TestRoomComesBack(t *testing.T) {
	t.Parallel()
	g := newGateway(t, smallBodies(t), func(c *api.Config) {
		c.BodyBudget, c.BodyWait, c.BodyStall = fourBodies, 50*time.Millisecond, 2*time.Second
		c.CheckWebhookURL = func(string) error { panic("a fault") }
	})
	address := g.serve()
	whole := request{method: "POST", path: videos, key: g.key, body: padded(mebibyte)}.text("1.1")
	head := strings.Replace(whole[:strings.Index(whole, "\r\n\r\n")+4], "Content-Length: "+strconv.Itoa(mebibyte), "Transfer-Encoding: chunked", 1)
	for name, end := range map[string]func(s *socket) int{
		"stall":     func(s *socket) int { s.send(whole[:len(whole)-1]); return 408 },
		"early end": func(s *socket) int { s.send(whole[:len(whole)-1]); s.finish(); return 400 },
		"abort":     func(s *socket) int { s.send(whole[:len(whole)-1]); s.abort(); return 0 },
		"no JSON":   func(s *socket) int { s.send(strings.Replace(whole, "{", "x", 1)); return 400 },
		"too large": func(s *socket) int {
			s.send(head + fmt.Sprintf("%x\r\n", 2*mebibyte) + strings.Repeat(" ", 2*mebibyte) + "\r\n0\r\n\r\n")
			return 413
		},
		"panic": func(s *socket) int {
			s.send(strings.Replace(whole, `"other":"xxxxxxxxxxxxxxxxxxx`, `"webhook":"http://b.c","d":"`, 1))
			return 500
		},
		"success": func(s *socket) int { s.send(whole); return 200 },
	} {
		for range 3 {
			s := dial(t, address)
			if want := end(s); want > 0 {
				if a := s.answer(); a.status != want {
					t.Errorf("%s: %d %s", name, a.status, a.body)
				}
			}
			eventually(t, name+" gives back", func() bool { return api.Bodies(g.server) == 0 })
		}
	}
	if s, last := g.holding(t, address, g.key); true {
		s.send(last)
		s.answer().taskID(t)
	}
}

// heldStore is a database that takes its time with submits.
type heldStore struct {
	testStore
	entered, leave chan struct{}
}

func (s *heldStore) Submit(ctx context.Context, n mediagate.NewTask) (string, bool, error) {
	close(s.entered)
	<-s.leave
	return s.testStore.Submit(ctx, n)
}

// TestSlowDatabaseHoldsNoBodies: what waits for the database has given its
// body up.
func TestSlowDatabaseHoldsNoBodies(t *testing.T) {
	t.Parallel()
	held := &heldStore{entered: make(chan struct{}), leave: make(chan struct{})}
	g := newGateway(t, func(c *api.Config) {
		held.testStore, _ = c.Store.(testStore)
		c.Store = held
	})
	s := dial(t, g.serve())
	s.send(request{method: "POST", path: videos, key: g.key, body: padded(mebibyte)}.text("1.1"))
	<-held.entered
	if n := api.Bodies(g.server); n != 0 {
		t.Errorf("%d bodies are still held", n)
	}
	close(held.leave)
	s.answer().taskID(t)
}

// TestTooManyValues goes through the routes; parseObject's own test has the
// finer cases.
func TestTooManyValues(t *testing.T) {
	t.Parallel()
	g := newGateway(t)
	for name, r := range g.bodies() {
		own := strings.Count(r.body, ":") + 2 // the fields, the body, the list
		for values, status := range map[int]int{20_000: 0, 20_001: 400} {
			r := r
			r.body = strings.TrimSuffix(r.body, "}") + `,"other":[` + strings.Repeat("0,", values-own-1) + "0]}"
			a := g.send(r)
			if status == 400 {
				a.wantError(t, 400, "invalid_request_error", "more than 20000 values")
			} else if a.status/100 != 2 {
				t.Errorf("%s with %d values: %d %s", name, values, a.status, a.body)
			}
		}
	}
}
