package activities_test

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/activities"
	"github.com/mediagate/mediagate/channel"
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
