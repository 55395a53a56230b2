package vendorhttp

import (
	"cmp"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/net/publicsuffix"

	"github.com/mediagate/mediagate"
)

// MaxText is the number of characters kept of a vendor's text.
const MaxText = 300

// clean first replaces each text that it hides by mark, a single character. So an address with a
// secret inside still matches as one address. At the end clean replaces each mark by hidden.
const (
	hidden = "[hidden]"
	mark   = "\uE000"
)

var (
	urlPattern = regexp.MustCompile(`(?i)\b[a-z][a-z0-9+.-]{1,15}://[^\s"'<>）)\]}，。]*`)
	jwtPattern = regexp.MustCompile(`\beyJ[A-Za-z0-9_-]{5,}(?:\.[A-Za-z0-9_-]*){0,2}`)
	// namedPattern matches "Bearer x", "api_key=x", "token: x" and the like.
	namedPattern = regexp.MustCompile(`(?i)\b(bearer|basic|token|(?:api|access|secret)[-_ ]?key(?:[-_ ]?id)?|password|signature)(["']?\s*[:=]\s*["']?|\s+)[^\s"',;]{6,}`)
	keyPattern   = regexp.MustCompile(`\b(?:sk|ak|pk|mgk|whsec)[-_][A-Za-z0-9_+/=-]{6,}`)
	longPattern  = regexp.MustCompile(`[A-Za-z0-9_+/=-]{20,}`)
	ip4Pattern   = regexp.MustCompile(`\b\d{1,3}(?:\.\d{1,3}){3}(?::\d{1,5})?\b`)
	ip6Pattern   = regexp.MustCompile(`\[?[0-9A-Fa-f:]*:[0-9A-Fa-f:]*:[0-9A-Fa-f:.]*\]?(?::\d{1,5})?`)
	hostPattern  = regexp.MustCompile(`(?i)\b(?:[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9])?\.)+[a-z0-9-]{2,63}\.?(?::\d{1,5}\b)?|\blocalhost\b(?::\d{1,5}\b)?`)
)

// cleaner takes secrets, addresses and host names out of texts for clients and logs.
type cleaner struct {
	secrets []string // longest first
	hosts   []string
}

func newCleaner(base string, secrets []mediagate.Secret) *cleaner {
	c := &cleaner{}
	for _, secret := range secrets {
		s := secret.Reveal()
		// To hide a very short secret would blank out common words.
		if len(s) >= 4 {
			c.secrets = append(c.secrets, s, url.QueryEscape(s))
		}
	}
	// The longest comes first, because one secret may be the beginning of another.
	slices.SortFunc(c.secrets, func(a, b string) int {
		return cmp.Or(cmp.Compare(len(b), len(a)), cmp.Compare(a, b))
	})
	c.secrets = slices.Compact(c.secrets)
	return c.at(base)
}

// at returns a cleaner that also hides the host of another base URL.
func (c *cleaner) at(base string) *cleaner {
	u, err := url.Parse(base)
	if err != nil || u.Host == "" {
		return c
	}
	return &cleaner{secrets: c.secrets, hosts: append(slices.Clone(c.hosts), u.Host, u.Hostname())}
}

// Clean makes a vendor's text fit for clients and logs. It hides secrets, tokens, addresses and
// host names, turns control characters into spaces, and keeps at most MaxText characters.
func (c *Client) Clean(text string) string { return c.cleaner.Load().clean(text) }

// EnglishOrEmpty returns the text, or "" if more than a third of its letters are East Asian. The API
// promises messages in English.
func EnglishOrEmpty(text string) string {
	var latin, other int
	for _, r := range text {
		switch {
		case unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul):
			other++
		case unicode.IsLetter(r):
			latin++
		}
	}
	if 2*other > latin { // an East Asian word has fewer letters
		return ""
	}
	return text
}

// ID returns the text if it can be an id of a vendor and contains no secret, else "". Clean would
// hide ids, because they are long and random like keys.
func (c *Client) ID(text Text) string {
	id := text.ID()
	for _, s := range c.cleaner.Load().secrets {
		if strings.Contains(id, s) {
			return ""
		}
	}
	return id
}

func (c *cleaner) clean(text string) string {
	text = strings.Join(strings.FieldsFunc(strings.ToValidUTF8(text, ""), func(r rune) bool {
		return unicode.IsSpace(r) || unicode.IsControl(r) || unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp)
	}), " ")
	for _, s := range c.secrets {
		text = strings.ReplaceAll(text, s, mark)
	}
	// All of our own secrets are hidden by now, so this cut cannot split one. The text after the cut
	// is never shown, so the patterns do not need it.
	if len(text) > 16*MaxText {
		text = strings.ToValidUTF8(text[:16*MaxText], "")
	}
	text = urlPattern.ReplaceAllString(text, mark)
	for _, s := range c.hosts {
		text = strings.ReplaceAll(text, s, mark)
	}
	text = jwtPattern.ReplaceAllString(text, mark)
	text = namedPattern.ReplaceAllStringFunc(text, hideNamed)
	text = keyPattern.ReplaceAllString(text, mark)
	text = longPattern.ReplaceAllStringFunc(text, hideLong)
	text = ip4Pattern.ReplaceAllString(text, mark)
	text = ip6Pattern.ReplaceAllStringFunc(text, hideIP6)
	text = hostPattern.ReplaceAllStringFunc(text, hideHost)
	text = strings.ReplaceAll(text, mark, hidden)
	if utf8.RuneCountInString(text) > MaxText {
		text = string([]rune(text)[:MaxText-1]) + "…"
	}
	return text
}

// hideNamed hides a value and keeps its name. If only a space is between them, hideNamed hides the
// value only if it looks like a token, so "token is invalid" stays.
func hideNamed(s string) string {
	m := namedPattern.FindStringSubmatch(s)
	if value := s[len(m[1])+len(m[2]):]; strings.TrimSpace(m[2]) == "" && !strings.ContainsAny(value, "0123456789_.") {
		return s
	}
	return m[1] + m[2] + mark
}

// hideLong hides ids, keys and hashes. A word without digits stays if it is shorter than 40
// characters.
func hideLong(s string) string {
	if strings.ContainsAny(s, "0123456789") || len(s) >= 40 {
		return mark
	}
	return s
}

func hideIP6(s string) string {
	host := s
	if i := strings.LastIndex(s, "]"); i >= 0 {
		host = s[:i]
	}
	if a, err := netip.ParseAddr(strings.Trim(host, "[]")); err == nil && a.Is6() {
		return mark
	}
	return s
}

// hideHost hides a name that has a port, that ends in a public top-level domain, or that ends in a
// domain that is common inside networks. "input.prompt" and "v2.6" stay.
func hideHost(s string) string {
	host, _, hasPort := strings.Cut(s, ":")
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	last := host[strings.LastIndex(host, ".")+1:]
	_, icann := publicsuffix.PublicSuffix(host)
	private := slices.Contains([]string{
		"localhost", "local", "internal", "intranet", "lan", "home", "corp", "svc", "test",
	}, last)
	if icann || private || hasPort {
		return mark
	}
	return s
}
