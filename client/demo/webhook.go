package main

import (
	"context"
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
	"time"
)

// receiver takes webhooks and verifies them as the Standard Webhooks scheme
// says.
type receiver struct {
	url    string
	secret []byte
	server *http.Server

	mu   sync.Mutex
	seen map[string]error // verdict by webhook id
	news chan struct{}
}

func receive(secret string) (*receiver, error) {
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
	if err != nil {
		return nil, fmt.Errorf("the signing secret is not readable: %w", err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	r := &receiver{
		url: "http://" + listener.Addr().String() + "/hooks", secret: key,
		seen: map[string]error{}, news: make(chan struct{}, 1),
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /hooks/callback", r.handle)
	r.server = &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	go func() { _ = r.server.Serve(listener) }()
	return r, nil
}

func (r *receiver) close() { _ = r.server.Close() }

func (r *receiver) handle(w http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(io.LimitReader(req.Body, 1<<20))
	if err == nil {
		err = r.verify(req.Header, body)
	}
	if err != nil {
		w.WriteHeader(http.StatusUnauthorized)
	}
	r.mu.Lock()
	r.seen[req.Header.Get("webhook-id")] = err
	r.mu.Unlock()
	select {
	case r.news <- struct{}{}:
	default:
	}
}

// verify checks the signature over id, timestamp and body.
func (r *receiver) verify(h http.Header, body []byte) error {
	mac := hmac.New(sha256.New, r.secret)
	_, _ = fmt.Fprintf(mac, "%s.%s.%s", h.Get("webhook-id"), h.Get("webhook-timestamp"), body)
	want := "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
	for got := range strings.FieldsSeq(h.Get("webhook-signature")) {
		if hmac.Equal([]byte(got), []byte(want)) {
			return nil
		}
	}
	return errors.New("the webhook's signature is wrong")
}

// expect waits for the webhook of a task.
func (r *receiver) expect(ctx context.Context, id string) error {
	for {
		r.mu.Lock()
		err, ok := r.seen[id]
		r.mu.Unlock()
		if ok {
			return err
		}
		select {
		case <-r.news:
		case <-ctx.Done():
			return fmt.Errorf("no webhook came for %s", id)
		}
	}
}
