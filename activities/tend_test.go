package activities_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/worker"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/activities"
	"github.com/mediagate/mediagate/activities/activitytest"
)

// tending is one run of TendChannel inside a bubble of synctest, whose clock
// it shares.
type tending struct {
	*activitytest.World
	t    *testing.T
	stop chan struct{}
	done chan error

	mu    sync.Mutex
	beats []time.Time
	last  activities.ChannelBeat
}

// tend begins a run in a world with n accepted tasks, named task-0 and so on.
func newTending(t *testing.T, n int) *tending {
	t.Helper()
	d := &tending{World: activitytest.New(time.Now), t: t}
	for i := range n {
		task := d.NewVideo()
		task.ID = fmt.Sprintf("task-%d", i)
		d.Store.Add(task)
		d.accept(task.ID)
	}
	return d
}

func (d *tending) accept(id string) {
	d.t.Helper()
	if _, err := newEnv(d.World).ExecuteActivity(d.Activities.SubmitJob, activities.AttemptArgs{TaskID: id, N: 1}); err != nil {
		d.t.Fatal(err)
	}
}

// setChannel replaces the asynchronous channel.
func (d *tending) setChannel(edit func(*activities.BoundChannel)) {
	c := d.AsyncBound()
	edit(&c)
	d.Channels.Set(c)
}

func (d *tending) begin() {
	d.stop, d.done = make(chan struct{}), make(chan error, 1)
	env := newEnv(d.World)
	env.SetWorkerStopChannel(d.stop)
	env.SetWorkerOptions(worker.Options{Interceptors: []interceptor.WorkerInterceptor{&beatWatch{heard: d.beat}}})
	go func() {
		_, err := env.ExecuteActivity(d.Activities.TendChannel, activities.ChannelArgs{Channel: activitytest.AsyncChannel})
		d.done <- err
	}()
}

func (d *tending) beat(details []any) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.beats = append(d.beats, time.Now())
	if beat, ok := details[0].(activities.ChannelBeat); ok {
		d.last = beat
	}
}

// beatWatch hears each heartbeat, before the SDK thins them out.
type beatWatch struct {
	interceptor.WorkerInterceptorBase
	heard func([]any)
}

func (w *beatWatch) InterceptActivity(_ context.Context, next interceptor.ActivityInboundInterceptor) interceptor.ActivityInboundInterceptor {
	in := &beatInbound{heard: w.heard}
	in.Next = next
	return in
}

type beatInbound struct {
	interceptor.ActivityInboundInterceptorBase
	heard func([]any)
}

func (i *beatInbound) Init(out interceptor.ActivityOutboundInterceptor) error {
	o := &beatOutbound{heard: i.heard}
	o.Next = out
	return i.Next.Init(o)
}

type beatOutbound struct {
	interceptor.ActivityOutboundInterceptorBase
	heard func([]any)
}

func (o *beatOutbound) RecordHeartbeat(ctx context.Context, details ...any) {
	o.heard(details)
	o.Next.RecordHeartbeat(ctx, details...)
}

// end stops the worker and returns what the run said.
func (d *tending) end() error {
	close(d.stop)
	return <-d.done
}

func (d *tending) trouble(id string) string {
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

// times notes when the vendor was asked.
type times struct {
	mu sync.Mutex
	at []time.Time
}

func (x *times) note() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.at = append(x.at, time.Now())
}

func (x *times) list() []time.Time {
	x.mu.Lock()
	defer x.mu.Unlock()
	return slices.Clone(x.at)
}

// inBubble runs a test on the bubble's clock.
func inBubble(f func(t *testing.T)) func(*testing.T) {
	return func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, f)
	}
}

