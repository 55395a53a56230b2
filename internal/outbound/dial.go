package outbound

import (
	"cmp"
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

// attemptDelay is how long one address may leave us waiting before the next is dialled
// beside it, as RFC 8305 recommends.
const attemptDelay = 250 * time.Millisecond

// dial resolves the host, refuses it if any of its addresses breaks a rule,
// and connects to the one that answers first. To pick the good addresses out of
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
	check := g.checkOf(name, literal, port)
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

// checkOf returns the check of the addresses of a host, which may be a literal itself.
func (g *guard) checkOf(name string, literal netip.Addr, port string) func(netip.Addr) error {
	isTrusted := slices.Contains(g.trusted, net.JoinHostPort(name, port))
	oddPort := !g.anyPort && port != "80" && port != "443"
	local := !literal.IsValid() && localName(name)
	return func(addr netip.Addr) error {
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
	return race(ctx, alternate(addrs), func(ctx context.Context, addr netip.Addr) (net.Conn, error) {
		return dial(ctx, "tcp", net.JoinHostPort(addr.String(), port))
	})
}

// race dials the addresses in their order and returns the first connection (RFC 8305, "happy
// eyeballs"): a dead address, as of a host whose IPv6 leads nowhere, costs attemptDelay and not
// a share of the deadline. The next address is dialled as soon as one fails. A broken rule,
// which dial finds at the socket, ends the race.
func race(
	ctx context.Context, addrs []netip.Addr, dial func(context.Context, netip.Addr) (net.Conn, error),
) (net.Conn, error) {
	type outcome struct {
		conn net.Conn
		err  error
	}
	outcomes := make(chan outcome)
	open, dialled := 0, 0
	ctx, cancel := context.WithCancel(ctx)
	defer func() {
		cancel()
		go func(late int) { // an address may have answered as the race ended
			for range late {
				if o := <-outcomes; o.err == nil {
					_ = o.conn.Close()
				}
			}
		}(open)
	}()
	var last error
	for dialled < len(addrs) || open > 0 {
		var delay <-chan time.Time
		if dialled < len(addrs) {
			addr := addrs[dialled]
			dialled++
			open++
			go func() {
				conn, err := dial(ctx, addr)
				outcomes <- outcome{conn, err}
			}()
			delay = time.After(attemptDelay)
		}
		select {
		case o := <-outcomes:
			open--
			if o.err == nil {
				return o.conn, nil
			}
			if broken, ok := errors.AsType[*mediagate.Error](o.err); ok {
				return nil, broken
			}
			last = o.err
		case <-delay:
		case <-ctx.Done():
			return nil, unreached("connection failed", errors.Join(ctx.Err(), last))
		}
	}
	return nil, unreached("connection failed", last)
}

// alternate orders addresses so that the two families take turns, beginning with that of the
// first.
func alternate(addrs []netip.Addr) []netip.Addr {
	place, next := map[netip.Addr]int{}, map[bool]int{} // within its family
	for _, addr := range addrs {
		place[addr] = next[addr.Is4()]
		next[addr.Is4()]++
	}
	slices.SortStableFunc(addrs, func(a, b netip.Addr) int { return cmp.Compare(place[a], place[b]) })
	return addrs
}

// dialWithin bounds dial for requests whose context has no deadline.
func (g *guard) dialWithin(ctx context.Context, network, address string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	return g.dial(ctx, network, address)
}
