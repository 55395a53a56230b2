package worker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/worker"

	"github.com/mediagate/mediagate/activities"
	"github.com/mediagate/mediagate/internal/limit"
	"github.com/mediagate/mediagate/workflows"
)

// Config says what a worker process runs.
type Config struct {
	Temporal   client.Client
	Activities *activities.Activities
	Providers  []string // the providers whose call queues it serves
	Channels   []string // the configured channels, whose singletons it keeps running
	Grace      time.Duration
	Logger     *slog.Logger
	Serving    func() // called once all queues are polled; may be nil
	// Seen is called each minute with the configured channels.
	Seen func(ctx context.Context, channels []string) error
	// Observe is called after each activity attempt. The outcome is ok, waits, stopped, cancelled, or
	// the kind of the error. Observe may be nil.
	Observe func(activity, outcome string, took time.Duration)
}

// The number of activities that a process takes at once from each queue (D18). The limits of the
// process bound what these activities may use, inside the activities. A queue has slots for the
// capacity of its limit, and some for activities that wait for the limit. An activity that gets no
// permit gives its slot back within moments, so a burst from one account does not keep others waiting.
// A queue of calls has slots for the calls of all channels, so that calls of one channel never block
// those of another.
const (
	maxDatabase = 64
	callRoom    = 100 // in each queue of calls, for calls that make no job
	backlogRoom = 200 // in each channel's backlog
	waitRoom    = 64  // in the other queues with a limit, for activities that wait for it
	maxTending  = 200
	stickyCache = 500 // cached workflows; more would cost memory and gain no speed
)

// stickyWait is how long a workflow task waits for the worker that has its run in the cache,
// before any other worker takes it. The runs of a killed worker wait this long in the first
// seconds (ADR 5).
const stickyWait = 5 * time.Second

// heartbeatThrottle lets the SDK send each heartbeat at once. Regular ones come every three
// seconds. A sender also reports what it has begun before the first byte (D5), and the SDK would
// hold that back if it came soon after another.
const heartbeatThrottle = time.Millisecond

// Run serves the queues until ctx ends, then lets calls in progress end within the grace time.
// Long activities hand themselves back at once.
func Run(ctx context.Context, c Config) error {
	worker.SetStickyWorkflowCacheSize(stickyCache)
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	started := make([]worker.Worker, 0, 5+len(c.Providers)+len(c.Channels))
	defer func() {
		stopAll(started)
	}()
	if err := c.seen(ctx); err != nil { // before the first work, so that operators do not see a channel without a worker
		c.Logger.WarnContext(ctx, "channels not noted", "error", err)
	}
	for _, w := range c.workers(fail) {
		if err := w.Start(); err != nil {
			return fmt.Errorf("start worker: %w", err)
		}
		started = append(started, w)
	}
	if c.Serving != nil {
		c.Serving()
	}
	c.Logger.InfoContext(ctx, "worker serves", "providers", c.Providers, "channels", c.Channels)
	c.keepSingletons(ctx)
	if err := context.Cause(ctx); !errors.Is(err, context.Canceled) {
		return fmt.Errorf("a queue is not served any more: %w", err)
	}
	return nil
}

// stopAll stops the workers at the same time, so that their grace times do not add up.
func stopAll(started []worker.Worker) {
	done := make(chan struct{})
	for _, w := range started {
		go func() {
			w.Stop()
			done <- struct{}{}
		}()
	}
	for range started {
		<-done
	}
}

// workers returns one worker for each queue. If one fails for good, its queue would be left
// without a worker while the others go on, so fail ends them all.
func (c Config) workers(fail context.CancelCauseFunc) []worker.Worker {
	around := []interceptor.WorkerInterceptor{&activityLog{log: c.Logger, now: c.Activities.Now, observe: c.Observe}}
	queue := func(name string, bound int, workflowsToo bool) worker.Worker {
		w := worker.New(c.Temporal, name, worker.Options{
			MaxConcurrentActivityExecutionSize:      bound,
			DisableWorkflowWorker:                   !workflowsToo,
			StickyScheduleToStartTimeout:            stickyWait,
			WorkerStopTimeout:                       c.Grace,
			BuildID:                                 workflows.BuildID, //nolint:staticcheck // we have no deployments
			MaxHeartbeatThrottleInterval:            heartbeatThrottle,
			OnFatalError:                            fail,
			Interceptors:                            around,
			MaxConcurrentLocalActivityExecutionSize: maxDatabase,
		})
		w.RegisterActivity(c.Activities)
		return w
	}
	limited := func(f limit.Figures) int { return int(f.Capacity) + waitRoom }
	limits := c.Activities.Limits
	main := queue(workflows.QueueMain, maxDatabase, true)
	workflows.Register(main)
	all := []worker.Worker{
		main,
		queue(workflows.QueueChannel, maxTending, false),
		queue(workflows.QueueMirror, limited(limits.Copies.Figures()), false),
		queue(workflows.QueueInputs, limited(limits.Inputs.Figures()), false),
		queue(workflows.QueueWebhook, limited(limits.Callbacks.Figures()), false),
	}
	atOnce := int(limits.Calls.Figures().Capacity)
	for _, p := range c.Providers {
		all = append(all, queue(workflows.QueueCall(p), atOnce*len(c.Channels)+callRoom, false))
	}
	for _, name := range c.Channels {
		all = append(all, queue(workflows.QueueBacklog(name), backlogRoom, false))
	}
	return all
}

