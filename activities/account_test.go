package activities_test

import (
	"context"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/activities/activitytest"
	"github.com/mediagate/mediagate/channel"
	"github.com/mediagate/mediagate/task"
)

// renamed is the asynchronous channel under another name.
func renamed(c channel.Channel, former ...string) channel.Channel {
	c.Name, c.Former = "async-b", former
	return c
}

// endJobs ends all jobs at the vendor.
func (d *tending) endJobs(ids ...string) {
	for _, id := range ids {
		d.Async.End(id, activitytest.Success())
	}
}

// TestD11TendRenewedChannel checks that the jobs of a channel go on if its key, its name or both
// are new, and that they park if its account may be another one. Each row is asked for once a
// round, whichever poller runs under the old name.
func TestD11TendRenewedChannel(t *testing.T) {
	t.Parallel()
	const former, missing = activitytest.AsyncChannel, mediagate.ParkChannelMissing
	third := func(c channel.Channel) channel.Channel {
		c.Name = "async-c"
		return c
	}
	cases := map[string]struct {
		set     func(d *tending)     // sets the channels
		trouble mediagate.ParkReason // the trouble instead of an end
		lacked  bool                 // the worker says that it lacks the channel
	}{
		"a new key": {set: func(d *tending) { d.Channels.Set(d.Renewed()) }},
		"a label for the same key": {set: func(d *tending) {
			c := d.AsyncBound()
			c.Fingerprint, c.Aka = "label", []string{c.Fingerprint}
			d.Channels.Set(c)
		}},
		"a new name, configured as former": {set: func(d *tending) { d.Channels.Set(renamed(d.AsyncBound(), former)) }},
		"a new name, not configured as former": {
			set: func(d *tending) { d.Channels.Set(d.SyncBound(), renamed(d.AsyncBound())) }, lacked: true,
		},
		"a new name, and the old one for another account": {set: func(d *tending) {
			other, _ := d.Stranger()
			d.Channels.Set(other, renamed(d.AsyncBound()))
		}, trouble: missing},
		"a new name and a new key, configured": {set: func(d *tending) { d.Channels.Set(renamed(d.Renewed(), former)) }},
		"a new name and a new key, not configured": {
			set: func(d *tending) { d.Channels.Set(renamed(d.Renewed())) }, lacked: true,
		},
		"two channels have the account, one has the former name": {set: func(d *tending) {
			d.Channels.Set(renamed(d.AsyncBound()), third(renamed(d.AsyncBound(), former)))
		}},
		"another account": {set: func(d *tending) {
			other, _ := d.Stranger()
			d.Channels.Set(other)
		}, trouble: missing},
		"a vendor that answers for any id": {set: func(d *tending) {
			d.Async.OnPoll = func(_ context.Context, ref mediagate.JobRef) (mediagate.Report, error) {
				outcome := activitytest.Success()
				return mediagate.Report{Ref: ref, State: mediagate.JobSucceeded, Outcome: &outcome}, nil
			}
			d.Channels.Set(d.Renewed())
		}, trouble: missing},
		"a key that the vendor refuses": {set: func(d *tending) {
			d.Async.OnPoll = unreported(mediagate.KindCredentials)
			d.Channels.Set(d.Renewed())
		}, trouble: missing},
		"another vendor took the name over": {set: func(d *tending) {
			d.Async.OnPoll = func(context.Context, mediagate.JobRef) (mediagate.Report, error) {
				t.Error("another vendor was asked")
				return mediagate.Report{}, mediagate.Errorf(mediagate.KindNotFound, "no")
			}
			c := d.Renewed()
			c.Provider = "elsewhere"
			d.Channels.Set(c)
		}, trouble: missing},
		"another vendor has the former name": {set: func(d *tending) {
			c := renamed(d.Renewed(), former)
			c.Provider = "elsewhere"
			d.Channels.Set(c)
		}, trouble: missing},
	}
	for name, c := range cases {
		inBubble(t, name, func(t *testing.T) {
			d := newTending(t, 1)
			d.Activities.Settings.QuickCopy = 0 // a copy with a new key would ask for the job as well
			d.Store.SeeChannel(former)
			c.set(d)
			d.endJobs("task-0")
			d.begin()
			if c.lacked {
				kind(t, <-d.done, mediagate.KindUnreached, "channel_elsewhere", true)
				if got := len(d.Async.Polls()); got != 0 {
					t.Errorf("%d polls", got)
				}
				return
			}
			time.Sleep(3 * time.Minute)
			d.ends()
			if got := d.trouble("task-0"); got != c.trouble {
				t.Errorf("trouble %q, want %q", got, c.trouble)
			}
			if got := d.outcome("task-0"); (got != nil) != (c.trouble == "") {
				t.Errorf("outcome %v", got)
			}
			if got := len(d.Async.Polls()); c.trouble == "" && got != 1 {
				t.Errorf("%d polls for one row that had ended, want 1", got)
			}
		})
	}
}

