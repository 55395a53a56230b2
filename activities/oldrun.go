package activities

import (
	"context"
	"time"

	"github.com/mediagate/mediagate"
)

type oldRunKey struct{}

// ForOldRun is the context of an activity whose workflow task was done by a
// worker of before tasks queued, moved on at once and had their inputs judged,
// which may share the tasks during an upgrade. What that code decided by a story
// is in the run's history, and newer code must decide the same by it ever after:
// so such a run is told of nothing that it does not know.
func ForOldRun(ctx context.Context) context.Context {
	return context.WithValue(ctx, oldRunKey{}, true)
}

func forOldRun(ctx context.Context) bool { return ctx.Value(oldRunKey{}) != nil }

// asOldRunsKnow leaves out of the story what such a run would not heed.
func asOldRunsKnow(st mediagate.Story) mediagate.Story {
	st.QueuedAt, st.QueuedFor, st.Granted, st.Elsewhere, st.JudgeInputs = time.Time{}, nil, false, false, false
	st.ModalUntil, st.ModalExpired = time.Time{}, false
	return st
}

// errNoRoom is for a run that cannot queue. It is repeated for a while, and then
// the run parks.
var errNoRoom = &mediagate.Error{Kind: mediagate.KindCapacity, Message: "no channel for the task has room for a new job"}
