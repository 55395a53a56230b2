package activitytest_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/activities/activitytest"
	"github.com/mediagate/mediagate/task"
	"github.com/mediagate/mediagate/task/tasktest"
)

// What activities and workflows are tested on follows the machine, whatever happens.
func TestStoreFollowsTheMachine(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		w := tasktest.New(rt)
		s := activitytest.NewStore(func() time.Time { return w.Now })
		s.Add(mediagate.Task{ID: w.State.ID, Status: w.State.Status})
		s.Edit(w.State.ID, func(st *task.State) { *st = w.State })
		w.Grant = func() bool {
			s.Edit(w.State.ID, func(st *task.State) { st.Granted = true })
			return true
		}
		w.Observe = func(_ task.State, e task.Event, effects task.Effects, refused error) {
			changed, err := s.Change(t.Context(), w.State.ID, e)
			if (err == nil) != (refused == nil) {
				rt.Fatalf("%T: %v, the machine says %v", e, err, refused)
			}
			got, _ := s.Peek(w.State.ID)
			if diff := cmp.Diff(w.State, got, cmpopts.EquateEmpty()); diff != "" {
				rt.Fatalf("after %T the store (+) is not what it should be (-):\n%s", e, diff)
			}
			if diff := cmp.Diff(effects, changed.Effects, cmpopts.EquateEmpty()); err == nil && diff != "" {
				rt.Fatalf("effects of %T:\n%s", e, diff)
			}
			_, wakes := s.Wakes(w.State.ID)[mediagate.WakeRun]
			if !w.State.Status.Terminal() && !wakes {
				rt.Fatalf("after %T nothing would wake the run", e)
			}
		}
		w.Live(rapid.IntRange(1, 25).Draw(rt, "length"))
		if end := s.End(w.State.ID); (end.Times == 1) != w.State.Status.Terminal() {
			rt.Errorf("%s, with %d entries in the ledger", w.State.Status, end.Times)
		}
	})
}
