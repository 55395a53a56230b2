package storage

import (
	"cmp"
	"context"
	"encoding/json"

	"gorm.io/gorm"

	"github.com/mediagate/mediagate"
)

// endpointRow is a row of the table endpoints.
type endpointRow struct {
	ID        string
	AccountID string
	URL       string
	// Events is a JSON array of the subscribed types. Statements search its text, see wantsEvent.
	Events      document
	Enabled     bool
	Description string
	// BalanceLow is nil for no event. BelowBalance is the mark of the last pass over the balances:
	// the account had less than BalanceLow available then. The statements of endpoint_money.go set
	// it.
	BalanceLow   *mediagate.Micros
	BelowBalance bool
	// FailingSince is zero while the last attempt succeeded. noteHealth sets it at the first
	// failure.
	FailingSince stamp
	// DisabledAt and DisabledReason are set exactly while the endpoint is disabled.
	DisabledAt     stamp
	DisabledReason mediagate.DisabledReason
	// TurnAt is when deliveries were last claimed. The endpoint with the earliest TurnAt has the
	// next turn.
	TurnAt    stamp
	CreatedAt stamp
}

// endpoint returns the domain type, without BelowBalance and TurnAt. Returns KindInternal if
// the list of events cannot be read.
func (r endpointRow) endpoint() (mediagate.Endpoint, error) {
	e := mediagate.Endpoint{
		ID:             r.ID,
		AccountID:      r.AccountID,
		URL:            r.URL,
		Enabled:        r.Enabled,
		Description:    r.Description,
		BalanceLow:     r.BalanceLow,
		FailingSince:   r.FailingSince.Time,
		DisabledAt:     r.DisabledAt.Time,
		DisabledReason: r.DisabledReason,
		CreatedAt:      r.CreatedAt.Time,
	}
	return e, fromJSON("endpoints.events", r.Events, &e.Events)
}

// facts returns the fields of an endpoint that the audit records: its settings. Its secrets and
// its health are not among them.
func (r endpointRow) facts() facts {
	f := facts{
		"url":         r.URL,
		"events":      json.RawMessage(r.Events),
		"enabled":     r.Enabled,
		"description": nullable(r.Description),
		"balance_low": nil,
	}
	if r.BalanceLow != nil {
		f["balance_low"] = r.BalanceLow.String()
	}
	return f
}

// set copies the settings of an endpoint, except whether it is enabled. A new address begins
// without failures: those of the old one must not disable it.
func (r *endpointRow) set(e mediagate.Endpoint) (err error) {
	if e.URL != r.URL {
		r.FailingSince = stamp{}
	}
	r.URL, r.Description, r.BalanceLow = e.URL, e.Description, e.BalanceLow
	r.Events, err = jsonText(e.Events)
	return err
}

// enable enables or disables an endpoint, and clears its earlier failures. An endpoint that is
// enabled after it was disabled as failing thus has EndpointPatience again. If nothing changes,
// the failures stay, so a repeated request does not prolong the patience.
func (r *endpointRow) enable(enabled bool, now stamp) {
	if enabled == r.Enabled {
		return
	}
	r.Enabled = enabled
	r.FailingSince = stamp{}
	r.DisabledAt = stamp{}
	r.DisabledReason = ""
	if !enabled {
		r.disable(now, mediagate.DisabledByOwner)
	}
}

// disable disables an endpoint and records why.
func (r *endpointRow) disable(now stamp, reason mediagate.DisabledReason) {
	r.Enabled = false
	r.DisabledAt = now
	r.DisabledReason = reason
}

