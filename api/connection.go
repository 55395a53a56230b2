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
	"time"

	"github.com/mediagate/mediagate"
)

const (
	// defaultConnections is more than twice what the long polls and streams of an
	// account may take.
	defaultConnections = 10_000
	// spareConnections are those beyond the cap that are told so, and may ask how
	// we are: whoever decides on our life must not take us for dead.
	spareConnections = 64
	// unreadFor is how long a piece of an answer may wait to be sent before its
	// connection is taken for one whose client does not read.
	unreadFor = 10 * time.Second
)

// connections bounds how many there are, in all and of an address. One too many
// makes a connection that asks nothing at the moment go, the longest silent
// first, and without such a one whose client reads nothing of its answer. Only
// where all are at work is the new one refused.
type connections struct {
	most    int
	each    int // of an address; 0: no bound
	unread  time.Duration
	proxies Proxies
	refused *tally
	refusal func(head, said []byte) []byte // what net/http says by itself, worded anew

	mu   sync.Mutex
	open int
	crowd
	of map[netip.Prefix]*neighbour
}

// crowd are connections, of all or of an address, the longest waiting first.
type crowd struct {
	silent  list.List // of *connection
	sending list.List // of *connection, that have a piece of an answer on its way
}

// neighbour is an address, as far as it has connections.
type neighbour struct {
	open int
	crowd
}

func newConnections(c Config) *connections {
	return &connections{
		most: c.Connections, each: c.ConnectionsPerAddress, unread: unreadFor, proxies: c.TrustedProxies,
		refused: newTally(c.Logger, "connections were refused or closed: there are as many as may be"),
		of:      map[netip.Prefix]*neighbour{},
	}
}

// connection is one of a client's.
type connection struct {
	net.Conn
	all     *connections
	network netip.Prefix // of its address
	of      *neighbour   // nil: its address has no bound

	// Under the lock of all.
	beyond bool // the cap, when it came
	closed bool
	inAll  *list.Element // nil while it is at work
	inOf   *list.Element
	sends  [2]*list.Element // in all and of its address; nil while it sends nothing
	since  time.Time        // it sends

	headMu  sync.Mutex
	head    []byte // of the next request, as it comes
	busy    bool   // with a call: what comes is no header
	calling bool   // what is written is a call's answer
}

// Write tells for how long a piece of an answer waits to be sent.
func (c *connection) Write(piece []byte) (int, error) {
	out := c.inEnvelope(piece)
	c.all.mu.Lock()
	if !c.closed {
		c.all.send(c)
	}
	c.all.mu.Unlock()
	n, err := c.Conn.Write(out)
	c.all.mu.Lock()
	c.all.sent(c)
	c.all.mu.Unlock()
	if err == nil {
		n = len(piece) // of which out may be another wording
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
	c := &connection{Conn: conn, all: s}
	address := readAddress(conn.RemoteAddr().String())
	if s.bounded(address) {
		c.network = networkOf(address)
	}
	gone, admitted := s.enter(c)
	if gone != nil {
		s.refused.count(slog.String("client", address.String()))
		_ = gone.Conn.Close()
	}
	if !admitted {
		s.refused.count(slog.String("client", address.String()))
		_ = conn.Close()
		return nil
	}
	return c
}

// enter takes a connection into the books, at the expense of another one if need
// be, which is to be closed.
func (s *connections) enter(c *connection) (gone *connection, admitted bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if of := s.of[c.network]; c.network.IsValid() && of != nil && of.open >= s.each {
		if gone = s.drop(&of.crowd); gone == nil {
			return nil, false
		}
	}
	if gone == nil && s.open >= s.most {
		gone = s.drop(&s.crowd)
	}
	if s.open >= s.most+spareConnections {
		return nil, false
	}
	c.beyond = s.open >= s.most
	s.open++
	if c.network.IsValid() {
		if c.of = s.of[c.network]; c.of == nil {
			c.of = &neighbour{}
			s.of[c.network] = c.of
		}
		c.of.open++
	}
	s.rest(c)
	return gone, true
}

// bounded reports whether an address has a bound. Proxies have none, as they
// speak for many, and neither has the machine itself.
func (s *connections) bounded(address netip.Addr) bool {
	return s.each > 0 && address.IsValid() && !address.IsLoopback() && s.proxies.Hops == 0 && !contain(s.proxies.Networks, address)
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

// drop takes the longest silent connection of a crowd out of the books, or the
// one whose client has not read for longest.
func (s *connections) drop(from *crowd) *connection {
	first := from.silent.Front()
	if first == nil {
		first = from.sending.Front()
	}
	if first == nil {
		return nil
	}
	c, _ := first.Value.(*connection)
	if c.inAll == nil && time.Since(c.since) < s.unread {
		return nil
	}
	s.forget(c)
	return c
}

func (s *connections) forget(c *connection) {
	if c.closed {
		return
	}
	c.closed = true
	s.work(c)
	s.sent(c)
	s.open--
	if c.of == nil {
		return
	}
	if c.of.open--; c.of.open == 0 {
		delete(s.of, c.network)
	}
}

// rest puts a connection last among the silent ones.
func (s *connections) rest(c *connection) {
	c.inAll = s.silent.PushBack(c)
	if c.of != nil {
		c.inOf = c.of.silent.PushBack(c)
	}
}

// work takes it out of them.
func (s *connections) work(c *connection) {
	if c.inAll == nil {
		return
	}
	s.silent.Remove(c.inAll)
	c.inAll = nil
	if c.inOf != nil {
		c.of.silent.Remove(c.inOf)
		c.inOf = nil
	}
}

// send puts a connection last among those that send.
func (s *connections) send(c *connection) {
	s.sent(c)
	c.since = time.Now()
	c.sends[0] = s.sending.PushBack(c)
	if c.of != nil {
		c.sends[1] = c.of.sending.PushBack(c)
	}
}

// sent takes it out of them.
func (s *connections) sent(c *connection) {
	if c.sends[0] == nil {
		return
	}
	s.sending.Remove(c.sends[0])
	if c.sends[1] != nil {
		c.of.sending.Remove(c.sends[1])
	}
	c.sends = [2]*list.Element{}
}

// begin says that a call has come on the connection. It reports whether the
// connection was still there, and whether it is one beyond the cap.
func (c *connection) begin() (there, beyond bool) {
	c.all.mu.Lock()
	defer c.all.mu.Unlock()
	if c.closed {
		return false, false
	}
	c.all.work(c)
	c.beyond = c.beyond && c.all.open > c.all.most
	return true, c.beyond
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
	if !there {
		panic(http.ErrAbortHandler)
	}
	return beyond, end
}

var errConnections = &mediagate.Error{Kind: mediagate.KindUnavailable, Message: "too many connections"}
