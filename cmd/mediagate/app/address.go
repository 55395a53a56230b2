package app

import (
	"net/url"
	"strings"

	"github.com/mediagate/mediagate/internal/outbound"
)

// address says which parts the URL in a setting may have. Other parts are refused, since they
// would be dropped or would spoil what is appended.
type address struct{ path, query bool }

var (
	bareAddress  = address{}                        // scheme, host and port
	baseAddress  = address{path: true}              // a base that paths are appended to
	wholeAddress = address{path: true, query: true} // used as it is
)

// problem says what is wrong with the address. It returns "" for a valid one.
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

// address checks a setting that may be empty.
func (v *validator) address(path, value string, a address) {
	if value == "" {
		return
	}
	if problem := a.problem(value); problem != "" {
		v.add(path, problem)
	}
}

// isOrigin reports whether s is a value that browsers may send as Origin, in any letter case, or
// "*".
func isOrigin(s string) bool {
	if s == "*" || s == "null" {
		return true
	}
	u, err := url.Parse(s)
	if err != nil || u.Hostname() == "" || u.Scheme == "https" && u.Port() == "443" ||
		u.Scheme == "http" && u.Port() == "80" {
		return false
	}
	return strings.EqualFold(s, u.Scheme+"://"+u.Host)
}

// origins returns the CORS origins in the spelling of browsers.
func (c Config) origins() []string {
	origins := make([]string, len(c.CORSOrigins))
	for i, origin := range c.CORSOrigins {
		origins[i] = strings.ToLower(origin)
	}
	return origins
}
