package activities_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/activities/activitytest"
)

// passes lets d pass, with a pass of the reconciler each minute.
func passes(t *testing.T, w *activitytest.World, d time.Duration) {
	t.Helper()
	for end := time.Now().Add(d); time.Now().Before(end); {
		reconcile(t, w, time.Millisecond)
		time.Sleep(min(time.Minute, time.Until(end)))
	}
}

// D2: a run that outlives its task's time is woken once and
// then replaced, ever more rarely, parked or not.
func TestD2OverdueRunsAreReplaced(t *testing.T) {
	t.Parallel()
	wake, replace := "wake "+taskID, "replace "+taskID
	cases := map[string]struct {
		reason mediagate.ParkReason // it is parked for
		end    time.Duration        // of all patience, after the submit
	}{
		"waiting":                 {"", 2 * time.Hour},
		"parked":                  {mediagate.ParkFunds, 24 * time.Hour},
		"parked as a lost submit": {mediagate.ParkSubmissionUnknown, 3 * time.Hour},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := activitytest.New(time.Now)
				w.Store.Add(w.NewVideo())
				s := scene{w, t}
				s.submitted()
				w.Engine.Running = map[string]bool{taskID: true}
				if c.reason != "" {
					s.check(w.Store.Park(t.Context(), taskID, c.reason))
				}
				began := time.Now()
				looks := func(until time.Duration, want ...string) {
					t.Helper()
					before := len(w.Engine.Calls())
					passes(t, w, c.end+until-time.Since(began))
					got := slices.DeleteFunc(w.Engine.Calls()[before:], func(call string) bool { return call != wake && call != replace })
					if diff := cmp.Diff(append([]string{}, want...), got); diff != "" {
						t.Errorf("until %s beyond its time (-want +got):\n%s", until, diff)
					}
				}
				time.Sleep(c.end - time.Minute)
				looks(19 * time.Minute)
				looks(22*time.Minute, wake)
				looks(29 * time.Minute)
				looks(33*time.Minute, replace)
				looks(44*time.Minute, replace)
				looks(60 * time.Minute)
				looks(70*time.Minute, replace)
				_, _, err := w.Store.Settle(t.Context(), mediagate.Settlement{TaskID: taskID, Status: mediagate.StatusCancelled})
				s.check(err)
				looks(4 * time.Hour)
			})
		})
	}
}

// D2: so is a run that does not hear that its task has ended.
func TestD2DeafRunsAreReplacedEverMoreRarely(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := activitytest.New(time.Now)
		w.Store.Add(w.NewVideo())
		s := scene{w, t}
		s.submitted()
		w.Engine.Running = map[string]bool{taskID: true}
		s.ended(mediagate.Settlement{TaskID: taskID, N: 1, Status: mediagate.StatusCompleted, RunUntold: true})
		replaced := func(during time.Duration) (times int) {
			t.Helper()
			before := len(w.Engine.Calls())
			passes(t, w, during)
			for _, call := range w.Engine.Calls()[before:] {
				if call == "replace "+taskID {
					times++
				}
			}
			return times
		}
		if n := replaced(10 * time.Minute); n != 0 {
			t.Errorf("replaced %d times within the time in which a run may hear", n)
		}
		if n := replaced(9 * time.Minute); n != 0 {
			t.Errorf("replaced %d times although it had just been woken", n)
		}
		if n := replaced(3 * time.Minute); n != 1 {
			t.Errorf("replaced %d times at first, want once", n)
		}
		if n := replaced(38 * time.Minute); n < 2 || n > 4 {
			t.Errorf("replaced %d times within the hour, want it ten minutes apart, then more rarely", n)
		}
		if n := replaced(3 * time.Hour); n < 3 || n > 6 {
			t.Errorf("replaced %d times within the next three hours", n)
		}
	})
}

