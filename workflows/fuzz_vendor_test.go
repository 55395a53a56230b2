package workflows_test

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/activities/activitytest"
)

// job is one that the vendor has.
type job struct {
	id, external string
	n            int // of its making
	made, ends   time.Time
	end          string
	stopped      bool
	asks         bool          // for modal parameters
	takes        time.Duration // once it has them
}

func (j *job) outcome(at time.Time) *mediagate.Outcome {
	var o mediagate.Outcome
	switch {
	case j.stopped:
		o = activitytest.Failed(mediagate.CodeGenerationFailed)
	case j.asks || j.end == "never" || at.Before(j.ends):
		return nil
	case j.end == "failure":
		o = activitytest.Failed(mediagate.CodeContentPolicy)
	default:
		o = activitytest.Success()
	}
	return &o
}

// makeJob is what the vendor does with a request that reached it.
func (p *play) makeJob(external string) (*job, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.Vendor == vendorFindable {
		for _, j := range p.jobs {
			if j.external == external {
				return nil, mediagate.Errorf(mediagate.KindAmbiguous, "the external id is taken")
			}
		}
	}
	n := len(p.jobs)
	how := plan{Takes: 30 * time.Second, End: "success"}
	if n < len(p.Jobs) {
		how = p.Jobs[n]
	}
	j := &job{id: fmt.Sprintf("job-%d", n+1), external: external, n: n + 1, made: p.env.Now(), ends: p.env.Now().Add(how.Takes), end: how.End}
	j.asks, j.takes = how.Asks, how.Takes
	p.jobs = append(p.jobs, j)
	return j, nil
}

