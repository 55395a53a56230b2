package api

import (
	"net/http"
	"slices"
	"strings"

	"github.com/mediagate/mediagate"
)

// cors sets the headers that let a browser's script read the answer. The
// token balance and uploaded files are open to any origin, errors included; all
// else is by the setting. It reports whether the request is a preflight that it admitted.
func (s *Server) cors(c *call) bool {
	header := c.Response().Header()
	origin := c.Request().Header.Get("Origin")
	preflight := c.Request().Method == http.MethodOptions && origin != "" &&
		c.Request().Header.Get("Access-Control-Request-Method") != ""
	if path := c.Request().URL.Path; path == "/v1/balance" || path == "/balance" {
		header.Set("Access-Control-Allow-Origin", "*")
		header.Set("Access-Control-Expose-Headers", exposedHeaders)
		if preflight {
			header.Set("Access-Control-Allow-Methods", http.MethodGet)
			header.Set("Access-Control-Allow-Headers", "Authorization")
			header.Set("Access-Control-Max-Age", preflightAge)
		}
		return preflight
	}
	if strings.HasPrefix(c.Request().URL.Path, "/"+mediagate.FileFolder) { // who has the link may read the file
		header.Set("Access-Control-Allow-Origin", "*")
		header.Set("Access-Control-Expose-Headers", exposedHeaders+", Content-Range, ETag")
		if preflight {
			header.Set("Access-Control-Allow-Methods", http.MethodGet)
			header.Set("Access-Control-Allow-Headers", "Range, If-Range, If-None-Match")
			header.Set("Access-Control-Max-Age", preflightAge)
		}
		return preflight
	}
	if len(s.cfg.CORSOrigins) == 0 {
		return false
	}
	header.Add("Vary", "Origin")
	if origin == "" || (!slices.Contains(s.cfg.CORSOrigins, origin) && !slices.Contains(s.cfg.CORSOrigins, "*")) {
		return false
	}
	header.Set("Access-Control-Allow-Origin", origin)
	header.Set("Access-Control-Expose-Headers", exposedHeaders)
	if preflight {
		header.Set("Access-Control-Allow-Methods", "GET, POST, PATCH, DELETE")
		header.Set("Access-Control-Allow-Headers", "Authorization, Content-Type, Idempotency-Key")
		header.Set("Access-Control-Max-Age", preflightAge)
	}
	return preflight
}

const (
	exposedHeaders = "X-Request-Id, Idempotency-Replayed, Retry-After, RateLimit-Policy, RateLimit"
	preflightAge   = "600"
)
