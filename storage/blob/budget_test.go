package blob

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/mediagate/mediagate/internal/limit"
)

// opened is a file that is there at once.
func opened(r io.Reader, length int64) Opener {
	return func(context.Context) (io.ReadCloser, int64, error) { return io.NopCloser(r), length, nil }
}

// held counts the bytes that were read from files and that no store has yet.
type held struct{ now, most atomic.Int64 }

func (h *held) add(n int64) {
	now := h.now.Add(n)
	for most := h.most.Load(); now > most && !h.most.CompareAndSwap(most, now); most = h.most.Load() {
	}
}

// picture is a file of that size whose bytes are counted as they are read.
type picture struct {
	io.Reader
	held *held
}

func newPicture(size int64, h *held) *picture {
	return &picture{io.MultiReader(strings.NewReader(gifFile), io.LimitReader(zeros{}, size-int64(len(gifFile)))), h}
}

func (p *picture) Read(b []byte) (int, error) {
	n, err := p.Reader.Read(b)
	p.held.add(int64(n))
	return n, err
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

// countingStore takes uploads, and takes off what it has received.
func countingStore(t *testing.T, h *held) *httptest.Server {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n, _ := io.Copy(io.Discard, r.Body)
		q := r.URL.Query()
		switch {
		case r.Method == http.MethodPut:
			h.add(-n)
			w.Header().Set("ETag", `"x"`)
		case q.Has("uploads"):
			_, _ = io.WriteString(w, `<InitiateMultipartUploadResult><UploadId>u</UploadId></InitiateMultipartUploadResult>`)
		default:
			_, _ = io.WriteString(w, `<CompleteMultipartUploadResult><ETag>x</ETag></CompleteMultipartUploadResult>`)
		}
	}))
	t.Cleanup(server.Close)
	return server
}

// Many copies at once of files that are each larger than
// mirror_memory hold no more than that together, and all end.
func TestUploadsStayWithinTheirMemory(t *testing.T) {
	t.Parallel()
	const files, size = 8, 17 << 20
	for _, memory := range []int64{MinMemory, MinMemory + partSize + 1, 40 << 20} {
		t.Run(fmt.Sprint(memory>>20, " MiB"), func(t *testing.T) {
			t.Parallel()
			h := &held{}
			server := countingStore(t, h)
			s := openTest(t, func(c *Config) { c.Endpoint, c.Memory = server.URL, limit.New("", memory) })
			ended := make(chan error)
			for i := range files {
				length := int64(size)
				if i%2 == 0 {
					length = -1
				}
				go func() {
					r, err := s.Mirror(t.Context(), fmt.Sprintf("results/t/1/%d", i), opened(newPicture(size, h), length), Limits{Media: "image"})
					if err == nil && r.Size != size {
						err = fmt.Errorf("stored %d bytes of %d", r.Size, size)
					}
					ended <- err
				}()
			}
			for range files {
				if err := <-ended; err != nil {
					t.Error(err)
				}
			}
			if most := h.most.Load(); most > memory {
				t.Errorf("up to %d bytes are held, more than %d", most, memory)
			}
			if left := h.now.Load(); left != 0 {
				t.Errorf("%d bytes were read and not stored", left)
			}
			if f := s.memory.free.Figures(); f.Held != 0 {
				t.Errorf("%d bytes were not given back", f.Held)
			}
		})
	}
}

// A file is opened when there is memory for it: no vendor's connection lies
// idle meanwhile. A small one leaves room for others.
func TestFilesAreOpenedInTurn(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		length int64 // of the file under way
		opens  bool  // the other one
	}{
		"a large one": {1 << 30, false}, "one of unknown length": {-1, false}, "a small one": {1 << 10, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				b := newBudget(limit.New("", 6*partSize), uploadWidth)
				_, _, release, err := b.open(t.Context(), "one", 2<<30, opened(nil, c.length))
				if err != nil {
					t.Fatal(err)
				}
				ctx, cancel := context.WithCancel(t.Context())
				isOpen, done := false, make(chan error, 1)
				go func() {
					_, _, _, err := b.open(ctx, "other", 2<<30, func(context.Context) (io.ReadCloser, int64, error) {
						isOpen = true
						return nil, -1, nil
					})
					done <- err
				}()
				synctest.Wait()
				if isOpen != c.opens {
					t.Errorf("the other file is open: %v, want %v", isOpen, c.opens)
				}
				cancel()
				if err := <-done; errors.Is(err, context.Canceled) == c.opens {
					t.Errorf("cancelled while it waits: %v", err)
				}
				release()
			})
		})
	}
}

