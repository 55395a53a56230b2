package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/mediagate/mediagate/sandbox/sample"
)

const (
	crawlFlood = 400
	crawlGap   = 200 * time.Millisecond // between two tasks of the other account
	crawlAim   = 2.0
)

// fileServer has clients' media: one file comes at once, the other a byte a second.
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
	picture := sample.Image(640, 360)
	mux := http.NewServeMux()
	mux.HandleFunc("GET /good.png", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(picture) })
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

// measureCrawl compares how long after its submit a task that names a file comes to its
// vendor beside 400 of another account, whose files come a byte a second, with the same
// before them.
func measureCrawl(ctx context.Context, m *machine, o options) (_ []row, err error) {
	m.vendor.reset(func(int) time.Duration { return 0 })
	files, err := startFileServer(ctx)
	if err != nil {
		return nil, err
	}
	g, err := m.install(ctx, "crawl", m.channels(100*time.Millisecond, 1000))
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
	body := func(file string) []byte { return []byte(`{"image_urls":["` + files.url + file + `"],` + videoBody[1:]) }
	come := func(tasks int) ([]time.Duration, error) {
		took := make([]time.Duration, tasks)
		err := times(ctx, tasks, tasks, func(ctx context.Context, i int) error {
			if err := pause(ctx, time.Duration(i)*crawlGap); err != nil {
				return err
			}
			began := time.Now()
			ack, err := other.post(ctx, videoPath, body("/good.png"), nil)
			if err != nil {
				return err
			}
			id, err := acknowledged(ack)
			if err != nil {
				return err
			}
			err = until(ctx, "the vendor has the job", 10*time.Minute, func(context.Context) (bool, error) { return !m.vendor.end(id).IsZero(), nil })
			took[i] = m.vendor.end(id).Sub(began)
			return err
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
		what:  fmt.Sprintf("submit to vendor, with a file, beside %d whose files come a byte a second", crawlFlood),
		floor: fmt.Sprintf("the same alone, p50 %s", floor.Round(time.Millisecond)),
		value: fmt.Sprintf("p50 %s, p99 %s: × %.2f", subject.Round(time.Millisecond), quantile(beside, 0.99).Round(time.Millisecond), ratio),
		aim:   fmt.Sprintf("≤ %.2f", crawlAim), met: ratio <= crawlAim,
	}}, err
}
