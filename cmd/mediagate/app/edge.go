package app

import (
	"context"
	"errors"
	"io"
	"net/http"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/activities"
	"github.com/mediagate/mediagate/internal/outbound"
	"github.com/mediagate/mediagate/internal/webhook"
	"github.com/mediagate/mediagate/storage/blob"
)

// bucket adapts the blob store to the activities.
type bucket struct{ *blob.Store }

// Mirror streams a file to the object key.
func (b bucket) Mirror(
	ctx context.Context, key string, open activities.Opener, l activities.Limits,
) (mediagate.Result, error) {
	return b.Store.Mirror(ctx, key, blob.Opener(open), blob.Limits(l))
}

// fetcher opens files through the guarded client.
type fetcher struct {
	rules outbound.Rules
	ways  map[string]way // by channel
}

// FetchMedia opens a client's media, without a proxy.
func (f fetcher) FetchMedia(ctx context.Context, url string) (io.ReadCloser, int64, error) {
	return open(ctx, f.rules.MediaClient(), url)
}

// FetchResult opens a vendor's file. The channel's own host may be private.
func (f fetcher) FetchResult(ctx context.Context, url, channel string) (io.ReadCloser, int64, error) {
	o := outbound.Options{Redirects: outbound.MediaRedirects, IgnorePorts: true, Proxy: f.ways[channel].proxy}
	if host := f.ways[channel].host; host != "" {
		o.AllowHosts = []string{host}
	}
	return open(ctx, f.rules.Client(o), url)
}

// follow returns a function that opens the target of a redirected download, and follows further
// redirects.
func (f fetcher) follow(channel string) func(
	ctx context.Context, url string, redirects int,
) (io.ReadCloser, int64, error) {
	return func(ctx context.Context, url string, redirects int) (io.ReadCloser, int64, error) {
		client := f.rules.Client(outbound.Options{Redirects: redirects, IgnorePorts: true, Proxy: f.ways[channel].proxy})
		file, length, err := open(ctx, client, url)
		if redirects == 0 && errors.Is(err, errRedirect) {
			err = mediagate.Errorf(mediagate.KindInvalid, "the provider's download is redirected too often")
		}
		return file, length, err
	}
}

// errRedirect is the cause of the error about an answer that is still a redirect.
var errRedirect = errors.New("a redirect")

func open(ctx context.Context, client *http.Client, url string) (io.ReadCloser, int64, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, 0, mediagate.Errorf(mediagate.KindInvalid, "the provider's link is no URL")
	}
	resp, err := client.Do(req)
	if err != nil {
		var refused *mediagate.Error
		if errors.As(err, &refused) && refused.Kind == mediagate.KindInvalid {
			return nil, 0, mediagate.Errorf(mediagate.KindInvalid, "the provider's link leads to an address that is not allowed")
		}
		// The client's error quotes the link, or where a redirect leads to.
		return nil, 0, &mediagate.Error{
			Kind: mediagate.KindTransient, Message: "the provider's file server did not answer",
			Err: errors.New(outbound.Describe(err)),
		}
	}
	if resp.StatusCode == http.StatusOK {
		return mediaBody{resp.Body}, resp.ContentLength, nil
	}
	_ = resp.Body.Close()
	switch resp.StatusCode {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound, http.StatusGone:
		return nil, 0, mediagate.Errorf(mediagate.KindGone, "the provider's file server answered %d", resp.StatusCode)
	default:
		if resp.StatusCode/100 == 3 {
			return nil, 0, mediagate.Errorf(
				mediagate.KindTransient, "the provider's file server answered %d: %w", resp.StatusCode, errRedirect,
			)
		}
		return nil, 0, mediagate.Errorf(mediagate.KindTransient, "the provider's file server answered %d", resp.StatusCode)
	}
}

// mediaBody is a file that is being read. It replaces read errors by outbound.Describe's words,
// which name no addresses.
type mediaBody struct{ io.ReadCloser }

func (b mediaBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		err = errors.New(outbound.Describe(err))
	}
	return n, err
}

// deliverer adapts the webhook sender to the activities.
type deliverer struct {
	sender *webhook.Sender
	traces *traces
}

// Deliver makes one delivery attempt.
func (d deliverer) Deliver(
	ctx context.Context, id string, t mediagate.WebhookTarget,
) (mediagate.DeliveryResult, error) {
	secrets := make([]string, len(t.Secrets))
	for i, s := range t.Secrets {
		secrets[i] = s.Secret.Reveal()
	}
	end := d.traces.call(ctx, "callback")
	r, err := d.sender.Deliver(ctx, webhook.Attempt{URL: t.URL, Exact: t.Exact, ID: id, Body: t.Body, Secrets: secrets})
	if err != nil {
		end(0, mediagate.KindOf(err).String())
		return mediagate.DeliveryResult{}, err
	}
	trouble := ""
	if r.Outcome != mediagate.DeliveryDone {
		trouble = string(r.Outcome)
	}
	end(r.Status, trouble)
	return r, nil
}