func TestTend(t *testing.T) {
	t.Parallel()
	t.Run("an end is stored, then signalled", inBubble(func(t *testing.T) {
		d := newTending(t, 2)
		d.Engine.OnUpstream = func(id string, _ int) error {
			if d.outcome(id) == nil {
				t.Error("signalled before the outcome was stored")
			}
			return nil
		}
		d.Async.End("task-0", activitytest.Success())
		d.Async.End("task-1", activitytest.Failed(mediagate.CodeContentPolicy))
		d.begin()
		time.Sleep(20 * time.Second)
		if err := d.end(); err != nil {
			t.Error(err)
		}
		calls := d.Engine.Calls()
		slices.Sort(calls)
		if diff := cmp.Diff([]string{"upstream task-0 1", "upstream task-1 1"}, calls); diff != "" {
			t.Errorf("signals (-want +got):\n%s", diff)
		}
		if got := d.outcome("task-1"); got == nil || got.Succeeded {
			t.Errorf("outcome %+v", got)
		}
	}))
	t.Run("D8 a signal that is not taken comes again until it is", inBubble(func(t *testing.T) {
		d := newTending(t, 1)
		failed := false
		d.Engine.OnUpstream = func(string, int) error {
			if !failed {
				failed = true
				return mediagate.Errorf(mediagate.KindUnavailable, "Temporal is away")
			}
			return nil
		}
		d.Async.End("task-0", activitytest.Success())
		d.begin()
		time.Sleep(100 * time.Second)
		if got := len(d.Engine.Calls()); got != 3 {
			t.Errorf("%d signals in 85 s after the end, want 3: after 30 s, then by the lease of 45 s", got)
		}
		if got := len(d.Async.Polls()); got != 1 {
			t.Errorf("%d polls for an outcome that is stored, want 1", got)
		}
		if err := d.Store.DropAwait(t.Context(), "task-0", 1); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Minute)
		if got := len(d.Engine.Calls()); got != 3 {
			t.Errorf("%d signals, want no more once it was taken", got)
		}
		if err := d.end(); err != nil {
			t.Error(err)
		}
	}))
	t.Run("D8 a panic costs one row one poll", inBubble(func(t *testing.T) {
		d := newTending(t, 2)
		panicked := 0
		d.Async.OnPoll = func(_ context.Context, ref mediagate.JobRef) (mediagate.Report, error) {
			outcome := activitytest.Success()
			if ref.ExternalID == "task-0" && panicked < 1 {
				panicked++
				panic("a bug of the adapter")
			}
			return mediagate.Report{State: mediagate.JobSucceeded, Outcome: &outcome}, nil
		}
		d.begin()
		time.Sleep(16 * time.Second)
		if d.outcome("task-1") == nil || d.outcome("task-0") != nil {
			t.Errorf("outcomes %v, %v; want that of the second task only", d.outcome("task-0"), d.outcome("task-1"))
		}
		time.Sleep(16 * time.Second)
		if d.outcome("task-0") == nil {
			t.Error("the row was not polled again")
		}
		if err := d.end(); err != nil {
			t.Error(err)
		}
	}))
	t.Run("D8 a newer run fences", inBubble(func(t *testing.T) {
		d := newTending(t, 1)
		d.begin()
		time.Sleep(time.Second)
		if _, err := d.Store.BeginEpoch(t.Context(), activitytest.AsyncChannel); err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Second)
		select {
		case err := <-d.done:
			if err != nil {
				t.Errorf("the fenced run ended with %v", err)
			}
		default:
			t.Error("the fenced run goes on")
			_ = d.end()
		}
		time.Sleep(time.Minute)
		if got := len(d.Async.Polls()); got != 0 {
			t.Errorf("%d polls by a fenced run", got)
		}
	}))
	t.Run("D8 an answer that comes after the fence is not stored", inBubble(func(t *testing.T) {
		d := newTending(t, 1)
		d.Async.OnPoll = func(ctx context.Context, _ mediagate.JobRef) (mediagate.Report, error) {
			epoch, err := d.Store.BeginEpoch(ctx, activitytest.AsyncChannel)
			if err != nil {
				t.Error(err)
			}
			if rows, err := d.Store.ClaimDue(ctx, activitytest.AsyncChannel, epoch, "claim-new", time.Minute, 10); err != nil || len(rows) != 1 {
				t.Errorf("the newer run claims %v (%v)", rows, err)
			}
			outcome := activitytest.Success()
			return mediagate.Report{State: mediagate.JobSucceeded, Outcome: &outcome}, nil
		}
		d.begin()
		if err := <-d.done; err != nil {
			t.Error(err)
		}
		if d.outcome("task-0") != nil || len(d.Engine.Calls()) != 0 {
			t.Error("a fenced run has stored an outcome")
		}
	}))
	t.Run("D11 unknown three times in a row is trouble", inBubble(func(t *testing.T) {
		d := newTending(t, 1)
		answers := []mediagate.Kind{mediagate.KindNotFound, mediagate.KindNotFound, mediagate.KindTransient}
		d.Async.OnPoll = func(context.Context, mediagate.JobRef) (mediagate.Report, error) {
			k := mediagate.KindNotFound
			if len(answers) > 0 {
				k, answers = answers[0], answers[1:]
			}
			return mediagate.Report{}, mediagate.Errorf(k, "no")
		}
		d.begin()
		time.Sleep(15*5*time.Second - time.Second) // polled each 15 s or sooner: four or five times
		time.Sleep(2 * time.Minute)
		if got := d.trouble("task-0"); got != mediagate.ParkJobLost {
			t.Errorf("trouble %q, want %s", got, mediagate.ParkJobLost)
		}
		if got := len(d.Async.Polls()); got != 6 {
			t.Errorf("%d polls, want 6: two that do not count, one that failed, three in a row", got)
		}
		if got := d.Engine.Calls(); len(got) == 0 || got[0] != "upstream task-0 1" {
			t.Errorf("signals %v", got)
		}
		if err := d.end(); err != nil {
			t.Error(err)
		}
	}))
	t.Run("D11 another account is not asked", inBubble(func(t *testing.T) {
		d := newTending(t, 1)
		d.setChannel(func(c *activities.BoundChannel) { c.Fingerprint = "account-b" })
		d.begin()
		time.Sleep(20 * time.Second)
		if err := d.end(); err != nil {
			t.Error(err)
		}
		if d.trouble("task-0") != mediagate.ParkChannelMissing || len(d.Async.Polls()) != 0 || len(d.Engine.Calls()) != 1 {
			t.Errorf("trouble %q, %d polls, signals %v", d.trouble("task-0"), len(d.Async.Polls()), d.Engine.Calls())
		}
	}))
	t.Run("D12 parked tasks are woken when the vendor is back", inBubble(func(t *testing.T) {
		d := newTending(t, 3)
		if err := d.Store.Park(t.Context(), "task-2", mediagate.ParkProviderAway); err != nil {
			t.Fatal(err)
		}
		var back atomic.Bool
		d.Async.OnPoll = func(context.Context, mediagate.JobRef) (mediagate.Report, error) {
			if !back.Load() {
				return mediagate.Report{}, mediagate.Errorf(mediagate.KindTransient, "away")
			}
			return mediagate.Report{State: mediagate.JobRunning, Percent: 10}, nil
		}
		d.begin()
		time.Sleep(16 * time.Second)
		if got := d.Engine.Calls(); len(got) != 0 {
			t.Errorf("calls %v while the vendor is away", got)
		}
		back.Store(true)
		time.Sleep(16 * time.Second)
		if err := d.end(); err != nil {
			t.Error(err)
		}
		if diff := cmp.Diff([]string{"wake task-2"}, d.Engine.Calls()); diff != "" {
			t.Errorf("calls (-want +got):\n%s", diff)
		}
	}))
	t.Run("refused credentials are trouble after three", inBubble(func(t *testing.T) {
		d := newTending(t, 1)
		d.Async.OnPoll = func(context.Context, mediagate.JobRef) (mediagate.Report, error) {
			return mediagate.Report{}, mediagate.Errorf(mediagate.KindCredentials, "no")
		}
		d.begin()
		time.Sleep(time.Minute)
		if got := len(d.Async.Polls()); d.trouble("task-0") != "" || got != 2 {
			t.Errorf("trouble %q after %d polls in a minute, want none and two: they come rarely", d.trouble("task-0"), got)
		}
		time.Sleep(time.Minute)
		if err := d.end(); err != nil {
			t.Error(err)
		}
		if got := len(d.Async.Polls()); d.trouble("task-0") != mediagate.ParkCredentials || got != 3 {
			t.Errorf("trouble %q after %d polls, want %s after three", d.trouble("task-0"), got, mediagate.ParkCredentials)
		}
	}))
}

