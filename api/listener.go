package api

import (
	"bufio"
	"bytes"
	"container/list"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"net/textproto"
	"slices"
	"strings"
	"sync"

	xrate "golang.org/x/time/rate"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/limit"
)

// httpServer is a listener and the HTTP server that answers on it. There are two where
// the admin API has one of its own.
type httpServer struct {
	*http.Server
	listener net.Listener
}

// throughAdmin is the key under which the context of a request says that it came
// in by the admin API's own listener.
type throughAdmin struct{}

// listeners are what Serve answers on, each with the same bounds. Connections are
// counted at each by itself: a flood of clients keeps no operator out.
func (s *Server) listeners(l net.Listener) []httpServer {
	open := func(l net.Listener, all *connections, base context.Context) httpServer {
		return httpServer{&http.Server{
			Handler: s, ReadHeaderTimeout: headerTimeout, ReadTimeout: requestTimeout, WriteTimeout: answerTimeout,
			IdleTimeout: s.cfg.IdleTimeout, MaxHeaderBytes: maxHeaderBytes,
			DisableGeneralOptionsHandler: true, // for it would not look at the framing
			ConnContext:                  withConnection, ConnState: noteState, ErrorLog: NewServerLog(s.log),
			BaseContext: func(net.Listener) context.Context { return base },
		}, listener{l, all}}
	}
	listeners := []httpServer{open(l, s.connections, context.Background())}
	if s.cfg.AdminListener != nil {
		operators := newConnections(s.cfg, nil, nil)
		operators.refusal = s.refusal
		listeners = append(listeners, open(s.cfg.AdminListener, operators, context.WithValue(context.Background(), throughAdmin{}, true)))
	}
	return listeners
}

// shutDown lets the requests under way finish, at all listeners at once. What has not
// when ctx ends is cut off, after told was called.
func shutDown(ctx context.Context, listeners []httpServer, told func()) error {
	errs := make([]error, len(listeners))
	var stopping sync.WaitGroup
	for i, d := range listeners {
		stopping.Go(func() { errs[i] = d.Shutdown(ctx) })
	}
	stopping.Wait()
	err := errors.Join(errs...)
	if err != nil {
		told()
		for _, d := range listeners {
			_ = d.Close()
		}
	}
	return err
}

// servedHere reports whether the listener by which a request came leads to the route.
// With a listener of its own the admin API is there and nowhere else, beside
// health, which is at both.
func (s *Server) servedHere(r *http.Request, route string) bool {
	if s.cfg.AdminListener == nil || route == healthPath || route == readyPath {
		return true
	}
	return strings.HasPrefix(route, admin+"/") == (r.Context().Value(throughAdmin{}) != nil)
}

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
	refused *sampledLog
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
		refused: newSampledLog(c.Logger, "connections were refused or closed: there are as many as may be"),
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

// framing says how sure it is where a request ends. Two servers on the way of a
// request that see its end at different places take a part of it for another
// request (RFC 9112, 6.1 and 11.2).
type framing uint8

const (
	framingSure     framing = iota
	framingDoubtful         // the connection ends after the answer
	framingTwofold          // refused, and the connection ends
)

var errTwoLengths = &mediagate.Error{
	Kind: mediagate.KindInvalid, Message: "a request must not have both Content-Length and Transfer-Encoding",
}

// framingOf judges a request by its header as it came: net/http takes
// Content-Length out beside Transfer-Encoding, and Transfer-Encoding out of
// HTTP/1.0. Where the header came together with the request before it, it is not
// known, and the connection ends after the answer.
func framingOf(r *http.Request, head []byte) framing {
	if len(r.TransferEncoding) == 0 && r.ProtoAtLeast(1, 1) {
		return framingSure
	}
	lines := textproto.NewReader(bufio.NewReader(bytes.NewReader(head)))
	first, err := lines.ReadLine()
	if err != nil || first != r.Method+" "+r.RequestURI+" "+r.Proto {
		return framingDoubtful
	}
	header, err := lines.ReadMIMEHeader()
	_, long := header["Content-Length"]
	_, coded := header["Transfer-Encoding"]
	switch {
	case long && coded:
		return framingTwofold
	case err != nil, coded && !r.ProtoAtLeast(1, 1):
		return framingDoubtful
	default:
		return framingSure
	}
}

