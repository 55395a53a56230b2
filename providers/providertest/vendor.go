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
}

// Vendor is a server that answers by script, one reply a request. A request
// that the script does not foresee is answered 500.
type Vendor struct {
	URL string

	mu       sync.Mutex
	script   []Reply
	requests []Request
}

// NewVendor starts a vendor that ends with the test.
func NewVendor(tb testing.TB, script ...Reply) *Vendor {
	tb.Helper()
	v := &Vendor{script: script}
	server := httptest.NewServer(v)
	tb.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	v.URL = server.URL
	return v
}

// Add appends to the script.
func (v *Vendor) Add(replies ...Reply) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.script = append(v.script, replies...)
}

// Requests returns what was sent so far.
func (v *Vendor) Requests() []Request {
	v.mu.Lock()
	defer v.mu.Unlock()
	return slices.Clone(v.requests)
}

func (v *Vendor) next(r Request) Reply {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.requests = append(v.requests, r)
	if len(v.script) == 0 {
		return Reply{Status: http.StatusInternalServerError, Body: `{"message":"the script has ended"}`}
	}
	reply := v.script[0]
	v.script = v.script[1:]
	return reply
}

// ServeHTTP records the request and plays the next reply.
func (v *Vendor) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	req := Request{Method: r.Method, Path: r.URL.RequestURI(), Host: r.Host, Header: r.Header.Clone(), Body: string(body)}
	reply := v.next(req)
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
