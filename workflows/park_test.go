package workflows_test

import (
	"context"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/activities"
	"github.com/mediagate/mediagate/activities/activitytest"
	"github.com/mediagate/mediagate/workflows"
)

func TestD12BucketAway(t *testing.T) {
	t.Parallel()
	t.Run("tried again by itself", func(t *testing.T) {
		t.Parallel()
		b := setup(t, video)
		b.bucketAway(12 * time.Minute)
		b.succeeds(time.Minute, 1)
		var parked mediagate.Task
		b.at(3*time.Minute, func() { parked = b.task() })
		b.run()
		b.ended(mediagate.StatusCompleted)
		if parked.ParkReason != mediagate.ParkStorage {
			t.Errorf("parked for %q, want %s", parked.ParkReason, mediagate.ParkStorage)
		}
		within(t, "the end", b.endedAt(), 12*time.Minute, 20*time.Minute)
		b.submits(taskID)
		if got := len(b.Bucket.Objects()); got != 1 {
			t.Errorf("%d objects, want 1", got)
		}
	})
	t.Run("woken when it is back", func(t *testing.T) {
		t.Parallel()
		b := setup(t, video)
		b.bucketAway(2 * time.Minute)
		b.succeeds(time.Minute, 1)
		b.signal(2*time.Minute+time.Second, workflows.SignalWake, nil)
		b.run()
		b.ended(mediagate.StatusCompleted)
		within(t, "the end", b.endedAt(), 2*time.Minute, 2*time.Minute+2*time.Second)
	})
	t.Run("never back", func(t *testing.T) {
		t.Parallel()
		b := setup(t, video)
		b.bucketAway(1000 * time.Hour)
		b.succeeds(time.Minute, 1)
		b.run()
		b.failed(mediagate.CodeResultUnavailable)
		within(t, "the end", b.endedAt(), 24*time.Hour+time.Minute, 24*time.Hour+2*time.Minute)
	})
}

func TestMirrorFailures(t *testing.T) {
	t.Parallel()
	fetch := func(err error) func(*bundle) {
		return func(b *bundle) {
			b.Fetcher.OnFetch = func(context.Context, string, string) (io.ReadCloser, int64, error) { return nil, 0, err }
		}
	}
	store := func(err error) func(*bundle) {
		return func(b *bundle) { b.Bucket.OnMirror = func(string) error { return err } }
	}
	cases := map[string]struct {
		script func(*bundle)
		park   mediagate.ParkReason // empty: the task fails at once
		code   mediagate.FailureCode
	}{
		"its channel gone":   {fetch(&mediagate.Error{Kind: mediagate.KindUnreached, Code: string(mediagate.ParkChannelMissing)}), mediagate.ParkChannelMissing, mediagate.CodeProviderAway},
		"dead link":          {fetch(mediagate.Errorf(mediagate.KindGone, "gone")), mediagate.ParkResult, mediagate.CodeResultUnavailable},
		"file server away":   {fetch(mediagate.Errorf(mediagate.KindTransient, "away")), mediagate.ParkResult, mediagate.CodeResultUnavailable},
		"address refused":    {fetch(mediagate.Errorf(mediagate.KindInvalid, "private")), "", mediagate.CodeResultUnavailable},
		"not such media":     {store(mediagate.Errorf(mediagate.KindInvalid, "no video")), "", mediagate.CodeResultUnavailable},
		"too large":          {store(mediagate.Errorf(mediagate.KindTooLarge, "too large")), "", mediagate.CodeResultUnavailable},
		"bucket away":        {store(mediagate.Errorf(mediagate.KindUnavailable, "away")), mediagate.ParkStorage, mediagate.CodeResultUnavailable},
		"a fault of our own": {store(mediagate.Errorf(mediagate.KindInternal, "a bug")), mediagate.ParkInternal, mediagate.CodeInternal},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, video)
			c.script(b)
			b.succeeds(time.Minute, 1)
			var parked mediagate.Task
			b.at(3*time.Minute, func() { parked = b.task() })
			b.run()
			b.failed(c.code)
			if c.park == "" {
				if got := b.endedAt(); got != time.Minute {
					t.Errorf("ended after %v, want at once", got)
				}
				return
			}
			if parked.ParkReason != c.park {
				t.Errorf("parked for %q, want %q", parked.ParkReason, c.park)
			}
			within(t, "the end", b.endedAt(), 24*time.Hour, 24*time.Hour+3*time.Minute)
		})
	}
}

