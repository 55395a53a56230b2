package main

import (
	"bufio"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	eventTasks   = 100
	eventStreams = 200

	mostForAnEvent = 2        // transactions of the database
	mostOfStreams  = 50 << 20 // bytes of the API process
	mostEventLate  = time.Second
	changeEvery    = time.Second // of each task
)

// measureEvents opens 200 streams at an API process while 100 tasks change every
// second, and measures what that costs the process's memory and the database,
// and how late the events come.
func measureEvents(ctx context.Context, m *machine, o options) (_ []row, err error) {
	g, err := m.install(ctx, "events", m.channels(time.Second, 1000))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, g.close()) }()
	s, err := newStage(g)
	if err != nil {
		return nil, err
	}
	ids := make([]string, eventTasks)
	for i := range ids {
		if ids[i], err = s.waiting(ctx, time.Hour); err != nil {
			return nil, err
		}
	}
	p, err := startProcess(ctx, o, "api", g.Config)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, p.stop()) }()
	var address string
	if err := p.out.Decode(&address); err != nil {
		return nil, fmt.Errorf("the API process does not serve: %w", err)
	}
	length := 30 * time.Second
	if o.quick {
		length = 10 * time.Second
	}
	a := &audience{url: address, secret: g.secret, db: g.tables, made: map[change]time.Time{}}
	before, err := residentMemory(p.cmd.Process.Pid)
	if err != nil {
		return nil, err
	}
	if err := a.come(ctx, ids); err != nil {
		return nil, err
	}
	defer a.leave()
	idle, err := m.transactionsOf(ctx, "bench_events", func() error { return pause(ctx, length) })
	if err != nil {
		return nil, err
	}
	changes := 0
	busy, err := m.transactionsOf(ctx, "bench_events", func() error {
		for end := time.Now().Add(length); time.Now().Before(end); {
			for _, id := range ids {
				if err := a.change(ctx, id); err != nil {
					return err
				}
				changes++
			}
			if err := pause(ctx, changeEvery); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	after, err := residentMemory(p.cmd.Process.Pid)
	if err != nil {
		return nil, err
	}
	late := a.leave()
	_, _ = fmt.Fprintf(o.verbose, "bench:   events: %d changes, %d events; transactions: %d idle, %d busy in %s; memory %d and %d kB\n",
		changes, len(late), idle, busy, length, before>>10, after>>10)
	if len(late) < changes {
		return nil, fmt.Errorf("%d changes were shown by %d events only", changes, len(late))
	}
	each, grown := float64(busy-changes)/float64(len(late)), after-before
	return []row{
		{
			what: fmt.Sprintf("memory of the API, %d streams", eventStreams), floor: "resident, more than before",
			value: fmt.Sprintf("%d MiB", grown>>20), aim: fmt.Sprintf("≤ %d MiB", mostOfStreams>>20), met: grown <= mostOfStreams,
		},
		{
			what: fmt.Sprintf("database, %d streams of %d tasks", eventStreams, eventTasks), floor: "transactions an event",
			value: fmt.Sprintf("%.2f (%.0f/s while nothing changes)", each, float64(idle)/length.Seconds()),
			aim:   fmt.Sprintf("≤ %.2f", float64(mostForAnEvent)), met: each <= mostForAnEvent,
		},
		{
			what: "change to event, p99", floor: "a look every 0.3s",
			value: fmt.Sprintf("%s (p50 %s)", quantile(late, 0.99).Round(time.Millisecond), quantile(late, 0.5).Round(time.Millisecond)),
			aim:   "≤ " + mostEventLate.String(), met: quantile(late, 0.99) <= mostEventLate,
		},
	}, nil
}

// change is one version of a task.
type change struct {
	id      string
	version int64
}

// audience is the clients of the streams.
type audience struct {
	url, secret string
	db          *sql.DB
	end         context.CancelFunc
	clients     sync.WaitGroup

	mu   sync.Mutex
	made map[change]time.Time
	late []time.Duration // of each event of a change that was made
}

// come opens the streams and waits until each has shown its task.
func (a *audience) come(ctx context.Context, ids []string) error {
	ctx, a.end = context.WithCancel(ctx)
	client := newHTTP()
	begun := make(chan error, eventStreams)
	for i := range eventStreams {
		a.clients.Go(func() { a.follow(ctx, client, ids[i%len(ids)], begun) })
	}
	var problem error
	for range eventStreams {
		problem = errors.Join(problem, <-begun)
	}
	return problem
}

// follow reads one stream and notes how late its events come.
func (a *audience) follow(ctx context.Context, client *http.Client, id string, begun chan<- error) {
	first := sync.OnceFunc(func() { begun <- nil })
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, a.url+"/v1/tasks/"+id+"/events", http.NoBody)
	if err != nil {
		begun <- err
		return
	}
	r.Header.Set("Authorization", "Bearer "+a.secret)
	answer, err := client.Do(r)
	if err != nil {
		begun <- err
		return
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		begun <- fmt.Errorf("a stream answers %s", answer.Status)
		return
	}
	lines := bufio.NewScanner(answer.Body)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if text, ok := strings.CutPrefix(lines.Text(), "id: "); ok {
			first()
			version, _ := strconv.ParseInt(text, 10, 64)
			a.heard(change{id, version})
		}
	}
}

func (a *audience) heard(c change) {
	now := time.Now()
	a.mu.Lock()
	defer a.mu.Unlock()
	if at, ok := a.made[c]; ok {
		a.late = append(a.late, now.Sub(at))
	}
}

// change makes one that its readers see.
func (a *audience) change(ctx context.Context, id string) error {
	a.mu.Lock() // nobody hears of it before its time is noted
	defer a.mu.Unlock()
	var version int64
	err := a.db.QueryRowContext(ctx, "UPDATE tasks SET progress = (progress + 1) % 99, version = version + 1 WHERE id = $1 RETURNING version", id).Scan(&version)
	a.made[change{id, version}] = time.Now()
	return err
}

// leave ends the streams and tells how late their events were.
func (a *audience) leave() []time.Duration {
	a.end()
	a.clients.Wait()
	return a.late
}

// transactionsOf counts those of an installation's database while something is
// done.
func (m *machine) transactionsOf(ctx context.Context, database string, do func() error) (int, error) {
	before, err := m.transactions(ctx)
	if err != nil {
		return 0, err
	}
	if err := do(); err != nil {
		return 0, err
	}
	after, err := m.transactions(ctx)
	return int(after[database] - before[database]), err
}

// residentMemory is what a process has resident now.
func residentMemory(pid int) (int64, error) { return processMemory(pid, "VmRSS:") }
