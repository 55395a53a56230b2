package blob_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/storage/blob"
)

// service answers as a bucket does, with nothing in it, and notes what it is asked.
type service struct {
	mu     sync.Mutex
	calls  []string
	fail   map[string]int // status by call
	header map[string]http.Header
	body   map[string]string
	cors   string // the bucket's rules; "": none
}

func (s *service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	call := r.Method
	for _, part := range []string{"uploads", "partNumber", "cors"} {
		if r.URL.Query().Has(part) {
			call += " " + part
		}
	}
	if call == http.MethodDelete && r.URL.Query().Has("uploadId") {
		call = "DELETE upload"
	}
	body, _ := io.ReadAll(r.Body)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls = append(s.calls, call)
	s.header[call], s.body[call] = r.Header.Clone(), string(body)
	if status := s.fail[call]; status != 0 {
		w.WriteHeader(status)
		return
	}
	w.Header().Set("ETag", `"x"`)
	switch {
	case call == "POST uploads":
		_, _ = io.WriteString(w, `<InitiateMultipartUploadResult><UploadId>u</UploadId></InitiateMultipartUploadResult>`)
	case call == "POST":
		_, _ = io.WriteString(w, `<CompleteMultipartUploadResult><ETag>x</ETag></CompleteMultipartUploadResult>`)
	case call == "GET cors" && s.cors != "":
		_, _ = io.WriteString(w, s.cors)
	case call == "GET cors":
		w.WriteHeader(http.StatusNotFound)
		_, _ = io.WriteString(w, `<Error><Code>NoSuchCORSConfiguration</Code><Message>none</Message></Error>`)
	}
}

// take returns the calls since the last time.
func (s *service) take() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	calls := s.calls
	s.calls = nil
	return calls
}

// newService serves one, and opens a store on it.
func newService(t *testing.T) (*service, *blob.Store) {
	t.Helper()
	s := &service{fail: map[string]int{}, header: map[string]http.Header{}, body: map[string]string{}}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	store, err := blob.Open(t.Context(), blob.Config{
		Endpoint: server.URL, Bucket: "media", AccessKeyID: "a", SecretAccessKey: "b", PathStyle: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(store.Close)
	return s, store
}

const gif = "GIF89a\x01\x00\x01\x00\x00\x00\x00,\x00\x00\x00\x00\x01\x00\x01\x00\x00\x02\x00;"

func picture(size int) io.Reader {
	return strings.NewReader(gif + strings.Repeat("\x00", size-len(gif)))
}

// Each operation makes these calls and no others. The tests of standalone/s3server
// prove on a real server that services other than Amazon's accept them.
func TestCalls(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		call func(context.Context, *blob.Store) error
		want []string
	}{
		"a small file":    {mirror(2000), []string{"PUT"}},
		"a file in parts": {mirror(12 << 20), []string{"POST", "POST uploads", "PUT partNumber", "PUT partNumber", "PUT partNumber"}},
		"an upload": {func(ctx context.Context, s *blob.Store) error {
			_, err := s.PutUpload(ctx, "acc_1", "1", picture(2000), blob.Limits{Media: "image"})
			return err
		}, []string{"PUT"}},
		"a manifest": {func(ctx context.Context, s *blob.Store) error {
			return s.StoreManifest(ctx, "results/t/1/outcome.json", []byte("{}"))
		}, []string{"PUT"}},
		"a removal": {func(ctx context.Context, s *blob.Store) error { return s.Delete(ctx, "results/t/1/0") }, []string{"DELETE"}},
		"a reading": {func(ctx context.Context, s *blob.Store) error {
			_, err := s.LoadManifest(ctx, "results/t/1/outcome.json")
			return err
		}, []string{"GET"}},
		"pages": {func(ctx context.Context, s *blob.Store) error { return s.AllowPages(ctx) }, []string{"GET cors", "PUT cors"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			service, store := newService(t)
			if err := test.call(t.Context(), store); err != nil {
				t.Fatal(err)
			}
			got := service.take()
			slices.Sort(got)
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("calls (-want +got):\n%s", diff)
			}
		})
	}
}