// Commands arrive by hand, without a row, or with the row that the API wrote.
func TestD12OperatorsCommands(t *testing.T) {
	t.Parallel()
	byHand := func(action string) func(*bundle, time.Duration) {
		return func(b *bundle, d time.Duration) { b.signal(d, action, nil) }
	}
	byRow := func(action string) func(*bundle, time.Duration) {
		return func(b *bundle, d time.Duration) {
			b.at(d, func() {
				row, err := b.Store.RecordAction(b.t.Context(), mediagate.Action{ID: "act_api", TaskID: taskID, Action: action, By: "admin"})
				b.ok(err)
				arg := activities.ActionArgs{ID: row.ID, TaskID: taskID, Action: action}
				b.env.SignalWorkflow(workflows.SignalAction, arg)
				b.env.SignalWorkflow(workflows.SignalAction, arg) // the reconciler's copy of it
			})
		}
	}
	ways := map[string]func(string) func(*bundle, time.Duration){"by hand": byHand, "with a row": byRow}
	for way, send := range ways {
		t.Run("retry "+way, func(t *testing.T) {
			t.Parallel()
			b := setup(t, video)
			b.bucketAway(3 * time.Minute)
			b.succeeds(time.Minute, 1)
			send(mediagate.ActionRetry)(b, 3*time.Minute)
			b.run()
			b.ended(mediagate.StatusCompleted)
			within(t, "the end", b.endedAt(), 3*time.Minute, 3*time.Minute+time.Second)
			b.taken(mediagate.ActionRetry)
		})
		t.Run("fail "+way, func(t *testing.T) {
			t.Parallel()
			b := setup(t, video)
			b.bucketAway(time.Hour)
			b.succeeds(time.Minute, 1)
			send(mediagate.ActionFail)(b, 3*time.Minute)
			b.run()
			b.failed(mediagate.CodeResultUnavailable)
			within(t, "the end", b.endedAt(), 3*time.Minute, 3*time.Minute+time.Second)
			b.taken(mediagate.ActionFail)
		})
		t.Run("fail while awaiting "+way, func(t *testing.T) {
			t.Parallel()
			b := setup(t, video)
			send(mediagate.ActionFail)(b, 3*time.Minute)
			b.run()
			b.failed(mediagate.CodeInternal)
			b.taken(mediagate.ActionFail)
		})
		t.Run("fail between two attempts "+way, func(t *testing.T) {
			t.Parallel()
			b := setup(t, video)
			refuse(b.Async, 3, mediagate.KindCapacity)
			send(mediagate.ActionFail)(b, time.Second)
			b.run()
			b.failed(mediagate.CodeInternal)
			b.submits(taskID)
		})
		t.Run("poll_now "+way, func(t *testing.T) {
			t.Parallel()
			b := setup(t, video)
			send(mediagate.ActionPollNow)(b, 3*time.Minute)
			b.at(3*time.Minute+time.Second, func() {
				if rows := b.Store.Awaits(); len(rows) != 1 || !rows[0].NextPollAt.Equal(start.Add(3*time.Minute)) {
					t.Errorf("rows %+v, want one that is due", rows)
				}
			})
			b.succeeds(4*time.Minute, 1)
			b.run()
			b.ended(mediagate.StatusCompleted)
			b.taken(mediagate.ActionPollNow)
		})
	}
}

// taken checks that there is one command on record, and that it was obeyed.
func (b *bundle) taken(action string) {
	b.t.Helper()
	got := b.Store.Actions()
	if len(got) != 1 || got[0].Action != action || got[0].State != "taken" {
		b.t.Errorf("commands on record: %+v, want one %s, taken", got, action)
	}
}

// A command that was obeyed before a reset is not obeyed again.
func TestD12TakenCommandIsNotObeyedAgain(t *testing.T) {
	t.Parallel()
	b := setup(t, video)
	row, err := b.Store.RecordAction(t.Context(), mediagate.Action{ID: "act_api", TaskID: taskID, Action: mediagate.ActionFail})
	b.ok(err)
	_, err = b.Store.TakeAction(t.Context(), row.ID, "run")
	b.ok(err)
	b.signal(time.Minute, workflows.SignalAction, activities.ActionArgs{ID: row.ID, TaskID: taskID, Action: mediagate.ActionFail})
	b.succeeds(2*time.Minute, 1)
	b.run()
	b.ended(mediagate.StatusCompleted)
}

