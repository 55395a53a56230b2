package activities

import (
	"cmp"
	"context"
	"errors"
	"time"

	"go.temporal.io/sdk/activity"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/channel"
	"github.com/mediagate/mediagate/failpoint"
	"github.com/mediagate/mediagate/providers"
)

// TaskArgs names a task.
type TaskArgs struct {
	TaskID string `json:"task"`
}

// AttemptArgs names an attempt of a task. Behind is of one that is to be made: a
// channel whose calls it waits behind, having found no other that would do.
type AttemptArgs struct {
	TaskID string `json:"task"`
	N      int    `json:"n"`
	Behind string `json:"behind,omitempty"`
}

// LoadArgs names the task of a run. Working says that a step of the run is under
// way, whose own story comes after this one.
type LoadArgs struct {
	TaskID  string `json:"task"`
	Working bool   `json:"working,omitempty"`
}

// LoadTask reads the task's story; each run of a workflow begins with it (D1). It
// runs in the process that decides next, and so it tells of which generation that
// is: what a run's history says of it, newer code goes by.
func (a *Activities) LoadTask(ctx context.Context, in LoadArgs) (mediagate.Story, error) {
	read := a.readStory
	if in.Working {
		read = a.glance
	}
	st, err := read(ctx, in.TaskID)
	st.Generation = int(Newest)
	return st, a.fail(ctx, err)
}

// story reads the story that a run goes on from and adds what only the worker
// knows: its settings, and whether the vendor can stop a job. It leaves out the
// words of a failure: they may be the vendor's, who may repeat the prompt, and a
// story becomes part of a history. Settle finds them in the row.
func (a *Activities) story(ctx context.Context, taskID string) (mediagate.Story, error) {
	st, err := a.readStory(ctx, taskID)
	return st, a.fail(ctx, err)
}

// readStory is story for who deals with its errors.
func (a *Activities) readStory(ctx context.Context, taskID string) (mediagate.Story, error) {
	st, err := a.glance(ctx, taskID)
	if err != nil {
		return st, err
	}
	return st, a.heard(ctx, taskID, st)
}

// heard notes that a run goes on from the story. What it was to be signalled of it
// has read by that, if this process dies too: whatever made it ask is in its
// history, and it asks again. So the signal is no longer outstanding, however long
// the step takes to begin that follows.
func (a *Activities) heard(ctx context.Context, taskID string, st mediagate.Story) error {
	if !st.Outstanding {
		return nil
	}
	return a.Store.DropAwait(ctx, taskID, st.N)
}

// beforeWait reads the story for a run that waits next, whatever that says, until
// its parking is over or a signal comes. That an attempt is in trouble is no reason
// to come back sooner; a signal that tells of more stays outstanding.
func (a *Activities) beforeWait(ctx context.Context, taskID string) (mediagate.Story, error) {
	st, err := a.glance(ctx, taskID)
	if err == nil && st.Trouble != "" && !st.Succeeded && st.Failure == nil {
		err = a.heard(ctx, taskID, st)
	}
	return st, a.fail(ctx, err)
}

// glance reads the story for a run whose step is under way.
func (a *Activities) glance(ctx context.Context, taskID string) (mediagate.Story, error) {
	st, err := a.Store.Story(ctx, taskID)
	if err != nil {
		return st, err
	}
	return a.asKnownHere(ctx, taskID, st)
}

// asKnownHere adds to the row's story what story says.
func (a *Activities) asKnownHere(ctx context.Context, taskID string, st mediagate.Story) (_ mediagate.Story, err error) {
	if st.Failure != nil {
		st.Failure = &mediagate.Failure{Code: st.Failure.Code, Retryable: st.Failure.Retryable}
	}
	st.ParkTimeout, st.ParkRetry, st.QueueTimeout = a.Settings.ParkTimeout, a.Settings.ParkRetry, a.Settings.QueueTimeout
	if st.State == mediagate.AttemptIntent || st.SenderLost && st.Sync {
		row, err := a.Store.Attempt(ctx, taskID, st.N)
		if err != nil {
			return st, err
		}
		if st.CallEnds, err = a.callEnds(ctx, row); err != nil {
			return st, err
		}
		if end := st.WaitsUntil(st.ReadAt).Add(a.Settings.ClockSkew); st.Sync && end.Before(st.CallEnds) {
			st.CallEnds = end
		}
	}
	if st.State == mediagate.AttemptRejected && ofTheChannel(st.Failure) {
		if st.Elsewhere, err = a.mayMove(ctx, taskID, st.N, st.Channel); err != nil {
			return st, err
		}
	}
	st.CanCancel = st.N > 0 && a.accounts().CanCancel(st.Provider)
	return asRunKnows(ctx, st), nil
}

