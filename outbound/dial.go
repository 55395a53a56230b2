package outbound

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/mediagate/mediagate"
)

// guard makes the connections of one client.
type guard struct {
	rules   Rules
	anyPort bool
	trusted []string // canonical hosts with ports that are not judged
}

// minDialShare is the least that one of several addresses gets of the time
// that is left, so that a dead one does not use up all of it.
const minDialShare = 2 * time.Second

// dial resolves the host, refuses it if any of its addresses breaks a rule,
// and connects to the first that answers. To pick the good addresses out of
// a mixed set would leave the choice to whoever answers the DNS query.
func (g *guard) dial(ctx context.Context, _, address string) (net.Conn, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, violation("the URL has no valid host and port")
	}
	name, literal, err := canonicalHost(host)
	if err != nil {
		return nil, err
	}
	isTrusted := slices.Contains(g.trusted, net.JoinHostPort(name, port))
	oddPort := !g.anyPort && port != "80" && port != "443"
	local := !literal.IsValid() && localName(name)

	check := func(addr netip.Addr) error {
		if addr.Zone() != "" {
			return violation(reasonZone)
		}
		if isTrusted {
			return nil
		}
		exempt, err := g.rules.judge(addr)
		switch {
		case err != nil && literal.IsValid():
			return err
		case err != nil:
			return violation(reasonResolved)
		case local && !exempt:
			return violation(reasonLocal)
		case oddPort && !exempt:
			return violation(reasonPort)
		}
		return nil
	}

	addrs := []netip.Addr{literal}
	if !literal.IsValid() {
		if addrs, err = g.resolve(ctx, name); err != nil {
			return nil, err
		}
	}
	for i, addr := range addrs {
		if err := check(addr); err != nil {
			return nil, err
		}
		addrs[i] = addr.Unmap()
	}
	return g.connect(ctx, addrs, port, check)
}

func (g *guard) resolve(ctx context.Context, name string) ([]netip.Addr, error) {
	addrs, err := g.rules.resolver().LookupNetIP(ctx, "ip", name)
	if err != nil {
		var dns *net.DNSError
		if errors.As(err, &dns) && dns.IsNotFound {
			return nil, unreached("host not found", err)
		}
		return nil, unreached("host lookup failed", err)
	}
	if len(addrs) == 0 {
		return nil, unreached("host not found", nil)
	}
	return slices.Clone(addrs), nil
}

func (g *guard) connect(ctx context.Context, addrs []netip.Addr, port string, check func(netip.Addr) error) (net.Conn, error) {
	dial := g.rules.Dial
	if dial == nil {
		dialer := &net.Dialer{
			Control: func(network, address string, _ syscall.RawConn) error {
				at, err := netip.ParseAddrPort(address)
				if err != nil || !strings.HasPrefix(network, "tcp") {
					return violation(reasonAddress)
				}
				return check(at.Addr())
			},
		}
		dial = dialer.DialContext
	}
	var last error
	for i, addr := range addrs {
		conn, err := dialShare(ctx, dial, net.JoinHostPort(addr.String(), port), len(addrs)-i)
		if err == nil {
			return conn, nil
		}
		if broken, ok := errors.AsType[*mediagate.Error](err); ok {
			return nil, broken // the second look, at the socket, found a broken rule
		}
		last = err
		if ctx.Err() != nil {
			break
		}
	}
	return nil, unreached("connection failed", last)
}

// dialShare dials with the share of the remaining time that one of n
// addresses is due.
func dialShare(
	ctx context.Context, dial func(context.Context, string, string) (net.Conn, error), address string, n int,
) (net.Conn, error) {
	if deadline, ok := ctx.Deadline(); ok && n > 1 {
		share := max(time.Until(deadline)/time.Duration(n), minDialShare)
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, share)
		defer cancel()
	}
	return dial(ctx, "tcp", address)
}

// dialWithin bounds dial for requests whose context has no deadline.
func (g *guard) dialWithin(ctx context.Context, network, address string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	return g.dial(ctx, network, address)
}
