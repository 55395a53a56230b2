package media

import (
	"bufio"
	"context"
	"fmt"
	"io"

	"github.com/mediagate/mediagate"
)

// streamBuffer is what is written at once of a file that we make.
const streamBuffer = 64 << 10

// stream is a file that is made while it is read.
type stream struct {
	*io.PipeReader
	stop context.CancelFunc
	done chan struct{}
}

// makeFile has a file made as it is read. Its reader gets the maker's error;
// Close ends the maker's context and waits for it.
func makeFile(ctx context.Context, write func(context.Context, *bufio.Writer) error) *stream {
	ctx, stop := context.WithCancel(ctx)
	r, w := io.Pipe()
	s := &stream{PipeReader: r, stop: stop, done: make(chan struct{})}
	go func() {
		defer close(s.done)
		var err error
		defer func() {
			if p := recover(); p != nil {
				err = fmt.Errorf("making a file: %w", mediagate.Panicked(p))
			}
			_ = w.CloseWithError(err) // never fails
		}()
		buffered := bufio.NewWriterSize(w, streamBuffer)
		if err = write(ctx, buffered); err == nil {
			err = buffered.Flush()
		}
	}()
	return s
}

// Close gives the file up, or what is left of it.
func (s *stream) Close() error {
	s.stop()
	err := s.PipeReader.Close()
	<-s.done
	return err
}