// keepSingletons ensures, at the start and every minute, that the workflow Wake and every
// channel's workflow run (D2) and make progress. It also schedules retention, once.
func (c Config) keepSingletons(ctx context.Context) {
	keeper := workflows.Keeper{Client: workflows.Client{Temporal: c.Temporal}, Replaced: func(id, reason string) {
		c.Logger.WarnContext(ctx, "replaced a singleton's run", "workflow", id, "reason", reason)
	}}
	scheduled := false
	for {
		err := errors.Join(c.seen(ctx), keeper.Wake(ctx))
		if !scheduled {
			failed := keeper.Client.EnsureRetention(ctx)
			scheduled, err = failed == nil, errors.Join(err, failed)
		}
		for _, name := range c.Channels {
			err = errors.Join(err, keeper.Channel(ctx, name))
		}
		pause := time.Minute
		if err != nil && ctx.Err() == nil {
			c.Logger.WarnContext(ctx, "singletons not ensured", "error", err)
			pause = 5 * time.Second
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
	}
}

// seen records that this worker serves its channels.
func (c Config) seen(ctx context.Context) error {
	if c.Seen == nil {
		return nil
	}
	return c.Seen(ctx, c.Channels)
}

// activityLog writes one canonical line for each activity attempt.
type activityLog struct {
	interceptor.WorkerInterceptorBase
	log     *slog.Logger
	now     func() time.Time
	observe func(activity, outcome string, took time.Duration)
}

// InterceptActivity adds the log to the activity.
func (l *activityLog) InterceptActivity(
	_ context.Context, next interceptor.ActivityInboundInterceptor,
) interceptor.ActivityInboundInterceptor {
	return &loggedActivity{
		ActivityInboundInterceptorBase: interceptor.ActivityInboundInterceptorBase{Next: next}, parent: l,
	}
}

type loggedActivity struct {
	interceptor.ActivityInboundInterceptorBase
	parent *activityLog
}

// ExecuteActivity runs the activity and writes its line.
func (a *loggedActivity) ExecuteActivity(ctx context.Context, in *interceptor.ExecuteActivityInput) (any, error) {
	start := a.parent.now()
	ctx, cause := activities.CaptureCause(ctx)
	result, err := activities.Guarded(ctx, func() (any, error) { return a.Next.ExecuteActivity(ctx, in) })
	info, took := activity.GetInfo(ctx), a.parent.now().Sub(start)
	attrs := []any{
		"activity", info.ActivityType.Name, "workflow", info.WorkflowExecution.ID, "run", info.WorkflowExecution.RunID,
		"attempt", info.Attempt, "duration_ms", took.Milliseconds(),
	}
	outcome := "ok"
	switch {
	case err == nil:
		a.parent.log.DebugContext(ctx, "activity", attrs...)
	case activities.NoFault(err):
		outcome = "waits"
		a.parent.log.DebugContext(ctx, "activity", append(attrs, "error", err)...)
	case errors.Is(context.Cause(ctx), worker.ErrWorkerShutdown): // another worker repeats it, or this one after its restart
		outcome = "stopped"
		a.parent.log.InfoContext(ctx, "activity cut off by the stop", append(attrs, "error", cause(err))...)
	case errors.Is(ctx.Err(), context.Canceled): // cancelled through the heartbeat, so its error says nothing about the called server
		outcome = "cancelled"
		a.parent.log.InfoContext(ctx, "activity cancelled", append(attrs, "error", context.Cause(ctx))...)
	default:
		outcome = activities.FromTemporal(err).Kind.String()
		a.parent.log.WarnContext(ctx, "activity failed", append(attrs, "error", cause(err))...)
	}
	if a.parent.observe != nil {
		a.parent.observe(info.ActivityType.Name, outcome, took)
	}
	return result, err
}
