package outbound

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"net/url"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// denied are ranges that no spelling may get through, from the registries.
var denied = prefixes(
	"0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "168.63.129.16/32", "169.254.0.0/16", "172.16.0.0/12",
	"192.0.0.0/24", "192.168.0.0/16", "198.18.0.0/15", "224.0.0.0/4", "240.0.0.0/4",
)

func TestDeniedInEverySpelling(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		p := rapid.SampledFrom(denied).Draw(t, "prefix")
		base := p.Addr().As4()
		host := rapid.Uint32().Draw(t, "host") & (1<<(32-p.Bits()) - 1)
		var b [4]byte
		binary.BigEndian.PutUint32(b[:], binary.BigEndian.Uint32(base[:])|host)
		n := binary.BigEndian.Uint32(b[:])
		dotted := netip.AddrFrom4(b).String()
		spelling := rapid.SampledFrom([]string{
			dotted,
			dotted + ".",
			fmt.Sprintf("%d", n),
			fmt.Sprintf("0x%08X", n),
			fmt.Sprintf("%d.%d", b[0], n&0xffffff),
			fmt.Sprintf("0%o.%d.%d.%d", b[0], b[1], b[2], b[3]),
			fmt.Sprintf("0x%x.%d.%d.%d", b[0], b[1], b[2], b[3]),
			fmt.Sprintf("%d.%d.%d.0x%x", b[0], b[1], b[2], b[3]),
			strings.ReplaceAll(dotted, ".", "。"),
			strings.NewReplacer("0", "０", "1", "１", "2", "２").Replace(dotted),
			fmt.Sprintf("[::ffff:%s]", dotted),
			fmt.Sprintf("[::ffff:%x:%x]", n>>16, n&0xffff),
			fmt.Sprintf("[::%s]", dotted),
			fmt.Sprintf("[64:ff9b::%s]", dotted),
			fmt.Sprintf("[2002:%x:%x::]", n>>16, n&0xffff),
		}).Draw(t, "spelling")
		raw := rapid.SampledFrom([]string{"http://", "https://"}).Draw(t, "scheme") + spelling +
			rapid.SampledFrom([]string{"", "/", ":80/x", ":443?y", "#@example.com"}).Draw(t, "rest")
		if u, err := (Rules{}).CheckWebhookURL(raw); err == nil {
			t.Fatalf("%s passed as a callback: %s", raw, u)
		}
		if err := (Rules{}).CheckMediaURL(raw); err == nil {
			t.Fatalf("%s passed as media", raw)
		}
	})
}

// Whatever passes is the same when read again, by these rules and by
// net/url: no text may mean one host here and another where it is used.
func FuzzCheckWebhookURL(f *testing.F) {
	for _, seed := range []string{
		"https://a.example.com/cb?x=1#y", "http://127.0.0.1#@a.example.com", "http://[::ffff:8.8.8.8]:80/",
		"http://a。example。com", "http://[fe80::1%25eth0]/", "http:a", "http://8.8.8.8.", `http://a.b\@c.d`, "http://xn--a.b",
		"HTTP://A.B:00080/%2F/../?ü", "//a.b", "http://a.b:65616",
		"http://a.嗊.b%AAc", // escaped bytes that are no UTF-8
	} {
		f.Add(seed)
	}
	rules := Rules{OwnDomains: []string{"gw-own.com"}}
	f.Fuzz(func(t *testing.T, raw string) {
		u, err := rules.CheckWebhookURL(raw)
		if err != nil {
			wantViolation(t, err)
			return
		}
		if merr := rules.CheckMediaURL(raw); merr != nil {
			t.Errorf("%q is a callback, but no media: %v", raw, merr)
		}
		for _, c := range []*url.URL{u, CallbackURL(u)} {
			text := c.String()
			again, err := url.Parse(text)
			if err != nil {
				t.Fatalf("%q became %q: %v", raw, text, err)
			}
			if again.Host != u.Host || again.User != nil || again.Fragment != "" || again.RawQuery != u.RawQuery {
				t.Errorf("%q became %q, read as %+v", raw, text, again)
			}
			to, err := inspect(again)
			if err != nil {
				t.Fatalf("%q became %q, which is refused: %v", raw, text, err)
			}
			if to.port != 80 && to.port != 443 {
				t.Errorf("%q goes to port %d", raw, to.port)
			}
			if !to.addr.IsValid() && (localName(to.host) || rules.owns(to.host)) {
				t.Errorf("%q goes to %s", raw, to.host)
			}
			if to.addr.IsValid() && (to.addr.Unmap().IsPrivate() || to.addr.Unmap().IsLoopback() || to.addr.Zone() != "") {
				t.Errorf("%q goes to %s", raw, to.addr)
			}
			if p := c.EscapedPath(); c != u && !strings.HasSuffix(p, "/callback") {
				t.Errorf("%q is called back at path %q", raw, p)
			}
		}
	})
}
