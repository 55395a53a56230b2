package activitytest

import (
	"cmp"
	"context"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/mediagate/mediagate"
)

// Settle ends a task once, with its callback's first round (D13, D14).
func (s *Store) Settle(ctx context.Context, end mediagate.Settlement) (mediagate.Story, bool, error) {
	unlock, err := s.lock(ctx, "Settle")
	defer unlock()
	if err != nil {
		return mediagate.Story{}, false, err
	}
	r, ok := s.tasks[end.TaskID]
	switch {
	case !ok || r.task.Status.Terminal():
		return s.story(end.TaskID), false, nil
	case !end.Status.Terminal(),
		end.Cost < 0 || end.Cost > r.task.Hold || (end.Cost != 0 && end.Status != mediagate.StatusCompleted),
		(end.Failure != nil) != (end.Status == mediagate.StatusFailed):
		return mediagate.Story{}, false, mediagate.Errorf(mediagate.KindInternal, "an end that cannot be: %+v", end)
	}
	if end.UnlessOvertaken && (len(r.attempts) > end.N || slices.ContainsFunc(s.actions, func(a *mediagate.Action) bool {
		return a.TaskID == end.TaskID && a.Action == mediagate.ActionFail
	})) {
		return s.story(end.TaskID), false, nil
	}
	if end.WithoutOutcome && r.task.Modal.State == mediagate.ModalWaiting {
		return s.story(end.TaskID), false, nil
	}
	if _, a, err := s.attempt(end.TaskID, end.N); end.WithoutOutcome && err == nil && a.Outcome != nil {
		return s.story(end.TaskID), false, nil
	}
	if end.Status == mediagate.StatusCompleted && !r.task.CancelRequestedAt.IsZero() { // the client was promised a cancel
		end = mediagate.Settlement{
			TaskID: end.TaskID, AccountID: end.AccountID, N: end.N, Status: mediagate.StatusCancelled, EndedAt: end.EndedAt, RunUntold: end.RunUntold,
		}
	}
	if end.EndedAt.IsZero() {
		end.EndedAt = s.clock()
	}
	r.settled = append(r.settled, end)
	t := &r.task
	t.Status, t.Failure, t.Cost, t.EndedAt = end.Status, end.Failure, end.Cost, end.EndedAt
	t.ParkedAt, t.ParkReason = time.Time{}, ""
	s.leaveQueue(r)
	t.Version++
	if end.Status == mediagate.StatusCompleted {
		t.Progress, t.Results, t.Made = 100, end.Results, end.Made
	}
	if t.Webhook != nil && t.Webhook.State == mediagate.WebhookPending {
		if len(end.WebhookBody) > 0 && end.Status != mediagate.StatusCancelled {
			t.Webhook.Round, r.body, r.bodyAt, r.pending = 1, end.WebhookBody, s.clock(), s.clock()
			r.rescues, r.rescueAt = 0, time.Time{}
		} else {
			t.Webhook.State, t.Webhook.Reason = mediagate.WebhookDropped, "nothing to send"
			if end.Status == mediagate.StatusCancelled {
				t.Webhook.Reason = "task cancelled"
			}
		}
	}
	for _, a := range r.attempts {
		loses := end.Status != mediagate.StatusCompleted || a.N != end.N
		if loses && (a.Route.Sync || a.Outcome != nil && a.Outcome.Succeeded) || a.latePart || slices.ContainsFunc(a.parts, openPart) {
			r.sweepAt = s.clock().Add(2 * mediagate.CopyLimit)
		}
		if !end.RunUntold || !slices.ContainsFunc(s.awaits, func(w *awaitRow) bool { return w.TaskID == t.ID && w.N == a.N && w.Ended }) {
			s.drop(t.ID, a.N)
		}
		s.endAttempt(r, a, end.EndedAt)
	}
	return s.story(t.ID), true, nil
}

