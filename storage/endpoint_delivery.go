package storage

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"time"

	"gorm.io/gorm"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/task"
)

// endpointDeliveryRow is a row of the table endpoint_deliveries: an event on its way to one
// endpoint, with its last attempt. The id of the event is the same in the rows of all
// endpoints.
type endpointDeliveryRow struct {
	EventID    string
	EndpointID string
	Type       mediagate.EventType
	TaskID     string
	// Body is NULL for an event about a task until the first attempt makes it. BodyAt is then the
	// time at which its links were signed; it stays zero for other events, whose body has no links.
	Body   []byte
	BodyAt stamp
	// State is pending exactly while NextAt is set, as a constraint of the table demands.
	State mediagate.EndpointState
	// Attempts counts from zero again after a redelivery.
	Attempts  int
	CreatedAt stamp
	// NextAt is when the next attempt is due. A sender that claims the row moves it to the end of
	// the claim, so NextAt is also the lease and the token of the claim.
	NextAt stamp
	// These columns describe the last attempt. Status is 0 if there was no answer.
	TriedAt stamp
	Status  int
	Error   string
	Answer  string
	Headers document
	// DurationUs is in microseconds.
	DurationUs int64
}

// delivery returns the domain type.
func (r endpointDeliveryRow) delivery() mediagate.EndpointDelivery {
	d := mediagate.EndpointDelivery{
		EventID:    r.EventID,
		EndpointID: r.EndpointID,
		Type:       r.Type,
		TaskID:     r.TaskID,
		Body:       r.Body,
		State:      r.State,
		Attempts:   r.Attempts,
		CreatedAt:  r.CreatedAt.Time,
		NextAt:     r.NextAt.Time,
		Last: mediagate.EndpointAttempt{
			At:       r.TriedAt.Time,
			Status:   r.Status,
			Error:    r.Error,
			Answer:   r.Answer,
			Duration: time.Duration(r.DurationUs) * time.Microsecond,
		},
	}
	_ = json.Unmarshal(r.Headers, &d.Last.Headers) // headers that cannot be read are left out
	return d
}

// outgoing is an event to be stored for endpoints.
type outgoing struct {
	id     string
	kind   mediagate.EventType
	taskID string
	body   []byte // nil: the first attempt makes it
	at     time.Time
}

// wantsEvent is the condition that an endpoint is enabled and subscribes to a type of event.
// Its parameter comes from wanted. The column holds a JSON array of types, and each type is
// searched for with its quotation marks, so no type matches a part of another one.
const wantsEvent = "enabled AND events LIKE ?"

// wanted returns the pattern for wantsEvent.
func wanted(t mediagate.EventType) string { return `%"` + string(t) + `"%` }

// addEvent stores an event for each endpoint that meets the conditions, in one statement. It
// leaves events that are stored already unchanged. The event is due at once: next_at is the
// time of the event.
func addEvent(tx *gorm.DB, e outgoing, conditions string, args ...any) error {
	var body any // a nil slice is no NULL to SQLite
	if e.body != nil {
		body = e.body
	}
	into := (&statement{}).with(`INSERT INTO endpoint_deliveries
			(event_id, endpoint_id, type, task_id, body, state, created_at, next_at)
		SELECT ?, id, ?, ?, ?, 'pending', ?, ? FROM endpoints WHERE `,
		e.id, e.kind, e.taskID, body, at(e.at), at(e.at))
	return into.with(conditions, args...).say(" ON CONFLICT DO NOTHING").run(tx)
}

// addEndEvent stores the event of a task's end, in the transaction that ends the task. So each
// end has one event, and a sender that dies loses none.
//
// The id of the event follows from the task's id. In a database that was restored, a task may
// end a second time: the receiver sees the same id, and can leave out the repetition. The index
// endpoints_of_account serves the statement. It locks no endpoint, so an end never waits for a
// sender.
func addEndEvent(tx *gorm.DB, st *task.State, now time.Time) error {
	e := outgoing{
		id:     mediagate.TaskEventID(st.ID),
		kind:   mediagate.EventType("task." + st.Status),
		taskID: st.ID,
		at:     now,
	}
	return addEvent(tx, e, "account_id = ? AND "+wantsEvent, st.AccountID, wanted(e.kind))
}