// take is what the vendor does with a request of either kind.
func (p *play) take(request mediagate.Job) (*job, error) {
	if request.Operation != mediagate.OperationModal {
		return p.makeJob(request.ExternalID)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, j := range p.jobs {
		if j.id == request.Source.Ref.JobID && j.asks && !j.stopped {
			j.asks, j.ends = false, p.env.Now().Add(j.takes)
			return j, nil
		}
	}
	return nil, mediagate.Errorf(mediagate.KindInvalid, "no job waits for this")
}

var (
	errNoAnswer = mediagate.Errorf(mediagate.KindAmbiguous, "the answer was lost")
	errTooLate  = mediagate.Errorf(mediagate.KindUnreached, "too late to send")
)

// submit takes a request as the scenario has it.
func (p *play) submit(ctx context.Context, request mediagate.Job) (mediagate.Submission, error) {
	p.mu.Lock()
	p.calls["submit"]++
	n := p.calls["submit"]
	p.mu.Unlock()
	how := answer{What: "accept"}
	if n <= len(p.Submits) {
		how = p.Submits[n-1]
	}
	if !time.Now().Before(request.SendBefore) { // by this process's clock, the bubble's
		p.note("vendor: submit %s would be too late", request.ExternalID)
		return mediagate.Submission{}, errTooLate // as the gate of vendorhttp has it
	}
	s := p.sent(request)
	p.note("vendor: submit %s: %s after %v", request.ExternalID, how.What, how.Delay)
	submission, err := p.answer(ctx, request, how)
	p.answered(s, err)
	p.note("vendor: submit %s answered: %v", request.ExternalID, err)
	return submission, err
}

func (p *play) answer(ctx context.Context, request mediagate.Job, how answer) (mediagate.Submission, error) {
	p.sleep(ctx, how.Delay)
	if ctx.Err() != nil {
		return mediagate.Submission{}, errNoAnswer
	}
	if kind, ok := refusals[how.What]; ok {
		return mediagate.Submission{}, mediagate.Errorf(kind, "%s", how.What)
	}
	switch how.What {
	case "lost before":
		return mediagate.Submission{}, errNoAnswer
	case "late": // the request lies in a network until the call is given up
		p.env.RegisterDelayedCallback(func() {
			_, err := p.take(request)
			p.note("vendor: a late request %s arrives: %v", request.ExternalID, err)
		}, 20*time.Second)
		return mediagate.Submission{}, errNoAnswer
	case "hang":
		p.sleep(ctx, 10*time.Minute)
		return mediagate.Submission{}, errNoAnswer
	case "die":
		panic("the process died")
	}
	made, err := p.take(request)
	if err != nil {
		return mediagate.Submission{}, err
	}
	switch how.What {
	case "lost":
		return mediagate.Submission{}, errNoAnswer
	case "die with job":
		panic("the process died")
	case "hang with job":
		p.sleep(ctx, 10*time.Minute)
		return mediagate.Submission{}, errNoAnswer
	}
	submission := mediagate.Submission{Ref: mediagate.JobRef{JobID: made.id, ExternalID: made.external}}
	if p.Vendor == vendorSync {
		success := activitytest.Success()
		made.end, made.ends = "success", made.made
		submission.Outcome = &success
	}
	return submission, nil
}

// vex is what is wrong with the vendor's answers to questions.
func (p *play) vex() error {
	switch what := during(p.Vexed, p.elapsed()).What; what {
	case "transient":
		return mediagate.Errorf(mediagate.KindTransient, "out of reach")
	case "throttled":
		return &mediagate.Error{Kind: mediagate.KindThrottled, Message: "slower", RetryAfter: 20 * time.Second}
	case "vendor":
		return mediagate.Errorf(mediagate.KindVendor, "nonsense")
	case "panic":
		panic("the process died")
	case "not found":
		return mediagate.Errorf(mediagate.KindNotFound, "no such job")
	case "":
		return nil
	default:
		return mediagate.Errorf(refusals[what], "%s", what)
	}
}

func (p *play) poll(_ context.Context, ref mediagate.JobRef) (report mediagate.Report, err error) {
	defer func() { p.polled(err) }()
	if err := p.vex(); err != nil {
		return mediagate.Report{}, err
	}
	report, err = p.report(func(j *job) bool { return j.id == ref.JobID })
	if t, _ := p.Store.Peek(taskID); report.State == mediagate.JobWaiting && t.Modal.State == mediagate.ModalSubmitted {
		rows := p.Store.Attempts(taskID)
		p.lookedUp(rows[len(rows)-1].ExternalID, mediagate.Errorf(mediagate.KindNotFound, "it waits still"))
	}
	return report, err
}

func (p *play) find(_ context.Context, ref mediagate.JobRef) (report mediagate.Report, err error) {
	defer func() { p.lookedUp(ref.ExternalID, err) }()
	err = p.vex()
	if err != nil && !mediagate.Is(err, mediagate.KindNotFound) {
		return mediagate.Report{}, err // a vendor that denies a job that it has would break its word
	}
	return p.report(func(j *job) bool {
		return j.external == ref.ExternalID && !p.env.Now().Before(j.made.Add(p.FindLag))
	})
}

func (p *play) report(is func(*job) bool) (mediagate.Report, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	at := p.env.Now()
	for _, j := range p.jobs {
		if !is(j) {
			continue
		}
		r := mediagate.Report{Ref: mediagate.JobRef{JobID: j.id, ExternalID: j.external}, State: mediagate.JobRunning, Percent: int(at.Unix()*7) % 100}
		if j.asks && !j.stopped {
			r.State, r.Percent = mediagate.JobWaiting, -1
		}
		if o := j.outcome(at); o != nil {
			r.Outcome, r.State = o, mediagate.JobFailed
			if o.Succeeded {
				r.State = mediagate.JobSucceeded
			}
		}
		return r, nil
	}
	return mediagate.Report{}, mediagate.Errorf(mediagate.KindNotFound, "no such job")
}

func (p *play) cancel(_ context.Context, ref mediagate.JobRef) error {
	p.note("vendor: cancel %s", ref.JobID)
	if during(p.Vexed, p.elapsed()).What != "" {
		return errAway
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, j := range p.jobs {
		if j.id == ref.JobID && j.outcome(p.env.Now()) == nil {
			j.stopped = true
		}
	}
	return nil
}

// fetch opens the vendor's file.
func (p *play) fetch(ctx context.Context, url, _ string) (io.ReadCloser, int64, error) {
	switch what := during(p.Fetches, p.elapsed()).What; what {
	case "gone":
		return nil, 0, mediagate.Errorf(mediagate.KindGone, "expired")
	case "transient":
		return nil, 0, errAway
	case "invalid":
		return nil, 0, mediagate.Errorf(mediagate.KindInvalid, "the address is refused")
	case "slow":
		p.sleep(ctx, 20*time.Second)
	}
	return io.NopCloser(strings.NewReader(url)), int64(len(url)), nil
}
