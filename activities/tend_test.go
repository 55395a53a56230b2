package activities_test

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/activities/activitytest"
	"github.com/mediagate/mediagate/channel"
	"github.com/mediagate/mediagate/task"
)

func TestTend(t *testing.T) {
	t.Parallel()
	t.Run("an end is stored, then signalled", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			d := newTending(t, 2)
			d.Engine.OnWake = func(_ context.Context, id string) error {
				if d.outcome(id) == nil {
					t.Error("signalled before the outcome was stored")
				}
				return nil
			}
			d.Async.End("task-0", activitytest.Success())
			d.Async.End("task-1", activitytest.Failed(mediagate.CodeContentPolicy))
			d.begin()
			time.Sleep(20 * time.Second)
			if err := d.end(); err != nil {
				t.Error(err)
			}
			calls := d.Engine.Calls()
			slices.Sort(calls)
			if diff := cmp.Diff([]string{"wake task-0", "wake task-1"}, calls); diff != "" {
				t.Errorf("signals (-want +got):\n%s", diff)
			}
			if got := d.outcome("task-1"); got == nil || got.Succeeded {
				t.Errorf("outcome %+v", got)
			}
		})
	})
	t.Run("D8 a panic costs one row one poll", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			d := newTending(t, 2)
			panicked := 0
			d.Async.OnPoll = func(_ context.Context, ref mediagate.JobRef) (mediagate.Report, error) {
				outcome := activitytest.Success()
				if ref.ExternalID == "task-0" && panicked < 1 {
					panicked++
					panic("a bug of the adapter")
				}
				return mediagate.Report{State: mediagate.JobSucceeded, Outcome: &outcome}, nil
			}
			d.begin()
			time.Sleep(3 * time.Second)
			if d.outcome("task-1") == nil || d.outcome("task-0") != nil {
				t.Errorf("outcomes %v, %v; want that of the second task only", d.outcome("task-0"), d.outcome("task-1"))
			}
			time.Sleep(16 * time.Second)
			if d.outcome("task-0") == nil {
				t.Error("the row was not polled again")
			}
			if err := d.end(); err != nil {
				t.Error(err)
			}
		})
	})
	t.Run("D8 a newer run fences", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			d := newTending(t, 1)
			d.begin()
			time.Sleep(time.Second)
			if _, err := d.Store.BeginEpoch(t.Context(), activitytest.AsyncChannel); err != nil {
				t.Fatal(err)
			}
			time.Sleep(5 * time.Second)
			select {
			case err := <-d.done:
				if err != nil {
					t.Errorf("the fenced run ended with %v", err)
				}
			default:
				t.Error("the fenced run goes on")
				_ = d.end()
			}
			time.Sleep(time.Minute)
			if got := len(d.Async.Polls()); got != 0 {
				t.Errorf("%d polls by a fenced run", got)
			}
		})
	})
	t.Run("D8 of the answers that come after the fence an end alone is stored", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			d := newTending(t, 2)
			newer := sync.OnceValue(func() error { // a run that polls from now on
				epoch, err := d.Store.BeginEpoch(t.Context(), activitytest.AsyncChannel)
				if err != nil {
					return err
				}
				_, err = d.Store.ClaimDue(t.Context(), activitytest.AsyncChannel, epoch, "claim-new", time.Minute, 10)
				return err
			})
			d.Async.OnPoll = func(_ context.Context, ref mediagate.JobRef) (mediagate.Report, error) {
				if err := newer(); err != nil {
					t.Error(err)
				}
				if ref.ExternalID == "task-0" {
					return mediagate.Report{State: mediagate.JobRunning, Percent: 50}, nil
				}
				outcome := activitytest.Success()
				return mediagate.Report{State: mediagate.JobSucceeded, Outcome: &outcome}, nil
			}
			time.Sleep(time.Minute) // until both are due
			d.begin()
			if err := <-d.done; err != nil {
				t.Error(err)
			}
			if st, _ := d.Store.Peek("task-0"); st.Progress != 0 || d.outcome("task-1") == nil {
				t.Errorf("progress %d, outcome %v", st.Progress, d.outcome("task-1"))
			}
		})
	})
	t.Run("D11 unknown three times in a row is trouble", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			d := newTending(t, 1)
			answers := []mediagate.Kind{mediagate.KindNotFound, mediagate.KindNotFound, mediagate.KindTransient}
			d.Async.OnPoll = func(context.Context, mediagate.JobRef) (mediagate.Report, error) {
				k := mediagate.KindNotFound
				if len(answers) > 0 {
					k, answers = answers[0], answers[1:]
				}
				return mediagate.Report{}, mediagate.Errorf(k, "no")
			}
			d.begin()
			time.Sleep(15*5*time.Second - time.Second) // polled each 15 s or sooner: four or five times
			time.Sleep(2 * time.Minute)
			if got := d.trouble("task-0"); got != mediagate.ParkJobLost {
				t.Errorf("trouble %q, want %s", got, mediagate.ParkJobLost)
			}
			if got := len(d.Async.Polls()); got != 6 {
				t.Errorf("%d polls, want 6: two that do not count, one that failed, three in a row", got)
			}
			if got := d.Engine.Calls(); !slices.Equal(got, []string{"wake task-0"}) {
				t.Errorf("signals %v", got)
			}
			if err := d.end(); err != nil {
				t.Error(err)
			}
		})
	})
	t.Run("D11 a parking ends once the vendor answers", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			d := newTending(t, 1)
			d.Store.Park("task-0", mediagate.ParkJobLost)
			kinds := []mediagate.Kind{mediagate.KindNotFound, mediagate.KindTransient, mediagate.KindCredentials}
			parked := make(chan bool, 10)
			d.Async.OnPoll = func(context.Context, mediagate.JobRef) (mediagate.Report, error) {
				st, _ := d.Store.Peek("task-0")
				parked <- st.Wait.Reason != ""
				if len(kinds) > 0 {
					k := kinds[0]
					kinds = kinds[1:]
					return mediagate.Report{}, mediagate.Errorf(k, "no")
				}
				return mediagate.Report{State: mediagate.JobRunning, Percent: -1}, nil
			}
			d.begin()
			for i, want := range []bool{true, true, true, true, false} {
				if got := <-parked; got != want {
					t.Errorf("at poll %d parked is %t, want %t", i, got, want)
				}
			}
			if err := d.end(); err != nil {
				t.Error(err)
			}
			if diff := cmp.Diff([]string{"wake task-0"}, d.Engine.Calls()); diff != "" {
				t.Errorf("signals (-want +got):\n%s", diff)
			}
		})
	})
	t.Run("D11 another account does not know the job", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			d := newTending(t, 1)
			other, stranger := d.Stranger()
			d.Channels.Set(other)
			d.begin()
			time.Sleep(20 * time.Second)
			if err := d.end(); err != nil {
				t.Error(err)
			}
			if d.trouble("task-0") != mediagate.ParkChannelMissing || len(stranger.Polls()) != 1 || len(d.Engine.Calls()) != 1 {
				t.Errorf("trouble %q, %d polls, signals %v", d.trouble("task-0"), len(stranger.Polls()), d.Engine.Calls())
			}
		})
	})
	t.Run("D12 parked tasks try again when the vendor is back", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			d := newTending(t, 3)
			d.park("task-1", mediagate.ParkStorage)
			d.park("task-2", mediagate.ParkProviderAway)
			var back atomic.Bool
			d.Async.OnPoll = func(context.Context, mediagate.JobRef) (mediagate.Report, error) {
				if !back.Load() {
					return mediagate.Report{}, mediagate.Errorf(mediagate.KindTransient, "away")
				}
				return mediagate.Report{State: mediagate.JobRunning, Percent: 10}, nil
			}
			d.begin()
			time.Sleep(16 * time.Second)
			if d.retried("task-2") {
				t.Error("it tries again while the vendor is away")
			}
			back.Store(true)
			time.Sleep(16 * time.Second)
			if err := d.end(); err != nil {
				t.Error(err)
			}
			if !d.retried("task-2") || d.retried("task-1") {
				t.Errorf("try again: task-2 %t, task-1 %t", d.retried("task-2"), d.retried("task-1"))
			}
		})
	})
	t.Run("refused credentials are trouble after three", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			d := newTending(t, 1)
			d.Async.OnPoll = func(context.Context, mediagate.JobRef) (mediagate.Report, error) {
				return mediagate.Report{}, mediagate.Errorf(mediagate.KindCredentials, "no")
			}
			d.begin()
			time.Sleep(time.Minute)
			if got := len(d.Async.Polls()); d.trouble("task-0") != "" || got != 2 {
				t.Errorf("trouble %q after %d polls in a minute, want none and two: they come rarely", d.trouble("task-0"), got)
			}
			time.Sleep(time.Minute)
			if err := d.end(); err != nil {
				t.Error(err)
			}
			if got := len(d.Async.Polls()); d.trouble("task-0") != mediagate.ParkCredentials || got != 3 {
				t.Errorf("trouble %q after %d polls, want %s after three", d.trouble("task-0"), got, mediagate.ParkCredentials)
			}
		})
	})
}

