package gemini_test

import (
	"context"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/providers"
	"github.com/mediagate/mediagate/providers/providertest"
)

// opener is the Inputs of a job whose files the function opens.
type opener func(ctx context.Context) (io.ReadCloser, error)

func (o opener) Open(ctx context.Context, _ string, _ int64) (io.ReadCloser, int64, error) {
	file, err := o(ctx)
	return file, -1, err
}

// drip is a file that sends nothing until its context ends.
type drip struct{ ctx context.Context }

func (d drip) Read([]byte) (int, error) {
	<-d.ctx.Done()
	return 0, mediagate.Errorf(mediagate.KindTransient, "the media broke off")
}

func (drip) Close() error { return nil }

// TestSlowImages checks that an image which has not arrived by SendBefore ends the submission. A
// slow server holds up the call no longer.
func TestSlowImages(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := suite()
		job := s.Job
		job.SendBefore, job.Sink = time.Now().Add(time.Minute), providertest.NewSink()
		job.Inputs = opener(func(ctx context.Context) (io.ReadCloser, error) { return drip{ctx}, nil })
		began := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
		defer cancel()
		_, err := s.Open(t, "http://127.0.0.1:1", providers.Options{}).Submit(ctx, job)
		if !mediagate.Is(err, mediagate.KindTransient) || time.Since(began) > time.Minute {
			t.Errorf("after %v: %v", time.Since(began), err)
		}
	})
}