func TestTendStops(t *testing.T) {
	t.Parallel()
	t.Run("idle", inBubble(func(t *testing.T) {
		d := newTending(t, 1)
		d.begin()
		time.Sleep(3 * time.Second)
		at := time.Now()
		if err := d.end(); err != nil || time.Since(at) != 0 {
			t.Errorf("ended with %v after %v, want at once", err, time.Since(at))
		}
	}))
	t.Run("a vendor hangs", inBubble(func(t *testing.T) {
		d := newTending(t, 1)
		d.Async.OnPoll = func(ctx context.Context, _ mediagate.JobRef) (mediagate.Report, error) {
			<-ctx.Done()
			return mediagate.Report{}, mediagate.Errorf(mediagate.KindTransient, "cut: %w", ctx.Err())
		}
		d.begin()
		time.Sleep(20 * time.Second)
		if got := len(d.Async.Polls()); got != 1 {
			t.Fatalf("%d polls, want one under way", got)
		}
		at := time.Now()
		if err := d.end(); err != nil || time.Since(at) != 0 {
			t.Errorf("ended with %v after %v, want at once", err, time.Since(at))
		}
		// The next tender asks at once.
		if rows := d.Store.Awaits(); len(rows) != 1 || rows[0].Claim != "" || rows[0].NextPollAt.After(time.Now()) {
			t.Errorf("rows %+v, want one that is free and due", rows)
		}
	}))
	t.Run("the budget is used up", inBubble(func(t *testing.T) {
		d := newTending(t, 5)
		d.setChannel(func(c *activities.BoundChannel) { c.RequestsPerSecond = 0.05 })
		d.begin()
		time.Sleep(20 * time.Second)
		at := time.Now()
		if err := d.end(); err != nil || time.Since(at) != 0 {
			t.Errorf("ended with %v after %v, want at once", err, time.Since(at))
		}
	}))
}

