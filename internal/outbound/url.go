package outbound

import (
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/mediagate/mediagate"
)

// MaxURL is the maximum length of a URL in characters.
const MaxURL = 2048

// target is a parsed URL whose parts keep the rules.
type target struct {
	url  *url.URL
	host string     // canonical
	addr netip.Addr // valid when the host is a literal address
	port uint16
}

// CheckWebhookURL checks the text of a callback URL. It returns the URL in canonical form: ASCII
// host in lower case, no default port, no fragment. With exceptions configured it allows local names
// and any port; the client then refuses the host unless all its addresses are exceptions.
func (r Rules) CheckWebhookURL(raw string) (*url.URL, error) {
	t, err := parse(raw)
	if err != nil {
		return nil, err
	}
	if err := r.screen(t, false); err != nil {
		return nil, err
	}
	if !t.addr.IsValid() {
		if localName(t.host) && len(r.Allow) == 0 {
			return nil, violation(reasonLocal)
		}
		if r.owns(t.host) {
			return nil, violation(reasonOwn)
		}
	}
	return t.canonical(), nil
}

// CheckMediaURL checks the text of a URL of media: absolute, http or https, any port, and no
// literal address that is not public. The client checks the addresses of a name when it downloads.
func (r Rules) CheckMediaURL(raw string) error {
	t, err := parse(raw)
	if err != nil {
		return err
	}
	return r.screen(t, true)
}

// CallbackURL returns the URL of the callback for the base URL u: u with /callback after its path,
// with its query and without its fragment.
func CallbackURL(u *url.URL) *url.URL {
	c := *u
	c.Fragment, c.RawFragment = "", ""
	escaped := strings.TrimSuffix(u.EscapedPath(), "/") + "/callback"
	if path, err := url.PathUnescape(escaped); err == nil {
		c.Path, c.RawPath = path, escaped
	}
	return &c
}

// Host returns the host and port of baseURL in the form of Options.AllowHosts.
func Host(baseURL string) (string, error) {
	t, err := base(baseURL)
	if err != nil {
		return "", err
	}
	return t.hostPort(), nil
}

// PrivateHost is Host for a URL whose text shows that it may be private: an address, or a name
// outside the public DNS (localhost, one label, kling.internal). It is empty for any other name:
// the owner of a public name could otherwise lead requests into our network.
func PrivateHost(baseURL string) (string, error) {
	t, err := base(baseURL)
	if err != nil || !t.addr.IsValid() && !localName(t.host) {
		return "", err
	}
	return t.hostPort(), nil
}

// base parses a URL and applies the rules on its parts.
func base(baseURL string) (target, error) {
	u, err := url.Parse(baseURL)
	if err != nil {
		return target{}, violation("the URL cannot be parsed")
	}
	return inspect(u)
}

// screen applies the rules for every request that need no DNS.
func (r Rules) screen(t target, anyPort bool) error {
	webPort := anyPort || isWebPort(t.port)
	if t.addr.IsValid() {
		exempt, err := r.check(t.addr)
		if err != nil {
			return err
		}
		if !exempt && !webPort {
			return violation(reasonPort)
		}
		return nil
	}
	if !webPort && len(r.Allow) == 0 {
		return violation(reasonPort)
	}
	if loopbackName(t.host) && !r.allowsLoopback() {
		return violation(reasonLocal)
	}
	return nil
}

func isWebPort(port uint16) bool { return port == 80 || port == 443 }

// parse parses and checks the text of a URL. It first refuses characters that parsers are known to
// read differently.
func parse(raw string) (target, error) {
	if utf8.RuneCountInString(raw) > MaxURL {
		return target{}, violation(fmt.Sprintf("the URL is longer than %d characters", MaxURL))
	}
	if !utf8.ValidString(raw) || strings.ContainsFunc(raw, notURLRune) {
		return target{}, violation("the URL has spaces, control characters or backslashes")
	}
	return base(raw)
}

func notURLRune(c rune) bool {
	return c == '\\' || unicode.IsSpace(c) || unicode.IsControl(c)
}

// inspect applies the rules on the parts of a URL.
func inspect(u *url.URL) (target, error) {
	t := target{url: u}
	switch u.Scheme {
	case "http":
		t.port = 80
	case "https":
		t.port = 443
	case "":
		return t, violation("the URL has no scheme")
	default:
		return t, violation("the scheme is not http or https")
	}
	if u.User != nil {
		return t, violation("the URL carries user information")
	}
	host := u.Hostname()
	if host == "" {
		return t, violation("the URL has no host")
	}
	if s := u.Port(); s != "" {
		port, err := strconv.ParseUint(s, 10, 16) // url.Parse takes any number of digits
		if err != nil || port == 0 {
			return t, violation("the port is not between 1 and 65535")
		}
		t.port = uint16(port)
	}
	if strings.HasPrefix(u.Host, "[") != strings.Contains(host, ":") {
		return t, violation("the host is not a valid address")
	}
	var err error
	t.host, t.addr, err = canonicalHost(host)
	return t, err
}

func (t target) hostPort() string {
	return net.JoinHostPort(t.host, strconv.FormatUint(uint64(t.port), 10))
}

func (t target) canonical() *url.URL {
	c := *t.url
	c.Fragment, c.RawFragment = "", ""
	c.RawQuery = escapeQuery(c.RawQuery)
	c.Host = t.host
	if t.addr.Is6() {
		c.Host = "[" + t.host + "]"
	}
	if (c.Scheme == "http" && t.port != 80) || (c.Scheme == "https" && t.port != 443) {
		c.Host = t.hostPort()
	}
	return &c
}

// escapeQuery encodes the characters of a query that a request line may not hold, as browsers do:
// all beyond ASCII, spaces, quotes and angle brackets. Go sends a query as it is. Encoded
// characters stay encoded once.
func escapeQuery(s string) string {
	var b strings.Builder
	for _, c := range []byte(s) {
		if c >= utf8.RuneSelf || strings.IndexByte(` "<>`, c) >= 0 {
			fmt.Fprintf(&b, "%%%02X", c)
		} else {
			b.WriteByte(c)
		}
	}
	return b.String()
}

// unreached returns the error of an allowed host that cannot be found or reached.
func unreached(message string, cause error) *mediagate.Error {
	return &mediagate.Error{Kind: mediagate.KindUnreached, Message: message, Err: cause}
}
