package activities

import (
	"context"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/channel"
)

// provenFor asks the channel for the job that waits, if attempt n takes parameters to it
// and the channel's key is new. An account that shows the job gets the parameters (D11).
func (a *Activities) provenFor(ctx context.Context, t mediagate.Task, n int) error {
	if !t.Modal.Resumes(n) {
		return nil
	}
	waiting, err := a.Store.Attempt(ctx, t.ID, t.Modal.N)
	if err != nil {
		return err
	}
	_, err = a.accounts().Shown(ctx, waiting)
	return err
}

// waitingJob is what the job of such an attempt works on: the one at the vendor
// that waits.
func (a *Activities) waitingJob(ctx context.Context, t mediagate.Task) (*mediagate.Source, error) {
	waiting, err := a.Store.Attempt(ctx, t.ID, t.Modal.N)
	if err != nil {
		return nil, err
	}
	return &mediagate.Source{
		TaskID: t.ID, Provider: waiting.Provider, Channel: waiting.Channel, Fingerprint: waiting.Fingerprint,
		Ref: waiting.Ref, Own: true,
	}, nil
}

// findModal asks what became of modal parameters whose call was lost. Their job
// is known by the vendor's id, whatever the vendor says of ours: if it waits for
// parameters still, they have not arrived; if it does anything else, they have.
// KindNotFound is the former. A job that the vendor does not know at all tells
// nothing: it is looked for again.
func (a *Activities) findModal(ctx context.Context, t mediagate.Task, c channel.Asker) (mediagate.Report, error) {
	waiting, err := a.Store.Attempt(ctx, t.ID, t.Modal.N)
	if err != nil {
		return mediagate.Report{}, err
	}
	report, err := c.Poll(ctx, waiting.Ref)
	switch {
	case mediagate.Is(err, mediagate.KindNotFound):
		return mediagate.Report{}, &mediagate.Error{
			Kind: mediagate.KindTransient, Message: "the provider does not know the job that waits", Err: err,
		}
	case err != nil:
		return mediagate.Report{}, err
	}
	switch report.State {
	case mediagate.JobWaiting:
		return mediagate.Report{}, mediagate.Errorf(mediagate.KindNotFound, "the job waits for parameters still")
	case mediagate.JobUnknown:
		return mediagate.Report{}, mediagate.Errorf(mediagate.KindTransient,
			"the job is %q, which may mean that it waits still", report.Word)
	case mediagate.JobQueued, mediagate.JobRunning, mediagate.JobSucceeded, mediagate.JobFailed:
	}
	report.Ref = waiting.Ref
	return report, nil
}
