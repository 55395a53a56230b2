package storage

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"

	"gorm.io/gorm"

	"github.com/mediagate/mediagate"
)

// Retention works through the rows of a kind in the order of their ids, which begin with their time.
// Each transaction works on one slice of ids. A run begins at a mark, before which nothing is left to
// remove. So retention needs no index of its own, and a slice costs the same however large the table
// is.

// retentionSlice is how many ids a transaction reads. It is part of the statements' text, because for
// a parameter PostgreSQL would expect a tenth of the table.
const retentionSlice = 500

// retained says how a kind of rows is removed. The conditions are about the id s.id. In all texts
// @before is the time before which rows are too old, @now is the time now, and @ids a list of ids.
type retained struct {
	// id is the column by which the rows are ordered. Rows of deliveries, for example, are removed by
	// the id of their task.
	table, id string // ids of the column begin with prefix and a time
	prefix    string
	due       string   // the condition that the row may be removed (D16)
	settled   string   // the condition of rows that are not due now and never become due; empty: false
	locked    bool     // the tasks' rows are locked, and the condition is checked again
	remove    []string // the statements; the rows of the last one are counted
}

const (
	// keptForever is the condition that a task's results are kept for ever, see mediagate.Plan.
	keptForever = `t.status = 'completed' AND t.document LIKE '%"keep_forever":true%'`
	// hasFiles is the condition that the row names files, see forgetFiles.
	hasFiles = `t.results LIKE '%"key":"%' AND t.results NOT LIKE '%"key":""%'`
	// ofOne ends a subquery about one id. Because of the OFFSET, PostgreSQL runs the subquery for
	// each id by an index. Otherwise it might turn it into a join and read the whole table.
	ofOne = " LIMIT 1 OFFSET 0)"
	// isWorkedOn is the condition that an open task works on this one, or uses its files.
	isWorkedOn = `(EXISTS (SELECT 1 FROM tasks f
			WHERE f.source_id = s.id AND f.source_id <> '' AND f.` + isOpen + ofOne + `
		OR EXISTS (SELECT 1 FROM sources u WHERE u.source_id = s.id
			AND EXISTS (SELECT 1 FROM tasks f WHERE f.id = u.task_id AND f.` + isOpen + ofOne + ofOne + ")"
	// isRemembered is the condition that an idempotency record of the task may still be used.
	isRemembered = `EXISTS (SELECT 1 FROM idempotency i
		WHERE i.task_id = s.id AND (i.expires_at IS NULL OR i.expires_at > @now)` + ofOne
)

