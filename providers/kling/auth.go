package kling

import (
	"sync"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/mediagate/mediagate"
)

// credentials is an access key with its secret, or an API key.
type credentials struct{ access, secret, api mediagate.Secret }

// authorizer provides the bearer token of a call. The token is the API key itself, or a JWT that
// the authorizer reuses while it is fresh.
type authorizer interface {
	token() (string, error)
	// renew drops the token if it is still the one in use. It reports whether token can return
	// another one.
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
	tokenMargin = 5 * time.Minute // a token with less time left is not used any more
	tokenSkew   = 5 * time.Second // how far the vendor's clock may be behind ours
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
	// If the clock was set back, the token's nbf would be in the future.
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
