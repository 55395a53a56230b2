package blobtest

import (
	"bytes"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/storage/blob"
)

func (s *suite) testLinks(t *testing.T) {
	key := s.prefix(t, "links") + "task/1/0"
	s.mirror(t, key, bytes.NewReader(picture(t, 3, 3)), blob.Limits{Media: "image"})
	link, err := s.store.Sign(t.Context(), mediagate.Result{Key: key}, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	u, err := url.Parse(link.URL)
	if err != nil {
		t.Fatal(err)
	}
	other := *u
	other.Path = strings.TrimSuffix(u.Path, "0") + "1"
	longer := *u
	q := u.Query()
	q.Set("X-Amz-Expires", "604800")
	longer.RawQuery = q.Encode()
	bare := *u
	bare.RawQuery = ""
	for name, test := range map[string]struct {
		url    string
		status int
	}{
		"as signed":      {link.URL, http.StatusOK},
		"another object": {other.String(), http.StatusForbidden},
		"prolonged":      {longer.String(), http.StatusForbidden},
		"unsigned":       {bare.String(), http.StatusForbidden},
	} {
		t.Run(name, func(t *testing.T) {
			if got := fetch(t, test.url); got.status != test.status {
				t.Errorf("status is %d, want %d", got.status, test.status)
			}
		})
	}
}

// testLinksEnd signs as of an hour ago, so that no test waits for an end.
func (s *suite) testLinksEnd(t *testing.T) {
	key := s.prefix(t, "links-end") + "task/1/0"
	s.mirror(t, key, bytes.NewReader(picture(t, 3, 3)), blob.Limits{Media: "image"})
	c := s.config
	c.Now = func() time.Time { return time.Now().Add(-time.Hour) }
	past := open(t, c)
	for name, test := range map[string]struct {
		ttl    time.Duration
		status int
	}{
		"ended a minute ago":    {59 * time.Minute, http.StatusForbidden},
		"lives another minute":  {61 * time.Minute, http.StatusOK},
		"cut to a week at most": {30 * 24 * time.Hour, http.StatusOK},
	} {
		t.Run(name, func(t *testing.T) {
			link, err := past.Sign(t.Context(), mediagate.Result{Key: key}, test.ttl)
			if err != nil {
				t.Fatal(err)
			}
			if got := fetch(t, link.URL); got.status != test.status {
				t.Errorf("status is %d, want %d", got.status, test.status)
			}
			if live := link.ExpiresAt.After(time.Now()); live != (test.status == http.StatusOK) {
				t.Errorf("ExpiresAt %s does not tell whether the link works", link.ExpiresAt)
			}
		})
	}
}

func (s *suite) testOddKeys(t *testing.T) {
	prefix := s.prefix(t, "odd")
	for _, name := range []string{"a b", "a+b", "a%20b", "ä", "a(b)!'*", "a=b&c", "a~b"} {
		t.Run(name, func(t *testing.T) {
			key := prefix + name + "/1/0"
			r := s.mirror(t, key, bytes.NewReader(picture(t, 3, 3)), blob.Limits{Media: "image"})
			if got := s.get(t, key); got.status != http.StatusOK || got.sha256 != r.SHA256 {
				t.Errorf("the link answers %d", got.status)
			}
		})
	}
}

func (s *suite) testDelete(t *testing.T) {
	prefix := s.prefix(t, "delete")
	keys := []string{"1/1/0", "1/1/1", "1/2/0", "10/1/0"}
	for _, key := range keys {
		s.mirror(t, prefix+key, bytes.NewReader(picture(t, 3, 3)), blob.Limits{Media: "image"})
	}
	expect := func(want ...string) {
		t.Helper()
		for _, key := range keys {
			status := http.StatusNotFound
			for _, w := range want {
				if w == key {
					status = http.StatusOK
				}
			}
			if got := s.get(t, prefix+key); got.status != status {
				t.Errorf("%s answers %d, want %d", key, got.status, status)
			}
		}
	}
	if err := s.store.Delete(t.Context(), prefix+"1/1/1"); err != nil {
		t.Fatal(err)
	}
	expect("1/1/0", "1/2/0", "10/1/0")
	if err := s.store.Delete(t.Context(), prefix+"1/1/1"); err != nil {
		t.Errorf("deleting what is gone: %v", err)
	}
	n, err := s.store.DeletePrefix(t.Context(), prefix+"1/")
	if err != nil || n != 2 {
		t.Errorf("deleted %d (%v), want 2", n, err)
	}
	expect("10/1/0")
	for _, wide := range []string{"", "/", prefix + "10"} {
		_, err := s.store.DeletePrefix(t.Context(), wide)
		expectError(t, err, mediagate.KindInvalid, "")
	}
	expect("10/1/0")
}

// testRemove empties one folder, of what is in it and of what would come.
func (s *suite) testRemove(t *testing.T) {
	prefix := s.prefix(t, "remove")
	for _, key := range []string{"1/1/0", "1/1/0-2", "10/1/0", "up/a", "up/b"} {
		s.mirror(t, prefix+key, bytes.NewReader(picture(t, 3, 3)), blob.Limits{Media: "image"})
	}
	s.begin(t, prefix+"1/2/0", prefix+"10/2/0")
	for range 2 { // the second time there is nothing
		if err := s.store.Remove(t.Context(), prefix+"1/", prefix+"up/a", prefix+"up/none"); err != nil {
			t.Fatal(err)
		}
	}
	for key, want := range map[string]int{"1/1/0": 404, "1/1/0-2": 404, "10/1/0": 200, "up/a": 404, "up/b": 200} {
		if got := s.get(t, prefix+key); got.status != want {
			t.Errorf("%s answers %d, want %d", key, got.status, want)
		}
	}
	for below, want := range map[string]int{"1/": 0, "10/": 1} {
		if n, err := s.store.AbortStale(t.Context(), prefix+below, everything); err != nil || n != want {
			t.Errorf("%d unfinished below %q (%v), want %d", n, below, err, want)
		}
	}
	expectError(t, s.store.Remove(t.Context(), prefix+"10"), mediagate.KindInvalid, "")
}

// begin leaves uploads behind as a killed process does.
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
	abort("task/", everything, 2)
	abort("", everything, 1)
	abort("", everything, 0)
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

func (s *suite) testRefusing(t *testing.T) {
	for name, change := range map[string]func(*blob.Config){
		"wrong secret":  func(c *blob.Config) { c.SecretAccessKey += "x" },
		"unknown key":   func(c *blob.Config) { c.AccessKeyID += "x" },
		"absent bucket": func(c *blob.Config) { c.Bucket += "-absent" },
	} {
		t.Run(name, func(t *testing.T) {
			c := s.config
			change(&c)
			store := open(t, c)
			expectError(t, store.Ping(t.Context()), mediagate.KindUnavailable, blob.CodeStorageRefused)
			expectError(t, store.Probe(t.Context()), mediagate.KindUnavailable, blob.CodeStorageRefused)
			for _, size := range []int64{2000, 2 * part} {
				_, err := store.Mirror(t.Context(), "blobtest/refusing/1/0", from(film(size)), blob.Limits{Media: "video"})
				expectError(t, err, mediagate.KindUnavailable, blob.CodeStorageRefused)
			}
		})
	}
}

func (s *suite) testAbsent(t *testing.T) {
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c := s.config
	c.Endpoint = "http://" + l.Addr().String()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	store := open(t, c)
	expectError(t, store.Ping(t.Context()), mediagate.KindUnavailable, blob.CodeStorageAway)
	expectError(t, store.Probe(t.Context()), mediagate.KindUnavailable, blob.CodeStorageAway)
	expectError(t, store.EnsureBucket(t.Context()), mediagate.KindUnavailable, blob.CodeStorageAway)
	_, err = store.Mirror(t.Context(), "blobtest/absent/1/0", from(film(2*part)), blob.Limits{Media: "video"})
	expectError(t, err, mediagate.KindUnavailable, blob.CodeStorageAway)
	// Links need nobody.
	if _, err := store.Sign(t.Context(), mediagate.Result{Key: "k"}, time.Hour); err != nil {
		t.Error(err)
	}
}
