package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"golang.org/x/sync/errgroup"
)

const (
	visiblePoll = 2 * time.Second
	visibleGap  = 200 * time.Millisecond // between two submits
	visibleLook = 50 * time.Millisecond  // between two reads of a task
)

// measureVisible measures how long after its end at the vendor a task shows
// as completed, found by polling alone and with the vendor's callbacks. The vendor's
// ends are spread over the poll interval.
func measureVisible(ctx context.Context, m *machine, o options) ([]row, error) {
	polled, err := m.visible(ctx, o, "visible", false)
	if err != nil {
		return nil, err
	}
	called, err := m.visible(ctx, o, "called", true)
	return []row{polled, called}, err
}

func (m *machine) visible(ctx context.Context, o options, name string, called bool) (_ row, err error) {
	m.vendor.reset(func(int) time.Duration {
		return visiblePoll + time.Duration(rand.Int64N(int64(visiblePoll))) //nolint:gosec // spreading needs no secret numbers
	})
	how, aim := fmt.Sprintf("polled every %s", visiblePoll), visiblePoll/2+time.Second
	if called {
		m.vendor.callBack()
		how, aim = how+", called back", time.Second
	}
	g, err := m.install(ctx, name, m.channels(visiblePoll, 1000))
	if err != nil {
		return row{}, err
	}
	defer func() { err = errors.Join(err, g.close()) }()
	stop := g.work(ctx)
	tasks := 60
	if o.quick {
		tasks = 20
	}
	delays := make([]time.Duration, tasks)
	group, groupCtx := errgroup.WithContext(ctx)
	for i := range tasks {
		if err := pause(groupCtx, visibleGap); err != nil {
			break
		}
		group.Go(func() (err error) {
			delays[i], err = g.delay(groupCtx, m.vendor)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return row{}, err
	}
	// The first tasks find a worker that is only starting.
	delays = delays[min(5, len(delays)-1):]
	p50 := quantile(delays, 0.5)
	return row{
		what: "vendor's end to completed, p50", floor: how,
		value: fmt.Sprintf("%s (p95 %s)", p50.Round(10*time.Millisecond), quantile(delays, 0.95).Round(10*time.Millisecond)), aim: fmt.Sprintf("≤ %s", aim), met: p50 <= aim,
	}, stop()
}

// delay submits a task and returns how long after the vendor's end it shows
// as completed.
func (g *gateway) delay(ctx context.Context, v *vendor) (time.Duration, error) {
	return g.delayWithin(ctx, v, time.Minute)
}

// delayWithin is delay for jobs that take their time.
func (g *gateway) delayWithin(ctx context.Context, v *vendor, patience time.Duration) (time.Duration, error) {
	body, err := g.post(ctx, videoPath, []byte(videoBody), nil)
	if err != nil {
		return 0, err
	}
	var ack struct {
		Data []struct {
			TaskID string `json:"task_id"`
		} `json:"data"`
	}
	if err := json.Unmarshal(body, &ack); err != nil || len(ack.Data) != 1 {
		return 0, fmt.Errorf("no acknowledgement: %.100s", body)
	}
	id := ack.Data[0].TaskID
	var seen time.Time
	err = until(ctx, "the task is completed", patience, func(ctx context.Context) (bool, error) {
		if end := v.end(id); end.IsZero() || time.Now().Before(end) {
			return false, nil
		}
		if err := pause(ctx, visibleLook); err != nil {
			return false, err
		}
		body, err := g.get(ctx, "/v1/tasks/"+id)
		if err != nil {
			return false, err
		}
		var answer struct {
			Data struct {
				Status string `json:"status"`
			} `json:"data"`
		}
		if err := json.Unmarshal(body, &answer); err != nil {
			return false, err
		}
		switch answer.Data.Status {
		case "completed":
			seen = time.Now()
			return true, nil
		case "pending", "processing":
			return false, nil
		default:
			return false, fmt.Errorf("task %s ended as %s", id, answer.Data.Status)
		}
	})
	return seen.Sub(v.end(id)), err
}
