package kling

import (
	"errors"
	"net/http"
	"strings"

	"github.com/golang-jwt/jwt/v5"

	"github.com/mediagate/mediagate/sandbox/kernel"
)

// Kling's codes for failed authentication.
const (
	codeAuthFailed  = 1000
	codeAuthEmpty   = 1001
	codeAuthInvalid = 1002
	codeAuthEarly   = 1003
	codeAuthExpired = 1004
)

func refuseKey(code int, message string) *kernel.Reply {
	return &kernel.Reply{Kind: kernel.CallOther, Status: http.StatusUnauthorized, Body: envelope(code, message, nil)}
}

// signed reports whether the call has a token that the caller signed. Such a token has two dots.
func signed(r *http.Request) bool { return strings.Count(r.Header.Get("Authorization"), ".") == 2 }

// apiKeyed wraps a handler so that it refuses signed tokens. The newer generation accepts only a
// console's API key.
func apiKeyed(h kernel.Handler) kernel.Handler {
	return func(r *http.Request, a kernel.Account) kernel.Reply {
		if signed(r) {
			return *refuseKey(codeAuthInvalid, "Authorization is invalid")
		}
		return h(r, a)
	}
}

type authenticator struct{ *kernel.Service }

var errForeign = errors.New("unknown issuer")

// findCustomer returns the customer named by the Authorization header, which holds a console's API key or
// a token signed with the access key's secret. The vendor demands of a token HS256, typ, iss,
// exp and nbf, and that it is valid now.
func (k authenticator) findCustomer(r *http.Request) (account kernel.Account, refused *kernel.Reply) {
	header := r.Header.Get("Authorization")
	token, bearer := strings.CutPrefix(header, "Bearer ")
	switch {
	case header == "":
		return account, refuseKey(codeAuthEmpty, "Authorization is empty")
	case !bearer || token == "":
		return account, refuseKey(codeAuthInvalid, "Authorization is invalid")
	case !signed(r):
		account, known := k.Customer("api_key", token)
		if !known {
			return account, refuseKey(codeAuthFailed, "Authentication failed")
		}
		return account, nil
	}
	claims := jwt.RegisteredClaims{}
	parsed, err := jwt.ParseWithClaims(token, &claims, func(*jwt.Token) (any, error) {
		var known bool
		if account, known = k.Customer("access_key", claims.Issuer); !known {
			return nil, errForeign
		}
		return []byte(account.Credentials["secret_key"]), nil
	}, jwt.WithValidMethods([]string{"HS256"}), jwt.WithExpirationRequired(), jwt.WithTimeFunc(k.Now))
	switch {
	case errors.Is(err, jwt.ErrTokenSignatureInvalid), errors.Is(err, errForeign):
		refused = refuseKey(codeAuthFailed, "Authentication failed")
	case errors.Is(err, jwt.ErrTokenExpired):
		refused = refuseKey(codeAuthExpired, "Authorization has expired")
	case errors.Is(err, jwt.ErrTokenNotValidYet):
		refused = refuseKey(codeAuthEarly, "Authorization is not yet valid")
	case err != nil || parsed.Header["typ"] != "JWT" || claims.NotBefore == nil:
		refused = refuseKey(codeAuthInvalid, "Authorization is invalid")
	}
	return account, refused
}
