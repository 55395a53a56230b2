package activities_test

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/activities/activitytest"
	"github.com/mediagate/mediagate/task"
)

// nth does something as the nth call of the store is made, counting from 0. It reports whether
// there was such a call.
func nth(n int, do func(method string) error) (hook func(string) error, reached func() bool) {
	var mu sync.Mutex
	calls := 0
	hook = func(method string) error {
		mu.Lock()
		calls++
		now := calls-1 == n
		mu.Unlock()
		if now {
			return do(method)
		}
		return nil
	}
	return hook, func() bool { mu.Lock(); defer mu.Unlock(); return calls > n }
}

// moments returns the tasks whose lives are disturbed at each call of the database.
func moments() map[string]func(*activitytest.World) mediagate.Task {
	withAnInput := func(w *activitytest.World) mediagate.Task {
		w.Fetcher.OnFetch = func(context.Context, string, string) (io.ReadCloser, int64, error) {
			return io.NopCloser(strings.NewReader(bomb(128, 128))), -1, nil
		}
		return naming(input("image_urls[0]", anImage))(w)
	}
	return map[string]func(*activitytest.World) mediagate.Task{
		"asynchronous": video, "synchronous": image, "with an input": withAnInput,
	}
}

// atEachCall runs the task's life once for each call of the store, and does something before that
// call, or after it took effect.
func atEachCall(
	t *testing.T, submitted func(*activitytest.World) mediagate.Task, after bool, do func(l *life) error,
	check func(n int, l *life, got mediagate.Task),
) {
	t.Helper()
	more := true
	for n := 0; more; n++ {
		synctest.Test(t, func(t *testing.T) {
			l := newLife(t, submitted)
			l.quiet = true
			answers(l.Sync)
			hook, reached := nth(n, func(string) error { return do(l) })
			l.Activities.Store = slippery{Store: l.Store, before: hook}
			if after {
				l.Activities.Store = slippery{Store: l.Store, after: hook}
			}
			got := l.live(30)
			more = reached()
			if end := l.Store.End(taskID); end.Times != 1 || !got.Status.Terminal() {
				t.Errorf("call %d: the task is %s, and ended %d times, after %s", n, got.Status, end.Times, l.took())
			}
			check(n, l, got)
		})
	}
}

// TestD3AnyCallOfTheDatabaseFails checks that the task ends once, and its vendor makes one job,
// whichever call of the database fails or loses its answer (D3, D5). If the vendor can be asked
// by our id, the task completes.
func TestD3AnyCallOfTheDatabaseFails(t *testing.T) {
	t.Parallel()
	for name, submitted := range moments() {
		for _, kind := range []mediagate.Kind{mediagate.KindUnavailable, mediagate.KindInternal} {
			for _, after := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s/%s/after %t", name, kind, after), func(t *testing.T) {
					t.Parallel()
					fails := func(*life) error { return mediagate.Errorf(kind, "a fault of the test") }
					lost := 0 // tasks that fail because an answer was lost
					atEachCall(t, submitted, after, fails, func(n int, l *life, got mediagate.Task) {
						if got.Status != mediagate.StatusCompleted {
							if got.Failure == nil || got.Failure.Code != mediagate.CodeSubmissionUnknown {
								t.Errorf("call %d: the task is %s for %+v, after %s", n, got.Status, got.Failure, l.took())
							}
							lost++
						}
						times := map[string]int{}
						for _, job := range append(l.Async.Submits(), l.Sync.Submits()...) {
							if times[job.ExternalID]++; times[job.ExternalID] > 1 {
								t.Errorf("call %d: %s was sent twice, after %s", n, job.ExternalID, l.took())
							}
						}
					})
					// A synchronous vendor cannot be asked. Its answer is lost if it could not be
					// stored, and so is the intent before it.
					if most := map[string]int{"synchronous": 2}[name]; lost > most {
						t.Errorf("%d tasks failed, want %d at most", lost, most)
					}
				})
			}
		}
	}
}

// TestD5ACancelAtAnyMoment checks that a cancel or a fail, at any moment before the end, keeps
// the task from completing (D5, D13). Nothing of it stays in the bucket or goes on at the vendor.
func TestD5ACancelAtAnyMoment(t *testing.T) {
	t.Parallel()
	for name, submitted := range moments() {
		for word, event := range map[string]task.Event{"cancel": task.CancelRequested{}, "fail": task.FailRequested{}} {
			t.Run(name+"/"+word, func(t *testing.T) {
				t.Parallel()
				ends := map[mediagate.Status]int{}
				asked := false
				comes := func(l *life) error {
					_, err := l.Store.Change(context.Background(), taskID, event)
					asked, l.quiet = err == nil, false
					return nil
				}
				atEachCall(t, submitted, false, comes, func(n int, l *life, got mediagate.Task) {
					ends[got.Status]++
					if completed := got.Status == mediagate.StatusCompleted; completed == asked {
						t.Errorf(
							"call %d: the task is %s after a %s that was accepted: %t; steps %s", n, got.Status, word, asked, l.took(),
						)
					}
					if asked && len(l.Bucket.Objects()) > 0 {
						t.Errorf("call %d: %v stay in the bucket, after %s", n, l.Bucket.Objects(), l.took())
					}
					for _, a := range l.Store.Attempts(taskID) {
						if a.EndedAt.IsZero() {
							t.Errorf("call %d: attempt %d is %s, after %s", n, a.N, a.State, l.took())
						}
					}
					asked = false
				})
				if len(ends) < 2 {
					t.Errorf("the %s came always, or never, in time: %v", word, ends)
				}
			})
		}
	}
}

// TestRandomFaults checks any mixture of faults, lost answers and commands: the task ends once, a
// cancel holds, and no name is sent twice to a vendor that cannot be asked for it.
func TestRandomFaults(t *testing.T) {
	t.Parallel()
	for name, submitted := range moments() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for seed := range uint64(100) {
				synctest.Test(t, func(t *testing.T) {
					l := newLife(t, submitted)
					answers(l.Sync)
					random := rand.New(rand.NewPCG(seed, 0))
					var mu sync.Mutex
					disturb := func(string) error {
						mu.Lock()
						defer mu.Unlock()
						switch random.IntN(30) {
						case 0:
							return mediagate.Errorf(mediagate.KindUnavailable, "a fault of the test")
						case 1:
							return mediagate.Errorf(mediagate.KindInternal, "a fault of the test")
						case 2:
							commands := []task.Event{
								task.RetryRequested{}, task.RerouteRequested{}, task.FailRequested{}, task.CancelRequested{},
							}
							_, _ = l.Store.Change(context.Background(), taskID, commands[random.IntN(len(commands))]) // it may not apply
							// the same step may come again
							l.last = task.Step{}
						}
						return nil
					}
					l.Activities.Store = slippery{Store: l.Store, before: disturb, after: disturb}
					got := l.live(1000)
					st, _ := l.Store.Peek(taskID)
					if end := l.Store.End(
						taskID,
					); end.Times != 1 || got.Status == mediagate.StatusCompleted && !st.CancelRequestedAt.IsZero() {
						t.Errorf("seed %d: the task is %s, ended %d times, after %s", seed, got.Status, end.Times, l.took())
					}
					sent := map[string]bool{}
					for _, job := range l.Sync.Submits() {
						if sent[job.ExternalID] {
							t.Errorf("seed %d: %s was sent twice, after %s", seed, job.ExternalID, l.took())
						}
						sent[job.ExternalID] = true
					}
				})
			}
		})
	}
}
