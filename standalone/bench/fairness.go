package main

import (
	"context"
	"errors"
	"net/http"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/mediagate/mediagate/client"
)

func measureFairness(b *bench) {
	b.part(measureCrowd)
	b.part(measureBacklog)
}

// measureCrowd measures what one client notices of 64 clients of another account that submit as
// fast as the API answers. The floor is what it notices of 64 clients of 64 accounts: they use
// as much of the machine, but share no row. No worker runs.
func measureCrowd(b *bench) {
	g := b.install(time.Second)
	one, many := make([]*client.Client, 64), make([]*client.Client, 64)
	for i := range one {
		one[i], many[i] = g.client, g.customer()
	}
	other := g.customer()
	id, err := other.Submit(b.ctx, video)
	b.check(err)
	read := func(ctx context.Context) error {
		_, err := other.Call(ctx, http.MethodGet, "/v1/tasks/"+id, nil, nil)
		return err
	}
	measure := func(what string, do func(context.Context) error) {
		base, found := b.compare(b.size(6, 3), b.sliceWithCrowd(many, do), b.sliceWithCrowd(one, do))
		b.ratio(what+" beside 64 clients, p50", "of an account each", quantile(found.took, 0.5), quantile(base.took, 0.5), 2)
	}
	measure("submit", submit(other, video))
	measure("read", read)
}

// sliceWithCrowd returns a slice of two seconds. In it, one client calls do again and again while a
// crowd of other clients submits.
func (b *bench) sliceWithCrowd(crowd []*client.Client, do func(context.Context) error) slice {
	return func() (took []time.Duration) {
		busy, stop := context.WithCancel(b.ctx)
		defer stop()
		var group errgroup.Group
		for _, c := range crowd {
			group.Go(func() error {
				for busy.Err() == nil {
					if _, err := c.Submit(busy, video); err != nil && busy.Err() == nil {
						return err
					}
				}
				return nil
			})
		}
		for end := time.Now().Add(2 * time.Second); time.Now().Before(end); b.pause(2 * time.Millisecond) {
			took = append(took, b.times(1, 1, do)...)
		}
		stop()
		b.check(group.Wait())
		return took
	}
}

// measureBacklog measures the first tasks of eight new accounts, alone and beside a backlog of
// another account that is too large for the worker to keep up with. The backlog keeps the
// machine busy all the time, so the ratio includes the time that a step takes on a busy machine.
// The polls come soon after the submit, because otherwise the time of the first poll, which
// depends on the task's id, would decide the result.
func measureBacklog(b *bench) {
	b.vendor.reset(func() time.Duration { return 0 }, false)
	g := b.install(100 * time.Millisecond)
	b.serve(g.RunWorker)
	const accounts = 8
	g.runFirstTasks(accounts) // lets the worker start up
	alone := g.runFirstTasks(accounts)
	backlog := b.size(10_000, 1000)
	b.times(16, backlog, submit(g.client, video))
	b.settle()
	beside := g.runFirstTasks(accounts)
	if b.vendor.accepted() >= backlog+3*accounts {
		b.check(errors.New("the backlog was gone before the newcomers had ended"))
	}
	toVendor := func(l taskTimes) time.Duration { return l.accepted.Sub(l.submitted) }
	toEnd := func(l taskTimes) time.Duration { return l.ended.Sub(l.submitted) }
	const what = "first task beside a backlog, to the "
	b.ratio(what+"vendor, p50", "alone", median(beside, toVendor), median(alone, toVendor), 2)
	b.ratio(what+"end, p50", "alone", median(beside, toEnd), median(alone, toEnd), 2)
}
