package storage

import (
	"context"
	"slices"
	"strings"
	"time"

	"gorm.io/gorm"

	"github.com/mediagate/mediagate"
)

// Slots (D7). Nothing counts them: a channel's are taken by the attempts of its
// names that have no end, as their jobs run or may run, and by the grants that
// are not used yet. Who takes
// one has locked the channel's row, so that no two take the last one; whoever
// locks a task as well has locked that first.

type queueRow struct {
	TaskID    string
	Channel   string
	N         int
	AccountID string
	Since     stamp
	GrantedAt stamp
	SignalAt  stamp
}

// TableName tells GORM.
func (queueRow) TableName() string { return "queue" }

type turnRow struct {
	Channel   string
	AccountID string
	Served    int64
	Since     stamp
}

// TableName tells GORM.
func (turnRow) TableName() string { return "turns" }

// lockChannel keeps the channel's slots as they are for the rest of the
// transaction, and returns its epoch.
func (s *Store) lockChannel(tx *gorm.DB, name string) (epoch int64, err error) {
	lock := " FOR NO KEY UPDATE"
	if s.lite {
		lock = ""
	}
	for range 2 {
		row, err := one[struct{ Epoch int64 }](tx, "SELECT epoch FROM channels WHERE name = ?"+lock, name)
		if err != nil || row != nil {
			return rowEpoch(row), err
		}
		if _, err := exec(tx, "INSERT INTO channels (name) VALUES (?) ON CONFLICT (name) DO NOTHING", name); err != nil {
			return 0, err
		}
	}
	return 0, notFound("channel", name)
}

func rowEpoch(row *struct{ Epoch int64 }) int64 {
	if row == nil {
		return 0
	}
	return row.Epoch
}

// named is the condition that a column is one of the names. They are few, and
// the planner sees them.
func named(column string, names []string) (condition string, args []any) {
	return column + " IN (?" + strings.Repeat(", ?", len(names)-1) + ")", anys(names)
}

func anys(names []string) []any {
	return convert(names, func(name string) any { return name })
}

// slotsTaken counts the slots that are taken, under the channel's lock.
func (s *Store) slotsTaken(tx *gorm.DB, names []string) (int, error) {
	channels, args := named("channel", names)
	row, err := one[struct{ N int }](tx, `SELECT (SELECT COUNT(*) FROM attempts WHERE `+channels+` AND ended_at IS NULL AND (slot_until IS NULL OR slot_until > ?))
		+ (SELECT COUNT(*) FROM queue WHERE `+channels+` AND granted_at IS NOT NULL) AS n`,
		slices.Concat(args, []any{at(s.clock())}, args)...)
	if err != nil || row == nil {
		return 0, err
	}
	return row.N, nil
}

// takeSlot finds a slot for the task, which must be locked: the one that was
// granted to it, or a free one that nobody waits for. Returns KindCapacity when
// there is none.
func (s *Store) takeSlot(tx *gorm.DB, task lockedTask, channel string, slots mediagate.Slots) error {
	if slots.Limit <= 0 {
		return nil
	}
	if _, err := s.lockChannel(tx, slots.Names[0]); err != nil {
		return err
	}
	channels, args := named("channel", slots.Names)
	found, err := one[struct{ Granted, Waiting bool }](tx, `SELECT
			EXISTS (SELECT 1 FROM queue WHERE task_id = ? AND `+channels+` AND granted_at IS NOT NULL) AS granted,
			EXISTS (SELECT 1 FROM queue WHERE `+channels+` AND granted_at IS NULL AND task_id <> ?) AS waiting`,
		slices.Concat([]any{task.ID}, args, args, []any{task.ID})...)
	switch {
	case err != nil:
		return err
	case found.Granted:
		return nil
	case found.Waiting:
		return noSlot(channel)
	}
	taken, err := s.slotsTaken(tx, slots.Names)
	switch {
	case err != nil:
		return err
	case taken >= slots.Limit:
		return noSlot(channel)
	}
	return s.served(tx, channel, task.AccountID)
}

func noSlot(channel string) error {
	return mediagate.Errorf(mediagate.KindCapacity, "the channel %s has no free slot", channel)
}

