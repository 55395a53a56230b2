package media

import (
	"bufio"
	"context"
	"io"

	"github.com/mediagate/mediagate"
)

// streamBuffer is the number of bytes that a maker writes at once.
const streamBuffer = 64 << 10

// stream is a file that write makes while it is read.
type stream struct {
	*io.PipeReader
	stop context.CancelFunc
	done chan struct{}
}

// makeFile returns a file that write makes while it is read. The reader gets the error of write;
// Close ends the context of write and waits for it.
func makeFile(ctx context.Context, write func(context.Context, *bufio.Writer) error) *stream {
	ctx, stop := context.WithCancel(ctx)
	r, w := io.Pipe()
	s := &stream{PipeReader: r, stop: stop, done: make(chan struct{})}
	go func() {
		defer close(s.done)
		err := mediagate.Guarded(func() error {
			buffered := bufio.NewWriterSize(w, streamBuffer)
			if err := write(ctx, buffered); err != nil {
				return err
			}
			return buffered.Flush()
		})
		_ = w.CloseWithError(err) // never fails
	}()
	return s
}

// Close stops making the file.
func (s *stream) Close() error {
	s.stop()
	err := s.PipeReader.Close()
	<-s.done
	return err
}
