package activities_test

import (
	"context"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"go.temporal.io/sdk/temporal"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/activities"
	"github.com/mediagate/mediagate/activities/activitytest"
)

// answered is an image whose vendor answers with a link, inside a bubble.
func answered(t *testing.T) *copyScene {
	t.Helper()
	s := &copyScene{World: activitytest.New(time.Now), t: t, file: &slowFile{letGo: make(chan struct{})}}
	s.Store.Add(s.NewImage())
	s.Sync.OnSubmit = func(_ context.Context, job mediagate.Job) (mediagate.Submission, error) {
		sub, err := s.Sync.Accept(job)
		outcome := media("https://m.example.com/a")
		sub.Outcome = &outcome
		return sub, err
	}
	s.Fetcher.OnFetch = s.file.fetch
	return s
}

// submit begins the step, whose context is cancel's to end.
func (s *copyScene) submit() *mirroring {
	return s.step(s.Activities.SubmitJob, first())
}

func (s *copyScene) open(t *testing.T, st mediagate.Story) {
	t.Helper()
	task, err := s.Store.TaskByID(t.Context(), taskID)
	if err != nil {
		t.Fatal(err)
	}
	if !st.Succeeded || st.Mirrored || st.Status.Terminal() || task.Status.Terminal() {
		t.Errorf("the task is %s, the story %+v, want it open with files to copy", task.Status, st)
	}
}

// What came with the answer is copied and settled on in the same step.
func TestFinish(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := answered(t)
		close(s.file.letGo)
		one := s.submit()
		<-one.done
		task, err := s.Store.TaskByID(t.Context(), taskID)
		if err != nil || one.err != nil || task.Status != mediagate.StatusCompleted || one.story.Status != mediagate.StatusCompleted || !one.story.Mirrored {
			t.Errorf("%v, %v: the task is %s, the story %+v, want it completed", err, one.err, task.Status, one.story)
		}
	})
}

// A file that takes long is left to a step of its own, which finds it on its way.
func TestFinishLeavesWhatTakesLong(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := answered(t)
		one := s.submit()
		<-one.done
		if one.err != nil {
			t.Fatal(one.err)
		}
		s.open(t, one.story)
		next := s.mirror()
		close(s.file.letGo)
		<-next.done
		if next.err != nil || !next.story.Mirrored || s.file.opened.Load() != 1 || s.file.hungUp.Load() != 0 {
			t.Errorf("%+v (%v), opened %d times, want the copy under way to be gone on with", next.story, next.err, s.file.opened.Load())
		}
	})
}

// What goes wrong with the files is for the step that deals with it, and what is
// between the attempt and the end for the run.
func TestFinishLeaves(t *testing.T) {
	t.Parallel()
	for name, scene := range map[string]func(s *copyScene){
		"a file that cannot be had": func(s *copyScene) {
			s.Fetcher.OnFetch = func(context.Context, string, string) (io.ReadCloser, int64, error) {
				return nil, 0, mediagate.Errorf(mediagate.KindTransient, "away")
			}
		},
		"a provider that has its share of the copies": func(s *copyScene) { s.Activities.Settings.CopiesAtOnce = 0 },
		"a task that is to be cancelled": func(s *copyScene) {
			answer := s.Sync.OnSubmit
			s.Sync.OnSubmit = func(ctx context.Context, job mediagate.Job) (mediagate.Submission, error) {
				s.Store.Edit(taskID, func(task *mediagate.Task) { task.CancelRequestedAt = time.Now() })
				return answer(ctx, job)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := answered(t)
				close(s.file.letGo)
				scene(s)
				one := s.submit()
				<-one.done
				if one.err != nil {
					t.Fatal(one.err)
				}
				s.open(t, one.story)
				time.Sleep(mediagate.CopyLimit) // no copy outlives the test
			})
		})
	}
}

// D5: a cancel that reaches the step ends the copy, and nothing is settled on.
func TestFinishIsCancelled(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := answered(t)
		one := s.submit()
		if one.over() || s.file.opened.Load() != 1 {
			t.Fatalf("over %v, the file opened %d times", one.over(), s.file.opened.Load())
		}
		one.cancel(temporal.NewCanceledError())
		<-one.done
		task, err := s.Store.TaskByID(t.Context(), taskID)
		if err != nil || one.err == nil || task.Status.Terminal() || s.file.hungUp.Load() != 1 {
			t.Errorf("%v: the step ends with %v, the task is %s, hung up %d times", err, one.err, task.Status, s.file.hungUp.Load())
		}
		time.Sleep(mediagate.CopyLimit)
	})
}

// A run of code that copies in a step of its own is told of no end by its submit.
func TestFinishNotInOldRuns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := answered(t)
		close(s.file.letGo)
		st, err := s.Activities.SubmitJob(activities.ForRunOf(t.Context(), activities.BeforeOneStep), first())
		if err != nil {
			t.Fatal(err)
		}
		s.open(t, st)
	})
}
