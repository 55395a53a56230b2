package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/mediagate/mediagate/cmd/mediagate/app"
)

const (
	sickPoll     = 30 * time.Second       // of jobs that do not end, so that they cost next to nothing
	sickGap      = 200 * time.Millisecond // between two pairs: well below what the machine can do
	sickBurst    = 250                    // more than the calls to one channel at once
	sickJobs     = 50                     // pairs: a round is over before a call to the vendor times out
	sickRounds   = 10
	sickPatience = 10 * time.Second
	sickP50      = 1.25 // times that of a calm installation
	sickP99      = 2.0
	frozen       = 10 * time.Second // from the submit to the vendor: nobody would call that undisturbed
	sickBody     = `{"model": "alpha-video-o1", "prompt": "a red kite over a green hill", "duration": 5}`
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

// latency is of a task that has nothing to do with the sick channel.
type latency struct{ acknowledged, accepted time.Duration }

type latencies []latency

// of are the durations that pick picks.
func (l latencies) of(pick func(latency) time.Duration) []time.Duration {
	all := make([]time.Duration, len(l))
	for i := range l {
		all[i] = pick(l[i])
	}
	return all
}

func untilAcknowledged(l latency) time.Duration { return l.acknowledged }
func untilAccepted(l latency) time.Duration     { return l.accepted }

// String is for -v.
func (l latencies) String() string {
	acknowledged, accepted := l.of(untilAcknowledged), l.of(untilAccepted)
	return fmt.Sprintf("acknowledged p50 %s p99 %s, at the vendor p50 %s p99 %s",
		quantile(acknowledged, 0.5), quantile(acknowledged, 0.99), quantile(accepted, 0.5), quantile(accepted, 0.99))
}

// measureSick takes two installations at once. Each has an account that the
// tasks go to which are measured, and one of the same provider that as many
// others go to. That one is sick at the second installation.
func measureSick(ctx context.Context, m *machine, o options, name string, how sickness) ([]row, error) {
	rounds := sickRounds
	if o.quick {
		rounds = 3
	}
	var floor, subject latencies
	for n := range rounds {
		f, s, err := m.sickRound(ctx, o, fmt.Sprint(name, n), how)
		if err != nil {
			return nil, err
		}
		floor, subject = append(floor, f...), append(subject, s...)
		_, _ = fmt.Fprintf(o.verbose, "bench:   %s: round %d: calm %s; struck %s\n", name, n+1, f, s)
	}
	what := map[sickness]string{sickError: "answers 500", sickHang: "hangs"}[how]
	rows := []row{
		beside("acknowledged while another channel "+what, floor.of(untilAcknowledged), subject.of(untilAcknowledged)),
		beside("submit to vendor while another channel "+what, floor.of(untilAccepted), subject.of(untilAccepted)),
	}
	if how == sickHang {
		longest := quantile(subject.of(untilAccepted), 1)
		rows = append(rows, row{
			what: "a vendor that never answers freezes nobody", floor: "longest, submit to vendor",
			value: longest.Round(time.Millisecond).String(), aim: fmt.Sprintf("≤ %s", frozen), met: longest <= frozen,
		})
	}
	return rows, nil
}

// sickRound is one round, at new installations: a channel that has been found
// out is asked for nothing more, and what waits for it is tried elsewhere. Both
// get a burst of tasks for the channel. Once it is dealt with as far as it can be,
// those are measured that have nothing to do with it, in pairs: whatever
// else the machine does strikes both.
//
// Jobs do not end, so that both have the same to do: else it would be measured
// that the sick vendor's tasks spare the machine their polls and files.
func (m *machine) sickRound(ctx context.Context, o options, name string, how sickness) (floor, subject latencies, err error) {
	m.vendor.reset(func(int) time.Duration { return never })
	calm, err := m.beside(ctx, o, name+"calm", neighbourPrefix)
	if err != nil {
		return floor, subject, err
	}
	defer func() { err = errors.Join(err, calm.close()) }()
	struck, err := m.beside(ctx, o, name+"struck", sickPrefix)
	if err != nil {
		return floor, subject, err
	}
	defer func() { err = errors.Join(err, struck.close()) }()
	for range 5 { // until the workers have started, and know their way
		for _, g := range []*gateway{calm, struck} {
			if _, err := g.reaches(ctx, m.vendor); err != nil {
				return floor, subject, err
			}
		}
	}
	before := m.vendor.taken()
	m.vendor.fallSick(how)
	defer m.vendor.fallSick(well) // who hangs is let go before the installations close
	for _, g := range []*gateway{struck, calm} {
		if err := times(ctx, 8, sickBurst, func(ctx context.Context, _ int) error {
			_, err := g.post(ctx, videoPath, []byte(sickBody), nil)
			return err
		}); err != nil {
			return floor, subject, err
		}
	}
	if err := until(ctx, "the burst has its jobs", time.Minute, func(context.Context) (bool, error) {
		return m.vendor.taken() >= before+sickBurst, nil
	}); err != nil {
		return floor, subject, err
	}
	if err := m.even(ctx, calm, struck); err != nil {
		return floor, subject, err
	}
	subject, floor = make(latencies, sickJobs), make(latencies, sickJobs)
	var group errgroup.Group
	for i := range sickJobs {
		order := []func() error{
			func() (err error) { floor[i], err = calm.reaches(ctx, m.vendor); return err },
			func() (err error) { subject[i], err = struck.reaches(ctx, m.vendor); return err },
		}
		for _, g := range []*gateway{calm, struck} {
			order = append(order, func() error { _, err := g.post(ctx, videoPath, []byte(sickBody), nil); return err })
		}
		if i%2 == 1 {
			slices.Reverse(order)
		}
		for _, submit := range order {
			group.Go(submit)
		}
		if err := pause(ctx, sickGap); err != nil {
			return floor, subject, errors.Join(err, group.Wait())
		}
	}
	return floor, subject, group.Wait()
}

// even waits until the struck installation, too, is through with its burst: a
// refusal is more to do than a job, and may take longer. It is when three tasks
// in a row are about as fast as at the other. One that does not come to it is
// measured as it is.
func (m *machine) even(ctx context.Context, calm, struck *gateway) error {
	near, began := 0, time.Now()
	for near < 3 && time.Since(began) < sickPatience {
		var with, without latency
		var group errgroup.Group
		group.Go(func() (err error) { without, err = calm.reaches(ctx, m.vendor); return err })
		group.Go(func() (err error) { with, err = struck.reaches(ctx, m.vendor); return err })
		if err := group.Wait(); err != nil {
			return err
		}
		if near++; with.accepted > 2*without.accepted {
			near = 0
		}
	}
	return nil
}

// beside makes an installation with a channel beside the measured one, at the
// vendor's prefix, and starts its worker.
func (m *machine) beside(ctx context.Context, o options, name, prefix string) (*gateway, error) {
	channels := m.channels(sickPoll, 1000)
	channels[0].Models = []string{"alpha-v3"}
	channels = append(channels, app.Channel{
		Name: "kling-sick", Provider: "kling", BaseURL: m.vendor.url + prefix, Credentials: map[string]string{"api_key": m.secret + "2"},
		Models: []string{"alpha-video-o1"}, Weight: 1, RequestsPerSecond: 1000, PollInterval: app.PollInterval{Min: sickPoll, Max: sickPoll},
	})
	g, err := m.install(ctx, name, channels)
	if err != nil {
		return nil, err
	}
	w, err := startProcess(ctx, o, "worker", g.Config)
	if err != nil {
		return nil, errors.Join(err, g.close())
	}
	g.closers = append(g.closers, w.stop)
	return g, nil
}

// reaches submits a task and returns how long it took to be acknowledged, and
// until the vendor had it.
func (g *gateway) reaches(ctx context.Context, v *vendor) (l latency, err error) {
	began := time.Now()
	body, err := g.post(ctx, videoPath, []byte(videoBody), nil)
	if err != nil {
		return l, err
	}
	l.acknowledged = time.Since(began)
	id, err := acknowledged(body)
	if err != nil {
		return l, err
	}
	err = until(ctx, "the vendor has the job", 2*time.Minute, func(context.Context) (bool, error) { return !v.end(id).IsZero(), nil })
	l.accepted = v.end(id).Sub(began) - never
	return l, err
}

// acknowledged is the id of the task that was taken in.
func acknowledged(body []byte) (string, error) {
	var ack struct {
		Data []struct {
			TaskID string `json:"task_id"`
		} `json:"data"`
	}
	if err := json.Unmarshal(body, &ack); err != nil || len(ack.Data) != 1 {
		return "", fmt.Errorf("no acknowledgement: %.100s", body)
	}
	return ack.Data[0].TaskID, nil
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
