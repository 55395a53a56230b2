package activities

import (
	"context"
	"io"
	"sync"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/media"
	"github.com/mediagate/mediagate/task"
)

// sink stores the files of a submission while they arrive (mediagate.Sink). They get the same
// checks, the same share of memory, and the same keys as files that are mirrored. A vendor that
// gives no links sends the file in its answer. The file goes from the connection to the bucket,
// and no process holds the whole of it.
type sink struct {
	activities *Activities
	task       mediagate.Task
	row        task.Attempt

	mu      sync.Mutex
	refused error // a file that the task cannot use
}

// Store streams one file into the bucket. If it breaks off, nothing is left behind. Store returns
// KindInvalid with code result_unavailable for a file that is not such media or is too large, and
// KindUnavailable while the bucket is away.
func (s *sink) Store(ctx context.Context, index int, file io.Reader) (mediagate.Media, error) {
	from := &media.Incoming{Reader: file}
	open := func(context.Context) (io.ReadCloser, int64, error) { return from, -1, nil }
	result, err := s.activities.Bucket.Mirror(ctx, ResultKey(s.task.ID, s.row.N, index), open, Limits{
		MaxBytes: s.task.Plan.MaxBytes, Media: s.task.Plan.Media, Owner: s.row.Provider,
	})
	switch {
	case err == nil:
		return mediagate.Media{Stored: &result, MimeType: result.MimeType, Duration: result.Duration}, nil
	// The connection to the vendor broke off. That is an error of the call, not of the file.
	case from.Err != nil:
		return mediagate.Media{}, from.Err
	case mediagate.Is(err, mediagate.KindInvalid), mediagate.Is(err, mediagate.KindTooLarge):
		s.mu.Lock()
		defer s.mu.Unlock()
		s.refused = err
	}
	return mediagate.Media{}, err
}

// Record stores a manifest of the files that have arrived so far. The manifest counts only after
// the end of the call: until then the sender may still report all files. An adapter calls it
// between the calls of a submission that makes several files.
func (s *sink) Record(ctx context.Context, soFar mediagate.Submission) {
	s.activities.storeManifest(ctx, s.row, manifest{Submission: soFar, CallEnds: s.row.CallEnds})
}

// useless returns the outcome of a submission whose files the task cannot use, or nil if it can
// use them. The vendor has done its work, so this is an outcome: another submission would make,
// and cost, another job.
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
