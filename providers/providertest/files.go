package providertest

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/mediagate/mediagate"
)

// Inputs are a client's files by their links.
type Inputs map[string]string

// Open returns the file behind a link, as mediagate.Inputs demands.
func (in Inputs) Open(_ context.Context, link string, limit int64) (io.ReadCloser, int64, error) {
	file, ok := in[link]
	if !ok {
		return nil, 0, &mediagate.Error{Kind: mediagate.KindInvalid, Code: string(mediagate.CodeImageProcessing), Message: "the file cannot be fetched"}
	}
	return io.NopCloser(&limited{r: strings.NewReader(file), left: limit}), int64(len(file)), nil
}

// recorder notes whether a file was opened.
type recorder struct {
	Inputs
	opened atomic.Bool
}

func (r *recorder) Open(ctx context.Context, link string, limit int64) (io.ReadCloser, int64, error) {
	r.opened.Store(true)
	return r.Inputs.Open(ctx, link, limit)
}

// limited ends with an error after its bound.
type limited struct {
	r    io.Reader
	left int64
}

func (l *limited) Read(p []byte) (int, error) {
	n, err := l.r.Read(p)
	if l.left -= int64(n); l.left < 0 {
		return 0, &mediagate.Error{Kind: mediagate.KindInvalid, Code: string(mediagate.CodeImageProcessing), Message: "the file is too large"}
	}
	return n, err
}

// Sink keeps what an adapter stores and records.
type Sink struct {
	mu       sync.Mutex
	files    map[int]string
	recorded []mediagate.Submission
}

// NewSink makes an empty one.
func NewSink() *Sink { return &Sink{files: map[int]string{}} }

// Store keeps a file, as mediagate.Sink demands.
func (s *Sink) Store(_ context.Context, index int, file io.Reader) (mediagate.Media, error) {
	b, err := io.ReadAll(file)
	if err != nil {
		return mediagate.Media{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.files[index] = string(b)
	sum := sha256.Sum256(b)
	return mediagate.Media{Index: index, Stored: &mediagate.Result{
		Index: index, Key: fmt.Sprintf("result-%d", index), MimeType: http.DetectContentType(b),
		Size: int64(len(b)), SHA256: hex.EncodeToString(sum[:]),
	}}, nil
}

// Record keeps what a submission has made so far, as mediagate.Sink demands.
func (s *Sink) Record(_ context.Context, soFar mediagate.Submission) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.recorded = append(s.recorded, soFar)
}

// Recorded are the submissions that were recorded before Submit returned, in order.
func (s *Sink) Recorded() []mediagate.Submission {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.recorded)
}

// Files are those that were stored, by their index.
func (s *Sink) Files() map[int]string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.files)
}