// WebhookTarget reads what a round sends.
func (s *Store) WebhookTarget(ctx context.Context, taskID string, round int) (mediagate.WebhookTarget, error) {
	unlock, err := s.lock(ctx, "WebhookTarget")
	defer unlock()
	if err != nil {
		return mediagate.WebhookTarget{}, err
	}
	r, err := s.record(taskID)
	if err != nil || r.task.Webhook == nil || r.task.Webhook.Round < round {
		return mediagate.WebhookTarget{}, missing("round of", taskID)
	}
	return mediagate.WebhookTarget{
		AccountID: r.task.AccountID, URL: r.task.Webhook.URL, Body: r.body, BodyAt: r.bodyAt,
		Secrets: []mediagate.WebhookSecret{{Secret: mediagate.NewSecret("whsec_" + Secret)}},
		State:   r.task.Webhook.State, Round: r.task.Webhook.Round,
	}, nil
}

// Deliveries lists the delivery attempts.
func (s *Store) Deliveries(ctx context.Context, taskID string) ([]mediagate.Delivery, error) {
	unlock, err := s.lock(ctx, "Deliveries")
	defer unlock()
	if err != nil {
		return nil, err
	}
	r, err := s.record(taskID)
	if err != nil {
		return nil, err
	}
	out := slices.Clone(r.deliveries)
	slices.SortFunc(out, func(a, b mediagate.Delivery) int {
		return cmp.Or(cmp.Compare(a.Round, b.Round), cmp.Compare(a.Attempt, b.Attempt))
	})
	return out, nil
}

// RecordDelivery stores a delivery attempt, in place of the same one, and how
// its round ended: the newest round only, and never over a delivery.
func (s *Store) RecordDelivery(ctx context.Context, d mediagate.Delivery, state mediagate.WebhookState, reason string) error {
	unlock, err := s.lock(ctx, "RecordDelivery")
	defer unlock()
	if err != nil {
		return err
	}
	r, err := s.record(d.TaskID)
	if err != nil {
		return err
	}
	r.deliveries = slices.DeleteFunc(r.deliveries, func(o mediagate.Delivery) bool {
		return o.Round == d.Round && o.Attempt == d.Attempt
	})
	r.deliveries = append(r.deliveries, d)
	if w := r.task.Webhook; w != nil && state != "" && w.Round == d.Round && w.State != mediagate.WebhookDelivered {
		if w.State != state || w.Reason != reason {
			r.task.Version++
		}
		w.State, w.Reason = state, reason
	}
	return nil
}

// find names tasks, in the order of that time and then of their ids.
func (s *Store) find(ctx context.Context, method string, limit int, by func(*record) time.Time, match func(*record) bool) ([]string, error) {
	unlock, err := s.lock(ctx, method)
	defer unlock()
	if err != nil {
		return nil, err
	}
	all := names(s.tasks)
	slices.SortStableFunc(all, func(a, b string) int { return by(s.tasks[a]).Compare(by(s.tasks[b])) })
	var out []string
	for _, id := range all {
		if len(out) < limit && match(s.tasks[id]) {
			out = append(out, id)
		}
	}
	return out, nil
}

