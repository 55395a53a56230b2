package activities

import (
	"context"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/channel"
	"github.com/mediagate/mediagate/failpoint"
)

// NoteModal reads the story once the run knows of the wait for modal parameters
// (D15).
func (a *Activities) NoteModal(ctx context.Context, in AttemptArgs) (mediagate.Story, error) {
	return a.story(ctx, in.TaskID)
}

// ExpireModal ends the wait when its time is up and the client has said
// nothing. The story tells which of the two came first.
func (a *Activities) ExpireModal(ctx context.Context, in TaskArgs) (mediagate.Story, error) {
	if err := a.Store.ExpireModal(ctx, in.TaskID); err != nil {
		return mediagate.Story{}, a.fail(ctx, err)
	}
	failpoint.Hit(failpoint.ModalExpired)
	return a.story(ctx, in.TaskID)
}

// expireFor ends the wait for a run whose code knows of none, and whose deadline,
// which lies behind the wait, has passed: it would ask for the task's end again
// and again. spoken says that the client came first.
func (a *Activities) expireFor(ctx context.Context, end *SettleArgs) (spoken bool, err error) {
	if err := a.Store.ExpireModal(ctx, end.TaskID); err != nil {
		return false, err
	}
	task, err := a.Store.TaskByID(ctx, end.TaskID)
	if err != nil {
		return false, err
	}
	if task.Modal.State == mediagate.ModalExpired {
		end.Failure = mediagate.NoModal()
	}
	return task.Modal.State == mediagate.ModalSubmitted, nil
}

// resuming is following for an attempt that takes modal parameters to the
// vendor: only the account can take them whose job waits, through whichever of
// our channels has it.
func (a *Activities) resuming(ctx context.Context, task mediagate.Task, before mediagate.Attempt) (externalID string, candidates []channel.Candidate, err error) {
	waiting := before
	if before.N != task.Modal.N {
		if waiting, err = a.Store.Attempt(ctx, task.ID, task.Modal.N); err != nil {
			return "", nil, err
		}
	}
	c, err := a.accounts().Of(ctx, waiting)
	if err != nil {
		return "", nil, err
	}
	externalID = numbered(task.ID, before.N+1)
	if before.State == mediagate.AttemptRejected && sentBefore(before) {
		externalID = before.ExternalID
	}
	route := waiting.Route
	route.Operation, route.Sync = mediagate.OperationModal, false
	return externalID, []channel.Candidate{{Channel: c, Route: route}}, nil
}

// provenFor has a channel asked whose key is new for the job that waits, where
// attempt n takes parameters to it: nobody has polled for that job since, and
// only what shows it has the account (D11).
func (a *Activities) provenFor(ctx context.Context, task mediagate.Task, n int) error {
	if !task.Modal.Resumes(n) {
		return nil
	}
	waiting, err := a.Store.Attempt(ctx, task.ID, task.Modal.N)
	if err != nil {
		return err
	}
	_, err = a.accounts().Proven(ctx, waiting)
	return err
}

// waitingJob is what the job of such an attempt works on: the one at the vendor
// that waits.
func (a *Activities) waitingJob(ctx context.Context, task mediagate.Task) (*mediagate.Source, error) {
	waiting, err := a.Store.Attempt(ctx, task.ID, task.Modal.N)
	if err != nil {
		return nil, err
	}
	return &mediagate.Source{
		TaskID: task.ID, Provider: waiting.Provider, Channel: waiting.Channel, Fingerprint: waiting.Fingerprint, Ref: waiting.Ref, Own: true,
	}, nil
}

// findModal asks what became of modal parameters whose call was lost. Their job
// is known by the vendor's id, whatever the vendor says of ours: if it waits for
// parameters still, they have not arrived; if it does anything else, they have.
// KindNotFound is the former. A job that the vendor does not know at all tells
// nothing: it is looked for again.
func (a *Activities) findModal(ctx context.Context, task mediagate.Task, c channel.Channel) (mediagate.Report, error) {
	waiting, err := a.Store.Attempt(ctx, task.ID, task.Modal.N)
	if err != nil {
		return mediagate.Report{}, err
	}
	report, err := c.Vendor.Poll(ctx, waiting.Ref)
	switch {
	case mediagate.Is(err, mediagate.KindNotFound):
		return mediagate.Report{}, &mediagate.Error{Kind: mediagate.KindTransient, Message: "the provider does not know the job that waits", Err: err}
	case err != nil:
		return mediagate.Report{}, err
	}
	switch report.State {
	case mediagate.JobWaiting:
		return mediagate.Report{}, mediagate.Errorf(mediagate.KindNotFound, "the job waits for parameters still")
	case mediagate.JobUnknown:
		return mediagate.Report{}, mediagate.Errorf(mediagate.KindTransient, "the job is %q, which may mean that it waits still", report.Word)
	case mediagate.JobQueued, mediagate.JobRunning, mediagate.JobSucceeded, mediagate.JobFailed:
	}
	report.Ref = waiting.Ref
	return report, nil
}