// maxHead is more than net/http reads of a header.
const maxHead = maxHeaderBytes + 8<<10

// Read keeps the header of the next request as it comes.
func (c *connection) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.headMu.Lock()
	defer c.headMu.Unlock()
	if !c.busy && len(c.head) < maxHead {
		c.head = append(c.head, p[:n]...)
	}
	return n, err
}

// takeHead returns what came of the request whose call begins.
func (c *connection) takeHead() (head []byte) {
	c.headMu.Lock()
	defer c.headMu.Unlock()
	head, c.head, c.busy, c.calling = c.head, nil, true, true
	return head
}

// endCall says that what comes from now on is the next request.
func (c *connection) endCall() {
	c.headMu.Lock()
	defer c.headMu.Unlock()
	c.busy = false
}

// answered says that what is written from now on is no part of a call's answer.
func (c *connection) answered() {
	c.headMu.Lock()
	defer c.headMu.Unlock()
	c.calling = false
}

// inEnvelope is the piece of an answer as it goes out: net/http's own answers to
// what never becomes a call are put into our envelope.
func (c *connection) inEnvelope(piece []byte) []byte {
	c.headMu.Lock()
	head, calling := c.head, c.calling
	c.headMu.Unlock()
	if calling || c.all.refusal == nil {
		return piece
	}
	return c.all.refusal(head, piece)
}

// refusal words an answer of net/http anew, in the envelope of the path that the
// header names.
func (s *Server) refusal(head, piece []byte) []byte {
	said, err := http.ReadResponse(bufio.NewReader(bytes.NewReader(piece)), nil)
	if err != nil || said.StatusCode < http.StatusBadRequest {
		return piece
	}
	text, err := io.ReadAll(said.Body)
	_ = said.Body.Close()
	if err != nil {
		return piece
	}
	status := http.StatusText(said.StatusCode)
	e := &mediagate.Error{Message: strings.TrimPrefix(strings.TrimPrefix(string(text), fmt.Sprintf("%d %s", said.StatusCode, status)), ": ")}
	_, path, _ := strings.Cut(string(head), " ")
	c := &call{envelope: envelopeFor(path), requestID: s.newID("req_")}
	r := rendering{status: said.StatusCode, word: wordInvalid, wordB: "invalid_request", codeB: "invalid_request"}
	body, err := json.Marshal(envelopeOf(c, r, e, messageOf(e, r)))
	if err != nil {
		return piece
	}
	s.log.LogAttrs(context.Background(), slog.LevelInfo, "request refused",
		slog.Int("status", said.StatusCode), slog.String("request", c.requestID))
	return fmt.Appendf(nil, "HTTP/1.1 %d %s\r\nConnection: close\r\nContent-Type: application/json\r\nContent-Length: %d\r\nX-Request-Id: %s\r\n\r\n%s\n",
		said.StatusCode, status, len(body)+1, c.requestID, body)
}

// Proxies are those in front of us that are believed: so many, or those in the
// networks. Each appends the address it was called from to X-Forwarded-For.
type Proxies struct {
	Hops     int
	Networks []netip.Prefix // not beside Hops
}

