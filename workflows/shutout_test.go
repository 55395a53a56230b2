package workflows_test

import (
	"testing"
	"time"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/activities/activitytest"
	"github.com/mediagate/mediagate/workflows"
)

// spare adds another account with the vendor, tried after the first.
func (b *bundle) spare() *activitytest.Vendor {
	v, c := &activitytest.Vendor{}, b.AsyncBound()
	c.Name, c.Fingerprint, c.Priority, c.Vendor = "async-b", "account-b", 1, v.Finding()
	b.Channels.Set(b.AsyncBound(), c)
	return v
}

func (b *bundle) trip(channel string, reason mediagate.ParkReason, openFor time.Duration) {
	b.t.Helper()
	_, _, err := b.Store.TripBreaker(b.t.Context(), mediagate.Trip{Channel: channel, Reason: reason, Began: b.env.Now(), OpenFor: openFor})
	b.ok(err)
}

func (b *bundle) parkedFor(d time.Duration, want mediagate.ParkReason, attempts int) {
	b.at(d, func() {
		if got := b.task().ParkReason; got != want || len(b.Store.Attempts(taskID)) != attempts {
			b.t.Errorf("after %v parked for %q with %d attempts, want %q with %d", d, got, len(b.Store.Attempts(taskID)), want, attempts)
		}
	})
}

// What one account refuses for a reason of its own goes to the next one at
// once, and nobody has to mend anything first.
func TestRefusedByOneAccount(t *testing.T) {
	t.Parallel()
	for _, kind := range []mediagate.Kind{mediagate.KindFunds, mediagate.KindCredentials, mediagate.KindUnreached, mediagate.KindCapacity} {
		t.Run(kind.String(), func(t *testing.T) {
			t.Parallel()
			b := setup(t, video)
			refuse(b.Async, 1000, kind)
			other := b.spare()
			b.at(time.Minute, func() {
				_, err := b.Store.RecordOutcome(t.Context(), taskID, 2, activitytest.Success())
				b.ok(err)
				b.env.SignalWorkflow(workflows.SignalUpstream, 2)
			})
			b.run()
			b.ended(mediagate.StatusCompleted)
			attempts := b.Store.Attempts(taskID)
			if len(attempts) != 2 || attempts[1].Channel != "async-b" || attempts[1].CreatedAt.Sub(start) > time.Second {
				t.Errorf("attempts %+v", attempts)
			}
			if jobs := other.Submits(); len(jobs) != 1 || jobs[0].ExternalID != taskID+"-2" {
				t.Errorf("the other account is asked for %+v", jobs)
			}
			if n := b.count("ParkTask"); n != 0 {
				t.Errorf("the task was parked %d times", n)
			}
		})
	}
}

// When no account is left that has money the task parks for that.
func TestRefusedByAllAccounts(t *testing.T) {
	t.Parallel()
	b := setup(t, video)
	refuse(b.Async, 1, mediagate.KindFunds)
	refuse(b.spare(), 1, mediagate.KindFunds)
	b.parkedFor(time.Minute, mediagate.ParkFunds, 2)
	b.succeeds(10*time.Minute, 3) // the first account, as the probe
	b.run()
	b.ended(mediagate.StatusCompleted)
	if s := b.Store.Channel(activitytest.AsyncChannel); s.Open {
		t.Errorf("after a job that was taken: %+v", s)
	}
}

// An answer that was lost leads to no other account: the first may have the job
// (D4, D6).
func TestLostAnswerStays(t *testing.T) {
	t.Parallel()
	b := setup(t, video)
	b.Async.OnSubmit = submitFunc(func(_ int, job mediagate.Job) (mediagate.Submission, error) {
		_, err := b.Async.Accept(job)
		b.ok(err)
		b.trip(activitytest.AsyncChannel, mediagate.ParkProviderAway, time.Hour)
		return mediagate.Submission{}, errLost
	})
	other := b.spare()
	b.succeeds(5*time.Minute, 1)
	b.run()
	b.ended(mediagate.StatusCompleted)
	b.submits(taskID)
	if n := len(other.Submits()); n != 0 {
		t.Errorf("the other account got %d jobs", n)
	}
}

// A task that comes while all channels are out parks without an attempt, and
// goes on when one is back.
func TestAllChannelsOut(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		reason mediagate.ParkReason
		back   func(b *bundle)
	}{
		"the vendor was away": {mediagate.ParkProviderAway, func(b *bundle) {
			_, err := b.Store.EnableChannel(b.t.Context(), activitytest.AsyncChannel, true)
			b.ok(err)
		}},
		"without money": {mediagate.ParkFunds, func(b *bundle) {
			b.trip(activitytest.AsyncChannel, mediagate.ParkFunds, 0) // nothing changes: this task is the probe
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, video)
			b.trip(activitytest.AsyncChannel, c.reason, 2*time.Minute)
			b.parkedFor(time.Minute, c.reason, 0)
			b.at(3*time.Minute, func() {
				c.back(b)
				b.env.SignalWorkflow(workflows.SignalWake, nil)
			})
			b.succeeds(5*time.Minute, 1)
			b.run()
			b.ended(mediagate.StatusCompleted)
			b.submits(taskID)
			if row := b.Store.Attempts(taskID)[0]; row.CreatedAt.Sub(start) > 3*time.Minute+time.Second {
				t.Errorf("sent %v after the start", row.CreatedAt.Sub(start))
			}
		})
	}
	t.Run("for good", func(t *testing.T) {
		t.Parallel()
		b := setup(t, video)
		_, err := b.Store.EnableChannel(t.Context(), activitytest.AsyncChannel, false)
		b.ok(err)
		b.run()
		b.failed(mediagate.CodeProviderAway)
		b.submits()
		within(t, "the end", b.endedAt(), 24*time.Hour, 24*time.Hour+6*time.Minute)
	})
}

// A vendor that is away takes its channel out after a few tasks' worth of
// refusals; whoever waits goes on when it is back, by being the probe.
func TestVendorAwayAndBack(t *testing.T) {
	t.Parallel()
	b := setup(t, video)
	b.Async.OnSubmit = submitFunc(func(_ int, job mediagate.Job) (mediagate.Submission, error) {
		if b.elapsed() < 20*time.Minute {
			return mediagate.Submission{}, mediagate.Errorf(mediagate.KindUnreached, "no connection")
		}
		return b.Async.Accept(job)
	})
	b.at(19*time.Minute, func() {
		// Five at first, and one each time that the task tries by itself.
		if n := len(b.Async.Submits()); n < 5+2 || n > 5+4 {
			t.Errorf("%d calls to a vendor that is away", n)
		}
		if s := b.Store.Channel(activitytest.AsyncChannel); !s.Open || s.Trips < 2 {
			t.Errorf("channel %+v", s)
		}
	})
	b.at(40*time.Minute, func() {
		n := b.Store.Attempts(taskID)
		outcome := activitytest.Success()
		b.ok(b.StorePoll(t.Context(), mediagate.PollResult{TaskID: taskID, N: len(n), Outcome: &outcome}))
		b.env.SignalWorkflow(workflows.SignalUpstream, len(n))
	})
	b.run()
	b.ended(mediagate.StatusCompleted)
	if s := b.Store.Channel(activitytest.AsyncChannel); s.Open {
		t.Errorf("channel %+v", s)
	}
}
