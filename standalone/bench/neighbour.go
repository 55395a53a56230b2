package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
)

const (
	neighbours   = 64
	neighbourAim = 2.0
)

// measureNeighbour compares what one client notices of 64 clients of another
// account that submit, with what it notices of 64 clients of 64 accounts, who take
// as much of the machine and have no row in common. No worker runs.
func measureNeighbour(ctx context.Context, m *machine, o options) (_ []row, err error) {
	g, err := m.install(ctx, "neighbour", m.channels(time.Second, 1000))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, g.close()) }()
	other, err := g.tenant(ctx)
	if err != nil {
		return nil, err
	}
	body, err := other.post(ctx, videoPath, []byte(videoBody), nil)
	if err != nil {
		return nil, err
	}
	id, err := acknowledged(body)
	if err != nil {
		return nil, err
	}
	one, many := make([]*gateway, neighbours), make([]*gateway, neighbours)
	for i := range neighbours {
		one[i] = g
		if many[i], err = g.tenant(ctx); err != nil {
			return nil, err
		}
	}
	rounds, length := 6, 2*time.Second
	if o.quick {
		rounds = 3
	}
	var rows []row
	for _, part := range []struct {
		what string
		do   func(context.Context) error
	}{
		{"submits", func(ctx context.Context) error {
			_, err := other.post(ctx, videoPath, []byte(videoBody), nil)
			return err
		}},
		{"reads", func(ctx context.Context) error {
			_, err := other.get(ctx, "/v1/tasks/"+id)
			return err
		}},
	} {
		var floor, subject []time.Duration
		for range rounds {
			for _, side := range []struct {
				clients []*gateway
				took    *[]time.Duration
			}{{many, &floor}, {one, &subject}, {one, &subject}, {many, &floor}} {
				if err := amid(ctx, side.clients, length, part.do, side.took); err != nil {
					return nil, err
				}
			}
		}
		ratio := func(q float64) float64 { return float64(quantile(subject, q)) / float64(max(quantile(floor, q), 1)) }
		rows = append(rows, row{
			what:  part.what + " beside 64 clients of one account",
			floor: fmt.Sprintf("beside 64 clients of 64 accounts, p50 %s", quantile(floor, 0.5).Round(100*time.Microsecond)),
			value: fmt.Sprintf("p50 × %.2f, p99 × %.2f", ratio(0.5), ratio(0.99)), aim: fmt.Sprintf("≤ %.2f", neighbourAim),
			met: ratio(0.5) <= neighbourAim,
		})
	}
	return rows, nil
}

// amid does something again and again while the clients submit, and notes how long
// it took each time.
func amid(ctx context.Context, clients []*gateway, length time.Duration, do func(context.Context) error, took *[]time.Duration) error {
	busy, calm := context.WithCancel(ctx)
	defer calm()
	var group errgroup.Group
	for _, c := range clients {
		group.Go(func() error {
			for busy.Err() == nil {
				if _, err := c.post(busy, videoPath, []byte(videoBody), nil); err != nil && busy.Err() == nil {
					return err
				}
			}
			return nil
		})
	}
	var err error
	for began := time.Now(); err == nil && time.Since(began) < length; {
		start := time.Now()
		err = do(ctx)
		*took = append(*took, time.Since(start))
	}
	calm()
	if err := errors.Join(err, group.Wait()); err != nil {
		return err
	}
	return pause(ctx, breath)
}
