package api

import (
	"container/list"
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"sync"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/limit"
)

// connections bounds how many there are. Those at work are within Limits.Connections,
// by the client's address; a few more, Limits.Spare, are told so, and may ask how we
// are: whoever decides on our life must not take us for dead. One too many in all makes
// one go that asks nothing at the moment, the longest silent of its address, or else of
// all.
type connections struct {
	working *limit.Limit
	spare   *limit.Limit
	most    int64 // 0: no bound
	beyond  int64 // how many more there may be where nobody can go
	proxies Proxies
	refused *tally
	refusal func(head, said []byte) []byte // what net/http says by itself, worded anew

	mu     sync.Mutex
	open   int64
	silent list.List             // of *connection, the longest silent first
	of     map[string]*list.List // the same of each tenant
}

func newConnections(c Config, working, spare *limit.Limit) *connections {
	return &connections{
		working: working, spare: spare, proxies: c.TrustedProxies,
		most: c.Limits.Connections.Figures().Capacity, beyond: c.Limits.Spare.Figures().Capacity,
		refused: newTally(c.Logger, "connections were refused or closed: there are as many as may be"),
		of:      map[string]*list.List{},
	}
}

// connection is one of a client's.
type connection struct {
	net.Conn
	all    *connections
	tenant string

	// Under the lock of all.
	closed bool
	inAll  *list.Element // nil while it is at work
	inOf   *list.Element
	lease  *limit.Permit // of its place at work

	headMu  sync.Mutex
	head    []byte // of the next request, as it comes
	busy    bool   // with a call: what comes is no header
	calling bool   // what is written is a call's answer
}

// Write sends a piece of an answer.
func (c *connection) Write(piece []byte) (int, error) {
	n, err := c.Conn.Write(c.inEnvelope(piece))
	if err == nil {
		n = len(piece) // of which another wording may have gone out
	}
	return n, err
}

// CloseWrite lets net/http end an answer that comes before the request's end.
func (c *connection) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return errors.ErrUnsupported
}

// Close may be called twice, by us and by net/http.
func (c *connection) Close() error {
	c.all.mu.Lock()
	c.all.forget(c)
	c.all.mu.Unlock()
	return c.Conn.Close()
}

// listener hands out connections within the bounds.
type listener struct {
	net.Listener
	all *connections
}

func (l listener) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if c := l.all.admit(conn); c != nil {
			return c, nil
		}
	}
}

// admit returns the connection as one of ours, or closes it and returns nil.
func (s *connections) admit(conn net.Conn) *connection {
	c := &connection{Conn: conn, all: s, tenant: s.tenantOf(conn.RemoteAddr().String())}
	gone, admitted := s.enter(c)
	if gone != nil {
		s.refuse(conn)
		_ = gone.Conn.Close()
	}
	if !admitted {
		s.refuse(conn)
		_ = conn.Close()
		return nil
	}
	return c
}

func (s *connections) refuse(conn net.Conn) {
	s.refused.count(slog.String("client", readAddress(conn.RemoteAddr().String()).String()))
}

// enter takes a connection into the books, at the expense of a silent one if need be,
// which is to be closed.
func (s *connections) enter(c *connection) (gone *connection, admitted bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.most > 0 && s.open >= s.most {
		from := s.of[c.tenant]
		if from == nil {
			from = &s.silent
		}
		if first := from.Front(); first != nil {
			gone, _ = first.Value.(*connection)
			s.forget(gone)
		}
		if s.open >= s.most+s.beyond {
			return nil, false
		}
	}
	s.open++
	s.rest(c)
	return gone, true
}

// tenantOf is whose share a connection from there takes: its address's. Proxies and the
// machine itself speak for many: each of their connections counts by itself.
func (s *connections) tenantOf(peer string) string {
	a := readAddress(peer)
	if !a.IsValid() || a.IsLoopback() || s.proxies.Hops > 0 || contain(s.proxies.Networks, a) {
		return peer
	}
	return networkOf(a).String()
}

// networkOf is what counts as one client: an address, of IPv6 a /64, of which a
// client has all.
func networkOf(a netip.Addr) netip.Prefix {
	bits := a.BitLen()
	if a.Is6() {
		bits = 64
	}
	p, _ := a.Prefix(bits)
	return p
}

func (s *connections) forget(c *connection) {
	if c.closed {
		return
	}
	c.closed = true
	s.work(c)
	c.lease.Release()
	s.open--
}

// rest puts a connection last among the silent ones.
func (s *connections) rest(c *connection) {
	c.lease.Release()
	c.lease = nil
	of := s.of[c.tenant]
	if of == nil {
		of = list.New()
		s.of[c.tenant] = of
	}
	c.inAll, c.inOf = s.silent.PushBack(c), of.PushBack(c)
}

// work takes it out of them.
func (s *connections) work(c *connection) {
	if c.inAll == nil {
		return
	}
	of := s.of[c.tenant]
	s.silent.Remove(c.inAll)
	of.Remove(c.inOf)
	c.inAll, c.inOf = nil, nil
	if of.Len() == 0 {
		delete(s.of, c.tenant)
	}
}

// begin says that a call has come on the connection. It reports whether the
// connection is to answer it, and whether its address has all that it may have at
// work: then it is told so.
func (c *connection) begin() (there, beyond bool) {
	c.all.mu.Lock()
	defer c.all.mu.Unlock()
	if c.closed {
		return false, false
	}
	c.all.work(c)
	if c.lease != nil { // it was at work before: calls that came at once
		return true, false
	}
	var within bool
	if c.lease, within = c.all.working.TryAcquire(c.tenant, 1); within {
		return true, false
	}
	c.lease, within = c.all.spare.TryAcquire(c.RemoteAddr().String(), 1)
	return within, true
}

// noteState hears of answers that are sent to their last byte.
func noteState(conn net.Conn, state http.ConnState) {
	c, ok := conn.(*connection)
	if !ok || state != http.StateIdle {
		return
	}
	c.answered()
	c.all.mu.Lock()
	defer c.all.mu.Unlock()
	if !c.closed && c.inAll == nil {
		c.all.rest(c)
	}
}

// connectionKey holds the *connection in the contexts of its calls.
type connectionKey struct{}

// withConnection is the context of a connection's calls.
func withConnection(ctx context.Context, conn net.Conn) context.Context {
	if c, ok := conn.(*connection); ok {
		return context.WithValue(ctx, connectionKey{}, c)
	}
	return ctx
}

// begin lets a call begin, unless its connection was closed for another: nothing
// is begun then of which nobody would hear. It reports whether the connection is
// beyond the cap, and how sure the end of the request is; without a connection, as
// in a test, all is well.
func (s *Server) begin(r *http.Request) (beyond bool, end framing) {
	c, ok := r.Context().Value(connectionKey{}).(*connection)
	if !ok {
		return false, framingSure
	}
	end = framingOf(r, c.takeHead())
	there, beyond := c.begin()
	if beyond {
		c.all.refuse(c)
	}
	if !there {
		panic(http.ErrAbortHandler)
	}
	return beyond, end
}

var errConnections = &mediagate.Error{Kind: mediagate.KindUnavailable, Message: "too many connections"}
