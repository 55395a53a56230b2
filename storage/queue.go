package storage

import (
	"context"
	"slices"
	"strings"
	"time"

	"gorm.io/gorm"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/task"
)

// Slots (D7) have no counter. The taken slots of a channel are the attempts under any of its names
// whose jobs run or may run (holdsSlot), and the grants that are not used yet. A transaction that
// takes a slot locks the channel's row first, so that no two transactions take the last slot. If it
// also locks a task, it locks the task before the channel.

// loadQueue reads the channels for which the task is queued, and whether one of them has granted it
// a slot.
//
// A change has locked the task's row but not its queue rows, so a channel may grant a slot at the
// same time. GrantSlots then brings the task's wake forward, and the next question sees the grant.
func (s *Store) loadQueue(tx *gorm.DB, st *task.State) error {
	var rows []struct {
		Channel string
		Granted bool
	}
	if err := read(tx, &rows, `SELECT channel, granted_at IS NOT NULL FROM queue
		WHERE task_id = ? ORDER BY channel`, st.ID); err != nil {
		return err
	}
	for _, r := range rows {
		st.QueuedFor = append(st.QueuedFor, r.Channel)
		// Two channels may both have granted a slot. Using one of them deletes both rows (saveQueue).
		st.Granted = st.Granted || r.Granted
	}
	return nil
}

// saveQueue inserts, updates or deletes the task's queue rows.
func (s *Store) saveQueue(tx *gorm.DB, before, after *task.State) error {
	was, is := before.Wait.Why == mediagate.WhySlot, after.Wait.Why == mediagate.WhySlot
	switch {
	case !is && !was:
		return nil
	// The task uses its slot, parks, or ends: its places in all queues go, and unused grants with
	// them.
	case !is:
		_, err := exec(tx, "DELETE FROM queue WHERE task_id = ?", after.ID)
		return err
	// Nothing about the queues has changed, so no channel needs to be locked.
	case was && before.Wait.Since.Equal(after.Wait.Since) &&
		before.Granted == after.Granted && slices.Equal(before.QueuedFor, after.QueuedFor):
		return nil
	default:
		return s.enqueue(tx, after)
	}
}

// lockChannel locks the channel's row, and so its slots, until the transaction ends. It returns the
// channel's epoch.
//
// The lock is NO KEY UPDATE. Writers of the same channel wait for each other; other channels are
// independent.
func (s *Store) lockChannel(tx *gorm.DB, name string) (epoch int64, err error) {
	// A channel has no row before its first use. The second round locks the row that this or another
	// transaction has just made.
	for range 2 {
		row, err := one[struct{ Epoch int64 }](tx,
			"SELECT epoch FROM channels WHERE name = ?"+s.lock("FOR NO KEY UPDATE"), name)
		if err != nil {
			return 0, err
		}
		if row != nil {
			return row.Epoch, nil
		}
		_, err = exec(tx, "INSERT INTO channels (name) VALUES (?) ON CONFLICT (name) DO NOTHING", name)
		if err != nil {
			return 0, err
		}
	}
	return 0, notFound("channel", name)
}

// named is the condition that a column is one of the names. The names are few, and each is a
// parameter of its own, because the planner can then estimate how many rows match.
func named[T ~string](column string, names []T) (condition string, args []any) {
	condition = column + " IN (?" + strings.Repeat(", ?", len(names)-1) + ")"
	return condition, convert(names, func(name T) any { return name })
}

// holdsSlot is the condition that an attempt has a slot. Its parameter is the time.
//
// slot_until is NULL while the job is known to run or to be on its way. If it is not known whether
// the job runs, the slot is free after three times the job's expected duration (D7).
// The partial index attempts_slots (channel, where ended_at IS NULL) serves the condition.
const holdsSlot = "ended_at IS NULL AND (slot_until IS NULL OR slot_until > ?)"

// slotsTaken counts the taken slots. The caller has locked the channel.
//
// Attempts count by the index attempts_slots, grants by queue_granted. Without the channel's lock,
// as in ChannelLoad, the number is only a snapshot.
func (s *Store) slotsTaken(tx *gorm.DB, names []string) (int, error) {
	channels, args := named("channel", names)
	row, err := one[struct{ N int }](tx, `SELECT
			(SELECT COUNT(*) FROM attempts WHERE `+channels+` AND `+holdsSlot+`)
			+ (SELECT COUNT(*) FROM queue WHERE `+channels+` AND granted_at IS NOT NULL) AS n`,
		slices.Concat(args, []any{at(s.clock())}, args)...)
	if err != nil || row == nil {
		return 0, err
	}
	return row.N, nil
}

