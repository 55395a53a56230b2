package providertest

import (
	"cmp"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// Fault is how an answer fails on its way.
type Fault int

// The faults. All of them happen after the request was read.
const (
	NoFault   Fault = iota
	StallHead       // sends nothing until the client leaves
	StallBody       // sends the head and half of the body, then nothing
	CutHead         // closes the connection without an answer
	CutBody         // closes the connection in the middle of the body
	Huge            // never ends the body
)

// Reply is one scripted answer.
type Reply struct {
	Status int // 0: 200
	Header map[string]string
	Body   string
	Fault  Fault
	// Echo makes the body from the request, for vendors that repeat parts of it.
	Echo func(Request) string
}

// Request is a request as the vendor received it.
type Request struct {
	Method string
	Path   string // including the query
	Host   string
	Header http.Header
	Body   string

	route string // the route that answered it; empty: none
}

// String returns method and path, such as "DELETE /v1/jobs/7", and the body on a line of its own.
func (r Request) String() string {
	return strings.TrimSpace(r.Method + " " + r.Path + "\n" + r.Body)
}

// Vendor is a server that follows a script. Requests of a route set by On get the replies of that
// route. All others get the next reply in line, or a 500 at the end of the line.
type Vendor struct {
	URL string

	mu       sync.Mutex
	line     []Reply
	routes   *http.ServeMux
	byRoute  map[string][]Reply
	requests []Request
}

// NewVendor starts a vendor that stops at the end of the test.
func NewVendor(tb testing.TB, line ...Reply) *Vendor {
	tb.Helper()
	v := &Vendor{line: line, routes: http.NewServeMux(), byRoute: map[string][]Reply{}}
	server := httptest.NewServer(v)
	tb.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	v.URL = server.URL
	return v
}

// Add appends replies to the line.
func (v *Vendor) Add(replies ...Reply) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.line = append(v.line, replies...)
}

// reset deletes the recorded requests and replaces the line.
func (v *Vendor) reset(replies ...Reply) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.line, v.requests = replies, nil
}

// On sets the replies to the requests of a route, such as "GET /v1/files/{id}". The last reply
// serves all further requests. On replaces earlier replies of the route.
func (v *Vendor) On(route string, replies ...Reply) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if _, ok := v.byRoute[route]; !ok {
		v.routes.HandleFunc(route, http.NotFound)
	}
	v.byRoute[route] = slices.Clone(replies)
}

// Requests returns the requests received so far.
func (v *Vendor) Requests() []Request {
	v.mu.Lock()
	defer v.mu.Unlock()
	return slices.Clone(v.requests)
}

// Unrouted returns the requests that no route answered.
func (v *Vendor) Unrouted() []Request { return v.RequestsOn("") }

// RequestsOn returns the requests of a route.
func (v *Vendor) RequestsOn(route string) []Request {
	return slices.DeleteFunc(v.Requests(), func(r Request) bool { return r.route != route })
}

func (v *Vendor) next(r *Request, raw *http.Request) Reply {
	v.mu.Lock()
	defer v.mu.Unlock()
	_, route := v.routes.Handler(raw)
	replies, ok := v.byRoute[route]
	if ok {
		r.route = route
	}
	v.requests = append(v.requests, *r)
	switch {
	case len(replies) == 1:
		return replies[0]
	case len(replies) > 1:
		v.byRoute[route] = replies[1:]
		return replies[0]
	case len(v.line) == 0 || ok:
		return Reply{Status: http.StatusInternalServerError, Body: `{"message":"the script has ended"}`}
	}
	reply := v.line[0]
	v.line = v.line[1:]
	return reply
}

// ServeHTTP records the request and plays the next reply.
func (v *Vendor) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	req := Request{Method: r.Method, Path: r.URL.RequestURI(), Host: r.Host, Header: r.Header.Clone(), Body: string(body)}
	reply := v.next(&req, r)
	if reply.Echo != nil {
		reply.Body = reply.Echo(req)
	}
	switch reply.Fault {
	case StallHead:
		<-r.Context().Done()
		return
	case CutHead:
		panic(http.ErrAbortHandler) // closes the connection
	case NoFault, StallBody, CutBody, Huge:
	}
	w.Header().Set("Content-Type", "application/json")
	for name, value := range reply.Header {
		w.Header().Set(name, value)
	}
	if reply.Fault == StallBody || reply.Fault == CutBody {
		w.Header().Set("Content-Length", strconv.Itoa(len(reply.Body)))
	}
	w.WriteHeader(cmp.Or(reply.Status, http.StatusOK))
	switch reply.Fault {
	case NoFault:
		_, _ = io.WriteString(w, reply.Body)
	case StallBody:
		half(w, reply.Body)
		<-r.Context().Done()
	case CutBody:
		half(w, reply.Body)
		panic(http.ErrAbortHandler)
	case Huge:
		_, _ = io.WriteString(w, `{"filler":"`)
		chunk := strings.Repeat("x", 64<<10)
		for r.Context().Err() == nil {
			if _, err := io.WriteString(w, chunk); err != nil {
				return
			}
		}
	case StallHead, CutHead:
	}
}

func half(w http.ResponseWriter, body string) {
	_, _ = io.WriteString(w, body[:len(body)/2])
	_ = http.NewResponseController(w).Flush()
}
