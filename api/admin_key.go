package api

import (
	"net/http"
	"strconv"

	"github.com/mediagate/mediagate"
)

// keyView is an API key as operators see it. Key, its secret, is shown once.
type keyView struct {
	ID         string   `json:"id"`
	Key        string   `json:"key,omitempty"`
	Prefix     string   `json:"prefix"`
	LastFour   string   `json:"last_four"`
	Account    string   `json:"account"`
	Name       string   `json:"name"`
	Unlimited  bool     `json:"unlimited"`
	Quota      *string  `json:"quota"` // null: unlimited
	Held       string   `json:"held"`
	Spent      string   `json:"spent"`
	Models     []string `json:"models"`
	Group      *string  `json:"group"` // null: the account's
	ExpiresAt  *int64   `json:"expires_at"`
	AllowIPs   []string `json:"allow_ips"`
	Created    int64    `json:"created"`
	LastUsedAt *int64   `json:"last_used_at"`
}

func viewKey(k mediagate.Key) keyView {
	v := keyView{
		ID: k.ID, Prefix: k.Prefix, LastFour: k.LastFour, Account: k.AccountID, Name: k.Name,
		Unlimited: k.Unlimited, Held: k.Held.String(), Spent: k.Spent.String(),
		Models: append([]string{}, k.Models...), Group: orNull(k.Group),
		ExpiresAt: unixOrNull(k.ExpiresAt), AllowIPs: append([]string{}, k.AllowIPs...),
		Created: k.CreatedAt.Unix(), LastUsedAt: unixOrNull(k.LastUsedAt),
	}
	if !k.Unlimited {
		v.Quota = new(k.Quota.String())
	}
	return v
}

func (s *Server) handleKeyCreation(c *call) error {
	account, err := pathAccount(c)
	if err != nil {
		return err
	}
	f, err := s.readFields(c)
	if err != nil {
		return err
	}
	key := s.readKey(f)
	if f.err != nil {
		return f.err
	}
	secret, hash := NewKey()
	key.AccountID = account
	key.Prefix, key.LastFour = KeyDisplay(secret)
	made, err := s.cfg.Store.CreateKey(c.ctx, key, hash)
	if err != nil {
		return notFoundAs(err, errAccountID)
	}
	view := viewKey(made)
	view.Key = secret
	c.Response().Header().Set("Cache-Control", "no-store")
	return c.json(http.StatusCreated, view)
}

// readKey reads the settings of a new key. A limit that nothing would enforce
// is refused: its owner would rely on it.
func (s *Server) readKey(f *fields) mediagate.Key {
	key := mediagate.Key{Name: f.required("name"), Unlimited: f.flag("unlimited")}
	switch {
	case key.Unlimited && f.has("quota"):
		f.fail("quota", "quota must be left out: an unlimited key has none")
	case !key.Unlimited && !f.has("quota"):
		f.fail("quota", "quota is required for a key that is not unlimited")
	case !key.Unlimited:
		if key.Quota = f.amount("quota"); key.Quota < 0 {
			f.fail("quota", "quota must not be negative")
		}
	}
	key.Models, key.Group = f.texts("models"), s.knownGroup(f)
	key.ExpiresAt = f.future("expires_at", s.now())
	for i, entry := range f.texts("allow_ips") {
		p, err := parseAllowed("allow_ips["+strconv.Itoa(i)+"]", entry)
		if err != nil {
			if f.err == nil {
				f.err = err
			}
			break
		}
		text := p.String()
		if p.IsSingleIP() {
			text = p.Addr().String()
		}
		key.AllowIPs = append(key.AllowIPs, text)
	}
	for _, limit := range []string{"caps", "rate", "in_flight"} {
		if f.has(limit) {
			f.fail(limit, "%s is not supported yet", limit)
		}
	}
	return key
}

func (s *Server) handleKeys(c *call) error {
	after, limit, err := page(c, keyIDPrefix)
	if err != nil {
		return err
	}
	ctx := c.ctx
	account := c.query().Get("account")
	if account != "" {
		if !looksLike(account, accountPrefix) {
			return errAccountID
		}
		if _, err := s.cfg.Store.Account(ctx, account); err != nil {
			return notFoundAs(err, errAccountID)
		}
	}
	rows, more, err := s.cfg.Store.Keys(ctx, account, after, limit)
	if err != nil {
		return err
	}
	return c.ok(listOf(rows, more, viewKey))
}

func pathKey(c *call) (string, error) {
	id := c.Param("key_id")
	if !looksLike(id, keyIDPrefix) {
		return "", errKeyID
	}
	return id, nil
}

func (s *Server) handleKey(c *call) error {
	id, err := pathKey(c)
	if err != nil {
		return err
	}
	key, err := s.cfg.Store.Key(c.ctx, id)
	if err != nil {
		return notFoundAs(err, errKeyID)
	}
	return c.ok(viewKey(key))
}

func (s *Server) handleKeyDeletion(c *call) error {
	id, err := pathKey(c)
	if err != nil {
		return err
	}
	if err := s.cfg.Store.DeleteKey(c.ctx, id); err != nil {
		return notFoundAs(err, errKeyID)
	}
	s.keys.forgetKey(id)
	return c.NoContent(http.StatusNoContent)
}
