package activities_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/activities"
	"github.com/mediagate/mediagate/activities/activitytest"
	"github.com/mediagate/mediagate/channel"
	"github.com/mediagate/mediagate/internal/limit"
	"github.com/mediagate/mediagate/task"
)

// hanging are channels with room for one call each. The calls at their vendors hang until they
// are released.
type hanging struct {
	*bundle
	release chan struct{}
	beside  sync.WaitGroup
	calls   atomic.Int32 // the calls that were made
}

func (b *bundle) hang(names ...string) *hanging {
	h := &hanging{bundle: b, release: make(chan struct{})}
	b.Activities.Limits.Calls = limit.NewGroup("calls", 1)
	var list []channel.Channel
	for i, name := range names {
		v := &activitytest.Vendor{}
		v.OnSubmit = func(_ context.Context, job mediagate.Job) (mediagate.Submission, error) {
			h.calls.Add(1)
			<-h.release
			return v.Accept(job)
		}
		c := b.account(name, 0, i)
		c.Vendor = v.Finding()
		list = append(list, c)
	}
	b.Channels.Set(list...)
	return h
}

// submits makes the first attempt of another task, behind a channel if one is named.
func (h *hanging) submits(i int, behind string) (activities.Answer, error) {
	added := h.NewVideo()
	added.ID = fmt.Sprintf("task_%d", i)
	if _, err := h.Store.TaskByID(context.Background(), added.ID); err != nil {
		h.Store.Add(added)
	}
	in := stepOf(added.ID, task.Submit, 1)
	in.Behind = behind
	return call[activities.Answer](h.bundle, h.Activities.SubmitJob, in)
}

// submitsInParallel is submits in the background, until ends is called.
func (h *hanging) submitsInParallel(i int) { h.beside.Go(func() { _, _ = h.submits(i, "") }) }

// ends lets the hanging calls go on, and waits until the submits in the background are over.
func (h *hanging) ends() {
	close(h.release)
	h.beside.Wait()
}

func (h *hanging) at(i int) string {
	a, err := h.Store.Attempt(context.Background(), fmt.Sprintf("task_%d", i), 1)
	if err != nil {
		return ""
	}
	return a.Channel
}

// TestD18HangingCallsAreTheChannelsOwn checks that a vendor that hangs blocks the calls of its
// own channel, and no others. The next task goes to the next channel, or waits behind this one.
func TestD18HangingCallsAreTheChannelsOwn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setup(t, video)
		h := b.hang("a", "b")
		for i := range 2 {
			h.submitsInParallel(i)
			synctest.Wait()
		}
		if h.at(0) != "a" || h.at(1) != "b" {
			t.Errorf("the first two are at %q and %q", h.at(0), h.at(1))
		}
		st, err := h.submits(2, "")
		if err != nil || st.Behind != "a" || st.N != 0 || len(st.QueuedFor) > 0 {
			t.Fatalf("the third is answered %+v, %v; want to wait behind a", st, err)
		}
		began := time.Now()
		if st, err := h.submits(2, "a"); err != nil || st.Behind != "a" || time.Since(began) < 10*time.Second {
			t.Errorf("behind a it is answered %+v, %v after %v", st, err, time.Since(began))
		}
		if got := h.calls.Load(); got != 2 {
			t.Fatalf("%d calls, want 2", got)
		}
		done := make(chan activities.Answer)
		go func() {
			st, err := h.submits(2, "a")
			if err != nil {
				t.Error(err)
			}
			done <- st
		}()
		synctest.Wait()
		h.ends()
		if st := <-done; st.Behind != "" || st.State != mediagate.AttemptAccepted || st.Channel != "a" {
			t.Errorf("once there is room: %+v", st)
		}
		for i := 3; i < 6; i++ { // no permit is lost
			if st, err := h.submits(i, ""); err != nil || st.State != mediagate.AttemptAccepted {
				t.Errorf("afterwards: %+v, %v", st, err)
			}
		}
	})
}

// TestD18AccountsAreServedInRoundRobin checks the order of those that wait behind a channel: a
// task of another account comes before the second one of an account that has many there.
func TestD18AccountsAreServedInRoundRobin(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := setup(t, video).hang("a")
		const tasks = 5
		answers := make(chan activities.Answer, tasks)
		for i := range tasks {
			row := h.NewVideo()
			row.ID = fmt.Sprintf("task_%d", i)
			if i == tasks-1 {
				row.AccountID = "acc_newcomer"
			}
			h.Store.Add(row)
			behind := ""
			if i > 0 {
				behind = "a"
			}
			go func() {
				answer, err := h.submits(i, behind)
				if err != nil {
					t.Error(err)
				}
				answers <- answer
			}()
			synctest.Wait()
		}
		h.release <- struct{}{} // the call under way
		synctest.Wait()
		h.release <- struct{}{}
		synctest.Wait()
		if last := fmt.Sprintf("task_%d", tasks-1); h.at(tasks-1) != "a" {
			t.Errorf("after two calls %s was not sent", last)
		}
		close(h.release)
		for range tasks {
			<-answers
		}
	})
}

// TestD18WaitsOnlyBehindAChannelThatTakesJobs checks that no task waits behind a channel that
// takes no jobs, and that a waiting task looks for another channel from time to time.
func TestD18WaitsOnlyBehindAChannelThatTakesJobs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setup(t, video)
		h := b.hang("a", "b")
		h.submitsInParallel(0)
		synctest.Wait()
		for _, name := range []string{"a", "b"} {
			if _, err := b.Store.EnableChannel(t.Context(), name, false); err != nil {
				t.Fatal(err)
			}
		}
		b.advance(2 * time.Second) // the states are read again
		_, err := h.submits(1, "")
		kind(t, err, mediagate.KindShutOut, mediagate.ParkProviderAway, false)
		if _, err := b.Store.EnableChannel(t.Context(), "b", true); err != nil {
			t.Fatal(err)
		}
		b.advance(2 * time.Second)
		done := make(chan struct{})
		go func() {
			defer close(done)
			_, _ = h.submits(2, "a")
		}()
		time.Sleep(2 * time.Minute)
		if got := h.at(2); got != "b" {
			t.Errorf("the job is at %q, want b", got)
		}
		h.ends()
		<-done
	})
}

// TestD18RepeatedCallsTakePermits checks that a sending that is repeated, after proof that there
// is no job, takes a permit as well.
func TestD18RepeatedCallsTakePermits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setup(t, video)
		h := b.hang("a")
		h.submitsInParallel(0)
		synctest.Wait()
		h.ends()

		h.release = make(chan struct{})
		h.submitsInParallel(1)
		synctest.Wait()
		b.Store.Exec(`UPDATE attempts SET state = 'unknown', document =
			json_remove(json_set(document, '$.absent_at', ?, '$.absent_again_at', ?), '$.ref')
			WHERE task_id = 'task_0'`, b.Now().Format(time.RFC3339), b.Now().Format(time.RFC3339))
		b.Store.Exec("DELETE FROM awaits WHERE task_id = 'task_0'")
		st, err := h.submits(0, "")
		if err != nil || st.Behind != "a" || h.calls.Load() != 2 {
			t.Errorf("sent again: %+v, %v, %d calls; want to wait behind a", st, err, h.calls.Load())
		}
		h.ends()
		if st, err = h.submits(0, "a"); err != nil || st.Behind != "" || h.calls.Load() != 3 {
			t.Errorf("sent again: %+v, %v, %d calls", st, err, h.calls.Load())
		}
	})
}
