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

// Connections bounds the open connections of a listener.
//
// Active connections, those with a call in progress, have permits of Limits.Connections, with the
// client's address as tenant. A few more connections, up to Limits.Overflow, are told that there
// are too many. They may still ask for the health of the process: a load balancer must not take a
// busy process for a dead one. If there is one connection too many in all, an idle one is closed:
// the one that has been idle longest among those of the same address, or else among all.
type Connections struct {
	active      *limit.Limit
	overflow    *limit.Limit
	max         int64 // 0: no bound
	maxOverflow int64 // how many more may be open if none is idle
	proxies     Proxies
	refused     *SampledLog

	mu     sync.Mutex
	open   int64
	idle   list.List             // of *Connection, the longest idle first
	idleOf map[string]*list.List // the same by tenant
}

// Config configures Connections.
type Config struct {
	Active      *limit.Limit // bounds active connections; nil: no bound
	Overflow    *limit.Limit // bounds further active connections, which get an answer that there are too many
	Max         int64        // open connections in all; 0: no bound
	MaxOverflow int64        // how many more may be open if none is idle
	Proxies     Proxies
	Logger      *slog.Logger
}

// New makes bounds for the connections of one listener or several.
func New(c Config) *Connections {
	return &Connections{
		active:      c.Active,
		overflow:    c.Overflow,
		max:         c.Max,
		maxOverflow: c.MaxOverflow,
		proxies:     c.Proxies,
		refused:     NewSampledLog(c.Logger, "connections were refused or closed: there are as many as may be"),
		idleOf:      map[string]*list.List{},
	}
}

// Counts returns how many connections are open, and how many of them are idle.
func (s *Connections) Counts() (open, idle int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return int(s.open), s.idle.Len()
}

// Listen wraps a listener so that its connections stay within the bounds.
func (s *Connections) Listen(l net.Listener) net.Listener { return listener{l, s} }

// Connection is a client's connection.
type Connection struct {
	net.Conn
	all    *Connections
	tenant string

	// The mutex of all guards the fields below.
	closed   bool
	inIdle   *list.Element // the connection's place in all.idle; nil while it is active
	inTenant *list.Element
	permit   *limit.Permit // to be active
}

// CloseWrite lets net/http finish an answer that comes before the end of the request.
func (c *Connection) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return errors.ErrUnsupported
}

// Close may be called twice, by Connections and by net/http.
func (c *Connection) Close() error {
	c.all.mu.Lock()
	c.all.forget(c)
	c.all.mu.Unlock()
	return c.Conn.Close()
}

// listener wraps a listener within the bounds.
type listener struct {
	net.Listener
	all *Connections
}

// Accept returns the next connection that is admitted.
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

// admit returns the connection as a Connection, or closes it and returns nil.
func (s *Connections) admit(conn net.Conn) *Connection {
	c := &Connection{Conn: conn, all: s, tenant: s.tenantOf(conn.RemoteAddr().String())}
	evicted, admitted := s.register(c)
	if evicted != nil {
		s.Refuse(conn)
		_ = evicted.Conn.Close()
	}
	if !admitted {
		s.Refuse(conn)
		_ = conn.Close()
		return nil
	}
	return c
}

// Refuse logs that a connection was refused.
func (s *Connections) Refuse(conn net.Conn) {
	s.refused.Count(slog.String("client", ReadAddress(conn.RemoteAddr().String()).String()))
}

// register counts a connection. If there are too many, it evicts an idle one, which the caller
// must close.
func (s *Connections) register(c *Connection) (evicted *Connection, admitted bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.max > 0 && s.open >= s.max {
		from := s.idleOf[c.tenant]
		if from == nil {
			from = &s.idle
		}
		if first := from.Front(); first != nil {
			evicted, _ = first.Value.(*Connection)
			s.forget(evicted)
		}
		if s.open >= s.max+s.maxOverflow {
			return nil, false
		}
	}
	s.open++
	s.addIdle(c)
	return evicted, true
}

// tenantOf returns the tenant of a connection from the peer: the network of its address. Proxies
// and the machine itself connect on behalf of many clients, so each of their connections is a
// tenant of its own.
func (s *Connections) tenantOf(peer string) string {
	a := ReadAddress(peer)
	if !a.IsValid() || a.IsLoopback() || s.proxies.Hops > 0 || Contains(s.proxies.Networks, a) {
		return peer
	}
	return NetworkOf(a).String()
}

// NetworkOf returns the network that counts as one client: a single address, or for IPv6 a /64,
// since a client usually has all of it.
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
	s.removeIdle(c)
	c.permit.Release()
	s.open--
}

// addIdle puts a connection last among the idle ones.
func (s *Connections) addIdle(c *Connection) {
	c.permit.Release()
	c.permit = nil
	of := s.idleOf[c.tenant]
	if of == nil {
		of = list.New()
		s.idleOf[c.tenant] = of
	}
	c.inIdle, c.inTenant = s.idle.PushBack(c), of.PushBack(c)
}

func (s *Connections) removeIdle(c *Connection) {
	if c.inIdle == nil {
		return
	}
	of := s.idleOf[c.tenant]
	s.idle.Remove(c.inIdle)
	of.Remove(c.inTenant)
	c.inIdle, c.inTenant = nil, nil
	if of.Len() == 0 {
		delete(s.idleOf, c.tenant)
	}
}

// Begin marks the connection as active when a call comes. It reports whether the connection is
// still open for an answer. overLimit is true if its address has too many active connections, which
// the caller should answer.
func (c *Connection) Begin() (isOpen, overLimit bool) {
	c.all.mu.Lock()
	defer c.all.mu.Unlock()
	if c.closed {
		return false, false
	}
	c.all.removeIdle(c)
	if c.permit != nil { // it is active already: several calls came at once
		return true, false
	}
	var ok bool
	if c.permit, ok = c.all.active.TryAcquire(c.tenant, 1); ok {
		return true, false
	}
	c.permit, ok = c.all.overflow.TryAcquire(c.RemoteAddr().String(), 1)
	return ok, true
}

// NoteState marks a connection as idle once its answer was sent. It is an http.Server's
// ConnState.
func NoteState(conn net.Conn, state http.ConnState) {
	c, ok := conn.(*Connection)
	if !ok || state != http.StateIdle {
		return
	}
	c.all.mu.Lock()
	defer c.all.mu.Unlock()
	if !c.closed && c.inIdle == nil {
		c.all.addIdle(c)
	}
}

// connectionKey is the context key of the *Connection.
type connectionKey struct{}

// WithConnection adds the connection to the context of its calls. It is an http.Server's
// ConnContext.
func WithConnection(ctx context.Context, conn net.Conn) context.Context {
	if c, ok := conn.(*Connection); ok {
		return context.WithValue(ctx, connectionKey{}, c)
	}
	return ctx
}

// Of returns the connection that a request came by, or nil in a test without one.
func Of(r *http.Request) *Connection {
	c, _ := r.Context().Value(connectionKey{}).(*Connection)
	return c
}

// Refuse logs that the connection was refused.
func (c *Connection) Refuse() { c.all.Refuse(c) }
