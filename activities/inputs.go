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

// inputTries is how many attempts a task makes while the server of its media is
// away. The workflow's pauses between them add up to half a minute.
const inputTries = 5

// inputs opens the media of a client for one call (mediagate.Inputs).
type inputs struct {
	fetcher Fetcher
	bucket  Bucket
	own     map[string]string // our links, to what came within the request and to uploads → object key
	params  json.RawMessage   // of the job, where the links have their places

	mu     sync.Mutex
	failed error // the first
}

// Open fetches through the guarded client; what is our own is read from the
// bucket itself, which may be where that client may not go. A file that
// is no media is refused by its first bytes. A picture is read as an upload is:
// without what does not show, and up to the end of it.
func (in *inputs) Open(ctx context.Context, url string, most int64) (io.ReadCloser, int64, error) {
	var (
		body   io.ReadCloser
		length int64
		err    error
	)
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

// field is where the request has the link; the first place of several.
func (in *inputs) field(url string) string {
	if request, err := media.Decode(in.params); err == nil {
		if path, ok := media.PathOf(request, url); ok {
			return path
		}
	}
	return "an input"
}

// note remembers an error, so that what the adapter makes of it is known for
// what it is.
func (in *inputs) note(err error) error {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.failed == nil {
		in.failed = err
	}
	return err
}

// refusal is how an attempt ends that made no job for want of the client's
// media. ok is false where the call failed for another reason, or may have had
// its effect.
func (in *inputs) refusal(callErr error, n int) (f mediagate.Failure, ok bool) {
	in.mu.Lock()
	defer in.mu.Unlock()
	switch kind := mediagate.KindOf(callErr); {
	case in.failed == nil:
		return f, false
	case kind == mediagate.KindUnreached: // broken off while it was sent on
	case !errors.Is(callErr, in.failed), kind != mediagate.KindInvalid && kind != mediagate.KindTransient:
		return f, false
	}
	return mediagate.Failure{
		Code: mediagate.CodeImageProcessing, Message: messageOf(in.failed),
		Retryable: mediagate.Is(in.failed, mediagate.KindTransient) && n < inputTries,
	}, true
}

// fileMargin is how much longer than the waiting for the vendor the link of
// a client's upload must work to be handed on.
const fileMargin = time.Hour

// file is the upload behind a link of ours.
func (a *Activities) file(url string) (f mediagate.File, ok bool) {
	if a.FileOf == nil {
		return mediagate.File{}, false
	}
	return a.FileOf(url)
}

// withFiles finds the links of uploads in a request and notes their objects in
// own. A link goes to the vendor as it is; where it would end before the waiting
// for the vendor does, a signed one takes its place.
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
		f, ok := a.file(text)
		if !ok {
			return text, nil
		}
		own[text] = f.Key()
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
