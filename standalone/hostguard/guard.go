package hostguard

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
)

// Names are hosts, without port, under which a server is reachable besides the loopback and the
// address of the connection.
type Names []string

// ParseNames parses a list of hosts separated by commas.
func ParseNames(list string) (Names, error) {
	var names Names
	for name := range strings.SplitSeq(list, ",") {
		name = normalizeName(strings.TrimSpace(name))
		if name == "" {
			continue
		}
		if _, err := netip.ParseAddr(name); err != nil && strings.ContainsAny(name, ":/@*[] ") {
			return nil, fmt.Errorf("%q is no host name: it goes without scheme and port", name)
		}
		names = append(names, name)
	}
	return names, nil
}

// Wrap returns a handler that forwards a request only if its Host is allowed and its Origin, if
// any, is the same host or one of the names. Allowed hosts are the loopback, the address of the
// connection and the names. A request without Host, as in HTTP/1.0, is refused.
func (n Names) Wrap(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case !n.known(r, hostname(r.Host)):
			refuse(w, "this server is not reached under that Host")
		case !n.sameOrigin(r):
			refuse(w, "requests of other origins are refused")
		default:
			next.ServeHTTP(w, r)
		}
	})
}

func refuse(w http.ResponseWriter, text string) {
	w.Header().Set("Connection", "close")
	http.Error(w, text, http.StatusForbidden)
}

// known reports whether host is the loopback, the address of the connection, or one of the
// names.
func (n Names) known(r *http.Request, host string) bool {
	if host == "localhost" || slices.Contains(n, host) {
		return true
	}
	ip, err := netip.ParseAddr(host)
	if err != nil {
		return false
	}
	ip = ip.Unmap()
	local, ok := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr)
	return ip.IsLoopback() || ok && ip == local.AddrPort().Addr().Unmap()
}

// sameOrigin checks the Origin header. A request may have one or none. A page without an origin,
// as in a sandboxed frame, sends null, which is refused.
func (n Names) sameOrigin(r *http.Request) bool {
	origins := r.Header.Values("Origin")
	if len(origins) == 0 {
		return true
	}
	if len(origins) > 1 {
		return false
	}
	u, err := url.Parse(origins[0])
	if err != nil || u.Scheme != "http" && u.Scheme != "https" {
		return false
	}
	return strings.EqualFold(u.Host, r.Host) || slices.Contains(n, normalizeName(u.Hostname()))
}

// hostname returns a Host without port and brackets, or "" if it is not valid.
func hostname(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		return normalizeName(name)
	}
	if inner, ok := strings.CutPrefix(host, "["); ok {
		return normalizeName(strings.TrimSuffix(inner, "]"))
	}
	if strings.Contains(host, ":") {
		return ""
	}
	return normalizeName(host)
}

// normalizeName returns a name in the form in which names are compared.
func normalizeName(name string) string { return strings.ToLower(strings.TrimSuffix(name, ".")) }
