package blob

import (
	"context"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/aws/smithy-go/encoding/httpbinding"

	"github.com/mediagate/mediagate"
)

// MaxLink is the longest time that S3's signature allows a link to last.
const MaxLink = 7 * 24 * time.Hour

// unsignedPayload stands for the hash of the body in the signature of a link.
const unsignedPayload = "UNSIGNED-PAYLOAD"

// Sign makes a link to a stored file that lasts for ttl, at most MaxLink, and no longer than our own
// credentials if these are temporary. ExpiresAt is exactly when the link stops working. Sign makes no
// network call, unless the SDK's chain has to renew its credentials.
//
// Returns KindUnavailable when there are no valid credentials.
func (s *Store) Sign(ctx context.Context, r mediagate.Result, ttl time.Duration) (mediagate.Link, error) {
	return s.SignAs(ctx, r, ttl, http.MethodGet, "")
}

// SignAs is Sign for a method, GET or HEAD: the link works for that method only. With a name, browsers
// save the file under that name (RFC 6266).
func (s *Store) SignAs(
	ctx context.Context, r mediagate.Result, ttl time.Duration, method, name string,
) (mediagate.Link, error) {
	creds, err := s.creds.Retrieve(ctx)
	if err != nil {
		return mediagate.Link{}, &mediagate.Error{
			Kind: mediagate.KindUnavailable, Code: CodeStorageRefused,
			Message: "signing a link: no credentials", Err: err,
		}
	}
	// A signature counts whole seconds from its own time, which is truncated to seconds.
	now := s.now().UTC().Truncate(time.Second)
	ttl = min(ttl, MaxLink)
	if creds.CanExpire {
		ttl = min(ttl, creds.Expires.Sub(now))
	}
	ttl = ttl.Truncate(time.Second)
	if ttl < time.Second {
		return mediagate.Link{}, &mediagate.Error{
			Kind: mediagate.KindUnavailable, Code: CodeStorageRefused,
			Message: "signing a link: the credentials have ended",
		}
	}
	u := s.objectURL(r.Key)
	u.RawQuery = "X-Amz-Expires=" + strconv.Itoa(int(ttl/time.Second))
	if name != "" {
		disposition := mime.FormatMediaType("attachment", map[string]string{"filename": name})
		u.RawQuery += "&response-content-disposition=" + strings.ReplaceAll(url.QueryEscape(disposition), "+", "%20")
	}
	req := (&http.Request{Method: method, URL: u, Host: u.Host, Header: http.Header{}}).WithContext(ctx)
	signed, _, err := s.signer.PresignHTTP(ctx, creds, req, unsignedPayload, "s3", s.region, now)
	if err != nil {
		return mediagate.Link{}, &mediagate.Error{
			Kind: mediagate.KindUnavailable, Code: CodeStorageRefused, Message: "signing a link failed", Err: err,
		}
	}
	return mediagate.Link{URL: signed, ExpiresAt: now.Add(ttl)}, nil
}

// Origin returns the origin of the links, as browsers write it.
func (s *Store) Origin() string { return s.links.Scheme + "://" + s.links.Host }

// objectURL returns the URL of an object. The signature requires S3's strict escaping; net/url would
// escape fewer characters.
func (s *Store) objectURL(key string) *url.URL {
	u := *s.links
	folder := strings.TrimSuffix(u.EscapedPath(), "/") + "/"
	u.Path = strings.TrimSuffix(u.Path, "/") + "/" + key
	u.RawPath = folder + httpbinding.EscapePath(key, false)
	return &u
}
