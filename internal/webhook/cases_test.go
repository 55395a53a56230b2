package webhook_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"flag"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/internal/outbound"
	"github.com/mediagate/mediagate/internal/webhook"
)

var casesFile = flag.String("cases", filepath.Join("testdata", "url_cases.json"),
	"file of callback URLs with DNS fixtures and the verdict each must get")

// urlCase is one entry of a cases file. The own domain is gw-own.com, the
// own ingress 20.30.40.0/24.
type urlCase struct {
	URL          string                `json:"url"`
	Verdict      string                `json:"verdict"` // allow or drop
	DNS          map[string][][]string `json:"dns"`     // answer sets, one a lookup; the last one stays
	NeverConnect []string              `json:"never_connect"`
}

func TestURLCases(t *testing.T) {
	t.Parallel()
	cases := readCases(t, *casesFile)
	const base = "https://hooks.example.com/"
	dns := map[string][][]string{"hooks.example.com": {{"93.184.215.14"}}}
	cases = append(cases, // too long to be pleasant in a file
		urlCase{URL: base + strings.Repeat("a", outbound.MaxURL-len(base)), Verdict: "allow", DNS: dns},
		urlCase{URL: base + strings.Repeat("a", outbound.MaxURL-len(base)+1), Verdict: "drop", DNS: dns},
	)
	for _, c := range cases {
		t.Run(c.URL[:min(len(c.URL), 80)], func(t *testing.T) {
			t.Parallel()
			judgeCase(t, c)
		})
	}
}

func readCases(t *testing.T, file string) []urlCase {
	t.Helper()
	data, err := os.ReadFile(file)
	if os.IsNotExist(err) && !filepath.IsAbs(file) {
		data, err = os.ReadFile(filepath.Join("..", file)) // as seen from the module's root
	}
	if err != nil {
		t.Fatal(err)
	}
	var cases []urlCase
	if err := json.Unmarshal(data, &cases); err != nil {
		t.Fatal(err)
	}
	if len(cases) == 0 {
		t.Fatalf("%s has no cases", file)
	}
	return cases
}

// judgeCase makes one attempt for each answer set, as retries would, and
// demands that a drop comes exactly where the case says.
func judgeCase(t *testing.T, c urlCase) {
	t.Helper()
	dns := &fixtureDNS{sets: c.DNS, asked: map[string]int{}}
	var mu sync.Mutex
	var dialled []netip.AddrPort
	sender := webhook.New(webhook.Config{Rules: outbound.Rules{
		OwnDomains:  []string{"gw-own.com"},
		OwnPrefixes: []netip.Prefix{netip.MustParsePrefix("20.30.40.0/24")},
		Resolver:    dns,
		Dial: func(_ context.Context, _, address string) (net.Conn, error) {
			at, err := netip.ParseAddrPort(address)
			if err != nil {
				t.Errorf("dialled %q, which is no address: it would be resolved again", address)
			}
			mu.Lock()
			defer mu.Unlock()
			dialled = append(dialled, at)
			return nil, syscall.ECONNREFUSED
		},
	}})

	attempts := 1
	for _, sets := range c.DNS {
		attempts = max(attempts, len(sets))
	}
	verdict, reason := "allow", ""
	for range attempts {
		before := len(dialled)
		r, err := sender.Deliver(t.Context(), webhook.Attempt{
			URL: c.URL, ID: "task_01", Body: []byte("{}"), Secrets: []string{testSecret},
		})
		if err != nil {
			t.Fatalf("Deliver: %v", err)
		}
		if r.Outcome == mediagate.DeliveryDrop {
			verdict, reason = "drop", r.Reason
			if len(dialled) != before {
				t.Errorf("dropped, but %v was dialled", dialled[before:])
			}
			break
		}
		if r.Outcome != mediagate.DeliveryRetry {
			t.Errorf("verdict %q without any network", r.Outcome)
		}
	}
	if verdict != c.Verdict {
		t.Errorf("verdict %s (%s), want %s", verdict, reason, c.Verdict)
	}
	if verdict == "drop" && reason == "" {
		t.Error("dropped without a reason")
	}
	for _, at := range dialled {
		if slices.Contains(c.NeverConnect, at.Addr().String()) {
			t.Errorf("dialled %s", at)
		}
		if at.Port() != 80 && at.Port() != 443 {
			t.Errorf("dialled port %d", at.Port())
		}
	}
	if c.Verdict == "allow" && len(dialled) == 0 && dns.answers == dns.lookups {
		t.Error("allowed, but nothing was dialled")
	}
}

// fixtureDNS answers lookups from a case.
type fixtureDNS struct {
	sets map[string][][]string

	mu               sync.Mutex
	asked            map[string]int
	lookups, answers int
}

func (d *fixtureDNS) LookupNetIP(_ context.Context, _, host string) ([]netip.Addr, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.lookups++
	sets := d.sets[host]
	n := d.asked[host]
	d.asked[host]++
	if len(sets) == 0 || len(sets[min(n, len(sets)-1)]) == 0 {
		return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
	}
	d.answers++
	var addrs []netip.Addr
	for _, s := range sets[min(n, len(sets)-1)] {
		addr, err := netip.ParseAddr(s)
		if err != nil {
			return nil, err
		}
		addrs = append(addrs, addr)
	}
	return addrs, nil
}

var testSecret = "whsec_" + base64.StdEncoding.EncodeToString([]byte("0123456789abcdef0123456789abcdef"))
