package activities

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"sync"
	"time"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/media"
)

// inputTries is how many attempts a task makes while the server of its media is away. The pauses
// between them add up to half a minute. It bounds the tries of the check as well.
const inputTries = 5

// inputs opens the media of a client for one call (mediagate.Inputs). The adapter may open several
// files at the same time.
type inputs struct {
	fetcher Fetcher
	bucket  Bucket
	own     map[string]string // our own links → object keys, see job
	params  json.RawMessage   // the job's parameters, which hold the links

	mu     sync.Mutex
	failed error // the first error
}

// Open fetches a file through the guarded client. It reads our own files from the bucket directly,
// since the bucket may be at an address that the guarded client refuses. It refuses a file that is
// not media by its first bytes. Of a picture it reads only what an upload would keep: no parts that
// are not displayed, such as metadata, and nothing after the picture's end.
func (in *inputs) Open(ctx context.Context, url string, most int64) (io.ReadCloser, int64, error) {
	var (
		body   io.ReadCloser
		length int64
		err    error
	)
	// A link of ours is read past the guarded client.
	if key, ok := in.own[url]; ok {
		body, length, err = in.bucket.Open(ctx, key)
	} else {
		body, length, err = in.fetcher.FetchMedia(ctx, url)
	}
	field := in.field(url)
	if err != nil {
		return nil, 0, in.note(media.NotOpened(field, err))
	}
	return media.Clean(field, body, length, most, in.note)
}

// field returns the first field of the request that has the link. Errors for clients name the
// field, and never the address.
func (in *inputs) field(url string) string {
	if request, err := media.Decode(in.params); err == nil {
		if path, ok := media.PathOf(request, url); ok {
			return path
		}
	}
	return "an input"
}

// note remembers an error, so that refusal can recognise it when the adapter has wrapped it.
func (in *inputs) note(err error) error {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.failed == nil {
		in.failed = err
	}
	return err
}

// refusal returns the failure of an attempt that made no job because the client's media could not
// be opened. ok is false if the call failed for another reason, or may have had an effect.
//
// For example, an adapter reads a picture in the middle of its request, and the picture's server
// breaks off. The vendor got half a request and no job. So the attempt is refused for the client's
// file, and the channel's breaker learns nothing.
func (in *inputs) refusal(callErr error, n int) (f mediagate.Failure, ok bool) {
	in.mu.Lock()
	defer in.mu.Unlock()
	switch kind := mediagate.KindOf(callErr); {
	case in.failed == nil:
		return f, false
	case kind == mediagate.KindUnreached: // the file broke off while it was being sent
	case !errors.Is(callErr, in.failed), kind != mediagate.KindInvalid && kind != mediagate.KindTransient:
		return f, false
	}
	// A server that is away is asked again by the next attempt, up to inputTries.
	return mediagate.Failure{
		Code: mediagate.CodeImageProcessing, Message: messageOf(in.failed),
		Retryable: mediagate.Is(in.failed, mediagate.KindTransient) && n < inputTries,
	}, true
}

// fileMargin is how long the link of a client's upload must outlive the task's wait for the vendor.
// A link that ends earlier is replaced. A vendor may fetch the file late, until the end of that
// wait.
const fileMargin = time.Hour

// withFiles finds the links of uploads in a request, and notes their objects in own. It passes a
// link on to the vendor as it is. If the link would end while the task may still wait for the
// vendor, a signed link takes its place. For example, a client uploads a file on Monday and names
// it in a task on Thursday, an hour before the link ends. The vendor gets a link that works for
// another 72 hours.
func (a *Activities) withFiles(
	ctx context.Context, t mediagate.Task, own map[string]string,
) (json.RawMessage, error) {
	if a.FileOf == nil || !bytes.Contains(t.Params, []byte(mediagate.FileFolder)) {
		return t.Params, nil
	}
	request, err := media.Decode(t.Params)
	if err != nil {
		return nil, err
	}
	now, replaced := a.Now(), false
	request, err = media.EachText(request, func(text string) (string, error) {
		f, ok := a.FileOf(text)
		if !ok {
			return text, nil
		}
		// If the adapter opens this link itself, the file is read from the bucket.
		own[text] = f.Key()
		// The client's own link lasts long enough.
		if !f.ExpiresAt().Before(t.WaitsUntil(now).Add(fileMargin)) {
			return text, nil
		}
		link, err := a.Bucket.Sign(ctx, mediagate.Result{Key: f.Key()}, uploadLink)
		own[link.URL], replaced = f.Key(), true
		return link.URL, err
	})
	if err != nil || !replaced {
		return t.Params, err
	}
	return media.Encode(request)
}
