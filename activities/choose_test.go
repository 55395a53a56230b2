package activities_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/activities/activitytest"
	"github.com/mediagate/mediagate/task"
)

const secondChannel = "async-b"

// twoAccounts adds another account with the same vendor, which is tried after the first.
func (b *bundle) twoAccounts() *activitytest.Vendor {
	other, c := &activitytest.Vendor{}, b.AsyncBound()
	c.Name, c.Fingerprint, c.Priority, c.Vendor = secondChannel, "account-b", 1, other.Finding()
	b.Channels.Set(b.AsyncBound(), c, b.SyncBound())
	return other
}

// shut takes a channel out for that reason.
func (b *bundle) shut(name string, reason mediagate.ParkReason) {
	b.t.Helper()
	_, tripped, err := b.Store.TripBreaker(
		context.Background(), mediagate.Trip{Channel: name, Reason: reason, Began: b.Now(), OpenFor: 30 * time.Second},
	)
	b.ok(err)
	if !tripped {
		b.t.Fatalf("%s was out already", name)
	}
	b.advance(time.Second) // until every process knows it
}

// TestEachAccountIsTriedOnce checks that each account is tried before one is tried again.
func TestEachAccountIsTriedOnce(t *testing.T) {
	t.Parallel()
	b := setup(t, video)
	b.twoAccounts().OnSubmit = refuses(mediagate.KindCapacity)
	b.Async.OnSubmit = refuses(mediagate.KindCapacity)
	for n, want := range []struct {
		channel   string
		elsewhere bool
	}{
		{activitytest.AsyncChannel, true}, {secondChannel, false}, {activitytest.AsyncChannel, false}, {secondChannel, false},
	} {
		b.submit(n + 1)
		if a := b.stored(n + 1); a.Channel != want.channel || a.Elsewhere != want.elsewhere {
			t.Errorf("attempt %d went to %s, and may move: %t; want %+v", n+1, a.Channel, a.Elsewhere, want)
		}
	}
}

// TestAllChannelsShut checks that there is no attempt if all channels are out, and that the error
// says what is wrong.
func TestAllChannelsShut(t *testing.T) {
	t.Parallel()
	const away, credentials, funds = mediagate.ParkProviderAway, mediagate.ParkCredentials, mediagate.ParkFunds
	for name, c := range map[string]struct {
		first, second mediagate.ParkReason // empty if the channel is disabled
		want          mediagate.ParkReason
	}{
		"away":     {away, away, away},
		"empty":    {funds, funds, funds},
		"mixed":    {funds, credentials, away},
		"disabled": {"", "", away},
		"one each": {"", funds, away},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, video)
			b.twoAccounts()
			for channel, reason := range map[string]mediagate.ParkReason{
				activitytest.AsyncChannel: c.first, secondChannel: c.second,
			} {
				if reason != "" {
					b.shut(channel, reason)
					continue
				}
				_, err := b.Store.EnableChannel(context.Background(), channel, false)
				b.ok(err)
			}
			_, err := b.tryStep(task.Submit, 1)
			kind(t, err, mediagate.KindShutOut, c.want, false)
			if got := b.Store.Attempts(taskID); len(got) != 0 || len(b.Async.Submits()) != 0 {
				t.Errorf("attempts %+v", got)
			}
		})
	}
}

// twoRoutes is a video with two routes to one vendor, of which the first names a model that
// the vendor may not have.
func twoRoutes(w *activitytest.World) mediagate.Task {
	t := w.NewVideo()
	first := t.Plan.Routes[0]
	first.Upstream = "upstream-v2"
	t.Plan.Routes = append([]mediagate.Route{first}, t.Plan.Routes...)
	return t
}

// lacks is a vendor that has none of these models.
func lacks(v *activitytest.Vendor, models ...string) func(context.Context, mediagate.Job) (mediagate.Submission, error) {
	return func(_ context.Context, job mediagate.Job) (mediagate.Submission, error) {
		if slices.Contains(models, job.Upstream) {
			return mediagate.Submission{}, mediagate.Errorf(mediagate.KindNoModel, "no")
		}
		return v.Accept(job)
	}
}

