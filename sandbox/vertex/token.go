package vertex

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/mediagate/mediagate/sandbox/googleapi"
	"github.com/mediagate/mediagate/sandbox/kernel"
)

const (
	grantType = "urn:ietf:params:oauth:grant-type:jwt-bearer"
	scope     = "https://www.googleapis.com/auth/cloud-platform"
	// tokenLife is how long a token is valid, and the longest validity of an assertion.
	tokenLife = time.Hour
	// formMax is the largest request for a token, in bytes.
	formMax = 64 << 10
)

// claims are the claims of an assertion.
type claims struct {
	jwt.RegisteredClaims

	Scope string `json:"scope"`
}

// token answers a signed assertion with an access token.
func (v *vertex) token(r *http.Request) kernel.Reply {
	refuse := func(status int, word, text string) kernel.Reply {
		return kernel.Reply{
			Kind: kernel.CallOther, Status: status, Body: map[string]any{"error": word, "error_description": text},
		}
	}
	r.Body = http.MaxBytesReader(nil, r.Body, formMax)
	if err := r.ParseForm(); err != nil || r.PostForm.Get("grant_type") != grantType {
		return refuse(http.StatusBadRequest, "unsupported_grant_type", "Invalid grant_type: "+r.PostForm.Get("grant_type"))
	}
	var c claims
	parsed, err := jwt.ParseWithClaims(r.PostForm.Get("assertion"), &c, func(*jwt.Token) (any, error) {
		return &v.key.PublicKey, nil
	}, jwt.WithValidMethods([]string{"RS256"}), jwt.WithExpirationRequired(), jwt.WithIssuedAt(),
		jwt.WithTimeFunc(v.Now), jwt.WithLeeway(time.Minute))
	switch {
	case err != nil:
		return refuse(http.StatusBadRequest, "invalid_grant", "Invalid JWT Signature, or it is not valid now.")
	case c.Issuer != v.account.ClientEmail, parsed.Header["kid"] != v.account.PrivateKeyID:
		return refuse(http.StatusBadRequest, "invalid_grant", "Invalid grant: account not found")
	case len(c.Audience) != 1 || c.Audience[0] != kernel.Base(r)+"/vertex/token":
		return refuse(http.StatusBadRequest, "invalid_grant", "Invalid JWT: Failed audience check.")
	case c.IssuedAt == nil || c.ExpiresAt.Sub(c.IssuedAt.Time) > tokenLife+time.Minute:
		return refuse(http.StatusBadRequest, "invalid_grant", "Invalid JWT: Token must be a short-lived token.")
	case c.Scope != scope:
		return refuse(http.StatusBadRequest, "invalid_scope", "Invalid OAuth scope or ID token audience provided.")
	}
	return kernel.Reply{Kind: kernel.CallOther, Status: http.StatusOK, Body: map[string]any{
		"access_token": v.issue(v.Now().Add(tokenLife)), "expires_in": int(tokenLife.Seconds()) - 1, "token_type": "Bearer",
	}}
}

const issuer = "sandbox-access"

// issue returns a token that is valid until then. The token contains its own proof, so it stays
// valid when this process restarts.
func (v *vertex) issue(until time.Time) string {
	mac := hmac.New(sha256.New, v.key.D.Bytes())
	text := fmt.Sprintf("%s.%d", issuer, until.Unix())
	_, _ = mac.Write([]byte(text)) // never fails
	return text + "." + hex.EncodeToString(mac.Sum(nil))
}

// authenticated returns the customer that the token in the Authorization header belongs to.
func (v *vertex) authenticated(r *http.Request) (kernel.Account, *kernel.Reply) {
	token, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	end, _, _ := strings.Cut(strings.TrimPrefix(token, issuer+"."), ".")
	seconds, err := strconv.ParseInt(end, 10, 64)
	until := time.Unix(seconds, 0)
	if err == nil && hmac.Equal([]byte(token), []byte(v.issue(until))) && v.Now().Before(until) {
		if a, known := v.Customer("project", project); known {
			return a, nil
		}
	}
	refused := googleapi.Refuse(kernel.CallOther, googleapi.NoToken, nil)
	return kernel.Account{}, &refused
}
