package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/mediagate/mediagate/cmd/mediagate/app"
)

const (
	sickPoll   = 500 * time.Millisecond
	sickGap    = 40 * time.Millisecond // between two submits of a client
	sickBurst  = 250                   // more than the calls to one channel at once
	sickP50    = 1.25                  // times that of a calm installation
	sickP99    = 2.0
	frozen     = 10 * time.Second // from the submit to the vendor: nobody would call that undisturbed
	sickBody   = `{"model": "alpha-video-o1", "prompt": "a red kite over a green hill", "duration": 5}`
	sickRounds = 5
)

// measureFailover measures what tasks notice of another channel that answers
// with errors.
func measureFailover(ctx context.Context, m *machine, o options) ([]row, error) {
	return measureSick(ctx, m, o, "failover", sickError)
}

// measureHang is the same with a vendor that never answers.
func measureHang(ctx context.Context, m *machine, o options) ([]row, error) {
	return measureSick(ctx, m, o, "hang", sickHang)
}

// latencies are of tasks that have nothing to do with the sick channel.
type latencies struct{ acknowledged, accepted []time.Duration }

func (l *latencies) add(more latencies) {
	l.acknowledged, l.accepted = append(l.acknowledged, more.acknowledged...), append(l.accepted, more.accepted...)
}

// measureSick takes two installations in turns. Each has an account that the
// tasks go to which are measured, and one of the same provider that as many
// others go to. That one is sick at the second installation.
func measureSick(ctx context.Context, m *machine, o options, name string, how sickness) (_ []row, err error) {
	m.vendor.reset(func(int) time.Duration { return 0 })
	var calm, struck *gateway
	for _, each := range []struct {
		g      **gateway
		name   string
		prefix string
	}{{&calm, name + "calm", neighbourPrefix}, {&struck, name + "struck", sickPrefix}} {
		channels := m.channels(sickPoll, 1000)
		channels[0].Models = []string{"alpha-v3"}
		channels = append(channels, app.Channel{
			Name: "kling-sick", Provider: "kling", BaseURL: m.vendor.url + each.prefix, Credentials: map[string]string{"api_key": m.secret + "2"},
			Models: []string{"alpha-video-o1"}, Weight: 1, RequestsPerSecond: 1000, PollInterval: app.PollInterval{Min: sickPoll, Max: sickPoll},
		})
		g, err := m.install(ctx, each.name, channels)
		if err != nil {
			return nil, err
		}
		*each.g = g
		defer func() { err = errors.Join(err, g.close()) }()
		w, err := startProcess(ctx, o, "worker", g.Config)
		if err != nil {
			return nil, err
		}
		g.closers = append(g.closers, w.stop)
	}
	m.vendor.fallSick(how)
	defer m.vendor.fallSick(well) // who hangs is let go before the installations close
	rounds, jobs := sickRounds, 100
	if o.quick {
		rounds, jobs = 2, 50
	}
	for _, g := range []*gateway{calm, struck} { // warm up
		if _, err := g.beside(ctx, m.vendor, 10); err != nil {
			return nil, err
		}
	}
	for _, g := range []*gateway{calm, struck} {
		if err := times(ctx, 8, sickBurst, func(ctx context.Context, _ int) error {
			_, err := g.post(ctx, videoPath, []byte(sickBody), nil)
			return err
		}); err != nil {
			return nil, err
		}
	}
	var floor, subject latencies
	for n := range rounds {
		order := []*gateway{calm, struck}
		if n%2 == 1 {
			order = []*gateway{struck, calm}
		}
		for _, g := range order {
			got, err := g.beside(ctx, m.vendor, jobs)
			if err != nil {
				return nil, err
			}
			if g == calm {
				floor.add(got)
			} else {
				subject.add(got)
			}
			if err := pause(ctx, breath); err != nil {
				return nil, err
			}
		}
	}
	what := map[sickness]string{sickError: "answers 500", sickHang: "hangs"}[how]
	rows := []row{
		beside("acknowledged while another channel "+what, floor.acknowledged, subject.acknowledged),
		beside("submit to vendor while another channel "+what, floor.accepted, subject.accepted),
	}
	if how == sickHang {
		longest := quantile(subject.accepted, 1)
		rows = append(rows, row{
			what: "a vendor that never answers freezes nobody", floor: "longest, submit to vendor",
			value: longest.Round(time.Millisecond).String(), aim: fmt.Sprintf("≤ %s", frozen), met: longest <= frozen,
		})
	}
	return rows, nil
}

// beside submits jobs at a steady pace, and as many to the other account, and
// measures the first.
func (g *gateway) beside(ctx context.Context, v *vendor, jobs int) (latencies, error) {
	got := latencies{make([]time.Duration, jobs), make([]time.Duration, jobs)}
	var group sync.WaitGroup
	failed := make([]error, 2*jobs)
	for i := range jobs {
		group.Go(func() { got.acknowledged[i], got.accepted[i], failed[2*i] = g.reaches(ctx, v) })
		group.Go(func() { _, failed[2*i+1] = g.post(ctx, videoPath, []byte(sickBody), nil) })
		if err := pause(ctx, sickGap); err != nil {
			return got, err
		}
	}
	group.Wait()
	return got, errors.Join(failed...)
}

// reaches submits a task and returns how long it took to be acknowledged, and
// until the vendor had it.
func (g *gateway) reaches(ctx context.Context, v *vendor) (acknowledged, accepted time.Duration, err error) {
	began := time.Now()
	body, err := g.post(ctx, videoPath, []byte(videoBody), nil)
	if err != nil {
		return 0, 0, err
	}
	acknowledged = time.Since(began)
	var ack struct {
		Data []struct {
			TaskID string `json:"task_id"`
		} `json:"data"`
	}
	if err := json.Unmarshal(body, &ack); err != nil || len(ack.Data) != 1 {
		return 0, 0, fmt.Errorf("no acknowledgement: %.100s", body)
	}
	id := ack.Data[0].TaskID
	err = until(ctx, "the vendor has the job", 2*time.Minute, func(context.Context) (bool, error) { return !v.end(id).IsZero(), nil })
	return acknowledged, v.end(id).Sub(began), err // jobs end as they begin
}

// beside is a row of latencies: the smaller, the better.
func beside(what string, floor, subject []time.Duration) row {
	ratio := func(q float64) float64 { return float64(quantile(subject, q)) / float64(max(quantile(floor, q), 1)) }
	p50, p99 := ratio(0.5), ratio(0.99)
	return row{
		what: what, floor: fmt.Sprintf("the same undisturbed, p50 %s", quantile(floor, 0.5).Round(100*time.Microsecond)),
		value: fmt.Sprintf("p50 × %.2f, p99 × %.2f", p50, p99), aim: fmt.Sprintf("≤ %.2f, ≤ %.2f", sickP50, sickP99),
		met: p50 <= sickP50 && p99 <= sickP99,
	}
}
