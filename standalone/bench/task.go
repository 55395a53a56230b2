package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"time"

	"github.com/oklog/ulid/v2"
	"github.com/prometheus/procfs"
	temporal "go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/mediagate/mediagate/client"
)

// bareWorkflow is the smallest durable workflow: one activity.
func bareWorkflow(ctx workflow.Context, task string) error {
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{StartToCloseTimeout: time.Minute})
	return workflow.ExecuteActivity(ctx, nothing, task).Get(ctx, nil)
}

func nothing(context.Context, string) error { return nil }

// measureFullTasks compares tasks with workflows of one empty activity. A task lasts from its
// submit to the end of its workflow, with a vendor that takes no time. It measures CPU time.
func measureFullTasks(b *bench) {
	b.vendor.reset(func() time.Duration { return 0 }, false)
	g := b.install(250 * time.Millisecond)
	b.serve(g.RunWorker)
	w := worker.New(g.Temporal, "bare", worker.Options{StickyScheduleToStartTimeout: time.Minute})
	w.RegisterWorkflow(bareWorkflow)
	w.RegisterActivity(nothing)
	b.check(w.Start())
	b.Cleanup(w.Stop)

	floor := b.batchSlice("bare_", func(ctx context.Context) error {
		o := temporal.StartWorkflowOptions{ID: "bare_" + ulid.Make().String(), TaskQueue: "bare"}
		_, err := g.Temporal.ExecuteWorkflow(ctx, o, bareWorkflow, "task")
		return err
	})
	const bare = "a workflow of one activity"
	base, found := b.compare(b.size(2, 1), floor, b.batchSlice("task_", submit(g.client, image)))
	b.ratio("an image, in one call", bare, found.cpuPerItem(), base.cpuPerItem(), 1.61)
	base, found = b.compare(b.size(2, 1), floor, b.batchSlice("task_", submit(g.client, video)))
	b.ratio("a video, polled for", bare, found.cpuPerItem(), base.cpuPerItem(), 2.22)

	report, err := g.Store.CheckLedger(b.ctx)
	b.check(err)
	if !report.OK {
		b.check(fmt.Errorf("the ledger does not add up: %v", report.Problems))
	}
}

// batchSlice returns a slice that starts a batch of workflows and lasts until all have ended.
func (b *bench) batchSlice(prefix string, start func(context.Context) error) slice {
	batch := b.size(150, 60)
	return func() []time.Duration {
		before := b.ended(prefix)
		took := b.times(32, batch, start)
		// Each count reads Temporal's whole table, so frequent counts would slow down the slower side.
		b.until("the batch has ended", 100*time.Millisecond, func() bool { return b.ended(prefix)-before >= batch })
		return took
	}
}

// ended counts the completed workflows whose ids begin with prefix.
func (b *bench) ended(prefix string) int {
	return b.workflows("starts_with(workflow_id, $1) AND state = 3", prefix) // 3 is completed
}

// measureVisible measures the time from a job's end at the vendor to the task's completion, with
// polls alone and with the vendor's callbacks.
func measureVisible(b *bench) {
	b.measureEnds("polled every 2s, half of which is the floor, p50", false, time.Second)
	b.measureEnds("the same, and called back, p50", true, 150*time.Millisecond)
}

// measureEnds spreads the ends of jobs over the poll interval.
func (b *bench) measureEnds(what string, called bool, aim time.Duration) {
	b.part(func(b *bench) {
		const poll = 2 * time.Second
		b.vendor.reset(func() time.Duration { return poll + rand.N(poll) }, called) //nolint:gosec // no secrets
		g := b.install(poll)
		b.serve(g.RunWorker)
		const first = 5 // while they run, the worker is still starting
		tasks := g.runFirstTasks(first + b.size(60, 15))
		b.within(what, median(tasks[first:], func(l taskTimes) time.Duration { return l.ended.Sub(l.made) }), aim)
	})
}

const waitingPoll = 10 * time.Second