// A job that the vendor lost sight of is parked; the channel asks again after
// each wait, and only when it got an answer is the task unparked.
func TestD11Trouble(t *testing.T) {
	t.Parallel()
	for _, reason := range []mediagate.ParkReason{mediagate.ParkJobLost, mediagate.ParkChannelMissing} {
		t.Run(string(reason)+", then found", func(t *testing.T) {
			t.Parallel()
			b := setup(t, video)
			b.polled(time.Minute, mediagate.PollResult{N: 1, Trouble: reason})
			b.at(2*time.Minute, func() {
				if got := b.task(); got.ParkReason != reason || !got.ParkedAt.Equal(start.Add(time.Minute)) {
					t.Errorf("parked for %q at %v, want %s at once", got.ParkReason, got.ParkedAt, reason)
				}
			})
			b.at(7*time.Minute+5*time.Second, func() {
				if got := b.Store.Attempts(taskID)[0]; got.Trouble != "" || len(b.Store.Awaits()) != 1 {
					t.Errorf("trouble %q, %d rows: the channel does not ask again", got.Trouble, len(b.Store.Awaits()))
				}
				if got := b.task(); got.ParkReason != reason {
					t.Errorf("parked for %q, want %s until it went well", got.ParkReason, reason)
				}
			})
			b.at(14*time.Minute, func() {
				if got := b.task(); got.ParkReason != reason || !got.ParkedAt.Equal(start.Add(time.Minute)) {
					t.Errorf("parked for %q since %v, want %s, as no answer came", got.ParkReason, got.ParkedAt, reason)
				}
			})
			b.at(15*time.Minute, func() {
				b.ok(b.StorePoll(b.t.Context(), mediagate.PollResult{TaskID: taskID, N: 1, Answered: true}))
			})
			b.at(21*time.Minute, func() {
				if got := b.task(); got.ParkReason != "" {
					t.Errorf("still parked for %s", got.ParkReason)
				}
			})
			b.succeeds(22*time.Minute, 1)
			b.run()
			b.ended(mediagate.StatusCompleted)
			b.submits(taskID)
		})
		t.Run(string(reason)+", success while parked", func(t *testing.T) {
			t.Parallel()
			b := setup(t, video)
			b.polled(time.Minute, mediagate.PollResult{N: 1, Trouble: reason})
			b.succeeds(9*time.Minute, 1)
			b.run()
			b.ended(mediagate.StatusCompleted)
			if got := b.endedAt(); got != 9*time.Minute {
				t.Errorf("ended after %v, want 9m0s", got)
			}
		})
		t.Run(string(reason)+", for good", func(t *testing.T) {
			t.Parallel()
			b := setup(t, video)
			b.polled(time.Minute, mediagate.PollResult{N: 1, Trouble: reason})
			// Whenever the channel asks again, it soon is in trouble again.
			var ask func()
			ask = func() {
				if rows := b.Store.Awaits(); len(rows) == 1 && !rows[0].Ended {
					b.ok(b.StorePoll(b.t.Context(), mediagate.PollResult{TaskID: taskID, N: 1, Trouble: reason}))
					b.env.SignalWorkflow(workflows.SignalUpstream, 1)
				}
				b.at(time.Minute, ask)
			}
			b.at(2*time.Minute, ask)
			b.run()
			b.failed(mediagate.CodeProviderAway)
			within(t, "the end", b.endedAt(), 24*time.Hour+time.Minute, 24*time.Hour+2*time.Minute)
			b.submits(taskID)
		})
	}
}

// The signal of a trouble is outstanding until the run has taken it; afterwards it
// may not come again, or each copy would begin the wait anew and grow the
// history.
func TestD11TroubleIsSignalledOnce(t *testing.T) {
	t.Parallel()
	b := setup(t, video)
	b.polled(time.Minute, mediagate.PollResult{N: 1, Trouble: mediagate.ParkJobLost})
	b.at(time.Minute+time.Second, func() {
		if rows := b.Store.Awaits(); len(rows) != 0 {
			t.Errorf("%+v is still outstanding for a run that has parked", rows)
		}
	})
	b.succeeds(30*time.Minute, 1)
	b.run()
	b.ended(mediagate.StatusCompleted)
}