// TestD11FormerName checks that the poller of a former name uses the epoch of that name (D8), and
// ends when nothing waits under it.
func TestD11FormerName(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := newTending(t, 1)
		d.Channels.Set(renamed(d.AsyncBound(), activitytest.AsyncChannel))
		d.begin()
		time.Sleep(20 * time.Second)
		if _, err := d.Store.BeginEpoch(t.Context(), activitytest.AsyncChannel); err != nil {
			t.Fatal(err)
		}
		if err := <-d.done; err != nil {
			t.Errorf("the older poller: %v, want it fenced", err)
		}
		d.begin()
		d.endJobs("task-0")
		time.Sleep(15 * time.Second)
		if d.outcome("task-0") == nil {
			t.Error("the newer poller has not polled")
		}
		began := time.Now()
		if err := <-d.done; err != nil || time.Since(began) > time.Minute {
			t.Errorf("the poller ended with %v after %s", err, time.Since(began))
		}
		d.begin()
		if err := <-d.done; err != nil {
			t.Errorf("without rows: %v, want it left to rest", err)
		}

		// A worker with the earlier settings may still add rows.
		d.Store.SeeChannel(activitytest.AsyncChannel)
		d.begin()
		time.Sleep(10 * time.Second)
		d.Channels.Set(d.AsyncBound())
		d.add("task-1")
		d.endJobs("task-1")
		time.Sleep(16 * time.Second)
		if d.outcome("task-1") == nil {
			t.Error("a row that came later was not polled for")
		}
		d.ends()
	})
}

// TestD11ResolveWithANewKey checks that an account that has proven nothing may be asked for a
// lost submission (D4). If it finds none, that does not prove absence, and nothing is sent to it.
// If it finds the job, the job goes on.
func TestD11ResolveWithANewKey(t *testing.T) {
	t.Parallel()
	made := func(t *testing.T) *bundle {
		t.Helper()
		b := setup(t, video)
		b.Async.OnSubmit = func(_ context.Context, job mediagate.Job) (mediagate.Submission, error) {
			if _, err := b.Async.Accept(job); err != nil {
				return mediagate.Submission{}, err
			}
			return mediagate.Submission{}, mediagate.Errorf(mediagate.KindAmbiguous, "lost")
		}
		b.submit(1)
		return b
	}
	t.Run("found", func(t *testing.T) {
		t.Parallel()
		b := made(t)
		b.Channels.Set(renamed(b.Renewed(), activitytest.AsyncChannel))
		answer := b.step(task.Lookup, 1)
		if answer.State != mediagate.AttemptAccepted {
			t.Errorf("answer %+v", answer)
		}
		if rows := b.Store.Awaits(); len(rows) != 1 || rows[0].Channel != activitytest.AsyncChannel {
			t.Errorf("awaited %+v, want the row under the name of its attempt", rows)
		}
		b.submitted(taskID)
	})
	t.Run("found for a task that has ended", func(t *testing.T) {
		t.Parallel()
		b := made(t)
		b.Channels.Set(b.Renewed())
		b.Async.OnFind = func(context.Context, mediagate.JobRef) (mediagate.Report, error) {
			b.change(task.CancelRequested{}, task.EndDue{})
			return mediagate.Report{Ref: mediagate.JobRef{JobID: "job-1"}, Named: true, State: mediagate.JobRunning}, nil
		}
		b.Async.OnPoll = func(_ context.Context, ref mediagate.JobRef) (mediagate.Report, error) {
			return mediagate.Report{Ref: ref, Named: true, State: mediagate.JobRunning}, nil
		}
		b.step(task.Lookup, 1)
		if got := b.Async.Cancelled(); len(got) != 1 {
			t.Errorf("vendor jobs cancelled: %v, want the one that was found", got)
		}
	})
	t.Run("not found", func(t *testing.T) {
		t.Parallel()
		b := made(t)
		other, stranger := b.Stranger()
		b.Channels.Set(other)
		for range 3 {
			b.advance(time.Hour)
			_, err := b.tryStep(task.Lookup, 1)
			kind(t, err, mediagate.KindUnreached, mediagate.ParkChannelMissing, true)
			_, _ = b.tryStep(task.Submit, 1)
		}
		if row := b.attempt(1); row.State != mediagate.AttemptUnknown || !row.AbsentAt.IsZero() {
			t.Errorf("attempt %+v, want it unknown and not absent", row)
		}
		if len(stranger.Finds()) != 3 || len(stranger.Submits()) != 0 {
			t.Errorf("%d lookups, %d submits", len(stranger.Finds()), len(stranger.Submits()))
		}
	})
	t.Run("absent with the old key", func(t *testing.T) {
		t.Parallel()
		b := lost(t)
		b.absent()
		b.Channels.Set(b.Renewed())
		_, err := b.tryStep(task.Submit, 1)
		kind(t, err, mediagate.KindUnreached, mediagate.ParkChannelMissing, true)
		b.submitted(taskID) // once
	})
}

