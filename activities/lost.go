package activities

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/channel"
	"github.com/mediagate/mediagate/failpoint"
)

// What a synchronous vendor handed over before its sender was lost is in the
// bucket, but the outcome that names it is on no record. So each call whose
// files are stored leaves a manifest beside them, its submission with the
// files' sizes and hashes, before the database hears of it. Whoever takes the
// attempt over finds it, and believes it when the files are whole.

const (
	manifestTimeout = 10 * time.Second
	look            = 2 * time.Minute // for what a lost sender has left
	briefLook       = 6 * time.Second // the same, within a short step
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
// when there is nothing, or when that cannot be told now.
func (a *Activities) handedOver(ctx context.Context, taskID string, row mediagate.Attempt, part int) *mediagate.Submission {
	text, err := a.Bucket.LoadManifest(ctx, manifestKey(taskID, row, part))
	if mediagate.Is(err, mediagate.KindNotFound) {
		return nil
	}
	var s mediagate.Submission
	if err == nil {
		err = json.Unmarshal(text, &s)
	}
	if err == nil && s.Outcome != nil {
		for _, m := range s.Outcome.Media {
			if m.Stored != nil && err == nil {
				err = a.Bucket.Verify(ctx, *m.Stored)
			}
		}
	}
	if err != nil || s.Outcome == nil {
		a.Logger.WarnContext(ctx, "a manifest is not believed", "task", taskID, "attempt", row.N, "part", part, "error", err)
		return nil
	}
	a.Logger.InfoContext(ctx, "a lost sender's files were found", "task", taskID, "attempt", row.N, "part", part, "files", len(s.Outcome.Media))
	return &s
}

// markLost notes that the sender of an attempt is gone, and its fate open,
// unless what it had stored tells. over says that nothing of its calls can be
// under way any more.
func (a *Activities) markLost(ctx context.Context, task mediagate.Task, row mediagate.Attempt, over bool) error {
	found, err := a.recover(ctx, task, row, over)
	if err != nil || found {
		return err
	}
	return a.Store.MarkUnknown(ctx, task.ID, row.N, row.SendBefore, mediagate.SenderLost)
}

// recover records the outcome of a lost attempt by what its sender had stored.
// It tells whether there was enough for one. over is of a short step: what it
// cannot read in time does not count.
func (a *Activities) recover(ctx context.Context, task mediagate.Task, row mediagate.Attempt, over bool) (found bool, err error) {
	limit := look
	if over {
		limit = briefLook
	}
	looking, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	switch {
	case !row.Route.Sync:
		return false, nil
	case row.Route.Parts > 1:
		parts, err := a.Store.Parts(ctx, task.ID, row.N)
		if err != nil {
			return false, err
		}
		lost, err := a.takeOver(ctx, looking, task, row, parts)
		if err != nil {
			return false, err
		}
		found, _, err := a.endParts(ctx, task, row, channel.Channel{}, lost, over)
		return found, err
	}
	s := a.handedOver(looking, task.ID, row, 0)
	if s == nil {
		return false, nil
	}
	return true, a.accept(ctx, task, row, channel.Channel{}, *s)
}

// lastLook recovers what it can before a task is given up for want of an
// outcome. It tells whether the attempt's fate came to be known by that: an
// outcome, or a refusal that says more than that one was lost.
func (a *Activities) lastLook(ctx context.Context, task mediagate.Task, n int) (found bool, err error) {
	row, err := a.Store.Attempt(ctx, task.ID, n)
	if mediagate.Is(err, mediagate.KindNotFound) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if row.State != mediagate.AttemptIntent && row.State != mediagate.AttemptUnknown {
		return false, nil
	}
	return a.recover(ctx, task, row, true)
}