// A vendor that hangs must not make the channel look dead: its profile allows
// 10 s between two heartbeats.
func TestTendBeatsWhileAVendorHangs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := newTending(t, 1)
		d.Async.OnPoll = func(ctx context.Context, _ mediagate.JobRef) (mediagate.Report, error) {
			<-ctx.Done()
			return mediagate.Report{}, mediagate.Errorf(mediagate.KindTransient, "too slow")
		}
		d.begin()
		time.Sleep(time.Minute)
		if err := d.end(); err != nil {
			t.Error(err)
		}
		d.mu.Lock()
		defer d.mu.Unlock()
		if len(d.beats) < 6 {
			t.Fatalf("heartbeats in a minute: %v", d.beats)
		}
		for i := 1; i < len(d.beats); i++ {
			if gap := d.beats[i].Sub(d.beats[i-1]); gap >= 10*time.Second {
				t.Errorf("%v between two heartbeats", gap)
			}
		}
		if d.last.Waiting != 1 || d.last.LastError != "transient" {
			t.Errorf("last heartbeat %+v", d.last)
		}
	})
}

// The account's budget holds whatever is due.
func TestTendKeepsTheBudget(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const rps, tasks = 2, 40
		d := newTending(t, tasks)
		d.setChannel(func(c *activities.BoundChannel) { c.RequestsPerSecond = rps })
		var asked times
		d.Async.OnPoll = func(context.Context, mediagate.JobRef) (mediagate.Report, error) {
			asked.note()
			return mediagate.Report{State: mediagate.JobRunning, Percent: -1}, nil
		}
		d.begin()
		time.Sleep(2 * time.Minute)
		if err := d.end(); err != nil {
			t.Error(err)
		}
		at := asked.list()
		if len(at) < tasks {
			t.Fatalf("%d polls of %d tasks in 2 min: some starve", len(at), tasks)
		}
		for i := rps + 1; i < len(at); i++ {
			if window := at[i].Sub(at[i-rps-1]); window < time.Second/2 {
				t.Errorf("%d polls within %v", rps+2, window)
			}
		}
		perTask := make(map[string]int)
		for _, ref := range d.Async.Polls() {
			perTask[ref.ExternalID]++
		}
		if len(perTask) != tasks {
			t.Errorf("%d of %d tasks were asked for", len(perTask), tasks)
		}
	})
}

