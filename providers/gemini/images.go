package gemini

import (
	"context"
	"io"
	"sync"

	"golang.org/x/sync/semaphore"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/providers/vendorhttp"
)

// imageMemory is what the images of all calls may hold at once, while they are
// fetched and sent. Of a whole queue of calls, each with as much as a request
// takes, they would be gigabytes.
const imageMemory = 256 << 20

// body writes the request. Its images are fetched within the time in which the
// call may begin: what comes later is of no use, and whose server is slow
// should not keep the call. release gives back what they hold, unless the body
// has been sent.
func (a *Adapter) body(ctx context.Context, p *params, job mediagate.Job) (body vendorhttp.Body, release func(), err error) {
	if left := job.SendBefore.Sub(a.http.Now()); !job.SendBefore.IsZero() && left > 0 { // else refused as late, when sent
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, left)
		defer cancel()
	}
	s := &share{of: a.memory}
	release = sync.OnceFunc(s.giveBack)
	if body, err = p.body(ctx, inputs{job.Inputs, s}, release); err != nil {
		release()
		return vendorhttp.Body{}, nil, err
	}
	return body, release, nil
}

// share is what one call has of the memory. It grows with what has arrived, so
// that a server which only keeps us waiting takes nothing from others, and
// never waits, since others might wait for it in turn.
type share struct {
	of   *semaphore.Weighted
	held int64
}

func (s *share) grow(n int64) error {
	if !s.of.TryAcquire(n) {
		return mediagate.Errorf(mediagate.KindUnreached, "other calls have the memory for images")
	}
	s.held += n
	return nil
}

func (s *share) giveBack() { s.of.Release(s.held) }

// inputs are those of a job, of which all that is read counts.
type inputs struct {
	mediagate.Inputs
	share *share
}

// Open opens a file as the job's inputs do.
func (in inputs) Open(ctx context.Context, url string, limit int64) (io.ReadCloser, int64, error) {
	file, length, err := in.Inputs.Open(ctx, url, limit)
	if err != nil {
		return nil, 0, err
	}
	return counted{file, in.share}, length, nil
}

type counted struct {
	io.ReadCloser
	share *share
}

func (c counted) Read(p []byte) (int, error) {
	n, err := c.ReadCloser.Read(p)
	if short := c.share.grow(int64(n)); short != nil {
		return 0, short
	}
	return n, err
}
