package freeport

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
)

// The search stays below the range from which operating systems take the
// local ports of outgoing connections (32768 on Linux): between the search
// and the server's own listen nothing but another server can take the port.
const (
	lowest  = 20000
	highest = 32000
	tries   = 200
)

// Find returns a port of host that nobody listens on. Several calls with the
// same taken set return different ports.
func Find(host string, taken map[int]bool) (int, error) {
	for range tries {
		port := lowest + rand.IntN(highest-lowest) //nolint:gosec // a port is no secret
		if taken[port] || Check(host, port) != nil {
			continue
		}
		if taken != nil {
			taken[port] = true
		}
		return port, nil
	}
	return 0, fmt.Errorf("no free port on %s between %d and %d after %d tries", host, lowest, highest, tries)
}

// Check returns why port of host cannot be listened on, or nil.
func Check(host string, port int) error {
	listener, err := new(net.ListenConfig).Listen(context.Background(), "tcp", net.JoinHostPort(host, strconv.Itoa(port)))
	if err != nil {
		return err
	}
	return listener.Close()
}

// Resolve splits addr and replaces port 0 by a free one; a port that is named
// must be free. An empty host means every address of the machine.
func Resolve(addr string) (host string, port int, err error) {
	host, portText, err := net.SplitHostPort(addr)
	if err != nil {
		return "", 0, fmt.Errorf("address %q: %w", addr, err)
	}
	port, err = strconv.Atoi(portText)
	if err != nil || port < 0 || port > 65535 {
		return "", 0, fmt.Errorf("address %q: the port is not a number from 0 to 65535", addr)
	}
	if port == 0 {
		port, err = Find(host, nil)
		return host, port, err
	}
	if err := Check(host, port); err != nil {
		return "", 0, err
	}
	return host, port, nil
}
