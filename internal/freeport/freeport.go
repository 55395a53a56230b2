// Package freeport finds TCP ports for servers that must be told a number and
// cannot be given a listener.
//
// Take listens on a port for a moment, to see that it is free, and closes it.
// Another program may listen on it before the server does. The server's error
// says so then (Taken), and Serve tries another port where the address leaves
// the choice.
//
// It is for the standalone program and for tests, and imports nothing of the
// project.
package freeport

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"syscall"
)

// Tries is how many ports a server tries to listen on.
const Tries = 5

// Take chooses among these ports. The system gives none of them to outgoing
// connections, or to a listener on port 0, so a server that restarts finds its
// port free again.
const lowest, highest = 20000, 32000

// chances is how many of them Take looks at before it reports that all are taken.
const chances = 100

// Port is a TCP port for a server.
type Port struct {
	Host   string // as the address has it; empty: every address of the machine
	Number int
	Chosen bool // by Take, so another one does as well
}

// Addr is host:port, to listen on.
func (p Port) Addr() string { return net.JoinHostPort(p.Host, strconv.Itoa(p.Number)) }

// Take returns the port of addr, host:port, if it is free. Port 0 lets Take choose one.
// The error of a port that another program listens on is Taken.
func Take(addr string) (Port, error) {
	host, text, err := net.SplitHostPort(addr)
	if err != nil {
		return Port{}, fmt.Errorf("address %q: %w", addr, err)
	}
	number, err := strconv.ParseUint(text, 10, 16)
	if err != nil {
		return Port{}, fmt.Errorf("address %q: the port is not a number from 0 to 65535", addr)
	}
	p := Port{Host: host, Number: int(number), Chosen: number == 0}
	if !p.Chosen {
		return p, p.check()
	}
	for range chances {
		p.Number = lowest + rand.IntN(highest-lowest) //nolint:gosec // a port is no secret number
		if err = p.check(); !Taken(err) {
			break
		}
	}
	return p, err
}

// check listens on the port for a moment.
func (p Port) check() error {
	listener, err := new(net.ListenConfig).Listen(context.Background(), "tcp", p.Addr())
	if err != nil {
		return fmt.Errorf("%s: %w", p.Addr(), explain(err))
	}
	return listener.Close()
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

// Serve has start listen on the port of addr. If another program listens there
// first and addr leaves the choice, it tries other ports. The error is Taken when
// another program had the last one.
func Serve[S any](addr string, start func(Port) (S, error)) (S, error) {
	for try := 1; ; try++ {
		var none S
		p, err := Take(addr)
		if err != nil {
			return none, err
		}
		server, err := start(p)
		if err == nil || try == Tries || !p.Chosen || !Taken(err) {
			return server, explain(err)
		}
	}
}
