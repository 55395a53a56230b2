package activities

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/channel"
	"github.com/mediagate/mediagate/internal/failpoint"
	"github.com/mediagate/mediagate/providers"
	"github.com/mediagate/mediagate/task"
)

// askTimeout bounds one question to a vendor about a job.
const askTimeout = 30 * time.Second

// LookUp finds out what became of attempt N, whose answer was lost: first by what its sender has
// left in our bucket, then by our own id at the vendor. A "not found" counts only once the call
// can no longer be under way, and it takes two of them to prove that there is no job (D4). LookUp
// returns KindTransient while the vendor is out of reach, and KindUnavailable while the bucket
// is.
//
// For example, a call had to begin before 12:00:10 and could last until 12:02:45. A lookup at 12:01
// comes too early to count. Lookups at 12:03:00 and 12:03:30 that both find nothing prove that
// there is no job, and the attempt is sent again under the same name.
func (a *Activities) LookUp(ctx context.Context, in StepArgs) (Answer, error) {
	defer a.stopped(ctx, in.TaskID)
	defer heartbeat(ctx, noDetails, nil)()
	row, err := a.Store.Attempt(ctx, in.TaskID, in.Step.N)
	if err != nil {
		return Answer{}, a.fail(ctx, err)
	}
	// The sender's report, or an earlier lookup, has come first.
	if row.State != mediagate.AttemptIntent && row.State != mediagate.AttemptUnknown {
		return a.stepDone(ctx, in)
	}
	t, err := a.Store.TaskByID(ctx, in.TaskID)
	if err != nil {
		return Answer{}, a.fail(ctx, err)
	}
	var events []task.Event
	if row.State == mediagate.AttemptIntent {
		events = append(events, senderLost(row))
	}
	found, err := a.search(ctx, t, row)
	if err != nil {
		return Answer{}, a.fail(ctx, err)
	}
	return a.stepDone(ctx, in, append(events, found...)...)
}

// search finds out what became of the attempt, in our bucket or at its vendor.
func (a *Activities) search(ctx context.Context, t mediagate.Task, row task.Attempt) ([]task.Event, error) {
	// Only the name of the attempt is known: the database has lost the rest.
	if row.Channel == "" {
		return a.searchLost(ctx, t, row)
	}
	found, err := a.searchBucket(ctx, t, row)
	if err != nil || len(found) > 0 {
		return found, err
	}
	return a.askVendor(ctx, t, row)
}

// askVendor asks the vendor for the job by our own id. It returns no event if the vendor cannot
// be asked by it.
func (a *Activities) askVendor(ctx context.Context, t mediagate.Task, row task.Attempt) ([]task.Event, error) {
	if !row.Route.Find {
		return nil, nil
	}
	c, err := a.accounts().Asker(row)
	if err != nil {
		return nil, err
	}
	finder, ok := c.Vendor.(providers.Finder)
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	// The time before the question, since the vendor may have searched at any time after it.
	asked := a.Now()
	var report mediagate.Report
	switch {
	case t.Modal.Resumes(row.N):
		report, err = a.findModal(ctx, t, c)
	case ok:
		report, err = a.findByOurID(ctx, c, finder, t, row)
	default:
		return nil, nil
	}
	switch {
	case err == nil:
		found := mediagate.Submission{Ref: report.Ref}
		return []task.Event{task.Accepted{
			Sending: row.Sending, Submission: found, FirstPollAt: a.Now().Add(c.FirstPoll()),
		}}, nil
	case mediagate.Is(err, mediagate.KindNotFound):
		return []task.Event{task.NotFound{N: row.N, SendBefore: row.SendBefore, AskedAt: asked}}, nil
	default:
		return nil, err
	}
}

// findByOurID asks the adapter for the job under the name of the attempt. The job is built again
// for that, since the reference may depend on its parameters.
func (a *Activities) findByOurID(
	ctx context.Context, c channel.Asker, finder providers.Finder, t mediagate.Task, row task.Attempt,
) (mediagate.Report, error) {
	job, _, err := a.job(ctx, t, row)
	if err != nil {
		return mediagate.Report{}, err
	}
	ref, err := finder.Ref(job)
	if err != nil {
		return mediagate.Report{}, err
	}
	return c.Find(ctx, finder, ref)
}

