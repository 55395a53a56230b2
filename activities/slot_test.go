package activities_test

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/activities"
	"github.com/mediagate/mediagate/channel"
	"github.com/mediagate/mediagate/providers"
	"github.com/mediagate/mediagate/task"
)

// occupy takes a slot of the channel for another task.
func (b *bundle) occupy(c channel.Channel) {
	b.t.Helper()
	other := b.NewVideo()
	other.ID = "task_at_" + c.Name
	b.Store.Add(other)
	_, err := b.Store.OpenIntent(b.t.Context(), other.ID, c.Slots(), task.IntentStored{Sending: task.Sending{
		N: 1, Channel: c.Name, Provider: c.Provider, ExternalID: other.ID, SendBefore: b.Now().Add(time.Minute),
		CallEnds: b.Now().Add(time.Hour),
	}})
	b.ok(err)
}

// TestD7SubmitTakesTheFirstSlot checks that a submit takes the first free slot of the channels
// that take jobs. If there is none, the task is queued for all channels.
func TestD7SubmitTakesTheFirstSlot(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		channels   string // some of a (priority 1, one slot), b (2, one slot), c (3, no limit)
		full, shut string
		want       string // the channel of the attempt, or ""
		queued     []string
		park       mediagate.ParkReason
	}{
		"the first":                       {channels: "abc", want: "a"},
		"the next, if that is full":       {channels: "abc", full: "a", want: "b"},
		"one without a limit":             {channels: "abc", full: "ab", want: "c"},
		"none":                            {channels: "ab", full: "ab", queued: []string{"a", "b"}},
		"none that is open":               {channels: "ab", full: "a", shut: "b", queued: []string{"a", "b"}},
		"full, and one without is shut":   {channels: "ac", full: "a", shut: "c", queued: []string{"a", "c"}},
		"all are shut, and some limited":  {channels: "ac", shut: "ac", queued: []string{"a", "c"}},
		"all are shut, and none limited":  {channels: "c", shut: "c", park: mediagate.ParkProviderAway},
		"the first is shut":               {channels: "ab", shut: "a", want: "b"},
		"the first is shut, not disabled": {channels: "abc", full: "b", shut: "a", want: "c"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, video)
			accounts := map[rune]channel.Channel{'a': b.account("a", 1, 1), 'b': b.account("b", 1, 2), 'c': b.account("c", 0, 3)}
			var list []channel.Channel
			for _, name := range c.channels {
				list = append(list, accounts[name])
			}
			b.Channels.Set(list...)
			for _, name := range c.full {
				b.occupy(accounts[name])
			}
			for _, name := range c.shut {
				_, err := b.Store.EnableChannel(t.Context(), string(name), false)
				b.ok(err)
			}
			writes := b.counts()
			answer, err := b.tryStep(task.Submit, 1)
			if c.park != "" {
				kind(t, err, mediagate.KindShutOut, c.park, false)
				return
			}
			b.ok(err)
			if answer.Channel != c.want || !slices.Equal(answer.QueuedFor, c.queued) {
				t.Errorf("at %q, queued for %v; want %q, %v", answer.Channel, answer.QueuedFor, c.want, c.queued)
			}
			if got := len(b.Async.Submits()); got != len(c.want) {
				t.Errorf("%d jobs were submitted", got)
			}
			if c.queued == nil {
				return
			}
			if answer.Step.Why != task.SleepSlot {
				t.Errorf("the next step is %+v, want to wait for a slot", answer.Step)
			}
			if got := writes(); !strings.HasSuffix(got, "1 Change") {
				t.Errorf("queueing takes %s", got)
			}
		})
	}
}

// TestD7ATaskThatEndsIsNotQueued checks that a task that refuses to be queued, since it is to
// end, continues with its next step.
func TestD7ATaskThatEndsIsNotQueued(t *testing.T) {
	t.Parallel()
	b := setup(t, video)
	c := b.account("a", 1, 1)
	b.Channels.Set(c)
	b.occupy(c)
	b.change(task.CancelRequested{})
	if answer := b.submit(1); answer.Step.Kind != task.Settle || len(answer.QueuedFor) > 0 {
		t.Errorf("answer %+v", answer)
	}
}

// TestD7GrantedSlots checks that a granted slot is taken, and that one that cannot be used leaves
// the task queued.
func TestD7GrantedSlots(t *testing.T) {
	t.Parallel()
	for name, shut := range map[string]bool{"taken": false, "the channel was shut meanwhile": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, video)
			c := b.account("a", 1, 1)
			b.Channels.Set(c)
			b.occupy(c)
			b.submit(1)
			busy, _ := b.Store.Peek("task_at_a")
			_, err := b.Store.Change(t.Context(), "task_at_a", task.Refused{Sending: busy.Last().Sending})
			b.ok(err)
			epoch, err := b.Store.BeginEpoch(t.Context(), "a")
			b.ok(err)
			got, err := b.Store.GrantSlots(
				t.Context(), mediagate.Granting{Channel: "a", Epoch: epoch, Slots: c.Slots(), Most: 1, TakeBack: time.Minute},
			)
			b.ok(err)
			if !slices.Equal(got.Tasks, []string{taskID}) {
				t.Fatalf("granted %+v", got)
			}
			if next := b.ask().Step; next.Kind != task.Submit || next.N != 1 {
				t.Errorf("once a slot is granted the next step is %+v", next)
			}
			if shut {
				_, err := b.Store.EnableChannel(t.Context(), "a", false)
				b.ok(err)
				b.advance(time.Minute)
			}
			answer := b.submit(1)
			if sent := answer.State == mediagate.AttemptAccepted; sent == shut || shut && answer.Step.Why != task.SleepSlot {
				t.Errorf("answer %+v", answer)
			}
		})
	}
}

