package outbound

import "strings"

// Site is a place of our own on the web: a scheme, a host and a port. The zero value is none.
type Site struct{ base target }

// ParseSite reads the address of a site, whose path and query are nothing to it.
func ParseSite(base string) (Site, error) {
	t, err := parse(base)
	if err != nil {
		return Site{}, err
	}
	return Site{base: t}, nil
}

// URL is the address of what has the path below the site.
func (s Site) URL(path string) string { return s.Origin() + "/" + path }

// Origin is that of the site, as browsers spell it; empty for no site.
func (s Site) Origin() string {
	if s.base.url == nil {
		return ""
	}
	u := s.base.canonical()
	return u.Scheme + "://" + u.Host
}

// Path is where a URL leads below the site, as it is escaped, and without its
// query; ok is false when it leads elsewhere. Scheme, host and port must be the
// site's, in any spelling; the path is compared to the letter, and no dots in it
// are followed.
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
