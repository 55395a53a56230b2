package outbound

import (
	"context"
	"net"
	"net/netip"
	"slices"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mediagate/mediagate"
)

// dns answers every lookup from a table.
type dns map[string][]string

func (d dns) LookupNetIP(_ context.Context, _, host string) ([]netip.Addr, error) {
	list, ok := d[host]
	if !ok {
		return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
	}
	var addrs []netip.Addr
	for _, s := range list {
		addrs = append(addrs, netip.MustParseAddr(s))
	}
	return addrs, nil
}

// recorder notes what is dialled and connects to nothing but what is listed.
type recorder struct {
	up []string

	mu      sync.Mutex
	dialled []string
}

func (r *recorder) dial(_ context.Context, _, address string) (net.Conn, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.dialled = append(r.dialled, address)
	if slices.Contains(r.up, address) {
		client, server := net.Pipe()
		_ = server.Close()
		return client, nil
	}
	return nil, syscall.ECONNREFUSED
}

func TestDial(t *testing.T) {
	t.Parallel()
	names := dns{
		"two.example.com":   {"93.184.215.14", "2606:4700::1111"},
		"four.example.com":  {"2606:4700::1", "2606:4700::2", "93.184.215.14", "::ffff:93.184.215.15"},
		"mixed.example.com": {"93.184.215.14", "10.0.0.1"},
		"inner.example.com": {"10.0.0.1", "::ffff:10.0.0.2"},
		"blend.example.com": {"93.184.215.14", "127.0.0.1"},
		"own.example.com":   {"20.30.40.1"},
		"zone.example.com":  {"fe80::1%eth0"},
		"none.example.com":  {},
		"localhost":         {"127.0.0.1"},
		"cdn":               {"93.184.215.14"},
	}
	none := mediagate.Kind(255) // a connection
	tests := map[string]struct {
		allow   []string
		trusted []string
		anyPort bool
		address string
		up      []string
		dialled []string
		kind    mediagate.Kind
	}{
		"first address": {address: "two.example.com:443", up: []string{"93.184.215.14:443"}, dialled: []string{"93.184.215.14:443"}, kind: none},
		"second address": {
			address: "two.example.com:443", up: []string{"[2606:4700::1111]:443"},
			dialled: []string{"93.184.215.14:443", "[2606:4700::1111]:443"}, kind: none,
		},
		"families take turns": {
			address: "four.example.com:443", dialled: []string{"[2606:4700::1]:443", "93.184.215.14:443", "[2606:4700::2]:443", "93.184.215.15:443"},
			kind: mediagate.KindUnreached,
		},
		"no address answers": {
			address: "two.example.com:80", dialled: []string{"93.184.215.14:80", "[2606:4700::1111]:80"}, kind: mediagate.KindUnreached,
		},
		"one denied":            {address: "mixed.example.com:443", kind: mediagate.KindInvalid},
		"mapped denied":         {address: "inner.example.com:443", kind: mediagate.KindInvalid},
		"own":                   {address: "own.example.com:443", kind: mediagate.KindInvalid},
		"own by exception":      {allow: []string{"20.30.40.1/32"}, address: "own.example.com:443", dialled: []string{"20.30.40.1:443"}, kind: mediagate.KindUnreached},
		"zone in an answer":     {allow: []string{"::/0"}, address: "zone.example.com:443", kind: mediagate.KindInvalid},
		"zone, trusted":         {trusted: []string{"zone.example.com:443"}, address: "zone.example.com:443", kind: mediagate.KindInvalid},
		"NXDOMAIN":              {address: "nx.example.com:443", kind: mediagate.KindUnreached},
		"empty answer":          {address: "none.example.com:443", kind: mediagate.KindUnreached},
		"literal":               {address: "8.8.8.8:443", dialled: []string{"8.8.8.8:443"}, kind: mediagate.KindUnreached},
		"private literal":       {address: "10.0.0.1:443", kind: mediagate.KindInvalid},
		"unmapped":              {address: "[::ffff:8.8.8.8]:443", dialled: []string{"8.8.8.8:443"}, kind: mediagate.KindUnreached},
		"zone literal":          {address: "[fe80::1%eth0]:443", kind: mediagate.KindInvalid},
		"decimal":               {address: "2130706433:443", kind: mediagate.KindInvalid},
		"odd port":              {address: "two.example.com:8080", kind: mediagate.KindInvalid},
		"odd port of a literal": {address: "8.8.8.8:8080", kind: mediagate.KindInvalid},
		"odd port, media":       {anyPort: true, address: "8.8.8.8:8080", dialled: []string{"8.8.8.8:8080"}, kind: mediagate.KindUnreached},
		"odd port, exception":   {allow: []string{"10.0.0.0/8"}, address: "10.0.0.1:8080", dialled: []string{"10.0.0.1:8080"}, kind: mediagate.KindUnreached},
		"odd port, not all are exceptions": {
			allow: []string{"127.0.0.0/8"}, address: "blend.example.com:8080", kind: mediagate.KindInvalid,
		},
		"public and exception": {
			allow: []string{"127.0.0.0/8"}, address: "blend.example.com:80",
			dialled: []string{"93.184.215.14:80", "127.0.0.1:80"}, kind: mediagate.KindUnreached,
		},
		"localhost":              {address: "localhost:80", kind: mediagate.KindInvalid},
		"localhost by exception": {allow: []string{"127.0.0.0/8"}, address: "localhost:9999", dialled: []string{"127.0.0.1:9999"}, kind: mediagate.KindUnreached},
		"local name, public":     {anyPort: true, allow: []string{"127.0.0.0/8"}, address: "cdn:80", kind: mediagate.KindInvalid},
		"trusted private":        {trusted: []string{"inner.example.com:9900"}, address: "INNER.example.com.:9900", dialled: []string{"10.0.0.1:9900", "10.0.0.2:9900"}, kind: mediagate.KindUnreached},
		"trusted, another port":  {trusted: []string{"inner.example.com:9900"}, anyPort: true, address: "inner.example.com:9901", kind: mediagate.KindInvalid},
		"another host, trusted":  {trusted: []string{"outer.example.com:9900"}, anyPort: true, address: "inner.example.com:9900", kind: mediagate.KindInvalid},
		"trusted by address":     {trusted: []string{"10.0.0.1:9900"}, address: "10.0.0.1:9900", dialled: []string{"10.0.0.1:9900"}, kind: mediagate.KindUnreached},
		"name of a trusted address": {
			trusted: []string{"10.0.0.1:9900"}, anyPort: true, address: "inner.example.com:9900", kind: mediagate.KindInvalid,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			net := &recorder{up: tt.up}
			g := &guard{
				rules: Rules{
					Allow: prefixes(tt.allow...), OwnPrefixes: prefixes("20.30.40.0/24"), Resolver: names, Dial: net.dial,
				},
				anyPort: tt.anyPort, trusted: tt.trusted,
			}
			conn, err := g.dialWithin(t.Context(), "tcp", tt.address)
			switch {
			case err == nil:
				_ = conn.Close()
				if tt.kind != none {
					t.Errorf("connected, want %s", tt.kind)
				}
			case mediagate.KindOf(err) != tt.kind:
				t.Errorf("error %v, want kind %s", err, tt.kind)
			}
			if diff := cmp.Diff(tt.dialled, net.dialled); diff != "" {
				t.Errorf("dialled (-want +got):\n%s", diff)
			}
		})
	}
}

