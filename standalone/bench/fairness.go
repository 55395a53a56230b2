package main

import (
	"context"
	"fmt"
	"time"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/cmd/mediagate/app"
)

// fairnessAim is how many times as long something may take beside another
// account's crowd.
const fairnessAim = 2.0

// measureFairness compares what one account notices beside another one's crowd
// with the same without it. There is a crowd for each thing that accounts share.
func measureFairness(ctx context.Context, m *machine) ([]row, error) {
	var rows []row
	for _, part := range []measure{measureNeighbour, measureBodies, measureWorker, measureSlots, measureTarpit, measureCrawl} {
		found, err := m.measure(ctx, part)
		if err != nil {
			return nil, err
		}
		rows = append(rows, found...)
	}
	return rows, nil
}

// siege is a crowd, and the tasks of other accounts that come before and beside it.
type siege struct {
	name     string
	channels []app.Channel
	job      time.Duration // at the vendor
	newcomer bool          // each of the other tasks is of an account of its own, else all of one
	tasks    int           // of other accounts
	gap      time.Duration // between them
	body     string
	end      mediagate.Status
	come     func(context.Context, *gateway) error // returns when the crowd of that account is there
	left     string                                // rows that the crowd has as long as it is there
}

// lives are how those tasks fared alone, and beside the crowd.
func (s siege) lives(ctx context.Context, m *machine) (alone, beside []life, err error) {
	m.vendor.reset(func() time.Duration { return s.job }, false)
	g, err := m.install(ctx, s.name, s.channels)
	if err != nil {
		return nil, nil, err
	}
	if _, err := m.start(ctx, "worker", g.Config); err != nil {
		return nil, nil, err
	}
	other, err := g.tenant(ctx)
	if err != nil {
		return nil, nil, err
	}
	who := other.itself
	if s.newcomer {
		who = g.tenant
	}
	if _, err := followAll(ctx, who, 5, s.gap, s.body, s.end); err != nil { // until the worker knows its way
		return nil, nil, err
	}
	if alone, err = followAll(ctx, who, s.tasks, s.gap, s.body, s.end); err != nil {
		return nil, nil, err
	}
	if err := s.come(ctx, g); err != nil {
		return nil, nil, err
	}
	if beside, err = followAll(ctx, who, s.tasks, s.gap, s.body, s.end); err != nil {
		return nil, nil, err
	}
	left, err := g.count(ctx, s.left)
	if err == nil && left == 0 {
		err = fmt.Errorf("%s: the crowd was gone before the others had come", s.name)
	}
	return alone, beside, err
}

// submitToVendor and the others are what lives are compared by.
func submitToVendor(l life) time.Duration { return l.accepted.Sub(l.submitted) }
func submitToEnd(l life) time.Duration    { return l.ended.Sub(l.submitted) }
func endToCallback(l life) time.Duration  { return l.called.Sub(l.ended) }

// newcomers are the first tasks of accounts beside a backlog.
func (m *machine) newcomers(name string, job, poll time.Duration) (s siege, backlog int) {
	backlog = m.size(10_000, 1000)
	return siege{
		name: name, channels: m.channels(poll), job: job, newcomer: true, tasks: 8, gap: 500 * time.Millisecond,
		body: videoBody, end: mediagate.StatusCompleted, left: openTasks,
		come: func(ctx context.Context, g *gateway) error {
			if _, err := times(16, backlog, g.submits)(ctx); err != nil {
				return err
			}
			return m.startsRest(ctx)
		},
	}, backlog
}

// measureWorker has a backlog wait for a worker that does not keep up. It leaves no
// moment of the machine free, so the ratio has in it what a step takes on a busy
// machine. Jobs are looked at soon: the moment of the first look is a matter of the
// task's id, and should not decide.
func measureWorker(ctx context.Context, m *machine) ([]row, error) {
	s, backlog := m.newcomers("worker", 0, 100*time.Millisecond)
	alone, beside, err := s.lives(ctx, m)
	what := fmt.Sprintf("task beside a backlog of %d, to the ", backlog)
	return []row{
		timeRow(what+"vendor", "alone", 0.5, spans(beside, submitToVendor), spans(alone, submitToVendor), fairnessAim),
		timeRow(what+"end", "alone", 0.5, spans(beside, submitToEnd), spans(alone, submitToEnd), fairnessAim),
	}, err
}

