package activities_test

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/channel"
)

func TestTend(t *testing.T) {
	t.Parallel()
	inBubble(t, "D11 unknown three times in a row is trouble", func(t *testing.T) {
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
		time.Sleep(15*5*time.Second - time.Second) // a poll every 15 s or sooner: four or five times
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
		d.ends()
	})
	inBubble(t, "D11 a parking ends once the vendor answers", func(t *testing.T) {
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
		d.ends()
		same(t, "signals", d.Engine.Calls(), []string{"wake task-0"})
	})
	inBubble(t, "refused credentials are trouble after three", func(t *testing.T) {
		d := newTending(t, 1)
		d.Async.OnPoll = unreported(mediagate.KindCredentials)
		d.begin()
		time.Sleep(time.Minute)
		if got := len(d.Async.Polls()); d.trouble("task-0") != "" || got != 2 {
			t.Errorf("trouble %q after %d polls in a minute, want none and two: they come rarely", d.trouble("task-0"), got)
		}
		time.Sleep(time.Minute)
		d.ends()
		if got := len(d.Async.Polls()); d.trouble("task-0") != mediagate.ParkCredentials || got != 3 {
			t.Errorf("trouble %q after %d polls, want %s after three", d.trouble("task-0"), got, mediagate.ParkCredentials)
		}
	})
}

func TestTendStops(t *testing.T) {
	t.Parallel()
	inBubble(t, "idle", func(t *testing.T) {
		d := newTending(t, 1)
		d.begin()
		time.Sleep(3 * time.Second)
		at := time.Now()
		if err := d.end(); err != nil || time.Since(at) != 0 {
			t.Errorf("ended with %v after %v, want at once", err, time.Since(at))
		}
	})
	inBubble(t, "a vendor hangs", func(t *testing.T) {
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
		// The next poller asks at once.
		if rows := d.Store.Awaits(); len(rows) != 1 || rows[0].Claim != "" || rows[0].NextPollAt.After(time.Now()) {
			t.Errorf("rows %+v, want one that is free and due", rows)
		}
	})
	inBubble(t, "the budget is used up", func(t *testing.T) {
		d := newTending(t, 5)
		d.setChannel(func(c *channel.Channel) { c.RequestsPerSecond = 0.05 })
		d.begin()
		time.Sleep(20 * time.Second)
		at := time.Now()
		if err := d.end(); err != nil || time.Since(at) != 0 {
			t.Errorf("ended with %v after %v, want at once", err, time.Since(at))
		}
	})
}

// TestTendBeatsWhileAVendorHangs checks that a vendor that hangs does not make the channel look
// dead: the activity's profile allows 10 s between two heartbeats.
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
		d.ends()
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

// TestTendDatabaseAway checks that a database that fails ends the run with an error. Temporal
// repeats the run, in a new epoch.
func TestTendDatabaseAway(t *testing.T) {
	t.Parallel()
	for _, method := range []string{"BeginEpoch", "ClaimDue", "StorePolls", "AwaitStats"} {
		inBubble(t, method, func(t *testing.T) {
			d := newTending(t, 1)
			d.Store.Fault = failsWith(method, mediagate.Errorf(mediagate.KindUnavailable, "the database is away"))
			d.begin()
			kind(t, <-d.done, mediagate.KindUnavailable, "", true)
		})
	}
}