// An operator's retry asks at once.
func TestD11RetryAsksAtOnce(t *testing.T) {
	t.Parallel()
	b := setup(t, video)
	b.polled(time.Minute, mediagate.PollResult{N: 1, Trouble: mediagate.ParkJobLost})
	b.signal(2*time.Minute, mediagate.ActionRetry, nil)
	b.at(2*time.Minute+time.Second, func() {
		if rows := b.Store.Awaits(); len(rows) != 1 || rows[0].Ended || !rows[0].NextPollAt.Equal(start.Add(2*time.Minute)) {
			t.Errorf("rows %+v, want one that is due", rows)
		}
	})
	b.succeeds(3*time.Minute, 1)
	b.run()
	b.ended(mediagate.StatusCompleted)
}

// An outcome that came while the trouble's wait ended: nothing is left to be
// restored, and the run goes on with the outcome.
func TestD11OutcomeBeatsRestore(t *testing.T) {
	t.Parallel()
	b := setup(t, video)
	b.polled(time.Minute, mediagate.PollResult{N: 1, Trouble: mediagate.ParkJobLost})
	b.Store.Fault = func(method string) error {
		if method == "RestoreAwait" {
			_, err := b.Store.RecordOutcome(context.Background(), taskID, 1, activitytest.Success())
			return err
		}
		return nil
	}
	b.run()
	b.ended(mediagate.StatusCompleted)
}

// The end of a parking is no reason to throw away what has become known
// meanwhile, though no signal told of it.
func TestD12GivingUpLooksFirst(t *testing.T) {
	t.Parallel()
	outcome := activitytest.Success()
	setupShort := func(t *testing.T) *bundle {
		t.Helper()
		b := setup(t, video)
		b.Activities.Settings.ParkTimeout, b.Activities.Settings.ParkRetry = 10*time.Minute, 5*time.Minute
		b.polled(time.Minute, mediagate.PollResult{N: 1, Trouble: mediagate.ParkJobLost})
		return b
	}
	t.Run("the vendor has answered", func(t *testing.T) {
		t.Parallel()
		b := setupShort(t)
		b.at(9*time.Minute, func() {
			b.ok(b.StorePoll(b.t.Context(), mediagate.PollResult{TaskID: taskID, N: 1, Answered: true}))
		})
		b.succeeds(20*time.Minute, 1)
		b.run()
		b.ended(mediagate.StatusCompleted)
	})
	t.Run("the job has ended", func(t *testing.T) {
		t.Parallel()
		b := setupShort(t)
		b.at(9*time.Minute, func() {
			b.ok(b.StorePoll(b.t.Context(), mediagate.PollResult{TaskID: taskID, N: 1, Outcome: &outcome}))
		})
		b.run()
		b.ended(mediagate.StatusCompleted)
		within(t, "the end", b.endedAt(), 11*time.Minute, 11*time.Minute+time.Second)
	})
	t.Run("nothing new", func(t *testing.T) {
		t.Parallel()
		b := setupShort(t)
		b.run()
		b.failed(mediagate.CodeProviderAway)
		within(t, "the end", b.endedAt(), 11*time.Minute, 11*time.Minute+time.Second)
	})
}

// What a parking's end finds in the row counts, whatever it waited for.
func TestD11TroubleThatIsOver(t *testing.T) {
	t.Parallel()
	t.Run("the job has ended", func(t *testing.T) {
		t.Parallel()
		b := setup(t, video)
		outcome := activitytest.Success()
		b.polled(time.Minute, mediagate.PollResult{N: 1, Trouble: mediagate.ParkJobLost})
		b.at(8*time.Minute, func() { // restored; the signal of the end gets lost
			b.ok(b.StorePoll(b.t.Context(), mediagate.PollResult{TaskID: taskID, N: 1, Outcome: &outcome}))
		})
		b.run()
		b.ended(mediagate.StatusCompleted)
		within(t, "the end", b.endedAt(), 11*time.Minute, 14*time.Minute)
		if got := b.count("RestoreAwait"); got != 1 {
			t.Errorf("restored %d times, want once", got)
		}
	})
	t.Run("the row is gone", func(t *testing.T) {
		t.Parallel()
		b := setup(t, video)
		b.polled(time.Minute, mediagate.PollResult{N: 1, Trouble: mediagate.ParkJobLost})
		b.at(8*time.Minute, func() { b.Store.Remove(taskID) })
		b.env.ExecuteWorkflow(workflows.Generate, workflows.Input{TaskID: taskID, Provider: activitytest.AsyncProvider})
		if err := b.env.GetWorkflowError(); err == nil || !strings.Contains(err.Error(), "row_missing") {
			t.Errorf("error %v, want row_missing", err)
		}
	})
}
