package api

import (
	"encoding/json"
	"errors"

	"github.com/mediagate/mediagate"
)

// The messages of failed lookups on the balance endpoints.
const (
	noRecord      = "record not found"
	noUser        = "user does not exist"
	databaseError = "database error"
)

// lookupFailure is a failed lookup on a balance endpoint, which answers it with HTTP 200.
type lookupFailure struct {
	message string
	err     error
}

func (f *lookupFailure) Error() string { return f.message + ": " + f.err.Error() }
func (f *lookupFailure) Unwrap() error { return f.err }

// asLookupFailure turns the store's error into a lookupFailure. absent is the message if there is
// no row.
func asLookupFailure(err error, absent string) error {
	switch mediagate.KindOf(err) {
	case mediagate.KindNotFound, mediagate.KindUnauthenticated:
		return &lookupFailure{absent, err}
	default:
		return &lookupFailure{databaseError, err}
	}
}

type balanceError struct {
	Success bool   `json:"success"`
	Message string `json:"message"`
}

func balanceFailure(err error) (balanceError, bool) {
	var f *lookupFailure
	if !errors.As(err, &f) {
		return balanceError{}, false
	}
	return balanceError{Message: f.message}, true
}

type tokenBalance struct {
	Success        bool        `json:"success"`
	RemainBalance  json.Number `json:"remain_balance"`
	RemainCredits  int64       `json:"remain_credits"`
	UsedBalance    json.Number `json:"used_balance"`
	UsedCredits    int64       `json:"used_credits"`
	UnlimitedQuota bool        `json:"unlimited_quota"`
}

type userBalance struct {
	Success       bool        `json:"success"`
	RemainBalance json.Number `json:"remain_balance"`
	RemainCredits int64       `json:"remain_credits"`
	UsedBalance   json.Number `json:"used_balance"`
	UsedCredits   json.Number `json:"used_credits"`
}

// handleTokenBalance reads the key anew. The cached key suffices to admit the call, but its
// amounts may be outdated.
func (s *Server) handleTokenBalance(c *call) error {
	key, err := s.cfg.Store.Key(c.ctx, c.caller.key.ID)
	if err != nil {
		return asLookupFailure(err, noRecord)
	}
	b := tokenBalance{
		Success: true, RemainBalance: "-1", RemainCredits: -1,
		UsedBalance: key.Spent.Number(), UsedCredits: key.Spent.WholeCredits(s.cfg.CreditsPerUnit),
		UnlimitedQuota: key.Unlimited,
	}
	if !key.Unlimited {
		b.RemainBalance = key.Remaining().Number()
		b.RemainCredits = key.Remaining().WholeCredits(s.cfg.CreditsPerUnit)
	}
	return c.ok(b)
}

func (s *Server) handleUserBalance(c *call) error {
	account, err := s.cfg.Store.Account(c.ctx, c.caller.key.AccountID)
	if err != nil {
		return asLookupFailure(err, noUser)
	}
	return c.ok(userBalance{
		Success:       true,
		RemainBalance: account.Available.Number(),
		RemainCredits: account.Available.WholeCredits(s.cfg.CreditsPerUnit),
		UsedBalance:   account.Spent.Number(),
		UsedCredits:   account.Spent.Credits(s.cfg.CreditsPerUnit),
	})
}
