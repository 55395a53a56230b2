package activities_test

import (
	"context"
	"errors"
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/activities"
	"github.com/mediagate/mediagate/activities/activitytest"
	"github.com/mediagate/mediagate/internal/limit"
	"github.com/mediagate/mediagate/task"
)

// slowFile is a file that does not come before it is released, nor after its reader has hung up.
type slowFile struct {
	opened, hungUp atomic.Int32
	letGo          chan struct{}
}

func (f *slowFile) fetch(ctx context.Context, _, _ string) (io.ReadCloser, int64, error) {
	f.opened.Add(1)
	body := readerFunc(func(p []byte) (int, error) {
		select {
		case <-f.letGo:
			return copy(p, "film"), io.EOF
		case <-ctx.Done():
			f.hungUp.Add(1)
			return 0, ctx.Err()
		}
	})
	return io.NopCloser(body), -1, nil
}

// copyScene is a task whose file is on its way.
type copyScene struct {
	*activitytest.World
	t    *testing.T
	file *slowFile
}

// copying sets the scene, inside a bubble.
func copying(t *testing.T) *copyScene {
	t.Helper()
	return copyingOf(t, media("https://m.example.com/a"))
}

func copyingOf(t *testing.T, o mediagate.Outcome) *copyScene {
	t.Helper()
	s := &copyScene{World: activitytest.New(t, time.Now), t: t, file: &slowFile{letGo: make(chan struct{})}}
	s.Store.Add(s.NewVideo())
	s.made(taskID, o)
	s.Fetcher.OnFetch = s.file.fetch
	return s
}

// made submits a task whose job then succeeds.
func (s *copyScene) made(id string, o mediagate.Outcome) {
	s.t.Helper()
	if _, err := newEnv(s.World).ExecuteActivity(s.Activities.SubmitJob, stepOf(id, task.Submit, 1)); err != nil {
		s.t.Fatal(err)
	}
	s.change(id, task.VendorEnded{N: 1, Outcome: o})
}

func (s *copyScene) change(id string, events ...task.Event) {
	s.t.Helper()
	if _, err := s.Store.Change(s.t.Context(), id, events...); err != nil {
		s.t.Fatal(err)
	}
}

// mirrored reports whether the files of the task's first attempt are on record.
func (s *copyScene) mirrored(id string) bool {
	s.t.Helper()
	row, err := s.Store.Attempt(s.t.Context(), id, 1)
	if err != nil {
		s.t.Fatal(err)
	}
	return row.Mirrored()
}

// full takes all permits for copies.
func (s *copyScene) full() {
	s.Activities.Limits.Copies = limit.New("copies", 1)
	s.Activities.Limits.Copies.TryAcquire("others", 1)
}

// mirroring is an activity under way.
type mirroring struct {
	cancel context.CancelCauseFunc
	stop   chan struct{} // closed when the worker stops
	done   chan struct{}
	answer activities.Answer
	err    error
}

// mirror begins an activity, whose context cancel ends.
func (s *copyScene) mirror() *mirroring { return s.mirrorOf(firstCopy()) }

func (s *copyScene) mirrorOf(args activities.StepArgs) *mirroring {
	return s.step(s.Activities.MirrorResult, args)
}

func (s *copyScene) step(does, args any) *mirroring {
	ctx, cancel := context.WithCancelCause(context.Background())
	m := &mirroring{cancel: cancel, stop: make(chan struct{}), done: make(chan struct{})}
	env := newEnv(s.World)
	env.SetWorkerOptions(workerOptions(ctx))
	env.SetWorkerStopChannel(m.stop)
	go func() {
		defer close(m.done)
		value, err := env.ExecuteActivity(does, args)
		if m.err = err; err == nil {
			m.err = value.Get(&m.answer)
		}
	}()
	synctest.Wait()
	return m
}

func (m *mirroring) over() bool {
	synctest.Wait()
	select {
	case <-m.done:
		return true
	default:
		return false
	}
}