// SubmitJob makes attempt n of the task: it stores the intent, calls the
// vendor, and stores what came of it. A row that it finds is not sent again,
// unless two lookups have proven that the vendor has no such job (D3, D4).
// Once the waiting for the vendor is over the row refuses the intent, and the
// story comes back as it was. So it does where as many calls are under way at
// the channels as this process makes at once; it then says behind which of them
// to wait.
//
// A job that ended with its submit is brought to the task's end at once, where that
// is quick: see finish.
//
// It returns KindUnavailable without a database, KindUnreached with code
// channel_missing when no channel serves the task, and KindShutOut, with the
// reason to park for as its code, when none of those that do takes new jobs;
// what the vendor said is in the story.
func (a *Activities) SubmitJob(ctx context.Context, in AttemptArgs) (mediagate.Story, error) {
	defer heartbeat(ctx, noDetails)()
	place := a.awaitPlace(ctx, in.Behind)
	defer place.Leave()
	if ctx.Err() != nil {
		return mediagate.Story{}, ctx.Err() // cancelled meanwhile
	}
	task, err := a.Store.TaskByID(ctx, in.TaskID)
	if mediagate.Is(err, mediagate.KindNotFound) {
		return mediagate.Story{Missing: true}, nil
	}
	if err != nil {
		return mediagate.Story{}, a.fail(ctx, err)
	}
	if task.Status.Terminal() {
		return a.story(ctx, in.TaskID)
	}
	claimed, err := a.claimAttempt(ctx, task, in.N, place)
	if claimed.place != place {
		defer claimed.place.Leave()
		place.Leave()
	}
	if mediagate.Is(err, mediagate.KindShutOut) && forOldRun(ctx) {
		err = errNoRoom
	}
	if err != nil {
		return mediagate.Story{}, a.fail(ctx, err)
	}
	if claimed.behind != "" {
		st, err := a.story(ctx, in.TaskID)
		st.Behind = claimed.behind
		return st, err
	}
	if claimed.send {
		failpoint.Hit(failpoint.IntentStored)
		if err := a.send(ctx, task, claimed); err != nil {
			return mediagate.Story{}, a.fail(ctx, err)
		}
		if ctx.Err() != nil {
			return mediagate.Story{}, ctx.Err() // cancelled; what came of it is on record
		}
		claimed.place.Leave()
		return a.finish(ctx, task, in.N)
	}
	return a.story(ctx, in.TaskID)
}

// claimed is an attempt that this call may make at its channel's vendor, if send
// says so; or the channel whose calls it has to wait behind.
type claimed struct {
	row     mediagate.Attempt
	channel channel.Channel
	entry   channel.Entry
	place   *channel.Place
	send    bool
	behind  string
}

// claimAttempt stores the intent of attempt n, or takes over the row that is
// there. The caller has the place, or none.
func (a *Activities) claimAttempt(ctx context.Context, task mediagate.Task, n int, has *channel.Place) (claimed, error) {
	row, err := a.Store.Attempt(ctx, task.ID, n)
	if mediagate.Is(err, mediagate.KindNotFound) {
		c, err := a.openAttempt(ctx, task, n, has)
		if err != nil || c.send || c.row.TaskID == "" {
			return c, err
		}
		row = c.row // of another call
	} else if err != nil {
		return claimed{}, err
	}

	switch {
	case row.State == mediagate.AttemptIntent && row.Route.Parts > 1:
		// Each of its calls has an intent of its own: what was not sent may be.
		c, err := a.accounts().Of(ctx, row)
		if err != nil {
			return claimed{}, err
		}
		place, ok := a.place(c.Name, has)
		if !ok {
			return claimed{behind: c.Name}, nil
		}
		return claimed{row: row, channel: c, entry: a.Breakers.Inside(c.Name), place: place, send: true}, nil
	case row.State == mediagate.AttemptIntent:
		// Whoever stored it died, or still holds the call: its fate is open.
		return claimed{}, a.markLost(ctx, task, row, false)
	case row.State != mediagate.AttemptUnknown || row.AgainAt.IsZero():
		return claimed{}, nil
	}
	return a.reopen(ctx, task, row, has)
}