// The sender of a synchronous call stores files in the bucket as they arrive. After the last one
// it stores the outcome, which names the files, in the database. If it dies in between, the files
// are there, and no row names them. So each call that stores files leaves a manifest next to them
// before the database has the outcome: its submission, with the sizes and hashes of the files.
// The next sender, or a lookup, reads the manifest, and uses it if the files are complete.

// The manifest stays until one day after the end of its task; then retention removes it like all
// objects that no row names. If the database loses the outcome and the end, a lookup finds the
// outcome in the manifest again (D17).

// manifest describes what a synchronous submission has made. It holds none of the vendor's words,
// since it outlives the inputs of a task whose account has them erased.
type manifest struct {
	mediagate.Submission
	// CallEnds is set while the submission goes on. The sender may store more files until then,
	// so the manifest counts only from then on.
	CallEnds time.Time `json:"call_ends,omitzero"`
}

const (
	manifestTimeout = 10 * time.Second
	// searchTimeout bounds the search in our bucket for what a lost sender has left. A lookup may
	// ask the vendor after that (askTimeout), and has one minute for both.
	searchTimeout = 25 * time.Second
)

// manifestKey returns the object key of an attempt's manifest, which is next to the files that it
// names.
func manifestKey(row task.Attempt) string {
	return attemptFolder(row.TaskID, row.N) + "outcome.json"
}

// anyStored reports whether some of the files are in the bucket already.
func anyStored(files []mediagate.Media) bool {
	return slices.ContainsFunc(files, func(m mediagate.Media) bool { return m.Stored != nil })
}

// storeManifest stores a manifest of what a call has stored so far. If it fails, nothing changes
// as long as this process lives; only a crash would then lose the result.
func (a *Activities) storeManifest(ctx context.Context, row task.Attempt, m manifest) {
	if m.Outcome == nil || !anyStored(m.Outcome.Media) {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), manifestTimeout)
	defer cancel()
	// The manifest may outlive the inputs of its task.
	bare := m.Outcome.WithoutInputs()
	m.Outcome = &bare
	text, err := json.Marshal(m)
	if err == nil {
		err = a.Bucket.StoreManifest(ctx, manifestKey(row), text)
	}
	if err != nil {
		a.Logger.WarnContext(ctx, "manifest not stored", "task", row.TaskID, "attempt", row.N, "error", err)
		return
	}
	// The manifest is final: the call has ended.
	if m.CallEnds.IsZero() {
		failpoint.Hit(failpoint.HandedOver)
	}
}

// readManifest returns what a lost sender has made, if all the files are complete in the bucket,
// and otherwise nil. It returns KindTransient while the sender may still be in its call, and the
// errors of a bucket that is away. A manifest that does not match its files counts as none.
func (a *Activities) readManifest(ctx context.Context, row task.Attempt) (*mediagate.Submission, error) {
	text, err := a.Bucket.LoadManifest(ctx, manifestKey(row))
	switch {
	case mediagate.Is(err, mediagate.KindNotFound):
		return nil, nil
	case err != nil:
		return nil, withCode(err, string(mediagate.ParkStorage))
	}
	var m manifest
	if err = json.Unmarshal(text, &m); err == nil && m.Outcome != nil {
		for _, file := range m.Outcome.Media {
			if file.Stored != nil && err == nil {
				err = a.Bucket.Verify(ctx, *file.Stored)
			}
		}
	}
	if mediagate.Is(err, mediagate.KindUnavailable) {
		return nil, err
	}
	if err != nil || m.Outcome == nil {
		a.Logger.WarnContext(ctx, "a manifest does not match its files",
			"task", row.TaskID, "attempt", row.N, "error", err)
		return nil, nil
	}
	// The sender of a submission with several calls may still store more files.
	if a.Now().Before(m.CallEnds) {
		return nil, mediagate.Errorf(mediagate.KindTransient, "the sender may still be in its call")
	}
	a.Logger.InfoContext(ctx, "a lost sender's files were found",
		"task", row.TaskID, "attempt", row.N, "files", len(m.Outcome.Media))
	return &m.Submission, nil
}