// inTurns reads tasks of the accounts after the one named, the same number of
// each, its oldest, in turns.
func (s *Store) inTurns(ctx context.Context, method, after string, limit int, by func(*record) time.Time, open, match func(*record) bool) (tasks []mediagate.Task, next string, err error) {
	all, err := s.find(ctx, method, math.MaxInt, by, open)
	if err != nil {
		return nil, "", err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	found := map[string]bool{}
	for _, id := range all {
		if account := s.tasks[id].task.AccountID; account > after {
			found[account] = true
		}
	}
	accounts := slices.Sorted(maps.Keys(found))
	if len(accounts) >= limit {
		accounts = accounts[:limit]
		next = accounts[limit-1]
	}
	had := map[string]int{}
	var turns []*record
	turn := map[*record]int{}
	for _, id := range all {
		r := s.tasks[id]
		if account := r.task.AccountID; slices.Contains(accounts, account) && match(r) && had[account] < max(1, limit/len(accounts)) {
			had[account]++
			turn[r] = had[account]
			turns = append(turns, r)
		}
	}
	slices.SortStableFunc(turns, func(a, b *record) int { return cmp.Compare(turn[a], turn[b]) })
	for _, r := range turns {
		t := r.task
		tasks = append(tasks, mediagate.Task{
			ID: t.ID, AccountID: t.AccountID, KeyID: t.KeyID, Model: t.Model, Type: t.Type, Status: t.Status, Hold: t.Hold, Plan: t.Plan,
			CreatedAt: t.CreatedAt, CancelRequestedAt: t.CancelRequestedAt,
		})
	}
	return tasks, next, nil
}

// byID is for finders that sort by nothing else.
func byID(*record) time.Time { return time.Time{} }

// UnseenTasks reads open tasks of which no run was seen.
func (s *Store) UnseenTasks(ctx context.Context, olderThan time.Duration, after string, limit int) ([]mediagate.Task, string, error) {
	return s.inTurns(ctx, "UnseenTasks", after, limit, func(r *record) time.Time { return r.task.CreatedAt },
		func(r *record) bool { return !r.task.Status.Terminal() && !r.seen },
		func(r *record) bool { return s.clock().Sub(r.checkedAt) > olderThan })
}

// OpenTasks lists open tasks that were not looked at lately.
func (s *Store) OpenTasks(ctx context.Context, checkedBefore time.Time, after mediagate.Look, limit int) ([]mediagate.Look, error) {
	ids, err := s.find(ctx, "OpenTasks", math.MaxInt, func(r *record) time.Time { return r.task.DeadlineAt }, func(r *record) bool {
		return !r.task.Status.Terminal() && r.seen && r.task.CancelRequestedAt.IsZero() && r.checkedAt.Before(checkedBefore)
	})
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var looks []mediagate.Look
	for _, id := range ids {
		r := s.tasks[id]
		later := cmp.Or(r.task.DeadlineAt.Compare(after.DeadlineAt), cmp.Compare(id, after.TaskID)) > 0
		if len(looks) < limit && (after.TaskID == "" || later) {
			looks = append(looks, mediagate.Look{TaskID: id, DeadlineAt: r.task.DeadlineAt, CheckedAt: r.checkedAt})
		}
	}
	return looks, nil
}

// UnsettledTasks lists open tasks whose last attempt ended a while ago, with no
// signal outstanding.
func (s *Store) UnsettledTasks(ctx context.Context, olderThan time.Duration, after string, limit int) ([]string, error) {
	return s.find(ctx, "UnsettledTasks", limit, byID, func(r *record) bool {
		id := r.task.ID
		if r.task.Status.Terminal() || !r.task.ParkedAt.IsZero() || id <= after || len(r.attempts) == 0 ||
			slices.ContainsFunc(s.awaits, func(w *awaitRow) bool { return w.TaskID == id }) {
			return false
		}
		last := r.attempts[len(r.attempts)-1]
		return last.Outcome != nil && s.clock().Sub(last.EndedAt) > olderThan
	})
}

// UntoldEnds lists tasks that ended a while ago, with a signal outstanding.
func (s *Store) UntoldEnds(ctx context.Context, olderThan time.Duration, after string, limit int) ([]string, error) {
	return s.find(ctx, "UntoldEnds", limit, byID, func(r *record) bool {
		id := r.task.ID
		return r.task.Status.Terminal() && s.clock().Sub(r.task.EndedAt) > olderThan && id > after &&
			slices.ContainsFunc(s.awaits, func(w *awaitRow) bool { return w.TaskID == id && w.Ended })
	})
}

// OldestOpen is when the oldest open task was created.
func (s *Store) OldestOpen(ctx context.Context) (oldest time.Time, err error) {
	unlock, err := s.lock(ctx, "OldestOpen")
	defer unlock()
	if err != nil {
		return oldest, err
	}
	for _, r := range s.tasks {
		if at := r.task.CreatedAt; !r.task.Status.Terminal() && (oldest.IsZero() || at.Before(oldest)) {
			oldest = at
		}
	}
	return oldest, nil
}

// MarkChecked notes that tasks were looked at, and have a run if seen.
func (s *Store) MarkChecked(ctx context.Context, ids []string, seen bool) error {
	unlock, err := s.lock(ctx, "MarkChecked")
	defer unlock()
	if err != nil {
		return err
	}
	for _, id := range ids {
		if r, ok := s.tasks[id]; ok && !s.Skip[id] {
			r.seen, r.checkedAt = r.seen || seen, s.clock()
		}
	}
	return nil
}

// StaleCancels reads open tasks whose cancel no run has taken.
func (s *Store) StaleCancels(ctx context.Context, olderThan time.Duration, after string, limit int) ([]mediagate.Task, string, error) {
	return s.inTurns(ctx, "StaleCancels", after, limit, func(r *record) time.Time { return r.task.CancelRequestedAt },
		func(r *record) bool { return !r.task.Status.Terminal() && !r.task.CancelRequestedAt.IsZero() },
		func(r *record) bool {
			return s.clock().Sub(r.task.CancelRequestedAt) > olderThan && s.clock().Sub(r.checkedAt) > olderThan
		})
}

// UntakenActions lists commands that nobody took.
func (s *Store) UntakenActions(ctx context.Context, olderThan time.Duration, after mediagate.Action, limit int) ([]mediagate.Action, error) {
	unlock, err := s.lock(ctx, "UntakenActions")
	defer unlock()
	if err != nil {
		return nil, err
	}
	out := []mediagate.Action{}
	for _, a := range s.actions {
		r, ok := s.tasks[a.TaskID]
		later := after.ID == "" || cmp.Or(a.At.Compare(after.At), cmp.Compare(a.ID, after.ID)) > 0
		if ok && later && !r.task.Status.Terminal() && a.State == "pending" && s.clock().Sub(a.At) > olderThan {
			out = append(out, *a)
		}
	}
	slices.SortStableFunc(out, func(a, b mediagate.Action) int { return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.ID, b.ID)) })
	return out[:min(limit, len(out))], nil
}

