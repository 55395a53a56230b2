package activities

import (
	"context"
	"time"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/channel"
	"github.com/mediagate/mediagate/internal/failpoint"
	"github.com/mediagate/mediagate/task"
)

// SubmitJob makes attempt N of the step: it stores the intent, calls the vendor, and
// stores what came of it. An attempt that is there is not sent again, unless two lookups
// have proven that the vendor has no such job (D3, D4). Where no channel has a slot the
// task is queued. Where this process makes as many calls at the channels as it may, the
// answer says behind which of them to wait.
//
// The files of a job that ended with its submit are copied at once, where that is quick.
//
// It returns KindUnavailable without a database, KindUnreached with code
// channel_missing when no channel serves the task, and KindShutOut, with the reason to
// park for as its code, when none of those that do takes new jobs.
func (a *Activities) SubmitJob(ctx context.Context, in StepArgs) (Answer, error) {
	defer a.stopped(ctx, in.TaskID)
	began := newSender(ctx)
	defer heartbeat(ctx, began.details, began.news)()
	if err := a.recall(ctx, began, &in); err != nil {
		return Answer{}, a.fail(ctx, err)
	}
	permit := a.awaitPermit(ctx, in)
	defer permit.Release()
	if ctx.Err() != nil {
		return Answer{}, ctx.Err() // cancelled meanwhile
	}
	t, err := a.Store.TaskByID(ctx, in.TaskID)
	if mediagate.Is(err, mediagate.KindNotFound) {
		return Answer{Missing: true}, nil
	}
	if err != nil {
		return Answer{}, a.fail(ctx, err)
	}
	c, err := a.prepareAttempt(ctx, t, in, permit)
	if c.permit != permit { // of another channel than the one that the submit waited behind
		defer c.permit.Release()
		permit.Release()
	}
	switch {
	case err != nil:
		return Answer{}, a.fail(ctx, err)
	case c.behind != "":
		answer, err := a.Ask(ctx, Question{TaskID: in.TaskID, Seen: in.Seen})
		if answer.Step.Kind == task.Submit {
			answer.Behind = c.behind
		}
		return answer, err
	case !c.send:
		return a.stepDone(ctx, in, c.events...)
	}
	failpoint.Hit(failpoint.IntentStored)
	began.begins(c.row.Sending)
	return a.send(ctx, t, c, in, began)
}

// prepared is the result of prepareAttempt: an attempt to be sent, if send is set; or
// the channel whose calls the submit has to wait behind; or, if nothing is sent, events.
type prepared struct {
	row     task.Attempt
	channel channel.Channel
	pass    channel.Pass
	permit  permit
	send    bool
	behind  string
	events  []task.Event
}

// prepareAttempt stores the intent of the step's attempt, or decides what to do with the
// one that is there. The caller has a permit of a channel already (has), or none.
func (a *Activities) prepareAttempt(ctx context.Context, t mediagate.Task, in StepArgs, has permit) (prepared, error) {
	n := in.Step.N
	row, err := a.Store.Attempt(ctx, t.ID, n)
	switch {
	case mediagate.Is(err, mediagate.KindNotFound) && in.Seen.N >= n:
		// An earlier try sent this attempt. The database has lost it again since recall, so
		// this try sends nothing: the end of the step stores the attempt once more.
		return prepared{}, nil
	case mediagate.Is(err, mediagate.KindNotFound):
		return a.openAttempt(ctx, t, n, has)
	case err != nil:
		return prepared{}, err
	case row.State == mediagate.AttemptIntent:
		// The sender died, or still is in its call: its fate is open.
		return prepared{events: a.afterLostSender(ctx, t, row)}, nil
	case row.State != mediagate.AttemptUnknown || row.AbsentAgainAt.IsZero():
		return prepared{}, nil
	}
	return a.reopen(ctx, t, row, has)
}

// reopen sends an attempt again that provably made no job. A channel that takes
// no new jobs gets none this way either.
func (a *Activities) reopen(
	ctx context.Context, t mediagate.Task, row task.Attempt, has permit,
) (prepared, error) {
	c, err := a.accounts().Of(row)
	if err != nil {
		return prepared{}, err
	}
	candidate := channel.Candidate{Channel: c, Route: row.Route}
	permit, free := a.permit(c.Name, t.AccountID, has)
	if !free && a.Breakers.TakesJobs(c.Name) {
		return prepared{behind: c.Name}, nil
	}
	pass, ok := channel.Pass{}, false
	if free {
		if pass, ok, err = a.enter(ctx, t, row.N, candidate); err != nil {
			permit.Release()
			return prepared{}, err
		}
	}
	if !ok {
		permit.Release()
		return prepared{}, a.shutOut([]channel.Candidate{candidate})
	}
	now := a.Now()
	again := row
	again.SendBefore, again.Sends = a.sendBefore(t, row.Route, now), row.Sends+1
	again.CallEnds = a.callEnds(t, row.Route, again.SendBefore, now)
	_, err = a.change(ctx, t.ID, task.Reopened{
		N: row.N, Absent: row.SendBefore, SendBefore: again.SendBefore, CallEnds: again.CallEnds,
	})
	reopened := err == nil
	if !reopened {
		pass.Unused(ctx)
	}
	if mediagate.Is(err, mediagate.KindConflict) {
		err = nil
	}
	return prepared{row: again, channel: c, pass: pass, permit: permit, send: reopened}, err
}

