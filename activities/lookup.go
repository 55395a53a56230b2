package activities

import (
	"context"
	"time"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/failpoint"
	"github.com/mediagate/mediagate/providers"
	"github.com/mediagate/mediagate/task"
)

// askTimeout bounds one question to a vendor about a job.
const askTimeout = 30 * time.Second

// LookUp finds out what became of attempt N, whose answer was lost: by what its sender
// has left in our bucket, then by our own id at the vendor. "Not found" counts only once
// nothing of the call can still be under way, and twice (D4). Returns KindTransient
// while the vendor is out of reach, KindUnavailable while the bucket is.
func (a *Activities) LookUp(ctx context.Context, in StepArgs) (Answer, error) {
	defer a.stopped(ctx, in.TaskID)
	defer heartbeat(ctx, noDetails)()
	row, err := a.Store.Attempt(ctx, in.TaskID, in.Step.N)
	if err != nil {
		return Answer{}, a.fail(ctx, err)
	}
	if row.State != mediagate.AttemptIntent && row.State != mediagate.AttemptUnknown {
		return a.stepDone(ctx, in)
	}
	t, err := a.Store.TaskByID(ctx, in.TaskID)
	if err != nil {
		return Answer{}, a.fail(ctx, err)
	}
	var events []task.Event
	if row.State == mediagate.AttemptIntent {
		events = append(events, senderLost(row))
	}
	found, err := a.search(ctx, t, row)
	if err != nil {
		return Answer{}, a.fail(ctx, err)
	}
	return a.stepDone(ctx, in, append(events, found...)...)
}

// search finds what became of the attempt, in our bucket or at its vendor.
func (a *Activities) search(ctx context.Context, t mediagate.Task, row mediagate.Attempt) ([]task.Event, error) {
	if row.Channel == "" {
		return a.searchLost(ctx, t, row)
	}
	found, err := a.searchBucket(ctx, t, row)
	if err != nil || len(found) > 0 {
		return found, err
	}
	return a.askFor(ctx, t, row)
}

// askFor asks the vendor for the job, by our own id. Where it cannot be asked so, there
// is no event.
func (a *Activities) askFor(ctx context.Context, t mediagate.Task, row mediagate.Attempt) ([]task.Event, error) {
	if !row.Route.Find {
		return nil, nil
	}
	channel, err := a.accounts().Asker(ctx, row)
	if err != nil {
		return nil, err
	}
	finder, ok := channel.Vendor.(providers.Finder)
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	asked := a.Now()
	var report mediagate.Report
	switch {
	case t.Modal.Resumes(row.N):
		report, err = a.findModal(ctx, t, channel)
	case ok:
		report, err = a.findByOurID(ctx, finder, t, row)
	default:
		return nil, nil
	}
	switch {
	case err == nil:
		return []task.Event{task.Accepted{
			N: row.N, Submission: mediagate.Submission{Ref: report.Ref}, FirstPollAt: a.Now().Add(channel.FirstPoll()),
		}}, nil
	case mediagate.Is(err, mediagate.KindNotFound):
		return []task.Event{task.NotFound{N: row.N, SendBefore: row.SendBefore, AskedAt: asked}}, nil
	default:
		return nil, err
	}
}

func (a *Activities) findByOurID(ctx context.Context, finder providers.Finder, t mediagate.Task, row mediagate.Attempt) (mediagate.Report, error) {
	job, _, err := a.job(ctx, t, row)
	if err != nil {
		return mediagate.Report{}, err
	}
	ref, err := finder.Ref(job)
	if err != nil {
		return mediagate.Report{}, err
	}
	return finder.Find(ctx, ref)
}

// PollJob asks for attempt N once, at the task's deadline (D10). Returns
// KindTransient, KindThrottled while the vendor is out of reach, the kinds of
// mediagate.TroubleOf when it does not let us see the job, KindNotFound with code
// vendor_job_lost when it does not know it, and KindUnreached with code
// channel_missing on a worker that lacks the channel or its account: the task
// may not fail for those (D11).
func (a *Activities) PollJob(ctx context.Context, in StepArgs) (Answer, error) {
	defer a.stopped(ctx, in.TaskID)
	defer heartbeat(ctx, noDetails)()
	row, err := a.Store.Attempt(ctx, in.TaskID, in.Step.N)
	if err != nil {
		return Answer{}, a.fail(ctx, err)
	}
	if row.State != mediagate.AttemptAccepted || row.Outcome != nil || row.Trouble != "" {
		return a.stepDone(ctx, in)
	}
	channel, err := a.accounts().Asker(ctx, row)
	if err != nil {
		return Answer{}, a.fail(ctx, err)
	}
	polling, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	report, err := channel.Vendor.Poll(polling, row.Ref)
	switch {
	case mediagate.Is(err, mediagate.KindNotFound):
		return Answer{}, a.fail(ctx, &mediagate.Error{
			Kind: mediagate.KindNotFound, Code: string(mediagate.ParkJobLost), Message: "the provider does not know the job", Err: err,
		})
	case err != nil:
		return Answer{}, a.fail(ctx, err)
	case report.Outcome != nil:
		failpoint.Hit(failpoint.PollTerminal)
		return a.stepDone(ctx, in, task.VendorEnded{N: row.N, Outcome: *report.Outcome})
	case report.State == mediagate.JobWaiting: // which counts from who has the claim (D8)
		claim := a.NewID("claim_")
		return a.stepDone(ctx, in, task.Claimed{N: row.N, Claim: claim}, task.VendorWaits{N: row.N, Claim: claim, NextAt: a.Now()})
	default:
		return a.stepDone(ctx, in)
	}
}