// TestD12QueuedForAChannelThatIsWell checks that a parked task goes on when a channel is merely
// full, and stays parked while every channel has a trouble.
func TestD12QueuedForAChannelThatIsWell(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		shut   bool
		probe  bool // a probe is due
		parked mediagate.ParkReason
	}{
		"it is well":          {},
		"it is shut":          {shut: true, parked: mediagate.ParkFunds},
		"its probe has begun": {shut: true, probe: true, parked: mediagate.ParkFunds},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, video)
			a := b.account("a", 1, 1)
			b.Channels.Set(a)
			b.occupy(a)
			b.change(
				task.StepEnded{
					Step: task.Submit, N: 1, Failed: true, Kind: mediagate.KindShutOut, Code: string(mediagate.ParkFunds),
				},
			)
			if c.shut {
				b.shut(a.Name, mediagate.ParkFunds)
			}
			if c.probe {
				b.advance(time.Minute)
			}
			if answer := b.submit(1); len(answer.QueuedFor) == 0 || answer.ParkReason != c.parked || answer.N != 0 {
				t.Errorf("queued for %v, parked for %q, want %q", answer.QueuedFor, answer.ParkReason, c.parked)
			}
		})
	}
}

// TestD12QueuedBehindARefusal checks that a task that is queued for channels that all refuse our
// account is parked as well, so that a person sees it before the breaker lets a probe through.
// While the vendor is merely away, the task is only queued.
func TestD12QueuedBehindARefusal(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ a, b, parked mediagate.ParkReason }{
		"credentials":                {mediagate.ParkCredentials, mediagate.ParkCredentials, mediagate.ParkCredentials},
		"away":                       {mediagate.ParkProviderAway, mediagate.ParkProviderAway, ""},
		"one of them is away":        {mediagate.ParkCredentials, mediagate.ParkProviderAway, ""},
		"one of them is merely full": {mediagate.ParkCredentials, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, video)
			one, other := b.account("a", 1, 1), b.account("b", 1, 2)
			b.Channels.Set(one, other)
			b.shut("a", c.a)
			if c.b == "" {
				b.occupy(other)
			} else {
				b.shut("b", c.b)
			}
			answer := b.submit(1)
			if answer.Step.Why != task.SleepSlot || len(answer.QueuedFor) != 2 || answer.ParkReason != c.parked {
				t.Fatalf("%+v, parked for %q, want %q", answer.Step, answer.ParkReason, c.parked)
			}
			if !strings.HasSuffix(answer.Doing(), cmp.Or(string(c.parked), "slot")) {
				t.Errorf("the task says %q", answer.Doing())
			}
		})
	}
}

// unstoppable is a vendor that cannot stop a job.
type unstoppable struct{ providers.Provider }

// TestD7CancelledJobsThatRunOnKeepTheirSlots checks that a cancelled job keeps its slot if its
// vendor cannot stop it, or does not, and that the next job has to wait. A job that the vendor
// has stopped frees its slot.
func TestD7CancelledJobsThatRunOnKeepTheirSlots(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		vendor func(b *bundle, p providers.Provider) providers.Provider
		sent   int
	}{
		"of a vendor that cannot stop": {
			func(_ *bundle, p providers.Provider) providers.Provider { return unstoppable{p} }, 1,
		},
		"of one that refuses to": {func(b *bundle, p providers.Provider) providers.Provider {
			b.Async.OnCancel = func(context.Context, mediagate.JobRef) error { return errors.New("it has begun") }
			return p
		}, 1},
		"of one that stops": {func(_ *bundle, p providers.Provider) providers.Provider { return p }, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, video)
			a := b.account("a", 1, 1)
			a.Vendor = c.vendor(b, a.Vendor)
			b.Channels.Set(a)
			b.submit(1)
			if changed := b.change(task.CancelRequested{}); changed.Step.Kind == task.CancelJob {
				b.step(task.CancelJob, 1)
			}
			b.step(task.Settle, 1)
			next := b.NewVideo()
			next.ID = "task_next"
			b.Store.Add(next)
			must[activities.Answer](b, b.Activities.SubmitJob, stepOf(next.ID, task.Submit, 1))
			if got := len(b.Async.Submits()); got != c.sent {
				t.Errorf("%d jobs were submitted, want %d", got, c.sent)
			}
		})
	}
}
