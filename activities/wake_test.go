package activities_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/activities"
	"github.com/mediagate/mediagate/activities/activitytest"
	"github.com/mediagate/mediagate/task"
)

// wakeScene is a task whose wakes the scan handles.
type wakeScene struct {
	*bundle
	mu    sync.Mutex
	began time.Time
	calls []string // the calls to Temporal, each with the time since the scene began
}

// wakes sets the scene, inside a bubble.
func wakes(t *testing.T, run activities.RunState) *wakeScene {
	t.Helper()
	s := &wakeScene{bundle: bubbled(t), began: time.Now()}
	if run != "" {
		s.Engine.SetRun(taskID, run)
	}
	note := func(word string) func(context.Context, string) error {
		return func(context.Context, string) error {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.calls = append(s.calls, fmt.Sprintf("%v %s", time.Since(s.began).Truncate(time.Second), word))
			return nil
		}
	}
	s.Engine.OnStart, s.Engine.OnWake, s.Engine.OnReplace = note("start"), note("wake"), note("replace")
	return s
}

// after lets d pass and checks the calls of that time.
func (s *wakeScene) after(d time.Duration, want ...string) {
	s.t.Helper()
	s.spend(d)
	same(s.t, "calls", s.calls, want)
}

// spend lets d pass while housekeeping runs. The activity of a test may take ten minutes, and is
// stopped between the whole minutes at which wakes are due.
func (s *wakeScene) spend(d time.Duration) {
	s.t.Helper()
	for end := time.Now().Add(d); time.Now().Before(end); {
		housekeep(s.t, s.World, min(5*time.Minute-time.Second/2, time.Until(end)))
	}
}

// asks has the run ask for its next step.
func (s *wakeScene) asks() { s.change(task.Asked{}) }

// quiet is a time in which nothing is due, just shorter than the lease of a question. No
// scan runs meanwhile: a wake that is due too early is found, and noted, by the first one
// after it.
const quiet = 10*time.Minute - 10*time.Second

// TestD2RunsAreStarted checks that a run that never asked is started five seconds after its
// submit. A run that was started before is signalled in the same try; from the second try on, one
// minute later, it is described first. A run that is gone is replaced at once.
func TestD2RunsAreStarted(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		run  activities.RunState
		want []string
	}{
		// there is no run at the second try
		"none was started": {"", []string{"5s start", "1m5s replace", "3m5s replace"}},
		"it has ended": {
			activities.RunNone, []string{"5s start", "5s wake", "5s replace", "1m5s replace", "3m5s replace"},
		},
		"it is idle":          {activities.RunIdle, []string{"5s start", "5s wake", "1m5s wake", "3m5s replace"}},
		"it waits its turn":   {activities.RunBusy, []string{"5s start", "5s wake"}},
		"it begins to fail":   {activities.RunFailing, []string{"5s start", "5s wake"}},
		"it fails for longer": {activities.RunBroken, []string{"5s start", "5s wake", "1m5s replace", "3m5s replace"}},
	} {
		inBubble(t, name, func(t *testing.T) {
			wakes(t, c.run).after(4*time.Minute, c.want...)
		})
	}
}

// TestD2RunsAreWakened checks that a run that asked and does not ask again is signalled, and,
// from the second try on, described first. A run that is gone is replaced at once.
func TestD2RunsAreWakened(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		run  activities.RunState
		want []string
	}{
		"it is idle": {activities.RunIdle, []string{"10m0s wake", "11m0s wake", "13m0s replace"}},
		"it is gone": {activities.RunNone, []string{"10m0s wake", "10m0s replace", "11m0s replace", "13m0s replace"}},
		"it has completed": {
			activities.RunCompleted, []string{"10m0s wake", "10m0s replace", "11m0s replace", "13m0s replace"},
		},
		"a step is at work": {activities.RunBusy, []string{"10m0s wake"}},
		"it begins to fail": {activities.RunFailing, []string{"10m0s wake"}},
		"it is broken":      {activities.RunBroken, []string{"10m0s wake", "11m0s replace", "13m0s replace"}},
	} {
		inBubble(t, name, func(t *testing.T) {
			s := wakes(t, c.run)
			s.asks()
			time.Sleep(quiet)
			s.after(4*time.Minute, c.want...)
		})
	}
}

