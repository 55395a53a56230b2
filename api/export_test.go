package api

import (
	"bytes"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/labstack/echo/v4"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/catalog"
)

// builtIn is the catalog of most tests. It never changes.
var builtIn = sync.OnceValues(func() (*catalog.Catalog, error) { return catalog.Load("") })

// must ends the test with an error.
func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// BuiltIn returns the catalog without a folder of its operator's.
func BuiltIn(t *testing.T) *catalog.Catalog {
	t.Helper()
	c, err := builtIn()
	must(t, err)
	return c
}

// Row is a row of the table of routes.
type Row struct {
	Method, Path string
	Scope        mediagate.Scope
	Keyed        bool // a key is asked for
}

// Rows is the table of routes.
func Rows() (rows []Row) {
	for _, r := range routes() {
		rows = append(rows, Row{r.method, r.path, r.scope, !r.access.keyless() && r.access != accessAdmin})
	}
	return rows
}

// Waiting returns the number of tasks that requests wait for.
func Waiting(s *Server) int {
	s.watch.mu.Lock()
	defer s.watch.mu.Unlock()
	return len(s.watch.waiting)
}

// AwaitStarts returns once no start waits or is under way.
func AwaitStarts(s *Server) {
	s.starts.open.Wait()
}

// Rest sets the time after which a stream sends a comment.
func Rest(s *Server, rest time.Duration) { s.streamInterval = rest }

// Document returns the server's catalog and its OpenAPI document.
func Document(s *Server) (of *catalog.Catalog, text func() ([]byte, error)) {
	m := s.models.Load()
	return m.catalog, func() ([]byte, error) {
		p, err := m.document()
		if err != nil {
			return nil, err
		}
		return p.plain, nil
	}
}

// AdminDocument returns the OpenAPI document of the admin API as JSON.
func AdminDocument() ([]byte, error) {
	text, err := describeAdmin("")
	if err != nil {
		return nil, err
	}
	return yaml.YAMLToJSON(text)
}

// Watch passes every complete answer of the server to a test.
func Watch(s *Server, see func(r *http.Request, status int, header http.Header, body []byte)) {
	s.echo.Pre(func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error {
			copied := &copier{ResponseWriter: c.Response().Writer}
			c.Response().Writer = copied
			err := next(c) // a connection that is cut has no answer, and comes here as a panic
			if !copied.cut {
				see(c.Request(), c.Response().Status, c.Response().Header().Clone(), copied.body.Bytes())
			}
			return err
		}
	})
}

// copier keeps a copy of the written bytes.
type copier struct {
	http.ResponseWriter
	body bytes.Buffer
	cut  bool // not all of it could be written
}

func (c *copier) Write(p []byte) (int, error) {
	n, err := c.ResponseWriter.Write(p)
	_, _ = c.body.Write(p[:n])
	c.cut = c.cut || err != nil
	return n, err
}

// Unwrap is for http.ResponseController.
func (c *copier) Unwrap() http.ResponseWriter { return c.ResponseWriter }

// RouteNames returns the routes of the table as method and path.
func RouteNames() (names []string) {
	for _, r := range routes() {
		names = append(names, r.method+" "+r.path)
	}
	return names
}

// Connections returns the number of open connections. Silent returns the number of idle ones among
// them.
func Connections(s *Server) int {
	open, _ := s.connections.Counts()
	return open
}

// Silent: see Connections.
func Silent(s *Server) int {
	_, silent := s.connections.Counts()
	return silent
}

// The limits of failed tries.
const (
	MaxFailuresOfNetwork = maxFailuresOfNetwork
	MaxFailures          = maxFailures
)

// Suspects returns the number of addresses with recorded failures.
func Suspects(s *Server) int {
	s.throttle.mu.Lock()
	defer s.throttle.mu.Unlock()
	return len(s.throttle.of)
}

// UnknownHere reports that a request came by the listener of clients, while the admin API has
// one of its own.
func UnknownHere(s *Server, r *http.Request) bool {
	return s.cfg.AdminListener != nil && !ThroughAdmin(r)
}

// ThroughAdmin reports that a request came by the admin API's own listener.
func ThroughAdmin(r *http.Request) bool { return r.Context().Value(throughAdmin{}) != nil }
