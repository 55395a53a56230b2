package activities

import (
	"context"
	"io"
	"sync"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/media"
)

// sink stores the files of one call while they arrive (mediagate.Sink), with
// the checks and the memory of a mirrored file, under the keys that the mirror
// would use. It is how the result of a vendor without links passes through.
type sink struct {
	bucket Bucket
	owner  string // the provider
	task   mediagate.Task
	n      int
	part   int
	parts  int // calls of the attempt

	mu      sync.Mutex
	refused error // a file that the task cannot use
}

// Store streams one file into the bucket. What breaks leaves nothing behind. A
// file that is no such media, or too large, is KindInvalid with code
// result_unavailable; KindUnavailable says that the bucket is away.
func (s *sink) Store(ctx context.Context, index int, file io.Reader) (mediagate.Media, error) {
	from := &media.Incoming{Reader: file}
	open := func(context.Context) (io.ReadCloser, int64, error) { return from, -1, nil }
	result, err := s.bucket.Mirror(ctx, ResultKey(s.task.ID, s.n, s.position(index)), open, Limits{
		MaxBytes: s.task.Plan.MaxBytes, Media: s.task.Plan.Media, Owner: s.owner,
	})
	switch {
	case err == nil:
		return mediagate.Media{Stored: &result, MimeType: result.MimeType, Duration: result.Duration}, nil
	case from.Err != nil:
		return mediagate.Media{}, from.Err
	case mediagate.Is(err, mediagate.KindInvalid), mediagate.Is(err, mediagate.KindTooLarge):
		s.mu.Lock()
		defer s.mu.Unlock()
		s.refused = err
	}
	return mediagate.Media{}, err
}

// position is that of a file among all of the attempt: each call has its own.
func (s *sink) position(index int) int { return index*max(s.parts, 1) + s.part }

// useless is the outcome of a call whose file the task cannot use: the vendor
// has done its work, and another call would be another job.
func (s *sink) useless() *mediagate.Outcome {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.refused == nil {
		return nil
	}
	return &mediagate.Outcome{Failure: &mediagate.Failure{
		Code: mediagate.CodeResultUnavailable, Message: messageOf(s.refused),
	}}
}