// measureSlots has a backlog wait in the queue of a channel that takes so many jobs
// at once.
func measureSlots(ctx context.Context, m *machine) ([]row, error) {
	const slots = 32
	s, backlog := m.newcomers("slots", 4*time.Second, time.Second)
	s.channels[0].Concurrency = slots
	submit := s.come
	s.come = func(ctx context.Context, g *gateway) error {
		before := m.vendor.taken()
		if err := submit(ctx, g); err != nil {
			return err
		}
		return until(ctx, "the backlog is queued", 500*time.Millisecond, 30*time.Minute, func(ctx context.Context) (bool, error) {
			queued, err := g.count(ctx, "queue")
			return m.vendor.taken()-before+queued >= backlog, err
		})
	}
	alone, beside, err := s.lives(ctx, m)
	return []row{timeRow(fmt.Sprintf("task beside %d that wait for %d slots, to the end", backlog, slots), "alone", 0.5,
		spans(beside, submitToEnd), spans(alone, submitToEnd), fairnessAim)}, err
}

// measureTarpit has many callbacks go to a receiver that never answers. That of the
// others has the same address.
func measureTarpit(ctx context.Context, m *machine) ([]row, error) {
	const crowd = 330
	hooked := func(path string) string { return `{"webhook":"` + m.customer.url + path + `",` + videoBody[1:] }
	s := siege{
		name: "tarpit", channels: m.channels(100 * time.Millisecond), tasks: m.size(100, 40), gap: 200 * time.Millisecond,
		body: hooked(goodHook), end: mediagate.StatusCompleted, left: "tasks WHERE webhook_state = 'pending'",
		come: func(ctx context.Context, g *gateway) error {
			if _, err := times(8, crowd, func(ctx context.Context) error {
				_, err := g.submit(ctx, videoPath, hooked(tarpit))
				return err
			})(ctx); err != nil {
				return err
			}
			return until(ctx, "the tarpit holds callbacks", 100*time.Millisecond, 5*time.Minute, func(ctx context.Context) (bool, error) {
				open, err := g.count(ctx, openTasks)
				return open == 0 && m.customer.held.Load() >= 40, err
			})
		},
	}
	alone, beside, err := s.lives(ctx, m)
	return []row{timeRow(fmt.Sprintf("callback beside %d that are never answered", crowd), "alone", 0.99,
		spans(beside, endToCallback), spans(alone, endToCallback), fairnessAim)}, err
}

// measureCrawl has many files of a client come a byte a second. Those of the others
// come at once, and are found to be no good.
func measureCrawl(ctx context.Context, m *machine) ([]row, error) {
	const crowd = 400
	body := func(file string) string {
		return `{"model":"beta-q3-mix","prompt":"a lighthouse","image_urls":["` + m.customer.url + file + `"]}`
	}
	s := siege{
		name: "crawl", channels: m.channels(time.Second), tasks: m.size(100, 40), gap: 200 * time.Millisecond,
		body: body(smallFile), end: mediagate.StatusFailed, left: openTasks,
		come: func(ctx context.Context, g *gateway) error {
			if _, err := times(8, crowd, func(ctx context.Context) error {
				_, err := g.submit(ctx, videoPath, body(crawlFile))
				return err
			})(ctx); err != nil {
				return err
			}
			return until(ctx, "all runs of the crowd are at the check", 100*time.Millisecond, 2*time.Minute, func(ctx context.Context) (bool, error) {
				before, err := g.count(ctx, "wakes WHERE wake_at < now() + interval '5 minutes'")
				return before == 0 && m.customer.crawls.Load() >= 30, err
			})
		},
	}
	alone, beside, err := s.lives(ctx, m)
	return []row{timeRow(fmt.Sprintf("check of a bad file beside %d that crawl, to the end", crowd), "alone", 0.5,
		spans(beside, submitToEnd), spans(alone, submitToEnd), fairnessAim)}, err
}
