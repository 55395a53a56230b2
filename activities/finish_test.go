package activities_test

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/activities/activitytest"
	"github.com/mediagate/mediagate/task"
)

// answered returns an image whose vendor answers with a link, inside a bubble.
func answered(t *testing.T) *copyScene {
	t.Helper()
	s := &copyScene{
		bundle: &bundle{t: t, World: activitytest.New(t, time.Now)}, file: &slowFile{letGo: make(chan struct{})},
	}
	s.Store.Add(s.NewImage())
	answers(s.Sync)
	s.Fetcher.OnFetch = s.file.fetch
	return s
}

// beginSubmit begins the step Submit, whose context cancel ends.
func (s *copyScene) beginSubmit() *mirroring {
	return s.begin(s.Activities.SubmitJob, stepOf(taskID, task.Submit, 1))
}

// TestFinish checks that files that came with the answer are copied in the same step, which ends
// the task.
func TestFinish(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := answered(t)
		writes := s.counts()
		close(s.file.letGo)
		one := s.beginSubmit()
		<-one.done
		if one.err != nil || one.answer.Step != (task.Step{Kind: task.Done, Round: 1}) ||
			s.task().Status != mediagate.StatusCompleted {
			t.Errorf("%v, the answer %+v, want the task completed", one.err, one.answer)
		}
		if got := writes(); got != "1 OpenIntent, 3 Change" {
			t.Errorf("a synchronous task takes %s", got)
		}
	})
}

// TestFinishSendsNoBeatsOfItsOwn checks that the step sends the heartbeats for its copy as well.
// A heartbeat in the copy's own context, which ends after five seconds, could be cut short, and
// would count as the activity's cancel.
func TestFinishSendsNoBeatsOfItsOwn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := answered(t)
		env := newEnv(s.World)
		var beats atomic.Int32
		env.SetWorkerOptions(
			worker.Options{Interceptors: []interceptor.WorkerInterceptor{&beatWatch{onBeat: func([]any) { beats.Add(1) }}}},
		)
		if _, err := env.ExecuteActivity(s.Activities.SubmitJob, stepOf(taskID, task.Submit, 1)); err != nil {
			t.Fatal(err)
		}
		if got := beats.Load(); got != 2 {
			t.Errorf("%d heartbeats in five seconds, want two of the step: what it has begun, and that it lives", got)
		}
	})
}

// TestFinishIsCutShort checks that a cancel that reaches the step ends the copy, and that no
// files are stored (D5). The step then does not return a next step, since the cancel has changed
// it. A worker that stops leaves the files to the step Mirror.
func TestFinishIsCutShort(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		cause error
		fails bool
	}{
		"cancelled":        {temporal.NewCanceledError(), true},
		"the worker stops": {worker.ErrWorkerShutdown, false},
	} {
		inBubble(t, name, func(t *testing.T) {
			s := answered(t)
			one := s.beginSubmit()
			if one.over() || s.file.opened.Load() != 1 {
				t.Fatalf("over %v, the file opened %d times", one.over(), s.file.opened.Load())
			}
			one.cancel(c.cause)
			<-one.done
			if got := one.err != nil; got != c.fails || s.mirrored() || s.file.hungUp.Load() != 1 {
				t.Errorf("the step ends with %v and %+v, hung up %d times", one.err, one.answer, s.file.hungUp.Load())
			}
			time.Sleep(mediagate.CopyLimit)
		})
	}
}
