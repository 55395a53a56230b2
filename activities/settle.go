package activities

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/billing"
	"github.com/mediagate/mediagate/failpoint"
	"github.com/mediagate/mediagate/view"
)

// SettleArgs is the end that the workflow decided on.
type SettleArgs struct {
	TaskID         string             `json:"task"`
	N              int                `json:"n,omitempty"`
	Status         mediagate.Status   `json:"status"`
	Failure        *mediagate.Failure `json:"failure,omitempty"`
	WithoutOutcome bool               `json:"unheard,omitempty"` // see mediagate.Settlement
}

// Settle ends the task: terminal row, result, money and the pending callback in
// one transaction. A task that has ended already is left as it is, and so is
// one that was given up though its attempt's end is on record; the story that
// comes back tells (D13).
func (a *Activities) Settle(ctx context.Context, in SettleArgs) (mediagate.Story, error) {
	st, err := a.settle(ctx, in, settling{})
	return st, a.fail(ctx, err)
}

// settlePatience is how long a copy's place is kept for the end of its task. It is
// many times what that takes, and less than an account's row may be waited for:
// who waits for one does so where no copy is in the way (D18).
const settlePatience = 2 * time.Second

// complete ends a task whose files are on record. What keeps it from that is left
// to the step that the run then takes, which is repeated for as long as it has to
// be: the story says that the files are there and the task is open. So it is
// where an operator's fail is on record, which the run has heard or will hear.
func (a *Activities) complete(ctx context.Context, in MirrorArgs) (mediagate.Story, error) {
	if !in.Settle {
		return a.story(ctx, in.TaskID)
	}
	defer heartbeat(ctx, noDetails)()
	patient, cancel := context.WithTimeout(ctx, settlePatience)
	defer cancel()
	st, err := a.settle(patient, SettleArgs{TaskID: in.TaskID, N: in.N, Status: mediagate.StatusCompleted}, settling{unlessOvertaken: true})
	switch {
	case err == nil:
		return st, nil
	case ctx.Err() != nil:
		return mediagate.Story{}, ctx.Err()
	}
	a.Logger.WarnContext(ctx, "a task's end is left to a step of its own", "task", in.TaskID, "attempt", in.N, "error", err)
	return a.story(ctx, in.TaskID)
}

// settling is how an end is to be stored that its run did not decide on; see
// mediagate.Settlement.
type settling struct {
	unlessOvertaken bool
	runUntold       bool
}

// settle returns errors as they are.
func (a *Activities) settle(ctx context.Context, in SettleArgs, how settling) (mediagate.Story, error) {
	task, err := a.Store.TaskByID(ctx, in.TaskID)
	if err != nil {
		return mediagate.Story{}, err
	}
	if task.Status.Terminal() {
		if how.runUntold {
			return a.glance(ctx, in.TaskID)
		}
		return a.readStory(ctx, in.TaskID)
	}
	if in.WithoutOutcome && task.Modal.State == mediagate.ModalWaiting && runIs(ctx, BeforeModal) {
		spoken, err := a.expireFor(ctx, &in)
		if err != nil {
			return mediagate.Story{}, err
		}
		if spoken {
			return a.readStory(ctx, in.TaskID)
		}
	}
	if in.WithoutOutcome {
		found, err := a.lastLook(ctx, task, in.N)
		if err != nil {
			return mediagate.Story{}, err
		}
		if found {
			return a.readStory(ctx, in.TaskID)
		}
	}
	failure, err := a.worded(ctx, in)
	if err != nil {
		return mediagate.Story{}, err
	}
	end := mediagate.Settlement{
		TaskID: in.TaskID, AccountID: task.AccountID, N: in.N, Status: in.Status, Failure: failure, WithoutOutcome: in.WithoutOutcome,
		UnlessOvertaken: how.unlessOvertaken, RunUntold: how.runUntold, EndedAt: a.Now().UTC().Truncate(time.Microsecond),
	}
	if in.Status == mediagate.StatusCompleted {
		if err := a.price(ctx, task, &end); err != nil {
			return mediagate.Story{}, err
		}
	}
	if end.Status != mediagate.StatusCancelled && task.Webhook != nil && task.Webhook.State == mediagate.WebhookPending {
		if err := a.callback(ctx, task, &end); err != nil {
			return mediagate.Story{}, err
		}
	}
	failpoint.Hit(failpoint.SettleBeforeCommit)
	st, _, err := a.Store.Settle(ctx, end)
	if err != nil {
		return mediagate.Story{}, err
	}
	failpoint.Hit(failpoint.SettleCommitted)
	if st, err = a.asKnownHere(ctx, in.TaskID, st); err != nil {
		return mediagate.Story{}, err
	}
	if st.Status.Terminal() {
		a.dropUploads(ctx, task)
	}
	if how.runUntold {
		return st, nil
	}
	return st, a.heard(ctx, in.TaskID, st)
}