// served puts the account behind all others, under the channel's lock.
func (s *Store) served(tx *gorm.DB, channel, account string) error {
	_, err := exec(tx, `INSERT INTO turns (channel, account_id, served, since)
			SELECT ?, ?, COALESCE(MAX(served), 0) + 1, CAST(? AS timestamptz) FROM turns WHERE channel = ?
		ON CONFLICT (channel, account_id) DO UPDATE SET served = excluded.served`, channel, account, at(s.clock()), channel)
	return err
}

// ReleaseSlot stores that the attempt's job runs no more, as the vendor has
// stopped it.
func (s *Store) ReleaseSlot(ctx context.Context, taskID string, n int) error {
	return s.underLock(ctx, taskID, "release slot", func(tx *gorm.DB, _ lockedTask) error {
		now := at(s.clock())
		_, err := exec(tx, `UPDATE attempts SET slot_until = ?, ended_at = CASE WHEN state = 'ended' THEN CAST(? AS timestamptz) END
			WHERE task_id = ? AND n = ? AND ended_at IS NULL`, now, now, taskID, n)
		return err
	})
}

// EndSlots ends the attempts of ended tasks whose jobs have had their time, so
// that nobody looks at them again when slots are counted. Those that somebody writes
// come up again.
func (s *Store) EndSlots(ctx context.Context) error {
	_, err := exec(s.on(ctx), "WITH over AS MATERIALIZED (SELECT task_id, n FROM attempts WHERE ended_at IS NULL AND state = 'ended' AND slot_until <= ?"+s.skipLocked("attempts")+`)
		UPDATE attempts SET ended_at = slot_until FROM over WHERE attempts.task_id = over.task_id AND attempts.n = over.n`, at(s.clock()))
	return dbError(err, "end slots")
}

// Queue lets a task wait until one of the channels has a slot for its attempt n,
// instead of those that it waited for before; a grant that it has is given back.
// It keeps its place. One that is parked stays so: to wait for a slot mends
// nothing (D12). Returns KindConflict when that attempt must not be made, as in
// OpenAttempt, or is there, and KindNotFound.
func (s *Store) Queue(ctx context.Context, taskID string, n int, channels []string) error {
	return s.underLock(ctx, taskID, "queue task", func(tx *gorm.DB, task lockedTask) error {
		last, err := s.lastAttempt(tx, taskID, n)
		if err != nil {
			return err
		}
		if last != nil && last.N == n {
			return conflict("task %s has an attempt %d", taskID, n)
		}
		if err := s.mayOpen(task, last, n); err != nil {
			return err
		}
		if task.QueuedAt.IsZero() {
			task.QueuedAt = at(s.clock())
			if _, err := exec(tx, "UPDATE tasks SET queued_at = ?, run_seen_at = COALESCE(run_seen_at, ?) WHERE id = ?", task.QueuedAt, task.QueuedAt, taskID); err != nil {
				return err
			}
		}
		return s.enqueue(tx, taskID, task.AccountID, n, channels, task.QueuedAt)
	})
}

// enqueue makes the task's rows of the queue those of the channels.
func (s *Store) enqueue(tx *gorm.DB, taskID, accountID string, n int, channels []string, since stamp) error {
	channels = slices.Compact(slices.Sorted(slices.Values(channels))) // locked in one order by all
	for _, channel := range channels {
		if _, err := s.lockChannel(tx, channel); err != nil {
			return err
		}
	}
	among, args := named("channel", channels)
	if _, err := exec(tx, "DELETE FROM queue WHERE task_id = ? AND NOT "+among, append([]any{taskID}, args...)...); err != nil {
		return err
	}
	for _, channel := range channels {
		if _, err := exec(tx, `INSERT INTO queue (task_id, channel, n, account_id, since) VALUES (?, ?, ?, ?, ?)
			ON CONFLICT (task_id, channel) DO UPDATE SET n = excluded.n, granted_at = NULL, signal_at = NULL`,
			taskID, channel, n, accountID, since); err != nil {
			return err
		}
		if _, err := exec(tx, "INSERT INTO turns (channel, account_id, since) VALUES (?, ?, ?) ON CONFLICT (channel, account_id) DO NOTHING",
			channel, accountID, at(s.clock())); err != nil {
			return err
		}
	}
	return nil
}

