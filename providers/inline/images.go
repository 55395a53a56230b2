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
	// imageMemory is what the images of all calls may hold at once, while they
	// are fetched and sent. Of a whole queue of calls, each with as much as a
	// request takes, they would be gigabytes.
	imageMemory = 256 << 20
	// maxRequest bounds a request with its images, in bytes: the least of what
	// the vendors take. Google's bound is read at second hand.
	maxRequest = 20_000_000
)

// Images fetches the images that go into a channel's requests.
type Images struct {
	now  func() time.Time
	most int64
	held atomic.Int64 // bytes of images that are fetched and not yet sent
}

// NewImages makes it with the clock of send gates.
func NewImages(now func() time.Time) *Images { return &Images{now: now, most: imageMemory} }

// Held are the bytes of images in memory.
func (m *Images) Held() int64 { return m.held.Load() }

func (m *Images) take(n int64) bool {
	for {
		held := m.held.Load()
		if held+n > m.most {
			return false
		}
		if m.held.CompareAndSwap(held, held+n) {
			return true
		}
	}
}

// Image is one to fetch, and the field that names it.
type Image struct{ Field, URL string }

// Blob is an image as a document of a request has it: its type, and what
// stands for its bytes until the request is sent.
type Blob struct{ MimeType, Data string }

// Request is a document whose images are in memory as they came; base64 is made
// of them while they leave.
type Request struct {
	text    []byte
	files   [][]byte
	release func()
}

// Request fetches the images, and writes the document with them. They are
// fetched within the time in which the call may begin: what comes later is of
// no use, and whose server is slow should not keep the call.
//
// In the document no text of the client's may come after the first image.
func (m *Images) Request(ctx context.Context, job mediagate.Job, images []Image, document func([]Blob) any) (*Request, error) {
	if left := job.SendBefore.Sub(m.now()); !job.SendBefore.IsZero() && left > 0 { // else refused as late, when sent
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, left)
		defer cancel()
	}
	s, r := &share{of: m}, &Request{}
	r.release = sync.OnceFunc(func() {
		r.files = nil
		s.giveBack()
	})
	if err := r.write(ctx, inputs{job.Inputs, s}, images, document); err != nil {
		r.Release()
		return nil, err
	}
	return r, nil
}

// Release gives back what the images hold. No body can be made any more.
func (r *Request) Release() { r.release() }

// Body is the request to be sent. sent is called when all has left; it may be
// nil.
func (r *Request) Body(sent func()) vendorhttp.Body {
	if len(r.files) == 0 {
		return vendorhttp.JSON(json.RawMessage(r.text))
	}
	return join(r.text, r.files, sent)
}

// longestType is the longest of the types that are taken.
const longestType = "image/jpeg"

func (r *Request) write(ctx context.Context, in mediagate.Inputs, images []Image, document func([]Blob) any) error {
	blobs := make([]Blob, len(images))
	for i := range blobs {
		blobs[i] = Blob{MimeType: longestType, Data: slot(i)}
	}
	bare, err := encode(document(blobs))
	if err != nil {
		return err
	}
	left := maxRequest - int64(len(bare))
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

// fetch opens an image and looks at its type, since the vendor is told. left is the
// room for it in base64.
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
			Kind: mediagate.KindInvalid, Code: string(mediagate.CodeImageProcessing), Param: img.Field, Message: img.Field + " must be a PNG, JPEG or WebP image",
		}
	}
	return file, kind, nil
}

// share is what one call has of the memory. It grows with what has arrived, so
// that a server which only keeps us waiting takes nothing from others, and
// never waits, since others might wait for it in turn.
type share struct {
	of   *Images
	held int64
}

func (s *share) grow(n int64) error {
	if !s.of.take(n) {
		return &mediagate.Error{Kind: mediagate.KindUnreached, Message: "other calls have the memory for images", Err: mediagate.ErrHeldUp}
	}
	s.held += n
	return nil
}

func (s *share) giveBack() { s.of.held.Add(-s.held) }

// inputs are those of a job, of which all that is read counts.
type inputs struct {
	mediagate.Inputs
	share *share
}

// Open opens a file as the job's inputs do.
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
