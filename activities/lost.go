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

// What a synchronous vendor handed over before its sender was lost is in the
// bucket, but the outcome that names it is on no record. So each call whose
// files are stored leaves a manifest beside them, its submission with the
// files' sizes and hashes, before the database has it. Whoever takes the
// attempt over finds it, and uses it when the files are whole.

const (
	manifestTimeout = 10 * time.Second
	look            = 2 * time.Minute // for what a lost sender has left
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

// handedOver is what a call of a lost sender has left whole in the bucket; nil
// when there is nothing. Errors are those of a bucket that is away.
func (a *Activities) handedOver(ctx context.Context, taskID string, row mediagate.Attempt, part int) (*mediagate.Submission, error) {
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

// lostSender is what is known of an attempt whose sender did not report: what it left in
// the bucket, if that tells. A bucket that is away is asked again by the lookup.
func (a *Activities) lostSender(ctx context.Context, t mediagate.Task, row mediagate.Attempt) []task.Event {
	if events, err := a.recover(ctx, t, row); err == nil && len(events) > 0 {
		return events
	}
	return []task.Event{senderLost(row)}
}

func senderLost(row mediagate.Attempt) task.SubmitUnknown {
	return task.SubmitUnknown{N: row.N, SendBefore: row.SendBefore, SenderLost: true, Detail: mediagate.SenderLost}
}

// recover finds what the sender of an attempt has left in the bucket: of a synchronous
// call only. There is no event where it left nothing.
func (a *Activities) recover(ctx context.Context, t mediagate.Task, row mediagate.Attempt) ([]task.Event, error) {
	ctx, cancel := context.WithTimeout(ctx, look)
	defer cancel()
	switch {
	case !row.Route.Sync:
		return nil, nil
	case row.Route.Parts > 1:
		events, lost, err := a.takeOver(ctx, t, row)
		if err != nil {
			return nil, err
		}
		return append(events, task.PartsOver{N: row.N, SendersLost: lost, FirstPollAt: a.Now()}), nil
	}
	s, err := a.handedOver(ctx, t.ID, row, 0)
	if s == nil || err != nil {
		return nil, err
	}
	return []task.Event{task.Accepted{N: row.N, Submission: *s, FirstPollAt: a.Now()}}, nil
}
