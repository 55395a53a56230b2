package activities_test

import (
	"context"
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
	s := &copyScene{World: activitytest.New(t, time.Now), t: t, file: &slowFile{letGo: make(chan struct{})}}
	s.Store.Add(s.NewImage())
	answers(s.Sync)
	s.Fetcher.OnFetch = s.file.fetch
	return s
}

// submit begins the step, whose context cancel ends.
func (s *copyScene) submit() *mirroring {
	return s.step(s.Activities.SubmitJob, stepOf(taskID, task.Submit, 1))
}

// left checks that the files are left to a step of their own.
func (s *copyScene) left(one *mirroring) {
	s.t.Helper()
	st, _ := s.Store.Peek(taskID)
	if one.err != nil || one.answer.Step.Kind != task.Mirror || st.Status.Terminal() || s.mirrored(taskID) {
		s.t.Errorf("%v, the task is %s, the answer %+v, want it open with files to copy", one.err, st.Status, one.answer)
	}
}

// TestFinish checks that files that came with the answer are copied in the same step, which ends
// the task.
func TestFinish(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := answered(t)
		b := &bundle{World: s.World, t: t}
		writes := b.counts()
		close(s.file.letGo)
		one := s.submit()
		<-one.done
		if one.err != nil || one.answer.Step != (task.Step{Kind: task.Done, Round: 1}) ||
			b.task().Status != mediagate.StatusCompleted {
			t.Errorf("%v, the answer %+v, want the task completed", one.err, one.answer)
		}
		if got := writes(); got != "1 OpenIntent, 3 Change" {
			t.Errorf("a synchronous task takes %s", got)
		}
	})
}

// TestFinishLeavesWhatTakesLong checks that a file that takes long is left to a step of its own,
// which begins it again.
func TestFinishLeavesWhatTakesLong(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := answered(t)
		one := s.submit()
		<-one.done
		s.left(one)
		next := s.mirror()
		close(s.file.letGo)
		<-next.done
		if next.err != nil || next.answer.Status != mediagate.StatusCompleted || s.file.opened.Load() != 2 ||
			s.file.hungUp.Load() != 1 {
			t.Errorf("%+v (%v), opened %d times", next.answer, next.err, s.file.opened.Load())
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

// TestFinishLeaves checks that problems with the files are left to the step Mirror, and that
// nothing is copied for a task that is to end.
func TestFinishLeaves(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		scene func(s *copyScene)
		want  task.Kind
	}{
		"a file that cannot be had": {func(s *copyScene) {
			s.Fetcher.OnFetch = unfetched(mediagate.KindTransient)
		}, task.Mirror},
		"a provider that has its share of the copies": {func(s *copyScene) { s.full() }, task.Mirror},
		"all files, where it may not copy": {
			func(s *copyScene) { s.Activities.Settings.QuickCopy = 0 }, task.Mirror,
		},
		"a task that is to be cancelled": {func(s *copyScene) {
			answer := s.Sync.OnSubmit
			s.Sync.OnSubmit = func(ctx context.Context, job mediagate.Job) (mediagate.Submission, error) {
				s.change(taskID, task.CancelRequested{})
				return answer(ctx, job)
			}
		}, task.Settle},
	} {
		inBubble(t, name, func(t *testing.T) {
			s := answered(t)
			close(s.file.letGo)
			c.scene(s)
			one := s.submit()
			<-one.done
			if one.err != nil || one.answer.Step.Kind != c.want || s.mirrored(taskID) || len(s.Bucket.Writes()) > 0 {
				t.Errorf("%v, the answer %+v, files %v", one.err, one.answer, s.Bucket.Writes())
			}
			time.Sleep(mediagate.CopyLimit) // no copy outlives the test
		})
	}
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
			one := s.submit()
			if one.over() || s.file.opened.Load() != 1 {
				t.Fatalf("over %v, the file opened %d times", one.over(), s.file.opened.Load())
			}
			one.cancel(c.cause)
			<-one.done
			if got := one.err != nil; got != c.fails || s.mirrored(taskID) || s.file.hungUp.Load() != 1 {
				t.Errorf("the step ends with %v and %+v, hung up %d times", one.err, one.answer, s.file.hungUp.Load())
			}
			time.Sleep(mediagate.CopyLimit)
		})
	}
}
