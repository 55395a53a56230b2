package activities

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/mediagate/mediagate"
)

// inputTries is how many attempts a task makes while the server of its media is
// away. The workflow's pauses between them add up to half a minute.
const inputTries = 5

// inputs opens the media of a client for one call (mediagate.Inputs).
type inputs struct {
	fetcher Fetcher
	bucket  Bucket
	own     map[string]string // our links to what came within the request → object key

	mu     sync.Mutex
	failed error // the first
}

// Open fetches through the guarded client; what came within the request is read
// from the bucket itself, which may be where that client may not go.
func (in *inputs) Open(ctx context.Context, url string, limit int64) (io.ReadCloser, int64, error) {
	var (
		body   io.ReadCloser
		length int64
		err    error
	)
	if key, ok := in.own[url]; ok {
		body, length, err = in.bucket.Open(ctx, key)
	} else {
		body, length, err = in.fetcher.Fetch(ctx, url, "")
	}
	if err != nil {
		return nil, 0, in.note(inputError(err))
	}
	if length > limit {
		_ = body.Close()
		return nil, 0, in.note(tooLarge(limit))
	}
	return &input{ReadCloser: body, in: in, left: limit, limit: limit}, length, nil
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

// input is one file on its way: bounded, its errors in our words.
type input struct {
	io.ReadCloser
	in    *inputs
	left  int64
	limit int64
	err   error
}

func (i *input) Read(p []byte) (int, error) {
	if i.err != nil {
		return 0, i.err
	}
	if int64(len(p)) > i.left+1 { // one more than allowed, to see the end
		p = p[:i.left+1]
	}
	n, err := i.ReadCloser.Read(p)
	switch i.left -= int64(n); {
	case i.left < 0:
		n, i.err = n-1, i.in.note(tooLarge(i.limit))
		return n, i.err
	case err != nil && !errors.Is(err, io.EOF):
		i.err = i.in.note(&mediagate.Error{Kind: mediagate.KindTransient, Message: "the media broke off", Err: err})
		return n, i.err
	default:
		return n, err
	}
}

// inputError says to the client what is wrong with the media that it named.
func inputError(err error) error {
	e := &mediagate.Error{Kind: mediagate.KindInvalid, Code: string(mediagate.CodeImageProcessing), Err: err}
	switch mediagate.KindOf(err) {
	case mediagate.KindInvalid:
		e.Message = "the media's address is not allowed"
	case mediagate.KindGone:
		e.Message = "the media cannot be fetched from its address"
	default:
		e.Kind, e.Code, e.Message = mediagate.KindTransient, "", "the media's server does not answer"
	}
	return e
}

func tooLarge(limit int64) error {
	return &mediagate.Error{
		Kind: mediagate.KindInvalid, Code: string(mediagate.CodeImageProcessing),
		Message: fmt.Sprintf("the media is larger than %d bytes", limit),
	}
}
