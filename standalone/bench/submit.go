package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	"go.temporal.io/sdk/client"
)

const (
	videoPath = "/v1/videos/generations"
	imagePath = "/v1/images/generations"

	videoBody = `{"model": "alpha-v3", "prompt": "a red kite over a green hill, slowly turning in the evening wind", "duration": 5}`
	imageBody = `{"model": "theta-image-turbo", "prompt": "a red kite over a green hill"}`
)

// measureSubmits compares acknowledged submits with bare starts of workflows,
// with the same number of clients, while no worker runs.
func measureSubmits(ctx context.Context, m *machine, o options) (_ []row, err error) {
	g, err := m.install(ctx, "submit", m.channels(time.Second, 1000))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, g.close()) }()
	bare, err := m.temporalClient(g)
	if err != nil {
		return nil, err
	}
	rounds, length := 6, time.Second
	if o.quick {
		rounds = 3
	}
	var count atomic.Int64
	start := func(ctx context.Context) error {
		_, err := bare.ExecuteWorkflow(ctx, client.StartWorkflowOptions{
			ID: fmt.Sprintf("bare-%d", count.Add(1)), TaskQueue: "nobody",
		}, "Bare", "task")
		return err
	}
	submit := func(ctx context.Context) error {
		_, err := g.post(ctx, videoPath, []byte(videoBody), nil)
		return err
	}
	retriable := func(ctx context.Context) error {
		_, err := g.post(ctx, videoPath, []byte(videoBody), http.Header{"Idempotency-Key": {fmt.Sprintf("key-%d", count.Add(1))}})
		return err
	}
	var rows []row
	for _, part := range []struct {
		what    string
		clients int
		do      func(context.Context) error
	}{
		{"submits, 8 clients", 8, submit},
		{"submits, 32 clients", 32, submit},
		{"submits with Idempotency-Key, 8 clients", 8, retriable},
	} {
		slice := func(do func(context.Context) error) slice {
			return func(ctx context.Context) (float64, error) { return repeat(ctx, part.clients, length, do) }
		}
		if _, err := repeat(ctx, part.clients, length, part.do); err != nil { // warm up
			return nil, err
		}
		c, err := compare(ctx, rounds, o, part.what, slice(start), slice(part.do))
		if err != nil {
			return nil, err
		}
		rows = append(rows, ratioRow(part.what, "StartWorkflow alone", c, 0.7))
	}
	return rows, nil
}
