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

// Inputs holds a client's files by their links.
type Inputs map[string]string

// Open implements mediagate.Inputs.
func (in Inputs) Open(_ context.Context, link string, limit int64) (io.ReadCloser, int64, error) {
	file, ok := in[link]
	if !ok {
		return nil, 0, &mediagate.Error{
			Kind: mediagate.KindInvalid, Code: string(mediagate.CodeImageProcessing), Message: "the file cannot be fetched",
		}
	}
	return io.NopCloser(&limited{r: strings.NewReader(file), left: limit}), int64(len(file)), nil
}

// recorder records whether a file was opened.
type recorder struct {
	Inputs
	opened atomic.Bool
}

func (r *recorder) Open(ctx context.Context, link string, limit int64) (io.ReadCloser, int64, error) {
	r.opened.Store(true)
	return r.Inputs.Open(ctx, link, limit)
}

// limited returns an error after its limit.
type limited struct {
	r    io.Reader
	left int64
}

func (l *limited) Read(p []byte) (int, error) {
	n, err := l.r.Read(p)
	if l.left -= int64(n); l.left < 0 {
		return 0, &mediagate.Error{
			Kind: mediagate.KindInvalid, Code: string(mediagate.CodeImageProcessing), Message: "the file is too large",
		}
	}
	return n, err
}

// Sink keeps the files and submissions that an adapter hands over.
type Sink struct {
	mu       sync.Mutex
	files    map[int]string
	recorded []mediagate.Submission
}

// NewSink returns an empty Sink.
func NewSink() *Sink { return &Sink{files: map[int]string{}} }

// Store implements mediagate.Sink: it keeps a file in memory.
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

// Record implements mediagate.Sink: it keeps an unfinished submission.
func (s *Sink) Record(_ context.Context, soFar mediagate.Submission) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.recorded = append(s.recorded, soFar)
}

// Recorded returns the submissions recorded before Submit returned, in order.
func (s *Sink) Recorded() []mediagate.Submission {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.recorded)
}

// Files returns the stored files by their index.
func (s *Sink) Files() map[int]string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.files)
}
