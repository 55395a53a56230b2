package blob

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"path"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/feature/s3/transfermanager"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/media/mediainfo"
)

// Limits bound one mirrored file.
type Limits struct {
	MaxBytes int64             // the largest accepted size; 0: the largest that S3 accepts
	Media    string            // the class that the content must have: "video", "image", "audio", "archive"
	Owner    string            // the tenant whose share of the memory is used
	Progress func(bytes int64) // called with the number of bytes read so far; may be nil
}

// Mirror waits for memory, opens a file and streams it to the object key, replacing an object
// that exists. The content decides the stored type. The result has the size, the hash and the
// facts from the headers.
//
// Mirror returns KindInvalid with code result_unavailable for a file that is empty, too large, or
// not of the class, or whose headers are broken or missing. It returns errors of open unchanged,
// and errors of the body wrapped. It returns KindUnavailable when the store fails, or when ctx
// ends during the wait for memory. After an error nothing new is stored.
func (s *Store) Mirror(ctx context.Context, key string, open Opener, limits Limits) (mediagate.Result, error) {
	return s.store(ctx, s.memory, key, open, limits)
}

// store is Mirror with a given budget.
func (s *Store) store(
	ctx context.Context, memory budget, key string, open Opener, limits Limits,
) (mediagate.Result, error) {
	body, shape, release, err := memory.open(ctx, limits.Owner, limits.MaxBytes, open)
	if err != nil {
		return mediagate.Result{}, err
	}
	defer release()
	defer body.Close()
	if most := shape.part * maxParts; limits.MaxBytes > most {
		limits.MaxBytes = most
	}
	src := newSource(ctx, body, limits)
	head, err := src.sniff()
	if err != nil {
		return mediagate.Result{}, err
	}
	format, detected, ok := mediainfo.Detect(head)
	if limits.Media == string(mediainfo.ClassArchive) && mediainfo.IsZip(head) {
		format, ok = mediainfo.Zip, true
	}
	if !ok || string(format.Class) != limits.Media {
		return mediagate.Result{}, unusable(fmt.Sprintf("the file is %s, not %s", detected, limits.Media))
	}
	if err := src.start(mediainfo.NewProbe(format)); err != nil {
		return mediagate.Result{}, err
	}

	_, err = s.uploads.UploadObject(ctx, &transfermanager.UploadObjectInput{
		Bucket:             &s.bucket,
		Key:                &key,
		Body:               io.MultiReader(bytes.NewReader(head), src),
		ContentType:        aws.String(format.MIME),
		ContentDisposition: aws.String(`inline; filename="` + fileName(key, format.Ext) + `"`),
	}, func(o *transfermanager.Options) {
		o.PartSizeBytes = shape.part
		o.Concurrency = shape.width
	})
	if src.err != nil {
		return mediagate.Result{}, src.err
	}
	if err != nil {
		return mediagate.Result{}, storageError(ctx, "storing the file", err)
	}
	info := src.probe.Info()
	return mediagate.Result{
		Key:      key,
		MimeType: format.MIME,
		Size:     src.read,
		SHA256:   src.sum(),
		Width:    info.Width,
		Height:   info.Height,
		Duration: info.Duration,
	}, nil
}

// partSizeFor returns a part size with which the largest allowed file has at most maxParts parts.
func partSizeFor(maxBytes int64) int64 {
	return max(partSize, maxBytes/maxParts+1)
}

// fileName returns the name under which a browser saves the object: <task>-<index> for
// results/<task>/<attempt>/<index>, and the last part of other keys.
func fileName(key, ext string) string {
	parts := strings.Split(key, "/")
	name := path.Base(key)
	if n := len(parts); n >= 3 {
		name = parts[n-3] + "-" + parts[n-1]
	}
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '-', r == '_', r == '.':
			return r
		}
		return '_'
	}, name) + ext
}
