package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/mediagate/mediagate"
)

const crowdClients = 64

// crowd is many clients, who do something until they are stopped.
type crowd func(ctx context.Context) (stop func() error, err error)

// beside is a slice in which one client does something again and again, for a time,
// while the crowd is at work.
func beside(c crowd, length time.Duration, do func(context.Context) error) slice {
	return func(ctx context.Context) (all []time.Duration, err error) {
		stop, err := c(ctx)
		if err != nil {
			return nil, err
		}
		for began := time.Now(); err == nil && time.Since(began) < length; {
			var took time.Duration
			if took, err = timed(ctx, do); err == nil {
				err = pause(ctx, 2*time.Millisecond)
			}
			all = append(all, took)
		}
		return all, errors.Join(err, stop())
	}
}

// nobody is the crowd that is not there.
func nobody(context.Context) (stop func() error, err error) {
	return func() error { return nil }, nil
}

// submitters are clients that submit as fast as they are answered.
func submitters(clients []*gateway) crowd {
	return func(ctx context.Context) (func() error, error) {
		busy, cancel := context.WithCancel(ctx)
		var group errgroup.Group
		for _, c := range clients {
			group.Go(func() error {
				for busy.Err() == nil {
					if err := c.submits(busy); err != nil && busy.Err() == nil {
						return err
					}
				}
				return nil
			})
		}
		return func() error { cancel(); return group.Wait() }, nil
	}
}

// measureNeighbour compares what one client notices of 64 clients of another
// account that submit, with what it notices of 64 clients of 64 accounts, who take
// as much of the machine and have no row in common. No worker runs.
func measureNeighbour(ctx context.Context, m *machine) ([]row, error) {
	g, err := m.install(ctx, "neighbour", m.channels(time.Second))
	if err != nil {
		return nil, err
	}
	other, err := g.tenant(ctx)
	if err != nil {
		return nil, err
	}
	id, err := other.submit(ctx, videoPath, videoBody)
	if err != nil {
		return nil, err
	}
	one, many := make([]*gateway, crowdClients), make([]*gateway, crowdClients)
	for i := range crowdClients {
		one[i] = g
		if many[i], err = g.tenant(ctx); err != nil {
			return nil, err
		}
	}
	var rows []row
	for _, part := range []struct {
		what string
		do   func(context.Context) error
	}{
		{"submit", other.submits},
		{"read", func(ctx context.Context) error {
			_, err := other.get(ctx, "/v1/tasks/"+id)
			return err
		}},
	} {
		const length = 2 * time.Second
		c, err := compare(ctx, m.size(6, 3), breathe, beside(submitters(many), length, part.do), beside(submitters(one), length, part.do))
		if err != nil {
			return nil, err
		}
		rows = append(rows, timeRow(fmt.Sprintf("%s beside %d clients that submit", part.what, crowdClients), "of an account each", 0.5,
			c.subject, c.floor, fairnessAim))
	}
	return rows, nil
}

// measureBodies lets 64 clients without money, with a key each, send the worst
// bodies that are allowed to an API process, as fast as they are answered, and
// measures what that does to its memory and to small quotes of another account.
func measureBodies(ctx context.Context, m *machine) ([]row, error) {
	g, err := m.install(ctx, "bodies", m.channels(time.Second))
	if err != nil {
		return nil, err
	}
	poor, err := g.as(ctx, 0, mediagate.AccountLimits{}, mediagate.Key{Unlimited: true})
	if err != nil {
		return nil, err
	}
	t := target{Keys: []string{poor.secret}}
	for len(t.Keys) < crowdClients {
		more, err := poor.with(ctx, mediagate.Key{AccountID: poor.key.AccountID, Unlimited: true})
		if err != nil {
			return nil, err
		}
		t.Keys = append(t.Keys, more.secret)
	}
	p, err := m.start(ctx, "api", g.Config)
	if err != nil {
		return nil, err
	}
	if err := p.out.Decode(&t.Address); err != nil {
		return nil, fmt.Errorf("the API process does not serve: %w", err)
	}
	other := *g
	other.url = t.Address
	quote := func(ctx context.Context) error {
		_, err := other.post(ctx, "/v1/quote", `{"endpoint":"`+videoPath+`",`+videoBody[1:], nil)
		return err
	}
	length := time.Duration(m.size(4, 2)) * time.Second
	c, err := compare(ctx, m.size(5, 2), breathe, beside(nobody, length, quote), beside(m.worstClients(t), length, quote))
	if err != nil {
		return nil, err
	}
	what := fmt.Sprintf("beside %d clients with the worst bodies", crowdClients)
	peak, err := peakRow("memory of the API "+what, p.cmd.Process.Pid, 400<<20)
	return []row{timeRow("quote "+what, "alone", 0.99, c.subject, c.floor, 3), peak}, err
}

// target is whom the clients with the worst bodies bother.
type target struct {
	Address string
	Keys    []string
}

// worstClients are in a process of their own: what they cost should not delay the
// client that is measured.
func (m *machine) worstClients(t target) crowd {
	return func(ctx context.Context) (func() error, error) {
		p, err := m.start(ctx, "crowd", t)
		if err != nil {
			return nil, err
		}
		var answered int
		if err := p.out.Decode(&answered); err != nil {
			return nil, fmt.Errorf("the crowd does not come: %w", err)
		}
		return func() error {
			if _, err := io.WriteString(p.in, "stop\n"); err != nil {
				return err
			}
			if err := p.out.Decode(&answered); err != nil {
				return err
			}
			if answered == 0 {
				return errors.New("the crowd got no answer")
			}
			return p.stop()
		}, nil
	}
}

// serveCrowd is that process. It sends the worst bodies until it is told to stop,
// and says how many were answered: none before, all after.
func serveCrowd(ctx context.Context, in *bufio.Reader, answers *json.Encoder) error {
	t, err := readSettings[target](in)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var answered atomic.Int64
	var clients sync.WaitGroup
	bodies, client := worstBodies(), newHTTP()
	for i, key := range t.Keys {
		clients.Go(func() {
			g := &gateway{url: t.Address, secret: key, http: client}
			for n := i; ctx.Err() == nil; n++ {
				path := []string{"/v1/quote", videoPath}[n%2]
				_, err := g.post(ctx, path, bodies[n/2%len(bodies)], nil)
				if unanswered := new(url.Error); !errors.As(err, &unanswered) {
					answered.Add(1) // with a refusal, too
				}
			}
		})
	}
	err = answers.Encode(0)
	_, _ = in.ReadString('\n')
	cancel()
	clients.Wait()
	return errors.Join(err, answers.Encode(answered.Load()))
}

// worstBodies are as large, and hold as many values, as is allowed: where
// nobody looks into them, and where the model does.
func worstBodies() []string {
	const size, values = 1 << 20, 20_000
	fill := func(start, end string) string {
		n := values - 10 // the rest of the request
		item := `{"` + strings.Repeat("x", (size-len(start)-len(end)-100)/(n/2)-7) + `":0},`
		list := strings.Repeat(item, n/2)
		body := start + list[:len(list)-1] + end
		return body + strings.Repeat(" ", size-len(body))
	}
	start := `{"endpoint":"` + videoPath + `","model":"alpha-v3","prompt":"a kite","duration":5,`
	return []string{
		fill(start+`"other":[`, `]}`), fill(start+`"metadata":{"other":[`, `]}}`),
		fill(start+`"multi_shot":true,"shot_type":"customize","multi_prompt":[`, `]}`),
	}
}
