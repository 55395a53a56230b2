package s3server_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/storage/blob"
)

// anyAge is an age with which AbortStale aborts even new uploads. It allows for the server's
// clock.
const anyAge = -time.Hour

// testStore checks the promises of package blob on the server and bucket of c.
func testStore(t *testing.T, c blob.Config) {
	t.Helper()
	s := &suite{config: c, store: open(t, c)}
	if err := s.store.EnsureBucket(t.Context()); err != nil {
		t.Fatal(err)
	}
	// This test runs first and alone, because it measures the process's memory.
	t.Run("memory is bounded", s.testMemory)
	for name, test := range map[string]func(*testing.T){
		"sizes around a part": s.testSizes,
		"failed copies":       s.testFailed,
		"archives":            s.testArchive,
		"replacing":           s.testReplace,
		"links":               s.testLinks,
		"deleting":            s.testDelete,
		"old files":           s.testOlder,
		"removing":            s.testRemove,
		"unfinished uploads":  s.testAbortStale,
		"manifests":           s.testManifest,
		"stored files":        s.testStored,
		"uploads of requests": s.testUploads,
		"files of clients":    s.testFiles,
		"bucket":              s.testBucket,
		"no store":            s.testNoStore,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t)
		})
	}
}

type suite struct {
	config blob.Config
	store  *blob.Store
}

// prefix returns a folder for one test and empties it at the end. The folder has no parent,
// because the server removes a parent that becomes empty. That would fail another test that
// stores below the parent at this moment.
func (s *suite) prefix(t *testing.T, name string) string {
	t.Helper()
	p := "suite-" + name + "/"
	empty := func() {
		ctx := context.WithoutCancel(t.Context())
		if _, err := s.store.DeletePrefix(ctx, p); err != nil {
			t.Error(err)
		}
		if _, err := s.store.AbortStale(ctx, p, anyAge); err != nil {
			t.Error(err)
		}
	}
	empty()
	t.Cleanup(empty)
	return p
}

// openerOf returns an opener of a file of unknown length.
func openerOf(r io.Reader) blob.Opener {
	return func(context.Context) (io.ReadCloser, int64, error) { return io.NopCloser(r), -1, nil }
}

func (s *suite) mirror(t *testing.T, key string, body io.Reader, limits blob.Limits) mediagate.Result {
	t.Helper()
	r, err := s.store.Mirror(t.Context(), key, openerOf(body), limits)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// answer is the answer to a GET of a link.
type answer struct {
	status int
	header http.Header
	size   int64
	sha256 string
}

func fetch(t *testing.T, url string) answer {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	size, sum := digest(t, resp.Body)
	return answer{status: resp.StatusCode, header: resp.Header, size: size, sha256: sum}
}

func digest(t *testing.T, r io.Reader) (size int64, sum string) {
	t.Helper()
	h := sha256.New()
	size, err := io.Copy(h, r)
	if err != nil {
		t.Fatal(err)
	}
	return size, hex.EncodeToString(h.Sum(nil))
}

// get fetches the object by a link that the store signs.
func (s *suite) get(t *testing.T, key string) answer {
	t.Helper()
	link, err := s.store.Sign(t.Context(), mediagate.Result{Key: key}, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	return fetch(t, link.URL)
}

// put stores small files.
func (s *suite) put(t *testing.T, keys ...string) {
	t.Helper()
	for _, key := range keys {
		s.mirror(t, key, bytes.NewReader(picture(t, 3, 3)), blob.Limits{Media: "image"})
	}
}

// expectKeys checks that these are the objects below the prefix, in the order of their keys.
func (s *suite) expectKeys(t *testing.T, prefix string, want ...string) {
	t.Helper()
	got, _, _, err := s.store.Older(t.Context(), prefix, "", anyAge)
	if err != nil {
		t.Fatal(err)
	}
	for i := range got {
		got[i] = strings.TrimPrefix(got[i], prefix)
	}
	if !slices.Equal(got, want) {
		t.Errorf("below %s are %v, want %v", prefix, got, want)
	}
}

// expectNothing checks that there is no object at the key, and no unfinished upload below the
// prefix.
func (s *suite) expectNothing(t *testing.T, prefix, key string) {
	t.Helper()
	if got := s.get(t, key); got.status != http.StatusNotFound {
		t.Errorf("%s answers %d, want 404", key, got.status)
	}
	n, err := s.store.AbortStale(t.Context(), prefix, anyAge)
	if err != nil {
		t.Fatal(err)
	}
	if n != 0 {
		t.Errorf("%d uploads were left unfinished", n)
	}
}

func expectError(t *testing.T, err error, kind mediagate.Kind, code string) {
	t.Helper()
	var e *mediagate.Error
	if !errors.As(err, &e) {
		t.Fatalf("got error %v, want kind %s", err, kind)
	}
	if e.Kind != kind || e.Code != code {
		t.Errorf("got kind %s, code %q (%v), want %s, %q", e.Kind, e.Code, err, kind, code)
	}
}
