package blob

import (
	"context"
	"errors"
	"net/http"

	smithy "github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/mediagate/mediagate"
)

// The codes of errors of this package, beside mediagate.CodeResultUnavailable
// for files that are not to be stored.
const (
	CodeStorageAway    = string(mediagate.ParkStorage) // the store does not answer, or fails
	CodeStorageRefused = "storage_refused"             // the store refuses us: keys, rights, or no such bucket
)

// storageError translates an error of the S3 client; nil stays nil. The text
// of the store stays in Err, for logs. An ended context stays visible to
// errors.Is.
func storageError(ctx context.Context, doing string, err error) error {
	if err == nil {
		return nil
	}
	if cause := ctx.Err(); cause != nil {
		// Whatever the client made of it, this is why it stopped.
		err = errors.Join(cause, err)
	}
	e := &mediagate.Error{Kind: mediagate.KindUnavailable, Code: CodeStorageAway, Message: doing + ": the object store is away", Err: err}
	if isRefusal(err) {
		e.Code, e.Message = CodeStorageRefused, doing+": the object store refuses"
	}
	return e
}

// isRefusal reports an answer that says: not with these keys, or not here.
// Waiting does not mend it, but a person can.
func isRefusal(err error) bool {
	if code := apiCode(err); code == "RequestTimeTooSkewed" || code == "NoSuchUpload" {
		return false // comes and goes by itself: a clock, or an upload swept away
	}
	switch statusOf(err) {
	case http.StatusMovedPermanently, http.StatusTemporaryRedirect,
		http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound:
		return true
	}
	return false
}

func isNoBucket(err error) bool {
	return statusOf(err) == http.StatusNotFound
}

func isOwnBucket(err error) bool {
	code := apiCode(err)
	return code == "BucketAlreadyOwnedByYou"
}

func apiCode(err error) string {
	if api, ok := errors.AsType[smithy.APIError](err); ok {
		return api.ErrorCode()
	}
	return ""
}

func statusOf(err error) int {
	if answer, ok := errors.AsType[*smithyhttp.ResponseError](err); ok {
		return answer.HTTPStatusCode()
	}
	return 0
}

// unusable is the error for a file that is not to be stored, whoever asks.
func unusable(message string) *mediagate.Error {
	return &mediagate.Error{Kind: mediagate.KindInvalid, Code: string(mediagate.CodeResultUnavailable), Message: message}
}
