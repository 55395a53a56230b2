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

// newerTask is a job as the newer generation tells of it.
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
		Currency vendorhttp.Text `json:"currency"` // of cash
	} `json:"billing"`
}

// newerStates is the newer generation's whole vocabulary.
var newerStates = map[string]mediagate.JobState{
	"submitted":  mediagate.JobQueued,
	"processing": mediagate.JobRunning,
	"succeeded":  mediagate.JobSucceeded,
	"failed":     mediagate.JobFailed,
}

// readMade is the id in the answer to a submission.
func readMade(answer vendorhttp.Answer) string {
	var body struct {
		Data newerTask `json:"data"`
	}
	_ = answer.Decode(&body) // what is no task has no id
	return body.Data.ID.ID()
}

// newerBatch is how many jobs one question may name. The vendor states no
// bound; this keeps the address short.
const newerBatch = 50

// batching is an adapter whose new jobs are of the newer generation, which
// tells of many at once.
type batching struct{ *Adapter }

// Batches reports whether PollAll takes the job: those of the older generation
// are asked for one by one.
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
		return mediagate.Report{}, vendorhttp.Strange("the answer is about several jobs")
	}
	return a.newerReport(ref, tasks[0])
}

// tasks asks for jobs by ids of one kind.
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
	if err := a.http.ErrorOf(vendorhttp.Reads, answer, found(answer, head)); err != nil {
		return nil, err
	}
	var body struct {
		Data []newerTask `json:"data"`
	}
	// Only a list can be an empty one: anything else proves nothing.
	if err := answer.Decode(&body); err != nil || body.Data == nil {
		return nil, vendorhttp.Strange("the answer has no list of jobs")
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
		report.Offer(success(files, placeOf(ref.State).marked))
		report.Outcome.VendorCharge = t.charged()
	case mediagate.JobFailed:
		report.Outcome = a.failed(string(t.Message))
		report.Outcome.VendorCharge = t.charged()
	default: // still under way
	}
	return report, nil
}

// charged is what the vendor took: the sum of its charges, as far as they are
// of one kind.
func (t newerTask) charged() *mediagate.VendorCharge {
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
