package kling

import (
	"sync"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/mediagate/mediagate"
)

// credentials are either an access key with its secret, or an API key.
type credentials struct{ access, secret, api mediagate.Secret }

// authorizer makes the bearer token of a call. With an API key it is the key
// itself, otherwise a JWT that is kept while it is fresh.
type authorizer interface {
	token() (string, error)
	// renew drops the token if it is still the one in use, and reports whether
	// another one can be had.
	renew(stale string) bool
}

func newAuthorizer(keys credentials, now func() time.Time) authorizer {
	if keys.api != (mediagate.Secret{}) {
		return apiKey{keys.api}
	}
	return &minter{access: keys.access, secret: keys.secret, now: now}
}

type apiKey struct{ key mediagate.Secret }

func (k apiKey) token() (string, error) { return k.key.Reveal(), nil }
func (k apiKey) renew(string) bool      { return false }

const (
	tokenLife   = 30 * time.Minute
	tokenMargin = 5 * time.Minute // a token this near to its end is not used any more
	tokenSkew   = 5 * time.Second // by which the vendor's clock may be behind ours
)

type minter struct {
	access mediagate.Secret
	secret mediagate.Secret
	now    func() time.Time

	mu      sync.Mutex
	current mediagate.Secret
	made    time.Time
}

func (m *minter) token() (string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.now()
	// A clock that was set back would make the token's nbf lie ahead.
	if age := now.Sub(m.made); m.current != (mediagate.Secret{}) && age >= 0 && age < tokenLife-tokenMargin {
		return m.current.Reveal(), nil
	}
	token, err := jwt.NewWithClaims(jwt.SigningMethodHS256, jwt.RegisteredClaims{
		Issuer:    m.access.Reveal(),
		ExpiresAt: jwt.NewNumericDate(now.Add(tokenLife)),
		NotBefore: jwt.NewNumericDate(now.Add(-tokenSkew)),
	}).SignedString([]byte(m.secret.Reveal()))
	if err != nil {
		return "", err
	}
	m.current, m.made = mediagate.NewSecret(token), now
	return token, nil
}

func (m *minter) renew(stale string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.current.Reveal() == stale {
		m.current = mediagate.Secret{}
	}
	return true
}