// clientAddress is the address of the caller. Of so many proxies it is the entry
// that many from the right. Proxies that are known by their networks begin with
// the peer: the first from the right that is none of them is the caller. What
// stands further left is hearsay. The zero address is returned when there is no
// readable one.
func clientAddress(r *http.Request, by Proxies) netip.Addr {
	peer := readAddress(r.RemoteAddr)
	if by.Hops <= 0 && !contain(by.Networks, peer) {
		return peer
	}
	var hops []string
	for _, line := range r.Header.Values("X-Forwarded-For") {
		hops = append(hops, strings.Split(line, ",")...)
	}
	if len(hops) == 0 {
		return peer
	}
	if by.Hops > 0 {
		return readAddress(strings.TrimSpace(hops[max(0, len(hops)-by.Hops)]))
	}
	client := peer
	for i := len(hops) - 1; i >= 0 && contain(by.Networks, client); i-- {
		client = readAddress(strings.TrimSpace(hops[i]))
	}
	return client
}

// readAddress reads an address with or without a port.
func readAddress(s string) netip.Addr {
	if ap, err := netip.ParseAddrPort(s); err == nil {
		return ap.Addr().Unmap().WithZone("")
	}
	a, err := netip.ParseAddr(strings.Trim(s, "[]"))
	if err != nil {
		return netip.Addr{}
	}
	return a.Unmap().WithZone("")
}

// ReadNetwork reads an address, or a CIDR without host bits. Its error says what
// the text must be.
func ReadNetwork(s string) (netip.Prefix, error) {
	if a, err := netip.ParseAddr(s); err == nil && a.Zone() == "" {
		a = a.Unmap()
		return netip.PrefixFrom(a, a.BitLen()), nil
	}
	p, err := netip.ParsePrefix(s)
	if err != nil {
		return netip.Prefix{}, errors.New("must be an IP address or a CIDR")
	}
	if p.Masked() != p {
		return netip.Prefix{}, fmt.Errorf("must not have bits set behind its prefix: %s is meant by it", p.Masked())
	}
	if p.Addr().Is4In6() && p.Bits() >= 96 {
		p = netip.PrefixFrom(p.Addr().Unmap(), p.Bits()-96)
	}
	return p, nil
}

// parseAllowed reads one entry of a key's allow list, which leaves something out.
func parseAllowed(param, s string) (netip.Prefix, error) {
	p, err := ReadNetwork(s)
	if err != nil {
		return netip.Prefix{}, mediagate.Invalid(param, "%s %s", param, err)
	}
	if p.Bits() == 0 {
		return netip.Prefix{}, mediagate.Invalid(param, "%s must not allow every address: leave allow_ips out instead", param)
	}
	return p, nil
}

// allowedFrom reports whether the address is in one of the prefixes; an empty
// list allows any.
func allowedFrom(a netip.Addr, prefixes []netip.Prefix) bool {
	return len(prefixes) == 0 || contain(prefixes, a)
}

func contain(prefixes []netip.Prefix, a netip.Addr) bool {
	return slices.ContainsFunc(prefixes, func(p netip.Prefix) bool { return p.Contains(a) })
}

// How much net/http may say of itself: what makes it speak may be others' doing.
const (
	serverLinesPerSecond = 1
	serverLinesAtOnce    = 10
	longestServerLine    = 4 << 10 // a panic brings its stack
)

// NewServerLog takes what an http.Server logs: as warnings, and a bounded number
// of them.
func NewServerLog(to *slog.Logger) *log.Logger {
	return log.New(&serverLog{to: to, bound: xrate.NewLimiter(serverLinesPerSecond, serverLinesAtOnce)}, "", 0)
}

type serverLog struct {
	to    *slog.Logger
	bound *xrate.Limiter

	mu      sync.Mutex
	leftOut int // since the last line
}

// Write is given one line at a time.
func (l *serverLog) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.bound.Allow() {
		l.leftOut++
		return len(line), nil
	}
	text := strings.ToValidUTF8(strings.TrimSpace(string(line[:min(len(line), longestServerLine)])), "")
	attrs := []slog.Attr{slog.String("says", text)}
	if l.leftOut > 0 {
		attrs = append(attrs, slog.Int("left_out", l.leftOut))
		l.leftOut = 0
	}
	l.to.LogAttrs(context.Background(), slog.LevelWarn, "HTTP server", attrs...)
	return len(line), nil
}
