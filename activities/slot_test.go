package activities_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/activities"
	"github.com/mediagate/mediagate/activities/activitytest"
	"github.com/mediagate/mediagate/channel"
	"github.com/mediagate/mediagate/providers"
)

// account is another one with the asynchronous vendor.
func (b *bundle) account(name string, concurrency, priority int) channel.Channel {
	c := b.AsyncBound()
	c.Name, c.Fingerprint, c.Concurrency, c.Priority = name, name, concurrency, priority
	return c
}

// occupy takes a slot of the channel for another task.
func (b *bundle) occupy(c channel.Channel, id string) {
	b.t.Helper()
	task := b.NewVideo()
	task.ID = id
	b.Store.Add(task)
	if _, _, err := b.Store.OpenAttempt(b.t.Context(), mediagate.Attempt{
		TaskID: id, N: 1, Channel: c.Name, Provider: c.Provider, Route: task.Plan.Routes[0],
	}, c.Slots()); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bundle) queuedAt() []string {
	b.t.Helper()
	var names []string
	for _, c := range b.Channels.All() {
		rows, err := b.Store.QueuedTasks(b.t.Context(), c.Name, 10)
		if err != nil {
			b.t.Fatal(err)
		}
		if len(rows) > 0 {
			names = append(names, c.Name)
		}
	}
	return names
}

func TestD7SubmitTakesTheFirstSlot(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		full, shut []string // of a (priority 1, a slot), b (2, a slot), c (3, no limit)
		channels   string
		want       string // the channel of the attempt, or none
		queued     []string
		park       mediagate.ParkReason
	}{
		"the first":                       {channels: "abc", want: "a"},
		"the next, if that is full":       {channels: "abc", full: []string{"a"}, want: "b"},
		"one without a limit":             {channels: "abc", full: []string{"a", "b"}, want: "c"},
		"none":                            {channels: "ab", full: []string{"a", "b"}, queued: []string{"a", "b"}},
		"none that is open":               {channels: "ab", full: []string{"a"}, shut: []string{"b"}, queued: []string{"a", "b"}},
		"full, and one without is shut":   {channels: "ac", full: []string{"a"}, shut: []string{"c"}, queued: []string{"a", "c"}},
		"all are shut, and some limited":  {channels: "ac", shut: []string{"a", "c"}, queued: []string{"a", "c"}},
		"all are shut, and none limited":  {channels: "c", shut: []string{"c"}, park: mediagate.ParkProviderAway},
		"the first is shut":               {channels: "ab", shut: []string{"a"}, want: "b"},
		"the first is shut, not disabled": {channels: "abc", full: []string{"b"}, shut: []string{"a"}, want: "c"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, video)
			accounts := map[string]channel.Channel{"a": b.account("a", 1, 1), "b": b.account("b", 1, 2), "c": b.account("c", 0, 3)}
			var list []channel.Channel
			for _, name := range test.channels {
				list = append(list, accounts[string(name)])
			}
			b.Channels.Set(list...)
			for _, name := range test.full {
				b.occupy(accounts[name], "task_at_"+name)
			}
			for _, name := range test.shut {
				if _, err := b.Store.EnableChannel(t.Context(), name, false); err != nil {
					t.Fatal(err)
				}
			}
			st, err := call[mediagate.Story](b, b.Activities.SubmitJob, first())
			if test.park != "" {
				if e := activities.FromTemporal(err); err == nil || e.Kind != mediagate.KindShutOut || e.Code != string(test.park) {
					t.Fatalf("error %v, want to park for %s", err, test.park)
				}
			} else if err != nil {
				t.Fatal(err)
			}
			if st.Channel != test.want || st.QueuedAt.IsZero() != (test.queued == nil) || st.Granted {
				t.Errorf("at %q, queued since %v; want %q, %v", st.Channel, st.QueuedAt, test.want, test.queued)
			}
			if got := b.queuedAt(); !slices.Equal(got, test.queued) {
				t.Errorf("queued for %v, want %v", got, test.queued)
			}
			if got := len(b.Async.Submits()); got != len(test.want) {
				t.Errorf("%d jobs were submitted", got)
			}
		})
	}
}

// A parked task goes on when a channel is merely full, and stays parked while
// none is well (D12).
func TestD12QueuedForAChannelThatIsWell(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		shut   bool
		probe  bool // is due
		parked mediagate.ParkReason
	}{
		"it is well":          {},
		"it is shut":          {shut: true, parked: mediagate.ParkFunds},
		"its probe has begun": {shut: true, probe: true, parked: mediagate.ParkFunds},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, video)
			c := b.account("a", 1, 1)
			b.Channels.Set(c)
			b.occupy(c, "task_other")
			b.ok(b.Store.Park(t.Context(), taskID, mediagate.ParkFunds))
			if test.shut {
				b.shut(c.Name, mediagate.ParkFunds)
			}
			if test.probe {
				b.advance(time.Minute)
			}
			st := b.submit(1)
			if st.QueuedAt.IsZero() || st.ParkReason != test.parked || st.N != 0 {
				t.Errorf("queued since %v, parked for %q, want %q", st.QueuedAt, st.ParkReason, test.parked)
			}
		})
	}
}