func TestTendStops(t *testing.T) {
	t.Parallel()
	t.Run("idle", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			d := newTending(t, 1)
			d.begin()
			time.Sleep(3 * time.Second)
			at := time.Now()
			if err := d.end(); err != nil || time.Since(at) != 0 {
				t.Errorf("ended with %v after %v, want at once", err, time.Since(at))
			}
		})
	})
	t.Run("a vendor hangs", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			d := newTending(t, 1)
			d.Async.OnPoll = func(ctx context.Context, _ mediagate.JobRef) (mediagate.Report, error) {
				<-ctx.Done()
				return mediagate.Report{}, mediagate.Errorf(mediagate.KindTransient, "cut: %w", ctx.Err())
			}
			d.begin()
			time.Sleep(20 * time.Second)
			if got := len(d.Async.Polls()); got != 1 {
				t.Fatalf("%d polls, want one under way", got)
			}
			at := time.Now()
			if err := d.end(); err != nil || time.Since(at) != 0 {
				t.Errorf("ended with %v after %v, want at once", err, time.Since(at))
			}
			// The next tender asks at once.
			if rows := d.Store.Awaits(); len(rows) != 1 || rows[0].Claim != "" || rows[0].NextPollAt.After(time.Now()) {
				t.Errorf("rows %+v, want one that is free and due", rows)
			}
		})
	})
	t.Run("the budget is used up", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			d := newTending(t, 5)
			d.setChannel(func(c *channel.Channel) { c.RequestsPerSecond = 0.05 })
			d.begin()
			time.Sleep(20 * time.Second)
			at := time.Now()
			if err := d.end(); err != nil || time.Since(at) != 0 {
				t.Errorf("ended with %v after %v, want at once", err, time.Since(at))
			}
		})
	})
}

