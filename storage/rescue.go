package storage

import (
	"context"
	"strings"
	"time"

	"github.com/mediagate/mediagate"
)

// rescueGaps are the pauses between the rescues of one run, in units of the
// first.
var rescueGaps = []time.Duration{1, 1, 2, 4, 8, 16, 24}

// ClaimOverdue offers open tasks that should have ended by now, whether they
// have a run or not (D2). Each is offered to one caller, and again with growing
// pauses for as long as it stays overdue. A rescue that lies further back than
// the longest of the pauses is forgotten.
func (s *Store) ClaimOverdue(ctx context.Context, o mediagate.Overdue, limit int) ([]mediagate.Rescue, error) {
	const overdue = isOpen + ` AND (
		deadline_at < ? AND parked_at IS NULL AND queued_at IS NULL OR
		queued_at < ? OR
		deadline_at < ? AND parked_at IS NOT NULL AND park_reason = ? OR
		parked_at < ? AND park_reason <> ?)`
	rows, err := s.claimRescues(ctx, "claim overdue tasks", o.Again, limit, overdue,
		s.ago(o.Grace), s.ago(o.Grace+o.QueueTimeout), s.ago(o.Grace+o.UnknownTimeout), mediagate.ParkSubmissionUnknown,
		s.ago(o.Grace+o.ParkTimeout), mediagate.ParkSubmissionUnknown)
	return convert(rows, func(r rescueRow) mediagate.Rescue { return mediagate.Rescue{TaskID: r.ID, Times: r.Rescues} }), err
}

// StuckWebhooks offers delivery rounds that are pending for longer than any
// round takes, in the manner of ClaimOverdue.
func (s *Store) StuckWebhooks(ctx context.Context, again time.Duration, limit int) ([]mediagate.WebhookRound, error) {
	rows, err := s.claimRescues(ctx, "claim stuck webhooks", again, limit,
		"webhook_state = 'pending' AND webhook_round > 0 AND rescue_at IS NOT NULL")
	return convert(rows, func(r rescueRow) mediagate.WebhookRound {
		return mediagate.WebhookRound{TaskID: r.ID, AccountID: r.AccountID, Round: r.WebhookRound}
	}), err
}

type rescueRow struct {
	ID           string
	AccountID    string
	WebhookRound int
	Rescues      int
}

// claimRescues takes those rows that match and whose time has come, and sets
// the next one.
func (s *Store) claimRescues(ctx context.Context, what string, again time.Duration, limit int, match string, args ...any) ([]rescueRow, error) {
	now, last := s.clock(), len(rescueGaps)-1
	all := append([]any{at(now.Add(-rescueGaps[last] * again))}, args...)
	all = append(all, at(now), limit)
	for times, gap := range rescueGaps[:last] {
		all = append(all, times, at(now.Add(gap*again)))
	}
	all = append(all, at(now.Add(rescueGaps[last]*again)))
	var rows []rescueRow
	err := read(s.on(ctx), &rows, `WITH due AS MATERIALIZED (
			SELECT id, CASE WHEN rescue_at < ? THEN 0 ELSE rescues END AS times FROM tasks
			WHERE `+match+` AND (rescue_at IS NULL OR rescue_at <= ?) LIMIT ?`+s.skipLocked("tasks")+`)
		UPDATE tasks SET rescues = due.times + 1, rescue_at = CASE`+
		strings.Repeat(" WHEN due.times = ? THEN CAST(? AS timestamptz)", last)+` ELSE CAST(? AS timestamptz) END
		FROM due WHERE tasks.id = due.id
		RETURNING tasks.id, tasks.account_id, tasks.webhook_round, tasks.rescues`, all...)
	return rows, dbError(err, what)
}