// leaveQueue ends the waiting for a slot; the deadline moves by the time it took,
// unless that is part of a parking.
func (s *Store) leaveQueue(tx *gorm.DB, task lockedTask) error {
	if task.QueuedAt.IsZero() {
		return nil
	}
	if _, err := exec(tx, "DELETE FROM queue WHERE task_id = ?", task.ID); err != nil {
		return err
	}
	waited := max(0, s.clock().Sub(task.QueuedAt.Time))
	if !task.ParkedAt.IsZero() {
		waited = 0
	}
	_, err := exec(tx, "UPDATE tasks SET deadline_at = ?, queued_at = NULL WHERE id = ?", at(task.DeadlineAt.Add(waited)), task.ID)
	return err
}

// GrantSlots gives the free slots of a channel to tasks that are queued under
// the name, and takes back those that nobody has used. Next is the account that
// was served least recently, and of its tasks the one that has waited longest. Whose
// workflow is to be told is told once, and again after a while: a caller that
// dies before it does so loses nothing. Returns KindConflict, code fenced, when a
// newer epoch has begun.
func (s *Store) GrantSlots(ctx context.Context, g mediagate.Granting) (got mediagate.Granted, err error) {
	err = s.write(ctx, "grant slots", func(tx *gorm.DB) error {
		got = mediagate.Granted{}
		names := []string{g.Channel, g.Slots.Names[0]}
		slices.Sort(names) // locked in one order by all
		for _, name := range slices.Compact(names) {
			epoch, err := s.lockChannel(tx, name)
			if err != nil {
				return err
			}
			if name == g.Channel && epoch != g.Epoch {
				return fenced(g.Channel)
			}
		}
		now := s.clock()
		if _, err := exec(tx, "DELETE FROM queue WHERE channel = ? AND granted_at <= ? AND "+leftBehind, g.Channel, at(now.Add(-g.Again))); err != nil {
			return err
		}
		if _, err := exec(tx, "UPDATE queue SET granted_at = NULL, signal_at = NULL, since = ? WHERE channel = ? AND granted_at <= ?",
			at(now), g.Channel, at(now.Add(-g.TakeBack))); err != nil {
			return err
		}
		taken, err := s.slotsTaken(tx, g.Slots.Names)
		if err != nil {
			return err
		}
		free := g.Most
		if g.Slots.Limit > 0 {
			free = min(free, g.Slots.Limit-taken)
		}
		granted, err := s.grant(tx, g.Channel, free, at(now))
		if err != nil {
			return err
		}
		got.InFlight = taken + granted
		if err := read(tx, &got.Signals, `UPDATE queue SET signal_at = ? WHERE channel = ? AND granted_at IS NOT NULL AND signal_at <= ?
			RETURNING task_id, n`, at(now.Add(g.Again)), g.Channel, at(now)); err != nil {
			return err
		}
		row, err := one[struct{ N int }](tx, "SELECT COUNT(*) AS n FROM queue WHERE channel = ? AND granted_at IS NULL", g.Channel)
		if err == nil {
			got.Waiting = row.N
		}
		return err
	})
	if err != nil {
		return mediagate.Granted{}, err
	}
	return got, nil
}

// waitsOnly is the condition that a row q of the queue waits, and no other
// channel has granted its task a slot.
const waitsOnly = "q.granted_at IS NULL AND NOT EXISTS (SELECT 1 FROM queue o WHERE o.task_id = q.task_id AND o.granted_at IS NOT NULL)"

// leftBehind is the condition that a row of the queue is of an attempt that is
// there, or of a task that has ended: a worker of before the queue made it, or
// ended it, and took nothing out. Such rows would be granted a slot for ever.
const leftBehind = `(EXISTS (SELECT 1 FROM attempts a WHERE a.task_id = queue.task_id AND a.n >= queue.n)
	OR EXISTS (SELECT 1 FROM tasks t WHERE t.id = queue.task_id AND t.status NOT IN ('pending', 'processing')))`

