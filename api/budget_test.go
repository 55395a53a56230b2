package api_test

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/api"
	"github.com/mediagate/mediagate/internal/limit"
)

const mebibyte = 1 << 20

// padded returns a submit of exactly n bytes.
func padded(size int) string {
	start, end := `{"model":"alpha-v3","prompt":"a","other":"`, `"}`
	return start + strings.Repeat("x", size-len(start)-len(end)) + end
}

// aBody is the room that a submit of a mebibyte takes once most of it came: its length, and a byte
// to see its end.
const aBody = mebibyte + 1

// holding sends a submit without its last byte.
func (g *gateway) holding(t *testing.T, address, key string) (s *socket, last string) {
	t.Helper()
	before := g.held()
	text := request{method: "POST", path: videos, key: key, body: padded(mebibyte)}.text("1.1")
	s = dial(t, address)
	s.send(text[:len(text)-1])
	eventually(t, "its body is under way", func() bool { return g.held() == before+aBody })
	return s, text[len(text)-1:]
}

// TestAnnouncedIsNotHeld checks that only received bytes count. Two accounts announce bodies and
// uploads larger than the room and send them slowly: others still have room, and the slow
// requests are ended.
func TestAnnouncedIsNotHeld(t *testing.T) {
	t.Parallel()
	g := newGateway(t, bounds(func(p *limit.Process) {
		p.Bodies, p.Uploads = limit.New("", 8*mebibyte), limit.New("", 32*mebibyte)
	}), func(c *api.Config) {
		c.BodyWait, c.UploadWait, c.BodyPace = 50*time.Millisecond, 50*time.Millisecond, 4*time.Second
	})
	address := g.serve()
	length := "Content-Length: " + strconv.Itoa(20*mebibyte)
	var slow []*socket
	for _, key := range []string{g.other(), g.other()} {
		for range 10 {
			body, file := dial(t, address), dial(t, address)
			body.send(request{method: "POST", path: videos, key: key}.text("1.1", length) + `{"model":`)
			file.send(request{method: "POST", path: uploadPath, key: key}.text("1.1", length, "Content-Type: multipart/form-data; boundary="+boundary) + "--" + boundary)
			slow = append(slow, body, file)
		}
	}
	eventually(t, "all have begun", func() bool { return g.held() == 20*(32<<10)+20*(2*int64(len("--"+boundary))+64<<10) })
	for range 3 {
		dial(t, address).ask(request{method: "POST", path: videos, key: g.key, body: padded(mebibyte)}).taskID(t)
		g.upload(formOf(filePart(pictureOf(mebibyte)))).wantStatus(t, http.StatusOK, "an upload")
	}
	for _, s := range slow {
		s.answer().wantStatus(t, http.StatusRequestTimeout, "who is slow")
	}
	eventually(t, "all is given back", func() bool { return g.held() == 0 })
}

// TestBodiesOfOneAccount checks that the bodies of an account, under all its keys, leave room for
// other accounts.
func TestBodiesOfOneAccount(t *testing.T) {
	t.Parallel()
	g := newGateway(t, smallBodies(t), func(c *api.Config) { // one may have one, and two have one each
		c.Limits.Bodies = limit.New("", 3*aBody)
		c.BodyWait, c.BodyPace = 50*time.Millisecond, patience // what is held on a busy machine is not let go
	})
	address, other := g.serve(), g.other()
	large := request{method: "POST", path: videos, key: g.key, body: padded(mebibyte)}
	held, last := g.holding(t, address, g.key)
	quote, child := large, large
	quote.path = "/v1/quote"
	child.key = g.manage(g.key, "POST", "", `{"name":"child","unlimited":true}`).text("key")
	chunked := request{method: "POST", path: videos, key: g.key}.text("1.1", "Transfer-Encoding: chunked") +
		strings.Repeat("1000\r\n"+strings.Repeat(" ", 0x1000)+"\r\n", 200) + "0\r\n\r\n"
	for _, text := range []string{large.text("1.1"), quote.text("1.1"), chunked, child.text("1.1")} {
		s := dial(t, address)
		s.send(text)
		a := s.answer()
		a.wantError(t, 429, "rate_limit_error", "bodies in progress")
		a.wantWait(t, "1")
	}
	for name, r := range map[string]request{
		"another account": {method: "POST", path: videos, key: other, body: padded(mebibyte)},
		"the operator":    {method: "PATCH", path: "/admin/v1/accounts/" + g.account.ID, key: adminKey, body: `{"name":"b","other":"` + strings.Repeat("x", mebibyte-100) + `"}`},
		"small":           {method: "POST", path: videos, key: g.key, body: videoBody},
	} {
		dial(t, address).ask(r).wantStatus(t, 200, name)
	}
	held.send(last)
	held.answer().taskID(t)
	eventually(t, "the room is back", func() bool { return g.held() == 0 })
	dial(t, address).ask(large).taskID(t)
}

// TestBodiesOfTheProcess checks that a request gets 503 while all room is taken.
func TestBodiesOfTheProcess(t *testing.T) {
	t.Parallel()
	g := newGateway(t, bounds(func(p *limit.Process) { p.Bodies = limit.New("", 100) }), func(c *api.Config) { c.BodyWait = 50 * time.Millisecond })
	taken, _ := g.limits.Bodies.TryAcquire("somebody", 100)
	for _, r := range []request{
		{method: "POST", path: videos, key: g.key, body: `{}`}, {method: "POST", path: "/admin/v1/accounts", key: adminKey, body: `{}`},
	} {
		a := g.send(r)
		a.wantError(t, 503, "server_error", "temporarily unavailable")
		a.wantWait(t, "1")
	}
	taken.Release()
	g.send(request{method: "POST", path: videos, key: g.key, body: `{}`}).wantStatus(t, 400)
}

// TestBodyRoomIsReleased checks that the room of a body is free again, however the body ends.
func TestBodyRoomIsReleased(t *testing.T) {
	t.Parallel()
	g := newGateway(t, smallBodies(t), func(c *api.Config) {
		c.BodyPace = 2 * time.Second
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
		s := dial(t, address)
		if want := end(s); want > 0 {
			s.answer().wantStatus(t, want, name)
		}
		eventually(t, name+" gives back", func() bool { return g.held() == 0 })
	}
	if s, last := g.holding(t, address, g.key); true {
		s.send(last)
		s.answer().taskID(t)
	}
}

// heldStore is a store whose submits wait.
type heldStore struct {
	testStore
	entered atomic.Int64
	leave   chan struct{}
}

func (s *heldStore) Submit(ctx context.Context, n mediagate.NewTask) (string, bool, error) {
	s.entered.Add(1)
	<-s.leave
	return s.testStore.Submit(ctx, n)
}

// TestSlowDatabaseHoldsNoBodies checks that requests waiting for the database hold no room for
// bodies.
func TestSlowDatabaseHoldsNoBodies(t *testing.T) {
	t.Parallel()
	held := &heldStore{leave: make(chan struct{})}
	g := newGateway(t, func(c *api.Config) {
		held.testStore, _ = c.Store.(testStore)
		c.Store = held
	})
	s := dial(t, g.serve())
	s.send(request{method: "POST", path: videos, key: g.key, body: padded(mebibyte)}.text("1.1"))
	eventually(t, "it waits for the database", func() bool { return held.entered.Load() == 1 })
	if n := g.held(); n != 0 {
		t.Errorf("%d bytes are still held", n)
	}
	close(held.leave)
	s.answer().taskID(t)
}
