package activities

import (
	"context"
	"time"

	"github.com/mediagate/mediagate"
)

// Generation is which code decides in a run: what that code decided by a story is
// in the run's history, and newer code must decide the same by it ever after.
// While workers are replaced, a workflow task may be done by an old one and its
// activity by a new one: so a run is told of nothing that its code does not know.
type Generation int

// The generations.
const (
	BeforeQueues  Generation = iota // tasks queued, moved on at once and had their inputs judged after it
	BeforeModal                     // tasks waited for modal parameters after it
	BeforeOneStep                   // runs told their generation, and had copies settle, after it
	BeforeTold                      // parkings waited after it only where their first step told of nothing new
	Newest
)

// Began is the generation of the worker that began a run, as the run's first story
// tells. What a run does otherwise than those of before, without a story that calls
// for it, hangs on that: it is in the history, which newer code goes by, and costs
// nothing there.
func Began(first mediagate.Story) Generation { return max(Generation(first.Generation), BeforeOneStep) }

type generationKey struct{}

// ForRunOf is the context of an activity whose workflow task was done by code of
// that generation. Without it that was the newest.
func ForRunOf(ctx context.Context, g Generation) context.Context {
	return context.WithValue(ctx, generationKey{}, g)
}

// runIs reports that the code that asks is of that generation, or older.
func runIs(ctx context.Context, g Generation) bool {
	of, ok := ctx.Value(generationKey{}).(Generation)
	return ok && of <= g
}

func forOldRun(ctx context.Context) bool { return runIs(ctx, BeforeQueues) }

// asRunKnows leaves out of the story what the code that asks would not heed.
func asRunKnows(ctx context.Context, st mediagate.Story) mediagate.Story {
	if forOldRun(ctx) {
		st.QueuedAt, st.QueuedFor, st.Granted, st.Elsewhere, st.JudgeInputs = time.Time{}, nil, false, false, false
	}
	if runIs(ctx, BeforeModal) {
		st.ModalUntil, st.ModalExpired = time.Time{}, false
	}
	return st
}

// errNoRoom is for a run that cannot queue. It is repeated for a while, and then
// the run parks.
var errNoRoom = &mediagate.Error{Kind: mediagate.KindCapacity, Message: "no channel for the task has room for a new job"}
