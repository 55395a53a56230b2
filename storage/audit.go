package storage

import (
	"bytes"
	"context"
	"encoding/json"

	"gorm.io/gorm"

	"github.com/mediagate/mediagate"
)

type auditRow struct {
	ID        string
	At        stamp
	ActedBy   string
	Action    mediagate.AuditAction
	Object    string
	AccountID *string
	OldValues document
	NewValues document
	Address   string
	RequestID string
}

// TableName tells GORM.
func (auditRow) TableName() string { return "audit" }

func (r auditRow) entry() mediagate.AuditEntry {
	return mediagate.AuditEntry{
		ID: r.ID, At: r.At.Time, Actor: mediagate.Actor{By: r.ActedBy, Address: r.Address, RequestID: r.RequestID},
		Action: r.Action, Object: r.Object, AccountID: deref(r.AccountID), Before: json.RawMessage(r.OldValues), After: json.RawMessage(r.NewValues),
	}
}

// deed is a change that somebody made. Before and after are the facts of what was
// changed, nil where it was not there.
type deed struct {
	action  mediagate.AuditAction
	object  string
	account string
	before  any
	after   any
}

// note writes the change to the audit, in the transaction of the change itself:
// of the two there is both or neither. Nothing is written where nobody acts but
// the gateway, or where nothing changed.
func (s *Store) note(ctx context.Context, tx *gorm.DB, d deed) error {
	actor, ok := mediagate.ActorOf(ctx)
	if !ok {
		return nil
	}
	before, after, err := difference(d.before, d.after)
	if err != nil || before == nil && after == nil {
		return err
	}
	return tx.Create(&auditRow{
		ID: s.newID("aud_"), At: at(s.clock()), ActedBy: actor.By, Action: d.action, Object: d.object, AccountID: nullable(d.account),
		OldValues: before, NewValues: after, Address: actor.Address, RequestID: actor.RequestID,
	}).Error
}

// difference are the fields in which the two differ.
func difference(before, after any) (old, made document, err error) {
	was, err := fieldsOf(before)
	if err != nil {
		return nil, nil, err
	}
	is, err := fieldsOf(after)
	if err != nil {
		return nil, nil, err
	}
	for name, value := range was {
		if bytes.Equal(is[name], value) {
			delete(was, name)
			delete(is, name)
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

func fieldsOf(facts any) (map[string]json.RawMessage, error) {
	if facts == nil {
		return nil, nil
	}
	text, err := jsonText(facts)
	if err != nil {
		return nil, err
	}
	fields := map[string]json.RawMessage{}
	return fields, fromJSON("audit", text, &fields)
}

// The facts of each thing are in the words and forms of the admin API.
type accountFacts struct {
	Name        string  `json:"name"`
	Group       string  `json:"group"`
	Rate        *int    `json:"rate"`
	InFlight    *int    `json:"in_flight"`
	EraseInputs bool    `json:"erase_inputs"`
	Webhook     *string `json:"webhook"`

	Unpaid        *string `json:"unpaid"`
	UploadsPerDay *int64  `json:"uploads_per_day"`
}

func (r accountRow) facts() accountFacts {
	f := accountFacts{Name: r.Name, Group: r.GroupName, Rate: r.Rate, InFlight: r.InFlightCap, EraseInputs: r.EraseInputs, UploadsPerDay: r.UploadsCap}
	if r.Webhook != "" {
		f.Webhook = &r.Webhook
	}
	if r.UnpaidCap != nil {
		unpaid := r.UnpaidCap.String()
		f.Unpaid = &unpaid
	}
	return f
}

type keyFacts struct {
	Name      string            `json:"name"`
	Group     *string           `json:"group"`
	Unlimited bool              `json:"unlimited"`
	Quota     *string           `json:"quota"`
	Models    json.RawMessage   `json:"models"`
	ExpiresAt *int64            `json:"expires_at"`
	AllowIPs  json.RawMessage   `json:"allow_ips"`
	Scopes    json.RawMessage   `json:"scopes"`
	Caps      map[string]string `json:"caps"`
	Rate      *int              `json:"rate"`
	InFlight  *int              `json:"in_flight"`
	Strict    bool              `json:"strict"`
	RotatedTo *string           `json:"rotated_to"`
}

func (r keyRow) facts() keyFacts {
	f := keyFacts{
		Name: r.Name, Group: nullable(r.GroupName), Unlimited: r.Unlimited, ExpiresAt: unix(r.ExpiresAt),
		Models: json.RawMessage(r.Models), AllowIPs: json.RawMessage(r.AllowIPs), Scopes: json.RawMessage(r.Scopes),
		Caps: map[string]string{}, Rate: r.Rate, InFlight: r.InFlightCap, Strict: r.Strict, RotatedTo: r.SuccessorID,
	}
	if !r.Unlimited {
		f.Quota = new(r.Quota.String())
	}
	for _, p := range periods {
		if limit := r.limit(p); limit != nil {
			f.Caps[p.name] = limit.String()
		}
	}
	return f
}

type grantFacts struct {
	Amount    string `json:"amount"`
	Reference string `json:"reference"`
}

type secretFacts struct {
	PreviousExpiresAt *int64 `json:"previous_expires_at"`
}

type channelFacts struct {
	Enabled bool `json:"enabled"`
	Broken  bool `json:"broken"` // its breaker is open
}

func unix(t stamp) *int64 {
	if t.IsZero() {
		return nil
	}
	return new(t.Unix())
}

// Audit lists what was changed, newest first, older than the entry after; of one
// account only when accountID is given. Returns KindInvalid when after names no
// entry of the list.
func (s *Store) Audit(ctx context.Context, accountID, after string, limit int) (entries []mediagate.AuditEntry, hasMore bool, err error) {
	of := func() *gorm.DB {
		if accountID == "" {
			return s.on(ctx)
		}
		return s.on(ctx).Where("account_id = ?", accountID)
	}
	if after != "" {
		row, err := take[auditRow](of().Where("id = ?", after))
		if err != nil {
			return nil, false, dbError(err, "read audit")
		}
		if row == nil {
			return nil, false, unknownAfter(notFound("audit entry", after))
		}
	}
	rows, hasMore, err := newest[auditRow](of(), after, limit)
	if err != nil {
		return nil, false, dbError(err, "list audit")
	}
	return convert(rows, auditRow.entry), hasMore, nil
}