// CORS rules that are not ours stay as they are, and a rule of ours that fits.
func TestRulesOfOthersStay(t *testing.T) {
	t.Parallel()
	const head = `<CORSConfiguration><CORSRule>`
	for name, test := range map[string]struct {
		has  string
		want []string
	}{
		"somebody else's":       {head + `<ID>cdn</ID><AllowedOrigin>https://cdn.example.com</AllowedOrigin></CORSRule></CORSConfiguration>`, []string{"GET cors"}},
		"without a name":        {head + `<AllowedOrigin>https://cdn.example.com</AllowedOrigin></CORSRule></CORSConfiguration>`, []string{"GET cors"}},
		"ours, as it should be": {head + `<ID>mediagate</ID><AllowedOrigin>*</AllowedOrigin></CORSRule></CORSConfiguration>`, []string{"GET cors"}},
		"ours, of one origin":   {head + `<ID>mediagate</ID><AllowedOrigin>https://a.example.com</AllowedOrigin></CORSRule></CORSConfiguration>`, []string{"GET cors", "PUT cors"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			service, store := newService(t)
			service.cors = test.has
			if err := store.AllowPages(t.Context()); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, service.take()); diff != "" {
				t.Errorf("calls (-want +got):\n%s", diff)
			}
		})
	}
}

func mirror(size int) func(context.Context, *blob.Store) error {
	return func(ctx context.Context, s *blob.Store) error {
		open := func(context.Context) (io.ReadCloser, int64, error) { return io.NopCloser(picture(size)), -1, nil }
		r, err := s.Mirror(ctx, "results/t/1/0", open, blob.Limits{Media: "image"})
		if err == nil && (r.Size != int64(size) || len(r.SHA256) != 64) {
			err = fmt.Errorf("stored %+v", r)
		}
		return err
	}
}

// The probe fails wherever a mirror would, and leaves no upload behind.
func TestProbeWritesAsAMirrorDoes(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		fail map[string]int
		code string // "": the probe succeeds
		want []string
	}{
		"a bucket that works":    {nil, "", []string{"POST uploads", "PUT partNumber", "DELETE upload"}},
		"a key that may read":    {map[string]int{"POST uploads": 403}, blob.CodeStorageRefused, []string{"POST uploads"}},
		"no uploads in parts":    {map[string]int{"POST uploads": 501}, blob.CodeStorageAway, []string{"POST uploads"}},
		"a disk that is full":    {map[string]int{"PUT partNumber": 507}, blob.CodeStorageAway, []string{"POST uploads", "PUT partNumber", "DELETE upload"}},
		"parts that are refused": {map[string]int{"PUT partNumber": 400}, blob.CodeStorageAway, []string{"POST uploads", "PUT partNumber", "DELETE upload"}},
		"no right to abort":      {map[string]int{"DELETE upload": 403}, blob.CodeStorageRefused, []string{"POST uploads", "PUT partNumber", "DELETE upload"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			service, store := newService(t)
			service.fail = test.fail
			err := store.Probe(t.Context())
			e, _ := err.(*mediagate.Error) //nolint:errorlint // as it is returned
			if (test.code == "") != (err == nil) || err != nil && (e == nil || e.Kind != mediagate.KindUnavailable || e.Code != test.code) {
				t.Errorf("got %v, want code %q", err, test.code)
			}
			if diff := cmp.Diff(test.want, service.take()); diff != "" {
				t.Errorf("calls (-want +got):\n%s", diff)
			}
			header := service.header["POST uploads"]
			if header.Get("Content-Type") == "" || header.Get("Content-Disposition") == "" {
				t.Errorf("the upload begins without metadata: %v", header)
			}
			if test.fail["POST uploads"] == 0 && len(service.body["PUT partNumber"]) < 64<<10 {
				t.Error("a part of less than 64 KiB may find room by chance")
			}
		})
	}
}