// SendTest stores an event of type test for an endpoint. Returns KindNotFound, and KindConflict
// for an endpoint that is disabled. The event goes only to this endpoint, whichever types it
// subscribes to. The loop that sends all events sends it too, so the test shows that the loop
// works.
func (s *Store) SendTest(
	ctx context.Context, accountID, endpointID string,
) (d mediagate.EndpointDelivery, err error) {
	id := s.newID(mediagate.EventPrefix)
	err = s.write(ctx, "send a test event", func(tx *gorm.DB) error {
		if err := s.lockEnabled(tx, accountID, endpointID); err != nil {
			return err
		}
		now := s.clock()
		body, err := mediagate.EventBody(mediagate.EventTest, now, map[string]string{"endpoint": endpointID})
		if err != nil {
			return err
		}
		e := outgoing{id: id, kind: mediagate.EventTest, body: body, at: now}
		if err := addEvent(tx, e, "id = ?", endpointID); err != nil {
			return err
		}
		d, err = readDelivery(tx, endpointID, id)
		return err
	})
	return d, err
}

// lockEnabled locks an endpoint, and returns KindConflict where it is disabled. The lock keeps
// it enabled until the caller's transaction ends, so a delivery that is added is not left
// pending.
func (s *Store) lockEnabled(tx *gorm.DB, accountID, endpointID string) error {
	row, err := s.lockEndpoint(tx, accountID, endpointID)
	if err == nil && !row.Enabled {
		err = conflict("the endpoint is disabled: enable it first")
	}
	return err
}

// readDelivery reads a delivery by its primary key, without a lock. Returns KindNotFound.
func readDelivery(db *gorm.DB, endpointID, eventID string) (mediagate.EndpointDelivery, error) {
	row, err := one[endpointDeliveryRow](db, "SELECT "+columnsOf[endpointDeliveryRow]().text+
		" FROM endpoint_deliveries WHERE event_id = ? AND endpoint_id = ?", eventID, endpointID)
	if err != nil || row == nil {
		return mediagate.EndpointDelivery{}, cmp.Or(err, notFound("delivery", eventID))
	}
	return row.delivery(), nil
}

// EndpointDeliveries lists the deliveries of an endpoint, newest first. With after, the list
// begins after that event; with state, it has only deliveries in that state. The caller has
// checked that the endpoint belongs to its account. Returns KindInvalid when after names no
// delivery of the endpoint.
//
// Ids of task events follow from the ids of tasks, so they are not in the order of the events.
// The list is therefore in the order of created_at and the id, as in the index
// endpoint_deliveries_list. Failed deliveries have an index of their own.
func (s *Store) EndpointDeliveries(
	ctx context.Context, endpointID string, state mediagate.EndpointState, after string, limit int,
) (deliveries []mediagate.EndpointDelivery, hasMore bool, err error) {
	db := s.on(ctx)
	list := (&statement{}).say("SELECT ", columnsOf[endpointDeliveryRow]().text).
		with(" FROM endpoint_deliveries WHERE endpoint_id = ?", endpointID)
	if after != "" {
		last, err := readDelivery(db, endpointID, after)
		if mediagate.Is(err, mediagate.KindNotFound) {
			err = mediagate.Invalid("after", "after must be the id of an entry in this list")
		}
		if err != nil {
			return nil, false, dbError(err, "list deliveries")
		}
		// after is read first, and its values become parameters: the page begins below them.
		list.with(" AND (created_at, event_id) < (?, ?)", at(last.CreatedAt), last.EventID)
	}
	if state != "" {
		list.with(" AND state = ?", state)
	}
	list.with(" ORDER BY created_at DESC, event_id DESC LIMIT ?", limit+1)
	var rows []endpointDeliveryRow
	if err := read(db, &rows, list.text.String(), list.args...); err != nil {
		return nil, false, dbError(err, "list deliveries")
	}
	rows, hasMore = page(rows, limit)
	return convert(rows, endpointDeliveryRow.delivery), hasMore, nil
}

// Redeliver makes a delivered or failed event due again, with its full number of attempts.
// Links that were signed more than a day ago are signed anew. Returns KindNotFound, and
// KindConflict where the endpoint is disabled or the delivery is pending.
//
// The receiver sees the same event id again. A pending delivery matches no row: its next
// attempt comes anyway, and a claim on it must not be overwritten.
func (s *Store) Redeliver(
	ctx context.Context, accountID, endpointID, eventID string,
) (d mediagate.EndpointDelivery, err error) {
	err = s.write(ctx, "send an event again", func(tx *gorm.DB) error {
		if err := s.lockEnabled(tx, accountID, endpointID); err != nil {
			return err
		}
		now := s.clock()
		renewed, err := exec(tx, `UPDATE endpoint_deliveries SET state = 'pending', attempts = 0, next_at = ?,
				body = CASE WHEN task_id <> '' AND body_at < ? THEN NULL ELSE body END
			WHERE event_id = ? AND endpoint_id = ? AND state <> 'pending'`,
			at(now), at(now.Add(-linksLast)), eventID, endpointID)
		if err != nil {
			return err
		}
		// An unknown delivery matches no row either, and is KindNotFound here.
		if d, err = readDelivery(tx, endpointID, eventID); err == nil && renewed == 0 {
			err = conflict("the delivery is pending: the next attempt comes by itself")
		}
		return err
	})
	return d, err
}

