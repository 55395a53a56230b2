package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/mediagate/mediagate/client"
)

// receiver receives webhooks.
type receiver struct {
	url    string
	server *http.Server
	came   chan webhook
}

// webhook is a received webhook: the task, or the reason why the signature is not valid.
type webhook struct {
	task client.Task
	err  error
}

// receive serves webhooks until close is called.
func receive(secret string) (*receiver, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	r := &receiver{url: "http://" + listener.Addr().String() + "/hooks", came: make(chan webhook, 100)}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /hooks/callback", func(w http.ResponseWriter, req *http.Request) {
		body, err := io.ReadAll(io.LimitReader(req.Body, 1<<20))
		var event client.Event
		if err == nil {
			event, err = client.VerifyWebhook(secret, req.Header, body)
		}
		if err != nil {
			w.WriteHeader(http.StatusUnauthorized)
			r.came <- webhook{err: err}
			return
		}
		r.came <- webhook{task: *event.Task}
	})
	r.server = &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	go func() { _ = r.server.Serve(listener) }()
	return r, nil
}

func (r *receiver) close() { _ = r.server.Close() }

// expect waits for the webhook of a task. The demo starts a task only after the webhook of the
// one before has arrived.
func (r *receiver) expect(ctx context.Context, id string) (client.Task, error) {
	for {
		select {
		case hook := <-r.came:
			if hook.err != nil || hook.task.ID == id {
				return hook.task, hook.err
			}
		case <-ctx.Done():
			return client.Task{}, fmt.Errorf("no webhook came for %s", id)
		}
	}
}