// TestD2TheRunOfAnUnreadableTask checks that a task whose row cannot be read has a run all the
// same, which parks and ends it.
func TestD2TheRunOfAnUnreadableTask(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		asked bool
		after time.Duration
		want  []string
	}{
		"it was never started": {false, 40 * time.Second, []string{"5s start", "5s wake", "5s replace"}},
		"it is gone":           {true, 40 * time.Second, []string{"10m0s wake", "10m0s replace"}},
	} {
		inBubble(t, name, func(t *testing.T) {
			s := wakes(t, activities.RunNone)
			if c.asked {
				s.asks()
				time.Sleep(quiet)
			}
			s.Store.Fault = fails("TaskByID", mediagate.KindInternal) // a column that does not hold its type
			s.after(c.after, c.want...)
		})
	}
}

// TestD2AskingStartsTheCountAnew checks that the count of tries begins anew when a run asks, and
// that a task that has ended has no wake.
func TestD2AskingStartsTheCountAnew(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := wakes(t, activities.RunIdle)
		s.asks()
		time.Sleep(quiet)
		s.after(100*time.Second, "10m0s wake", "11m0s wake")
		s.asks()
		time.Sleep(quiet)
		s.after(100*time.Second, "10m0s wake", "11m0s wake", "21m30s wake", "22m30s wake")
		s.change(task.CancelRequested{}, task.EndDue{}, task.Asked{})
		time.Sleep(2 * time.Hour)
		s.after(time.Minute, "10m0s wake", "11m0s wake", "21m30s wake", "22m30s wake")
	})
}

// TestD2LostSignalsAreRepeated checks that a change of the task, here a cancel, reaches the run
// although its signal was lost.
func TestD2LostSignalsAreRepeated(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := wakes(t, activities.RunBusy)
		s.submit(1)
		s.change(task.CancelRequested{})
		s.after(20*time.Second, "2s wake")
	})
}

// TestD2TriesThatCount checks that a refused signal counts as a try. While Temporal is out of
// reach no try counts, and the run is neither described nor replaced.
func TestD2TriesThatCount(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		err   error
		tries int
		want  []string
	}{
		"too many signals": {
			&mediagate.Error{Kind: mediagate.KindConflict, Message: "the run takes no signal"}, 3, []string{"replace"},
		},
		"out of reach": {errors.New("connection refused"), 0, nil},
	} {
		inBubble(t, name, func(t *testing.T) {
			s := wakes(t, activities.RunIdle)
			s.asks()
			s.Engine.OnWake = func(context.Context, string) error { return c.err }
			time.Sleep(quiet)
			s.spend(4 * time.Minute)
			var got []string
			for _, call := range s.calls {
				_, word, _ := strings.Cut(call, " ")
				got = append(got, word)
			}
			if tries := s.Store.Wakes(taskID)[mediagate.WakeRun].Tries; tries != c.tries {
				t.Errorf("%d tries count, want %d", tries, c.tries)
			}
			same(t, "calls", got, c.want)
		})
	}
}

// TestD2RoundsAreStarted checks that a callback's round is started when its wake is due, and that
// its run is replaced after some ten minutes without an attempt. An attempt moves the wake; the
// round's end removes it.
func TestD2RoundsAreStarted(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := wakes(t, activities.RunNone)
		s.submit(1)
		s.change(
			task.VendorEnded{N: 1, Outcome: activitytest.Failed(mediagate.CodeGenerationFailed)}, task.EndDue{}, task.Asked{},
		)
		rounds := func() (calls []string) {
			for _, call := range s.Engine.Calls() {
				if strings.Contains(call, "round") {
					calls = append(calls, strings.ReplaceAll(call, taskID, "task"))
				}
			}
			return calls
		}
		check := func(d time.Duration, want ...string) {
			t.Helper()
			s.spend(d)
			if diff := cmp.Diff(want, rounds()); diff != "" {
				t.Errorf("after %v, calls (-want +got):\n%s", time.Since(s.began), diff)
			}
		}
		time.Sleep(54 * time.Second)
		check(5 * time.Second)
		check(5*time.Second, "round task 1") // a minute after the end
		time.Sleep(55 * time.Second)
		check(5*time.Second, "round task 1", "round task 1") // a minute later
		time.Sleep(115 * time.Second)
		check(5*time.Second, "round task 1", "round task 1", "round task 1") // two minutes later
		time.Sleep(235 * time.Second)
		check(5*time.Second, "round task 1", "round task 1", "round task 1", "replace round task 1") // and four
		delivery := mediagate.Delivery{
			TaskID: taskID, Round: 1, Attempt: 1, At: time.Now(), NextAttemptAt: time.Now().Add(time.Hour),
		}
		s.ok(s.Store.RecordDelivery(t.Context(), delivery, "", ""))
		before := rounds()
		time.Sleep(59 * time.Minute)
		check(time.Minute, before...)
		check(90*time.Second, append(before, "round task 1")...)
		delivery.Attempt = 2
		s.ok(s.Store.RecordDelivery(t.Context(), delivery, mediagate.WebhookDelivered, ""))
		time.Sleep(2 * time.Hour)
		check(time.Minute, append(before, "round task 1")...)
	})
}

