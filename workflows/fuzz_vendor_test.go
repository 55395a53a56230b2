package workflows_test

import (
	"context"
	"fmt"
	"io"
	"maps"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/activities/activitytest"
)

// job is a job that the vendor has.
type job struct {
	plan
	ref        mediagate.JobRef
	made, ends time.Time
	stopped    bool
}

func (j *job) report(at time.Time) mediagate.Report {
	r := mediagate.Report{Ref: j.ref, State: mediagate.JobRunning, Percent: int(at.Unix()*7) % 100}
	end := func(state mediagate.JobState, o mediagate.Outcome) { r.State, r.Outcome = state, &o }
	switch {
	case j.stopped:
		end(mediagate.JobFailed, activitytest.Failed(mediagate.CodeGenerationFailed))
	case j.Asks:
		r.State, r.Percent = mediagate.JobWaiting, -1
	case j.End == "never" || at.Before(j.ends):
	case j.End == "failure":
		end(mediagate.JobFailed, activitytest.Failed(mediagate.CodeContentPolicy))
	default:
		end(mediagate.JobSucceeded, activitytest.Success())
	}
	return r
}

// job finds a job, or returns nil if there is none.
func (p *play) job(is func(*job) bool) *job {
	if at := slices.IndexFunc(p.jobs, is); at >= 0 {
		return p.jobs[at]
	}
	return nil
}

// make makes a job of a request that the vendor accepts.
func (p *play) make(request mediagate.Job) (*job, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if request.Operation == mediagate.OperationModal {
		j := p.job(func(j *job) bool { return j.ref == request.Source.Ref && j.Asks && !j.stopped })
		if j == nil {
			return nil, mediagate.Errorf(mediagate.KindInvalid, "no job waits for this")
		}
		j.Asks, j.ends = false, p.env.Now().Add(j.Takes)
		return j, nil
	}
	if p.Vendor == vendorFindable && p.job(func(j *job) bool { return j.ref.ExternalID == request.ExternalID }) != nil {
		return nil, mediagate.Errorf(mediagate.KindAmbiguous, "the external id is taken")
	}
	j := &job{plan: plan{Takes: 30 * time.Second, End: "success"}, made: p.env.Now()}
	if n := len(p.jobs); n < len(p.Jobs) {
		j.plan = p.Jobs[n]
	}
	if p.Vendor == vendorSync {
		j.plan = plan{End: "success"}
	}
	j.ref, j.ends = mediagate.JobRef{
		JobID: fmt.Sprint("job-", len(p.jobs)+1), ExternalID: request.ExternalID,
	}, j.made.Add(j.Takes)
	p.jobs = append(p.jobs, j)
	return j, nil
}

// submit reacts to a request as the scenario says.
func (p *play) submit(ctx context.Context, request mediagate.Job) (mediagate.Submission, error) {
	how := answer{What: "accept"}
	if n := p.nth("submit"); n <= len(p.Submits) {
		how = p.Submits[n-1]
	}
	if !time.Now().Before(request.SendBefore) { // by the clock of this process, which is the bubble's
		return mediagate.Submission{}, mediagate.Errorf(mediagate.KindUnreached, "too late to send")
	}
	s := p.sent(request)
	p.note("vendor: submit %s: %+v", request.ExternalID, how)
	submission, err := p.answer(ctx, request, how)
	p.mu.Lock()
	defer p.mu.Unlock()
	s.open, s.accepted = mediagate.Is(err, mediagate.KindAmbiguous), err == nil
	return submission, err
}

var errNoAnswer = mediagate.Errorf(mediagate.KindAmbiguous, "the answer was lost")