// PendingWebhooks offers rounds that nobody finished, once a while.
func (s *Store) PendingWebhooks(ctx context.Context, olderThan, stuckAfter time.Duration, limit int) ([]mediagate.WebhookRound, error) {
	return s.rounds(ctx, "PendingWebhooks", limit, func(r *record) bool {
		if s.clock().Sub(r.pending) <= olderThan {
			return false
		}
		r.pending = s.clock()
		if r.rescueAt.IsZero() {
			r.rescueAt = r.pending.Add(stuckAfter - olderThan)
		}
		return true
	})
}

// StuckWebhooks offers rounds that take too long.
func (s *Store) StuckWebhooks(ctx context.Context, again time.Duration, limit int) ([]mediagate.WebhookRound, error) {
	return s.rounds(ctx, "StuckWebhooks", limit, func(r *record) bool {
		return !r.rescueAt.IsZero() && s.rescue(r, again)
	})
}

func (s *Store) rounds(ctx context.Context, method string, limit int, match func(*record) bool) ([]mediagate.WebhookRound, error) {
	ids, err := s.find(ctx, method, limit, byID, func(r *record) bool {
		w := r.task.Webhook
		return w != nil && w.Round > 0 && w.State == mediagate.WebhookPending && match(r)
	})
	rounds := make([]mediagate.WebhookRound, len(ids))
	for i, id := range ids {
		rounds[i] = mediagate.WebhookRound{TaskID: id, AccountID: s.tasks[id].task.AccountID, Round: 1}
	}
	return rounds, err
}

// longestPause is how rare the rescues of a row become, in units of the first.
const longestPause = 24

// rescue claims a row whose time has come. The pauses double from the second on,
// up to the longest; a rescue that lies further back than that is forgotten.
func (s *Store) rescue(r *record, again time.Duration) bool {
	now := s.clock()
	if r.rescueAt.After(now) {
		return false
	}
	if r.rescueAt.Before(now.Add(-longestPause * again)) {
		r.rescues = 0
	}
	r.rescueAt = now.Add(min(again<<min(max(0, r.rescues-1), 5), longestPause*again))
	r.rescues++
	return true
}