// backlog adds tasks of the account whose runs were never started.
func (s *wakeScene) backlog(account string, n int) {
	for i := range n {
		t := s.NewVideo()
		t.ID, t.AccountID = fmt.Sprintf("task-%s-%04d", account, i), account
		s.Store.Add(t)
	}
}

func (s *wakeScene) started() (ids []string) {
	for _, call := range s.Engine.Calls() {
		if id, ok := strings.CutPrefix(call, "start "); ok {
			ids = append(ids, id)
		}
	}
	return ids
}

// TestD2StartsFollowAnswers checks that new runs are started as earlier starts are answered,
// accounts in round robin. What becomes due meanwhile waits for no more starts than may be
// unanswered.
func TestD2StartsFollowAnswers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const (
			many     = 300 // more starts than may be unanswered
			start    = 20 * time.Millisecond
			answered = 2 * time.Second // time from a start to its answer
		)
		s := wakes(t, "")
		s.Store.Remove(taskID)
		s.backlog("acc_busy", many)
		s.backlog("acc_zz", 1)
		time.Sleep(time.Minute)
		s.backlog("acc_late", 1) // its wake is due in five seconds
		var (
			mu   sync.Mutex
			asks sync.WaitGroup
		)
		at, began, waiting, most := map[string]time.Duration{}, time.Now(), 0, 0
		s.Engine.OnStart = func(_ context.Context, id string) error {
			time.Sleep(start)
			mu.Lock()
			defer mu.Unlock()
			at[id] = time.Since(began)
			waiting++
			most = max(most, waiting)
			asks.Go(func() {
				time.Sleep(answered)
				mu.Lock()
				waiting--
				mu.Unlock()
				_, err := s.Store.Steady.Change(context.Background(), id, task.Asked{})
				s.ok(err)
			})
			return nil
		}
		housekeep(t, s.World, 15*time.Second)
		asks.Wait()
		if len(at) != many+2 || most > 128 {
			t.Errorf("%d started, want all; %d were unanswered at once", len(at), most)
		}
		for id, most := range map[string]time.Duration{
			"task-acc_zz-0000": start, "task-acc_late-0000": 5*time.Second + answered,
		} {
			if got := at[id]; got == 0 || got > most {
				t.Errorf("%s was started after %v, want %v at most", id, got, most)
			}
		}
	})
}

// TestD2ScanOfATemporalThatIsAway checks that a Temporal that is away is not asked again and
// again for everything that is due.
func TestD2ScanOfATemporalThatIsAway(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := wakes(t, "")
		s.backlog("acc_1", 300) // more than is started at once
		time.Sleep(time.Minute)
		s.Engine.OnStart = func(context.Context, string) error { return errors.New("unavailable") }
		housekeep(t, s.World, time.Millisecond)
		if got := len(s.started()); got < 32 || got > 64 {
			t.Errorf("%d starts were tried in one scan", got)
		}
	})
}

// TestD2OneWakeDelaysNoOther checks that a run that cannot be started, or whose start panics,
// delays no other, and that a start that hangs delays others by a batch at most.
func TestD2OneWakeDelaysNoOther(t *testing.T) {
	t.Parallel()
	const bad = "task-acc_1-0007"
	for name, c := range map[string]struct {
		start  func(ctx context.Context) error
		within time.Duration
	}{
		"fails":  {func(context.Context) error { return mediagate.Errorf(mediagate.KindInternal, "no") }, time.Millisecond},
		"panics": {func(context.Context) error { panic("no such field") }, time.Millisecond},
		"hangs":  {func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }, 3 * time.Minute},
	} {
		inBubble(t, name, func(t *testing.T) {
			s := wakes(t, "")
			s.Store.Remove(taskID)
			s.backlog("acc_1", 60) // as many starts as may be unanswered for one account
			time.Sleep(time.Minute)
			s.Engine.OnStart = func(ctx context.Context, id string) error {
				if id == bad {
					return c.start(ctx)
				}
				return nil
			}
			housekeep(t, s.World, c.within)
			got := s.started()
			slices.Sort(got)
			if got = slices.Compact(got); len(got) != 60 {
				t.Errorf("%d started, want all 60", len(got))
			}
		})
	}
}
