package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/prometheus/procfs"
	"golang.org/x/sync/errgroup"
)

// slice does several pieces of work and returns how long each took.
type slice func() []time.Duration

// work sums up all slices of one kind.
type work struct {
	took      []time.Duration // of each piece of work
	wall, cpu time.Duration   // of all together
}

// wallPerItem returns the elapsed time of a piece of work.
func (w work) wallPerItem() time.Duration { return w.wall / time.Duration(len(w.took)) }

// cpuPerItem returns the CPU time of a piece of work in all processes involved, or the elapsed time if
// the system does not report CPU time.
func (w work) cpuPerItem() time.Duration {
	return cmp.Or(w.cpu, w.wall) / time.Duration(len(w.took))
}

// compare runs floor and subject in turns, so that a machine that becomes slower does so for
// both. Each round is floor, subject, subject, floor. Before the rounds, each runs once to warm
// up.
func (b *bench) compare(rounds int, floor, subject slice) (base, found work) {
	b.runSlice(floor, &work{})
	b.runSlice(subject, &work{})
	for range rounds {
		b.runSlice(floor, &base)
		b.runSlice(subject, &found)
		b.runSlice(subject, &found)
		b.runSlice(floor, &base)
	}
	return base, found
}

// runSlice runs a slice and adds its cost to sum. The CPU time includes the work that the slice
// leaves to the servers.
func (b *bench) runSlice(run slice, sum *work) {
	cpu, began := cpuTime(), time.Now()
	sum.took = append(sum.took, run()...)
	sum.wall += time.Since(began)
	b.settle()
	sum.cpu += cpuTime() - cpu
}

// settle returns when the API no longer starts workflows, which would disturb the next
// measurement.
func (b *bench) settle() {
	before := -1
	b.until("no more runs are started", 400*time.Millisecond, func() bool {
		now := b.workflows("starts_with(workflow_id, 'task_')")
		settled := now == before
		before = now
		return settled
	})
}

// times calls do n times in all, from this number of clients, and returns how long each call
// took.
func (b *bench) times(clients, n int, do func(context.Context) error) []time.Duration {
	took := make([]time.Duration, n)
	group, ctx := errgroup.WithContext(b.ctx)
	group.SetLimit(clients)
	for i := range n {
		group.Go(func() error {
			began := time.Now()
			err := do(ctx)
			took[i] = time.Since(began)
			return err
		})
	}
	b.check(group.Wait())
	return took
}

// quantile returns a value that the share q of the values does not exceed.
func quantile(values []time.Duration, q float64) time.Duration {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[min(len(sorted)-1, int(q*float64(len(sorted))))]
}

// until calls ask repeatedly until it returns true.
func (b *bench) until(what string, every time.Duration, ask func() bool) {
	for began := time.Now(); !ask(); b.pause(every) {
		if time.Since(began) > 20*time.Minute {
			b.check(fmt.Errorf("waited in vain until %s", what))
		}
	}
}

func (b *bench) pause(d time.Duration) {
	select {
	case <-b.ctx.Done():
		b.check(b.ctx.Err())
	case <-time.After(d):
	}
}

// workflows counts the workflows that meet the condition. It reads Temporal's own table, because
// Temporal's lists of workflows lag behind.
func (b *bench) workflows(condition string, args ...any) (n int) {
	b.check(b.history.QueryRowContext(b.ctx, "SELECT count(*) FROM current_executions WHERE "+condition, args...).Scan(&n))
	return n
}

// cpuTime returns the CPU time that this process and its descendants, such as PostgreSQL and the
// worker, have used so far. It returns 0 if there is no /proc.
func cpuTime() time.Duration {
	processes, _ := procfs.AllProcs()
	stats := map[int]procfs.ProcStat{}
	for _, p := range processes {
		stats[p.PID], _ = p.Stat() // zero, if the process has ended meanwhile
	}
	hundredths := 0
	for pid, s := range stats {
		for pid > 1 && pid != os.Getpid() {
			pid = stats[pid].PPID
		}
		if pid > 1 {
			hundredths += int(s.UTime+s.STime) + s.CUTime + s.CSTime // its own time and that of ended children
		}
	}
	return time.Duration(hundredths) * 10 * time.Millisecond
}

// machineTime returns the CPU time that all processes of the machine have used so far. It
// returns 0 if there is no /proc.
func machineTime() time.Duration {
	fs, _ := procfs.NewDefaultFS()
	stat, _ := fs.Stat()
	c := stat.CPUTotal
	return time.Duration((c.User + c.Nice + c.System + c.IRQ + c.SoftIRQ + c.Steal) * float64(time.Second))
}