// grant grants up to so many slots, under the channel's lock. Whose they are is to be
// told at once.
func (s *Store) grant(tx *gorm.DB, channel string, most int, now stamp) (granted int, err error) {
	// Who waits is looked for account by account: with EXISTS the planner reads
	// the whole queue first.
	var last int64
	for granted < most {
		turn, err := one[turnRow](tx, "SELECT "+columnsOf[turnRow]().of("t")+` FROM turns t WHERE t.channel = ?
				AND (SELECT 1 FROM queue q WHERE q.channel = t.channel AND q.account_id = t.account_id AND `+waitsOnly+` LIMIT 1) IS NOT NULL
			ORDER BY t.served, t.since, t.account_id LIMIT 1`, channel)
		if err != nil {
			return granted, err
		}
		if turn == nil {
			break
		}
		next, err := one[struct{ TaskID string }](tx, "SELECT q.task_id FROM queue q WHERE q.channel = ? AND q.account_id = ? AND "+waitsOnly+`
			ORDER BY q.since, q.task_id LIMIT 1`, channel, turn.AccountID)
		if err != nil || next == nil {
			return granted, err
		}
		if left, err := exec(tx, "DELETE FROM queue WHERE task_id = ? AND channel = ? AND "+leftBehind, next.TaskID, channel); err != nil {
			return granted, err
		} else if left > 0 {
			continue
		}
		changed, err := exec(tx, "UPDATE queue SET granted_at = ?, signal_at = ? WHERE task_id = ? AND channel = ? AND granted_at IS NULL",
			now, now, next.TaskID, channel)
		if err != nil {
			return granted, err
		}
		if changed == 0 {
			continue // its task has ended, or goes elsewhere
		}
		if err := s.served(tx, channel, turn.AccountID); err != nil {
			return granted, err
		}
		granted, last = granted+1, turn.Served
	}
	if granted == 0 {
		return 0, nil
	}
	// Nobody waits of those who were served longer ago, and whoever comes back
	// is next in either case.
	_, err = exec(tx, `DELETE FROM turns WHERE channel = ? AND served < ?
		AND NOT EXISTS (SELECT 1 FROM queue q WHERE q.channel = turns.channel AND q.account_id = turns.account_id)`, channel, last)
	return granted, err
}

// QueuedTasks counts the tasks that are queued under the name, those among them
// that a slot was granted to, up to limit.
func (s *Store) QueuedTasks(ctx context.Context, channel string, limit int) ([]mediagate.Queued, error) {
	var rows []mediagate.Queued
	err := read(s.on(ctx), &rows, "SELECT task_id, n FROM queue WHERE channel = ? ORDER BY granted_at IS NULL, account_id, since, task_id LIMIT ?", channel, limit)
	return rows, dbError(err, "list queued tasks")
}

// queuedFor names the channels that the task is queued for.
func (s *Store) queuedFor(db *gorm.DB, taskID string) ([]string, error) {
	var rows []struct{ Channel string }
	err := read(db, &rows, "SELECT channel FROM queue WHERE task_id = ? ORDER BY channel", taskID)
	return convert(rows, func(r struct{ Channel string }) string { return r.Channel }), err
}

// ChannelLoad counts the jobs that the channel's vendor account has or may
// have, grants among them, and the tasks that are queued for a slot of it, and
// tells since when the oldest of both is there.
func (s *Store) ChannelLoad(ctx context.Context, name string) (inFlight, queued int, oldest time.Time, err error) {
	db := s.on(ctx)
	inFlight, err = s.slotsTaken(db, []string{name})
	if err != nil {
		return 0, 0, time.Time{}, dbError(err, "read the channel's load")
	}
	row, err := one[struct {
		Queued   int
		Waiting  stamp
		InFlight stamp
	}](db, `SELECT (SELECT COUNT(*) FROM queue WHERE channel = ? AND granted_at IS NULL) AS queued,
		(SELECT MIN(since) FROM queue WHERE channel = ?) AS waiting,
		(SELECT MIN(created_at) FROM attempts WHERE channel = ? AND ended_at IS NULL AND (slot_until IS NULL OR slot_until > ?)) AS in_flight`,
		name, name, name, at(s.clock()))
	if err != nil || row == nil {
		return 0, 0, time.Time{}, dbError(err, "read the channel's load")
	}
	oldest = row.Waiting.Time
	if oldest.IsZero() || !row.InFlight.IsZero() && row.InFlight.Before(oldest) {
		oldest = row.InFlight.Time
	}
	return inFlight, row.Queued, oldest, nil
}
