package s3server_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/storage/blob"
)

// testLinks signs some links as of an hour ago, so that the test need not wait for them to
// expire.
func (s *suite) testLinks(t *testing.T) {
	key := s.prefix(t, "links") + "task/1/0"
	s.put(t, key)
	c := s.config
	c.Now = func() time.Time { return time.Now().Add(-time.Hour) }
	sign := func(store *blob.Store, ttl time.Duration, change func(path *string, query url.Values)) string {
		link, err := store.Sign(t.Context(), mediagate.Result{Key: key}, ttl)
		if err != nil {
			t.Fatal(err)
		}
		u, err := url.Parse(link.URL)
		if err != nil {
			t.Fatal(err)
		}
		query := u.Query()
		change(&u.Path, query)
		u.RawQuery = query.Encode()
		return u.String()
	}
	as := func(*string, url.Values) {}
	past := open(t, c)
	for name, test := range map[string]struct {
		url    string
		status int
	}{
		"as signed":      {sign(s.store, time.Hour, as), http.StatusOK},
		"another object": {sign(s.store, time.Hour, func(path *string, _ url.Values) { *path += "1" }), http.StatusForbidden},
		"prolonged":      {sign(s.store, time.Hour, func(_ *string, q url.Values) { q.Set("X-Amz-Expires", "604800") }), http.StatusForbidden},
		"unsigned":       {sign(s.store, time.Hour, func(_ *string, q url.Values) { clear(q) }), http.StatusForbidden},
		"ended":          {sign(past, 59*time.Minute, as), http.StatusForbidden},
		"ends soon":      {sign(past, 61*time.Minute, as), http.StatusOK},
	} {
		t.Run(name, func(t *testing.T) {
			if got := fetch(t, test.url); got.status != test.status {
				t.Errorf("status is %d, want %d", got.status, test.status)
			}
		})
	}
}

func (s *suite) testDelete(t *testing.T) {
	prefix := s.prefix(t, "delete")
	s.put(t, prefix+"1/1/0", prefix+"1/1/1", prefix+"1/2/0", prefix+"1/3/0", prefix+"10/1/0")
	for range 2 { // deleting a missing object is no error
		if err := s.store.Delete(t.Context(), prefix+"1/1/1"); err != nil {
			t.Fatal(err)
		}
	}
	s.expectKeys(t, prefix, "1/1/0", "1/2/0", "1/3/0", "10/1/0")
	if n, err := s.store.DeletePrefix(t.Context(), prefix+"1/", prefix+"1/2/0"); err != nil || n != 2 {
		t.Errorf("deleted %d (%v), want 2", n, err)
	}
	s.expectKeys(t, prefix, "1/2/0", "10/1/0")
	for _, wide := range []string{"", "/", prefix + "10"} {
		_, err := s.store.DeletePrefix(t.Context(), wide)
		expectError(t, err, mediagate.KindInvalid, "")
	}
	for range 2 {
		if err := s.store.DeleteAll(t.Context(), []string{prefix + "1/2/0", prefix + "1/never"}); err != nil {
			t.Error(err)
		}
	}
	s.expectKeys(t, prefix, "10/1/0")
}

// testRemove removes a folder with its unfinished uploads, and a single object.
func (s *suite) testRemove(t *testing.T) {
	prefix := s.prefix(t, "remove")
	s.put(t, prefix+"1/1/0", prefix+"1/1/0-2", prefix+"10/1/0", prefix+"up/a", prefix+"up/b")
	s.begin(t, prefix+"1/2/0", prefix+"10/2/0")
	for range 2 { // the second call finds nothing
		if err := s.store.Remove(t.Context(), prefix+"1/", prefix+"up/a", prefix+"up/none"); err != nil {
			t.Fatal(err)
		}
	}
	s.expectKeys(t, prefix, "10/1/0", "up/b")
	for below, want := range map[string]int{"1/": 0, "10/": 1} {
		if n, err := s.store.AbortStale(t.Context(), prefix+below, anyAge); err != nil || n != want {
			t.Errorf("%d unfinished below %q (%v), want %d", n, below, err, want)
		}
	}
	expectError(t, s.store.Remove(t.Context(), prefix+"10"), mediagate.KindInvalid, "")
}