// reopen sends an attempt again that provably made no job. A channel that takes
// no new jobs gets none this way either.
func (a *Activities) reopen(ctx context.Context, task mediagate.Task, row mediagate.Attempt, has *channel.Place) (claimed, error) {
	c, err := a.accounts().Of(ctx, row)
	if err != nil {
		return claimed{}, err
	}
	place, free := a.place(c.Name, has)
	if !free && a.Breakers.TakesJobs(c.Name) {
		return a.behind(ctx, c.Name)
	}
	entry, ok := channel.Entry{}, false
	if free {
		if entry, ok, err = a.enter(ctx, channel.Candidate{Channel: c, Route: row.Route}); err != nil {
			place.Leave()
			return claimed{}, err
		}
	}
	if !ok {
		place.Leave()
		return claimed{}, a.shutOut([]channel.Candidate{{Channel: c, Route: row.Route}})
	}
	before := a.sendBefore(task, row.Route, a.Now())
	reopened, err := a.Store.ReopenIntent(ctx, task.ID, row.N, row.SendBefore, before)
	if !reopened {
		entry.Unused(ctx)
	}
	row.SendBefore, row.Sends = before, row.Sends+1
	return claimed{row: row, channel: c, entry: entry, place: place, send: reopened}, err
}

// inputWindow is what a call gets to open the client's media, or to have a file
// uploaded, before its first byte.
const inputWindow = 50 * time.Second

// sendBefore is the end of the time in which a call made now may begin: within
// the waiting for the vendor.
func (a *Activities) sendBefore(task mediagate.Task, route mediagate.Route, now time.Time) time.Time {
	window := a.Settings.SendWindow
	if op := a.operation(route); op.Inputs || op.Uploads {
		window += inputWindow
	}
	end := task.WaitsUntil(now)
	if before := now.Add(window); before.Before(end) {
		return before
	}
	return end
}

// MarkLost notes that whoever stored the intent of attempt n is gone, and that
// its fate is open. It is for an intent whose call can no longer be under way.
func (a *Activities) MarkLost(ctx context.Context, in AttemptArgs) (mediagate.Story, error) {
	row, err := a.Store.Attempt(ctx, in.TaskID, in.N)
	if err != nil {
		return mediagate.Story{}, a.fail(ctx, err)
	}
	if row.State == mediagate.AttemptIntent {
		task, err := a.Store.TaskByID(ctx, in.TaskID)
		if err != nil {
			return mediagate.Story{}, a.fail(ctx, err)
		}
		if err := a.markLost(ctx, task, row, true); err != nil {
			return mediagate.Story{}, a.fail(ctx, err)
		}
	}
	return a.story(ctx, in.TaskID)
}

// send calls the vendor and stores the answer.
func (a *Activities) send(ctx context.Context, task mediagate.Task, c claimed) error {
	defer c.entry.Unused(ctx) // if nothing has told
	row, channel := c.row, c.channel
	if row.Route.Parts > 1 {
		return a.sendParts(ctx, task, c)
	}
	got := a.call(ctx, task, row, 0, channel)
	defer got.tell(ctx, c.entry)
	return a.persist(ctx, func(ctx context.Context) error {
		switch {
		case got.submission != nil:
			return a.accept(ctx, task, row, channel, *got.submission)
		case got.refusal != nil && sentBefore(row) && mediagate.Is(got.err, mediagate.KindInvalid):
			// In words that the adapter does not know, "taken" reads like any
			// bad value: the vendor may have the job of an earlier sending.
			return a.Store.DoubtRefusal(ctx, task.ID, row.N, row.SendBefore, *got.refusal, got.detail())
		case got.refusal != nil:
			return a.Store.RejectAttempt(ctx, task.ID, row.N, row.SendBefore, *got.refusal, got.detail())
		}
		return a.Store.MarkUnknown(ctx, task.ID, row.N, row.SendBefore, got.detail())
	})
}

// persistFor is how long an answer of a vendor is held while the database is
// away. A synchronous result is lost with this process.
const persistFor = 60 * time.Second

// persist makes a record though the worker is being stopped, and repeats it
// while the database is away.
func (a *Activities) persist(ctx context.Context, record func(context.Context) error) error {
	return a.persistWithin(ctx, persistFor, record)
}

