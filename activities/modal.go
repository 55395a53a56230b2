package activities

import (
	"context"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/channel"
)

// confirmAccount checks the account before attempt n takes modal parameters to a job that waits: if
// the channel has a new key, its account must show the job first (D11). For any other attempt it
// checks nothing.
func (a *Activities) confirmAccount(ctx context.Context, t mediagate.Task, n int) error {
	if !t.Modal.Resumes(n) {
		return nil
	}
	waiting, err := a.Store.Attempt(ctx, t.ID, t.Modal.N)
	if err != nil {
		return err
	}
	_, err = a.accounts().ConfirmedOwner(ctx, waiting)
	return err
}

// waitingJob returns the source of an attempt that takes parameters to a job: the job at the vendor
// that waits for them. Own is set, since only the account that has the job gets the parameters.
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

// findModal finds out whether modal parameters have arrived at the vendor, after the answer of
// their call was lost. It polls for the job that waits, by the vendor's id. If the job still waits
// for parameters, they have not arrived, and findModal returns KindNotFound. If the job does
// anything else, they have. If the vendor does not know the job at all, that proves nothing, and
// the job is looked up again.
//
// The call itself makes no new job, so there is no second job to search for: the state of the old
// one is the proof.
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
		return mediagate.Report{}, mediagate.Errorf(mediagate.KindNotFound, "the job still waits for parameters")
	case mediagate.JobUnknown:
		return mediagate.Report{}, mediagate.Errorf(mediagate.KindTransient,
			"the job is %q, which may mean that it still waits", report.Word)
	// The job no longer waits, so the parameters have arrived.
	case mediagate.JobQueued, mediagate.JobRunning, mediagate.JobSucceeded, mediagate.JobFailed:
	}
	// The job keeps its id at the vendor, and the new attempt takes it over.
	report.Ref = waiting.Ref
	return report, nil
}