var retention = map[mediagate.Removal]retained{
	// Delivery attempts go when all attempts of their task are old and no round of its callback is
	// open.
	mediagate.RemoveDeliveries: {
		table: "deliveries", id: "task_id", prefix: "task_",
		due: `NOT EXISTS (SELECT 1 FROM deliveries d WHERE d.task_id = s.id AND d.at >= @before` + ofOne + `
			AND NOT EXISTS (SELECT 1 FROM wakes w WHERE w.task_id = s.id AND w.kind = 'round'` + ofOne,
		remove: []string{"DELETE FROM deliveries WHERE task_id IN @ids AND at < @before"},
	},
	// Deliveries to endpoints go when all deliveries of their event are old. A pending delivery stays
	// while its endpoint exists; no sender claims a delivery without an endpoint.
	mediagate.RemoveEndpointDeliveries: {
		table: "endpoint_deliveries", id: "event_id", prefix: mediagate.EventPrefix,
		due: `NOT EXISTS (SELECT 1 FROM endpoint_deliveries d WHERE d.event_id = s.id AND (d.created_at >= @before
			OR d.state = 'pending' AND EXISTS (SELECT 1 FROM endpoints e WHERE e.id = d.endpoint_id` + ofOne + `)` + ofOne,
		remove: []string{"DELETE FROM endpoint_deliveries WHERE event_id IN @ids"},
	},
	// Idempotency records go when no record of their task is in use. Records of open tasks have no
	// expiry, and stay.
	mediagate.RemoveIdempotency: {
		table: "idempotency", id: "task_id", prefix: "task_",
		due:    "NOT " + isRemembered,
		remove: []string{"DELETE FROM idempotency WHERE task_id IN @ids AND expires_at <= @now"},
	},
	// The files of old completed tasks go, unless they are kept for ever or an open task uses them.
	// remove is nil: the rows stay without the keys of their objects (forgetFiles). A task is settled
	// if its end is old enough and no open task works on it. This includes tasks that failed or keep
	// their files for ever, since they never become due.
	mediagate.RemoveResults: {
		table: "tasks", id: "id", prefix: "task_",
		due: `EXISTS (SELECT 1 FROM tasks t WHERE t.id = s.id AND t.status = 'completed' AND t.ended_at < @before
			AND ` + hasFiles + ` AND NOT (` + keptForever + `)` + ofOne + `
			AND NOT ` + isWorkedOn,
		settled: `NOT EXISTS (SELECT 1 FROM tasks t
			WHERE t.id = s.id AND (t.ended_at IS NULL OR t.ended_at >= @before)` + ofOne + `
			AND NOT ` + isWorkedOn,
		locked: true,
	},
	// A task goes if it ended long enough ago and nothing else needs its row (D16): no open round, no
	// planned sweep of its files, no wake, no job that may still run, no vendor's charge that is not
	// counted yet, no idempotency record in use, and no open task that works on it. Only tasks that
	// are kept for ever are settled.
	mediagate.RemoveTasks: {
		table: "tasks", id: "id", prefix: "task_",
		due: `EXISTS (SELECT 1 FROM tasks t WHERE t.id = s.id AND t.ended_at < @before
				AND t.webhook_state <> 'pending' AND t.sweep_at IS NULL AND NOT (` + keptForever + `)` + ofOne + `
			AND NOT EXISTS (SELECT 1 FROM wakes w WHERE w.task_id = s.id` + ofOne + `
			AND NOT EXISTS (SELECT 1 FROM awaits w WHERE w.task_id = s.id` + ofOne + `
			AND NOT EXISTS (SELECT 1 FROM attempts a
				WHERE a.task_id = s.id AND (a.state = 'abandoned' OR a.vendor_uncounted_at IS NOT NULL)` + ofOne + `
			AND NOT ` + isRemembered + `
			AND NOT ` + isWorkedOn,
		settled: "EXISTS (SELECT 1 FROM tasks t WHERE t.id = s.id AND " + keptForever + ofOne,
		locked:  true,
		remove: []string{
			// Rows that refer to tasks by a foreign key go before the tasks. due excludes tasks with await
			// rows, which refer to attempts.
			"DELETE FROM attempts WHERE task_id IN @ids",
			"DELETE FROM actions WHERE task_id IN @ids",
			"DELETE FROM deliveries WHERE task_id IN @ids",
			// The event of a task's end has the task's ULID, so its id is the prefix of events and the
			// task's id without "task_".
			"DELETE FROM endpoint_deliveries WHERE event_id IN " +
				"(SELECT '" + mediagate.EventPrefix + "' || substr(id, 6) FROM tasks WHERE id IN @ids)",
			"DELETE FROM queue WHERE task_id IN @ids",
			"DELETE FROM assets WHERE task_id IN @ids",
			"DELETE FROM idempotency WHERE task_id IN @ids",
			"DELETE FROM sources WHERE task_id IN @ids",
			// Ended tasks may still name the removed task as their source.
			"DELETE FROM sources WHERE source_id IN @ids",
			"DELETE FROM tasks WHERE id IN @ids",
		},
	},
	mediagate.RemoveSpeeches: {
		table: "speeches", id: "id", prefix: "speech_",
		due:    "EXISTS (SELECT 1 FROM speeches p WHERE p.id = s.id AND p.ended_at < @before" + ofOne,
		remove: []string{"DELETE FROM speeches WHERE id IN @ids"},
	},
	mediagate.RemoveAudit: {
		table: "audit", id: "id", prefix: "aud_",
		due:    "EXISTS (SELECT 1 FROM audit a WHERE a.id = s.id AND a.at < @before" + ofOne,
		remove: []string{"DELETE FROM audit WHERE id IN @ids"},
	},
}

