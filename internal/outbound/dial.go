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
	trusted []string // canonical hosts with ports whose addresses are not checked
}

// attemptDelay is how long a dial may take before the next address is dialled as well. RFC 8305
// recommends this value.
const attemptDelay = 250 * time.Millisecond

// dial resolves the host and connects to the address that answers first. It refuses the host if
// any of its addresses breaks a rule. If dial used only the allowed addresses, a DNS server could
// choose among them.
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

// checkOf returns a function that checks an address of the host. literal is the host itself if it
// is an address.
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
		exempt, err := g.rules.check(addr)
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

func (g *guard) connect(
	ctx context.Context, addrs []netip.Addr, port string, check func(netip.Addr) error,
) (net.Conn, error) {
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
// eyeballs"). It dials the next address after attemptDelay, or at once when a dial fails. So a dead
// address, such as an IPv6 address without a route, costs attemptDelay and not the whole deadline.
// A broken rule ends the race.
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
		go func(pending int) { // a dial may still succeed after the race
			for range pending {
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

// alternate sorts the addresses so that IPv4 and IPv6 take turns, beginning with the family of the
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

// dialWithin is dial with a timeout, for requests whose context has no deadline.
func (g *guard) dialWithin(ctx context.Context, network, address string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	return g.dial(ctx, network, address)
}
