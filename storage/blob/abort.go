package blob

import (
	"context"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/s3"
)

// An abort is repeated until the service knows the upload no more: a part that
// is still on its way when the first one arrives may outlive it. The S3 API
// reference asks callers to see to that.
const (
	abortTries = 5
	abortPause = 20 * time.Millisecond // doubled each time
)

// persistent is a client whose aborts are thorough.
type persistent struct{ *s3.Client }

// AbortMultipartUpload ends an upload and what is left of it.
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
		case apiCode(failed) == "NoSuchUpload": // nothing was there at all
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
