package activities

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/failpoint"
	"github.com/mediagate/mediagate/task"
)

// A sender of a synchronous call stores the files in the bucket as they arrive, and
// stores the outcome that names them in the database after the last one. If it dies
// between, the files are there and no row names them. So each call whose files are
// stored leaves a manifest beside them before the database has the outcome: its
// submission, with the files' sizes and hashes. The next sender, or a lookup, reads the
// manifest and uses it when the files are whole.

const (
	manifestTimeout = 10 * time.Second
	searchTimeout   = 2 * time.Minute // for what a lost sender has left
)

// manifestKey is where the manifest of one call is, below what it names.
func manifestKey(taskID string, row mediagate.Attempt, part int) string {
	if row.Route.Parts > 1 {
		return fmt.Sprintf("%spart-%d.json", attemptFolder(taskID, row.N), part)
	}
	return attemptFolder(taskID, row.N) + "outcome.json"
}

// stored reports that some of the files are in the bucket already.
func stored(media []mediagate.Media) bool {
	for _, m := range media {
		if m.Stored != nil {
			return true
		}
	}
	return false
}

// storeManifest leaves word of what a call has stored. Without it the result is
// lost with this process, so its failure changes nothing as long as that lives.
func (a *Activities) storeManifest(ctx context.Context, taskID string, row mediagate.Attempt, part int, s mediagate.Submission) {
	if s.Outcome == nil || !stored(s.Outcome.Media) {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), manifestTimeout)
	defer cancel()
	text, err := json.Marshal(s)
	if err == nil {
		err = a.Bucket.StoreManifest(ctx, manifestKey(taskID, row, part), text)
	}
	if err != nil {
		a.Logger.WarnContext(ctx, "manifest not stored", "task", taskID, "attempt", row.N, "part", part, "error", err)
		return
	}
	failpoint.Hit(failpoint.HandedOver)
}

// readManifest returns the submission of one call whose sender was lost, if all its
// files are whole in the bucket; nil otherwise. Errors are those of a bucket that is away.
func (a *Activities) readManifest(ctx context.Context, taskID string, row mediagate.Attempt, part int) (*mediagate.Submission, error) {
	text, err := a.Bucket.LoadManifest(ctx, manifestKey(taskID, row, part))
	switch {
	case mediagate.Is(err, mediagate.KindNotFound):
		return nil, nil
	case err != nil:
		return nil, withCode(err, string(mediagate.ParkStorage))
	}
	var s mediagate.Submission
	if err = json.Unmarshal(text, &s); err == nil && s.Outcome != nil {
		for _, m := range s.Outcome.Media {
			if m.Stored != nil && err == nil {
				err = a.Bucket.Verify(ctx, *m.Stored)
			}
		}
	}
	if mediagate.Is(err, mediagate.KindUnavailable) {
		return nil, err
	}
	if err != nil || s.Outcome == nil {
		a.Logger.WarnContext(ctx, "a manifest does not match its files", "task", taskID, "attempt", row.N, "part", part, "error", err)
		return nil, nil
	}
	a.Logger.InfoContext(ctx, "a lost sender's files were found", "task", taskID, "attempt", row.N, "part", part, "files", len(s.Outcome.Media))
	return &s, nil
}

// afterLostSender returns the events of an attempt whose sender did not report: what the
// sender left in the bucket, or that the attempt is unknown. If the bucket is away, the
// lookup searches it again.
func (a *Activities) afterLostSender(ctx context.Context, t mediagate.Task, row mediagate.Attempt) []task.Event {
	if events, err := a.searchBucket(ctx, t, row); err == nil && len(events) > 0 {
		return events
	}
	return []task.Event{senderLost(row)}
}

func senderLost(row mediagate.Attempt) task.SubmitUnknown {
	return task.SubmitUnknown{N: row.N, SendBefore: row.SendBefore, SenderLost: true, Detail: mediagate.SenderLost}
}

// searchBucket finds what the lost sender of a synchronous call has left in the bucket.
// It returns no event if there is nothing, or if the call was not synchronous.
func (a *Activities) searchBucket(ctx context.Context, t mediagate.Task, row mediagate.Attempt) ([]task.Event, error) {
	ctx, cancel := context.WithTimeout(ctx, searchTimeout)
	defer cancel()
	switch {
	case !row.Route.Sync:
		return nil, nil
	case row.Route.Parts > 1:
		events, lost, err := a.searchParts(ctx, t, row)
		if err != nil {
			return nil, err
		}
		return append(events, task.PartsOver{N: row.N, SendersLost: lost, FirstPollAt: a.Now()}), nil
	}
	s, err := a.readManifest(ctx, t.ID, row, 0)
	if s == nil || err != nil {
		return nil, err
	}
	return []task.Event{task.Accepted{N: row.N, Submission: *s, FirstPollAt: a.Now()}}, nil
}