// takeSlot takes a slot for a locked task: the slot that was granted to it, or a free slot for which
// no other task is queued. Returns KindCapacity when there is none.
//
// Example of the race that the lock closes: the last of 10 slots is free, and two tasks submit at
// the same time. The first transaction counts 9, stores its intent and commits. Only then the
// second one counts, finds 10 and returns KindCapacity.
func (s *Store) takeSlot(tx *gorm.DB, taskID, accountID, channel string, slots mediagate.Slots) error {
	// A channel without a limit is never locked (ADR 9).
	if slots.Limit <= 0 {
		return nil
	}
	// The first name is the channel's present one. Its row is the lock of all its names.
	if _, err := s.lockChannel(tx, slots.Names[0]); err != nil {
		return err
	}
	channels, args := named("channel", slots.Names)
	// A queued task of another account or of this one must not be overtaken, so any ungranted row of
	// another task refuses the free slot. The index queue_waiting serves the second EXISTS.
	found, err := one[struct{ Granted, Waiting bool }](tx, `SELECT
			EXISTS (SELECT 1 FROM queue WHERE task_id = ? AND `+channels+` AND granted_at IS NOT NULL) AS granted,
			EXISTS (SELECT 1 FROM queue WHERE `+channels+` AND granted_at IS NULL AND task_id <> ?) AS waiting`,
		slices.Concat([]any{taskID}, args, args, []any{taskID})...)
	switch {
	case err != nil:
		return err
	// The grant is counted already, and the account has had its turn. The intent deletes the grant in
	// the same transaction and takes its place.
	case found.Granted:
		return nil
	case found.Waiting:
		return noSlot(channel)
	}
	taken, err := s.slotsTaken(tx, slots.Names)
	if err != nil {
		return err
	}
	if taken >= slots.Limit {
		return noSlot(channel)
	}
	return s.served(tx, channel, accountID)
}

func noSlot(channel string) error {
	return mediagate.Errorf(mediagate.KindCapacity, "the channel %s has no free slot", channel)
}

// served moves the account behind all others in the channel's round robin. The caller has locked the
// channel.
//
// served is a count, not a time: the account gets one more than the highest number of the channel.
// An account that is new in the channel is inserted the same way.
func (s *Store) served(tx *gorm.DB, channel, account string) error {
	_, err := exec(tx, `INSERT INTO turns (channel, account_id, served, since)
			SELECT ?, ?, COALESCE(MAX(served), 0) + 1, CAST(? AS timestamptz) FROM turns WHERE channel = ?
		ON CONFLICT (channel, account_id) DO UPDATE SET served = excluded.served`,
		channel, account, at(s.clock()), channel)
	return err
}

// expireBatch is how many attempts ExpireSlots closes at once.
//
// The bound keeps the transaction short; the next call takes the rest.
const expireBatch = 1000

// ExpireSlots ends abandoned attempts whose slots have expired. It is event SlotExpired of package
// task for many rows. It leaves out attempts whose tasks are locked; the next call finds them again.
// The UPDATE repeats the conditions, because the vendor may have reported the job's end since the
// attempt was selected.
func (s *Store) ExpireSlots(ctx context.Context) error {
	return s.write(ctx, "expire slots", func(tx *gorm.DB) error {
		now := at(s.clock())
		var rows []struct{ TaskID string }
		// The partial index attempts_abandoned (slot_until) finds the rows. The rows of their tasks are
		// locked, as for every change of an attempt, and MATERIALIZED makes PostgreSQL lock and limit
		// before it updates.
		if err := read(tx, &rows, `WITH over AS MATERIALIZED (
				SELECT a.task_id, a.n FROM attempts a JOIN tasks t ON t.id = a.task_id
				WHERE a.state = 'abandoned' AND a.slot_until <= ? LIMIT ?`+s.skipLocked("t")+`)
			UPDATE attempts SET state = 'ended', ended_at = ?, slot_until = NULL
			FROM over WHERE attempts.task_id = over.task_id AND attempts.n = over.n
				AND attempts.state = 'abandoned' AND attempts.slot_until <= ?
			RETURNING attempts.task_id`, now, expireBatch, now, now); err != nil || len(rows) == 0 {
			return err
		}
		ids, err := jsonText(convert(rows, func(r struct{ TaskID string }) string { return r.TaskID }))
		if err != nil {
			return err
		}
		// An ended attempt is not polled any more.
		_, err = exec(tx, `DELETE FROM awaits WHERE task_id IN `+s.inList()+`
			AND (SELECT state FROM attempts a WHERE a.task_id = awaits.task_id AND a.n = awaits.n) = 'ended'`, ids)
		return err
	})
}