// inputWindow is what a call gets to open the client's media, or to have a file
// uploaded, before its first byte.
const inputWindow = 50 * time.Second

// sendBefore is the end of the time in which a call made now may begin: within
// the waiting for the vendor.
func (a *Activities) sendBefore(t mediagate.Task, route mediagate.Route, now time.Time) time.Time {
	window := a.Settings.SendWindow
	if op := a.operation(route); op.Inputs || op.Uploads {
		window += inputWindow
	}
	end := t.WaitsUntil(now)
	if before := now.Add(window); before.Before(end) {
		return inMicroseconds(before)
	}
	return inMicroseconds(end)
}

// callEnds is the moment from which a call whose first byte is to be written before
// sendBefore can no longer be under way: the route's own call decides (D4).
func (a *Activities) callEnds(t mediagate.Task, route mediagate.Route, sendBefore, now time.Time) time.Time {
	ends := sendBefore.Add(a.operation(route).Submit + a.Settings.ClockSkew)
	if late := t.WaitsUntil(now).Add(a.Settings.ClockSkew); route.Sync && late.Before(ends) {
		return inMicroseconds(late)
	}
	return inMicroseconds(ends)
}

// inMicroseconds is the time as the database keeps it. Events name sendings by it.
func inMicroseconds(t time.Time) time.Time { return t.UTC().Truncate(time.Microsecond) }

// send calls the vendor and stores the answer.
func (a *Activities) send(
	ctx context.Context, t mediagate.Task, c prepared, in StepArgs, began *sender,
) (Answer, error) {
	defer c.pass.Unused(ctx) // if nothing has told
	got := a.call(ctx, t, c.row, c.channel)
	defer got.tell(ctx, c.pass)
	if mediagate.Is(got.err, mediagate.KindNoModel) { // before the next attempt, which another worker may make
		a.Breakers.Retire(ctx, c.channel.Name, c.row.Route)
	}
	if got.submission != nil && got.submission.Ref.JobID != "" {
		began.learns(task.Seen{Sending: c.row.Sending, Ref: got.submission.Ref})
	}
	changed, err := a.persist(ctx, t.ID, a.report(ctx, t, c, got), ended(in), task.Asked{Seen: began.with(in.Seen)})
	if mediagate.Is(err, mediagate.KindNotFound) {
		a.rowLost(ctx, c.row, got.submission)
		return Answer{Missing: true}, nil
	}
	if err != nil {
		return Answer{}, a.fail(ctx, err)
	}
	failpoint.Hit(failpoint.VendorIDStored)
	if changed.Step.Kind != task.Mirror || a.Settings.QuickCopy <= 0 || ctx.Err() != nil {
		return answerTo(changed), nil
	}
	c.permit.Release()
	return a.finish(ctx, changed)
}

// rowLost has the vendor stop the job of a task whose row is gone: the database has lost its
// last commits, and nobody will ask for the job (D17).
func (a *Activities) rowLost(ctx context.Context, row task.Attempt, made *mediagate.Submission) {
	ctx = context.WithoutCancel(ctx)
	a.evidence(ctx, mediagate.EvidenceAnswer, row.TaskID)
	if made == nil {
		return
	}
	row.Ref = made.Ref
	stopped := a.stopJob(ctx, row)
	a.Logger.WarnContext(ctx, "a vendor has a job of a task whose row is gone", "task", row.TaskID,
		"channel", row.Channel, "job", row.Ref.JobID, "stopped", stopped)
}

// report is the event of a call's answer.
func (a *Activities) report(ctx context.Context, t mediagate.Task, c prepared, got callResult) task.Event {
	switch row := c.row; {
	case got.submission != nil:
		first := a.Now().Add(c.channel.FirstPoll())
		return task.Accepted{Sending: row.Sending, Submission: *got.submission, FirstPollAt: first}
	case got.refusal != nil:
		return task.Refused{
			Sending: row.Sending, Failure: *got.refusal, Invalid: mediagate.Is(got.err, mediagate.KindInvalid),
			Elsewhere: a.elsewhere(ctx, t, row, *got.refusal), Detail: got.detail(),
		}
	default:
		return task.SubmitUnknown{Sending: row.Sending, Detail: got.detail()}
	}
}