// DueEndpoints lists endpoints that have due deliveries and are not busy. The endpoint whose
// last turn is longest ago comes first. So an endpoint with a long backlog delays no other.
//
// busy are the endpoints that have their turn in the calling process now. The subquery looks
// into the index endpoint_deliveries_due_at once for each endpoint, however many deliveries are
// due.
func (s *Store) DueEndpoints(ctx context.Context, busy []string, most int) (ids []string, err error) {
	list, err := jsonText(append([]string{}, busy...))
	if err != nil {
		return nil, err
	}
	var rows []struct{ ID string }
	err = read(s.on(ctx), &rows, `SELECT id FROM endpoints
		WHERE enabled AND id NOT IN `+s.inList()+` AND EXISTS (SELECT 1 FROM endpoint_deliveries d
			WHERE d.endpoint_id = endpoints.id AND d.state = 'pending' AND d.next_at <= ?`+ofOne+`
		ORDER BY turn_at, id LIMIT ?`, list, at(s.clock()), most)
	return convert(rows, func(r struct{ ID string }) string { return r.ID }), dbError(err, "list due endpoints")
}

// ClaimDeliveries claims due deliveries of an endpoint for the time of the lease, the longest
// due first. The turn lists them in the order of their creation. If the sender dies, another
// sender claims them after the lease. The turn has no deliveries if none is due, or if the
// endpoint is disabled or deleted.
//
// The claim needs no column of its own: it moves next_at to the end of the lease, and the
// sender must show that time to record an attempt. Example: sender A claims at 12:00:00 with a
// lease of a minute, and hangs. From 12:01:00 on the row is due again. Sender B claims it at
// 12:01:01, until 12:02:01. A's record at 12:01:05 names 12:01:00, matches no row, and changes
// nothing.
func (s *Store) ClaimDeliveries(
	ctx context.Context, endpointID string, most int, lease time.Duration,
) (turn mediagate.EndpointTurn, err error) {
	err = s.write(ctx, "claim deliveries", func(tx *gorm.DB) error {
		turn = mediagate.EndpointTurn{}
		now := s.clock()
		// The claim is compared with the column later, so it has the column's precision.
		until := at(now.Add(lease).Truncate(time.Microsecond))
		// The UPDATE locks the endpoint before its deliveries, and moves it behind the other
		// endpoints. If no row matches, the endpoint is disabled or deleted.
		endpoint, err := one[endpointRow](tx, "UPDATE endpoints SET turn_at = ? WHERE id = ? AND enabled RETURNING "+
			columnsOf[endpointRow]().text, at(now), endpointID)
		if err != nil || endpoint == nil {
			return err
		}
		var rows []endpointDeliveryRow
		// The index endpoint_deliveries_due_at finds the due rows in their order. Rows that another
		// transaction has locked are left for the next claim.
		if err := read(tx, &rows, `WITH due AS MATERIALIZED (
				SELECT event_id AS due_id FROM endpoint_deliveries
				WHERE endpoint_id = ? AND state = 'pending' AND next_at <= ?
				ORDER BY next_at, event_id LIMIT ?`+s.skipLocked("endpoint_deliveries")+`)
			UPDATE endpoint_deliveries SET next_at = ? FROM due
			WHERE endpoint_id = ? AND event_id = due_id RETURNING `+columnsOf[endpointDeliveryRow]().text,
			endpointID, at(now), most, until, endpointID); err != nil {
			return err
		}
		slices.SortFunc(rows, func(a, b endpointDeliveryRow) int { // RETURNING has no order
			return cmp.Or(a.CreatedAt.Compare(b.CreatedAt.Time), cmp.Compare(a.EventID, b.EventID))
		})
		turn.Claim, turn.Deliveries = until.Time, convert(rows, endpointDeliveryRow.delivery)
		turn.Endpoint, err = endpoint.endpoint()
		return err
	})
	// If a secret cannot be decrypted, the deliveries stay claimed until the lease ends.
	if err == nil && len(turn.Deliveries) > 0 {
		turn.Secrets, err = s.secrets(s.on(ctx), secretOwner{turn.Endpoint.AccountID, turn.Endpoint.ID})
	}
	return turn, dbError(err, "read the secrets of an endpoint")
}

