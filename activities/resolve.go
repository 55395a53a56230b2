package activities

import (
	"context"
	"time"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/failpoint"
	"github.com/mediagate/mediagate/providers"
)

// askTimeout bounds one question to a vendor about a job.
const askTimeout = 30 * time.Second

// Resolution is what a lookup of a lost submission found.
type Resolution struct {
	Story  mediagate.Story `json:"story"`
	AskAt  time.Time       `json:"ask_at,omitzero"`  // when the next lookup says something new
	Absent bool            `json:"absent,omitempty"` // proven: SubmitJob may send the same id again
}

// ResolveSubmission asks the vendor by our own id what became of attempt n.
// "Not found" counts only once nothing of the call can still be under way,
// and twice (D4). A repeated intent that was refused, and whose job is absent,
// is rejected. Returns KindTransient while the vendor is out of reach.
func (a *Activities) ResolveSubmission(ctx context.Context, in AttemptArgs) (Resolution, error) {
	defer heartbeat(ctx, noDetails)()
	row, err := a.Store.Attempt(ctx, in.TaskID, in.N)
	if err != nil {
		return Resolution{}, a.fail(ctx, err)
	}
	var res Resolution
	if row.State == mediagate.AttemptUnknown {
		if res, err = a.lookUp(ctx, row); err != nil {
			return res, a.fail(ctx, err)
		}
	}
	res.Story, err = a.story(ctx, in.TaskID)
	return res, err
}

func (a *Activities) lookUp(ctx context.Context, row mediagate.Attempt) (Resolution, error) {
	channel, err := a.accounts().Asker(ctx, row)
	if err != nil {
		return Resolution{}, err
	}
	finder, ok := channel.Vendor.(providers.Finder)
	task, err := a.Store.TaskByID(ctx, row.TaskID)
	if err != nil {
		return Resolution{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	asked := a.Now()
	var report mediagate.Report
	switch {
	case task.Modal.Resumes(row.N):
		report, err = a.findModal(ctx, task, channel)
	case ok:
		report, err = a.findByOurID(ctx, finder, task, row)
	default:
		return Resolution{}, nil
	}
	switch {
	case err == nil:
		return Resolution{}, a.accept(ctx, task, row, channel, mediagate.Submission{Ref: report.Ref})
	case !mediagate.Is(err, mediagate.KindNotFound):
		return Resolution{}, err
	}
	if settled := a.settled(row.SendBefore, row.Route); asked.Before(settled) {
		return Resolution{AskAt: settled}, nil
	}
	first, proven, err := a.Store.NoteAbsent(ctx, row.TaskID, row.N, row.SendBefore, asked, a.Settings.AbsentGap)
	if mediagate.Is(err, mediagate.KindConflict) {
		return Resolution{}, nil // its fate is known by now: the story tells
	}
	if err != nil {
		return Resolution{}, err
	}
	if proven && row.Refusal != nil {
		return Resolution{}, a.Store.RejectAttempt(ctx, row.TaskID, row.N, row.SendBefore, *row.Refusal, row.Error)
	}
	return Resolution{AskAt: first.Add(a.Settings.AbsentGap), Absent: proven}, nil
}

func (a *Activities) findByOurID(ctx context.Context, finder providers.Finder, task mediagate.Task, row mediagate.Attempt) (mediagate.Report, error) {
	job, _, err := a.job(ctx, task, row)
	if err != nil {
		return mediagate.Report{}, err
	}
	ref, err := finder.Ref(job)
	if err != nil {
		return mediagate.Report{}, err
	}
	return finder.Find(ctx, ref)
}

// settled is the moment from which a call whose first byte was to be written
// before sendBefore can no longer be under way: the route's own call decides.
func (a *Activities) settled(sendBefore time.Time, route mediagate.Route) time.Time {
	return sendBefore.Add(a.operation(route).Submit + a.Settings.ClockSkew)
}

// GiveUpAttempt ends an attempt whose fate is unknown, at an operator's word; a
// late success of it is only recorded.
func (a *Activities) GiveUpAttempt(ctx context.Context, in AttemptArgs) (mediagate.Story, error) {
	if err := a.Store.GiveUpAttempt(ctx, in.TaskID, in.N, "given up"); err != nil {
		return mediagate.Story{}, a.fail(ctx, err)
	}
	return a.story(ctx, in.TaskID)
}

// PollJob asks for attempt n once, at the task's deadline (D10). Returns
// KindTransient, KindThrottled while the vendor is out of reach, the kinds of
// mediagate.TroubleOf when it does not let us see the job, KindNotFound with code
// vendor_job_lost when it does not know it, and KindUnreached with code
// channel_missing on a worker that lacks the channel or its account: the task
// may not fail for those (D11).
func (a *Activities) PollJob(ctx context.Context, in AttemptArgs) (mediagate.Story, error) {
	defer heartbeat(ctx, noDetails)()
	row, err := a.Store.Attempt(ctx, in.TaskID, in.N)
	if err != nil {
		return mediagate.Story{}, a.fail(ctx, err)
	}
	if row.State == mediagate.AttemptAccepted && row.Outcome == nil && row.Trouble == "" {
		channel, err := a.accounts().Asker(ctx, row)
		if err != nil {
			return mediagate.Story{}, a.fail(ctx, err)
		}
		ctx, cancel := context.WithTimeout(ctx, askTimeout)
		defer cancel()
		report, err := channel.Vendor.Poll(ctx, row.Ref)
		switch {
		case err == nil:
		case mediagate.Is(err, mediagate.KindNotFound):
			return mediagate.Story{}, a.fail(ctx, &mediagate.Error{
				Kind: mediagate.KindNotFound, Code: string(mediagate.ParkJobLost), Message: "the provider does not know the job", Err: err,
			})
		default:
			return mediagate.Story{}, a.fail(ctx, err)
		}
		if report.State == mediagate.JobWaiting {
			if err := a.Store.BeginModal(ctx, in.TaskID, in.N); err != nil {
				return mediagate.Story{}, a.fail(ctx, err)
			}
		}
		if report.Outcome != nil {
			failpoint.Hit(failpoint.PollTerminal)
			if _, err := a.Store.RecordOutcome(ctx, in.TaskID, in.N, *report.Outcome); err != nil {
				return mediagate.Story{}, a.fail(ctx, err)
			}
		}
	}
	return a.story(ctx, in.TaskID)
}
