package workflows_test

import (
	"testing"
	"time"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/activities/activitytest"
	"github.com/mediagate/mediagate/workflows"
)

func ids(n int) []string {
	out := []string{taskID}
	for i := 2; i <= n; i++ {
		out = append(out, taskID+"-"+string(rune('0'+i)))
	}
	return out[:n]
}

// A refusal that proves that there is no job leads to the next attempt, under
// another id, after a growing pause.
func TestD4RefusedForNow(t *testing.T) {
	t.Parallel()
	for _, kind := range []mediagate.Kind{mediagate.KindThrottled, mediagate.KindCapacity, mediagate.KindUnreached} {
		t.Run(kind.String(), func(t *testing.T) {
			t.Parallel()
			b := setup(t, video)
			refuse(b.Async, 3, kind)
			b.succeeds(time.Minute, 4)
			b.run()
			b.ended(mediagate.StatusCompleted)
			b.submits(ids(4)...)
			attempts := b.Store.Attempts(taskID)
			for i, want := range []time.Duration{0, 2 * time.Second, 6 * time.Second, 14 * time.Second} {
				if got := attempts[i].CreatedAt.Sub(start); got != want {
					t.Errorf("attempt %d after %v, want %v", i+1, got, want)
				}
			}
		})
	}
}

func TestD12SixRefusalsPark(t *testing.T) {
	t.Parallel()
	t.Run("then accepted", func(t *testing.T) {
		t.Parallel()
		b := setup(t, video)
		refuse(b.Async, 6, mediagate.KindCapacity)
		b.at(3*time.Minute, func() {
			b.submits(ids(6)...)
			if got := b.task().ParkReason; got != mediagate.ParkProviderAway {
				t.Errorf("parked for %q, want %s", got, mediagate.ParkProviderAway)
			}
		})
		b.succeeds(10*time.Minute, 7)
		b.run()
		b.ended(mediagate.StatusCompleted)
		b.submits(ids(7)...)
		within(t, "attempt 7", b.Store.Attempts(taskID)[6].CreatedAt.Sub(start), 6*time.Minute, 9*time.Minute)
	})
	t.Run("for good", func(t *testing.T) {
		t.Parallel()
		b := setup(t, video)
		refuse(b.Async, 1000, mediagate.KindCapacity)
		b.run()
		b.failed(mediagate.CodeProviderAway)
		within(t, "the end", b.endedAt(), 24*time.Hour, 24*time.Hour+5*time.Minute)
		// One more each wait of 5 to 6 min.
		if got := len(b.Async.Submits()); got < 6+24*10-1 || got > 6+24*12+1 {
			t.Errorf("%d attempts in a day, want 246 to 295", got)
		}
	})
	t.Run("retried by an operator", func(t *testing.T) {
		t.Parallel()
		b := setup(t, video)
		refuse(b.Async, 6, mediagate.KindCapacity)
		b.signal(3*time.Minute, mediagate.ActionRetry, nil)
		b.succeeds(4*time.Minute, 7)
		b.run()
		b.ended(mediagate.StatusCompleted)
		b.submits(ids(7)...)
	})
	t.Run("a look alone sends nothing", func(t *testing.T) {
		t.Parallel()
		b := setup(t, video)
		refuse(b.Async, 6, mediagate.KindCapacity)
		b.signal(3*time.Minute, workflows.SignalUpstream, 6)
		b.signal(3*time.Minute, mediagate.ActionPollNow, nil)
		b.at(4*time.Minute, func() { b.submits(ids(6)...) })
		b.cancels(5 * time.Minute)
		b.run()
		b.cancelled()
	})
}

// What a person can mend parks at once; what nobody can mend fails at once.
func TestRefusals(t *testing.T) {
	t.Parallel()
	parks := map[mediagate.Kind]struct {
		reason mediagate.ParkReason
		code   mediagate.FailureCode
	}{
		mediagate.KindCredentials: {mediagate.ParkCredentials, mediagate.CodeProviderRefused},
		mediagate.KindForbidden:   {mediagate.ParkCredentials, mediagate.CodeProviderRefused},
		mediagate.KindFunds:       {mediagate.ParkFunds, mediagate.CodeProviderAway},
	}
	for kind, want := range parks {
		t.Run(kind.String()+" parks", func(t *testing.T) {
			t.Parallel()
			b := setup(t, video)
			refuse(b.Async, 1, kind)
			b.at(time.Minute, func() {
				b.submits(taskID)
				if got := b.task().ParkReason; got != want.reason {
					t.Errorf("parked for %q, want %s", got, want.reason)
				}
			})
			b.succeeds(10*time.Minute, 2)
			b.run()
			b.ended(mediagate.StatusCompleted)
			b.submits(ids(2)...)
		})
		t.Run(kind.String()+" for good", func(t *testing.T) {
			t.Parallel()
			b := setup(t, video)
			refuse(b.Async, 1000, kind)
			b.run()
			b.failed(want.code)
			if got := b.endedAt(); got != 24*time.Hour {
				t.Errorf("ended after %v, want 24h0m0s", got)
			}
		})
	}
	ends := map[mediagate.Kind]mediagate.FailureCode{
		mediagate.KindInvalid:   mediagate.CodeInvalidParameters,
		mediagate.KindModerated: mediagate.CodeContentPolicy,
	}
	for kind, code := range ends {
		t.Run(kind.String()+" fails", func(t *testing.T) {
			t.Parallel()
			b := setup(t, video)
			refuse(b.Async, 1000, kind)
			b.run()
			b.failed(code)
			b.submits(taskID)
			if got := b.endedAt(); got != 0 {
				t.Errorf("ended after %v, want at once", got)
			}
		})
	}
}

