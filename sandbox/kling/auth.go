package kling

import (
	"errors"
	"net/http"
	"strings"

	"github.com/golang-jwt/jwt/v5"

	"github.com/mediagate/mediagate/sandbox/kernel"
)

// Kling's codes of authentication.
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

// signed reports whether the caller brings a token that it signed itself.
func signed(r *http.Request) bool { return strings.Count(r.Header.Get("Authorization"), ".") == 2 }

// apiKeyed lets in callers with a console's API key only, as the newer generation does.
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

// who recognises a customer by the Authorization header: a console's API key, or a token
// that the access key's secret signed. Of such a token the vendor demands HS256, typ, iss,
// exp and nbf, all true now.
func (k authenticator) who(r *http.Request) (account kernel.Account, refused *kernel.Reply) {
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
