package sandbox

import (
	"errors"
	"net/http"
	"strings"

	"github.com/golang-jwt/jwt/v5"
)

// authenticate judges the Authorization header: a console API key, or a
// token that the access key's secret signed.
func (k *kling) authenticate(r *http.Request) (Account, *klingRefusal) {
	header := r.Header.Get("Authorization")
	if header == "" {
		return Account{}, &klingRefusal{klingAuthEmpty, "Authorization is empty"}
	}
	token, ok := strings.CutPrefix(header, "Bearer ")
	if !ok || token == "" {
		return Account{}, &klingRefusal{klingAuthInvalid, "Authorization is invalid"}
	}
	if strings.Count(token, ".") != 2 {
		if a, ok := k.account("kling", "api_key", token); ok {
			return a, nil
		}
		return Account{}, &klingRefusal{klingAuthFailed, "Authentication failed"}
	}
	return k.fromToken(token)
}

var errForeign = errors.New("unknown issuer")

// fromToken demands what the vendor demands of a token: HS256, typ, iss, exp
// and nbf, all true now.
func (k *kling) fromToken(token string) (Account, *klingRefusal) {
	var account Account
	claims := jwt.RegisteredClaims{}
	parsed, err := jwt.ParseWithClaims(token, &claims, func(*jwt.Token) (any, error) {
		a, ok := k.account("kling", "access_key", claims.Issuer)
		if !ok {
			return nil, errForeign
		}
		account = a
		return []byte(a.Credentials["secret_key"]), nil
	}, jwt.WithValidMethods([]string{"HS256"}), jwt.WithExpirationRequired(), jwt.WithTimeFunc(k.now))
	switch {
	case errors.Is(err, jwt.ErrTokenSignatureInvalid), errors.Is(err, errForeign):
		return Account{}, &klingRefusal{klingAuthFailed, "Authentication failed"}
	case errors.Is(err, jwt.ErrTokenExpired):
		return Account{}, &klingRefusal{klingAuthExpired, "Authorization has expired"}
	case errors.Is(err, jwt.ErrTokenNotValidYet):
		return Account{}, &klingRefusal{klingAuthEarly, "Authorization is not yet valid"}
	case err != nil || parsed.Header["typ"] != "JWT" || claims.NotBefore == nil:
		return Account{}, &klingRefusal{klingAuthInvalid, "Authorization is invalid"}
	}
	return account, nil
}