// StoreEndpointBody stores the body of a delivery unless it has one, and returns the stored
// body: all attempts send the same bytes. Returns KindNotFound where the delivery was removed:
// its task was erased, or retention removed the deliveries of a deleted endpoint.
//
// Two senders may make the body at the same time, if the claim of the first has ended. Only the
// first UPDATE matches the row (body IS NULL), and both send its body.
func (s *Store) StoreEndpointBody(ctx context.Context, endpointID, eventID string, body []byte) ([]byte, error) {
	_, err := exec(s.on(ctx), `UPDATE endpoint_deliveries SET body = ?, body_at = ?
		WHERE event_id = ? AND endpoint_id = ? AND body IS NULL`, body, at(s.clock()), eventID, endpointID)
	if err != nil {
		return nil, dbError(err, "store the body of an event")
	}
	stored, err := readDelivery(s.on(ctx), endpointID, eventID)
	return stored.Body, dbError(err, "read the body of an event")
}

// claimed is the condition that the sender still holds its claim of a delivery. Its parameters
// are the event, the endpoint and the claim. It fails when the lease has ended and another
// sender has claimed the row, and when the delivery has ended or was removed.
const claimed = " WHERE event_id = ? AND endpoint_id = ? AND state = 'pending' AND next_at = ?"

// ReleaseDelivery releases a claimed delivery that was not attempted. It becomes due at next.
// The number of attempts stays. If the claim is lost, nothing changes.
func (s *Store) ReleaseDelivery(
	ctx context.Context, endpointID, eventID string, claim, next time.Time,
) error {
	_, err := exec(s.on(ctx), "UPDATE endpoint_deliveries SET next_at = ?"+claimed,
		at(next), eventID, endpointID, at(claim))
	return dbError(err, "give a delivery back")
}

// RecordEndpointAttempt stores an attempt, the new state of the delivery, and the health of its
// endpoint. An attempt whose claim has ended changes nothing, since another sender repeats it.
// An endpoint is disabled if it answers 410, or if it has failed for EndpointPatience.
//
// The endpoint is locked first, and its health is read under the lock: several attempts at one
// endpoint may end at the same time.
func (s *Store) RecordEndpointAttempt(ctx context.Context, r mediagate.EndpointResult) error {
	headers, err := jsonText(r.Attempt.Headers)
	if err != nil {
		return err
	}
	// Without a further attempt (NextAt is zero) a delivery that failed ends as failed.
	state := mediagate.EndpointPending
	switch {
	case r.Delivered:
		state, r.NextAt = mediagate.EndpointDelivered, time.Time{}
	case r.NextAt.IsZero():
		state = mediagate.EndpointFailed
	}
	return s.write(ctx, "record an attempt at an endpoint", func(tx *gorm.DB) error {
		endpoint, err := one[endpointRow](tx, "SELECT "+columnsOf[endpointRow]().text+
			" FROM endpoints WHERE id = ?"+s.forUpdate("endpoints"), r.EndpointID)
		// The endpoint was deleted while the attempt was under way: nothing is left to record.
		if err != nil || endpoint == nil {
			return err
		}
		a := r.Attempt
		recorded, err := exec(tx, `UPDATE endpoint_deliveries SET state = ?, attempts = attempts + 1, next_at = ?,
				tried_at = ?, status = ?, error = ?, answer = ?, headers = ?, duration_us = ?`+claimed,
			state, at(r.NextAt), at(a.At), a.Status, a.Error, a.Answer, headers, micros(a.Duration),
			r.EventID, r.EndpointID, at(r.Claim))
		// The claim is lost, so the attempt says nothing about the health either.
		if err != nil || recorded == 0 {
			return err
		}
		return s.noteHealth(tx, *endpoint, r)
	})
}

// noteHealth updates the health of an endpoint, and disables an endpoint that is gone or has
// failed for too long. An answer from an earlier address of the endpoint does not count.
//
// FailingSince is the time of the first failure since the last success. Example: attempts fail
// from Monday 12:00 on. An attempt that fails on Saturday at 12:00 or later disables the
// endpoint, since EndpointPatience is five days. One success in between clears FailingSince.
func (s *Store) noteHealth(tx *gorm.DB, row endpointRow, r mediagate.EndpointResult) error {
	if !row.Enabled || r.URL != row.URL {
		return nil
	}
	// failing is the value before this attempt, so a first failure disables the endpoint only if
	// it answers 410.
	failing := row.FailingSince
	switch {
	case r.Delivered:
		row.FailingSince = stamp{}
	case failing.IsZero():
		row.FailingSince = at(r.Attempt.At)
	}
	now := at(s.clock())
	switch {
	case r.Delivered:
	case r.Attempt.Status == http.StatusGone:
		row.disable(now, mediagate.DisabledGone)
	case !failing.IsZero() && now.Sub(failing.Time) >= mediagate.EndpointPatience:
		row.disable(now, mediagate.DisabledFailing)
	}
	// Most attempts change nothing, and then nothing is written.
	if row.Enabled && row.FailingSince.Equal(failing.Time) {
		return nil
	}
	return s.saveEndpoint(tx, row)
}
