package freeport

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"sync"
)

// The search stays below the range from which operating systems take the
// local ports of outgoing connections (32768 on Linux): between the search
// and the server's own listen nothing but another server can take the port.
const (
	lowest  = 20000
	highest = 32000
	tries   = 200
)

// kept are the sockets that keep found ports for this process.
//
//nolint:gochecknoglobals // ports belong to the process
var kept struct {
	sync.Mutex
	sockets []net.PacketConn
}

// Find returns a port of host that nobody listens on and no other call of
// Find, here or in another process, has returned: it stays this process's own
// until the process ends, also while its server is down. What keeps it is the
// UDP socket of the same number, which none of the servers uses.
func Find(host string) (int, error) {
	for range tries {
		port := lowest + rand.IntN(highest-lowest) //nolint:gosec // a port is no secret
		if keep(port) && Check(host, port) == nil {
			return port, nil
		}
	}
	return 0, fmt.Errorf("no free port on %s between %d and %d after %d tries", host, lowest, highest, tries)
}

func keep(port int) bool {
	socket, err := new(net.ListenConfig).ListenPacket(context.Background(), "udp4", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return false
	}
	kept.Lock()
	defer kept.Unlock()
	kept.sockets = append(kept.sockets, socket)
	return true
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
// must be free, and Find does not return it from then on. An empty host means
// every address of the machine.
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
		port, err = Find(host)
		return host, port, err
	}
	if err := Check(host, port); err != nil {
		return "", 0, err
	}
	keep(port)
	return host, port, nil
}
