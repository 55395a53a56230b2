package blob

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/mediagate/mediagate"
)

// manifestMax bounds the size of a manifest, which holds keys and hashes of a few files.
const manifestMax = 1 << 20

// StoreManifest writes a small object that lists the files of a result. It is stored whole or not at
// all.
func (s *Store) StoreManifest(ctx context.Context, key string, manifest []byte) error {
	_, err := s.client.PutObject(ctx, &s3.PutObjectInput{
		Bucket:      &s.bucket,
		Key:         &key,
		Body:        bytes.NewReader(manifest),
		ContentType: aws.String("application/json"),
	})
	return storageError(ctx, "storing a manifest", err)
}

// LoadManifest reads a manifest that StoreManifest wrote. Returns KindNotFound where there is none.
func (s *Store) LoadManifest(ctx context.Context, key string) ([]byte, error) {
	body, length, err := s.Open(ctx, key)
	if mediagate.Is(err, mediagate.KindGone) {
		return nil, mediagate.Errorf(mediagate.KindNotFound, "no manifest")
	}
	if err != nil {
		return nil, err
	}
	defer body.Close()
	if length > manifestMax {
		return nil, mediagate.Errorf(mediagate.KindInternal, "a manifest of %d bytes", length)
	}
	manifest, err := io.ReadAll(io.LimitReader(body, manifestMax))
	return manifest, storageError(ctx, "reading a manifest", err)
}

// Open reads an object. Returns KindGone where there is none.
func (s *Store) Open(ctx context.Context, key string) (body io.ReadCloser, length int64, err error) {
	out, err := s.client.GetObject(ctx, &s3.GetObjectInput{Bucket: &s.bucket, Key: &key})
	if isNoKey(err) {
		return nil, 0, gone()
	}
	if err != nil {
		return nil, 0, storageError(ctx, "reading an object", err)
	}
	if out.ContentLength == nil {
		return out.Body, -1, nil
	}
	return out.Body, *out.ContentLength, nil
}

// Exists checks that an object of the file's size is stored. Returns KindGone otherwise.
func (s *Store) Exists(ctx context.Context, r mediagate.Result) error {
	size, err := s.Size(ctx, r.Key)
	if err == nil && size != r.Size {
		return gone()
	}
	return err
}

// Size returns the length of an object in bytes. Returns KindGone where there is none.
func (s *Store) Size(ctx context.Context, key string) (int64, error) {
	out, err := s.client.HeadObject(ctx, &s3.HeadObjectInput{Bucket: &s.bucket, Key: &key})
	switch {
	case isNoKey(err):
		return 0, gone()
	case err != nil && statusOf(err) == http.StatusNotFound: // of the object or of the bucket: a HEAD has no body
		if err := s.Ping(ctx); err != nil {
			return 0, err
		}
		return 0, gone()
	case err != nil:
		return 0, storageError(ctx, "asking for an object", err)
	default:
		return aws.ToInt64(out.ContentLength), nil
	}
}

// OpenAt reads an object from an offset. Returns KindGone where there is none.
func (s *Store) OpenAt(ctx context.Context, key string, offset int64) (io.ReadCloser, error) {
	out, err := s.client.GetObject(ctx, &s3.GetObjectInput{
		Bucket: &s.bucket, Key: &key, Range: aws.String("bytes=" + strconv.FormatInt(offset, 10) + "-"),
	})
	if isNoKey(err) {
		return nil, gone()
	}
	if err != nil {
		return nil, storageError(ctx, "reading an object", err)
	}
	return out.Body, nil
}

// Verify reads the file and compares size and hash. Returns KindGone where there is none or they
// differ.
func (s *Store) Verify(ctx context.Context, r mediagate.Result) error {
	body, _, err := s.Open(ctx, r.Key)
	if err != nil {
		return err
	}
	defer body.Close()
	sum := sha256.New()
	size, err := io.Copy(sum, body)
	if err != nil {
		return storageError(ctx, "reading an object", err)
	}
	if size != r.Size || hex.EncodeToString(sum.Sum(nil)) != r.SHA256 {
		return gone()
	}
	return nil
}

func gone() *mediagate.Error {
	return &mediagate.Error{
		Kind:    mediagate.KindGone,
		Code:    string(mediagate.CodeResultUnavailable),
		Message: "the stored file is gone",
	}
}

// isNoKey reports whether the object is missing, and not the bucket.
func isNoKey(err error) bool { return err != nil && apiCode(err) == "NoSuchKey" }

// PutUpload stores media that came within a request under mediagate.UploadKey. Its type and its bounds
// are checked as those of a mirrored file. Returns KindInvalid, naming the rule, for a file of another
// class or one that is too large, and KindUnavailable.
func (s *Store) PutUpload(
	ctx context.Context, accountID, id string, file io.Reader, limits Limits,
) (key string, err error) {
	key = mediagate.UploadKey(accountID, id)
	if _, err = s.putClient(ctx, s.inline, key, file, limits); err != nil {
		return "", err
	}
	return key, nil
}

// PutFile stores an upload of at most maxBytes and returns its size. It holds twice the received bytes
// and 64 KiB, at most MinMemory; the caller bounds that memory. If reading file fails, PutFile returns
// that error and stores nothing. Otherwise it returns the errors of PutUpload.
func (s *Store) PutFile(
	ctx context.Context, f mediagate.File, file io.Reader, maxBytes int64,
) (bytes int64, err error) {
	class, _, _ := strings.Cut(f.MimeType(), "/")
	r, err := s.putClient(ctx, s.clients, f.Key(), file, Limits{Media: class, MaxBytes: maxBytes})
	return r.Size, err
}

func (s *Store) putClient(
	ctx context.Context, memory budget, key string, file io.Reader, limits Limits,
) (mediagate.Result, error) {
	open := func(context.Context) (io.ReadCloser, int64, error) { return io.NopCloser(file), -1, nil }
	limits.Owner = key // each file is its own tenant of the memory
	r, err := s.store(ctx, memory, key, open, limits)
	if refused, ok := errors.AsType[*mediagate.Error](err); ok && refused.Kind == mediagate.KindInvalid {
		return r, mediagate.Errorf(mediagate.KindInvalid, "%s", refused.Message) // without the code of a result
	}
	return r, err
}
