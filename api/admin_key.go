package api

import "net/http"

func (s *Server) handleKeyCreation(c *call) error {
	account, err := pathAccount(c)
	if err != nil {
		return err
	}
	f, err := s.readFields(c)
	if err != nil {
		return err
	}
	key := s.readNewKey(f, c.models)
	if f.err != nil {
		return f.err
	}
	secret, stored := newSecret()
	key.AccountID, key.Prefix, key.LastFour = account, stored.Prefix, stored.LastFour
	made, err := s.cfg.Store.CreateKey(c.ctx, key, stored.Hash)
	if err != nil {
		return notFoundAs(err, errAccountID)
	}
	return c.showKey(http.StatusCreated, made, secret)
}

func (s *Server) handleKeys(c *call) error {
	after, limit, err := page(c, keyIDPrefix)
	if err != nil {
		return err
	}
	account, err := s.queryAccount(c)
	if err != nil {
		return err
	}
	rows, more, err := s.cfg.Store.Keys(c.ctx, account, after, limit)
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

func (s *Server) handleKeyChange(c *call) error {
	id, err := pathKey(c)
	if err != nil {
		return err
	}
	f, err := s.readFields(c)
	if err != nil {
		return err
	}
	apply := s.readKeyChange(f, c.models)
	if f.err != nil {
		return f.err
	}
	key, err := s.cfg.Store.UpdateKey(c.ctx, id, apply)
	if err != nil {
		return notFoundAs(err, errKeyID)
	}
	s.forgetKey(id)
	return c.ok(viewKey(key))
}

func (s *Server) handleKeyRotation(c *call) error {
	id, err := pathKey(c)
	if err != nil {
		return err
	}
	f, err := s.readFields(c)
	if err != nil {
		return err
	}
	grace := f.grace()
	if f.err != nil {
		return f.err
	}
	secret, stored := newSecret()
	made, err := s.cfg.Store.RotateKey(c.ctx, id, stored, grace)
	if err != nil {
		return notFoundAs(err, errKeyID)
	}
	s.forgetKey(id)
	return c.showKey(http.StatusCreated, made, secret)
}

func (s *Server) handleKeyDeletion(c *call) error {
	id, err := pathKey(c)
	if err != nil {
		return err
	}
	if err := s.cfg.Store.DeleteKey(c.ctx, id); err != nil {
		return notFoundAs(err, errKeyID)
	}
	s.forgetKey(id)
	return c.NoContent(http.StatusNoContent)
}
