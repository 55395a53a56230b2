package veo

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/providers/googleapi"
	"github.com/mediagate/mediagate/providers/vendorhttp"
)

const (
	fileTimeout = mediagate.CopyLimit
	headTimeout = 20 * time.Second
	// fileBytes bounds a video. The model's own limit decides what a task accepts.
	fileBytes = 4 << 30
	// textBytes bounds an answer without a video.
	textBytes = 1 << 20
	// maxHops bounds the redirects of a download.
	maxHops = 5
)

// media returns the video behind a link. If the link leads to a file of the account, at the
// vendor's or at the channel's address, the result has its path as Ref. Open then asks for the path
// at the channel's address. Any other link needs no key and becomes the URL. media returns false if
// there is no link.
func (a *Adapter) media(uri vendorhttp.Text) (mediagate.Media, bool) {
	link := uri.Link()
	if link == "" {
		return mediagate.Media{}, false
	}
	m := mediagate.Media{MimeType: "video/mp4"}
	if u, err := url.Parse(link); err == nil && (a.isOwnHost(u) || u.Scheme == "https" && "https://"+u.Host == PublicURL) {
		path := u.EscapedPath()
		if a.isOwnHost(u) {
			path = strings.TrimPrefix(path, strings.TrimRight(a.base.EscapedPath(), "/"))
		}
		if strings.HasPrefix(path, prefix) {
			m.Ref = path
			if u.RawQuery != "" {
				m.Ref += "?" + u.RawQuery
			}
			return m, true
		}
	}
	m.URL = link
	return m, true
}

// isOwnHost reports whether a link leads to the channel's own host.
func (a *Adapter) isOwnHost(u *url.URL) bool {
	return u.Scheme == a.base.Scheme && u.Host == a.base.Host
}

// Open downloads a file of the account.
func (a *Adapter) Open(ctx context.Context, _ mediagate.JobRef, media mediagate.Media) (io.ReadCloser, int64, error) {
	at, err := url.Parse(a.base.String() + media.Ref)
	if err != nil || !strings.HasPrefix(media.Ref, prefix) {
		return nil, 0, mediagate.Errorf(mediagate.KindTransient, "the reference names no file")
	}
	for hop := 0; ; hop++ {
		answer, err := a.HTTP.Stream(ctx, a.download(at))
		if err != nil {
			return nil, 0, err
		}
		if answer.Status == http.StatusOK {
			return answer.Body, answer.Length(), nil
		}
		if answer.Status/100 != 3 || answer.Location == "" {
			return nil, 0, a.downloadError(answer)
		}
		_ = answer.Body.Close()
		next, ok := redirectTarget(at, answer.Location)
		switch left := maxHops - hop - 1; {
		case left < 0:
			return nil, 0, redirectError("the download is redirected too often")
		case !ok:
			return nil, 0, mediagate.Errorf(mediagate.KindTransient, "the download is redirected to no address")
		case a.isOwnHost(next):
			at = next
		case at.Scheme == "https" && next.Scheme != "https":
			return nil, 0, redirectError("the download is redirected from https to http")
		case a.follow == nil:
			return nil, 0, redirectError("the download is redirected to another host")
		default:
			return a.follow(ctx, next.String(), left)
		}
	}
}

// redirectTarget returns the address to which an answer from at redirects. It returns false if
// there is none.
func redirectTarget(at *url.URL, location string) (*url.URL, bool) {
	ref, err := url.Parse(location)
	if err != nil {
		return nil, false
	}
	next, err := url.Parse(vendorhttp.Text(at.ResolveReference(ref).String()).Link())
	return next, err == nil && next.Host != ""
}

// redirectError returns the error of a redirect that must not be followed.
func redirectError(what string) error { return mediagate.Errorf(mediagate.KindInvalid, "%s", what) }

// download returns the call for a file. Only a call to the channel's own host has the key.
func (a *Adapter) download(at *url.URL) vendorhttp.Call {
	c := vendorhttp.Call{
		Effect: vendorhttp.Reads, Base: at.Scheme + "://" + at.Host, Path: at.RequestURI(),
		Header: http.Header{"Accept": {"*/*"}},
		Limits: vendorhttp.Limits{Total: fileTimeout, Header: headTimeout, Bytes: fileBytes},
	}
	if a.isOwnHost(at) {
		c.Header.Set("X-Goog-Api-Key", a.Key.Reveal())
	}
	return c
}

// downloadError returns the error of a download without a file. For a deleted file, the vendor
// answers that the caller may not see it.
func (a *Adapter) downloadError(answer *vendorhttp.Stream) error {
	whole, err := answer.Whole(textBytes)
	if err != nil {
		return err
	}
	if whole.Status == http.StatusNotFound || whole.Status == http.StatusGone || googleapi.IsMissingFile(whole) {
		return mediagate.Errorf(mediagate.KindGone, "the vendor has the file no more")
	}
	return mediagate.Errorf(
		mediagate.KindTransient, "the vendor does not give the file: %w", googleapi.ReadError(a.HTTP, whole),
	)
}
