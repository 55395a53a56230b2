package kling

import (
	"cmp"
	"context"
	"net/url"
	"strings"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/providers"
	"github.com/mediagate/mediagate/providers/vendorhttp"
)

// newerTask is a job in an answer of the newer generation.
type newerTask struct {
	ID         vendorhttp.Text `json:"id"`
	Status     vendorhttp.Text `json:"status"`
	Message    vendorhttp.Text `json:"message"`
	ExternalID vendorhttp.Text `json:"external_id"`
	Outputs    []struct {
		Type vendorhttp.Text `json:"type"`
		video
	} `json:"outputs"`
	Billing []struct {
		Kind     vendorhttp.Text `json:"charge_type"`
		Amount   vendorhttp.Text `json:"amount"`
		Currency vendorhttp.Text `json:"currency"` // of a charge in cash
	} `json:"billing"`
}

// newerStates holds all status words of the newer generation.
var newerStates = map[string]mediagate.JobState{
	"submitted":  mediagate.JobQueued,
	"processing": mediagate.JobRunning,
	"succeeded":  mediagate.JobSucceeded,
	"failed":     mediagate.JobFailed,
}

// readSubmittedID returns the job's id from the answer to a submission.
func readSubmittedID(answer vendorhttp.Answer) string {
	var body struct {
		Data newerTask `json:"data"`
	}
	_ = answer.Decode(&body) // anything but a task has no id
	return body.Data.ID.ID()
}

// newerBatch is the most jobs that one call asks for. The vendor documents no limit, and this one
// keeps the URL short.
const newerBatch = 50

// batching is an adapter for new jobs of the newer generation, which answers for many jobs in one
// call.
type batching struct{ *Adapter }

// Batches reports whether PollAll takes the job. Poll asks for jobs of the older generation one by
// one.
func (b *batching) Batches(ref mediagate.JobRef) bool {
	return ref.JobID != "" && placeOf(ref.State).newer() && !strings.Contains(ref.JobID, ",")
}

// PollAll asks for the jobs in one call.
func (b *batching) PollAll(ctx context.Context, refs []mediagate.JobRef) ([]providers.Answer, error) {
	ids := make([]string, len(refs))
	for i, ref := range refs {
		ids[i] = ref.JobID
	}
	tasks, err := b.tasks(ctx, "task_ids", ids...)
	if err != nil {
		return nil, err
	}
	answers := make([]providers.Answer, len(refs))
	for i, ref := range refs {
		answers[i].Err = mediagate.Errorf(mediagate.KindNotFound, "the answer leaves the job out")
		for _, t := range tasks {
			if t.ID.ID() == ref.JobID {
				answers[i].Report, answers[i].Err = b.newerReport(ref, t)
			}
		}
	}
	return answers, nil
}

// queryNewer asks for one job, by the vendor's id or by ours.
func (a *Adapter) queryNewer(ctx context.Context, ref mediagate.JobRef, id string) (mediagate.Report, error) {
	key := "task_ids"
	if ref.JobID == "" {
		key = "external_task_ids"
	}
	tasks, err := a.tasks(ctx, key, id)
	switch {
	case err != nil:
		return mediagate.Report{}, err
	case len(tasks) == 0:
		return mediagate.Report{}, mediagate.Errorf(mediagate.KindNotFound, "the vendor knows no such job")
	case len(tasks) > 1:
		return mediagate.Report{}, vendorhttp.ProtocolError("the answer is about several jobs")
	}
	return a.newerReport(ref, tasks[0])
}

// tasks asks for jobs by ids of one kind, which key names.
func (a *Adapter) tasks(ctx context.Context, key string, ids ...string) ([]newerTask, error) {
	for i, id := range ids {
		ids[i] = url.QueryEscape(id)
	}
	answer, head, err := a.do(ctx, vendorhttp.Call{
		Effect: vendorhttp.Reads, Path: "/" + newerTasks + "?" + key + "=" + strings.Join(ids, ","),
	})
	if err != nil {
		return nil, err
	}
	if err := a.http.ErrorOf(vendorhttp.Reads, answer, readQuery(answer, head)); err != nil {
		return nil, err
	}
	var body struct {
		Data []newerTask `json:"data"`
	}
	// Only an empty list proves that there is no job. An answer without a list proves nothing.
	if err := answer.Decode(&body); err != nil || body.Data == nil {
		return nil, vendorhttp.ProtocolError("the answer has no list of jobs")
	}
	return body.Data, nil
}

// newerReport is report for the newer generation.
func (a *Adapter) newerReport(ref mediagate.JobRef, t newerTask) (mediagate.Report, error) {
	report, err := reportOf(ref, t.ID.ID(), string(t.ExternalID))
	if err != nil {
		return report, err
	}
	report.State, report.Word = a.http.State(newerStates, t.Status)
	switch report.State {
	case mediagate.JobSucceeded:
		var files task
		for _, out := range t.Outputs {
			if out.Type == "video" {
				files.Result.Videos = append(files.Result.Videos, out.video)
			}
		}
		report.Offer(successOutcome(files, placeOf(ref.State).wantsWatermark))
		report.Outcome.VendorCharge = t.totalCharge()
	case mediagate.JobFailed:
		report.Outcome = a.failed(string(t.Message))
		report.Outcome.VendorCharge = t.totalCharge()
	default: // still under way
	}
	return report, nil
}

// totalCharge returns the sum of the vendor's charges, or nil if they differ in kind or an amount
// is missing.
func (t newerTask) totalCharge() *mediagate.VendorCharge {
	var sum *mediagate.VendorCharge
	for i, b := range t.Billing {
		unit := cmp.Or(string(b.Currency), string(b.Kind))
		sum = sum.Plus(mediagate.ChargedBy(b.Amount.Decimal(), unit))
		if sum == nil || i > 0 && (b.Kind != t.Billing[0].Kind || b.Amount.Decimal() == "") {
			return nil
		}
	}
	return sum
}
