package blob

import (
	"context"
	"errors"
	"net/http"

	smithy "github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/mediagate/mediagate"
)

// The codes of this package's errors. Files that must not be stored have
// mediagate.CodeResultUnavailable.
const (
	CodeStorageAway    = string(mediagate.ParkStorage) // the store does not answer, or fails
	CodeStorageRefused = "storage_refused"             // wrong keys, missing rights, or no such bucket
)

// storageError translates an error of the S3 client; nil stays nil. Err keeps the store's text for
// logs, and the error of an ended context for errors.Is.
func storageError(ctx context.Context, doing string, err error) error {
	if err == nil {
		return nil
	}
	if cause := ctx.Err(); cause != nil {
		err = errors.Join(cause, err) // the client's own error may not say that it was cancelled
	}
	e := &mediagate.Error{
		Kind:    mediagate.KindUnavailable,
		Code:    CodeStorageAway,
		Message: doing + ": the object store is away",
		Err:     err,
	}
	if isRefusal(err) {
		e.Code = CodeStorageRefused
		e.Message = doing + ": the object store refuses"
	}
	return e
}

// isRefusal reports whether the store refuses our keys, our rights or the bucket. A person has to
// mend that.
func isRefusal(err error) bool {
	if code := apiCode(err); code == "RequestTimeTooSkewed" || code == "NoSuchUpload" {
		return false // passes by itself: a wrong clock, or an upload that was aborted
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

// unusable returns the error for a file that must not be stored.
func unusable(message string) *mediagate.Error {
	return &mediagate.Error{
		Kind:    mediagate.KindInvalid,
		Code:    string(mediagate.CodeResultUnavailable),
		Message: message,
	}
}
