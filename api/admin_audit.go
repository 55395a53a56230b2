package api

import (
	"encoding/json"

	"github.com/mediagate/mediagate"
)

// auditView is a change that was made. Before and after hold the fields that
// changed.
type auditView struct {
	ID        string          `json:"id"`
	At        int64           `json:"at"`
	By        string          `json:"by"` // operator, or a key
	Action    string          `json:"action"`
	Object    string          `json:"object"`
	Account   *string         `json:"account"`
	Before    json.RawMessage `json:"before"`
	After     json.RawMessage `json:"after"`
	Address   *string         `json:"address"`
	RequestID string          `json:"request_id"`
}

func viewAudit(e mediagate.AuditEntry) auditView {
	return auditView{
		ID: e.ID, At: e.At.Unix(), By: e.Actor.By, Action: string(e.Action), Object: e.Object, Account: orNull(e.AccountID),
		Before: e.Before, After: e.After, Address: orNull(e.Actor.Address), RequestID: e.Actor.RequestID,
	}
}

func (s *Server) handleAudit(c *call) error {
	after, limit, err := page(c, auditPrefix)
	if err != nil {
		return err
	}
	account, err := s.queryAccount(c)
	if err != nil {
		return err
	}
	rows, more, err := s.cfg.Store.Audit(c.ctx, account, after, limit)
	return answerList(c, rows, more, err, viewAudit)
}
