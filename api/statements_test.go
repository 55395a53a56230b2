package api_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/api"
)

// wire is between a store and its database. It counts the statements. While hold is locked it passes
// none on, like a stopped server.
type wire struct {
	n    atomic.Int64
	hold sync.RWMutex
}

// through opens the database of a store once more, over the wire.
func (w *wire) through(t *testing.T, cfg *api.Config) *databaseStore {
	t.Helper()
	store, ok := cfg.Store.(*databaseStore)
	if !ok {
		t.Fatalf("%T has no address", cfg.Store)
	}
	return openStore(t, w.before(t, store.address), cfg.Now)
}

// answered is a store whose statements after an answer are not counted, since the process may start
// the run itself.
type answered struct{ *databaseStore }

func (answered) MayStart(context.Context, string) (bool, error) { return true, nil }

// before returns an address that leads to the database at another address.
func (w *wire) before(t *testing.T, address string) string {
	t.Helper()
	u, err := url.Parse(address)
	must(t, err)
	behind := u.Host
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	var open sync.WaitGroup
	t.Cleanup(open.Wait)
	t.Cleanup(func() { _ = l.Close() })
	open.Go(func() {
		for {
			front, err := l.Accept()
			if err != nil {
				return
			}
			open.Go(func() { w.pass(front, behind) })
		}
	})
	u.Host = l.Addr().String()
	return u.String()
}

// pass copies a connection until either side ends it.
func (w *wire) pass(front net.Conn, behind string) {
	defer front.Close()
	back, err := net.Dial("tcp", behind)
	if err != nil {
		return
	}
	defer back.Close()
	go func() {
		_, _ = io.Copy(front, back)
		_ = front.Close()
	}()
	w.count(back, front)
}

// count copies a client's messages and counts those that run a statement. The first message has no
// type.
func (w *wire) count(to io.Writer, from io.Reader) {
	head := make([]byte, 5)
	for first := true; ; first = false {
		head := head
		if first {
			head = head[1:]
		}
		if _, err := io.ReadFull(from, head); err != nil {
			return
		}
		if !first && (head[0] == 'E' || head[0] == 'Q') {
			w.n.Add(1)
		}
		length := int64(binary.BigEndian.Uint32(head[len(head)-4:])) - 4
		w.hold.RLock()
		_, err := io.CopyN(to, io.MultiReader(bytes.NewReader(head), from), int64(len(head))+length)
		w.hold.RUnlock()
		if err != nil {
			return
		}
	}
}

// TestStatementsOfASubmit checks that a submit with all limits takes four statements, each in a
// transaction of its own: for the key with its account, the rates, the idempotency record, and
// the rows. BEGIN and COMMIT would count. A prepared statement takes one round trip.
func TestStatementsOfASubmit(t *testing.T) {
	t.Parallel()
	statements := &wire{}
	g := newGateway(t, func(c *api.Config) { c.Store = answered{statements.through(t, c)} })
	g.rateAccount(new(1000))
	most := 100 * mediagate.MicrosPerUnit
	_, key := g.newKey(mediagate.Key{
		Quota: most, Rate: new(1000), InFlight: new(100), Caps: mediagate.Caps{Day: &most, Week: &most, Month: &most},
	})
	submit := func(name string) int64 {
		g.clock.advance(time.Second) // so that the key is read again
		before := statements.n.Load()
		header := http.Header{"Idempotency-Key": {name}}
		g.send(request{method: http.MethodPost, path: videos, key: key, body: videoBody, header: header}).taskID(t)
		return statements.n.Load() - before
	}
	submit("first") // makes the rows of the rates
	fewest := int64(1 << 30)
	for i := range 3 { // what runs beside a call can only add statements
		fewest = min(fewest, submit(fmt.Sprint(i)))
	}
	if fewest != 4 {
		t.Errorf("%d statements, want 4", fewest)
	}
}