// TestCopyEndsWithItsActivity checks that the copy ends if Temporal is away, or gives the
// activity up. The next try makes it again, under the same keys.
func TestCopyEndsWithItsActivity(t *testing.T) {
	t.Parallel()
	for name, cause := range map[string]error{
		"the task's cancel": temporal.NewCanceledError(), "the worker's end": worker.ErrWorkerShutdown,
		"Temporal is away": serviceerror.NewUnavailable("connection refused"),
	} {
		inBubble(t, name, func(t *testing.T) {
			s := copying(t)
			one := s.mirror()
			time.Sleep(20 * time.Second)
			one.cancel(cause)
			if !one.over() || one.err == nil || s.file.hungUp.Load() != 1 || s.mirrored(taskID) {
				t.Fatalf("over %v with %v, %d times broken off", one.over(), one.err, s.file.hungUp.Load())
			}
			two := s.mirror()
			close(s.file.letGo)
			<-two.done
			if two.err != nil || !s.mirrored(taskID) || len(s.Bucket.Objects()) != 1 {
				t.Errorf("answer %+v (%v), objects %v, want one file", two.answer, two.err, s.Bucket.Objects())
			}
		})
	}
}

// TestCopyHasTheGraceTime checks that a worker that stops gives a copy its grace time while the
// activity waits for it.
func TestCopyHasTheGraceTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := copying(t)
		one := s.mirror()
		close(one.stop)
		time.Sleep(20 * time.Second)
		if one.over() || s.file.hungUp.Load() != 0 {
			t.Fatalf("the copy was broken off: %v", one.err)
		}
		close(s.file.letGo)
		<-one.done
		if one.err != nil || !s.mirrored(taskID) {
			t.Errorf("answer %+v (%v), want it mirrored", one.answer, one.err)
		}
	})
}

// TestCopyOfATrickle checks that the gateway hangs up on a server that sends one byte at a time,
// often enough not to be silent. The step is tried again, and the fault is the vendor's.
func TestCopyOfATrickle(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := copying(t)
		s.Fetcher.OnFetch = func(ctx context.Context, _, _ string) (io.ReadCloser, int64, error) {
			return io.NopCloser(readerFunc(func(p []byte) (int, error) {
				select {
				case <-time.After(29 * time.Second):
					return copy(p, "x"), nil
				case <-ctx.Done():
					return 0, ctx.Err()
				}
			})), -1, nil
		}
		began := time.Now()
		defer time.Sleep(mediagate.CopyLimit) // by then it has ended, however
		one := s.mirror()
		<-one.done
		kind(t, one.err, mediagate.KindTransient, string(mediagate.CodeResultUnavailable), true)
		if took := time.Since(began); took > 4*time.Minute { // new links are asked for once
			t.Errorf("it held its place for %s", took)
		}
	})
}

// TestCopiesOfAProvider checks that the copies of one provider leave room. One that is too many
// gives its slot on the queue back, and comes again; another provider's copy goes on meanwhile.
func TestCopiesOfAProvider(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := copying(t)
		s.Activities.Limits.Copies = limit.New("copies", 5) // two of one provider
		add := func(id string) activities.StepArgs {
			added := s.NewVideo()
			added.ID = id
			s.Store.Add(added)
			s.made(id, media("https://m.example.com/"+id))
			return stepOf(id, task.Mirror, 1)
		}
		second, third := s.mirrorOf(add("task-2")), add("task-3")
		first := s.mirror()

		late := s.mirrorOf(third)
		if late.over() {
			t.Fatalf("turned away at once, though a place may fall free: %v", late.err)
		}
		<-late.done
		if !late.over() || first.over() || second.over() {
			t.Fatalf("over: %v, %v, %v, want only the last to be turned away", first.over(), second.over(), late.over())
		}
		kind(t, late.err, mediagate.KindCapacity, activities.CodeNoPermit, true)
		if app, ok := errors.AsType[*temporal.ApplicationError](
			late.err,
		); !ok || app.NextRetryDelay() < time.Second || !activities.NoFault(late.err) {
			t.Errorf("%v, want it tried again after a while, as no fault", late.err)
		}

		stranger := add("task-4")
		s.Store.Exec("UPDATE attempts SET provider = 'another' WHERE task_id = 'task-4'")
		beside := s.mirrorOf(stranger)
		if beside.over() || s.file.opened.Load() != 3 {
			t.Errorf("another provider's file is not opened beside them: %v, %d are", beside.err, s.file.opened.Load())
		}

		close(s.file.letGo)
		<-first.done
		<-second.done
		<-beside.done
		late = s.mirrorOf(third)
		<-late.done
		if late.err != nil || !s.mirrored("task-3") {
			t.Errorf("%+v (%v), want it mirrored once there is a place", late.answer, late.err)
		}
	})
}

