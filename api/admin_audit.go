package api

import (
	"encoding/json"

	"github.com/mediagate/mediagate"
)

// auditView is one change on record. Before and After hold the fields that changed. ByName, Name
// and Owner are present names, which may have changed since.
type auditView struct {
	ID        string          `json:"id"`
	At        int64           `json:"at"`
	By        string          `json:"by"` // an operator's name, or the id of a key
	ByName    *string         `json:"by_name"`
	Action    string          `json:"action"`
	Object    string          `json:"object"`
	Name      *string         `json:"object_name"`
	Account   *string         `json:"account"`
	Owner     *string         `json:"account_name"`
	Before    json.RawMessage `json:"before"`
	After     json.RawMessage `json:"after"`
	Address   *string         `json:"address"`
	RequestID string          `json:"request_id"`
}

func viewAudit(e mediagate.AuditEntry, names map[string]string) auditView {
	return auditView{
		ID: e.ID, At: e.At.Unix(), By: e.Actor.By, ByName: orNull(names[e.Actor.By]), Action: string(e.Action),
		Object: e.Object, Name: orNull(names[e.Object]), Account: orNull(e.AccountID), Owner: orNull(names[e.AccountID]),
		Before: e.Before, After: e.After, Address: orNull(e.Actor.Address), RequestID: e.Actor.RequestID,
	}
}

func (s *Server) handleAudit(c *call) error {
	f, err := s.auditFilter(c)
	if err != nil {
		return err
	}
	rows, more, err := s.cfg.Store.Audit(c.ctx, f)
	if err != nil {
		return err
	}
	ids := make([]string, 0, 3*len(rows))
	for _, e := range rows {
		ids = append(ids, e.Actor.By, e.Object, e.AccountID)
	}
	names, err := s.cfg.Store.Names(c.ctx, ids)
	return answerList(c, rows, more, err, func(e mediagate.AuditEntry) auditView { return viewAudit(e, names) })
}

// auditFilter reads the filters of the audit. An unknown action or account is an error. The object
// or the key that changed it may be deleted by now, so any text is a valid filter for either.
func (s *Server) auditFilter(c *call) (f mediagate.AuditFilter, err error) {
	if f.After, f.Limit, err = page(c, auditPrefix); err != nil {
		return f, err
	}
	q := c.query()
	if f.AccountID, err = s.queryAccount(c.ctx, q); err != nil {
		return f, err
	}
	action, err := oneOfQuery(q, "action", words(mediagate.AuditActions())...)
	if err != nil {
		return f, err
	}
	f.Action = mediagate.AuditAction(action)
	if f.Object, err = textQuery(q, "object"); err != nil {
		return f, err
	}
	if f.By, err = textQuery(q, "by"); err != nil {
		return f, err
	}
	if f.From, err = dateQuery(q, "from"); err != nil {
		return f, err
	}
	if f.To, err = dateQuery(q, "to"); err != nil {
		return f, err
	}
	return f, nil
}
