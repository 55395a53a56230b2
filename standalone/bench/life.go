package main

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/mediagate/mediagate"
)

// life is when what happened to a task. What did not happen is zero.
type life struct {
	submitted time.Time
	accepted  time.Time // by the vendor
	made      time.Time // when the vendor's job was over
	ended     time.Time
	called    time.Time // when its callback came
}

// How the lives of tasks are seen. All times but the submit's are written down
// elsewhere, and need no closer look.
const (
	lifeLook     = 200 * time.Millisecond
	lifePatience = 10 * time.Minute
)

// follow submits a video and follows it to its end, which must be as told, and to
// its callback, if it has one.
func (g *gateway) follow(ctx context.Context, body string, end mediagate.Status) (life, error) {
	l := life{submitted: time.Now()}
	id, err := g.submit(ctx, videoPath, body)
	if err != nil {
		return l, err
	}
	err = until(ctx, "the task has ended", lifeLook, lifePatience, func(ctx context.Context) (bool, error) {
		t, err := g.Store.TaskByID(ctx, id)
		if err != nil || !t.Status.Terminal() {
			return false, err
		}
		if t.Status != end {
			return false, fmt.Errorf("task %s is %s, and not %s", id, t.Status, end)
		}
		l.ended, l.called = t.EndedAt, g.m.customer.calledAt(id)
		return t.Webhook == nil || !l.called.IsZero(), nil
	})
	job := g.m.vendor.job(id)
	l.accepted, l.made = job.accepted, job.ends
	return l, err
}

// itself is the account that it is.
func (g *gateway) itself(context.Context) (*gateway, error) { return g, nil }

// followAll follows that many tasks, submitted one after the other with a gap
// between, each of the account that who returns.
func followAll(ctx context.Context, who func(context.Context) (*gateway, error), tasks int, gap time.Duration, body string, end mediagate.Status) ([]life, error) {
	lives := make([]life, tasks)
	group, ctx := errgroup.WithContext(ctx)
	for i := range lives {
		if err := pause(ctx, gap); err != nil {
			break
		}
		group.Go(func() error {
			g, err := who(ctx)
			if err == nil {
				lives[i], err = g.follow(ctx, body, end)
			}
			return err
		})
	}
	return lives, group.Wait()
}

// spans are how long something of each life took.
func spans(lives []life, of func(life) time.Duration) []time.Duration {
	took := make([]time.Duration, len(lives))
	for i, l := range lives {
		took[i] = of(l)
	}
	return took
}