// TestRetiredModelTakesTheNextRoute checks that a task leaves a vendor without the model at once for
// the next route, which may be the same vendor's, and that no task asks for that model within the hour.
func TestRetiredModelTakesTheNextRoute(t *testing.T) {
	t.Parallel()
	b := setup(t, twoRoutes)
	b.Async.OnSubmit = lacks(b.Async, "upstream-v2")
	if answer := b.submit(1); answer.State != mediagate.AttemptRejected || answer.Step.Kind != task.Submit || answer.Step.N != 2 {
		t.Errorf("answer %+v, want a submit at once", answer)
	}
	if c := b.Store.Channel(activitytest.AsyncChannel); c.Open || !c.HasRetired("upstream-v2", b.Now().Add(time.Hour-time.Second)) || c.HasRetired("upstream-v2", b.Now().Add(time.Hour)) {
		t.Errorf("the channel is %+v", c)
	}
	if answer := b.submit(2); answer.State != mediagate.AttemptAccepted {
		t.Errorf("answer %+v", answer)
	}
	var asked []string
	for _, job := range b.Async.Submits() {
		asked = append(asked, job.Upstream)
	}
	same(t, "asked for", asked, []string{"upstream-v2", "upstream-v3"})
}

// TestRetiredModelWithoutAnotherRoute checks that a task without a route fails. If others have found
// its routes retired, it fails without a call, unless an operator chooses or enables the channel.
func TestRetiredModelWithoutAnotherRoute(t *testing.T) {
	t.Parallel()
	failed := func(b *bundle) {
		b.t.Helper()
		if got := b.task(); got.Status != mediagate.StatusFailed || got.Failure.Code != mediagate.CodeModelRetired ||
			got.Failure.Retryable || got.Cost != 0 {
			b.t.Errorf("the task is %s, %+v", got.Status, got.Failure)
		}
	}
	retired := func(b *bundle) {
		b.t.Helper()
		b.Async.OnSubmit = lacks(b.Async, "upstream-v2", "upstream-v3")
		for _, upstream := range []string{"upstream-v2", "upstream-v3"} {
			_, err := b.Store.RetireModel(context.Background(), activitytest.AsyncChannel, upstream, b.Now(), time.Hour)
			b.ok(err)
		}
	}
	t.Run("by this task", func(t *testing.T) {
		t.Parallel()
		b := setup(t, twoRoutes)
		b.Async.OnSubmit = lacks(b.Async, "upstream-v2", "upstream-v3")
		b.submit(1)
		b.submit(2)
		b.step(task.Settle, 2)
		failed(b)
	})
	t.Run("by others", func(t *testing.T) {
		t.Parallel()
		b := setup(t, twoRoutes)
		retired(b)
		if answer := b.submit(1); answer.Step.Kind != task.Done {
			t.Errorf("answer %+v, want that the task has ended", answer)
		}
		failed(b)
		b.submitted()
	})
	t.Run("an operator chooses the channel", func(t *testing.T) {
		t.Parallel()
		b := setup(t, twoRoutes)
		retired(b)
		b.change(task.RerouteRequested{Channel: activitytest.AsyncChannel})
		b.submit(1)
		b.submitted(taskID)
	})
	t.Run("an operator enables the channel during the call", func(t *testing.T) {
		t.Parallel()
		b := setup(t, video)
		b.Async.OnSubmit = func(context.Context, mediagate.Job) (mediagate.Submission, error) {
			b.advance(time.Second)
			_, err := b.Store.EnableChannel(context.Background(), activitytest.AsyncChannel, true)
			b.ok(err)
			b.Async.OnSubmit = nil // the cause is mended
			return mediagate.Submission{}, mediagate.Errorf(mediagate.KindNoModel, "no")
		}
		b.submit(1)
		b.submit(2)
		b.submitted(taskID, taskID+"-2")
	})
}

// TestD4RefusedUnderANameThatWasSentBefore checks a sending under a name that an earlier attempt
// had. The vendor may refuse it because it has the job of that attempt, so the refusal counts
// only after lookups.
func TestD4RefusedUnderANameThatWasSentBefore(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		job  bool // the first sending arrived late, and made a job
		want mediagate.AttemptState
	}{
		"the vendor has it": {true, mediagate.AttemptAccepted},
		"a bad request":     {false, mediagate.AttemptRejected},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, video)
			b.Async.OnSubmit = refuses(mediagate.KindCapacity)
			b.submit(1)
			b.Store.Exec("UPDATE attempts SET document = json_set(document, '$.sends', 2) WHERE task_id = ?", taskID)
			if c.job {
				b.Async.End(taskID, activitytest.Success())
			}
			b.Async.OnSubmit = refuses(mediagate.KindInvalid)
			if st := b.submit(2); st.State != mediagate.AttemptUnknown {
				t.Errorf("refused under %s: %+v, want that its fate is open", b.attempt(2).ExternalID, st)
			}
			for range 2 {
				b.advance(time.Minute)
				b.step(task.Lookup, 2)
			}
			if row := b.attempt(2); row.State != c.want {
				t.Errorf("after the lookups it is %s, want %s", row.State, c.want)
			}
		})
	}
}