// A vendor that hangs must not make the channel look dead: its profile allows
// 10 s between two heartbeats.
func TestTendBeatsWhileAVendorHangs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := newTending(t, 1)
		d.Async.OnPoll = func(ctx context.Context, _ mediagate.JobRef) (mediagate.Report, error) {
			<-ctx.Done()
			return mediagate.Report{}, mediagate.Errorf(mediagate.KindTransient, "too slow")
		}
		d.begin()
		time.Sleep(time.Minute)
		if err := d.end(); err != nil {
			t.Error(err)
		}
		d.mu.Lock()
		defer d.mu.Unlock()
		if len(d.beats) < 6 {
			t.Fatalf("heartbeats in a minute: %v", d.beats)
		}
		for i := 1; i < len(d.beats); i++ {
			if gap := d.beats[i].Sub(d.beats[i-1]); gap >= 10*time.Second {
				t.Errorf("%v between two heartbeats", gap)
			}
		}
		if d.last.Waiting != 1 || d.last.LastError != "transient" {
			t.Errorf("last heartbeat %+v", d.last)
		}
	})
}

// The account's budget holds whatever is due.
func TestTendKeepsTheBudget(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const rps, tasks = 2, 40
		d := newTending(t, tasks)
		d.setChannel(func(c *channel.Channel) { c.RequestsPerSecond = rps })
		var asked times
		d.Async.OnPoll = func(context.Context, mediagate.JobRef) (mediagate.Report, error) {
			asked.note()
			return mediagate.Report{State: mediagate.JobRunning, Percent: -1}, nil
		}
		d.begin()
		time.Sleep(2 * time.Minute)
		if err := d.end(); err != nil {
			t.Error(err)
		}
		at := asked.list()
		if len(at) < tasks {
			t.Fatalf("%d polls of %d tasks in 2 min: some starve", len(at), tasks)
		}
		for i := rps + 1; i < len(at); i++ {
			if window := at[i].Sub(at[i-rps-1]); window < time.Second/2 {
				t.Errorf("%d polls within %v", rps+2, window)
			}
		}
		perTask := make(map[string]int)
		for _, ref := range d.Async.Polls() {
			perTask[ref.ExternalID]++
		}
		if len(perTask) != tasks {
			t.Errorf("%d of %d tasks were asked for", len(perTask), tasks)
		}
	})
}