// worded is the failure that the workflow decided on, with the words of the
// attempt that it rests on where it has none.
func (a *Activities) worded(ctx context.Context, in SettleArgs) (*mediagate.Failure, error) {
	if in.Failure == nil || in.Failure.Message != "" {
		return in.Failure, nil
	}
	failure := *in.Failure
	st, err := a.Store.Story(ctx, in.TaskID)
	if err != nil {
		return nil, err
	}
	if st.N == in.N && st.Failure != nil {
		failure.Message = st.Failure.Message
	}
	failure.Message = cmp.Or(failure.Message, "the generation failed") // of an attempt that another followed
	return &failure, nil
}

// dropTimeout is short: what stays is swept by its age.
const dropTimeout = 2 * time.Second

// dropUploads removes the media that came within the request of a task that has
// ended: nobody is sent a link to them any more.
func (a *Activities) dropUploads(ctx context.Context, task mediagate.Task) {
	ctx, cancel := context.WithTimeout(ctx, dropTimeout)
	defer cancel()
	for field, key := range task.Plan.Uploads {
		if err := a.Sweeper.Delete(ctx, key); err != nil {
			a.Logger.WarnContext(ctx, "media of a request not removed", "task", task.ID, "field", field, "error", err)
			return
		}
	}
}

// price fills in results and cost of a completed task: the seconds that the
// vendor states, else the files' own lengths.
func (a *Activities) price(ctx context.Context, task mediagate.Task, end *mediagate.Settlement) error {
	row, err := a.Store.Attempt(ctx, task.ID, end.N)
	if err != nil {
		return err
	}
	if !row.Mirrored() || row.Outcome == nil {
		return mediagate.Errorf(mediagate.KindInternal, "attempt %d of %s has no files to settle on", end.N, task.ID)
	}
	delivered := billing.DeliveredBy(*row.Outcome, row.Results)
	end.Results, end.Made = row.Results, row.Outcome.Made
	end.Cost = billing.Settle(task.Charges, delivered)
	perSecond := func(c mediagate.Charge) bool { return c.Unit == mediagate.UnitSecond }
	if delivered.Seconds == 0 && slices.ContainsFunc(task.Charges, perSecond) && slices.Contains(delivered.Lengths, 0) {
		a.Logger.WarnContext(ctx, "the length of a result cannot be told: the seconds that were held are charged", "task", task.ID, "attempt", end.N)
	}
	return nil
}

// callback fills in the task as its callback shows it, made once: every attempt
// sends these bytes. Which of the two it is the account's row decides, in the
// transaction of the end.
func (a *Activities) callback(ctx context.Context, task mediagate.Task, end *mediagate.Settlement) error {
	task.Status, task.Failure, task.Results, task.Made = end.Status, end.Failure, end.Results, end.Made
	task.Cost, task.EndedAt = end.Cost, end.EndedAt
	task.Webhook = nil
	if end.Status == mediagate.StatusCompleted {
		task.Progress = 100
	}
	links := make([]mediagate.Link, len(end.Results))
	for i, r := range end.Results {
		link, err := a.Bucket.Sign(ctx, r, a.Settings.LinkTTL)
		if err != nil {
			return fmt.Errorf("sign the callback's link: %w", err)
		}
		links[i] = link
	}
	var err error
	if end.WebhookBody, err = view.Of(&task, a.Settings.CreditsPerUnit, links).JSON(); err != nil {
		return err
	}
	task = task.WithoutInputs()
	end.WithoutInputs, err = view.Of(&task, a.Settings.CreditsPerUnit, links).JSON()
	return err
}