// TestRepeatedSendingStays checks that a repeated sending stays with its account and its name,
// whatever other accounts there are (D4), and waits while that account is out.
func TestRepeatedSendingStays(t *testing.T) {
	t.Parallel()
	b := lost(t)
	other := b.twoAccounts()
	b.absent()
	b.shut(activitytest.AsyncChannel, mediagate.ParkProviderAway)
	_, err := b.tryStep(task.Submit, 1)
	kind(t, err, mediagate.KindShutOut, mediagate.ParkProviderAway, false)
	if got := b.attempt(1).Sends; got != 1 {
		t.Errorf("while the channel is out: %d sendings", got)
	}
	b.advance(30 * time.Second)
	b.Async.OnSubmit = refuses(mediagate.KindCapacity)
	if st := b.submit(1); st.State != mediagate.AttemptRejected || b.stored(1).Elsewhere {
		t.Errorf("repeated: %+v", st)
	}
	b.submit(2)
	if row := b.attempt(2); row.Channel != activitytest.AsyncChannel || row.ExternalID != taskID {
		t.Errorf("then %+v", row)
	}
	if n := len(other.Submits()); n != 0 {
		t.Errorf("the other account was asked %d times", n)
	}
}

// TestCallsMoveTheBreaker checks that a call moves the breaker if it says something about the
// channel. A problem with the client's media, or with our own bucket, does not.
func TestCallsMoveTheBreaker(t *testing.T) {
	t.Parallel()
	open := func(b *bundle) mediagate.ChannelState { return b.Store.Channel(activitytest.AsyncChannel) }
	t.Run("refused credentials take it out", func(t *testing.T) {
		t.Parallel()
		b := setup(t, video)
		b.Async.OnSubmit = refuses(mediagate.KindCredentials)
		if st := b.submit(1); b.stored(1).Elsewhere || !open(b).Open || open(b).Reason != mediagate.ParkCredentials {
			t.Errorf("answer %+v, channel %+v", st, open(b))
		}
	})
	for name, spoil := range map[string]func(*bundle){
		"a probe that may not be sent is given back": func(b *bundle) { b.change(task.CancelRequested{}) },
		"an adapter that panics gives it back": func(b *bundle) {
			b.Async.OnSubmit = func(context.Context, mediagate.Job) (mediagate.Submission, error) { panic("a bug") }
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, video)
			b.shut(activitytest.AsyncChannel, mediagate.ParkFunds)
			b.advance(30 * time.Second)
			spoil(b)
			_, _ = b.tryStep(task.Submit, 1)
			if s := open(b); !s.ProbeDue(b.Now()) {
				t.Errorf("channel %+v, want that the next job is the probe", s)
			}
		})
	}
	t.Run("the client's media say nothing", func(t *testing.T) {
		t.Parallel()
		b := setup(t, video)
		b.Fetcher.OnFetch = unfetched(mediagate.KindTransient)
		b.Async.OnSubmit = func(ctx context.Context, job mediagate.Job) (mediagate.Submission, error) {
			_, _, err := job.Inputs.Open(ctx, "https://nowhere.example.com/"+activitytest.Secret, 1)
			if err == nil {
				t.Error("the picture could be opened")
			}
			return mediagate.Submission{}, &mediagate.Error{Kind: mediagate.KindUnreached, Message: "not sent whole", Err: err}
		}
		b.twoAccounts().OnSubmit = b.Async.OnSubmit
		for n := range 6 {
			if st := b.submit(n + 1); st.State != mediagate.AttemptRejected || b.stored(n+1).Elsewhere {
				t.Errorf("attempt %d: %+v", n+1, st)
			}
		}
		if s := open(b); s.Open {
			t.Errorf("channel %+v", s)
		}
	})
}