// The pace follows the expected end: dense for a job that may be a short one,
// then rarer, and dense around the expected end.
func TestTendAdaptsItsPace(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		d := newTending(t, 1) // expected after 2 min, polled every 2 to 15 s
		var asked times
		var progress []int
		d.Async.OnPoll = func(context.Context, mediagate.JobRef) (mediagate.Report, error) {
			asked.note()
			task, err := d.Store.TaskByID(context.Background(), "task-0")
			if err != nil {
				t.Error(err)
			}
			progress = append(progress, task.Progress)
			return mediagate.Report{State: mediagate.JobRunning, Percent: -1}, nil
		}
		d.begin()
		time.Sleep(9 * time.Minute)
		if err := d.end(); err != nil {
			t.Error(err)
		}
		at := asked.list()
		// After 0.5 to 1.5 of the shortest interval it is due, and the next claim takes it.
		if first := at[0].Sub(began); first < time.Second || first > 3*time.Second+50*time.Millisecond {
			t.Errorf("first poll after %v, want about the shortest interval", first)
		}
		for i := 1; i < len(at); i++ {
			gap, age := at[i].Sub(at[i-1]), at[i-1].Sub(began)
			if gap < 2*time.Second || gap > 16*time.Second {
				t.Errorf("pause of %v after %v", gap, age)
			}
			if near := (age - 2*time.Minute).Abs(); near < 8*time.Second && gap > 3*time.Second+20*time.Millisecond {
				t.Errorf("pause of %v just at the expected end", gap)
			}
		}
		if !slices.IsSorted(progress) || slices.Max(progress) > 95 || slices.Max(progress) < 90 {
			t.Errorf("progress without the vendor's word: %v", progress)
		}
	})
}

// A hint makes the channel ask within a second.
func TestTendTakesHints(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := newTending(t, 0)
		d.setChannel(func(c *channel.Channel) { c.PollMin, c.PollMax = 30*time.Second, time.Minute })
		d.add("task-0")
		d.begin()
		time.Sleep(3 * time.Second)
		d.change("task-0", task.PollRequested{})
		time.Sleep(1100 * time.Millisecond)
		if got := len(d.Async.Polls()); got != 1 {
			t.Errorf("%d polls within a second of the hint, want 1", got)
		}
		if err := d.end(); err != nil {
			t.Error(err)
		}
	})
}

// A database that fails ends the run with an error that Temporal repeats, in
// a new epoch.
func TestTendDatabaseAway(t *testing.T) {
	t.Parallel()
	for _, method := range []string{"BeginEpoch", "ClaimDue", "StorePolls", "AwaitStats"} {
		t.Run(method, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				d := newTending(t, 1)
				d.Store.Fault = func(m string) error {
					if m == method {
						return mediagate.Errorf(mediagate.KindUnavailable, "the database is away")
					}
					return nil
				}
				d.begin()
				kind(t, <-d.done, mediagate.KindUnavailable, "", true)
			})
		})
	}
}
