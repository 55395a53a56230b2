package app

import (
	"net/url"
	"strings"

	"github.com/mediagate/mediagate/internal/outbound"
)

// address says which parts a setting has that is an address on the web. A part
// that it does not have is refused: it would be dropped, or spoil what is appended.
type address struct{ path, query bool }

var (
	bareAddress  = address{}                        // scheme, host and port
	baseAddress  = address{path: true}              // what paths are appended to
	wholeAddress = address{path: true, query: true} // asked for as it is
)

// problem is what is wrong with the address; nothing: "".
func (a address) problem(s string) string {
	u, err := url.Parse(s)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Hostname() == "" {
		return "must be an http or https URL"
	}
	if _, err := outbound.Host(s); err != nil {
		return domainMessage(err)
	}
	var extra []string
	if !a.path && strings.Trim(u.Path, "/") != "" {
		extra = append(extra, "no path")
	}
	if !a.query && (u.RawQuery != "" || u.ForceQuery) {
		extra = append(extra, "no query")
	}
	if strings.Contains(s, "#") {
		extra = append(extra, "no fragment")
	}
	if len(extra) > 0 {
		return "must have " + strings.Join(extra, " and ")
	}
	return ""
}

// address checks a setting that may be left out.
func (v *validator) address(path, value string, a address) {
	if value == "" {
		return
	}
	if problem := a.problem(value); problem != "" {
		v.add(path, problem)
	}
}

// isOrigin reports what a browser may send as Origin, or "*". Upper case is no
// difference.
func isOrigin(s string) bool {
	if s == "*" || s == "null" {
		return true
	}
	u, err := url.Parse(s)
	if err != nil || u.Hostname() == "" || u.Scheme == "https" && u.Port() == "443" || u.Scheme == "http" && u.Port() == "80" {
		return false
	}
	return strings.EqualFold(s, u.Scheme+"://"+u.Host)
}

// origins are the settings' as browsers spell them.
func (c Config) origins() []string {
	origins := make([]string, len(c.CORSOrigins))
	for i, origin := range c.CORSOrigins {
		origins[i] = strings.ToLower(origin)
	}
	return origins
}
