package activities

import (
	"bytes"
	"context"
	"encoding/json"
	"time"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/media"
)

const (
	// fileMargin is how much longer than the waiting for the vendor the link of
	// a client's upload must work to be handed on.
	fileMargin = time.Hour
	// fileAge is when uploads are removed: later than their links end by more
	// than a submit may take from its check to its row.
	fileAge = mediagate.FileLife + time.Hour
)

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
func (a *Activities) withFiles(ctx context.Context, task mediagate.Task, own map[string]string) (json.RawMessage, error) {
	if a.FileOf == nil || !bytes.Contains(task.Params, []byte(mediagate.FileFolder)) {
		return task.Params, nil
	}
	request, err := media.Decode(task.Params)
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
		if !f.ExpiresAt().Before(task.WaitsUntil(now).Add(fileMargin)) {
			return text, nil
		}
		link, err := a.Bucket.Sign(ctx, mediagate.Result{Key: f.Key()}, uploadLink)
		own[link.URL], replaced = f.Key(), true
		return link.URL, err
	})
	if err != nil || !replaced {
		return task.Params, err
	}
	return media.Encode(request)
}

// sweepFiles removes uploads whose links have ended, unless a task is open that
// was submitted while they had not: it may name them. Which task names what is
// on no record, so the oldest one holds back all.
func (a *Activities) sweepFiles(ctx context.Context) (removed int, err error) {
	oldest, err := a.Store.OldestOpen(ctx)
	if err != nil {
		return 0, err
	}
	age := fileAge
	if !oldest.IsZero() {
		age += max(0, a.Now().Sub(oldest))
	}
	return a.Sweeper.DeleteOlder(ctx, mediagate.FileFolder, age)
}
