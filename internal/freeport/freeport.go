package freeport

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"sync"
	"syscall"
)

// Port is a TCP port that is held for a server.
type Port struct {
	Host   string // as it was asked for; empty: every address of the machine
	Number int
	Chosen bool // by the system: another one does as well

	mu   sync.Mutex
	hold int // the bound socket; below 0: none
}

// Addr is host:port, to listen on.
func (p *Port) Addr() string { return net.JoinHostPort(p.Host, strconv.Itoa(p.Number)) }

// Take holds the port of addr, host:port; port 0 takes one from the system.
// The error of a named port that somebody listens on is Taken.
func Take(addr string) (*Port, error) {
	host, number, err := split(addr)
	if err != nil {
		return nil, err
	}
	ip, err := resolve(host)
	if err != nil {
		return nil, err
	}
	p := &Port{Host: host, Number: number, Chosen: number == 0}
	if p.hold, p.Number, err = bind(netip.AddrPortFrom(ip, uint16(number))); err != nil {
		return nil, fmt.Errorf("%s: %w", addr, explain(err))
	}
	err = check(p.Addr())
	if Taken(err) {
		// Some systems let nobody listen on a bound port: there it cannot be held.
		p.Release()
		err = check(p.Addr())
	}
	if err != nil {
		p.Release()
		return nil, fmt.Errorf("%s: %w", addr, explain(err))
	}
	return p, nil
}

// Release gives the port back to the system once nothing listens on it.
func (p *Port) Release() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.hold >= 0 {
		_ = syscall.Close(p.hold)
		p.hold = -1
	}
}

// Taken reports whether the error says that another program listens on the
// port.
func Taken(err error) bool { return errors.Is(err, syscall.EADDRINUSE) }

// explain names a collision as what it is.
func explain(err error) error {
	if Taken(err) {
		return fmt.Errorf("another program listens on this address: %w", err)
	}
	return err
}

// Tries is how many ports a server tries to listen on.
const Tries = 5

// Serve has start listen on the port of addr, and once more on another one
// when a program came in between and addr leaves the choice. The port is held
// until start returns; its error is Taken when somebody else had the port.
func Serve[S any](addr string, start func(*Port) (S, error)) (S, error) {
	for try := 1; ; try++ {
		server, chosen, err := serveOnce(addr, start)
		if err == nil || try == Tries || !chosen || !Taken(err) {
			return server, err
		}
	}
}

func serveOnce[S any](addr string, start func(*Port) (S, error)) (server S, chosen bool, err error) {
	p, err := Take(addr)
	if err != nil {
		return server, false, err
	}
	defer p.Release()
	server, err = start(p)
	return server, p.Chosen, explain(err)
}

func split(addr string) (host string, number int, err error) {
	host, text, err := net.SplitHostPort(addr)
	if err != nil {
		return "", 0, fmt.Errorf("address %q: %w", addr, err)
	}
	number, err = strconv.Atoi(text)
	if err != nil || number < 0 || number > 65535 {
		return "", 0, fmt.Errorf("address %q: the port is not a number from 0 to 65535", addr)
	}
	return host, number, nil
}

// resolve finds the address of a host of this machine.
func resolve(host string) (netip.Addr, error) {
	if host == "" {
		return netip.IPv4Unspecified(), nil
	}
	found, err := net.DefaultResolver.LookupNetIP(context.Background(), "ip", host)
	if err != nil {
		return netip.Addr{}, fmt.Errorf("host %q: %w", host, err)
	}
	for _, ip := range found { // as a listener chooses: IPv4 where there is one
		if ip = ip.Unmap(); ip.Is4() {
			return ip, nil
		}
	}
	return found[0], nil
}

// bind binds a socket that does not listen, and tells its port.
func bind(to netip.AddrPort) (socket, number int, err error) {
	family, address := syscall.AF_INET6, syscall.Sockaddr(&syscall.SockaddrInet6{Port: int(to.Port()), Addr: to.Addr().As16()})
	if ip := to.Addr(); ip.Is4() {
		family, address = syscall.AF_INET, &syscall.SockaddrInet4{Port: int(to.Port()), Addr: ip.As4()}
	}
	syscall.ForkLock.RLock() // no child may inherit it
	if socket, err = syscall.Socket(family, syscall.SOCK_STREAM, 0); err == nil {
		syscall.CloseOnExec(socket)
	}
	syscall.ForkLock.RUnlock()
	if err != nil {
		return -1, 0, fmt.Errorf("socket: %w", err)
	}
	defer func() {
		if err != nil {
			_ = syscall.Close(socket)
		}
	}()
	// What lets the server listen on the same address, as it sets it too.
	if err = syscall.SetsockoptInt(socket, syscall.SOL_SOCKET, syscall.SO_REUSEADDR, 1); err != nil {
		return -1, 0, fmt.Errorf("reuse the address: %w", err)
	}
	if err = syscall.Bind(socket, address); err != nil {
		return -1, 0, fmt.Errorf("bind: %w", err)
	}
	name, err := syscall.Getsockname(socket)
	switch name := name.(type) {
	case *syscall.SockaddrInet4:
		return socket, name.Port, nil
	case *syscall.SockaddrInet6:
		return socket, name.Port, nil
	default:
		return -1, 0, errors.Join(fmt.Errorf("an address of the type %T", name), err)
	}
}

// check listens on the address for a moment.
func check(addr string) error {
	listener, err := new(net.ListenConfig).Listen(context.Background(), "tcp", addr)
	if err != nil {
		return err
	}
	return listener.Close()
}
