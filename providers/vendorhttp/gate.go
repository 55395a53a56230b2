package vendorhttp

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/mediagate/mediagate"
)

// errLate says that the time in which a submission may start has passed.
var errLate = fmt.Errorf("%w: the time granted for the first byte has passed", mediagate.ErrHeldUp)

// errShut says that the call was given up before anything was sent.
var errShut = errors.New("the call was given up before it was sent")

// gate stands between one submission and its connection: the first byte of
// the request passes only before a moment. It sits below the transport, not
// in the request's body, because the transport flushes the head of a request
// before it asks for a body that it does not know to be in memory. So a gate
// that never opened proves that not one byte of the request was written.
type gate struct {
	before time.Time // zero: no bound
	now    func() time.Time

	mu      sync.Mutex
	opened  bool
	refused error
}

// late reports whether the moment has passed.
func (g *gate) late() bool { return !g.before.IsZero() && !g.now().Before(g.before) }

// pass judges the time at its first call; later ones belong to a request that
// is already on its way.
func (g *gate) pass() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.refused == nil && !g.opened {
		if g.late() {
			g.refused = errLate
		} else {
			g.opened = true
		}
	}
	return g.refused
}

// shut keeps a closed gate closed for ever. It reports whether it had opened,
// and why not. A transport that still holds the request after it returned an
// error can then no longer send it.
func (g *gate) shut() (opened bool, refused error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.opened && g.refused == nil {
		g.refused = errShut
	}
	return g.opened, g.refused
}

// gatedConn is a connection that carries a request: for https it wraps the
// TLS connection, so that a handshake is no part of the request.
type gatedConn struct {
	net.Conn
	gate *gate
}

// Write is where the first byte of a request would leave.
func (c gatedConn) Write(p []byte) (int, error) {
	if err := c.gate.pass(); err != nil {
		return 0, err
	}
	return c.Conn.Write(p)
}

// gatedDialer makes gated connections, each phase within its time.
type gatedDialer struct {
	gate *gate
	dial func(ctx context.Context, network, address string) (net.Conn, error)
	tls  *tls.Config
	time time.Duration // of the TLS handshake
}

// Plain is for a transport's DialContext.
func (d gatedDialer) Plain(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := d.dial(ctx, network, address)
	if err != nil {
		return nil, err
	}
	return gatedConn{conn, d.gate}, nil
}

// TLS is for a transport's DialTLSContext.
func (d gatedDialer) TLS(ctx context.Context, network, address string) (net.Conn, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	conn, err := d.dial(ctx, network, address)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, d.time)
	defer cancel()
	secure, err := handshake(ctx, conn, d.tls, host)
	if err != nil {
		return nil, err
	}
	return gatedConn{secure, d.gate}, nil
}

// handshake makes a TLS connection with the host of a connection, which it closes where
// that fails.
func handshake(ctx context.Context, conn net.Conn, config *tls.Config, host string) (net.Conn, error) {
	config = config.Clone()
	config.ServerName = host
	secure := tls.Client(conn, config)
	if err := secure.HandshakeContext(ctx); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return secure, nil
}
