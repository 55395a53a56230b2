package activities_test

import (
	"context"
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
	*bundle
	file *slowFile
}

// copying sets the scene, inside a bubble.
func copying(t *testing.T) *copyScene {
	t.Helper()
	return copyingOf(t, media("https://m.example.com/a"))
}

func copyingOf(t *testing.T, o mediagate.Outcome) *copyScene {
	t.Helper()
	s := &copyScene{bundle: bubbled(t), file: &slowFile{letGo: make(chan struct{})}}
	s.submit(1)
	s.change(task.VendorEnded{N: 1, Outcome: o})
	s.Fetcher.OnFetch = s.file.fetch
	return s
}

// mirrored reports whether the files of the task's first attempt are on record.
func (s *copyScene) mirrored() bool {
	a := s.attempt(1)
	return a.Mirrored()
}

// mirroring is an activity under way.
type mirroring struct {
	cancel context.CancelCauseFunc
	stop   chan struct{} // closed when the worker stops
	done   chan struct{}
	answer activities.Answer
	err    error
}

// beginCopy begins the step Mirror, whose context cancel ends.
func (s *copyScene) beginCopy() *mirroring { return s.begin(s.Activities.MirrorResult, firstCopy()) }

func (s *copyScene) begin(does, args any) *mirroring {
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
			one := s.beginCopy()
			time.Sleep(20 * time.Second)
			one.cancel(cause)
			if !one.over() || one.err == nil || s.file.hungUp.Load() != 1 || s.mirrored() {
				t.Fatalf("over %v with %v, %d times broken off", one.over(), one.err, s.file.hungUp.Load())
			}
			two := s.beginCopy()
			close(s.file.letGo)
			<-two.done
			if two.err != nil || !s.mirrored() || len(s.Bucket.Objects()) != 1 {
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
		one := s.beginCopy()
		close(one.stop)
		time.Sleep(20 * time.Second)
		if one.over() || s.file.hungUp.Load() != 0 {
			t.Fatalf("the copy was broken off: %v", one.err)
		}
		close(s.file.letGo)
		<-one.done
		if one.err != nil || !s.mirrored() {
			t.Errorf("answer %+v (%v), want it mirrored", one.answer, one.err)
		}
	})
}

// TestCopiesOfAProvider checks that the copies of one provider leave room. One that is too many
// gives its slot on the queue back, and comes again; another provider's copy goes on meanwhile.
func TestCopiesOfAProvider(t *testing.T) {
	t.Parallel()
	b := succeeded(t, media("https://m.example.com/a"))
	copies := limit.New("copies", 4)
	b.Activities.Limits.Copies, b.Activities.Settings.PermitWait = copies, time.Millisecond
	for ok := true; ok; { // other copies of the provider
		_, ok = copies.TryAcquire(activitytest.AsyncProvider, 1)
	}
	_, err := b.mirror()
	kind(t, err, mediagate.KindCapacity, activities.CodeNoPermit, true)
	var app *temporal.ApplicationError
	if !asApplication(err, &app) || app.NextRetryDelay() < time.Second || !activities.NoFault(err) {
		t.Errorf("%v, want it tried again after a while, as no fault", err)
	}
	b.Store.Exec("UPDATE attempts SET provider = 'another'")
	_, err = b.mirror()
	b.ok(err)
}

// TestTriesOfACopy checks that a copy without a permit does not count as a try, however often,
// and that a copy that fails is not tried for ever.
func TestTriesOfACopy(t *testing.T) {
	t.Parallel()
	b := succeeded(t, media("https://m.example.com/a"))
	b.Activities.Limits.Copies, b.Activities.Settings.PermitWait = limit.New("copies", 1), time.Millisecond
	held, _ := b.Activities.Limits.Copies.TryAcquire("others", 1)
	b.Fetcher.OnFetch = unfetched(mediagate.KindTransient)
	err := b.repeated(b.Activities.MirrorResult, firstCopy(), func(attempt int32) {
		if attempt == 8 {
			held.Release()
		}
	})
	if tries := len(b.Fetcher.URLs()); err == nil || tries != 5 {
		t.Errorf("it ends with %v after %d tries, want 5", err, tries)
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
		one := s.beginCopy()
		<-one.done
		if one.err != nil || !s.mirrored() {
			t.Fatalf("after %s: answer %+v (%v), want it mirrored", time.Since(began), one.answer, one.err)
		}
		row := s.attempt(1)
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