// enqueue replaces the task's queue rows by rows for the channels for which it waits.
//
// If a channel stays among them, its row keeps the column since, so the task keeps its place there.
// A grant in that row is taken back.
func (s *Store) enqueue(tx *gorm.DB, st *task.State) error {
	// n is the number of the attempt that the slot is for: the one after the last.
	n, now := 1, at(s.clock())
	if a := st.Last(); a != nil {
		n = a.N + 1
	}
	channels := slices.Compact(slices.Sorted(slices.Values(st.QueuedFor))) // sorted: no deadlock
	for _, channel := range channels {
		if _, err := s.lockChannel(tx, channel); err != nil {
			return err
		}
	}
	among, args := named("channel", channels)
	args = append([]any{st.ID}, args...)
	if _, err := exec(tx, "DELETE FROM queue WHERE task_id = ? AND NOT "+among, args...); err != nil {
		return err
	}
	for _, channel := range channels {
		if _, err := exec(tx, `INSERT INTO queue (task_id, channel, n, account_id, since) VALUES (?, ?, ?, ?, ?)
			ON CONFLICT (task_id, channel) DO UPDATE SET n = excluded.n, granted_at = NULL`,
			st.ID, channel, n, st.AccountID, now); err != nil {
			return err
		}
		// An account without a row in turns would get no grant. A new row has served 0, so the account
		// comes before all accounts that were served.
		if _, err := exec(tx, `INSERT INTO turns (channel, account_id, since) VALUES (?, ?, ?)
			ON CONFLICT (channel, account_id) DO NOTHING`, channel, st.AccountID, now); err != nil {
			return err
		}
	}
	return nil
}