// CreateEndpoint stores a new endpoint and generates its secret. It counts the account's
// endpoints under the lock of the account's row. Returns KindNotFound for an unknown account,
// and KindConflict where the account has mediagate.MaxEndpoints already.
//
// Without the lock, two calls at the same time could both count nine endpoints and make eleven.
// The lock is the one that holds take, so the call needs a permit of the account (writeFor).
func (s *Store) CreateEndpoint(
	ctx context.Context, e mediagate.Endpoint,
) (created mediagate.Endpoint, secret mediagate.Secret, err error) {
	id := s.newID("ep_")
	err = s.writeFor(ctx, e.AccountID, "create endpoint", func(tx *gorm.DB) error {
		now := at(s.clock())
		account, err := one[struct{ ID string }](tx,
			"SELECT id FROM accounts WHERE id = ?"+s.forUpdate("accounts"), e.AccountID)
		if err != nil || account == nil {
			return cmp.Or(err, notFound("account", e.AccountID))
		}
		has, err := one[struct{ N int }](tx, "SELECT COUNT(*) FROM endpoints WHERE account_id = ?", e.AccountID)
		if err != nil {
			return err
		}
		if has.N >= mediagate.MaxEndpoints {
			return conflict("the account has %d endpoints already, and may have no more", has.N)
		}
		// An endpoint may begin disabled: enable then records that its owner has disabled it.
		row := endpointRow{ID: id, AccountID: e.AccountID, Enabled: true, TurnAt: now, CreatedAt: now}
		row.enable(e.Enabled, now)
		if err := row.set(e); err != nil {
			return err
		}
		owner := secretOwner{e.AccountID, id}
		if err := cmp.Or(insert("endpoints", row, nil).run(tx), s.addSecret(tx, owner)); err != nil {
			return err
		}
		secrets, err := s.secrets(tx, owner)
		if err != nil {
			return err
		}
		// The endpoint is new, so its only secret is the one that was just made.
		secret = secrets[0].Secret
		if created, err = row.endpoint(); err != nil {
			return err
		}
		// The endpoint gets an event for later crossings only, and none for a balance that is low
		// already.
		if err := s.beginWatch(tx, mediagate.Endpoint{}, created); err != nil {
			return err
		}
		return s.note(ctx, tx, deed{
			action: mediagate.AuditCreateEndpoint, object: id, account: e.AccountID, after: row.facts(),
		})
	})
	return created, secret, err
}

// endpointOf selects an endpoint by its id and its account. An endpoint of another account is
// thus the same as an unknown one.
const endpointOf = " FROM endpoints WHERE id = ? AND account_id = ?"

// lockEndpoint locks and reads an endpoint of an account. An endpoint is locked before its
// deliveries, in every transaction that locks both, so that no two of them deadlock. Returns
// KindNotFound.
func (s *Store) lockEndpoint(tx *gorm.DB, accountID, id string) (endpointRow, error) {
	row, err := one[endpointRow](tx,
		"SELECT "+columnsOf[endpointRow]().text+endpointOf+s.forUpdate("endpoints"), id, accountID)
	if err != nil || row == nil {
		return endpointRow{}, cmp.Or(err, notFound("endpoint", id))
	}
	return *row, nil
}

// Endpoint reads an endpoint of the account. Returns KindNotFound.
func (s *Store) Endpoint(ctx context.Context, accountID, id string) (mediagate.Endpoint, error) {
	row, err := one[endpointRow](s.on(ctx), "SELECT "+columnsOf[endpointRow]().text+endpointOf, id, accountID)
	if err != nil || row == nil {
		return mediagate.Endpoint{}, cmp.Or(dbError(err, "read endpoint"), notFound("endpoint", id))
	}
	return row.endpoint()
}

// Endpoints lists the endpoints of an account, newest first. after is the id of the last endpoint
// of the page before, or empty. Returns KindInvalid when after names no endpoint of the account.
func (s *Store) Endpoints(
	ctx context.Context, accountID, after string, limit int,
) (endpoints []mediagate.Endpoint, hasMore bool, err error) {
	list := (&statement{}).say("SELECT ", columnsOf[endpointRow]().text).
		with(" FROM endpoints WHERE account_id = ?", accountID)
	rows, hasMore, err := newestAfter[endpointRow](s.on(ctx), list, "id", "true", after, limit)
	if err != nil {
		return nil, false, dbError(err, "list endpoints")
	}
	endpoints, err = convertAll(rows, endpointRow.endpoint)
	return endpoints, hasMore, err
}

