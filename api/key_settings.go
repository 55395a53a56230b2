package api

import (
	"slices"
	"time"

	"github.com/mediagate/mediagate"
)

// apiKey is a key as operators and the key managers of its account see it. Key, the secret, is
// shown only once.
type apiKey struct {
	ID         string            `json:"id"`
	Key        string            `json:"key,omitempty"`
	Prefix     string            `json:"prefix"`
	LastFour   string            `json:"last_four"`
	Account    string            `json:"account"`
	Name       string            `json:"name"`
	Unlimited  bool              `json:"unlimited"`
	Quota      *string           `json:"quota"` // null: unlimited
	Held       string            `json:"held"`
	Spent      string            `json:"spent"`
	Models     []string          `json:"models"`
	Group      *string           `json:"group"` // null: the account's group
	ExpiresAt  *int64            `json:"expires_at"`
	AllowIPs   []string          `json:"allow_ips"`
	Caps       keyCaps           `json:"caps"`
	CapsUsed   keyCaps           `json:"caps_used"`
	Rate       *int              `json:"rate"`
	InFlight   *int              `json:"in_flight"`
	Strict     bool              `json:"strict"`
	Scopes     []mediagate.Scope `json:"scopes"`
	RotatedTo  *string           `json:"rotated_to"`
	Created    int64             `json:"created"`
	LastUsedAt *int64            `json:"last_used_at"`
}

type keyCaps struct {
	Day   *string `json:"day"`
	Week  *string `json:"week"`
	Month *string `json:"month"`
}

func viewKey(k mediagate.Key) apiKey {
	v := apiKey{
		ID:         k.ID,
		Prefix:     k.Prefix,
		LastFour:   k.LastFour,
		Account:    k.AccountID,
		Name:       k.Name,
		Unlimited:  k.Unlimited,
		Held:       k.Held.String(),
		Spent:      k.Spent.String(),
		Models:     append([]string{}, k.Models...),
		Group:      orNull(k.Group),
		ExpiresAt:  unixOrNull(k.ExpiresAt),
		AllowIPs:   append([]string{}, k.AllowIPs...),
		Caps:       viewCaps(k.Caps),
		CapsUsed:   viewCaps(k.CapsUsed),
		Rate:       k.Rate,
		InFlight:   k.InFlight,
		Strict:     k.Strict,
		Scopes:     k.Scopes,
		RotatedTo:  orNull(k.SuccessorID),
		Created:    k.CreatedAt.Unix(),
		LastUsedAt: unixOrNull(k.LastUsedAt),
	}
	if !k.Unlimited {
		v.Quota = new(k.Quota.String())
	}
	return v
}

func viewCaps(c mediagate.Caps) keyCaps {
	return keyCaps{amountOrNull(c.Day), amountOrNull(c.Week), amountOrNull(c.Month)}
}

func amountOrNull(m *mediagate.Micros) *string {
	if m == nil {
		return nil
	}
	return new(m.String())
}

// readNewKey reads the settings of a new key. A key for which no scopes are given gets all of
// them.
func (s *Server) readNewKey(f *fields) mediagate.Key {
	key := mediagate.Key{Name: f.required("name"), Unlimited: f.flag("unlimited"), Scopes: mediagate.Scopes()}
	switch {
	case key.Unlimited && f.has("quota"):
		f.fail("quota", "quota must be left out: an unlimited key has none")
	case !key.Unlimited && !f.has("quota"):
		f.fail("quota", "quota is required for a key that is not unlimited")
	case !key.Unlimited:
		key.Quota = f.quota()
	}
	s.readSettings(f)(&key)
	return key
}

// readKeyChange reads the changes to a key and returns the function that applies them. Null
// removes a limit.
func (s *Server) readKeyChange(f *fields) (apply func(k *mediagate.Key) error) {
	name, unlimited, settings := f.text("name"), f.flag("unlimited"), s.readSettings(f)
	var quota mediagate.Micros
	if f.has("quota") {
		quota = f.quota()
		if f.has("unlimited") {
			f.fail("quota", "quota must not be sent together with unlimited: quota alone limits the key")
		}
	}
	return func(k *mediagate.Key) error {
		switch {
		case f.has("quota"):
			k.Unlimited, k.Quota = false, quota
		case unlimited:
			k.Unlimited, k.Quota = true, 0
		case f.has("unlimited") && k.Unlimited:
			return mediagate.Invalid("quota", "quota is required to limit an unlimited key: send quota instead of unlimited")
		}
		if name != "" {
			k.Name = name
		}
		settings(k)
		return nil
	}
}

