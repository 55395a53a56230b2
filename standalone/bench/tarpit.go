package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/task"
	"github.com/mediagate/mediagate/workflows"
)

const (
	tarpitFlood = 330
	tarpitGap   = 200 * time.Millisecond // between two tasks of the other account
	tarpitAim   = 2.0
	tarpitPath  = "/tarpit"
	goodPath    = "/good"
)

// hookReceiver takes callbacks: below one path it answers at once, below the other
// never.
type hookReceiver struct {
	url    string
	server *http.Server
	served chan error
	closed chan struct{}

	mu   sync.Mutex
	came map[string]time.Time // by task: the first time
	held int
}

func startHookReceiver(ctx context.Context) (*hookReceiver, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	r := &hookReceiver{
		url: "http://" + listener.Addr().String(), served: make(chan error, 1), closed: make(chan struct{}), came: map[string]time.Time{},
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST "+goodPath+"/callback", func(_ http.ResponseWriter, req *http.Request) {
		r.mu.Lock()
		defer r.mu.Unlock()
		if id := req.Header.Get("webhook-id"); r.came[id].IsZero() {
			r.came[id] = time.Now()
		}
	})
	mux.HandleFunc("POST "+tarpitPath+"/callback", func(_ http.ResponseWriter, req *http.Request) {
		r.mu.Lock()
		r.held++
		r.mu.Unlock()
		select {
		case <-req.Context().Done():
		case <-r.closed:
		}
	})
	r.server = &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	go func() { r.served <- r.server.Serve(listener) }()
	return r, nil
}

func (r *hookReceiver) close() error {
	close(r.closed)
	err := r.server.Close()
	if served := <-r.served; !errors.Is(served, http.ErrServerClosed) {
		err = errors.Join(err, served)
	}
	return err
}

func (r *hookReceiver) at(id string) time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.came[id]
}

func (r *hookReceiver) holds() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.held
}

// measureTarpit compares how long after its task's end a callback comes beside
// those of another account, whose receiver never answers, with the same before
// them. Both receivers have the same address.
func measureTarpit(ctx context.Context, m *machine, o options) (_ []row, err error) {
	m.vendor.reset(func(int) time.Duration { return 0 })
	receiver, err := startHookReceiver(ctx)
	if err != nil {
		return nil, err
	}
	g, err := m.install(ctx, "tarpit", m.channels(100*time.Millisecond, 1000))
	if err != nil {
		return nil, errors.Join(err, receiver.close())
	}
	g.closers = append([]func() error{receiver.close}, g.closers...)
	defer func() { err = errors.Join(err, g.close()) }()
	other, err := g.tenant(ctx)
	if err != nil {
		return nil, err
	}
	flood, err := g.endedWithCallbacks(ctx, receiver.url+tarpitPath)
	if err != nil {
		return nil, err
	}
	worker, err := startProcess(ctx, o, "worker", g.Config)
	if err != nil {
		return nil, err
	}
	g.closers = append(g.closers, func() error { return worker.stop() })
	tasks := 100
	if o.quick {
		tasks = 40
	}
	if _, err := other.callbacks(ctx, receiver, 5); err != nil { // until the worker has started, and knows its way
		return nil, err
	}
	alone, err := other.callbacks(ctx, receiver, tasks)
	if err != nil {
		return nil, err
	}
	if err := g.deliverAll(ctx, m, flood); err != nil {
		return nil, err
	}
	if err := until(ctx, "the tarpit holds callbacks", time.Minute, func(context.Context) (bool, error) { return receiver.holds() >= 40, nil }); err != nil {
		return nil, err
	}
	beside, err := other.callbacks(ctx, receiver, tasks)
	if err != nil {
		return nil, err
	}
	left, err := g.Store.TaskByID(ctx, flood[len(flood)-1])
	if err == nil && left.Webhook.State != mediagate.WebhookPending {
		err = errors.New("the tarpit's callbacks were over before the others had come")
	}
	if err != nil {
		return nil, err
	}
	_, _ = fmt.Fprintf(o.verbose, "bench:   tarpit: alone %v; beside %v; %d attempts held\n", alone, beside, receiver.holds())
	floor, subject := quantile(alone, 0.99), quantile(beside, 0.99)
	ratio := float64(subject) / float64(max(floor, 1))
	return []row{{
		what:  fmt.Sprintf("end to callback beside %d to a receiver that never answers", tarpitFlood),
		floor: fmt.Sprintf("the same alone, p50 %s, p99 %s", quantile(alone, 0.5).Round(time.Millisecond), floor.Round(time.Millisecond)),
		value: fmt.Sprintf("p50 %s, p99 %s: × %.2f", quantile(beside, 0.5).Round(time.Millisecond), subject.Round(time.Millisecond), ratio),
		aim:   fmt.Sprintf("≤ %.2f", tarpitAim), met: ratio <= tarpitAim,
	}}, nil
}

// endedWithCallbacks makes tasks that have failed, each with a callback to
// deliver. No run has touched them.
func (g *gateway) endedWithCallbacks(ctx context.Context, hook string) ([]string, error) {
	ids := make([]string, tarpitFlood)
	body := []byte(`{"webhook":"` + hook + `",` + videoBody[1:])
	err := times(ctx, 4, tarpitFlood, func(ctx context.Context, i int) error {
		ack, err := g.post(ctx, videoPath, body, nil)
		if err != nil {
			return err
		}
		if ids[i], err = acknowledged(ack); err != nil {
			return err
		}
		_, err = g.Store.Change(ctx, ids[i], task.FailRequested{}, task.EndDue{})
		return err
	})
	return ids, err
}

// deliverAll starts the callbacks of these tasks, and returns once they are on
// their way.
func (g *gateway) deliverAll(ctx context.Context, m *machine, ids []string) error {
	c, err := m.temporalClient(g)
	if err != nil {
		return err
	}
	engine := workflows.Client{Temporal: c}
	return times(ctx, 8, len(ids), func(ctx context.Context, i int) error {
		return engine.EnsureRound(ctx, mediagate.WebhookRound{TaskID: ids[i], AccountID: g.key.AccountID, Round: 1})
	})
}

// callbacks submits tasks and measures how long after their end the receiver hears
// of it.
func (g *gateway) callbacks(ctx context.Context, r *hookReceiver, tasks int) ([]time.Duration, error) {
	took := make([]time.Duration, tasks)
	body := []byte(`{"webhook":"` + r.url + goodPath + `",` + videoBody[1:])
	group, groupCtx := errgroup.WithContext(ctx)
	for i := range tasks {
		if err := pause(groupCtx, tarpitGap); err != nil {
			break
		}
		group.Go(func() error {
			ack, err := g.post(groupCtx, videoPath, body, nil)
			if err != nil {
				return err
			}
			id, err := acknowledged(ack)
			if err != nil {
				return err
			}
			if err := until(groupCtx, "the callback comes", 5*time.Minute, func(context.Context) (bool, error) { return !r.at(id).IsZero(), nil }); err != nil {
				return err
			}
			t, err := g.Store.TaskByID(groupCtx, id)
			took[i] = r.at(id).Sub(t.EndedAt)
			return err
		})
	}
	return took, group.Wait()
}
