package api

import (
	"net/http"
	"slices"
	"strings"

	"github.com/mediagate/mediagate"
)

// cors sets the headers that let a browser's script read the answer. It reports
// whether the request is a preflight that it admitted: that is allowed the headers
// which it asks for, whatever they are, since nothing but a key decides here.
func (s *Server) cors(c *call) bool {
	header, request := c.Response().Header(), c.Request()
	origin := request.Header.Get("Origin")
	methods := http.MethodGet
	if openToAll(request.URL.Path) {
		header.Set("Access-Control-Allow-Origin", "*")
	} else {
		if len(s.cfg.CORSOrigins) == 0 {
			return false
		}
		header.Add("Vary", "Origin")
		if origin == "" || (!slices.Contains(s.cfg.CORSOrigins, origin) && !slices.Contains(s.cfg.CORSOrigins, "*")) {
			return false
		}
		header.Set("Access-Control-Allow-Origin", origin)
		methods = "GET, POST, PATCH, DELETE"
	}
	header.Set("Access-Control-Expose-Headers", exposedHeaders)
	if request.Method != http.MethodOptions || origin == "" || request.Header.Get("Access-Control-Request-Method") == "" {
		return false
	}
	header.Set("Access-Control-Allow-Methods", methods)
	header.Add("Vary", "Access-Control-Request-Headers")
	if asked := strings.Join(request.Header.Values("Access-Control-Request-Headers"), ", "); asked != "" {
		header.Set("Access-Control-Allow-Headers", asked)
	}
	header.Set("Access-Control-Max-Age", preflightAge)
	return true
}

// openToAll reports what any origin may read, errors included: the token balance,
// and uploaded files, whose links are keys enough.
func openToAll(path string) bool {
	return path == "/v1/balance" || path == "/balance" || strings.HasPrefix(path, "/"+mediagate.FileFolder)
}

const (
	exposedHeaders = "Content-Disposition, Content-Range, ETag, Idempotency-Replayed, Link, " +
		"RateLimit, RateLimit-Policy, Retry-After, X-Request-Id"
	preflightAge = "600"
)
