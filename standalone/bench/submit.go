package main

import (
	"context"
	"crypto/sha256"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/workflows"
)

// measureSubmits measures bursts of submits while no worker runs, against the
// bare transactions of the same rows. The slowest answers are held against a
// transaction and a start, one after the other: who waits for Temporal waits as
// long. Then it compares accounts with limits and without, and OpenAI's form with ours.
func measureSubmits(ctx context.Context, m *machine) ([]row, error) {
	g, err := m.install(ctx, "submit", m.channels(time.Second))
	if err != nil {
		return nil, err
	}
	var rows []row
	for _, part := range []struct {
		what    string
		clients int
		keyed   bool
	}{
		{"8 clients", 8, false},
		{"32 clients", 32, false},
		{"8 clients, with Idempotency-Key", 8, true},
	} {
		found, err := g.measureBurst(ctx, part.what, part.clients, part.keyed)
		if err != nil {
			return nil, err
		}
		rows = append(rows, found...)
	}
	limited, err := g.limited(ctx)
	if err != nil {
		return nil, err
	}
	for _, clients := range []int{8, 32} {
		c, err := compare(ctx, m.size(8, 4), m.startsRest, repeat(clients, time.Second, g.submits), repeat(clients, time.Second, limited.submits))
		if err != nil {
			return nil, err
		}
		rows = append(rows, rateRow(fmt.Sprintf("with all limits on, %d clients", clients), "without limits", c, 0.9))
	}
	openAI := func(ctx context.Context) error {
		_, err := g.post(ctx, "/v1/videos", openAIBody, nil)
		return err
	}
	c, err := compare(ctx, m.size(8, 4), m.startsRest, repeat(8, time.Second, g.submits), repeat(8, time.Second, openAI))
	if err != nil {
		return nil, err
	}
	return append(rows, rateRow("in OpenAI's form, 8 clients", "in our own", c, 0.9)), nil
}

func (g *gateway) measureBurst(ctx context.Context, what string, clients int, keyed bool) ([]row, error) {
	s, err := newStage(g)
	if err != nil {
		return nil, err
	}
	bare, err := g.temporalClient()
	if err != nil {
		return nil, err
	}
	var keys atomic.Int64
	key := func() string {
		if !keyed {
			return ""
		}
		return fmt.Sprintf("key-%d", keys.Add(1))
	}
	store := func(ctx context.Context) (mediagate.Task, error) {
		return s.taken(ctx, key(), sha256.Sum256([]byte(videoBody)))
	}
	tasks := g.m.size(2000, 500)
	transactions := times(clients, tasks, func(ctx context.Context) error {
		_, err := store(ctx)
		return err
	})
	withStarts := times(clients, tasks, func(ctx context.Context) error {
		t, err := store(ctx)
		if err != nil {
			return err
		}
		return workflows.Client{Temporal: bare}.Start(ctx, t)
	})
	submits := times(clients, tasks, func(ctx context.Context) error {
		header := http.Header{}
		if keyed {
			header.Set("Idempotency-Key", key())
		}
		_, err := g.post(ctx, videoPath, videoBody, header)
		return err
	})
	c, err := compare(ctx, g.m.size(3, 2), g.m.startsRest, transactions, submits)
	if err != nil {
		return nil, err
	}
	c.byCPU = false // starts run while answers are given
	slow, err := withStarts(ctx)
	if err != nil {
		return nil, err
	}
	return []row{
		rateRow(fmt.Sprintf("burst of %d, %s", tasks, what), "the bare transactions", c, 0.5),
		timeRow("the same", "transaction and start", 0.99, c.subject, slow, 1),
	}, g.m.startsRest(ctx)
}

// startsRest returns when no more runs of tasks are started. They would weigh on
// what is measured next.
func (m *machine) startsRest(ctx context.Context) error {
	before := -1
	return until(ctx, "no more runs are started", breath, time.Minute, func(ctx context.Context) (bool, error) {
		now, err := m.workflows(ctx, "starts_with(workflow_id, 'task_')")
		still := now == before
		before = now
		return still, err
	})
}

// limited is the installation as an account and a key with all limits see it,
// which no measurement reaches.
func (g *gateway) limited(ctx context.Context) (*gateway, error) {
	const ample = 100_000_000
	return g.as(ctx, grant, mediagate.AccountLimits{Rate: new(ample), InFlight: new(ample)}, mediagate.Key{
		Quota: grant, Rate: new(ample), InFlight: new(ample),
		Caps: mediagate.Caps{Day: new(grant), Week: new(grant), Month: new(grant)},
	})
}