// TestConnectChecksAgain checks that the socket refuses an address that passed the first check in
// error.
func TestConnectChecksAgain(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	_, port, _ := net.SplitHostPort(l.Addr().String())
	g := &guard{anyPort: true}
	refuse := func(a netip.Addr) error { _, err := g.rules.check(a); return err }
	conn, err := g.connect(t.Context(), []netip.Addr{netip.MustParseAddr("127.0.0.1")}, port, refuse)
	if err == nil {
		_ = conn.Close()
		t.Fatal("connected to loopback")
	}
	if !mediagate.Is(err, mediagate.KindInvalid) {
		t.Errorf("error %v", err)
	}
	conn, err = g.connect(t.Context(), []netip.Addr{netip.MustParseAddr("127.0.0.1")}, port, func(netip.Addr) error { return nil })
	if err != nil {
		t.Fatalf("with every address allowed: %v", err)
	}
	_ = conn.Close()
}

// line is how an address answers a dial: after some time it connects, unless a flag is set.
type line struct {
	after   time.Duration
	refused bool
	silent  bool
	broken  bool // the address breaks a rule at the socket
}

// TestConnectRaces checks that a dead first address costs a quarter of a second and not a share
// of the deadline, and that one that refuses costs nothing. A connection that is made too late is
// closed.
func TestConnectRaces(t *testing.T) {
	t.Parallel()
	first, second, third := "[2606:4700::1]:443", "93.184.215.14:443", "93.184.215.15:443"
	for name, tt := range map[string]struct {
		lines map[string]line
		took  time.Duration
		kind  mediagate.Kind
		open  string
	}{
		"the first answers":        {lines: map[string]line{first: {after: 100 * time.Millisecond}}, took: 100 * time.Millisecond, open: first},
		"the first is dead":        {lines: map[string]line{first: {silent: true}, second: {}}, took: attemptDelay, open: second},
		"two are dead":             {lines: map[string]line{first: {silent: true}, second: {silent: true}, third: {}}, took: 2 * attemptDelay, open: third},
		"the first refuses":        {lines: map[string]line{first: {refused: true}, second: {}}, open: second},
		"the first is slow":        {lines: map[string]line{first: {after: time.Second}, second: {after: time.Minute}, third: {silent: true}}, took: time.Second, open: first},
		"two answer, one too late": {lines: map[string]line{first: {after: attemptDelay + time.Second}, second: {after: 2 * time.Second}, third: {silent: true}}, took: attemptDelay + time.Second, open: first},
		"refused after the second": {lines: map[string]line{first: {after: time.Second, refused: true}, second: {silent: true}, third: {after: time.Second}}, took: 2*attemptDelay + time.Second, open: third},
		"a rule at the socket":     {lines: map[string]line{first: {silent: true}, second: {broken: true}, third: {}}, took: attemptDelay, kind: mediagate.KindInvalid},
		"none answers":             {lines: map[string]line{first: {silent: true}, second: {silent: true}, third: {silent: true}}, took: dialTimeout, kind: mediagate.KindUnreached},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var mu sync.Mutex
				open := map[string]bool{}
				g := &guard{rules: Rules{
					Resolver: dns{"many.example.com": {"2606:4700::1", "93.184.215.14", "93.184.215.15"}},
					Dial: func(ctx context.Context, _, address string) (net.Conn, error) {
						l := tt.lines[address]
						if l.silent {
							<-ctx.Done()
							return nil, ctx.Err()
						}
						time.Sleep(l.after) // also when nobody waits any more
						switch {
						case l.refused:
							return nil, syscall.ECONNREFUSED
						case l.broken:
							return nil, violation(reasonAddress)
						}
						mu.Lock()
						defer mu.Unlock()
						open[address] = true
						return closing{close: func() { mu.Lock(); defer mu.Unlock(); delete(open, address) }}, nil
					},
				}}
				began := time.Now()
				_, err := g.dialWithin(t.Context(), "tcp", "many.example.com:443")
				if took := time.Since(began); took != tt.took {
					t.Errorf("took %s, want %s", took, tt.took)
				}
				if tt.open != "" && err != nil || tt.open == "" && mediagate.KindOf(err) != tt.kind {
					t.Errorf("error %v, want kind %s", err, tt.kind)
				}
				time.Sleep(2 * time.Minute) // all that was dialled has ended
				mu.Lock()
				defer mu.Unlock()
				var left []string
				for address := range open {
					left = append(left, address)
				}
				var want []string
				if tt.open != "" {
					want = []string{tt.open}
				}
				if diff := cmp.Diff(want, left); diff != "" {
					t.Errorf("open connections (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// closing is a connection of which only Close is called.
type closing struct {
	net.Conn
	close func()
}

func (c closing) Close() error { c.close(); return nil }
