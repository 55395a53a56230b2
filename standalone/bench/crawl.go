package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/mediagate/mediagate/cmd/mediagate/app"
	"github.com/mediagate/mediagate/sandbox/sample"
)

const (
	crawlFlood = 400
	crawlGap   = 200 * time.Millisecond // between two tasks of the other account
	crawlAim   = 2.0
)

// fileServer has clients' media: one file is too small and comes at once, the other a byte
// a second.
type fileServer struct {
	url    string
	server *http.Server
	served chan error
	crawls atomic.Int64 // that were begun
}

func startFileServer(ctx context.Context) (*fileServer, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s := &fileServer{url: "http://" + listener.Addr().String(), served: make(chan error, 1)}
	small, picture := sample.Image(16, 16), sample.Image(640, 360)
	mux := http.NewServeMux()
	mux.HandleFunc("GET /small.png", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(small) })
	mux.HandleFunc("GET /crawl.png", func(w http.ResponseWriter, r *http.Request) {
		s.crawls.Add(1)
		for i := 0; i < len(picture) && r.Context().Err() == nil; i++ {
			_, _ = w.Write(picture[i : i+1])
			_ = http.NewResponseController(w).Flush()
			_ = pause(r.Context(), time.Second)
		}
	})
	s.server = &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	go func() { s.served <- s.server.Serve(listener) }()
	return s, nil
}

func (s *fileServer) close() error {
	err := s.server.Close()
	if served := <-s.served; !errors.Is(served, http.ErrServerClosed) {
		err = errors.Join(err, served)
	}
	return err
}

// measureCrawl compares how long after its submit a task ends whose file is found to be
// no good, beside 400 of another account, whose files come a byte a second, with the same
// before them.
func measureCrawl(ctx context.Context, m *machine, o options) (_ []row, err error) {
	files, err := startFileServer(ctx)
	if err != nil {
		return nil, err
	}
	g, err := m.install(ctx, "crawl", append(m.channels(time.Second, 1000), app.Channel{
		Name: "vidu", Provider: "vidu", BaseURL: m.vendor.url, Credentials: map[string]string{"api_key": m.secret},
		Weight: 1, RequestsPerSecond: 1000, PollInterval: app.PollInterval{Min: time.Second, Max: time.Second},
	}))
	if err != nil {
		return nil, errors.Join(err, files.close())
	}
	g.closers = append([]func() error{files.close}, g.closers...)
	defer func() { err = errors.Join(err, g.close()) }()
	other, err := g.tenant(ctx)
	if err != nil {
		return nil, err
	}
	worker, err := startProcess(ctx, o, "worker", g.Config)
	if err != nil {
		return nil, err
	}
	g.closers = append(g.closers, func() error { return worker.stop() })
	body := func(file string) []byte {
		return []byte(`{"model":"beta-q3-mix","prompt":"a lighthouse","image_urls":["` + files.url + file + `"]}`)
	}
	come := func(tasks int) ([]time.Duration, error) {
		took := make([]time.Duration, tasks)
		err := times(ctx, tasks, tasks, func(ctx context.Context, i int) error {
			if err := pause(ctx, time.Duration(i)*crawlGap); err != nil {
				return err
			}
			began := time.Now()
			ack, err := other.post(ctx, videoPath, body("/small.png"), nil)
			if err != nil {
				return err
			}
			id, err := acknowledged(ack)
			if err != nil {
				return err
			}
			return until(ctx, "the task ends", 10*time.Minute, func(ctx context.Context) (bool, error) {
				task, err := g.Store.TaskByID(ctx, id)
				took[i] = task.EndedAt.Sub(began)
				return task.Status.Terminal(), err
			})
		})
		return took, err
	}
	tasks := 100
	if o.quick {
		tasks = 40
	}
	if _, err := come(5); err != nil { // until the worker has started, and knows its way
		return nil, err
	}
	alone, err := come(tasks)
	if err != nil {
		return nil, err
	}
	if err := times(ctx, 8, crawlFlood, func(ctx context.Context, _ int) error {
		_, err := g.post(ctx, videoPath, body("/crawl.png"), nil)
		return err
	}); err != nil {
		return nil, err
	}
	if err := until(ctx, "files crawl", time.Minute, func(context.Context) (bool, error) { return files.crawls.Load() >= 30, nil }); err != nil {
		return nil, err
	}
	if err := until(ctx, "all runs of the crowd are at the check", time.Minute, func(ctx context.Context) (begun bool, err error) {
		err = g.tables.QueryRowContext(ctx, "SELECT count(*) = 0 FROM wakes WHERE wake_at < now() + interval '5 minutes'").Scan(&begun)
		return begun, err
	}); err != nil {
		return nil, err
	}
	beside, err := come(tasks)
	if err != nil {
		return nil, err
	}
	open, err := g.open(ctx)
	if err == nil && open == 0 {
		err = errors.New("the crowd was over before the others had come")
	}
	_, _ = fmt.Fprintf(o.verbose, "bench:   crawl: alone %v; beside %v; %d still open\n", alone, beside, open)
	floor, subject := quantile(alone, 0.5), quantile(beside, 0.5)
	ratio := float64(subject) / float64(max(floor, 1))
	return []row{{
		what:  fmt.Sprintf("submit to end of a task whose file is no good, beside %d whose files come a byte a second", crawlFlood),
		floor: fmt.Sprintf("the same alone, p50 %s", floor.Round(time.Millisecond)),
		value: fmt.Sprintf("p50 %s, p99 %s: × %.2f", subject.Round(time.Millisecond), quantile(beside, 0.99).Round(time.Millisecond), ratio),
		aim:   fmt.Sprintf("≤ %.2f", crawlAim), met: ratio <= crawlAim,
	}}, err
}