// candidate is an id of a slice.
//
// Due and Settled are the conditions of retained, as they were when the slice was read.
type candidate struct {
	ID      string
	Due     bool
	Settled bool
}

// RemoveRows removes the due rows of the next slice of a kind: rows older than before. after is the
// last id of the slice before. The first slice of a run has an empty after and begins at the mark. A
// slice is one transaction and may be repeated.
//
// The mark moves past the rows at the beginning of the slice that are gone or settled, and only if
// the slice began at the mark. Example: the slice has the ids 1 to 5, and 3 is not due yet. The
// mark moves to 2. The same run goes on after 5, and the next run begins at 2 again and meets 3.
//
// The row of retention is locked first, so two runs of a kind follow each other. It has the mark
// in the same database as the rows: after a restore the mark fits them (ADR 20).
func (s *Store) RemoveRows(
	ctx context.Context, kind mediagate.Removal, before time.Time, after string,
) (slice mediagate.RemovedSlice, err error) {
	r := retention[kind]
	err = s.write(ctx, "remove "+string(kind), func(tx *gorm.DB) error {
		// write may run this function again after a deadlock.
		slice = mediagate.RemovedSlice{}
		if err := s.goByIndexes(tx); err != nil {
			return err
		}
		state, err := s.lockRemoval(tx, kind)
		if err != nil {
			return err
		}
		begin, mark := cmp.Or(after, state.Mark), state.Mark
		values := map[string]any{
			"after": begin,
			// Rows that were made later cannot be old enough.
			"to":     idAt(r.prefix, before.Add(idMargin)),
			"before": at(before),
			"now":    at(s.clock()),
		}
		var rows []candidate
		if err := read(tx, &rows, r.candidates(), values); err != nil {
			return err
		}
		// A full slice may be followed by another one.
		slice.More, slice.Next = len(rows) == retentionSlice, begin
		if len(rows) == 0 {
			return nil
		}
		slice.Next = rows[len(rows)-1].ID
		var gone []string
		if gone, slice.Removed, err = s.removeDue(tx, r, rows, values); err != nil {
			return err
		}
		for _, row := range rows {
			// The first row that stays ends the loop: the mark must not pass it.
			if begin != state.Mark || !row.Settled && !slices.Contains(gone, row.ID) {
				break
			}
			mark = row.ID
		}
		_, err = exec(tx, "UPDATE retention SET mark = ?, removed = removed + ? WHERE kind = ?",
			mark, slice.Removed, kind)
		return err
	})
	return slice, err
}

// candidates returns the query of a slice.
//
// MATERIALIZED makes PostgreSQL read the ids of the slice first, and only then check the
// conditions, id by id. DISTINCT is for deliveries, of which a task has several.
func (r retained) candidates() string {
	return `WITH slice AS MATERIALIZED (
			SELECT DISTINCT ` + r.id + ` AS id FROM ` + r.table + ` WHERE ` + r.id + ` > @after AND ` + r.id + ` < @to
			ORDER BY ` + r.id + ` LIMIT ` + strconv.Itoa(retentionSlice) + `)
		SELECT s.id, ` + r.due + ` AS due, ` + cmp.Or(r.settled, "false") + ` AS settled FROM slice s ORDER BY s.id`
}

