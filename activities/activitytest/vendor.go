package activitytest

import (
	"context"
	"slices"
	"sync"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/providers"
)

// Vendor keeps the jobs that it was given, by our own ids. Its functions decide what it answers;
// they are set before the first use. By default it accepts all jobs, and each runs until End.
type Vendor struct {
	OnSubmit func(ctx context.Context, job mediagate.Job) (mediagate.Submission, error)
	OnPoll   func(ctx context.Context, ref mediagate.JobRef) (mediagate.Report, error)
	OnFind   func(ctx context.Context, ref mediagate.JobRef) (mediagate.Report, error)
	OnCancel func(ctx context.Context, ref mediagate.JobRef) error

	mu        sync.Mutex
	jobs      map[string]*mediagate.Outcome // by external id; nil while the job runs
	submits   noted[mediagate.Job]
	polls     noted[mediagate.JobRef]
	finds     noted[mediagate.JobRef]
	cancelled noted[mediagate.JobRef]
}

// noted is a list of the calls to a double.
type noted[T any] struct {
	mu   sync.Mutex
	list []T
}

// add adds a call, and returns how many there are then.
func (n *noted[T]) add(v T) int {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.list = append(n.list, v)
	return len(n.list)
}

func (n *noted[T]) all() []T {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.list)
}

// Accept is the vendor's default answer: it makes the job.
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
	if !ok {
		return mediagate.Report{}, mediagate.Errorf(mediagate.KindNotFound, "no such job")
	}
	report := mediagate.Report{Ref: refOf(ref.ExternalID), Named: true, State: mediagate.JobFailed, Outcome: outcome}
	switch {
	case outcome == nil:
		report.State, report.Word, report.Percent = mediagate.JobRunning, "processing", -1
	case outcome.Succeeded:
		report.State = mediagate.JobSucceeded
	}
	return report, nil
}

// Submit accepts a job.
func (v *Vendor) Submit(ctx context.Context, job mediagate.Job) (mediagate.Submission, error) {
	v.submits.add(job)
	if v.OnSubmit != nil {
		return v.OnSubmit(ctx, job)
	}
	return v.Accept(job)
}

// Poll returns the state of a job.
func (v *Vendor) Poll(ctx context.Context, ref mediagate.JobRef) (mediagate.Report, error) {
	v.polls.add(ref)
	if v.OnPoll != nil {
		return v.OnPoll(ctx, ref)
	}
	return v.report(ref)
}

// Submits returns the calls that tried to make a job.
func (v *Vendor) Submits() []mediagate.Job { return v.submits.all() }

// Polls returns the jobs that were polled for.
func (v *Vendor) Polls() []mediagate.JobRef { return v.polls.all() }

// Finds returns the lookups by our own id.
func (v *Vendor) Finds() []mediagate.JobRef { return v.finds.all() }

// Cancelled returns the jobs that the vendor was asked to stop.
func (v *Vendor) Cancelled() []mediagate.JobRef { return v.cancelled.all() }

// Finding returns the vendor as one that can be asked by our own ids, and can stop jobs.
func (v *Vendor) Finding() providers.Provider { return finding{v} }

type finding struct{ *Vendor }

// Ref returns what a submit would remember of the job.
func (f finding) Ref(job mediagate.Job) (mediagate.JobRef, error) {
	return mediagate.JobRef{ExternalID: job.ExternalID}, nil
}

// Find looks a job up.
func (f finding) Find(ctx context.Context, ref mediagate.JobRef) (mediagate.Report, error) {
	f.finds.add(ref)
	if f.OnFind != nil {
		return f.OnFind(ctx, ref)
	}
	return f.report(ref)
}

// Cancel stops a job.
func (f finding) Cancel(ctx context.Context, ref mediagate.JobRef) error {
	f.cancelled.add(ref)
	if f.OnCancel != nil {
		return f.OnCancel(ctx, ref)
	}
	return nil
}
