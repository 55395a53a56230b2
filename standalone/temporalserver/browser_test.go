package temporalserver_test

import (
	"bufio"
	"encoding/hex"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// TestNoBrowserIsAnswered checks that no port of the service speaks HTTP. Otherwise any web page
// could end workflows with a form, because the service checks neither Host nor Origin.
func TestNoBrowserIsAnswered(t *testing.T) {
	t.Parallel()
	server := start(t, filepath.Join(t.TempDir(), "temporal.db"))
	t.Cleanup(func() { stop(t, server) })
	ports := listening(t)
	_, port, err := net.SplitHostPort(server.Addr())
	if err != nil || !slices.Contains(ports, port) {
		t.Fatalf("%s is not among the ports %v (%v)", server.Addr(), ports, err)
	}
	for _, port := range ports {
		conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", net.JoinHostPort("127.0.0.1", port))
		if err != nil {
			continue // the port belonged to another test, which has ended
		}
		if err := conn.SetDeadline(time.Now().Add(5 * time.Second)); err != nil {
			t.Error(err)
		}
		_, _ = conn.Write([]byte("GET /api/v1/namespaces HTTP/1.1\r\nHost: evil.example\r\nOrigin: http://evil.example\r\nConnection: close\r\n\r\n"))
		if answer, err := http.ReadResponse(bufio.NewReader(conn), nil); err == nil {
			t.Errorf("port %s answers with %s", port, answer.Status)
			_ = answer.Body.Close()
		}
		_ = conn.Close()
	}
}

// listening returns the TCP ports on which this process listens over IPv4.
func listening(t *testing.T) (ports []string) {
	t.Helper()
	table, err := os.ReadFile("/proc/self/net/tcp")
	if err != nil {
		t.Skip("the kernel tells no table of sockets: ", err)
	}
	own := map[string]bool{}
	open, err := filepath.Glob("/proc/self/fd/*")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range open {
		target, _ := os.Readlink(name) // the file may be closed by now
		own[target] = true
	}
	for line := range strings.Lines(string(table)) {
		const local, state, inode = 1, 3, 9
		fields := strings.Fields(line)
		if len(fields) <= inode || fields[state] != "0A" || !own["socket:["+fields[inode]+"]"] {
			continue
		}
		_, digits, _ := strings.Cut(fields[local], ":")
		number, err := hex.DecodeString(digits)
		if err != nil || len(number) != 2 {
			t.Fatalf("no port in %q: %v", line, err)
		}
		ports = append(ports, strconv.Itoa(int(number[0])<<8|int(number[1])))
	}
	return ports
}