// removeDue removes the due rows, and returns their ids and how many rows were removed. It locks the
// rows of tasks first and then checks the condition again. So a submit that uses one of them as a
// source is either seen here, or finds that the source is gone.
func (s *Store) removeDue(
	tx *gorm.DB, r retained, rows []candidate, values map[string]any,
) (ids []string, removed int, err error) {
	for _, row := range rows {
		if row.Due {
			ids = append(ids, row.ID)
		}
	}
	if r.locked && len(ids) > 0 {
		// Rows that another transaction has locked are left to the next run.
		lock := "SELECT id FROM tasks WHERE id IN @ids ORDER BY id" + s.lockLeft()
		again := "SELECT s.id FROM tasks s WHERE s.id IN @ids AND " + r.due + " ORDER BY s.id"
		// Each query narrows ids: to the rows that could be locked, then to those that are still due.
		// The second one is a statement of its own, because PostgreSQL shows it what others have
		// committed before the lock.
		for _, query := range []string{lock, again} {
			if values["ids"], err = jsonText(ids); err != nil {
				return nil, 0, err
			}
			var left []struct{ ID string }
			if err := read(tx, &left, s.byIDs(query), values); err != nil {
				return nil, 0, err
			}
			ids = convert(left, func(r struct{ ID string }) string { return r.ID })
		}
	}
	if len(ids) == 0 {
		return nil, 0, nil
	}
	// On SQLite, the removed data must also go out of the write-ahead log (scrubFiles).
	s.scrub.due.Store(true)
	list, err := jsonText(ids)
	if err != nil {
		return nil, 0, err
	}
	if r.remove == nil {
		return ids, len(ids), s.forgetFiles(tx, list)
	}
	values["ids"] = list
	for _, query := range r.remove {
		n, err := exec(tx, s.byIDs(query), values)
		if err != nil {
			return nil, 0, err
		}
		// The last statement counts.
		removed = int(n)
	}
	return ids, removed, nil
}

// byIDs turns @ids into a list that a JSON parameter holds.
func (s *Store) byIDs(query string) string {
	return strings.ReplaceAll(query, "@ids", strings.ReplaceAll(s.inList(), "?", "@ids"))
}

// forgetFiles removes the objects' keys from the results of locked tasks. The facts about the files
// stay. Since no row names the objects any more, the pass over unnamed objects deletes them. Results
// that cannot be read stay as they are.
func (s *Store) forgetFiles(tx *gorm.DB, list document) error {
	var rows []struct {
		ID      string
		Results document
	}
	if err := read(tx, &rows, "SELECT id, results FROM tasks WHERE id IN "+s.inList(), list); err != nil {
		return err
	}
	for _, row := range rows {
		var results []mediagate.Result
		if json.Unmarshal(row.Results, &results) != nil {
			continue
		}
		for i := range results {
			results[i].Key = ""
		}
		text, err := jsonText(results)
		if err != nil {
			return err
		}
		// The version rises, since clients see the result without its files.
		_, err = exec(tx, "UPDATE tasks SET results = ?, version = version + 1 WHERE id = ?", text, row.ID)
		if err != nil {
			return err
		}
	}
	return nil
}

// Unnamed returns the objects that no row names: their task is gone, or it has ended and shows other
// files or none. It leaves out files of open tasks, files that open tasks work on, and objects that
// belong to no task.
//
// Such objects come from copies that lost a race (D13), from removed tasks, and from results whose
// keys forgetFiles removed. The caller lists only objects that are a day old, so a copy under way
// is not touched.
func (s *Store) Unnamed(ctx context.Context, keys []string) ([]string, error) {
	// An object's key is the folder of results, the task's id, and a name.
	taskOf := func(key string) string {
		id, _, _ := strings.Cut(strings.TrimPrefix(key, mediagate.ResultsFolder), "/")
		return id
	}
	list, err := jsonText(slices.Compact(convert(keys, taskOf)))
	if err != nil {
		return nil, err
	}
	var rows []struct {
		ID      string
		InUse   bool
		Results document
	}
	query := "SELECT s.id, s." + isOpen + " OR " + isWorkedOn + ` AS in_use, s.results
		FROM tasks s WHERE s.id IN ` + s.inList()
	if err := read(s.on(ctx), &rows, query, list); err != nil {
		return nil, dbError(err, "find objects without a row")
	}
	named, inUse := map[string]bool{}, map[string]bool{}
	for _, row := range rows {
		var shown []mediagate.Result
		// If the results cannot be read, the task counts as in use: its files must not be lost.
		inUse[row.ID] = fromJSON("tasks.results", row.Results, &shown) != nil || row.InUse
		for _, r := range shown {
			named[r.Key] = true
		}
	}
	return slices.DeleteFunc(slices.Clone(keys), func(key string) bool {
		id := taskOf(key)
		return named[key] || inUse[id] || id == "" || !strings.HasPrefix(key, mediagate.ResultFolder(id))
	}), nil
}

