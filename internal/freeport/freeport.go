// Package freeport finds TCP ports for servers that need a port number and accept no listener.
//
// Take listens on a port for a moment, to see that it is free, and closes it. Another program may
// listen on it before the server does. Taken recognizes that error of the server. Serve then tries
// another port if the address leaves the choice.
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

// Take chooses among these ports. The system uses none of them for outgoing connections or for a
// listener on port 0, so a server that restarts finds its port free again.
const lowest, highest = 20000, 32000

// chances is the number of ports that Take tries before it reports that all are taken.
const chances = 100

// Port is a TCP port for a server.
type Port struct {
	Host   string // as the address has it; empty: every address of the machine
	Number int
	Chosen bool // by Take, so that another port would do as well
}

// Addr is host:port, to listen on.
func (p Port) Addr() string { return net.JoinHostPort(p.Host, strconv.Itoa(p.Number)) }

// Take returns the port of addr, host:port, if it is free. Port 0 lets Take choose one. If another
// program listens on the port, Taken recognizes the error.
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

// Taken reports whether err means that another program listens on the port.
func Taken(err error) bool { return errors.Is(err, syscall.EADDRINUSE) }

// explain adds the cause to the error of a taken port.
func explain(err error) error {
	if Taken(err) {
		return fmt.Errorf("another program listens on this address: %w", err)
	}
	return err
}

// Serve calls start with the port of addr. If another program listens there first and addr leaves
// the choice, it tries other ports. If another program had the last one, Taken recognizes the
// error.
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
