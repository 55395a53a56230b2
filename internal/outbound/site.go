package outbound

import "strings"

// Site is the scheme, host and port of one of our own addresses. The zero value is no site.
type Site struct{ base target }

// ParseSite parses the address of a site and ignores its path and query.
func ParseSite(base string) (Site, error) {
	t, err := parse(base)
	if err != nil {
		return Site{}, err
	}
	return Site{base: t}, nil
}

// URL returns the URL of a path on the site.
func (s Site) URL(path string) string { return s.Origin() + "/" + path }

// Origin returns the site's origin as browsers spell it; empty for no site.
func (s Site) Origin() string {
	if s.base.url == nil {
		return ""
	}
	u := s.base.canonical()
	return u.Scheme + "://" + u.Host
}

// Path returns the escaped path of a URL of the site, without its query. ok is false for a URL of
// another site. Scheme, host and port may be in any spelling. Path keeps dots in the path as they
// are.
func (s Site) Path(raw string) (path string, ok bool) {
	if s.base.url == nil {
		return "", false
	}
	t, err := parse(raw)
	if err != nil || t.url.Scheme != s.base.url.Scheme || t.host != s.base.host || t.port != s.base.port {
		return "", false
	}
	return strings.CutPrefix(t.url.EscapedPath(), "/")
}
