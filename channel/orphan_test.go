package channel_test

import (
	"slices"
	"testing"
	"time"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/task"
)

// TestD11QueueOfAGoneChannel checks that tasks that are queued for a channel that is gone look
// for another one.
func TestD11QueueOfAGoneChannel(t *testing.T) {
	t.Parallel()
	w := newWaiters(t, mediagate.Channel{})
	w.accounts.Workflows = w.account
	w.queue("gone", "a", 2)
	w.queue("another", "b", 1)
	for round := range 2 {
		left, err := w.accounts.Orphaned("gone").ReleaseTasks(t.Context())
		if want := []string{"a-0", "a-1"}; err != nil || left != 2 || !slices.Equal(w.woken, want) {
			t.Errorf("round %d: %d left, %v woken, error %v", round, left, w.woken, err)
		}
	}
	for id, want := range map[string]task.Kind{"a-0": task.Submit, "a-1": task.Submit, "b-0": task.Sleep} {
		if st := w.state(id); st.Advance(time.Now()).Kind != want {
			t.Errorf("%s goes on with %+v, want %s", id, st.Advance(time.Now()), want)
		}
	}
}

// TestD11JobsOfAGoneChannel checks that tasks that wait for a job of a channel that is gone park.
func TestD11JobsOfAGoneChannel(t *testing.T) {
	t.Parallel()
	a := newAccount(t, mediagate.Channel{})
	a.accept(2, time.Hour)
	for _, id := range []string{"task-0", "task-1"} {
		a.change(id, task.PollRequested{})
	}
	orphaned := a.accounts.Orphaned(a.channel.Name)
	for _, want := range []int{2, 0} {
		if left, err := orphaned.ReleaseTasks(t.Context()); err != nil || left != want {
			t.Errorf("%d left, want %d (%v)", left, want, err)
		}
	}
	for _, id := range []string{"task-0", "task-1"} {
		if st := a.state(id); st.Wait.Reason != mediagate.ParkChannelMissing {
			t.Errorf("%s is parked for %q", id, st.Wait.Reason)
		}
	}
	if len(a.late) != 2 {
		t.Errorf("%d runs signalled, want 2", len(a.late))
	}
}

// TestD8ReleaseIsFenced checks that a newer run fences the one that releases tasks.
func TestD8ReleaseIsFenced(t *testing.T) {
	t.Parallel()
	a := newAccount(t, mediagate.Channel{PollMin: time.Minute})
	a.accept(1, time.Hour)
	orphaned := a.accounts.Orphaned(a.channel.Name)
	if _, err := orphaned.ReleaseTasks(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := a.accounts.Poller(t.Context(), a.channel.Name); err != nil {
		t.Fatal(err)
	}
	if _, err := orphaned.ReleaseTasks(t.Context()); !mediagate.Is(err, mediagate.KindConflict) {
		t.Errorf("%v, want it fenced", err)
	}
}
