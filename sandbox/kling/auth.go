package kling

import (
	"errors"
	"net/http"
	"strings"

	"github.com/golang-jwt/jwt/v5"

	"github.com/mediagate/mediagate/sandbox/kernel"
)

// authenticate judges the Authorization header: a console API key, or a
// token that the access key's secret signed.
func (k *kling) authenticate(r *http.Request) (kernel.Account, *refusal) {
	header := r.Header.Get("Authorization")
	if header == "" {
		return kernel.Account{}, &refusal{codeAuthEmpty, "Authorization is empty"}
	}
	token, ok := strings.CutPrefix(header, "Bearer ")
	if !ok || token == "" {
		return kernel.Account{}, &refusal{codeAuthInvalid, "Authorization is invalid"}
	}
	if !signed(r) {
		if a, ok := k.Customer("api_key", token); ok {
			return a, nil
		}
		return kernel.Account{}, &refusal{codeAuthFailed, "Authentication failed"}
	}
	return k.fromToken(token)
}

// signed reports whether the caller brings a token that it signed itself.
func signed(r *http.Request) bool { return strings.Count(r.Header.Get("Authorization"), ".") == 2 }

var errForeign = errors.New("unknown issuer")

// fromToken demands what the vendor demands of a token: HS256, typ, iss, exp
// and nbf, all true now.
func (k *kling) fromToken(token string) (kernel.Account, *refusal) {
	var account kernel.Account
	claims := jwt.RegisteredClaims{}
	parsed, err := jwt.ParseWithClaims(token, &claims, func(*jwt.Token) (any, error) {
		a, ok := k.Customer("access_key", claims.Issuer)
		if !ok {
			return nil, errForeign
		}
		account = a
		return []byte(a.Credentials["secret_key"]), nil
	}, jwt.WithValidMethods([]string{"HS256"}), jwt.WithExpirationRequired(), jwt.WithTimeFunc(k.Now))
	switch {
	case errors.Is(err, jwt.ErrTokenSignatureInvalid), errors.Is(err, errForeign):
		return kernel.Account{}, &refusal{codeAuthFailed, "Authentication failed"}
	case errors.Is(err, jwt.ErrTokenExpired):
		return kernel.Account{}, &refusal{codeAuthExpired, "Authorization has expired"}
	case errors.Is(err, jwt.ErrTokenNotValidYet):
		return kernel.Account{}, &refusal{codeAuthEarly, "Authorization is not yet valid"}
	case err != nil || parsed.Header["typ"] != "JWT" || claims.NotBefore == nil:
		return kernel.Account{}, &refusal{codeAuthInvalid, "Authorization is invalid"}
	}
	return account, nil
}
