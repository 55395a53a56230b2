package storage

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"

	"gorm.io/gorm"

	"github.com/mediagate/mediagate"
)

// auditRow is a row of the table audit. It has no foreign keys: an entry outlives the object
// and the account that it names.
type auditRow struct {
	// The id begins with the time of the change, so the order of ids is the order of the list.
	ID string
	At stamp
	// ActedBy is the name of an operator, or the id of a key. Object is the id of the changed
	// object, or the name of a channel.
	ActedBy string
	Action  mediagate.AuditAction
	Object  string
	// AccountID is empty for an object that belongs to no account, such as a channel.
	AccountID string
	// OldValues and NewValues have only the fields that differ. Each is nil (NULL) if it has none:
	// the old values of a new object, for example.
	OldValues document
	NewValues document
	// Address and RequestID are those of the request that made the change.
	Address   string
	RequestID string
}

// auditColumns are in the order of the fields of auditRow.
const auditColumns = `id, at, acted_by, action, object, COALESCE(account_id, ''),
	old_values, new_values, address, request_id`

// entry returns the domain type.
func (r auditRow) entry() mediagate.AuditEntry {
	return mediagate.AuditEntry{
		ID:        r.ID,
		At:        r.At.Time,
		Actor:     mediagate.Actor{By: r.ActedBy, Address: r.Address, RequestID: r.RequestID},
		Action:    r.Action,
		Object:    r.Object,
		AccountID: r.AccountID,
		Before:    json.RawMessage(r.OldValues),
		After:     json.RawMessage(r.NewValues),
	}
}

// deed is a change that an actor made. before and after are the object's fields as a JSON
// object, nil where the object did not exist.
type deed struct {
	action mediagate.AuditAction
	// object is the id of the changed object, or the name of a channel. account is the account of
	// the object, empty if it has none.
	object  string
	account string
	// note marshals both and compares them field by field. For accounts, keys, endpoints and
	// channels both are results of a facts method, so they name the same fields.
	before any
	after  any
}

// facts are the fields of an object that the audit records, with the names and forms of the
// admin API. Amounts of money are texts, as in the API.
type facts = map[string]any

