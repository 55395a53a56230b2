package vertex

import (
	"bytes"
	"context"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"golang.org/x/oauth2"
	"golang.org/x/oauth2/jwt"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/providers/vendorhttp"
)

// validKey reports whether the text is an RSA key in PEM. Signing needs such a key.
func validKey(text string) bool {
	block, _ := pem.Decode([]byte(text))
	if block == nil {
		return false
	}
	key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		_, err = x509.ParsePKCS1PrivateKey(block.Bytes)
		return err == nil
	}
	_, isRSA := key.(*rsa.PrivateKey)
	return isRSA
}

const (
	// tokenMargin is the last part of a token's life, in which it is no longer used.
	tokenMargin = 5 * time.Minute
	// tokenTimeout bounds the call for a token.
	tokenTimeout = 10 * time.Second
	// tokenLife is the assumed life of a token that does not state its own. It is short to be safe.
	tokenLife = 10 * time.Minute
)

// tokens makes the access tokens of a service account and caches the latest.
type tokens struct {
	http   *vendorhttp.Client
	config *jwt.Config

	semaphore chan struct{} // holds one value while the cache is free
	current   string
	until     time.Time
}

func newTokens(client *vendorhttp.Client, account serviceAccount) *tokens {
	t := &tokens{http: client, config: account.config(), semaphore: make(chan struct{}, 1)}
	t.semaphore <- struct{}{}
	return t
}

// token returns a valid token. stale is a token that the vendor has refused; token never returns
// that one. Concurrent callers wait while one token is made.
func (t *tokens) token(ctx context.Context, stale string) (string, error) {
	select {
	case <-t.semaphore:
		defer func() { t.semaphore <- struct{}{} }()
	case <-ctx.Done():
		return "", &mediagate.Error{Kind: mediagate.KindTransient, Message: "no token in time", Err: ctx.Err()}
	}
	if t.current != "" && t.current != stale && t.http.Now().Before(t.until) {
		return t.current, nil
	}
	made, life, err := t.make(ctx)
	if err != nil {
		return "", err
	}
	t.http.Hide(mediagate.NewSecret(made))
	t.current, t.until = made, t.http.Now().Add(life)
	return made, nil
}

// make asks for a token with a signed assertion.
func (t *tokens) make(ctx context.Context) (token string, life time.Duration, err error) {
	c := &tokenTransport{http: t.http, ctx: ctx}
	made, err := t.config.TokenSource(context.WithValue(ctx, oauth2.HTTPClient, &http.Client{Transport: c})).Token()
	if c.failed != nil {
		return "", 0, c.failed
	}
	var answered *oauth2.RetrieveError
	switch {
	case errors.As(err, &answered):
		return "", 0, t.refusal(c.answer)
	case err != nil, !isHeaderSafe(made.AccessToken):
		return "", 0, t.http.Refuse(
			vendorhttp.Meaning{Kind: mediagate.KindTransient}, c.answer, "", "", "the answer holds no token",
		)
	}
	life = tokenLife
	if !made.Expiry.IsZero() {
		life = time.Until(made.Expiry) - tokenMargin // a token with a shorter life is used once
	}
	return made.AccessToken, life, nil
}

// isHeaderSafe reports whether a token can be part of a header.
func isHeaderSafe(token string) bool {
	const most = 8192
	return token != "" && len(token) <= most &&
		!strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' })
}

// refusal returns the error for an answer without a token. Only the server's own error words prove
// that the account is invalid.
func (t *tokens) refusal(answer vendorhttp.Answer) error {
	var body struct {
		Error       vendorhttp.Text `json:"error"`
		Description vendorhttp.Text `json:"error_description"`
	}
	v := vendorhttp.Meaning{Kind: mediagate.KindTransient}
	if answer.Decode(&body) == nil && body.Error != "" &&
		answer.Status >= http.StatusBadRequest && answer.Status < http.StatusInternalServerError {
		switch body.Error {
		case "invalid_grant", "invalid_client", "unauthorized_client", "access_denied", "invalid_scope",
			"invalid_request", "unsupported_grant_type":
			v.Kind = mediagate.KindCredentials
		}
	}
	return t.http.Refuse(v, answer, string(body.Error), "", string(body.Description))
}

// tokenTransport makes the call for a token with vendorhttp, so that the limits of vendorhttp apply
// and a proxy from the environment does not.
type tokenTransport struct {
	http   *vendorhttp.Client
	ctx    context.Context //nolint:containedctx // the token library takes none for its request
	answer vendorhttp.Answer
	failed error
}

// RoundTrip implements http.RoundTripper.
func (c *tokenTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(req.Body)
	if err == nil {
		err = req.Body.Close()
	}
	form, formErr := url.ParseQuery(string(body))
	if err := errors.Join(err, formErr); err != nil {
		return nil, err
	}
	c.answer, c.failed = c.http.Do(c.ctx, vendorhttp.Call{
		Effect: vendorhttp.Reads, Base: req.URL.String(), Body: vendorhttp.Form(form),
		Limits: vendorhttp.Limits{Total: tokenTimeout},
	})
	if c.failed != nil {
		return nil, c.failed
	}
	return &http.Response{
		StatusCode: c.answer.Status, Header: c.answer.Header, Body: io.NopCloser(bytes.NewReader(c.answer.Body)),
		Request: req,
	}, nil
}
