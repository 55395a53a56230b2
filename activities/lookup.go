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

// LookUp finds out what became of attempt N, whose answer was lost: by what its sender
// has left in our bucket, then by our own id at the vendor. "Not found" counts only once
// nothing of the call can still be under way, and twice (D4). Returns KindTransient
// while the vendor is out of reach, KindUnavailable while the bucket is.
func (a *Activities) LookUp(ctx context.Context, in StepArgs) (Answer, error) {
	defer a.stopped(ctx, in.TaskID)
	defer heartbeat(ctx, noDetails, nil)()
	row, err := a.Store.Attempt(ctx, in.TaskID, in.Step.N)
	if err != nil {
		return Answer{}, a.fail(ctx, err)
	}
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

// search finds what became of the attempt, in our bucket or at its vendor.
func (a *Activities) search(ctx context.Context, t mediagate.Task, row task.Attempt) ([]task.Event, error) {
	if row.Channel == "" {
		return a.searchLost(ctx, t, row)
	}
	found, err := a.searchBucket(ctx, t, row)
	if err != nil || len(found) > 0 {
		return found, err
	}
	return a.askFor(ctx, t, row)
}

// askFor asks the vendor for the job, by our own id. Where it cannot be asked so, there
// is no event.
func (a *Activities) askFor(ctx context.Context, t mediagate.Task, row task.Attempt) ([]task.Event, error) {
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

// A sender of a synchronous call stores the files in the bucket as they arrive, and
// stores the outcome that names them in the database after the last one. If it dies
// between, the files are there and no row names them. So each call whose files are
// stored leaves a manifest beside them before the database has the outcome: its
// submission, with the files' sizes and hashes. The next sender, or a lookup, reads the
// manifest and uses it when the files are whole.

// The manifest stays for a day after the end of its task, until retention removes what no
// row names. A database that forgets the outcome and the end finds them there again (D17).

// manifest is what a synchronous submission has made, without a word of the vendor's: it
// outlives the inputs of a task whose account has them erased.
type manifest struct {
	mediagate.Submission
	// CallEnds is set while the submission goes on: its sender may bring more files
	// until then, and the manifest counts from then on.
	CallEnds time.Time `json:"call_ends,omitzero"`
}

const (
	manifestTimeout = 10 * time.Second
	// searchTimeout bounds the search in our bucket for what a lost sender has left. A
	// lookup, which may ask the vendor after that (askTimeout), has one minute for both.
	searchTimeout = 25 * time.Second
)

// manifestKey is where the manifest of an attempt is, beside the files that it names.
func manifestKey(row task.Attempt) string {
	return attemptFolder(row.TaskID, row.N) + "outcome.json"
}

// stored reports that some of the files are in the bucket already.
func stored(files []mediagate.Media) bool {
	return slices.ContainsFunc(files, func(m mediagate.Media) bool { return m.Stored != nil })
}

// storeManifest leaves word of what a call has stored. Without it the result is
// lost with this process, so its failure changes nothing as long as that lives.
func (a *Activities) storeManifest(ctx context.Context, row task.Attempt, m manifest) {
	if m.Outcome == nil || !stored(m.Outcome.Media) {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), manifestTimeout)
	defer cancel()
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
	if m.CallEnds.IsZero() {
		failpoint.Hit(failpoint.HandedOver)
	}
}

// readManifest returns what a lost sender has made, if all the files are whole in the
// bucket; nil otherwise. It returns KindTransient while the sender may still be in its call,
// and the errors of a bucket that is away.
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
	if a.Now().Before(m.CallEnds) {
		return nil, mediagate.Errorf(mediagate.KindTransient, "the sender may still be in its call")
	}
	a.Logger.InfoContext(ctx, "a lost sender's files were found",
		"task", row.TaskID, "attempt", row.N, "files", len(m.Outcome.Media))
	return &m.Submission, nil
}

// afterLostSender returns the events of an attempt whose sender did not report: what the
// sender left in the bucket, or that the attempt is unknown. If the bucket is away, the
// lookup searches it again.
func (a *Activities) afterLostSender(ctx context.Context, t mediagate.Task, row task.Attempt) []task.Event {
	if events, err := a.searchBucket(ctx, t, row); err == nil && len(events) > 0 {
		return events
	}
	return []task.Event{senderLost(row)}
}

func senderLost(row task.Attempt) task.SubmitUnknown {
	return task.SubmitUnknown{Sending: row.Sending, SenderLost: true, Detail: mediagate.SenderLost}
}

// searchBucket finds what the lost sender of a synchronous call has left in the bucket.
// It returns no event if there is nothing, or if the call was not synchronous.
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

// searchLost looks for the job of an attempt that the database has lost, and of which only
// the name is known (D17): in our bucket, for a synchronous call that ended, and at each
// channel that may have made it and can be asked. The channels are asked side by side, each
// within its own time, so that one that hangs takes no time from another that has the job
// (D11). It returns the error of one that is out of reach if none has the job.
//
// The files of a synchronous call do not say which account made them. They are taken for
// those of the first channel that could have: nothing else is asked of it.
func (a *Activities) searchLost(ctx context.Context, t mediagate.Task, row task.Attempt) ([]task.Event, error) {
	candidates, err := a.mayHaveMade(ctx, t, row.N)
	if err != nil {
		return nil, err
	}
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
	unreached := group.Wait()
	for _, events := range found {
		if len(events) > 0 {
			return events, nil
		}
	}
	return nil, unreached
}

// searchAt is searchLost at one channel that may have made the job. There is no event
// where the channel does not have it.
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

// mayHaveMade lists the channels at which attempt n may have been made.
func (a *Activities) mayHaveMade(ctx context.Context, t mediagate.Task, n int) ([]channel.Candidate, error) {
	if !t.Modal.Resumes(n) {
		return a.Channels.Candidates(t.Model, t.Plan.Routes, askable(t), nil), nil
	}
	if err := a.provenFor(ctx, t, n); err != nil {
		return nil, err
	}
	_, candidates, err := a.following(ctx, t, n)
	return candidates, err
}
