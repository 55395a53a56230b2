package inline

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/providers/vendorhttp"
)

const (
	// imageMemory bounds the images of all calls in memory at once, in bytes. A call holds its
	// images while it fetches and sends them. Without the bound, a hundred waiting calls of 15 MB
	// each would hold 1.5 GB.
	imageMemory = 256 << 20
	// maxRequest bounds a request with its images, in bytes. It is the lowest limit of the vendors.
	// Google's limit comes from a secondary source.
	maxRequest = 20_000_000
)

// Images fetches the images for a channel's requests.
type Images struct {
	now   func() time.Time
	limit int64
	held  atomic.Int64 // bytes of images that are being fetched, or are fetched and not yet sent
}

// NewImages returns an Images. now is the clock that Job.SendBefore is compared with.
func NewImages(now func() time.Time) *Images { return &Images{now: now, limit: imageMemory} }

// HeldBytes returns the bytes of images in memory.
func (m *Images) HeldBytes() int64 { return m.held.Load() }

func (m *Images) reserve(n int64) bool {
	for {
		held := m.held.Load()
		if held+n > m.limit {
			return false
		}
		if m.held.CompareAndSwap(held, held+n) {
			return true
		}
	}
}

// Image is an image to fetch, and the field of the client's request that names it.
type Image struct{ Field, URL string }

// Blob is an image in the document of a request: its type, and a placeholder for its bytes until
// the request is sent.
type Blob struct{ MimeType, Data string }

// Request is a document with its images. The images stay in memory as raw bytes, and Body encodes
// them while they are sent.
type Request struct {
	text    []byte
	marker  marker
	files   [][]byte
	release func()
}

// Request fetches the images, calls document with a Blob for each, and returns the document with
// the images. Fetching stops at job.SendBefore: a later image is of no use, and a slow server of a
// client must not hold up the call. The document must contain the images in their order.
func (m *Images) Request(
	ctx context.Context, job mediagate.Job, images []Image, document func([]Blob) any,
) (*Request, error) {
	// The send gate refuses a job past SendBefore, so such a job needs no limit here.
	if left := job.SendBefore.Sub(m.now()); !job.SendBefore.IsZero() && left > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, left)
		defer cancel()
	}
	s, r := &share{of: m}, &Request{marker: newMarker()}
	r.release = sync.OnceFunc(func() {
		r.files = nil
		s.release()
	})
	if err := r.write(ctx, inputs{job.Inputs, s}, images, document); err != nil {
		r.Release()
		return nil, err
	}
	return r, nil
}

// Release frees the memory of the images. After Release, Body must not be called.
func (r *Request) Release() { r.release() }

// Body returns the body of the request. It calls sent, if not nil, when the transport has read the
// whole body of a request with images.
func (r *Request) Body(sent func()) vendorhttp.Body {
	if len(r.files) == 0 {
		return vendorhttp.JSON(json.RawMessage(r.text))
	}
	return r.marker.join(r.text, r.files, sent)
}

// longestType is the longest of the accepted types. Its length makes the size estimate an upper
// bound.
const longestType = "image/jpeg"

func (r *Request) write(ctx context.Context, in mediagate.Inputs, images []Image, document func([]Blob) any) error {
	blobs := make([]Blob, len(images))
	for i := range blobs {
		blobs[i] = Blob{MimeType: longestType, Data: r.marker.placeholder(i)}
	}
	withoutImages, err := encode(document(blobs))
	if err != nil {
		return err
	}
	left := maxRequest - int64(len(withoutImages))
	for i, img := range images {
		file, kind, err := fetch(ctx, in, img, left)
		if err != nil {
			return err
		}
		left -= int64(base64.StdEncoding.EncodedLen(len(file)))
		r.files = append(r.files, file)
		blobs[i].MimeType = kind
	}
	r.text, err = encode(document(blobs))
	return err
}

func encode(document any) ([]byte, error) {
	text, err := vendorhttp.Encode(document)
	if err != nil {
		return nil, mediagate.Errorf(mediagate.KindInvalid, "the request cannot be written: %w", err)
	}
	return text, nil
}

// fetch reads an image and detects its type, which the request states. left is the room in the
// request for the image as base64.
func fetch(ctx context.Context, in mediagate.Inputs, img Image, left int64) ([]byte, string, error) {
	limit := max(left/4*3, 0)
	body, _, err := in.Open(ctx, img.URL, limit)
	if err != nil {
		return nil, "", err
	}
	defer body.Close()
	file, err := io.ReadAll(body)
	if err != nil {
		return nil, "", err
	}
	kind := http.DetectContentType(file)
	if !slices.Contains([]string{"image/png", "image/jpeg", "image/webp"}, kind) {
		return nil, "", &mediagate.Error{
			Kind: mediagate.KindInvalid, Code: string(mediagate.CodeImageProcessing), Param: img.Field,
			Message: img.Field + " must be a PNG, JPEG or WebP image",
		}
	}
	return file, kind, nil
}

// share is the part of the image memory that one call holds. It grows with the bytes that arrive,
// so a slow server takes nothing from other calls. It never waits for memory, because two calls
// could wait for each other.
type share struct {
	of   *Images
	held int64
}

func (s *share) grow(n int64) error {
	if !s.of.reserve(n) {
		return &mediagate.Error{
			Kind: mediagate.KindUnreached, Message: "other calls have the memory for images", Err: mediagate.ErrHeldUp,
		}
	}
	s.held += n
	return nil
}

func (s *share) release() { s.of.held.Add(-s.held) }

// inputs opens the inputs of a job and counts all bytes that are read.
type inputs struct {
	mediagate.Inputs
	share *share
}

// Open opens a file of the job's inputs. The bytes read from it count against the share.
func (in inputs) Open(ctx context.Context, url string, limit int64) (io.ReadCloser, int64, error) {
	file, length, err := in.Inputs.Open(ctx, url, limit)
	if err != nil {
		return nil, 0, err
	}
	return counted{file, in.share}, length, nil
}

type counted struct {
	io.ReadCloser
	share *share
}

func (c counted) Read(p []byte) (int, error) {
	n, err := c.ReadCloser.Read(p)
	if short := c.share.grow(int64(n)); short != nil {
		return 0, short
	}
	return n, err
}
