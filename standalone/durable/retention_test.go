package durable_test

import (
	"testing"
	"time"

	"go.temporal.io/sdk/client"

	"github.com/mediagate/mediagate/workflows"
)

// TestRetentionStaysPaused checks that a schedule that an operator has paused stays paused when
// workers start. Its times are those of the newest build.
func TestRetentionStaysPaused(t *testing.T) {
	t.Parallel()
	w := setup(t)
	for range 2 {
		if err := w.engine.EnsureRetention(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	schedule := w.temporal.ScheduleClient().GetHandle(t.Context(), workflows.IDRetention)
	if err := schedule.Pause(t.Context(), client.SchedulePauseOptions{Note: "nothing is to go"}); err != nil {
		t.Fatal(err)
	}
	// An update that has read the schedule before the pause would undo the pause.
	w.await("it is paused", func() bool {
		about, err := schedule.Describe(t.Context())
		if err == nil && about.Info.LastUpdateAt.Unix() > 0 {
			t.Fatalf("it was updated at %s, though nothing differs", about.Info.LastUpdateAt)
		}
		return err == nil && about.Schedule.State.Paused
	})
	every := func() time.Duration {
		t.Helper()
		about, err := schedule.Describe(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if !about.Schedule.State.Paused || about.Schedule.State.Note != "nothing is to go" {
			t.Errorf("the state is %+v, want it paused", about.Schedule.State)
		}
		return about.Schedule.Spec.Intervals[0].Every
	}
	if err := schedule.Update(t.Context(), client.ScheduleUpdateOptions{DoUpdate: func(in client.ScheduleUpdateInput) (*client.ScheduleUpdate, error) {
		s := in.Description.Schedule
		s.Spec = &client.ScheduleSpec{Intervals: []client.ScheduleIntervalSpec{{Every: 24 * time.Hour}}}
		return &client.ScheduleUpdate{Schedule: &s}, nil
	}}); err != nil {
		t.Fatal(err)
	}
	if got := every(); got != 24*time.Hour {
		t.Fatalf("each %v", got)
	}
	if err := w.engine.EnsureRetention(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.await("the build's own times", func() bool { return every() == time.Hour })
}
