package activities_test

import (
	"context"
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/activities"
	"github.com/mediagate/mediagate/activities/activitytest"
	"github.com/mediagate/mediagate/channel"
	"github.com/mediagate/mediagate/providers"
)

// together is a vendor that tells of many jobs in one answer.
type together struct{ providers.Provider }

func (v together) PollAll(ctx context.Context, refs []mediagate.JobRef) ([]providers.Answer, error) {
	answers := make([]providers.Answer, len(refs))
	for i, ref := range refs {
		answers[i].Report, answers[i].Err = v.Poll(ctx, ref)
	}
	return answers, nil
}

// Of many jobs that end at once, those whose turn does not come are told soon, also
// where each copy takes just less than it may.
func TestFinishEndedKeepsNoBatchWaiting(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const many = 200
		d := newTending(t, many)
		d.setChannel(func(c *channel.Channel) {
			c.Vendor = together{c.Vendor}
			c.Adapter.Description.Operations = map[string]providers.Operation{d.NewVideo().Plan.Routes[0].Operation: {Batch: many}}
		})
		told := make(chan time.Duration, 10*many)
		began := time.Now()
		d.Engine.OnUpstream = func(string, int) error {
			told <- time.Since(began)
			return nil
		}
		for i := range many {
			d.Async.End(fmt.Sprintf("task-%d", i), activitytest.Success())
		}
		d.Fetcher.OnFetch = func(context.Context, string, string) (io.ReadCloser, int64, error) {
			time.Sleep(4 * time.Second)
			return io.NopCloser(strings.NewReader("film")), 4, nil
		}
		d.Store.Fault = func(method string) error {
			switch method {
			case "ClaimDue": // until all are due
				time.Sleep(max(0, 20*time.Second-time.Since(began)))
			case "StorePolls": // until all answers are there
				time.Sleep(100 * time.Millisecond)
			}
			return nil
		}
		d.tendsFor(2 * time.Minute)
		if len(told) < many {
			t.Fatalf("%d were told", len(told))
		}
		var last time.Duration
		for range many {
			last = <-told
		}
		if last > 30*time.Second {
			t.Errorf("the last run was told after %s", last)
		}
	})
}

// A database that fails for a moment has the channel begin anew, which waits for no
// copy: nobody polls meanwhile.
func TestFinishEndedKeepsNoPollerWaiting(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := endedTending(t)
		file := &slowFile{letGo: make(chan struct{})}
		d.Fetcher.OnFetch = file.fetch
		d.Store.Fault = func(method string) error {
			if method == "ClaimDue" && file.opened.Load() > 0 {
				return mediagate.Errorf(mediagate.KindUnavailable, "the database is away")
			}
			return nil
		}
		d.begin()
		for file.opened.Load() == 0 {
			time.Sleep(10 * time.Millisecond)
		}
		began := time.Now()
		if err := <-d.done; err == nil {
			t.Error("no error")
		}
		if took := time.Since(began); took > 2*time.Second {
			t.Errorf("it took %s", took)
		}
		d.finds(mediagate.StatusProcessing, 1)
		time.Sleep(mediagate.CopyLimit)
	})
}

// A bucket that hangs keeps no worker from stopping: the next one is to poll.
func TestFinishEndedStopsThoughTheBucketHangs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := endedTending(t)
		opened := make(chan struct{})
		d.Activities.Bucket = &clinging{d.Activities.Bucket, opened}
		d.begin()
		<-opened
		began := time.Now()
		if err := d.end(); err != nil {
			t.Error(err)
		}
		if took := time.Since(began); took > 2*time.Second {
			t.Errorf("it took %s", took)
		}
		d.finds(mediagate.StatusProcessing, 1)
		time.Sleep(mediagate.CopyLimit)
	})
}

// A copy that its step has joined goes on when the polling here ends.
func TestFinishEndedLeavesACopyThatItsStepHasJoined(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := endedTending(t)
		file := &slowFile{letGo: make(chan struct{})}
		d.Fetcher.OnFetch = file.fetch
		var fails atomic.Bool
		d.Store.Fault = func(method string) error {
			if method == "ClaimDue" && fails.Load() {
				return mediagate.Errorf(mediagate.KindUnavailable, "the database is away")
			}
			return nil
		}
		d.begin()
		for file.opened.Load() == 0 {
			time.Sleep(10 * time.Millisecond)
		}
		copied := make(chan error, 1)
		go func() {
			_, err := newEnv(d.World).ExecuteActivity(d.Activities.MirrorResult, activities.MirrorArgs{TaskID: endedTask, N: 1, Settle: true})
			copied <- err
		}()
		synctest.Wait()
		fails.Store(true)
		if err := <-d.done; err == nil {
			t.Error("no error")
		}
		close(file.letGo)
		if err := <-copied; err != nil || file.hungUp.Load() > 0 || file.opened.Load() != 1 {
			t.Errorf("%v: opened %d times, hung up on %d times", err, file.opened.Load(), file.hungUp.Load())
		}
		d.finds(mediagate.StatusCompleted, 1)
	})
}

// clinging takes long to give an upload up.
type clinging struct {
	activities.Bucket
	opened chan struct{}
}

func (b *clinging) Mirror(ctx context.Context, _ string, _ activities.Opener, _ activities.Limits) (mediagate.Result, error) {
	close(b.opened)
	<-ctx.Done()
	time.Sleep(10 * time.Second)
	return mediagate.Result{}, ctx.Err()
}