// GrantSlots grants the free slots of a channel to tasks that are queued for it, and takes back
// grants that were not used in time. The account that was served least recently comes next, with its
// task that has waited longest. GrantSlots brings forward the wakes of the tasks that get a slot and
// changes nothing else of these tasks: when a task's run asks, package task sees the grant and ends
// the wait (D7). Returns KindConflict with code fenced when a newer epoch has begun.
//
// GrantSlots locks no task's row. It writes queue rows under the lock of the channel, and wakes
// last. If a task ends or parks at the same time, the task's own transaction deletes the queue
// rows, and the grant finds no row or is deleted with it.
func (s *Store) GrantSlots(ctx context.Context, g mediagate.Granting) (got mediagate.Granted, err error) {
	err = s.write(ctx, "grant slots", func(tx *gorm.DB) error {
		got = mediagate.Granted{}
		// g.Channel may be a former name of the channel. Its row has the poller's epoch, and the row of
		// the present name is the lock of the slots.
		names := []string{g.Channel, g.Slots.Names[0]}
		slices.Sort(names) // no deadlock
		for _, name := range slices.Compact(names) {
			epoch, err := s.lockChannel(tx, name)
			if err != nil {
				return err
			}
			// A newer poller of the channel has begun. This one must not grant any more (D8).
			if name == g.Channel && epoch != g.Epoch {
				return fenced(g.Channel)
			}
		}
		now := s.clock()
		// An unused grant goes back, and its task goes behind the others of its account. Normally no
		// row matches. The index queue_granted (channel, granted_at) serves the statement.
		if _, err := exec(tx, "UPDATE queue SET granted_at = NULL, since = ? WHERE channel = ? AND granted_at <= ?",
			at(now), g.Channel, at(now.Add(-g.TakeBack))); err != nil {
			return err
		}
		taken, err := s.slotsTaken(tx, g.Slots.Names)
		if err != nil {
			return err
		}
		// Most is 0 while the channel takes no jobs: then grants are only taken back.
		free := g.Most
		if g.Slots.Limit > 0 {
			free = min(free, g.Slots.Limit-taken)
		}
		granted, err := s.grant(tx, g.Channel, free, now)
		if err != nil {
			return err
		}
		got.InFlight = taken + len(granted)
		got.Tasks = convert(granted, func(w mediagate.Wake) string { return w.TaskID })
		if err := s.wakeRuns(tx, granted); err != nil {
			return err
		}
		row, err := one[struct{ N int }](tx,
			"SELECT COUNT(*) AS n FROM queue WHERE channel = ? AND granted_at IS NULL", g.Channel)
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

// waitsOnly is the condition that no channel has granted a slot to the task of queue row q.
//
// A task that is queued for two channels must not get a slot at both, so a grant of another
// channel counts. Two channels may still grant at the same moment; one grant is then superfluous
// (ADR 9).
const waitsOnly = `q.granted_at IS NULL
	AND NOT EXISTS (SELECT 1 FROM queue o WHERE o.task_id = q.task_id AND o.granted_at IS NOT NULL)`

// grant grants slots, no more than most allows, and returns the wakes of their tasks. The caller has
// locked the channel.
//
// An example: account A has 1000 queued tasks, account B one, and three slots are free. The grants
// go to A, B, A, if neither was served before and A came first.
func (s *Store) grant(tx *gorm.DB, channel string, most int, now time.Time) (granted []mediagate.Wake, err error) {
	// A subquery with LIMIT looks into the queue account by account. With EXISTS the planner
	// would read the whole queue first.
	var last int64
	for len(granted) < most {
		turn, err := one[struct {
			AccountID string
			Served    int64
		}](tx, `SELECT t.account_id, t.served FROM turns t
			WHERE t.channel = ? AND (
				SELECT 1 FROM queue q
				WHERE q.channel = t.channel AND q.account_id = t.account_id AND `+waitsOnly+` LIMIT 1) IS NOT NULL
			ORDER BY t.served, t.since, t.account_id LIMIT 1`, channel)
		if err != nil {
			return granted, err
		}
		if turn == nil {
			break
		}
		// The index queue_waiting (channel, account_id, since, task_id) has the account's tasks in the
		// order of their wait.
		next, err := one[struct{ TaskID string }](tx, `SELECT q.task_id FROM queue q
			WHERE q.channel = ? AND q.account_id = ? AND `+waitsOnly+`
			ORDER BY q.since, q.task_id LIMIT 1`, channel, turn.AccountID)
		if err != nil || next == nil {
			return granted, err
		}
		changed, err := exec(tx, `UPDATE queue SET granted_at = ?
			WHERE task_id = ? AND channel = ? AND granted_at IS NULL`, at(now), next.TaskID, channel)
		if err != nil {
			return granted, err
		}
		if changed == 0 {
			continue // its task has ended, or goes elsewhere
		}
		if err := s.served(tx, channel, turn.AccountID); err != nil {
			return granted, err
		}
		// last is the count that the account had before this grant.
		last = turn.Served
		granted = append(granted, mediagate.Wake{
			TaskID:    next.TaskID,
			AccountID: turn.AccountID,
			// The poller signals these runs after the commit. If the signals are lost, the wake scan finds
			// the tasks after signalLease.
			At: now.Add(signalLease),
		})
	}
	if len(granted) == 0 {
		return nil, nil
	}
	// Accounts that were served longer ago than the last one, and have no queued tasks, need no row:
	// when they return they come first, with or without it.
	_, err = exec(tx, `DELETE FROM turns WHERE channel = ? AND served < ? AND NOT EXISTS (
		SELECT 1 FROM queue q WHERE q.channel = turns.channel AND q.account_id = turns.account_id)`, channel, last)
	return granted, err
}

// QueuedTasks lists up to limit tasks that are queued for the channel, those with a granted slot
// first.
func (s *Store) QueuedTasks(ctx context.Context, channel string, limit int) ([]mediagate.Queued, error) {
	var rows []mediagate.Queued
	err := read(s.on(ctx), &rows, `SELECT task_id, n FROM queue WHERE channel = ?
		ORDER BY granted_at IS NULL, account_id, since, task_id LIMIT ?`, channel, limit)
	return rows, dbError(err, "list queued tasks")
}

// ChannelLoad counts the jobs that the channel's vendor account has or may have, grants included,
// and the tasks that are queued for a slot. oldest is when the oldest of these jobs and tasks began
// to run or to wait.
//
// ChannelLoad takes no lock, so the numbers may be a moment old. oldest is zero if there are no
// jobs and no tasks.
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
		(SELECT MIN(created_at) FROM attempts WHERE channel = ? AND `+holdsSlot+`) AS in_flight`,
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
