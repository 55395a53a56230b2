package activities

import (
	"context"
	"time"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/channel"
	"github.com/mediagate/mediagate/internal/failpoint"
	"github.com/mediagate/mediagate/task"
)

// SubmitJob makes attempt N of the step: it stores the intent, calls the vendor, and stores the
// result. If the attempt exists already, SubmitJob does not send it again unless two lookups have
// proven that the vendor has no such job (D3, D4). If no channel has a slot, the task is queued.
// If this process has no permit for another call at the channels, the answer names the channel to
// wait behind.
//
// If the job ended with its submit, its files are copied at once, if that is quick.
//
// SubmitJob returns KindUnavailable without a database; KindUnreached with code channel_missing
// if no channel serves the task; and KindShutOut if the channels that serve it take no new jobs,
// with the reason to park as its code.
func (a *Activities) SubmitJob(ctx context.Context, in StepArgs) (Answer, error) {
	defer a.stopped(ctx, in.TaskID)
	began := newSender(ctx)
	defer heartbeat(ctx, began.details, began.news)()
	if err := a.adoptReported(ctx, began, &in); err != nil {
		return Answer{}, a.fail(ctx, err)
	}
	// A submit from a backlog waits for a permit of that channel first.
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
	if c.permit != permit { // for another channel than the one that the submit waited behind
		defer c.permit.Release()
		permit.Release()
	}
	switch {
	case err != nil:
		return Answer{}, a.fail(ctx, err)
	case c.behind != "":
		// Nothing was stored. If the task may still be submitted, the run takes the same step
		// again, this time in the backlog of that channel.
		answer, err := a.Ask(ctx, Question{TaskID: in.TaskID, Seen: in.Seen})
		if answer.Step.Kind == task.Submit {
			answer.Behind = c.behind
		}
		return answer, err
	case !c.send:
		return a.stepDone(ctx, in, c.events...)
	}
	// From here on the call may be under way, as far as any other process knows.
	failpoint.Hit(failpoint.IntentStored)
	began.reportSending(c.row.Sending)
	return a.send(ctx, t, c, in, began)
}

// prepared is the result of prepareAttempt: an attempt to send, if send is set; or the channel
// behind whose calls the submit has to wait; or, if nothing is sent, events.
type prepared struct {
	row     task.Attempt
	channel channel.Channel
	pass    channel.Pass
	permit  permit
	send    bool
	behind  string
	events  []task.Event
}

// prepareAttempt stores the intent of the step's attempt. If the attempt exists already,
// prepareAttempt decides what to do with it. has is the permit that the caller has already, or an
// empty one.
func (a *Activities) prepareAttempt(ctx context.Context, t mediagate.Task, in StepArgs, has permit) (prepared, error) {
	n := in.Step.N
	row, err := a.Store.Attempt(ctx, t.ID, n)
	switch {
	case mediagate.Is(err, mediagate.KindNotFound) && in.Seen.N >= n:
		// An earlier try sent this attempt, and the database has lost it again since adoptReported
		// put it back. This try sends nothing: the Asked at the end of the step puts the attempt
		// back once more.
		return prepared{}, nil
	case mediagate.Is(err, mediagate.KindNotFound):
		return a.openAttempt(ctx, t, n, has)
	case err != nil:
		return prepared{}, err
	case row.State == mediagate.AttemptIntent:
		// The sender died, or is still in its call. It is not known what became of the attempt.
		return prepared{events: a.afterLostSender(ctx, t, row)}, nil
	case row.State != mediagate.AttemptUnknown || row.AbsentAgainAt.IsZero():
		return prepared{}, nil
	}
	return a.reopen(ctx, t, row, has)
}

