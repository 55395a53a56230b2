package blob

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/mediagate/mediagate"
)

// Delete removes one object. A missing object is no error. Returns KindUnavailable.
func (s *Store) Delete(ctx context.Context, key string) error {
	_, err := s.client.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: &s.bucket, Key: &key})
	if err != nil && apiCode(err) == "NoSuchKey" {
		return nil
	}
	return storageError(ctx, "deleting an object", err)
}

// DeletePrefix removes all objects below prefix except those to keep, and returns how many. The prefix
// must end with a slash, so that results/1/ never matches results/10/. Returns KindInvalid for another
// prefix, and KindUnavailable.
func (s *Store) DeletePrefix(ctx context.Context, prefix string, keep ...string) (int, error) {
	return s.deleteBelow(ctx, prefix, func(o types.Object) bool {
		return !slices.Contains(keep, aws.ToString(o.Key))
	})
}

// DeleteOlder is DeletePrefix for objects that were stored more than olderThan ago.
func (s *Store) DeleteOlder(ctx context.Context, prefix string, olderThan time.Duration) (int, error) {
	before := s.now().Add(-olderThan)
	return s.deleteBelow(ctx, prefix, func(o types.Object) bool {
		return o.LastModified != nil && o.LastModified.Before(before)
	})
}

func (s *Store) deleteBelow(ctx context.Context, prefix string, goes func(types.Object) bool) (int, error) {
	if !strings.HasSuffix(prefix, "/") || prefix == "/" {
		return 0, mediagate.Invalid("prefix", "must name a folder and end with a slash")
	}
	deleted := 0
	for after, more := "", true; more; {
		var page []types.Object
		var err error
		if page, more, err = s.page(ctx, prefix, after); err != nil {
			return deleted, err
		}
		var keys []string
		for _, object := range page {
			if after = aws.ToString(object.Key); goes(object) {
				keys = append(keys, after)
			}
		}
		if err := s.DeleteAll(ctx, keys); err != nil {
			return deleted, err
		}
		deleted += len(keys)
	}
	return deleted, nil
}

// page lists the next thousand objects below prefix, in the order of their keys.
func (s *Store) page(ctx context.Context, prefix, after string) (objects []types.Object, more bool, err error) {
	out, err := s.client.ListObjectsV2(ctx, &s3.ListObjectsV2Input{
		Bucket:     &s.bucket,
		Prefix:     &prefix,
		StartAfter: optional(after),
	})
	if err != nil {
		return nil, false, storageError(ctx, "listing objects", err)
	}
	return out.Contents, aws.ToBool(out.IsTruncated) && len(out.Contents) > 0, nil
}

// optional returns nil for an empty text.
func optional(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

// Older reads the next thousand objects below prefix, in the order of their keys, and returns the keys
// of those that were stored more than olderThan ago. The next page begins after last. Returns
// KindUnavailable.
func (s *Store) Older(
	ctx context.Context, prefix, after string, olderThan time.Duration,
) (keys []string, last string, more bool, err error) {
	page, more, err := s.page(ctx, prefix, after)
	if err != nil {
		return nil, after, false, err
	}
	before := s.now().Add(-olderThan)
	last = after
	for _, object := range page {
		if last = aws.ToString(object.Key); object.LastModified != nil && object.LastModified.Before(before) {
			keys = append(keys, last)
		}
	}
	return keys, last, more, nil
}

// DeleteAll removes up to a thousand objects in one call. Missing objects are no error. Returns
// KindUnavailable if an object is left.
func (s *Store) DeleteAll(ctx context.Context, keys []string) error {
	if len(keys) == 0 {
		return nil
	}
	objects := make([]types.ObjectIdentifier, len(keys))
	for i := range keys {
		objects[i].Key = &keys[i]
	}
	out, err := s.client.DeleteObjects(ctx, &s3.DeleteObjectsInput{
		Bucket: &s.bucket,
		Delete: &types.Delete{Objects: objects, Quiet: aws.Bool(true)},
	}, withContentMD5)
	if err != nil {
		return storageError(ctx, "deleting objects", err)
	}
	for _, failed := range out.Errors {
		if code := aws.ToString(failed.Code); code != "NoSuchKey" {
			err := fmt.Errorf("%d of %d are left, the first of them with %s", len(out.Errors), len(keys), code)
			return storageError(ctx, "deleting objects", err)
		}
	}
	return nil
}

// anyAge is an olderThan that matches every object, even if the bucket's clock is ahead.
const anyAge = -time.Hour

// Remove removes everything below a folder, including uploads under way, and the given objects.
// Returns KindUnavailable.
func (s *Store) Remove(ctx context.Context, folder string, objects ...string) error {
	if _, err := s.AbortStale(ctx, folder, anyAge); err != nil {
		return err
	}
	if _, err := s.DeletePrefix(ctx, folder); err != nil {
		return err
	}
	for _, key := range objects {
		if err := s.Delete(ctx, key); err != nil {
			return err
		}
	}
	return nil
}

// AbortStale aborts uploads below prefix that were begun more than olderThan ago and never finished,
// as killed processes leave them. It returns how many it aborted; uploads that end meanwhile do not
// count. Returns KindUnavailable.
func (s *Store) AbortStale(ctx context.Context, prefix string, olderThan time.Duration) (int, error) {
	before := s.now().Add(-olderThan)
	stale, err := s.staleUploads(ctx, prefix, before)
	if err != nil {
		return 0, err
	}
	aborted := 0
	for _, upload := range stale {
		_, err := s.client.AbortMultipartUpload(ctx, &s3.AbortMultipartUploadInput{
			Bucket:   &s.bucket,
			Key:      upload.Key,
			UploadId: upload.UploadId,
		})
		switch {
		case err == nil:
			aborted++
		case apiCode(err) != "NoSuchUpload":
			return aborted, storageError(ctx, "aborting an upload", err)
		}
	}
	return aborted, nil
}

// staleUploads lists all stale uploads before the caller aborts any, because aborts would shift the
// pages of the list.
func (s *Store) staleUploads(ctx context.Context, prefix string, before time.Time) ([]types.MultipartUpload, error) {
	var stale []types.MultipartUpload
	pages := s3.NewListMultipartUploadsPaginator(s.client, &s3.ListMultipartUploadsInput{
		Bucket: &s.bucket,
		Prefix: &prefix,
	})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, storageError(ctx, "listing uploads", err)
		}
		for _, upload := range page.Uploads {
			if upload.Initiated != nil && upload.Initiated.Before(before) {
				stale = append(stale, upload)
			}
		}
	}
	return stale, nil
}
