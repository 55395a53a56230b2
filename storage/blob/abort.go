package blob

import (
	"context"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/s3"
)

// An abort is repeated until the service no longer knows the upload. Otherwise a part that is on its
// way when the first abort arrives might stay; the S3 API reference tells callers to check.
const (
	abortTries = 5
	abortPause = 20 * time.Millisecond // doubled each time
)

// persistent is a client that repeats aborts.
type persistent struct{ *s3.Client }

// AbortMultipartUpload aborts an upload until none of its parts is left.
func (c persistent) AbortMultipartUpload(
	ctx context.Context, in *s3.AbortMultipartUploadInput, opts ...func(*s3.Options),
) (out *s3.AbortMultipartUploadOutput, err error) {
	for try := range abortTries {
		answer, failed := c.Client.AbortMultipartUpload(ctx, in, opts...)
		switch {
		case failed == nil:
			out, err = answer, nil
		case apiCode(failed) == "NoSuchUpload" && out != nil:
			return out, nil
		case apiCode(failed) == "NoSuchUpload": // there was no upload
			return nil, failed
		default:
			err = failed
		}
		select {
		case <-ctx.Done():
			return out, err
		case <-time.After(abortPause << try):
		}
	}
	return out, err
}
