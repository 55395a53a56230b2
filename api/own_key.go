package api

import (
	"net/http"
	"slices"

	"github.com/mediagate/mediagate"
)

// The keys of an account, which one of them manages. Another account's key is as
// unknown as one that was never made.

func (s *Server) handleOwnKeys(c *call) error {
	after, limit, err := page(c, keyIDPrefix)
	if err != nil {
		return err
	}
	rows, more, err := s.cfg.Store.Keys(c.ctx, c.caller.key.AccountID, after, limit)
	if err != nil {
		return err
	}
	return c.ok(listOf(rows, more, viewKey))
}

// ownKey reads the key that the path names.
func (s *Server) ownKey(c *call) (mediagate.Key, error) {
	id, err := pathKey(c)
	if err != nil {
		return mediagate.Key{}, err
	}
	key, err := s.cfg.Store.Key(c.ctx, id)
	if err == nil && key.AccountID != c.caller.key.AccountID {
		err = errKeyID
	}
	return key, notFoundAs(err, errKeyID)
}

func (s *Server) handleOwnKey(c *call) error {
	key, err := s.ownKey(c)
	if err != nil {
		return err
	}
	return c.ok(viewKey(key))
}

func (s *Server) handleOwnKeyCreation(c *call) error {
	f, err := s.readFields(c)
	if err != nil {
		return err
	}
	key := s.readNewKey(f, c.models)
	if f.err != nil {
		return f.err
	}
	account, err := s.ownAccount(c)
	if err != nil {
		return err
	}
	secret, stored := newSecret()
	made, err := s.cfg.Store.GiveKey(c.ctx, c.caller.key.ID, stored, func(giver mediagate.Key) (mediagate.Key, error) {
		has, err := s.powersOf(c, giver, account)
		if err != nil {
			return mediagate.Key{}, err
		}
		given := has.follow(key)
		return given, f.beyond(has.lacks(given))
	})
	if err != nil {
		return err
	}
	return c.showKey(http.StatusCreated, made, secret)
}

// handleOwnKeyChange takes any change that leaves the key with nothing that it had
// not before. Beyond that the whole key that comes of it must be one that the
// caller could make; of itself it is not: a key only narrows itself. Keys that
// share limits by a rotation are judged alike, each with what it has besides. The
// caller pays for quota that is raised, and for all of it where the key may do more
// in another way.
func (s *Server) handleOwnKeyChange(c *call) error {
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
	account, err := s.ownAccount(c)
	if err != nil {
		return err
	}
	key, err := s.cfg.Store.ChangeKey(c.ctx, c.caller.key.ID, id, func(giver mediagate.Key, k *mediagate.Key) error {
		has, err := s.powersOf(c, giver, account)
		if err != nil {
			return err
		}
		if err := apply(k); err != nil {
			return err
		}
		if f.given("group") {
			*k = has.follow(*k)
		}
		return nil
	}, func(giver, was, is mediagate.Key) (widened bool, err error) {
		beyond := powers{key: was, catalog: c.models.catalog}.lacks(is)
		if len(beyond) == 0 || giver.ID == is.ID {
			return false, f.beyond(beyond)
		}
		has, err := s.powersOf(c, giver, account)
		if err != nil {
			return false, err
		}
		return !slices.Equal(beyond, []string{"quota"}), f.beyond(has.lacks(is))
	})
	if err != nil {
		return notFoundAs(err, errKeyID)
	}
	s.keys.forgetKey(id)
	return c.ok(viewKey(key))
}

// handleOwnKeyRotation gives the caller a secret with all that the key may do,
// which must not be more than what it may do itself, and takes the quota of it.
func (s *Server) handleOwnKeyRotation(c *call) error {
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
	account, err := s.ownAccount(c)
	if err != nil {
		return err
	}
	secret, stored := newSecret()
	made, err := s.cfg.Store.RenewKey(c.ctx, c.caller.key.ID, id, stored, grace, func(giver, k mediagate.Key) error {
		has, err := s.powersOf(c, giver, account)
		if err != nil || giver.ID == k.ID {
			return err
		}
		return f.beyond(has.lacks(k))
	})
	if err != nil {
		return notFoundAs(err, errKeyID)
	}
	s.keys.forgetKey(id)
	return c.showKey(http.StatusCreated, made, secret)
}

func (s *Server) handleOwnKeyDeletion(c *call) error {
	key, err := s.ownKey(c)
	if err != nil {
		return err
	}
	if err := s.cfg.Store.DeleteKey(c.ctx, key.ID); err != nil {
		return notFoundAs(err, errKeyID)
	}
	s.keys.forgetKey(key.ID)
	return c.NoContent(http.StatusNoContent)
}

// ownAccount reads the caller's account as it is now.
func (s *Server) ownAccount(c *call) (mediagate.Account, error) {
	account, err := s.cfg.Store.Account(c.ctx, c.caller.key.AccountID)
	return account, notFoundAs(err, errUnknownKey)
}

// powersOf are what the key has to give, as it is now: it may have lost the scope
// since the call was let in.
func (s *Server) powersOf(c *call, giver mediagate.Key, account mediagate.Account) (powers, error) {
	if !slices.Contains(giver.Scopes, mediagate.ScopeManage) {
		return powers{}, errScope(mediagate.ScopeManage)
	}
	has := powers{key: giver, accountGroup: account.Group, catalog: c.models.catalog}
	if has.accountGroup == "" {
		has.accountGroup = defaultGroup
	}
	name := has.accountGroup
	if giver.Group != "" {
		name = giver.Group
	}
	has.group = s.groups[name].models
	return has, nil
}