// TestTriesOfACopy checks that a copy without a permit does not count as a try, however often,
// and that a copy that fails is not tried for ever.
func TestTriesOfACopy(t *testing.T) {
	t.Parallel()
	b := succeeded(t, media("https://m.example.com/a"))
	b.Activities.Limits.Copies, b.Activities.Settings.PermitWait = limit.New("copies", 1), time.Millisecond
	other := b.NewVideo()
	other.ID = "task-2"
	b.Store.Add(other)
	must[activities.Answer](b, b.Activities.SubmitJob, stepOf(other.ID, task.Submit, 1))
	_, err := b.Store.Change(t.Context(), other.ID, task.VendorEnded{N: 1, Outcome: media("https://m.example.com/held")})
	b.ok(err)
	held, letGo, done := make(chan struct{}), make(chan struct{}), make(chan struct{})
	var tries atomic.Int32
	b.Fetcher.OnFetch = func(_ context.Context, url, _ string) (io.ReadCloser, int64, error) {
		if strings.HasSuffix(url, "/held") {
			close(held)
			<-letGo
			return io.NopCloser(strings.NewReader("film")), -1, nil
		}
		tries.Add(1)
		return nil, 0, mediagate.Errorf(mediagate.KindTransient, "away")
	}
	go func() {
		defer close(done)
		_, _ = newEnv(b.World).ExecuteActivity(b.Activities.MirrorResult, stepOf(other.ID, task.Mirror, 1))
	}()
	<-held
	err = b.repeated(b.Activities.MirrorResult, firstCopy(), func(attempt int32) {
		if attempt == 8 {
			close(letGo)
			<-done
		}
	})
	if err == nil || tries.Load() != 5 {
		t.Errorf("it ends with %v after %d tries, want 5", err, tries.Load())
	}
}

// TestCopyOfExtraFilesHasALimit checks that an extra file that comes one byte at a time is left
// out before it has used up the time of the main files.
func TestCopyOfExtraFilesHasALimit(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := copyingOf(t, song())
		s.Fetcher.OnFetch = func(ctx context.Context, url, _ string) (io.ReadCloser, int64, error) {
			if strings.HasSuffix(url, "/song") || strings.HasSuffix(url, "/second") {
				return io.NopCloser(strings.NewReader(url)), -1, nil
			}
			return io.NopCloser(readerFunc(func(p []byte) (int, error) {
				select {
				case <-time.After(10 * time.Second):
					return copy(p, "x"), nil
				case <-ctx.Done():
					return 0, ctx.Err()
				}
			})), -1, nil
		}
		began := time.Now()
		defer time.Sleep(mediagate.CopyLimit) // by then it has ended, however
		one := s.mirror()
		<-one.done
		if one.err != nil || !s.mirrored(taskID) {
			t.Fatalf("after %s: answer %+v (%v), want it mirrored", time.Since(began), one.answer, one.err)
		}
		row, err := s.Store.Attempt(t.Context(), taskID, 1)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range row.Results {
			if r.Role != mediagate.RoleMain {
				t.Errorf("shown: %+v", r)
			}
		}
		if took := time.Since(began); len(row.Results) != 2 || took > mediagate.CopyLimit/2 {
			t.Errorf("%d files in %s", len(row.Results), took)
		}
	})
}

// TestCopyPanics checks that a panic ends the copy, and not the process.
func TestCopyPanics(t *testing.T) {
	t.Parallel()
	b := succeeded(t, media("https://m.example.com/a"))
	b.Fetcher.OnFetch = func(context.Context, string, string) (io.ReadCloser, int64, error) { panic("a bug") }
	_, err := b.mirror()
	kind(t, err, mediagate.KindInternal, "", true)
	b.Fetcher.OnFetch = nil
	_, err = b.mirror()
	b.ok(err)
	if !b.attempt(1).Mirrored() {
		t.Error("the file is not on record")
	}
}