// A slow owner's files hold half of the memory, however many come, and another's
// are opened beside them; what was held is given back.
func TestOwnersLeaveMemoryToOthers(t *testing.T) {
	t.Parallel()
	for name, size := range map[string]int64{"much": 20 * partSize, "less than two files need": 6 * partSize} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				b := newBudget(limit.New("", size), 1) // a file takes three parts
				ctx, cancel := context.WithCancel(t.Context())
				var under, ended atomic.Int32
				for range 40 {
					go func() {
						defer ended.Add(1)
						_, _, release, err := b.open(ctx, "slow", 2<<30, func(context.Context) (io.ReadCloser, int64, error) {
							under.Add(1)
							return nil, -1, nil
						})
						if err == nil {
							<-ctx.Done()
							release()
						}
					}()
				}
				synctest.Wait()
				if got, want := under.Load(), int32(size/2/(3*partSize)); got != want {
					t.Errorf("%d files of one owner are open, want %d", got, want)
				}
				_, _, release, err := b.open(ctx, "other", 2<<30, opened(nil, -1))
				if err != nil {
					t.Fatal(err)
				}
				release()
				cancel()
				synctest.Wait()
				if ended.Load() != 40 || b.free.Figures().Held != 0 {
					t.Error("not all memory was given back")
				}
			})
		})
	}
}

func TestFailedOpenGivesItsMemoryBack(t *testing.T) {
	t.Parallel()
	b, away := newBudget(limit.New("", MinMemory), uploadWidth), errors.New("away")
	for range 3 {
		_, _, _, err := b.open(t.Context(), "a", 0, func(context.Context) (io.ReadCloser, int64, error) { return nil, 0, away })
		if !errors.Is(err, away) {
			t.Fatalf("error %v, want that of the opening", err)
		}
	}
}

func TestShape(t *testing.T) {
	t.Parallel()
	const gib = 1 << 30
	for name, c := range map[string]struct {
		memory, maxBytes, length int64
		want                     shape
	}{
		"plenty":                     {DefaultMemory, 2 * gib, -1, shape{partSize, 3, 5 * partSize}},
		"the least":                  {MinMemory, 2 * gib, -1, shape{partSize, 1, 3 * partSize}},
		"in between":                 {4*partSize + 1, 2 * gib, -1, shape{partSize, 2, 4 * partSize}},
		"two parts":                  {DefaultMemory, 2 * gib, 2 * partSize, shape{partSize, 1, 3 * partSize}},
		"three parts":                {DefaultMemory, 2 * gib, 2*partSize + 1, shape{partSize, 2, 4 * partSize}},
		"one part":                   {DefaultMemory, 2 * gib, partSize, shape{partSize, 1, 3 * partSize}},
		"less than a part":           {DefaultMemory, 2 * gib, partSize - 1, shape{partSize, 1, 2*partSize - 2 + smallest}},
		"never more than a part":     {DefaultMemory, 1 << 20, -1, shape{partSize, 1, 2<<20 + smallest}},
		"no bound":                   {DefaultMemory, 0, -1, shape{partSize, 3, 5 * partSize}},
		"as many parts as S3 takes":  {DefaultMemory, partSize*maxParts - 1, -1, shape{partSize, 3, 5 * partSize}},
		"one byte more":              {DefaultMemory, partSize * maxParts, -1, shape{partSize + 1, 3, 5 * (partSize + 1)}},
		"large parts":                {DefaultMemory, 100 * gib, -1, shape{100*gib/maxParts + 1, 3, 5 * (100*gib/maxParts + 1)}},
		"large parts, little memory": {MinMemory, 100 * gib, -1, shape{partSize, 1, 3 * partSize}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := newBudget(limit.New("", c.memory), uploadWidth).shapeOf(c.maxBytes, c.length)
			if got != c.want {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
			if got.share > c.memory {
				t.Errorf("the share of %d is more than all memory", got.share)
			}
		})
	}
}