// begin starts uploads and leaves them unfinished, as a killed process does.
func (s *suite) begin(t *testing.T, keys ...string) {
	t.Helper()
	client := s3.New(s3.Options{
		BaseEndpoint: aws.String(s.config.Endpoint), Region: s.config.Region, UsePathStyle: s.config.PathStyle,
		Credentials:                credentials.NewStaticCredentialsProvider(s.config.AccessKeyID, s.config.SecretAccessKey, ""),
		RequestChecksumCalculation: aws.RequestChecksumCalculationWhenRequired,
	})
	for _, key := range keys {
		if _, err := client.CreateMultipartUpload(t.Context(), &s3.CreateMultipartUploadInput{Bucket: aws.String(s.config.Bucket), Key: aws.String(key)}); err != nil {
			t.Fatal(err)
		}
	}
}

func (s *suite) testAbortStale(t *testing.T) {
	prefix := s.prefix(t, "stale")
	s.begin(t, prefix+"task/1/0", prefix+"task/1/1", prefix+"other/1/0")
	abort := func(below string, age time.Duration, want int) {
		t.Helper()
		n, err := s.store.AbortStale(t.Context(), prefix+below, age)
		if err != nil || n != want {
			t.Errorf("below %q, older than %s: %d aborted (%v), want %d", below, age, n, err, want)
		}
	}
	abort("", time.Hour, 0)
	abort("task/", anyAge, 2)
	abort("", anyAge, 1)
	abort("", anyAge, 0)
}

func (s *suite) testBucket(t *testing.T) {
	c := s.config
	c.Bucket = s.config.Bucket + "-new"
	store := open(t, c)
	for range 2 {
		if err := store.EnsureBucket(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if err := store.Ping(t.Context()); err != nil {
		t.Error(err)
	}
	if err := store.Probe(t.Context()); err != nil {
		t.Error(err)
	}
	if n, err := store.DeletePrefix(t.Context(), "results/"); err != nil || n != 0 {
		t.Errorf("the probe leaves %d objects (%v)", n, err)
	}
}

// testNoStore checks that the error of a store that refuses or is away differs from that of a
// missing file.
func (s *suite) testNoStore(t *testing.T) {
	away := httptest.NewServer(nil)
	away.Close()
	for name, test := range map[string]struct {
		change func(*blob.Config)
		code   string
	}{
		"wrong secret":  {func(c *blob.Config) { c.SecretAccessKey += "x" }, blob.CodeStorageRefused},
		"unknown key":   {func(c *blob.Config) { c.AccessKeyID += "x" }, blob.CodeStorageRefused},
		"absent bucket": {func(c *blob.Config) { c.Bucket += "-absent" }, blob.CodeStorageRefused},
		"away":          {func(c *blob.Config) { c.Endpoint = away.URL }, blob.CodeStorageAway},
	} {
		t.Run(name, func(t *testing.T) {
			c, ctx := s.config, t.Context()
			test.change(&c)
			store, file := open(t, c), mediagate.Result{Key: "blobtest/no-store/1/0", Size: 1}
			for call, err := range map[string]error{
				"ping": store.Ping(ctx), "probe": store.Probe(ctx), "exists": store.Exists(ctx, file), "verify": store.Verify(ctx, file),
				"manifest": second(store.LoadManifest(ctx, file.Key)),
				"mirror":   second(store.Mirror(ctx, file.Key, openerOf(film(2000)), blob.Limits{Media: "video"})),
				"parts":    second(store.Mirror(ctx, file.Key, openerOf(film(2*part)), blob.Limits{Media: "video"})),
			} {
				t.Run(call, func(t *testing.T) { expectError(t, err, mediagate.KindUnavailable, test.code) })
			}
			if _, err := store.Sign(ctx, file, time.Hour); err != nil { // signing a link makes no call
				t.Error(err)
			}
		})
	}
}

func second[T any](_ T, err error) error { return err }