func (f *fields) quota() mediagate.Micros {
	quota := f.amount("quota")
	if quota < 0 {
		f.fail("quota", "quota must not be negative")
	}
	return quota
}

// readSettings reads the settings that new keys and changed keys have in common.
func (s *Server) readSettings(f *fields) (apply func(k *mediagate.Key)) {
	group, expires := s.knownGroup(f), f.future("expires_at", s.now())
	patterns, addresses, scopes := f.patterns(), f.addresses(), f.scopes()
	rate, inFlight, caps, strict := f.number("rate", mostOf), f.number("in_flight", mostOf), f.caps(), f.flag("strict")
	return func(k *mediagate.Key) {
		for name, set := range map[string]func(){
			"group":      func() { k.Group = group },
			"expires_at": func() { k.ExpiresAt = expires },
			"models":     func() { k.Models = patterns },
			"allow_ips":  func() { k.AllowIPs = addresses },
			"scopes":     func() { k.Scopes = scopes },
			"rate":       func() { k.Rate = rate },
			"in_flight":  func() { k.InFlight = inFlight },
			"strict":     func() { k.Strict = strict },
			"caps":       func() { caps(&k.Caps) },
		} {
			if f.given(name) {
				set()
			}
		}
	}
}

// patterns reads the models that the key may use. A literal name may be that of a future model. A
// pattern with * that matches no model is a mistake.
func (f *fields) patterns() []string {
	list := f.texts("models")
	for i, pattern := range list {
		if !isLiteral(pattern) && !f.models.hasMatch(pattern) {
			param := item("models", i)
			f.fail(param, "%s: %s matches no model", param, mediagate.Quote(pattern))
		}
	}
	return list
}

// hasMatch reports whether the pattern matches a model.
func (m *models) hasMatch(pattern string) bool {
	return slices.ContainsFunc(m.list, func(one listedModel) bool { return matches(pattern, one.id) }) ||
		slices.ContainsFunc(m.catalog.Passthroughs(), func(id string) bool { return matches(pattern, id) })
}

// addresses reads the networks from which the key may be used, in their shortest form.
func (f *fields) addresses() []string {
	var list []string
	for i, entry := range f.texts("allow_ips") {
		p, err := parseAllowed(item("allow_ips", i), entry)
		if err != nil {
			if f.err == nil {
				f.err = err
			}
			return nil
		}
		text := p.String()
		if p.IsSingleIP() {
			text = p.Addr().String()
		}
		list = append(list, text)
	}
	return list
}

// scopes reads what the key may do, and returns it in the order of the list of all scopes.
func (f *fields) scopes() []mediagate.Scope {
	if !f.has("scopes") {
		return mediagate.Scopes()
	}
	given := f.texts("scopes")
	if len(given) == 0 {
		f.fail("scopes", "scopes must not be empty: leave it out to give the key all scopes")
	}
	for i, scope := range given {
		if !slices.Contains(mediagate.Scopes(), mediagate.Scope(scope)) {
			param := item("scopes", i)
			f.fail(param, "%s: there is no scope %s", param, mediagate.Quote(scope))
		}
	}
	return slices.DeleteFunc(
		mediagate.Scopes(), func(s mediagate.Scope) bool { return !slices.Contains(given, string(s)) },
	)
}

// The grace time of a rotation, during which the old key still works.
const (
	defaultGrace = 24 * time.Hour
	mostGrace    = 30 * 24 * time.Hour
)

func (f *fields) grace() time.Duration {
	seconds := f.number("grace_seconds", int(mostGrace.Seconds()))
	if seconds == nil {
		return defaultGrace
	}
	return time.Duration(*seconds) * time.Second
}

// showKey answers with a key and its secret, which is shown only this once.
func (c *call) showKey(status int, k mediagate.Key, secret string) error {
	view := viewKey(k)
	view.Key = secret
	c.Response().Header().Set("Cache-Control", "no-store")
	return c.json(status, view)
}
