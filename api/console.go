package api

import (
	"cmp"
	"fmt"
	"io/fs"
	"net/http"
	"path"
	"strings"

	"github.com/mediagate/mediagate"
)

// The console is a single-page application: for every path below /console that has no file, the
// answer is index.html, which shows the page of that path.

const (
	consolePath   = "/console"
	consoleFiles  = consolePath + "/*"
	consoleAssets = "assets/" // file names change with the content
	consoleIndex  = "index.html"
)

// consoleTypes are the media types of the console's files. They do not depend on the machine's
// own table.
var consoleTypes = map[string]string{
	".html":  "text/html; charset=utf-8",
	".js":    "text/javascript; charset=utf-8",
	".css":   "text/css; charset=utf-8",
	".json":  "application/json",
	".svg":   "image/svg+xml",
	".png":   "image/png",
	".ico":   "image/x-icon",
	".woff2": "font/woff2",
	".txt":   "text/plain; charset=utf-8",
}

// console holds the web application's files, and the policy that says where a page may load from.
type console struct {
	files  map[string]*published // nil if the program was built without a console
	policy string
}

// newConsole reads the files into memory. media lists the origins that serve the files of tasks.
func newConsole(files fs.FS, media []string) (*console, error) {
	from := strings.Join(media, " ")
	c := &console{policy: strings.Join([]string{
		"default-src 'none'",
		"script-src 'self'",
		"style-src 'self'",
		"font-src 'self'",
		strings.TrimSpace("img-src 'self' data: blob: " + from),
		strings.TrimSpace("media-src 'self' blob: " + from),
		strings.TrimSpace("connect-src 'self' " + from),
		"form-action 'self'",
		"base-uri 'none'",
		"frame-ancestors 'none'",
	}, "; ")}
	if files == nil {
		return c, nil
	}
	c.files = map[string]*published{}
	err := fs.WalkDir(files, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := fs.ReadFile(files, name)
		if err != nil {
			return err
		}
		p := publish(text)
		p.format = cmp.Or(consoleTypes[path.Ext(name)], "application/octet-stream")
		p.caching = "no-cache"
		if strings.HasPrefix(name, consoleAssets) {
			p.caching = "public, max-age=31536000, immutable"
		}
		c.files[name] = p
		return nil
	})
	if err == nil && c.files[consoleIndex] == nil {
		err = fmt.Errorf("api: Config.Console has no %s", consoleIndex)
	}
	return c, err
}

// asksForConsole reports whether a browser asks for /, which is no route. Such a request is
// redirected to the console.
func (s *Server) asksForConsole(r *http.Request) bool {
	return s.console.files != nil && r.URL.Path == "/" && (r.Method == http.MethodGet || r.Method == http.MethodHead) &&
		strings.Contains(r.Header.Get("Accept"), "text/html")
}

func (s *Server) handleConsole(c *call) error {
	header := c.Response().Header()
	for name, value := range map[string]string{
		"Content-Security-Policy":    s.console.policy,
		"X-Content-Type-Options":     "nosniff",
		"Referrer-Policy":            "no-referrer",
		"Cross-Origin-Opener-Policy": "same-origin",
		"X-Frame-Options":            "DENY",
	} {
		header.Set(name, value)
	}
	name := strings.TrimPrefix(strings.TrimPrefix(c.Request().URL.Path, consolePath), "/")
	file := s.console.files[name]
	switch {
	case s.console.files == nil:
		return c.String(http.StatusNotFound, "This build has no console: build it with Node to have one.\n")
	case file == nil && strings.HasPrefix(name, consoleAssets):
		// During an update a process of another version may have the file, so no cache may keep this answer.
		header.Set("Cache-Control", "no-store")
		return mediagate.Errorf(mediagate.KindNotFound, "no such file: %s", requestLine(c.Request()))
	case file == nil:
		file = s.console.files[consoleIndex]
	}
	c.publish(file)
	return nil
}
