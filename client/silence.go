package client

import (
	"context"
	"errors"
	"io"
	"net/http"
	"time"
)

// errSilent is the cause that ends a call whose answer does not arrive in time.
var errSilent = errors.New("the server is silent: the answer did not come in time")

// send sends a request whose answer must begin within bound. If whole is set, the whole body
// must arrive within bound too. Otherwise each piece of the body must arrive within
// longestSilence.
func send(h *http.Client, r *http.Request, bound time.Duration, whole bool) (*http.Response, error) {
	ctx, cancel := context.WithCancelCause(r.Context())
	b := &body{ctx: ctx, cancel: cancel, whole: whole, timer: time.AfterFunc(bound, func() { cancel(errSilent) })}
	response, err := h.Do(r.WithContext(ctx))
	if err != nil {
		err = b.causeOf(err)
		b.end()
		return nil, err
	}
	if !whole {
		b.timer.Stop()
	}
	b.ReadCloser, response.Body = response.Body, b
	return response, nil
}

// body is the body of an answer. Unless whole is set, its timer runs only during Read, so a
// caller may pause between reads.
type body struct {
	io.ReadCloser
	ctx    context.Context // of the request; ends with the body
	cancel context.CancelCauseFunc
	timer  *time.Timer // cancels the request
	whole  bool
}

// Read implements io.Reader.
func (b *body) Read(p []byte) (int, error) {
	if !b.whole {
		b.timer.Reset(longestSilence)
		defer b.timer.Stop()
	}
	n, err := b.ReadCloser.Read(p)
	return n, b.causeOf(err)
}

// Close ends the request.
func (b *body) Close() error {
	err := b.ReadCloser.Close()
	b.end()
	return err
}

// causeOf returns errSilent if the timer ended the request, and err otherwise.
func (b *body) causeOf(err error) error {
	if err != nil && !errors.Is(err, io.EOF) && errors.Is(context.Cause(b.ctx), errSilent) {
		return errSilent
	}
	return err
}

func (b *body) end() {
	b.timer.Stop()
	b.cancel(nil)
}