// UpdateEndpoint calls change with an endpoint and stores its settings. An endpoint that is
// enabled again begins without failures. Pending deliveries of a disabled endpoint end as
// failed. change may be called more than once. If it returns an error, UpdateEndpoint returns
// that error and changes nothing. Returns KindNotFound.
//
// The row is locked before change sees it. saveEndpoint writes settings and health together, so
// without the lock a new setting and a recorded attempt could overwrite each other.
func (s *Store) UpdateEndpoint(
	ctx context.Context, accountID, id string, change func(e *mediagate.Endpoint) error,
) (e mediagate.Endpoint, err error) {
	err = s.write(ctx, "update endpoint", func(tx *gorm.DB) error {
		row, err := s.lockEndpoint(tx, accountID, id)
		if err != nil {
			return err
		}
		was, err := row.endpoint()
		if err != nil {
			return err
		}
		before := row.facts()
		e = was
		if err := change(&e); err != nil {
			return err
		}
		row.enable(e.Enabled, at(s.clock()))
		if err := row.set(e); err != nil {
			return err
		}
		// change may have set fields that are no settings. The caller gets what is stored.
		if e, err = row.endpoint(); err != nil {
			return err
		}
		if err := s.saveEndpoint(tx, row); err != nil {
			return err
		}
		if err := s.beginWatch(tx, was, e); err != nil {
			return err
		}
		return s.note(ctx, tx, deed{
			action: mediagate.AuditChangeEndpoint, object: id, account: accountID, before: before, after: row.facts(),
		})
	})
	return e, err
}

// saveEndpoint stores a locked endpoint. If it is disabled, up to failedSlice of its pending
// deliveries end as failed here; FailDisabled ends the rest of a longer backlog. The columns
// below_balance and turn_at are left as they are: other statements write them.
func (s *Store) saveEndpoint(tx *gorm.DB, row endpointRow) error {
	_, err := exec(tx, `UPDATE endpoints SET url = ?, events = ?, enabled = ?, description = ?, balance_low = ?,
			failing_since = ?, disabled_at = ?, disabled_reason = ?
		WHERE id = ?`,
		row.URL, row.Events, row.Enabled, row.Description, row.BalanceLow,
		row.FailingSince, row.DisabledAt, row.DisabledReason, row.ID)
	if err != nil || row.Enabled {
		return err
	}
	_, err = failPending(tx, "e.id = ?", row.ID)
	return err
}

// failedSlice is the number of deliveries that one statement ends as failed. So no statement
// locks more rows than that, however long the backlog is.
const failedSlice = 1000

// failPending ends up to failedSlice pending deliveries of disabled endpoints e as failed. It
// returns how many.
//
// endpoints is the condition on e. The partial index endpoint_deliveries_due_at has only
// pending deliveries, so the history of an endpoint costs nothing. The outer condition on the
// state is checked again under the locks: a delivery that was recorded as delivered meanwhile
// stays so.
func failPending(db *gorm.DB, endpoints string, args ...any) (n int64, err error) {
	return exec(db, `UPDATE endpoint_deliveries SET state = 'failed', next_at = NULL
		WHERE state = 'pending' AND (event_id, endpoint_id) IN (SELECT d.event_id, d.endpoint_id
			FROM endpoints e JOIN endpoint_deliveries d ON d.endpoint_id = e.id AND d.state = 'pending'
			WHERE NOT e.enabled AND `+endpoints+` LIMIT ?)`, append(args, failedSlice)...)
}

// FailDisabled ends all pending deliveries of disabled endpoints as failed: the rest of a long
// backlog, and deliveries of tasks that ended in the moment when the endpoint was disabled.
// Such a task's transaction reads the endpoints without a lock, and may still see the endpoint
// enabled.
func (s *Store) FailDisabled(ctx context.Context) error {
	for {
		n, err := failPending(s.on(ctx), "true")
		// A slice that is not full was the last one.
		if err != nil || n < failedSlice {
			return dbError(err, "end the deliveries of disabled endpoints")
		}
	}
}

// DeleteEndpoint removes an endpoint with its secrets. Its deliveries may be many; no sender
// claims them any more, and retention removes them. Returns KindNotFound.
//
// An attempt that is under way may still arrive. Its record finds no endpoint and changes
// nothing.
func (s *Store) DeleteEndpoint(ctx context.Context, accountID, id string) error {
	return s.write(ctx, "delete endpoint", func(tx *gorm.DB) error {
		row, err := s.lockEndpoint(tx, accountID, id)
		if err != nil {
			return err
		}
		// The secrets must not stay in SQLite's log, see scrubFiles.
		s.scrub.due.Store(true)
		for _, statement := range []string{
			"DELETE FROM webhook_secrets WHERE endpoint_id = ?",
			"DELETE FROM endpoints WHERE id = ?",
		} {
			if _, err := exec(tx, statement, id); err != nil {
				return err
			}
		}
		return s.note(ctx, tx, deed{
			action: mediagate.AuditDeleteEndpoint, object: id, account: accountID, before: row.facts(),
		})
	})
}
