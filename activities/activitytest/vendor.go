package activitytest

import (
	"context"
	"slices"
	"sync"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/providers"
)

// Vendor keeps the jobs that it was given, by our own ids, and answers as its
// functions say, which are set before it is used. By itself it accepts all
// jobs, and they run until they are ended.
type Vendor struct {
	OnSubmit func(ctx context.Context, job mediagate.Job) (mediagate.Submission, error)
	OnPoll   func(ctx context.Context, ref mediagate.JobRef) (mediagate.Report, error)
	OnFind   func(ctx context.Context, ref mediagate.JobRef) (mediagate.Report, error)
	OnCancel func(ctx context.Context, ref mediagate.JobRef) error

	mu        sync.Mutex
	jobs      map[string]*mediagate.Outcome // by external id; nil while it runs
	submits   []mediagate.Job
	polls     []mediagate.JobRef
	finds     []mediagate.JobRef
	cancelled []mediagate.JobRef
}

// Accept is what the vendor does by itself: it makes the job.
func (v *Vendor) Accept(job mediagate.Job) (mediagate.Submission, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if _, ok := v.jobs[job.ExternalID]; ok {
		return mediagate.Submission{}, mediagate.Errorf(mediagate.KindAmbiguous, "the external id is taken")
	}
	if v.jobs == nil {
		v.jobs = make(map[string]*mediagate.Outcome)
	}
	v.jobs[job.ExternalID] = nil
	return mediagate.Submission{Ref: refOf(job.ExternalID)}, nil
}

func refOf(externalID string) mediagate.JobRef {
	return mediagate.JobRef{JobID: "job-" + externalID, ExternalID: externalID}
}

// End makes the vendor answer polls for the job with its end.
func (v *Vendor) End(externalID string, o mediagate.Outcome) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.jobs == nil {
		v.jobs = make(map[string]*mediagate.Outcome)
	}
	v.jobs[externalID] = &o
}

func (v *Vendor) report(ref mediagate.JobRef) (mediagate.Report, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	outcome, ok := v.jobs[ref.ExternalID]
	switch {
	case !ok:
		return mediagate.Report{}, mediagate.Errorf(mediagate.KindNotFound, "no such job")
	case outcome == nil:
		return mediagate.Report{Ref: refOf(ref.ExternalID), Named: true, State: mediagate.JobRunning, Word: "processing", Percent: -1}, nil
	case outcome.Succeeded:
		return mediagate.Report{Ref: refOf(ref.ExternalID), Named: true, State: mediagate.JobSucceeded, Outcome: outcome}, nil
	default:
		return mediagate.Report{Ref: refOf(ref.ExternalID), Named: true, State: mediagate.JobFailed, Outcome: outcome}, nil
	}
}

// Submit takes a job.
func (v *Vendor) Submit(ctx context.Context, job mediagate.Job) (mediagate.Submission, error) {
	v.mu.Lock()
	v.submits = append(v.submits, job)
	v.mu.Unlock()
	if v.OnSubmit != nil {
		return v.OnSubmit(ctx, job)
	}
	return v.Accept(job)
}

// Poll tells how a job is.
func (v *Vendor) Poll(ctx context.Context, ref mediagate.JobRef) (mediagate.Report, error) {
	v.mu.Lock()
	v.polls = append(v.polls, ref)
	v.mu.Unlock()
	if v.OnPoll != nil {
		return v.OnPoll(ctx, ref)
	}
	return v.report(ref)
}

// Submits are the calls that tried to make a job.
func (v *Vendor) Submits() []mediagate.Job {
	v.mu.Lock()
	defer v.mu.Unlock()
	return slices.Clone(v.submits)
}

// Polls are the jobs that were asked for.
func (v *Vendor) Polls() []mediagate.JobRef {
	v.mu.Lock()
	defer v.mu.Unlock()
	return slices.Clone(v.polls)
}

// Finds are the lookups by our own id.
func (v *Vendor) Finds() []mediagate.JobRef {
	v.mu.Lock()
	defer v.mu.Unlock()
	return slices.Clone(v.finds)
}

// Cancelled are the jobs that were to be stopped.
func (v *Vendor) Cancelled() []mediagate.JobRef {
	v.mu.Lock()
	defer v.mu.Unlock()
	return slices.Clone(v.cancelled)
}

// Finding is the vendor as one that can be asked by our own ids, and can stop
// jobs.
func (v *Vendor) Finding() providers.Provider { return finding{v} }

type finding struct{ *Vendor }

// Ref is what a submit would remember of the job.
func (f finding) Ref(job mediagate.Job) (mediagate.JobRef, error) {
	return mediagate.JobRef{ExternalID: job.ExternalID}, nil
}

// Find looks a job up.
func (f finding) Find(ctx context.Context, ref mediagate.JobRef) (mediagate.Report, error) {
	f.mu.Lock()
	f.finds = append(f.finds, ref)
	f.mu.Unlock()
	if f.OnFind != nil {
		return f.OnFind(ctx, ref)
	}
	return f.report(ref)
}

// Cancel stops a job.
func (f finding) Cancel(ctx context.Context, ref mediagate.JobRef) error {
	f.mu.Lock()
	f.cancelled = append(f.cancelled, ref)
	f.mu.Unlock()
	if f.OnCancel != nil {
		return f.OnCancel(ctx, ref)
	}
	return nil
}
