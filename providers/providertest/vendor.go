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

// Fault is how an answer goes wrong on its way.
type Fault int

// The faults. All of them happen after the request was read.
const (
	NoFault   Fault = iota
	StallHead       // no byte is answered until the client leaves
	StallBody       // the head is answered, and half of the body
	CutHead         // the connection is closed without an answer
	CutBody         // the connection is closed in the middle of the body
	Huge            // the body does not end
)

// Reply is one scripted answer.
type Reply struct {
	Status int // 0: 200
	Header map[string]string
	Body   string
	Fault  Fault
	// Echo makes the body from the request, for vendors that repeat what
	// they were told.
	Echo func(Request) string
}

// Request is what the vendor was sent.
type Request struct {
	Method string
	Path   string // with the query
	Host   string
	Header http.Header
	Body   string

	route string // that answers it; empty: the next in line
}

// String is "DELETE /v1/jobs/7", with the body in a line of its own.
func (r Request) String() string {
	return strings.TrimSpace(r.Method + " " + r.Path + "\n" + r.Body)
}

// Vendor is a server that answers by script: by method and path where On says
// so, any other request with the next reply in line. What the script does not
// foresee is answered 500.
type Vendor struct {
	URL string

	mu       sync.Mutex
	line     []Reply
	routes   *http.ServeMux
	byRoute  map[string][]Reply
	requests []Request
}

// NewVendor starts a vendor that ends with the test.
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

// Add appends to the line.
func (v *Vendor) Add(replies ...Reply) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.line = append(v.line, replies...)
}

// reset forgets what was sent and what was to be answered.
func (v *Vendor) reset(replies ...Reply) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.line, v.requests = replies, nil
}

// On answers the requests of a route, as "GET /v1/files/{id}", with the
// replies in turn; the last one is for all that follow. It replaces what the
// route had.
func (v *Vendor) On(route string, replies ...Reply) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if _, ok := v.byRoute[route]; !ok {
		v.routes.HandleFunc(route, http.NotFound)
	}
	v.byRoute[route] = slices.Clone(replies)
}

// Requests returns what was sent so far.
func (v *Vendor) Requests() []Request {
	v.mu.Lock()
	defer v.mu.Unlock()
	return slices.Clone(v.requests)
}

// InLine returns those of the requests that no route answers.
func (v *Vendor) InLine() []Request { return v.RequestsOn("") }

// RequestsOn returns those of a route.
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
		panic(http.ErrAbortHandler) // the server's own way to cut a connection
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