// TestD11CancelJobWithANewKey checks that a job is stopped only at an account that shows it.
func TestD11CancelJobWithANewKey(t *testing.T) {
	t.Parallel()
	b := setup(t, video)
	b.submit(1)
	other, stranger := b.Stranger()
	b.Channels.Set(other)
	b.step(task.CancelJob, 1)
	if got := stranger.Cancelled(); len(got) != 0 {
		t.Errorf("another account cancelled %v", got)
	}
	b.Channels.Set(b.Renewed())
	b.step(task.CancelJob, 1)
	if got := b.Async.Cancelled(); len(got) != 1 {
		t.Errorf("vendor jobs cancelled: %v, want one", got)
	}
}

// TestD11MirrorWithANewKey checks that fresh links are asked for (D12), and the channel's own
// host is trusted, only once the account has shown the job.
func TestD11MirrorWithANewKey(t *testing.T) {
	t.Parallel()
	const fresh = "https://10.0.0.1/fresh"
	b := succeeded(t, media("https://m.example.com/dead"))
	b.Async.End(taskID, media(fresh))
	b.Channels.Set(b.Renewed())
	b.Fetcher.OnFetch = func(_ context.Context, url, channel string) (io.ReadCloser, int64, error) {
		switch {
		case url != fresh:
			return nil, 0, mediagate.Errorf(mediagate.KindGone, "dead")
		case channel == "":
			return nil, 0, mediagate.Errorf(mediagate.KindInvalid, "private")
		}
		return io.NopCloser(strings.NewReader(url)), int64(len(url)), nil
	}
	if _, err := b.mirror(); err != nil {
		t.Fatal(err)
	}
}

// TestD11ModalWithANewKey checks that a new key that shows the job that waits has the job's
// account: the client's parameters go there (D15).
func TestD11ModalWithANewKey(t *testing.T) {
	t.Parallel()
	b := waiting(t)
	b.Async.OnPoll = func(_ context.Context, ref mediagate.JobRef) (mediagate.Report, error) {
		return mediagate.Report{Ref: ref, Named: true, State: mediagate.JobWaiting}, nil
	}
	b.Channels.Set(renamed(b.Renewed(), activitytest.AsyncChannel))
	if answer := b.submit(2); answer.State != mediagate.AttemptAccepted {
		t.Errorf("answer %+v", answer)
	}
}

// TestD11RerouteToAFormerName checks that a reroute to a channel continues under the channel's
// new name.
func TestD11RerouteToAFormerName(t *testing.T) {
	t.Parallel()
	b := setup(t, video)
	b.change(task.RerouteRequested{Channel: activitytest.AsyncChannel})
	b.Channels.Set(renamed(b.AsyncBound(), activitytest.AsyncChannel))
	if answer := b.submit(1); answer.State != mediagate.AttemptAccepted {
		t.Errorf("answer %+v", answer)
	}
}

// TestD11KeptNameAfterARename checks that the attempt after a refused repeated sending stays at
// its channel (D4), even under the channel's new name, and with a new label.
func TestD11KeptNameAfterARename(t *testing.T) {
	t.Parallel()
	b := setup(t, video)
	b.Async.OnSubmit = func(context.Context, mediagate.Job) (mediagate.Submission, error) {
		return mediagate.Submission{}, mediagate.Errorf(mediagate.KindAmbiguous, "lost")
	}
	b.submit(1)
	for range 3 {
		b.advance(time.Minute)
		b.step(task.Lookup, 1)
	}
	b.Async.OnSubmit = func(context.Context, mediagate.Job) (mediagate.Submission, error) {
		return mediagate.Submission{}, mediagate.Errorf(mediagate.KindThrottled, "later")
	}
	if answer := b.submit(1); answer.State != mediagate.AttemptRejected {
		t.Fatalf("answer %+v", answer)
	}
	b.Async.OnSubmit = nil
	b.advance(time.Minute)
	c := renamed(b.AsyncBound(), activitytest.AsyncChannel)
	c.Fingerprint, c.Aka = "label", []string{c.Fingerprint}
	b.Channels.Set(c)
	if answer := b.submit(2); answer.State != mediagate.AttemptAccepted {
		t.Errorf("answer %+v", answer)
	}
}