// ClaimOverdue offers open tasks that should have ended.
func (s *Store) ClaimOverdue(ctx context.Context, o mediagate.Overdue, limit int) ([]mediagate.Rescue, error) {
	times := map[string]int{}
	ids, err := s.find(ctx, "ClaimOverdue", limit, byID, func(r *record) bool {
		t := r.task
		end := t.DeadlineAt
		switch {
		case !t.QueuedAt.IsZero() && (t.ParkedAt.IsZero() || t.QueuedAt.Add(o.QueueTimeout).Before(t.ParkedAt.Add(o.ParkTimeout))):
			end = t.QueuedAt.Add(o.QueueTimeout)
		case t.ParkedAt.IsZero():
		case t.ParkReason == mediagate.ParkSubmissionUnknown:
			end = end.Add(o.UnknownTimeout)
		default:
			end = t.ParkedAt.Add(o.ParkTimeout)
		}
		found := !t.Status.Terminal() && end.Add(o.Grace).Before(s.clock()) && s.rescue(r, o.Again)
		if found {
			times[t.ID] = r.rescues
		}
		return found
	})
	rescues := make([]mediagate.Rescue, len(ids))
	for i, id := range ids {
		rescues[i] = mediagate.Rescue{TaskID: id, Times: times[id]}
	}
	return rescues, err
}

// AwaitChannels names the channels that have rows.
func (s *Store) AwaitChannels(ctx context.Context) ([]string, error) {
	unlock, err := s.lock(ctx, "AwaitChannels")
	defer unlock()
	if err != nil {
		return nil, err
	}
	waiting := make(map[string]bool)
	for _, w := range s.awaits {
		waiting[w.Channel] = true
	}
	for _, q := range s.queue {
		waiting[q.channel] = true
	}
	return names(waiting), nil
}

// ParkedFor names open tasks that are parked for the reason.
func (s *Store) ParkedFor(ctx context.Context, reason mediagate.ParkReason, after string, limit int) ([]string, error) {
	return s.find(ctx, "ParkedFor", limit, byID, func(r *record) bool {
		return !r.task.Status.Terminal() && r.task.ParkReason == reason && r.task.ID > after
	})
}

// DueSweeps names tasks whose files are to be looked for.
func (s *Store) DueSweeps(ctx context.Context, limit int) ([]mediagate.Sweep, error) {
	ids, err := s.find(ctx, "DueSweeps", limit, func(r *record) time.Time { return r.sweepAt }, func(r *record) bool {
		return !r.sweepAt.IsZero() && r.sweepAt.Before(s.clock())
	})
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	due := make([]mediagate.Sweep, len(ids))
	for i, id := range ids {
		r := s.tasks[id]
		due[i] = mediagate.Sweep{TaskID: id, DueAt: r.sweepAt}
		if last := r.task.EndedAt.Add(2 * mediagate.CopyLimit); s.clock().Before(last) {
			due[i].Again = last
		}
	}
	return due, nil
}

// Erase leaves of an ended task what the database does when its client erases
// it, as far as the workers see it.
func (s *Store) Erase(taskID string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.tasks[taskID]
	t := &r.task
	t.ErasedAt, t.InputsErasedAt, t.Params, t.Plan = s.clock(), s.clock(), mediagate.NoParams, mediagate.Plan{Uploads: t.Plan.Uploads}
	t.Results, t.Made, t.Failure, t.Webhook = nil, nil, t.Failure.Wordless(), nil
	r.sweepAt = s.clock()
}

// SetSweep notes when to look again; the zero time ends it.
func (s *Store) SetSweep(ctx context.Context, due mediagate.Sweep, next time.Time) error {
	unlock, err := s.lock(ctx, "SetSweep")
	defer unlock()
	if err != nil {
		return err
	}
	if r, ok := s.tasks[due.TaskID]; ok && !r.sweepAt.IsZero() && r.sweepAt.Equal(due.DueAt) {
		r.sweepAt = next
	}
	return nil
}

// CountUsage has nothing to count: this store knows no money.
func (s *Store) CountUsage(ctx context.Context, _ int) (int, error) {
	unlock, err := s.lock(ctx, "CountUsage")
	unlock()
	return 0, err
}