// note writes the change to the audit, in the transaction of the change itself, so that both
// are stored or neither. It writes nothing if nothing has changed, or if the context has no
// actor: then the gateway itself acts. Package api sets the actor.
func (s *Store) note(ctx context.Context, tx *gorm.DB, d deed) error {
	actor, ok := mediagate.ActorOf(ctx)
	if !ok {
		return nil
	}
	before, after, err := difference(d.before, d.after, actor.Reason)
	if err != nil || before == nil && after == nil {
		return err
	}
	_, err = exec(tx, `INSERT INTO audit
			(id, at, acted_by, action, object, account_id, old_values, new_values, address, request_id)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		s.newID("aud_"), at(s.clock()), actor.By, d.action, d.object, nullable(d.account),
		before, after, actor.Address, actor.RequestID)
	return err
}

// difference returns the fields that differ between two objects. It adds the reason where any
// field differs. A change of nothing thus leaves no entry, whatever its reason.
//
// Example: an account had the rate 60, and an operator sets 100 because the client asked for
// it. old is {"rate":60}, and made is {"rate":100,"reason":"the client asked"}.
func difference(before, after any, reason string) (old, made document, err error) {
	was, is := map[string]json.RawMessage{}, map[string]json.RawMessage{}
	if err := cmp.Or(fieldsOf(before, &was), fieldsOf(after, &is)); err != nil {
		return nil, nil, err
	}
	for name, value := range was {
		// The texts can be compared, since the same code made both from the same types.
		if bytes.Equal(is[name], value) {
			delete(was, name)
			delete(is, name)
		}
	}
	if reason != "" && len(was)+len(is) > 0 {
		if is == nil { // after is nil: the object was deleted
			is = map[string]json.RawMessage{}
		}
		if is["reason"], err = json.Marshal(reason); err != nil {
			return nil, nil, err
		}
	}
	if len(was) > 0 {
		old, err = jsonText(was)
	}
	if err == nil && len(is) > 0 {
		made, err = jsonText(is)
	}
	return old, made, err
}

// fieldsOf splits an object into its fields, each still as JSON text. A nil object has no
// fields.
func fieldsOf(object any, fields *map[string]json.RawMessage) error {
	text, err := jsonText(object)
	if err != nil {
		return err
	}
	return fromJSON("audit", text, fields)
}

// facts returns the fields of an account that the audit records. The balances are not among
// them: the ledger records those. A limit of nil means the installation's default.
func (r accountRow) facts() facts {
	f := facts{
		"name":            r.Name,
		"group":           r.Group,
		"rate":            r.Rate,
		"in_flight":       r.InFlight,
		"erase_inputs":    r.EraseInputs,
		"webhook":         nullable(r.Webhook),
		"suspended":       r.Suspended,
		"unpaid":          nil,
		"uploads_per_day": r.UploadsPerDay,
	}
	if r.Unpaid != nil {
		f["unpaid"] = r.Unpaid.String()
	}
	return f
}

// facts returns the fields of a key that the audit records. caps has only the periods with a
// cap. quota is nil for an unlimited key. The hash of the key's secret is left out, and so are
// the used amounts, which the ledger records.
func (r keyRow) facts() facts {
	caps := map[string]string{}
	for _, p := range periods {
		if limit := r.limit(p); limit != nil {
			caps[p.name] = limit.String()
		}
	}
	f := facts{
		"name":       r.Name,
		"group":      nullable(r.GroupName),
		"unlimited":  r.Unlimited,
		"quota":      nil,
		"models":     json.RawMessage(r.Models),
		"expires_at": unix(r.ExpiresAt),
		"allow_ips":  json.RawMessage(r.AllowIPs),
		"scopes":     json.RawMessage(r.Scopes),
		"caps":       caps,
		"rate":       r.Rate,
		"in_flight":  r.InFlightCap,
		"strict":     r.Strict,
		"rotated_to": r.SuccessorID,
	}
	if !r.Unlimited {
		f["quota"] = r.Quota.String()
	}
	return f
}

// unix returns the time in Unix seconds, as the API shows times, or nil for the zero time.
func unix(t stamp) *int64 {
	if t.IsZero() {
		return nil
	}
	return new(t.Unix())
}

// Audit lists changes, newest first. Each filter has an index in the order of the list. With
// several filters, PostgreSQL reads the entries of one of them until the page is full. Returns
// KindInvalid when After names no entry of the list.
//
// The indexes are audit_account, audit_acted_by, audit_action and audit_object. Each has the id
// as its last column. A list without a filter reads the primary key backwards.
func (s *Store) Audit(
	ctx context.Context, f mediagate.AuditFilter,
) (entries []mediagate.AuditEntry, hasMore bool, err error) {
	rows, hasMore, err := newestAfter[auditRow](s.on(ctx), auditList(f), "id", "true", f.After, f.Limit)
	return convert(rows, auditRow.entry), hasMore, dbError(err, "list audit")
}

// auditList selects all entries that match a filter. Entries are made with ids that begin with
// their time, so a bound of the time is also a bound of the id, by which the indexes are
// ordered. The condition of at is the exact one. The condition of the id only keeps the
// statement from reading entries outside of the period, with idMargin to spare.
func auditList(f mediagate.AuditFilter) *statement {
	list := (&statement{}).say("SELECT ", auditColumns, " FROM audit WHERE true")
	and := func(set bool, condition string, value any) {
		if set {
			list.with(" AND "+condition+" ?", value)
		}
	}
	and(f.AccountID != "", "account_id =", f.AccountID)
	and(f.By != "", "acted_by =", f.By)
	and(f.Action != "", "action =", f.Action)
	and(f.Object != "", "object =", f.Object)
	and(!f.From.IsZero(), "at >=", at(f.From))
	and(!f.From.IsZero(), "id >=", idAt("aud_", f.From.Add(-idMargin)))
	and(!f.To.IsZero(), "at <", at(f.To))
	and(!f.To.IsZero(), "id <", idAt("aud_", f.To.Add(idMargin)))
	return list
}
