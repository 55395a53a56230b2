package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/mediagate/mediagate"
)

const visiblePoll = 2 * time.Second

// measureVisible measures how long after its end at the vendor a task is
// completed, found by polling alone and with the vendor's callbacks.
func measureVisible(ctx context.Context, m *machine) ([]row, error) {
	var rows []row
	for _, part := range []struct {
		name, what, floor string
		called            bool
		aim               time.Duration
	}{
		{"polled", fmt.Sprintf("polled every %s", visiblePoll), "1 s, half the interval", false, visiblePoll/2 + time.Second},
		{"called", "the same, and called back", "", true, time.Second},
	} {
		took, err := m.untilVisible(ctx, part.name, part.called)
		if err != nil {
			return nil, err
		}
		p50 := quantile(took, 0.5)
		rows = append(rows, row{
			what: part.what + ", p50", measured: short(p50), floor: part.floor, aim: "≤ " + short(part.aim), met: p50 <= part.aim,
		})
	}
	return rows, nil
}

// untilVisible has the vendor's ends spread over the poll interval.
func (m *machine) untilVisible(ctx context.Context, name string, called bool) ([]time.Duration, error) {
	m.vendor.reset(func() time.Duration {
		return visiblePoll + time.Duration(rand.Int64N(int64(visiblePoll))) //nolint:gosec // spreading needs no secret numbers
	}, called)
	g, err := m.install(ctx, name, m.channels(visiblePoll))
	if err != nil {
		return nil, err
	}
	m.run(ctx, g.RunWorker)
	lives, err := followAll(ctx, g.itself, m.size(60, 20), lifeLook, videoBody, mediagate.StatusCompleted)
	if err != nil {
		return nil, err
	}
	const first = 5 // these find a worker that is only starting
	return spans(lives[first:], func(l life) time.Duration { return l.ended.Sub(l.made) }), nil
}