// reopen sends an attempt again that provably made no job. A channel that takes no new jobs does
// not get this one either.
//
// The attempt keeps its number and its name at the vendor: if a lookup was wrong after all, the
// vendor refuses the second job of that name (D4). The event Reopened names the sending that the
// lookups asked about, so that of two processes only one sends again.
func (a *Activities) reopen(
	ctx context.Context, t mediagate.Task, row task.Attempt, has permit,
) (prepared, error) {
	c, err := a.accounts().Owner(row)
	if err != nil {
		return prepared{}, err
	}
	// The sending takes a permit and passes the breaker like that of a new attempt.
	candidate := channel.Candidate{Channel: c, Route: row.Route}
	permit, free := a.permit(c.Name, t.AccountID, has)
	if !free && a.Breakers.TakesJobs(c.Name) {
		return prepared{behind: c.Name}, nil
	}
	pass, ok := channel.Pass{}, false
	if free {
		if pass, ok, err = a.enterBreaker(ctx, t, row.N, candidate); err != nil {
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
	// The task refuses the sending: it has ended, or another process has sent it. Nothing is sent.
	if mediagate.Is(err, mediagate.KindConflict) {
		err = nil
	}
	return prepared{row: again, channel: c, pass: pass, permit: permit, send: reopened}, err
}

// inputWindow is the time that a call gets before its first byte to open the client's media, or
// to upload a file.
const inputWindow = 50 * time.Second

// sendBefore returns the time before which a call that is made now has to begin. It is never later
// than the end of the task's wait for the vendor. For example, a call that opens no media and is
// made at 12:00:00 has to begin before 12:00:10. A call that opens media first has until 12:01:00.
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

// callEnds returns the time from which on a call can no longer be under way, if its first byte is
// written before sendBefore. The route's own operation decides how long the call takes (D4). For
// example, with send_before at 12:00:10, a longest call of 150 s and a skew of 5 s, an asynchronous
// call ends by 12:02:45.
func (a *Activities) callEnds(t mediagate.Task, route mediagate.Route, sendBefore, now time.Time) time.Time {
	ends := sendBefore.Add(a.operation(route).Submit + a.Settings.ClockSkew)
	// A synchronous call ends with the deadline of its task: a later answer would come too late.
	if late := t.WaitsUntil(now).Add(a.Settings.ClockSkew); route.Sync && late.Before(ends) {
		return inMicroseconds(late)
	}
	return inMicroseconds(ends)
}

// inMicroseconds returns the time as the database stores it. Events identify sendings by such
// times.
func inMicroseconds(t time.Time) time.Time { return t.UTC().Truncate(time.Microsecond) }

// send calls the vendor and stores the answer.
//
// The answer, the end of the step and the question for the next one are a single transaction. While
// the database is away, persist repeats it: until then only this process, its heartbeat and perhaps
// the manifest know the job.
func (a *Activities) send(
	ctx context.Context, t mediagate.Task, c prepared, in StepArgs, began *sender,
) (Answer, error) {
	defer c.pass.Unused(ctx) // if the call says nothing to the breaker
	got := a.call(ctx, t, c.row, c.channel)
	defer got.report(ctx, c.pass)
	if mediagate.Is(got.err, mediagate.KindNoModel) { // before the next attempt can begin, at any worker
		c.pass.Retire(ctx, c.row.Route)
	}
	if got.submission != nil && got.submission.Ref.JobID != "" {
		began.setSeen(task.Seen{Sending: c.row.Sending, Ref: got.submission.Ref})
	}
	changed, err := a.persist(
		ctx, t.ID, a.submitEvent(ctx, t, c, got), stepEnded(in), task.Asked{Seen: began.addTo(in.Seen)},
	)
	if mediagate.Is(err, mediagate.KindNotFound) {
		a.stopWithoutRow(ctx, c.row, got.submission)
		return Answer{Missing: true}, nil
	}
	if err != nil {
		return Answer{}, a.fail(ctx, err)
	}
	failpoint.Hit(failpoint.VendorIDStored)
	// Usually the next step is to poll, or another try. After a synchronous call it is the copy
	// of the files, which this step makes if that is quick.
	if changed.Step.Kind != task.Mirror || a.Settings.QuickCopy <= 0 || ctx.Err() != nil {
		return answerTo(changed), nil
	}
	// The call is over. Other calls need not wait for the copy.
	c.permit.Release()
	return a.finish(ctx, changed)
}

// stopWithoutRow has the vendor stop the job of a task whose row is gone: the database has lost
// its last commits, and no one will ask for the job (D17).
func (a *Activities) stopWithoutRow(ctx context.Context, row task.Attempt, made *mediagate.Submission) {
	ctx = context.WithoutCancel(ctx)
	a.evidence(ctx, mediagate.EvidenceAnswer, row.TaskID)
	if made == nil {
		return
	}
	// No row can say that the job exists. The log names it.
	row.Ref = made.Ref
	stopped := a.stopJob(ctx, row)
	a.Logger.WarnContext(ctx, "a vendor has a job of a task whose row is gone", "task", row.TaskID,
		"channel", row.Channel, "job", row.Ref.JobID, "stopped", stopped)
}

// submitEvent returns the event for a call's answer. An answer that proves neither a job nor its
// absence makes the attempt unknown, and nothing is sent again unless lookups prove that there is
// no job, or an operator says so (D4, D6).
func (a *Activities) submitEvent(ctx context.Context, t mediagate.Task, c prepared, got callResult) task.Event {
	switch row := c.row; {
	case got.submission != nil:
		first := a.Now().Add(c.channel.FirstPoll())
		return task.Accepted{Sending: row.Sending, Submission: *got.submission, FirstPollAt: first}
	case got.refusal != nil:
		return task.Refused{
			Sending: row.Sending, Failure: *got.refusal, Invalid: mediagate.Is(got.err, mediagate.KindInvalid),
			Elsewhere: a.mayGoElsewhere(ctx, t, row, *got.refusal), Detail: got.detail(),
		}
	default:
		return task.SubmitUnknown{Sending: row.Sending, Detail: got.detail()}
	}
}
