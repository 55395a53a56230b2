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

// Names are hosts, without port, under which a server may be reached besides
// the loopback and the address that a connection came to.
type Names []string

// ParseNames reads a list with commas.
func ParseNames(list string) (Names, error) {
	var names Names
	for name := range strings.SplitSeq(list, ",") {
		name = plain(strings.TrimSpace(name))
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

// Wrap lets those requests through whose Host is one of the names, and whose
// Origin, if a browser has sent one, is that same place or one of the names. A
// request without Host, as of HTTP/1.0, names no place and is refused.
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

// known reports whether the host is the loopback, the address that the connection
// came to, or one of the names.
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

// sameOrigin judges the Origin, of which there may be one or none. A page
// without one of its own, as in a sandboxed frame, says null.
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
	return strings.EqualFold(u.Host, r.Host) || slices.Contains(n, plain(u.Hostname()))
}

// hostname is a Host without port and brackets; empty for what is none.
func hostname(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		return plain(name)
	}
	if inner, ok := strings.CutPrefix(host, "["); ok {
		return plain(strings.TrimSuffix(inner, "]"))
	}
	if strings.Contains(host, ":") {
		return ""
	}
	return plain(host)
}

// plain is a name as names are compared.
func plain(name string) string { return strings.ToLower(strings.TrimSuffix(name, ".")) }