func (p *play) answer(
	ctx context.Context, request mediagate.Job, how answer,
) (submission mediagate.Submission, err error) {
	p.sleep(ctx, how.Delay)
	if kind, ok := refusals[how.What]; ok && ctx.Err() == nil {
		return submission, mediagate.Errorf(kind, "%s", how.What)
	}
	var made *job
	if (how.Made || how.What == "accept") && ctx.Err() == nil {
		if made, err = p.make(request); err != nil {
			return submission, err
		}
	}
	switch {
	case ctx.Err() != nil || how.What == "lost":
		return submission, errNoAnswer
	case how.What == "late": // the request is stuck in a network until the call is abandoned
		if made == nil {
			p.env.RegisterDelayedCallback(func() {
				_, err := p.make(request)
				p.note("vendor: a late request %s arrives: %v", request.ExternalID, err)
			}, 20*time.Second)
		}
		return submission, errNoAnswer
	case how.What == "hang":
		p.sleep(ctx, 10*time.Minute)
		return submission, errNoAnswer
	case how.What == "die":
		runtime.Goexit() // the sending ends here, see submitJob
	}
	submission.Ref = made.ref
	if p.Vendor == vendorSync {
		submission.Outcome = made.report(p.env.Now()).Outcome
	}
	return submission, nil
}

// asked returns the vendor's answer to a question about a job.
func (p *play) asked(is func(*job) bool, lookup bool) (mediagate.Report, error) {
	kinds := map[string]mediagate.Kind{"transient": mediagate.KindTransient, "vendor": mediagate.KindVendor}
	maps.Copy(kinds, refusals)
	switch what := during(p.Vexed, p.elapsed()); {
	case what == "panic":
		panic(processDied)
	case what == "not found" && !lookup: // a vendor that denies a job that it has would break its promise
		return mediagate.Report{}, mediagate.Errorf(mediagate.KindNotFound, "no such job")
	case what != "" && what != "not found":
		return mediagate.Report{}, mediagate.Errorf(kinds[what], "%s", what)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if j := p.job(is); j != nil {
		return j.report(p.env.Now()), nil
	}
	return mediagate.Report{}, mediagate.Errorf(mediagate.KindNotFound, "no such job")
}

func (p *play) poll(_ context.Context, ref mediagate.JobRef) (report mediagate.Report, err error) {
	defer func() { p.note("vendor: poll of %s: %s, %v", ref.JobID, report.State, err) }()
	return p.asked(func(j *job) bool { return j.ref.JobID == ref.JobID }, false)
}

func (p *play) find(_ context.Context, ref mediagate.JobRef) (report mediagate.Report, err error) {
	defer func() { p.note("vendor: lookup of %s: %s, %v", ref.ExternalID, report.State, err) }()
	seen := p.env.Now().Add(-p.FindLag)
	return p.asked(func(j *job) bool { return j.ref.ExternalID == ref.ExternalID && !seen.Before(j.made) }, true)
}

func (p *play) cancel(_ context.Context, ref mediagate.JobRef) error {
	p.note("vendor: cancel %s", ref.JobID)
	_, err := p.asked(func(j *job) bool {
		is := j.ref.JobID == ref.JobID
		j.stopped = j.stopped || is && j.report(p.env.Now()).Outcome == nil
		return is
	}, true)
	return err
}

// fetch opens the vendor's file.
func (p *play) fetch(ctx context.Context, url, _ string) (io.ReadCloser, int64, error) {
	switch during(p.Copies, p.elapsed()) {
	case "gone":
		return nil, 0, mediagate.Errorf(mediagate.KindGone, "expired")
	case "transient":
		return nil, 0, mediagate.Errorf(mediagate.KindTransient, "out of reach")
	case "slow":
		p.sleep(ctx, 20*time.Second)
	}
	return io.NopCloser(strings.NewReader(url)), int64(len(url)), nil
}

// store stores a file in the bucket.
func (p *play) store(string) error {
	switch what := during(p.Copies, p.elapsed()); what {
	case "away":
		return &mediagate.Error{
			Kind: mediagate.KindUnavailable, Code: string(mediagate.ParkStorage), Message: "the bucket is away",
		}
	case "invalid", "too large", "internal":
		kinds := map[string]mediagate.Kind{
			"invalid": mediagate.KindInvalid, "too large": mediagate.KindTooLarge, "internal": mediagate.KindInternal,
		}
		return mediagate.Errorf(kinds[what], "%s", what)
	}
	return nil
}