func (a *Activities) persistWithin(ctx context.Context, limit time.Duration, record func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), limit)
	defer cancel()
	for {
		try, stop := context.WithTimeout(ctx, 10*time.Second)
		err := record(try)
		stop()
		if !mediagate.Is(err, mediagate.KindUnavailable) {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(time.Second):
		}
	}
}

// accept stores the vendor's id, and stops the job of a task that has ended
// meanwhile (D5).
func (a *Activities) accept(ctx context.Context, task mediagate.Task, row mediagate.Attempt, channel channel.Channel, s mediagate.Submission) error {
	first := a.Now().Add(channel.FirstPoll(task.ID))
	ended, err := a.Store.AcceptAttempt(ctx, task.ID, row.N, s, first)
	if err != nil {
		return err
	}
	failpoint.Hit(failpoint.VendorIDStored)
	if !ended {
		return nil
	}
	a.cancelAtVendor(ctx, channel, row, s.Ref)
	if s.Outcome != nil && stored(s.Outcome.Media) {
		a.dropUnwanted(ctx, task.ID)
	}
	return nil
}

// rejection translates the error of a submit that provably made no job; ok is
// false when the vendor may have one.
func rejection(err error) (f mediagate.Failure, ok bool) {
	var e *mediagate.Error
	if !errors.As(err, &e) {
		return mediagate.Failure{}, false
	}
	switch e.Kind {
	case mediagate.KindInvalid:
		return mediagate.Failure{Code: cmp.Or(mediagate.FailureCode(e.Code), mediagate.CodeInvalidParameters), Message: e.Message}, true
	case mediagate.KindModerated:
		return mediagate.Failure{Code: mediagate.CodeContentPolicy, Message: e.Message}, true
	case mediagate.KindCredentials, mediagate.KindForbidden:
		return mediagate.Failure{Code: mediagate.CodeProviderRefused, Message: "the provider refused our account"}, true
	case mediagate.KindFunds:
		return mediagate.Failure{Code: mediagate.CodeFunds, Message: "the provider is not available"}, true
	case mediagate.KindThrottled, mediagate.KindCapacity, mediagate.KindUnreached, mediagate.KindNotFound: // of the model or method
		return mediagate.Failure{Code: mediagate.CodeProviderAway, Message: "the provider is not available", Retryable: true}, true
	default:
		return mediagate.Failure{}, false
	}
}

// cancelAtVendor asks the vendor to stop a job that nobody waits for. It is a
// courtesy: its failure changes nothing for the task. A job that was stopped
// leaves its slot.
func (a *Activities) cancelAtVendor(ctx context.Context, c channel.Channel, row mediagate.Attempt, ref mediagate.JobRef) {
	canceller, ok := channel.Unwrap(c.Vendor).(providers.Canceller)
	if !ok {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	if err := canceller.Cancel(ctx, ref); err != nil {
		a.Logger.WarnContext(ctx, "vendor job not cancelled", "task", row.TaskID, "channel", c.Name, "error", err)
		return
	}
	if err := a.Store.ReleaseSlot(ctx, row.TaskID, row.N); err != nil {
		a.Logger.WarnContext(ctx, "the slot of a stopped job is kept for a while", "task", row.TaskID, "channel", c.Name, "error", err)
	}
}

// CancelJob asks the vendor to stop the attempt's job, where it can.
func (a *Activities) CancelJob(ctx context.Context, in AttemptArgs) error {
	defer heartbeat(ctx, noDetails)()
	row, err := a.Store.Attempt(ctx, in.TaskID, in.N)
	if err != nil {
		return a.fail(ctx, err)
	}
	if c, err := a.accounts().Of(ctx, row); err == nil && row.Ref.JobID != "" {
		a.cancelAtVendor(ctx, c, row, row.Ref)
	}
	return nil
}

func noDetails() []any { return nil }

// heartbeatEvery is well within the heartbeat timeouts of the activities'
// profiles.
const heartbeatEvery = 3 * time.Second

// heartbeat reports life and details until stop is called, so that a lost
// worker is noticed and a cancel arrives. A call that is over before the first report
// is due makes none: each is a write of the server's.
//
// It beats in the activity's own context: a beat that is cut short would count
// as the activity's cancel.
func heartbeat(ctx context.Context, details func() []any) (stop func()) {
	quit, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(heartbeatEvery)
		defer tick.Stop()
		for {
			select {
			case <-quit:
				return
			case <-tick.C:
				activity.RecordHeartbeat(ctx, details()...)
			}
		}
	}()
	return func() {
		close(quit)
		<-done
	}
}
