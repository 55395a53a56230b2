package storage

import (
	"context"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/internal/limit"
)

// openFigures counts the open tasks by what they wait for. It reads only partial indexes, of
// open tasks and of attempts without an end, so ended tasks cost nothing.
//
// A task counts once, at the first WHEN that fits. A stuck task is "parked" even while it waits
// for a slot or for a lookup. Next come the other waits, and then the state of the attempt:
// "submit" while a call may be under way, "lookup" after a lost answer, "vendor" while the job
// runs. Without an open attempt, a task that no vendor has accepted yet is at its "start", and
// any other task at its "end".
//
// since is when the task that has been in the step for the longest time entered it. Depending on the
// step, that is when its wait, its attempt or the vendor's job began, when its last attempt ended, or
// when the task was created.
const openFigures = `SELECT t.type, t.status,
		CASE
			WHEN t.wait_reason <> '' THEN 'parked'
			WHEN t.wait = 'source' THEN 'source'
			WHEN t.wait = 'slot' THEN 'queue'
			WHEN t.wait = 'modal' THEN 'modal'
			WHEN a.state = 'intent' THEN 'submit'
			WHEN a.state = 'unknown' THEN 'lookup'
			WHEN a.state = 'accepted' THEN 'vendor'
			WHEN t.started_at IS NULL THEN 'start'
			ELSE 'end'
		END AS step,
		COUNT(*) AS count,
		MIN(CASE
			WHEN t.wait IN ('source', 'parked', 'slot', 'modal', 'unknown') THEN t.wait_since
			WHEN a.state IN ('intent', 'unknown') THEN a.created_at
			WHEN a.state = 'accepted' THEN a.accepted_at
			ELSE COALESCE((SELECT MAX(e.ended_at) FROM attempts e WHERE e.task_id = t.id), t.created_at)
		END) AS since
	FROM tasks t LEFT JOIN attempts a ON a.task_id = t.id AND a.ended_at IS NULL AND a.given_up_at IS NULL
		AND a.state IN ('intent', 'accepted', 'unknown')
	WHERE t.` + isOpen + ` GROUP BY 1, 2, 3`

// wakeFigures counts wakes by kind. due counts the wakes whose time is over, and tried the wakes that
// the scan has tried at least once. overdue is the earliest time of a due wake. While starts are
// unanswered, new tasks wait in line and do not count as overdue.
const wakeFigures = `SELECT kind, COUNT(*) AS count, COUNT(*) FILTER (WHERE wake_at <= @now) AS due,
		COUNT(*) FILTER (WHERE tries > 0) AS tried, MIN(CASE WHEN wake_at <= @now AND (
			` + goesOn + ` OR NOT EXISTS (SELECT 1 FROM wakes WHERE ` + isUnanswered + `)) THEN wake_at END) AS overdue
	FROM wakes GROUP BY kind`

// channelFigures reads the partial index of attempts without an end, the queue and the await
// rows.
//
// jobs are the taken slots: attempts that hold one (see holdsSlot), and grants. queued are the
// tasks that wait without a grant, and awaited the jobs that are polled for. COUNT(granted_at)
// counts the rows in which it is not NULL. due_at is the earliest poll that is due or will be.
const channelFigures = `SELECT channel, CAST(SUM(jobs) AS bigint) AS jobs, CAST(SUM(queued) AS bigint) AS queued,
		CAST(SUM(awaited) AS bigint) AS awaited, MIN(due_at) AS due_at
	FROM (
		SELECT channel, COUNT(*) AS jobs, 0 AS queued, 0 AS awaited, CAST(NULL AS timestamptz) AS due_at FROM attempts
			WHERE ended_at IS NULL AND (slot_until IS NULL OR slot_until > @now) GROUP BY channel
		UNION ALL SELECT channel, COUNT(granted_at), COUNT(*) - COUNT(granted_at), 0, NULL FROM queue GROUP BY channel
		UNION ALL SELECT channel, 0, 0, COUNT(*), MIN(next_poll_at) FROM awaits GROUP BY channel) AS each_of
	GROUP BY channel`

