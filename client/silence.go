package client

import (
	"context"
	"errors"
	"io"
	"net/http"
	"time"
)

// errSilent ends a call whose answer does not come.
var errSilent = errors.New("the server is silent: the answer did not come in time")

// send makes a request whose answer has to begin within the bound. From then on each piece of
// the body has longestSilence, or the whole body what the bound has left.
func send(h *http.Client, r *http.Request, bound time.Duration, whole bool) (*http.Response, error) {
	ctx, cancel := context.WithCancelCause(r.Context())
	b := &body{ctx: ctx, cancel: cancel, whole: whole, timer: time.AfterFunc(bound, func() { cancel(errSilent) })}
	response, err := h.Do(r.WithContext(ctx))
	if err != nil {
		err = b.reason(err)
		b.end()
		return nil, err
	}
	if !whole {
		b.timer.Stop()
	}
	b.ReadCloser, response.Body = response.Body, b
	return response, nil
}

// body is that of an answer. Its timer runs while a caller waits for a piece, so that a
// caller may take its time.
type body struct {
	io.ReadCloser
	ctx    context.Context // of the request, which ends with the body
	cancel context.CancelCauseFunc
	timer  *time.Timer // cancels the request
	whole  bool
}

// Read reads a piece.
func (b *body) Read(p []byte) (int, error) {
	if !b.whole {
		b.timer.Reset(longestSilence)
		defer b.timer.Stop()
	}
	n, err := b.ReadCloser.Read(p)
	return n, b.reason(err)
}

// Close ends the request.
func (b *body) Close() error {
	err := b.ReadCloser.Close()
	b.end()
	return err
}

// reason is errSilent where that is why the request failed.
func (b *body) reason(err error) error {
	if err != nil && !errors.Is(err, io.EOF) && errors.Is(context.Cause(b.ctx), errSilent) {
		return errSilent
	}
	return err
}

func (b *body) end() {
	b.timer.Stop()
	b.cancel(nil)
}
