package listener

import (
	"container/list"
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"sync"

	"github.com/mediagate/mediagate/internal/limit"
)

// Connections bounds how many there are. Those at work are within Limits.Connections,
// by the client's address; a few more, Limits.Spare, are told so, and may ask how we
// are: whoever decides on our life must not take us for dead. One too many in all makes
// one go that asks nothing at the moment, the longest silent of its address, or else of
// all.
type Connections struct {
	working *limit.Limit
	spare   *limit.Limit
	most    int64 // 0: no bound
	beyond  int64 // how many more there may be where nobody can go
	proxies Proxies
	refused *SampledLog

	mu     sync.Mutex
	open   int64
	silent list.List             // of *Connection, the longest silent first
	of     map[string]*list.List // the same of each tenant
}

// Config is what Connections are made of.
type Config struct {
	Working *limit.Limit // those at work; nil: no bound
	Spare   *limit.Limit // those beyond it, which are told so
	Most    int64        // in all; 0: no bound
	Beyond  int64        // how many more there may be where nobody can go
	Proxies Proxies
	Logger  *slog.Logger
}

// New makes them, of which there are none yet.
func New(c Config) *Connections {
	return &Connections{
		working: c.Working, spare: c.Spare, proxies: c.Proxies, most: c.Most, beyond: c.Beyond,
		refused: NewSampledLog(c.Logger, "connections were refused or closed: there are as many as may be"),
		of:      map[string]*list.List{},
	}
}

// Counts are how many there are, and how many of them are silent.
func (s *Connections) Counts() (open, silent int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return int(s.open), s.silent.Len()
}

// Listen hands out the connections of a listener within the bounds.
func (s *Connections) Listen(l net.Listener) net.Listener { return listener{l, s} }

// Connection is one of a client's.
type Connection struct {
	net.Conn
	all    *Connections
	tenant string

	// Under the lock of all.
	closed bool
	inAll  *list.Element // nil while it is at work
	inOf   *list.Element
	permit *limit.Permit // to be at work
}

// CloseWrite lets net/http end an answer that comes before the request's end.
func (c *Connection) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return errors.ErrUnsupported
}

// Close may be called twice, by us and by net/http.
func (c *Connection) Close() error {
	c.all.mu.Lock()
	c.all.forget(c)
	c.all.mu.Unlock()
	return c.Conn.Close()
}

// listener hands out connections within the bounds.
type listener struct {
	net.Listener
	all *Connections
}

// Accept returns the next connection for which there is room.
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
func (s *Connections) admit(conn net.Conn) *Connection {
	c := &Connection{Conn: conn, all: s, tenant: s.tenantOf(conn.RemoteAddr().String())}
	gone, admitted := s.enter(c)
	if gone != nil {
		s.Refuse(conn)
		_ = gone.Conn.Close()
	}
	if !admitted {
		s.Refuse(conn)
		_ = conn.Close()
		return nil
	}
	return c
}

// Refuse notes that there was no room for a connection.
func (s *Connections) Refuse(conn net.Conn) {
	s.refused.Count(slog.String("client", ReadAddress(conn.RemoteAddr().String()).String()))
}

// enter takes a connection into the books, at the expense of a silent one if need be,
// which is to be closed.
func (s *Connections) enter(c *Connection) (gone *Connection, admitted bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.most > 0 && s.open >= s.most {
		from := s.of[c.tenant]
		if from == nil {
			from = &s.silent
		}
		if first := from.Front(); first != nil {
			gone, _ = first.Value.(*Connection)
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
func (s *Connections) tenantOf(peer string) string {
	a := ReadAddress(peer)
	if !a.IsValid() || a.IsLoopback() || s.proxies.Hops > 0 || Contains(s.proxies.Networks, a) {
		return peer
	}
	return NetworkOf(a).String()
}

// NetworkOf is what counts as one client: an address, of IPv6 a /64, of which a
// client has all.
func NetworkOf(a netip.Addr) netip.Prefix {
	bits := a.BitLen()
	if a.Is6() {
		bits = 64
	}
	p, _ := a.Prefix(bits)
	return p
}

func (s *Connections) forget(c *Connection) {
	if c.closed {
		return
	}
	c.closed = true
	s.work(c)
	c.permit.Release()
	s.open--
}

// rest puts a connection last among the silent ones.
func (s *Connections) rest(c *Connection) {
	c.permit.Release()
	c.permit = nil
	of := s.of[c.tenant]
	if of == nil {
		of = list.New()
		s.of[c.tenant] = of
	}
	c.inAll, c.inOf = s.silent.PushBack(c), of.PushBack(c)
}

// work takes it out of them.
func (s *Connections) work(c *Connection) {
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

// Begin says that a call has come on the connection. It reports whether the
// connection is to answer it, and whether its address has all that it may have at
// work: then it is told so.
func (c *Connection) Begin() (there, beyond bool) {
	c.all.mu.Lock()
	defer c.all.mu.Unlock()
	if c.closed {
		return false, false
	}
	c.all.work(c)
	if c.permit != nil { // it was at work before: calls that came at once
		return true, false
	}
	var within bool
	if c.permit, within = c.all.working.TryAcquire(c.tenant, 1); within {
		return true, false
	}
	c.permit, within = c.all.spare.TryAcquire(c.RemoteAddr().String(), 1)
	return within, true
}

// NoteState hears of answers that are sent to their last byte.
func NoteState(conn net.Conn, state http.ConnState) {
	c, ok := conn.(*Connection)
	if !ok || state != http.StateIdle {
		return
	}
	c.all.mu.Lock()
	defer c.all.mu.Unlock()
	if !c.closed && c.inAll == nil {
		c.all.rest(c)
	}
}

// connectionKey holds the *Connection in the contexts of its calls.
type connectionKey struct{}

// WithConnection is the context of a connection's calls.
func WithConnection(ctx context.Context, conn net.Conn) context.Context {
	if c, ok := conn.(*Connection); ok {
		return context.WithValue(ctx, connectionKey{}, c)
	}
	return ctx
}

// Of is the connection by which a request came; nil in a test without one.
func Of(r *http.Request) *Connection {
	c, _ := r.Context().Value(connectionKey{}).(*Connection)
	return c
}

// Refuse notes that the connection is one too many.
func (c *Connection) Refuse() { c.all.Refuse(c) }