// unpaidFigures reads the partial index of abandoned attempts. It sums up the jobs and their
// cost by account first. accounts is the number of accounts above their limit, whose submits
// are refused; the parameter is the limit of accounts that set none. Without any limit no
// account counts.
const unpaidFigures = `SELECT CAST(COALESCE(SUM(jobs), 0) AS bigint) AS jobs,
		CAST(COALESCE(SUM(cost), 0) AS bigint) AS cost,
		COUNT(*) FILTER (WHERE cost > COALESCE(unpaid_cap, CAST(? AS bigint))) AS accounts
	FROM (SELECT l.account_id, COUNT(*) AS jobs, SUM(lt.hold) AS cost
			FROM attempts AS l JOIN tasks AS lt ON lt.id = l.task_id
			WHERE l.state = 'abandoned' AND l.given_up_at IS NULL AND lt.status = 'cancelled'
				AND l.account_id IS NOT NULL
			GROUP BY l.account_id) AS of_each
		JOIN accounts ON accounts.id = account_id`

// endpointFigures reads the partial index of pending deliveries. The join leaves out deliveries
// of deleted endpoints, which no sender claims any more.
const endpointFigures = `SELECT COUNT(*) AS pending, MIN(d.next_at) AS due_at
	FROM endpoint_deliveries d JOIN endpoints e ON e.id = d.endpoint_id WHERE d.state = 'pending'`

// Figures counts what is under way, for the metrics. Each statement is a snapshot of its own,
// without locks, so the counts may differ by what happens between two of them.
func (s *Store) Figures(ctx context.Context) (f mediagate.Figures, err error) {
	f.At = s.clock()
	// All statements compare with the same time.
	now := map[string]any{"now": at(f.At)}
	if f.Stuck, err = s.StuckCounts(ctx, mediagate.TaskFilter{}); err != nil {
		return f, err
	}
	var open []struct {
		mediagate.OpenTasks
		Since stamp
	}
	if err := read(s.on(ctx), &open, openFigures); err != nil {
		return f, dbError(err, "count open tasks")
	}
	for _, r := range open {
		r.OpenTasks.Since = r.Since.Time
		f.Open = append(f.Open, r.OpenTasks)
	}
	var wakes []struct {
		mediagate.WakeFigures
		Overdue stamp
	}
	if err := read(s.on(ctx), &wakes, wakeFigures, now); err != nil {
		return f, dbError(err, "count wakes")
	}
	for _, r := range wakes {
		r.WakeFigures.Overdue = r.Overdue.Time
		f.Wakes = append(f.Wakes, r.WakeFigures)
	}
	unpaid, err := one[struct {
		mediagate.Abandoned
		Accounts int
	}](s.on(ctx), unpaidFigures, s.defaults.Unpaid)
	if err != nil {
		return f, dbError(err, "count abandoned jobs")
	}
	f.Abandoned, f.Unpaid = unpaid.Abandoned, unpaid.Accounts
	endpoints, err := one[struct {
		Pending int
		DueAt   stamp
	}](s.on(ctx), endpointFigures)
	if err != nil {
		return f, dbError(err, "count pending deliveries")
	}
	f.Endpoints = mediagate.EndpointFigures{Pending: endpoints.Pending, DueAt: endpoints.DueAt.Time}
	var channels []struct {
		mediagate.ChannelFigures
		DueAt stamp
	}
	if err := read(s.on(ctx), &channels, channelFigures, now); err != nil {
		return f, dbError(err, "count jobs")
	}
	for _, r := range channels {
		r.ChannelFigures.DueAt = r.DueAt.Time
		f.Channels = append(f.Channels, r.ChannelFigures)
	}
	return f, nil
}

// Limits returns how many connections to the database are in use. Config.MaxOpenConns is the
// capacity on PostgreSQL.
func (s *Store) Limits() []limit.Figures {
	st := s.sql.Stats()
	return []limit.Figures{{Name: "database", Capacity: int64(st.MaxOpenConnections), Held: int64(st.InUse)}}
}