// D2: so is one that takes no signal any more, but not while Temporal is away.
func TestD2RunsThatRefuseSignalsAreReplaced(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		refusal  error
		replaced bool
	}{
		"refused":          {&mediagate.Error{Kind: mediagate.KindConflict, Message: "the run takes no signal"}, true},
		"Temporal is away": {errors.New("unavailable"), false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := activitytest.New(time.Now)
				w.Store.Add(w.NewVideo())
				s := scene{w, t}
				s.submitted()
				w.Engine.Running = map[string]bool{taskID: true}
				w.Engine.OnWake = func(string) error { return test.refusal }
				s.ended(mediagate.Settlement{TaskID: taskID, N: 1, Status: mediagate.StatusCompleted, RunUntold: true})
				passes(t, w, 25*time.Minute)
				if got := slices.Contains(w.Engine.Calls(), "replace "+taskID); got != test.replaced {
					t.Errorf("replaced: %v, want %v: %q", got, test.replaced, w.Engine.Calls())
				}
			})
		})
	}
}

// D2: so is that of a callback that is pending for longer
// than any round takes.
func TestD2HangingRoundsAreReplaced(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := activitytest.New(time.Now)
		w.Store.Add(w.NewVideo())
		s := scene{w, t}
		_, _, err := w.Store.Settle(t.Context(), mediagate.Settlement{
			TaskID: taskID, Status: mediagate.StatusFailed, Failure: &mediagate.Failure{Code: mediagate.CodeInternal}, WebhookBody: []byte("{}"),
		})
		s.check(err)
		replaced := func() int {
			return len(slices.DeleteFunc(w.Engine.Calls(), func(call string) bool { return call != "replace webhook "+taskID+" 1" }))
		}
		for _, step := range []struct {
			d    time.Duration
			want int
		}{{10 * time.Minute, 0}, {2 * time.Minute, 1}, {7 * time.Minute, 1}, {3 * time.Minute, 2}} {
			passes(t, w, step.d)
			if got := replaced(); got != step.want {
				t.Errorf("%d replacements, want %d", got, step.want)
			}
		}
		s.check(w.Store.RecordDelivery(t.Context(), mediagate.Delivery{TaskID: taskID, Round: 1, Attempt: 1}, mediagate.WebhookDelivered, ""))
		passes(t, w, 2*time.Hour)
		if got := replaced(); got != 2 {
			t.Errorf("%d replacements, the last after the delivery", got)
		}
	})
}

// D2: a round that is between two attempts gets on, however long it has been
// pending: those of a receiver that does not answer wait for their turn.
func TestD2RoundsThatGetOnAreLeftAlone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := activitytest.New(time.Now)
		w.Store.Add(w.NewVideo())
		s := scene{w, t}
		_, _, err := w.Store.Settle(t.Context(), mediagate.Settlement{
			TaskID: taskID, Status: mediagate.StatusFailed, Failure: &mediagate.Failure{Code: mediagate.CodeInternal}, WebhookBody: []byte("{}"),
		})
		s.check(err)
		replaced := func() bool { return slices.Contains(w.Engine.Calls(), "replace webhook "+taskID+" 1") }
		passes(t, w, 9*time.Minute)
		s.check(w.Store.RecordDelivery(t.Context(), mediagate.Delivery{
			TaskID: taskID, Round: 1, Attempt: 1, At: time.Now(), NextAttemptAt: time.Now().Add(3 * time.Minute),
		}, "", ""))
		passes(t, w, 3*time.Minute)
		if replaced() {
			t.Error("it was replaced between two attempts")
		}
		passes(t, w, 30*time.Minute)
		if !replaced() {
			t.Error("it was not replaced though the next attempt was due long ago")
		}
	})
}

// D2: a full batch is followed by the next at once.
func TestD2RescueTakesAllBatches(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := activitytest.New(time.Now)
		ids := make([]string, 1100)
		for i := range ids {
			task := w.NewVideo()
			task.ID = fmt.Sprintf("task-%04d", i)
			ids[i] = task.ID
			w.Store.Add(task)
		}
		if err := w.Store.MarkChecked(t.Context(), ids, true); err != nil {
			t.Fatal(err)
		}
		time.Sleep(3 * time.Hour)
		if err := w.Store.MarkChecked(t.Context(), ids, true); err != nil {
			t.Fatal(err)
		}
		reconcile(t, w, time.Millisecond)
		if got := len(w.Engine.Calls()); got != len(ids) {
			t.Errorf("%d woken in one pass, want all %d", got, len(ids))
		}
	})
}
