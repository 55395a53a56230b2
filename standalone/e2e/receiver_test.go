package e2e_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mediagate/mediagate/api/openapitest"
)

// receiver receives webhooks as a client's server does. It verifies each by the Standard
// Webhooks scheme, checks it against the OpenAPI document, and keeps it.
type receiver struct {
	url string

	mu        sync.Mutex
	secret    []byte
	contract  *openapitest.Contract
	arrivals  map[string][]arrival // by webhook id
	failFirst int                  // how many deliveries of each webhook id get a 500 first
}

// arrival is one delivery.
type arrival struct {
	body string
	err  error // result of its checks
	at   time.Time
}

func newReceiver(t *testing.T) *receiver {
	t.Helper()
	listener, err := net.Listen("tcp", anyAddr)
	if err != nil {
		t.Fatal(err)
	}
	r := &receiver{url: "http://" + listener.Addr().String() + "/hooks", arrivals: map[string][]arrival{}}
	server := &http.Server{Handler: r, ReadHeaderTimeout: 5 * time.Second}
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(func() { _ = server.Close() })
	return r
}

// setContract sets the document that describes webhooks.
func (r *receiver) setContract(contract *openapitest.Contract) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.contract = contract
}

// setSecret sets the secret with which webhooks are signed.
func (r *receiver) setSecret(t *testing.T, secret string) {
	t.Helper()
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
	if err != nil || len(key) != 32 {
		t.Fatalf("the signing secret is not readable: %v", err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.secret = key
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(io.LimitReader(req.Body, 1<<20))
	r.mu.Lock()
	defer r.mu.Unlock()
	if err == nil {
		err = verify(r.secret, req.Header, body)
	}
	if err == nil && (req.Method != http.MethodPost || req.URL.Path != "/hooks/callback") {
		err = fmt.Errorf("%s %s instead of POST /hooks/callback", req.Method, req.URL.Path)
	}
	if err == nil {
		err = r.contract.CheckCallback(req.Header, body)
	}
	id := req.Header.Get("webhook-id")
	r.arrivals[id] = append(r.arrivals[id], arrival{string(body), err, time.Now()})
	if len(r.arrivals[id]) <= r.failFirst {
		w.WriteHeader(http.StatusInternalServerError)
	}
}

// verify checks the signature over id, timestamp and body.
func verify(secret []byte, h http.Header, body []byte) error {
	mac := hmac.New(sha256.New, secret)
	_, _ = fmt.Fprintf(mac, "%s.%s.%s", h.Get("webhook-id"), h.Get("webhook-timestamp"), body)
	want := "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
	for got := range strings.FieldsSeq(h.Get("webhook-signature")) {
		if hmac.Equal([]byte(got), []byte(want)) {
			return nil
		}
	}
	return errors.New("the signature is wrong")
}

// deliveries returns all deliveries so far.
func (r *receiver) deliveries() map[string][]arrival {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := make(map[string][]arrival, len(r.arrivals))
	for id, list := range r.arrivals {
		out[id] = append([]arrival(nil), list...)
	}
	return out
}
