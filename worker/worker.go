package worker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/worker"

	"github.com/mediagate/mediagate/activities"
	"github.com/mediagate/mediagate/internal/limit"
	"github.com/mediagate/mediagate/workflows"
)

// Config configures a worker process.
type Config struct {
	Temporal   client.Client
	Activities *activities.Activities
	Providers  []string // the providers whose call queues it serves
	Channels   []string // the configured channels, whose workflows it keeps running
	Grace      time.Duration
	Logger     *slog.Logger
	OnServing  func() // called once all queues are polled; may be nil
	// RecordChannels is called at the start and every minute with the configured channels. It may
	// be nil.
	RecordChannels func(ctx context.Context, channels []string) error
	// Observe is called after each activity attempt, with the name of the activity. The outcome
	// is ok, waits, stopped, cancelled or the kind of the error. Observe may be nil.
	Observe func(activity, outcome string, took time.Duration)
}

// The number of activities that a process takes from each queue at the same time (D18). The
// activities themselves then wait for the limits of the process. A queue has slots for the
// capacity of its limit, and some more for activities that wait for the limit. An activity that
// gets no permit gives its slot back within moments, so a burst of one account does not block
// other accounts. A queue of calls has slots for the calls of all channels, so that the calls of
// one channel never block those of another.
const (
	maxDatabase  = 64
	callSlots    = 100 // in each queue of calls, for calls that create no job
	backlogSlots = 200 // in each channel's backlog
	waitSlots    = 64  // in the other queues with a limit, for activities that wait for it
	maxTending   = 200
	stickyCache  = 500 // cached workflows; a larger cache costs memory and is no faster
)

// stickyWait is how long a workflow task waits for the worker that has the run in its cache.
// After that, any worker may take it. So the runs of a killed worker wait up to five seconds
// (ADR 5).
const stickyWait = 5 * time.Second

// heartbeatThrottle makes the SDK send each heartbeat at once. Regular heartbeats come every
// three seconds. A sender also reports what it is about to send, before the first byte (D5). The
// SDK's default would delay that heartbeat if it came soon after another.
const heartbeatThrottle = time.Millisecond

// Run serves the queues until ctx ends. Calls in progress then have the grace time to finish,
// and long activities return at once.
func Run(ctx context.Context, c Config) error {
	worker.SetStickyWorkflowCacheSize(stickyCache)
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	started := make([]worker.Worker, 0, 5+len(c.Providers)+len(c.Channels))
	defer func() { stopAll(started) }()
	// Report the channels before the first work, so that operators see no channel without a worker.
	if err := c.recordChannels(ctx); err != nil {
		c.Logger.WarnContext(ctx, "channels not noted", "error", err)
	}
	for _, w := range c.workers(fail) {
		if err := w.Start(); err != nil {
			return fmt.Errorf("start worker: %w", err)
		}
		started = append(started, w)
	}
	if c.OnServing != nil {
		c.OnServing()
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
	var stopping sync.WaitGroup
	for _, w := range started {
		stopping.Go(w.Stop)
	}
	stopping.Wait()
}

// workers returns one worker for each queue. They call fail if one of them fails for good. Its
// queue would otherwise have no worker while the others go on, so fail stops the whole process.
func (c Config) workers(fail context.CancelCauseFunc) []worker.Worker {
	around := []interceptor.WorkerInterceptor{&activityLog{log: c.Logger, now: c.Activities.Now, observe: c.Observe}}
	queue := func(name string, bound int) worker.Worker {
		w := worker.New(c.Temporal, name, worker.Options{
			MaxConcurrentActivityExecutionSize:      bound,
			DisableWorkflowWorker:                   name != workflows.QueueMain,
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
	limited := func(f limit.Figures) int { return int(f.Capacity) + waitSlots }
	limits := c.Activities.Limits
	main := queue(workflows.QueueMain, maxDatabase)
	workflows.Register(main)
	all := []worker.Worker{
		main,
		queue(workflows.QueueChannel, maxTending),
		queue(workflows.QueueMirror, limited(limits.Copies.Figures())),
		queue(workflows.QueueInputs, limited(limits.Inputs.Figures())),
		queue(workflows.QueueWebhook, limited(limits.Callbacks.Figures())),
	}
	atOnce := int(limits.Calls.Figures().Capacity)
	for _, p := range c.Providers {
		all = append(all, queue(workflows.QueueCall(p), atOnce*len(c.Channels)+callSlots))
	}
	for _, name := range c.Channels {
		all = append(all, queue(workflows.QueueBacklog(name), backlogSlots))
	}
	return all
}

// keepSingletons makes sure, at the start and every minute, that the workflow Wake and the
// workflow of each channel run (D2) and make progress. It also schedules retention, once.
func (c Config) keepSingletons(ctx context.Context) {
	keeper := workflows.Keeper{Client: workflows.Client{Temporal: c.Temporal}, Replaced: func(id, reason string) {
		c.Logger.WarnContext(ctx, "replaced a singleton's run", "workflow", id, "reason", reason)
	}}
	scheduled := false
	for {
		err := errors.Join(c.recordChannels(ctx), keeper.Wake(ctx))
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

// recordChannels records that this worker serves its channels.
func (c Config) recordChannels(ctx context.Context) error {
	if c.RecordChannels == nil {
		return nil
	}
	return c.RecordChannels(ctx, c.Channels)
}

// activityLog writes one canonical log line for each activity attempt.
type activityLog struct {
	interceptor.WorkerInterceptorBase
	log     *slog.Logger
	now     func() time.Time
	observe func(activity, outcome string, took time.Duration)
}

// InterceptActivity implements interceptor.WorkerInterceptor.
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

// ExecuteActivity runs the activity and writes its log line.
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
	case errors.Is(context.Cause(ctx), worker.ErrWorkerShutdown):
		// Another worker repeats the activity, or this one does after its restart.
		outcome = "stopped"
		a.parent.log.InfoContext(ctx, "activity cut off by the stop", append(attrs, "error", cause(err))...)
	case errors.Is(ctx.Err(), context.Canceled):
		// The heartbeat cancelled the activity, so its error is not one of the called server.
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