// measureWaiting fills an installation with tasks that wait for the vendor. It measures the
// memory that a task costs in this process, which has the API and the worker, and how late polls
// arrive at the vendor.
func measureWaiting(b *bench) {
	b.vendor.reset(func() time.Duration { return never }, false)
	g := b.install(waitingPoll)
	b.serve(g.RunWorker)
	g.fill(100) // creates connections and buffers
	before := usedMemory()
	tasks, intervals := b.size(10_000, 1000), b.size(3, 2)
	g.fill(tasks)
	b.vendor.takePollGaps()
	b.pause(time.Duration(intervals) * waitingPoll)
	late := b.vendor.takePollGaps()
	each := float64(usedMemory()-before) / float64(tasks) / 1000
	if len(late) < tasks*intervals*8/10 {
		b.check(fmt.Errorf("only %d polls in %d intervals of %d waiting tasks", len(late), intervals, tasks))
	}
	p99 := quantile(late, 0.99) - waitingPoll
	b.within(fmt.Sprintf("lateness of polls, %d tasks, due every 10s, p99", tasks), p99, time.Second)
	aim, most := "≤ 5 kB", 5.0
	if b.quick { // the worker's cache of 500 workflows weighs more on few tasks
		aim, most = "none", math.Inf(1)
	}
	b.line("memory of API and worker a task", fmt.Sprintf("%.1f kB more than with 100 tasks", each), aim, each <= most)
}

// fill submits n videos and returns when all of them are being polled.
func (g *gateway) fill(n int) {
	before := g.b.vendor.accepted()
	g.b.times(16, n, submit(g.client, video))
	g.b.until("all tasks wait", time.Second, func() bool { return g.b.vendor.accepted() >= before+n })
	g.b.pause(waitingPoll)
}

// usedMemory returns the size of this process's heap and stacks, in bytes.
func usedMemory() int64 {
	runtime.GC()
	runtime.GC() // the finalizers of the first collection have freed more
	var s runtime.MemStats
	runtime.ReadMemStats(&s)
	return int64(s.HeapAlloc + s.StackInuse)
}

// measureMemory runs tasks through the standalone program, which is one process, and measures
// its peak memory.
func measureMemory(b *bench) {
	c, pid := b.startStandalone()
	tasks := b.size(20_000, 5_000)
	b.times(16, tasks, func(ctx context.Context) error {
		_, err := c.Run(ctx, image, nil)
		return err
	})
	process, err := procfs.NewProc(pid)
	b.check(err)
	status, err := process.NewStatus()
	b.check(err)
	peak := status.VmHWM >> 20
	what := fmt.Sprintf("resident, at its peak in %d tasks, 16 at a time", tasks)
	b.line(what, fmt.Sprintf("%d MiB", peak), "≤ 600 MiB", peak <= 600)
}

// startStandalone builds the standalone program and starts it on free ports in a folder of its
// own. It returns a client of its account and its process id.
func (b *bench) startStandalone() (*client.Client, int) {
	dir := b.TempDir()
	program, data := filepath.Join(dir, "mediagate-standalone"), filepath.Join(dir, "data")
	build := exec.CommandContext(b.ctx, "go", "build", "-o", program, //nolint:gosec // ourselves
		"github.com/mediagate/mediagate/standalone")
	build.Dir, build.Stderr = b.source, os.Stderr
	b.check(build.Run())
	const free = "127.0.0.1:0"
	_, pid := b.process(io.Discard, program, "-data", data,
		"-api", free, "-temporal", free, "-ui", free, "-s3", free, "-sandbox", free, "-ops", free)
	var where struct{ API, Key string }
	b.until("the standalone serves", 400*time.Millisecond, func() bool {
		raw, err := os.ReadFile(filepath.Join(data, "standalone.json"))
		return err == nil && json.Unmarshal(raw, &where) == nil
	})
	return &client.Client{URL: where.API, Key: where.Key, HTTP: connections}, pid
}