// unstoppable is a vendor that cannot stop a job.
type unstoppable struct{ providers.Provider }

// D7: jobs that are cancelled run on at a vendor that cannot stop them, or does
// not. As many as run, no more are sent. Those that it has stopped make room.
func TestD7CancelledJobsThatRunOnKeepTheirSlots(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		vendor func(b *bundle, p providers.Provider) providers.Provider
		sent   int // of the second five, at once
	}{
		"who cannot stop": {func(_ *bundle, p providers.Provider) providers.Provider { return unstoppable{p} }, 0},
		"who refuses to": {func(b *bundle, p providers.Provider) providers.Provider {
			b.Async.OnCancel = func(context.Context, mediagate.JobRef) error { return errors.New("it has begun") }
			return p
		}, 0},
		"who stops": {func(_ *bundle, p providers.Provider) providers.Provider { return p }, 5},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, video)
			c := b.account("a", 5, 1)
			c.Vendor = test.vendor(b, c.Vendor)
			b.Channels.Set(c)
			submit := func(id string) {
				task := b.NewVideo()
				task.ID = id
				b.Store.Add(task)
				must[mediagate.Story](b, b.Activities.SubmitJob, activities.AttemptArgs{TaskID: id, N: 1})
			}
			for i := range 5 {
				submit(fmt.Sprintf("task_one_%d", i))
			}
			for i := range 5 {
				id := fmt.Sprintf("task_one_%d", i)
				must[any](b, b.Activities.CancelJob, activities.AttemptArgs{TaskID: id, N: 1})
				must[mediagate.Story](b, b.Activities.Settle, activities.SettleArgs{TaskID: id, N: 1, Status: mediagate.StatusCancelled})
			}
			for i := range 5 {
				submit(fmt.Sprintf("task_two_%d", i))
			}
			if got := len(b.Async.Submits()); got != 5+test.sent {
				t.Errorf("%d jobs were submitted, want %d", got, 5+test.sent)
			}
			if test.sent > 0 {
				return
			}
			b.advance(mediagate.SlotsLost * b.task().Plan.Expected)
			submit("task_late")
			rows, err := b.Store.QueuedTasks(t.Context(), c.Name, 10)
			b.ok(err)
			if got := len(b.Async.Submits()); got != 5 || len(rows) != 6 { // nobody overtakes who waits
				t.Errorf("%d jobs were submitted, %d tasks are queued", got, len(rows))
			}
			epoch, err := b.Store.BeginEpoch(t.Context(), c.Name)
			b.ok(err)
			got, err := b.Store.GrantSlots(t.Context(), mediagate.Granting{
				Channel: c.Name, Epoch: epoch, Slots: c.Slots(), Most: 10, TakeBack: time.Minute, Again: time.Minute,
			})
			b.ok(err)
			if len(got.Signals) != 5 || got.Waiting != 1 {
				t.Errorf("granted %+v", got)
			}
		})
	}
}

// D5, D7: a job that is accepted after its task has ended has a slot, until the
// vendor has stopped it.
func TestD7AcceptedAfterTheEndTakesASlot(t *testing.T) {
	t.Parallel()
	for stops, want := range map[bool]int{true: 0, false: 1} {
		b := setup(t, video)
		b.Async.OnSubmit = func(ctx context.Context, job mediagate.Job) (mediagate.Submission, error) {
			_, _, err := b.Store.Settle(ctx, mediagate.Settlement{TaskID: taskID, Status: mediagate.StatusCancelled})
			return mediagate.Submission{Ref: mediagate.JobRef{JobID: "job-1", ExternalID: job.ExternalID}}, err
		}
		b.Async.OnCancel = func(context.Context, mediagate.JobRef) error {
			if !stops {
				return errors.New("it has begun")
			}
			return nil
		}
		_, _ = call[mediagate.Story](b, b.Activities.SubmitJob, first()) // what counts is what is stored
		if got, _, _, err := b.Store.ChannelLoad(t.Context(), activitytest.AsyncChannel); err != nil || got != want {
			t.Errorf("stopped: %t: %d slots are taken, error %v", stops, got, err)
		}
	}
}

// A limited account has one slot for an attempt, whatever number of calls it takes.
func TestD7PartsOfALimitedAccountFollowEachOther(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setup(t, images(4))
		c := b.SyncBound()
		c.Concurrency = 1
		b.Channels.Set(b.AsyncBound(), c)
		var underWay atomic.Int32
		b.Sync.OnSubmit = func(ctx context.Context, job mediagate.Job) (mediagate.Submission, error) {
			if underWay.Add(1) > 1 {
				t.Error("two calls at once")
			}
			time.Sleep(time.Second)
			defer underWay.Add(-1)
			return draws(ctx, job)
		}
		if st := b.submit(1); !st.Succeeded {
			t.Errorf("the attempt ended as %+v", st)
		}
	})
}