// afterLostSender returns the events of an attempt whose sender did not report: what the sender
// left in the bucket, or that the attempt is unknown. If the bucket is away, the lookup searches it
// again. SubmitJob calls afterLostSender if an earlier try stored the intent.
func (a *Activities) afterLostSender(ctx context.Context, t mediagate.Task, row task.Attempt) []task.Event {
	if events, err := a.searchBucket(ctx, t, row); err == nil && len(events) > 0 {
		return events
	}
	return []task.Event{senderLost(row)}
}

// senderLost returns the event that makes an attempt unknown because its sender did not report.
func senderLost(row task.Attempt) task.SubmitUnknown {
	return task.SubmitUnknown{Sending: row.Sending, SenderLost: true, Detail: mediagate.SenderLost}
}

// searchBucket finds what the lost sender of a synchronous call has left in the bucket. It returns
// no event if there is nothing, or if the call was not synchronous. The events are the same as if
// the sender had reported its answer.
func (a *Activities) searchBucket(ctx context.Context, t mediagate.Task, row task.Attempt) ([]task.Event, error) {
	ctx, cancel := context.WithTimeout(ctx, searchTimeout)
	defer cancel()
	if !row.Route.Sync {
		return nil, nil
	}
	s, err := a.readManifest(ctx, row)
	if s == nil || err != nil {
		return nil, err
	}
	return []task.Event{task.Accepted{Sending: row.Sending, Submission: *s, FirstPollAt: a.Now()}}, nil
}

// searchLost looks for the job of an attempt that the database has lost, so that only its name is
// known (D17). It searches our bucket for the files of a synchronous call, and asks each channel
// that may have made the job and can be asked. It asks the channels at the same time, each within
// its own time limit, so that a channel that hangs takes no time from one that has the job (D11).
// If no channel has the job, it returns the error of one that is out of reach.
//
// The files of a synchronous call do not say which account made them. They are attributed to the
// first channel that could have made them. That channel is asked for nothing else.
func (a *Activities) searchLost(ctx context.Context, t mediagate.Task, row task.Attempt) ([]task.Event, error) {
	candidates, err := a.possibleMakers(ctx, t, row.N)
	if err != nil {
		return nil, err
	}
	// Each goroutine writes its own element, so no lock is needed.
	found := make([][]task.Event, len(candidates))
	var group errgroup.Group
	for i, c := range candidates {
		group.Go(func() error {
			return mediagate.Guarded(func() (err error) {
				found[i], err = a.searchAt(ctx, t, row, c)
				return err
			})
		})
	}
	// The first error is enough: any channel that is out of reach may have the job.
	unreached := group.Wait()
	// A found job counts, even if another channel is out of reach.
	for _, events := range found {
		if len(events) > 0 {
			return events, nil
		}
	}
	return nil, unreached
}

// searchAt is searchLost for one channel that may have made the job. It returns no event if the
// channel does not have it.
func (a *Activities) searchAt(
	ctx context.Context, t mediagate.Task, row task.Attempt, c channel.Candidate,
) ([]task.Event, error) {
	row.Channel, row.Provider, row.Fingerprint = c.Name, c.Provider, c.Fingerprint
	row.Route, row.CanStop = a.routeAt(t, row.N, c)
	events, err := a.search(ctx, t, row)
	if err != nil {
		return nil, err
	}
	for _, e := range events {
		if job, ok := e.(task.Accepted); ok {
			a.Logger.InfoContext(ctx, "the job of a lost attempt was found",
				"task", t.ID, "attempt", row.N, "channel", c.Name)
			return []task.Event{job}, nil
		}
	}
	return nil, nil
}

// possibleMakers returns the channels at which attempt n may have been made. Models that are
// retired by now count as well, since the attempt may be older. For modal parameters only the
// account whose job waits is possible.
func (a *Activities) possibleMakers(ctx context.Context, t mediagate.Task, n int) ([]channel.Candidate, error) {
	if !t.Modal.Resumes(n) {
		return a.serving(t, nil), nil
	}
	if err := a.confirmAccount(ctx, t, n); err != nil {
		return nil, err
	}
	_, candidates, err := a.chooseChannels(ctx, t, n)
	return candidates, err
}
