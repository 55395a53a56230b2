package main

import (
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mediagate/mediagate/sandbox/sample"
)

const (
	smallFile = "/small.png" // is too small for a video, and comes at once
	crawlFile = "/crawl.png" // comes a byte a second
	goodHook  = "/good"      // is answered at once
	tarpit    = "/tarpit"    // is never answered
)

// customer is the side of our clients: it has their files, and takes the callbacks.
type customer struct {
	url    string
	close  func()
	crawls atomic.Int64 // that were begun
	held   atomic.Int64 // callbacks that came into the tarpit

	mu     sync.Mutex
	called map[string]time.Time // when a task's callback came first
}

func startCustomer() *customer {
	c := &customer{called: map[string]time.Time{}}
	small, picture := sample.Image(16, 16), sample.Image(640, 360)
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+smallFile, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(small) })
	mux.HandleFunc("GET "+crawlFile, func(w http.ResponseWriter, r *http.Request) {
		c.crawls.Add(1)
		for i := 0; i < len(picture) && r.Context().Err() == nil; i++ {
			_, _ = w.Write(picture[i : i+1])
			_ = http.NewResponseController(w).Flush()
			_ = pause(r.Context(), time.Second)
		}
	})
	mux.HandleFunc("POST "+goodHook+"/callback", func(_ http.ResponseWriter, r *http.Request) {
		c.mu.Lock()
		defer c.mu.Unlock()
		if id := r.Header.Get("webhook-id"); c.called[id].IsZero() {
			c.called[id] = time.Now()
		}
	})
	mux.HandleFunc("POST "+tarpit+"/callback", func(_ http.ResponseWriter, r *http.Request) {
		c.held.Add(1)
		<-r.Context().Done()
	})
	server := httptest.NewServer(mux)
	c.url = server.URL
	c.close = func() {
		server.CloseClientConnections()
		server.Close()
	}
	return c
}

// calledAt is when the callback of a task came, or zero.
func (c *customer) calledAt(taskID string) time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.called[taskID]
}