// removalRow is a row of retention: the progress with one kind. EndedAt is when retention last
// came to the end of the kind. Only NoteRemoval sets it: for kinds of RemoveRows it stays zero.
type removalRow struct {
	Kind    mediagate.Removal
	Mark    string
	Removed int64
	EndedAt stamp
}

// lockRemoval locks and reads the progress of retention with a kind.
//
// The first run with a kind inserts its row.
func (s *Store) lockRemoval(tx *gorm.DB, kind mediagate.Removal) (removalRow, error) {
	if _, err := exec(tx, "INSERT INTO retention (kind) VALUES (?) ON CONFLICT DO NOTHING", kind); err != nil {
		return removalRow{}, err
	}
	query := "SELECT " + columnsOf[removalRow]().text + " FROM retention WHERE kind = ?" + s.forUpdate("retention")
	row, err := one[removalRow](tx, query, kind)
	if err != nil {
		return removalRow{}, err
	}
	return *row, nil
}

// NoteRemoval adds to the count of removed rows of a kind and moves its mark. With ended, it also
// records the time when retention came to the end of the kind.
//
// NoteRemoval is for kinds that RemoveRows does not remove, for example objects of the bucket,
// uploads and sessions, and for RemovalRun, the end of a whole run. The mark of objects is a key of
// the bucket.
func (s *Store) NoteRemoval(ctx context.Context, kind mediagate.Removal, mark string, removed int, ended bool) error {
	return s.write(ctx, "note removal", func(tx *gorm.DB) error {
		row, err := s.lockRemoval(tx, kind)
		if err != nil {
			return err
		}
		if ended {
			row.EndedAt = at(s.clock())
		}
		_, err = exec(tx, "UPDATE retention SET mark = ?, removed = removed + ?, ended_at = ? WHERE kind = ?",
			mark, removed, row.EndedAt, kind)
		return err
	})
}

// RemovalStates reads the progress of retention with each kind that it has begun.
func (s *Store) RemovalStates(ctx context.Context) (map[mediagate.Removal]mediagate.RemovalState, error) {
	var rows []removalRow
	if err := read(s.on(ctx), &rows, "SELECT "+columnsOf[removalRow]().text+" FROM retention"); err != nil {
		return nil, dbError(err, "read removals")
	}
	states := make(map[mediagate.Removal]mediagate.RemovalState, len(rows))
	for _, r := range rows {
		states[r.Kind] = mediagate.RemovalState{Mark: r.Mark, Removed: r.Removed, EndedAt: r.EndedAt.Time}
	}
	return states, nil
}

// goByIndexes makes PostgreSQL use indexes for the rest of the transaction. Reading the whole table
// would be faster while it is small, but the plan would stay in use as the table grows.
//
// The settings end with the transaction.
func (s *Store) goByIndexes(tx *gorm.DB) error {
	if s.lite {
		return nil
	}
	_, err := exec(tx, `SELECT set_config('enable_seqscan', 'off', true),
		set_config('enable_mergejoin', 'off', true), set_config('enable_hashjoin', 'off', true)`)
	return err
}