// The pace follows the expected end: rare at first, dense around it.
func TestTendAdaptsItsPace(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		d := newTending(t, 1) // expected after 2 min, polled every 2 to 15 s
		var asked times
		var progress []int
		d.Async.OnPoll = func(context.Context, mediagate.JobRef) (mediagate.Report, error) {
			asked.note()
			task, err := d.Store.TaskByID(context.Background(), "task-0")
			if err != nil {
				t.Error(err)
			}
			progress = append(progress, task.Progress)
			return mediagate.Report{State: mediagate.JobRunning, Percent: -1}, nil
		}
		d.begin()
		time.Sleep(9 * time.Minute)
		if err := d.end(); err != nil {
			t.Error(err)
		}
		at := asked.list()
		if first := at[0].Sub(began); first < 15*time.Second || first > 16*time.Second {
			t.Errorf("first poll after %v, want 15 s", first)
		}
		for i := 1; i < len(at); i++ {
			gap, age := at[i].Sub(at[i-1]), at[i-1].Sub(began)
			if gap < 2*time.Second || gap > 16*time.Second {
				t.Errorf("pause of %v after %v", gap, age)
			}
			if near := (age - 2*time.Minute).Abs(); near < 8*time.Second && gap > 3*time.Second+20*time.Millisecond {
				t.Errorf("pause of %v just at the expected end", gap)
			}
		}
		if !slices.IsSorted(progress) || slices.Max(progress) > 95 || slices.Max(progress) < 90 {
			t.Errorf("progress without the vendor's word: %v", progress)
		}
	})
}

// A hint makes the channel ask within a second.
func TestTendTakesHints(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := newTending(t, 1)
		d.begin()
		time.Sleep(3 * time.Second)
		if _, err := newEnv(d.World).ExecuteActivity(d.Activities.HintPoll, activities.TaskArgs{TaskID: "task-0"}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(1100 * time.Millisecond)
		if got := len(d.Async.Polls()); got != 1 {
			t.Errorf("%d polls within a second of the hint, want 1", got)
		}
		if err := d.end(); err != nil {
			t.Error(err)
		}
	})
}

// D11: a worker that lacks the channel leaves it to others; once nobody had
// it for ten minutes, its tasks are in trouble.
func TestD11TendMissingChannel(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		unseen  time.Duration
		trouble string
	}{
		"seen just now":        {0, ""},
		"seen within grace":    {10*time.Minute - time.Second, ""},
		"gone for the grace":   {10 * time.Minute, mediagate.ParkChannelMissing},
		"gone for much longer": {time.Hour, mediagate.ParkChannelMissing},
	}
	for name, c := range cases {
		t.Run(name, inBubble(func(t *testing.T) {
			d := newTending(t, 1)
			d.Store.SeeChannel(activitytest.AsyncChannel, time.Now())
			d.Channels.Set()
			time.Sleep(max(c.unseen, 0))
			if c.unseen < 15*time.Second {
				d.hint()
			}
			d.begin()
			err := <-d.done
			kind(t, err, mediagate.KindUnreached, mediagate.ParkChannelMissing, true)
			if got := d.trouble("task-0"); got != c.trouble {
				t.Errorf("trouble %q, want %q", got, c.trouble)
			}
			if got := len(d.Engine.Calls()); (got == 1) != (c.trouble != "") {
				t.Errorf("signals %v", d.Engine.Calls())
			}
			if c.trouble == "" {
				return
			}
			time.Sleep(time.Minute) // the signal stays owed, as with a channel that is there
			d.begin()
			kind(t, <-d.done, mediagate.KindUnreached, mediagate.ParkChannelMissing, true)
			if got := len(d.Engine.Calls()); got != 2 {
				t.Errorf("%d signals, want a second one", got)
			}
		}))
	}
}

func (d *tending) hint() {
	d.t.Helper()
	if err := d.Store.HintPoll(context.Background(), "task-0"); err != nil {
		d.t.Fatal(err)
	}
}

// A database that fails ends the run with an error that Temporal repeats, in
// a new epoch.
func TestTendDatabaseAway(t *testing.T) {
	t.Parallel()
	for _, method := range []string{"BeginEpoch", "ClaimDue", "StorePolls", "AwaitStats"} {
		t.Run(method, inBubble(func(t *testing.T) {
			d := newTending(t, 1)
			d.Store.Fault = func(m string) error {
				if m == method {
					return mediagate.Errorf(mediagate.KindUnavailable, "the database is away")
				}
				return nil
			}
			d.begin()
			kind(t, <-d.done, mediagate.KindUnavailable, "", true)
		}))
	}
}
