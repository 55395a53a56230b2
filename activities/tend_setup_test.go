package activities_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/worker"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/activities"
	"github.com/mediagate/mediagate/activities/activitytest"
	"github.com/mediagate/mediagate/channel"
	"github.com/mediagate/mediagate/task"
)

// tending is one run of TendChannel inside a bubble of synctest, whose clock it uses.
type tending struct {
	*activitytest.World
	t    *testing.T
	stop chan struct{}
	done chan error
	gone bool // what the run returned; set before done

	mu    sync.Mutex
	beats []time.Time
	last  channel.Beat
}

// newTending begins a run in a world with n accepted tasks, named task-0 and so on.
func newTending(t *testing.T, n int) *tending {
	t.Helper()
	d := &tending{World: activitytest.New(t, time.Now), t: t}
	for i := range n {
		d.add(fmt.Sprintf("task-%d", i))
	}
	return d
}

// add submits a task, which the vendor accepts.
func (d *tending) add(id string) {
	d.t.Helper()
	added := d.NewVideo()
	added.ID = id
	d.Store.Add(added)
	d.accept(id)
}

func (d *tending) accept(id string) {
	d.t.Helper()
	if _, err := newEnv(d.World).ExecuteActivity(d.Activities.SubmitJob, stepOf(id, task.Submit, 1)); err != nil {
		d.t.Fatal(err)
	}
}

// setChannel replaces the asynchronous channel.
func (d *tending) setChannel(edit func(*channel.Channel)) {
	c := d.AsyncBound()
	edit(&c)
	d.Channels.Set(c)
}

func (d *tending) begin() {
	d.stop, d.done = make(chan struct{}), make(chan error, 1)
	env := newEnv(d.World)
	env.SetWorkerStopChannel(d.stop)
	env.SetWorkerOptions(worker.Options{Interceptors: []interceptor.WorkerInterceptor{&beatWatch{onBeat: d.beat}}})
	go func() {
		value, err := env.ExecuteActivity(
			d.Activities.TendChannel, activities.ChannelArgs{Channel: activitytest.AsyncChannel},
		)
		if err == nil {
			err = value.Get(&d.gone)
		}
		d.done <- err
	}()
}

func (d *tending) beat(details []any) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.beats = append(d.beats, time.Now())
	if beat, ok := details[0].(channel.Beat); ok {
		d.last = beat
	}
}

// beatWatch sees each heartbeat before the SDK drops some of them.
type beatWatch struct {
	interceptor.WorkerInterceptorBase
	onBeat func([]any)
	ends   time.Time // if set, the activity's deadline
}

func (w *beatWatch) InterceptActivity(
	_ context.Context, next interceptor.ActivityInboundInterceptor,
) interceptor.ActivityInboundInterceptor {
	in := &beatInbound{watch: w}
	in.Next = next
	return in
}

type beatInbound struct {
	interceptor.ActivityInboundInterceptorBase
	watch *beatWatch
}

func (i *beatInbound) Init(out interceptor.ActivityOutboundInterceptor) error {
	o := &beatOutbound{watch: i.watch}
	o.Next = out
	return i.Next.Init(o)
}

type beatOutbound struct {
	interceptor.ActivityOutboundInterceptorBase
	watch *beatWatch
}

func (o *beatOutbound) RecordHeartbeat(ctx context.Context, details ...any) {
	if o.watch.onBeat != nil {
		o.watch.onBeat(details)
	}
	o.Next.RecordHeartbeat(ctx, details...)
}

func (o *beatOutbound) GetInfo(ctx context.Context) activity.Info {
	info := o.Next.GetInfo(ctx)
	if !o.watch.ends.IsZero() {
		info.Deadline = o.watch.ends
	}
	return info
}

// end stops the worker and returns the result of the run.
func (d *tending) end() error {
	close(d.stop)
	return <-d.done
}

// ends is end for a run that has to end well.
func (d *tending) ends() {
	d.t.Helper()
	if err := d.end(); err != nil {
		d.t.Error(err)
	}
}

// change applies events to a task.
func (d *tending) change(id string, events ...task.Event) {
	d.t.Helper()
	if _, err := d.Store.Change(context.Background(), id, events...); err != nil {
		d.t.Fatal(err)
	}
}

func (d *tending) trouble(id string) mediagate.ParkReason {
	d.t.Helper()
	a, err := d.Store.Attempt(context.Background(), id, 1)
	if err != nil {
		d.t.Fatal(err)
	}
	return a.Trouble
}

func (d *tending) outcome(id string) *mediagate.Outcome {
	d.t.Helper()
	a, err := d.Store.Attempt(context.Background(), id, 1)
	if err != nil {
		d.t.Fatal(err)
	}
	return a.Outcome
}
