package blob

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"golang.org/x/sync/errgroup"

	"github.com/mediagate/mediagate"
)

// deleteWidth is how many objects are removed at once: clients may store more in
// an hour than are removed in it one after the other.
const deleteWidth = 16

// Delete removes one object. That it is not there is no error.
// It returns KindUnavailable.
func (s *Store) Delete(ctx context.Context, key string) error {
	_, err := s.client.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: &s.bucket, Key: &key})
	if err != nil && apiCode(err) == "NoSuchKey" {
		return nil
	}
	return storageError(ctx, "deleting an object", err)
}

// DeletePrefix removes all objects below prefix but those to keep. The prefix
// ends with a slash so that results/1/ never reaches results/10/. It returns how
// many there were, KindInvalid for another prefix, and KindUnavailable.
func (s *Store) DeletePrefix(ctx context.Context, prefix string, keep ...string) (int, error) {
	return s.deleteBelow(ctx, prefix, func(o types.Object) bool { return !slices.Contains(keep, aws.ToString(o.Key)) })
}

// DeleteOlder is DeletePrefix for what was stored before olderThan ago.
func (s *Store) DeleteOlder(ctx context.Context, prefix string, olderThan time.Duration) (int, error) {
	before := s.now().Add(-olderThan)
	return s.deleteBelow(ctx, prefix, func(o types.Object) bool { return o.LastModified != nil && o.LastModified.Before(before) })
}

func (s *Store) deleteBelow(ctx context.Context, prefix string, goes func(types.Object) bool) (int, error) {
	if !strings.HasSuffix(prefix, "/") || prefix == "/" {
		return 0, mediagate.Invalid("prefix", "must name a folder and end with a slash")
	}
	var deleted atomic.Int64
	pages := s3.NewListObjectsV2Paginator(s.client, &s3.ListObjectsV2Input{Bucket: &s.bucket, Prefix: &prefix})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return int(deleted.Load()), storageError(ctx, "listing objects", err)
		}
		var group errgroup.Group
		group.SetLimit(deleteWidth)
		for _, object := range page.Contents {
			if !goes(object) {
				continue
			}
			group.Go(func() error {
				err := s.Delete(ctx, aws.ToString(object.Key))
				if err == nil {
					deleted.Add(1)
				}
				return err
			})
		}
		if err := group.Wait(); err != nil {
			return int(deleted.Load()), err
		}
	}
	return int(deleted.Load()), nil
}

// anyAge is older than none, whatever the bucket's clock says.
const anyAge = -time.Hour

// Remove removes all that is stored below a folder, uploads that are under way
// among it, and the objects. It returns KindUnavailable.
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

// AbortStale ends uploads below prefix that were begun more than olderThan ago
// and never finished, as killed processes leave them. It returns how many it
// ended. Uploads that end meanwhile are passed over. It returns
// KindUnavailable.
func (s *Store) AbortStale(ctx context.Context, prefix string, olderThan time.Duration) (int, error) {
	before := s.now().Add(-olderThan)
	stale, err := s.staleUploads(ctx, prefix, before)
	if err != nil {
		return 0, err
	}
	aborted := 0
	for _, upload := range stale {
		_, err := s.client.AbortMultipartUpload(ctx, &s3.AbortMultipartUploadInput{
			Bucket: &s.bucket, Key: upload.Key, UploadId: upload.UploadId,
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

// staleUploads lists first and lets the caller abort afterwards, since pages
// shift under a listing that is being emptied.
func (s *Store) staleUploads(ctx context.Context, prefix string, before time.Time) ([]types.MultipartUpload, error) {
	var stale []types.MultipartUpload
	pages := s3.NewListMultipartUploadsPaginator(s.client, &s3.ListMultipartUploadsInput{Bucket: &s.bucket, Prefix: &prefix})
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