// A refusal that follows a parking of another kind is judged for itself: what
// was refused for good is not sent again.
func TestRefusedForGoodAfterAParking(t *testing.T) {
	t.Parallel()
	b := setup(t, video)
	refuse(b.Async, 1000, mediagate.KindModerated)
	b.Channels.Set(b.SyncBound()) // no channel at first
	b.at(4*time.Minute, func() { b.Channels.Set(b.AsyncBound(), b.SyncBound()) })
	b.run()
	b.failed(mediagate.CodeContentPolicy)
	b.submits(taskID)
}

// A worker without a channel for the task: it parks, and goes on by itself
// when one has it.
func TestD11NoChannelParks(t *testing.T) {
	t.Parallel()
	t.Run("back", func(t *testing.T) {
		t.Parallel()
		b := setup(t, video)
		b.Channels.Set(b.SyncBound())
		b.at(4*time.Minute, func() {
			if got := b.task().ParkReason; got != mediagate.ParkChannelMissing {
				t.Errorf("parked for %q, want %s", got, mediagate.ParkChannelMissing)
			}
			b.Channels.Set(b.AsyncBound(), b.SyncBound())
		})
		b.succeeds(20*time.Minute, 1)
		b.run()
		b.ended(mediagate.StatusCompleted)
		b.submits(taskID)
	})
	t.Run("gone for good", func(t *testing.T) {
		t.Parallel()
		b := setup(t, video)
		b.Channels.Set(b.SyncBound())
		b.run()
		b.failed(mediagate.CodeProviderAway)
		b.submits()
		within(t, "the end", b.endedAt(), 24*time.Hour, 24*time.Hour+5*time.Minute)
	})
}

// A database that is away while the intent is to be stored: nothing is sent,
// and the step is repeated.
func TestD3NothingIsSentWithoutAnIntent(t *testing.T) {
	t.Parallel()
	b := setup(t, video)
	b.Store.Fault = func(method string) error {
		if method == "OpenAttempt" && b.elapsed() < 10*time.Second {
			return mediagate.Errorf(mediagate.KindUnavailable, "the database is away")
		}
		return nil
	}
	b.succeeds(time.Minute, 1)
	b.run()
	b.ended(mediagate.StatusCompleted)
	b.submits(taskID)
}

// The vendor's answer was read and could not be stored: the repeated step
// finds the intent and asks the vendor, it does not send again.
func TestD3LostAnswerIsLookedUp(t *testing.T) {
	t.Parallel()
	b := setup(t, video)
	b.failsAccept(mediagate.Errorf(mediagate.KindInternal, "the answer is lost"))
	b.succeeds(time.Minute, 1)
	b.run()
	b.ended(mediagate.StatusCompleted)
	b.submits(taskID)
	if got := b.Async.Finds(); len(got) != 1 || got[0].ExternalID != activitytest.TaskID {
		t.Errorf("lookups %v, want one by the task's id", got)
	}
}

// While the database is away, the vendor's answer is held by who heard it: a
// result that comes with the answer would be lost otherwise.
func TestD3AnswerIsHeldWhileTheDatabaseIsAway(t *testing.T) {
	t.Parallel()
	for name, task := range map[string]func(*activitytest.World) mediagate.Task{"video": video, "image": image} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, task)
			b.failsAccept(mediagate.Errorf(mediagate.KindUnavailable, "the database is away"))
			b.answersAtOnce()
			b.succeeds(time.Minute, 1)
			b.run()
			b.ended(mediagate.StatusCompleted)
			if got := b.Async.Finds(); len(got) != 0 {
				t.Errorf("lookups %v, want none", got)
			}
		})
	}
}

// failsAccept lets the first record of an acceptance fail.
func (b *bundle) failsAccept(err error) {
	failed := false
	b.Store.Fault = func(method string) error {
		if method == "AcceptAttempt" && !failed {
			failed = true
			return err
		}
		return nil
	}
}
