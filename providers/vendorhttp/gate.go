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

// errLate says that the deadline for the first byte of a submission has passed.
var errLate = fmt.Errorf("%w: the time granted for the first byte has passed", mediagate.ErrHeldUp)

// errShut says that the call ended before anything was sent.
var errShut = errors.New("the call was given up before it was sent")

// gate lets the first byte of a submission pass only before a deadline. It sits below the
// transport, at the connection. The body would be the wrong place, since the transport may flush the
// head of a request before it reads the body. So if the gate never opened, not one byte of the
// request was written.
type gate struct {
	before time.Time // the deadline; zero: none
	now    func() time.Time

	mu      sync.Mutex
	opened  bool
	refused error
}

// isLate reports whether the deadline has passed.
func (g *gate) isLate() bool { return !g.before.IsZero() && !g.now().Before(g.before) }

// pass checks the deadline at its first call. Later calls belong to the same request and get the
// same result.
func (g *gate) pass() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.refused == nil && !g.opened {
		if g.isLate() {
			g.refused = errLate
		} else {
			g.opened = true
		}
	}
	return g.refused
}

// shut keeps a gate closed for good if it has not opened yet. It reports whether the gate had
// opened, and if not, why not. A transport may return an error and still hold the request: after
// shut it can no longer begin to send it.
func (g *gate) shut() (opened bool, refused error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.opened && g.refused == nil {
		g.refused = errShut
	}
	return g.opened, g.refused
}

// gatedConn is a connection whose writes pass the gate. For https it wraps the TLS connection, so
// that the handshake does not count as a part of the request.
type gatedConn struct {
	net.Conn
	gate *gate
}

// Write passes the gate before it writes.
func (c gatedConn) Write(p []byte) (int, error) {
	if err := c.gate.pass(); err != nil {
		return 0, err
	}
	return c.Conn.Write(p)
}

// gatedDialer makes connections with a gate.
type gatedDialer struct {
	gate *gate
	dial func(ctx context.Context, network, address string) (net.Conn, error)
	tls  *tls.Config
	time time.Duration // of the TLS handshake
}

// Plain serves as a transport's DialContext.
func (d gatedDialer) Plain(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := d.dial(ctx, network, address)
	if err != nil {
		return nil, err
	}
	return gatedConn{conn, d.gate}, nil
}

// TLS serves as a transport's DialTLSContext.
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

// handshake sets up TLS with the host over the connection. If that fails, it closes the connection.
func handshake(ctx context.Context, conn net.Conn, config *tls.Config, host string) (net.Conn, error) {
	config = config.Clone()
	config.ServerName = host
	secure := tls.Client(conn, config)
	if err := secure.HandshakeContext(ctx); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return secure, nil
}
