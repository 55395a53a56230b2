package veo

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/providers/vendorhttp"
)

const key = "AIzaSyB4bX9mQ2vT7pW8nR3"

func open(t *testing.T, base string) *Adapter {
	t.Helper()
	a, err := New(mediagate.Channel{Name: "a", BaseURL: base, Credentials: mediagate.Secrets(map[string]string{"api_key": key})}, vendorhttp.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(a.Close)
	return a
}

// A file of the account is downloaded from the channel's address. Any other link is left to the
// guarded client, which has no key.
func TestMedia(t *testing.T) {
	t.Parallel()
	const file = "/v1beta/files/abc:download?alt=media"
	for name, tt := range map[string]struct {
		base, uri string
		want      mediagate.Media
	}{
		"the vendor's":          {"", PublicURL + file, mediagate.Media{Ref: file}},
		"the vendor's, proxied": {"https://proxy.example.com/google", PublicURL + file, mediagate.Media{Ref: file}},
		"the channel's":         {"https://proxy.example.com/google", "https://proxy.example.com/google" + file, mediagate.Media{Ref: file}},
		"without a query":       {"", PublicURL + "/v1beta/files/abc", mediagate.Media{Ref: "/v1beta/files/abc"}},
		"of another path":       {"", PublicURL + "/upload/x", mediagate.Media{URL: PublicURL + "/upload/x"}},
		"another host's":        {"", "https://cdn.example.com/a.mp4", mediagate.Media{URL: "https://cdn.example.com/a.mp4"}},
		"another host's, alike": {"", "https://generativelanguage.googleapis.com.example.com" + file, mediagate.Media{URL: "https://generativelanguage.googleapis.com.example.com" + file}},
		"not over TLS":          {"", "http://generativelanguage.googleapis.com" + file, mediagate.Media{URL: "http://generativelanguage.googleapis.com" + file}},
		"a user's":              {"", "https://me@cdn.example.com/a.mp4", mediagate.Media{URL: "https://me@cdn.example.com/a.mp4"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tt.want.MimeType = "video/mp4"
			got, ok := open(t, tt.base).media(vendorhttp.Text(tt.uri))
			if diff := cmp.Diff(tt.want, got); diff != "" || !ok {
				t.Error(ok, diff)
			}
		})
	}
}

// Only a call to the channel's own host has the key.
func TestDownloadCarriesTheKeyHome(t *testing.T) {
	t.Parallel()
	a := open(t, "")
	for address, want := range map[string]bool{
		PublicURL + "/download/v1beta/files/abc":             true,
		"https://storage.googleapis.com/b/o?token=x":         false,
		"http://generativelanguage.googleapis.com/v1beta/a":  false,
		"https://generativelanguage.googleapis.com:444/a":    false,
		"https://generativelanguage.googleapis.com.evil.net": false,
	} {
		at, err := url.Parse(address)
		if err != nil {
			t.Fatal(err)
		}
		if got := a.download(at).Header.Get("X-Goog-Api-Key") != ""; got != want {
			t.Errorf("%s: with the key %v, want %v", address, got, want)
		}
	}
}

// The guarded client opens a download that is redirected to another host. It gets the address and
// the number of redirects that are left of five.
func TestDownloadIsRedirectedElsewhere(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		hops int // on the channel's own host, before the last redirect
		to   string
		want string // the address and redirects that the guarded client gets
		kind mediagate.Kind
	}{
		"at once":            {0, "http://cdn.example.com/a.mp4?token=x", "http://cdn.example.com/a.mp4?token=x 4", 0},
		"after one":          {1, "https://cdn.example.com/a.mp4", "https://cdn.example.com/a.mp4 3", 0},
		"the fifth":          {4, "http://cdn.example.com/a.mp4", "http://cdn.example.com/a.mp4 0", 0},
		"the sixth":          {5, "http://cdn.example.com/a.mp4", "", mediagate.KindInvalid},
		"by scheme-relative": {0, "//cdn.example.com/a.mp4", "http://cdn.example.com/a.mp4 4", 0},
		"to no host":         {0, "file:///etc/passwd", "", mediagate.KindTransient},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			left := tt.hops
			vendor := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if left--; left >= 0 {
					w.Header().Set("Location", "/v1beta/files/again")
				} else {
					w.Header().Set("Location", tt.to)
				}
				w.WriteHeader(http.StatusFound)
			}))
			t.Cleanup(vendor.Close)
			a, asked := open(t, vendor.URL), ""
			a.follow = func(_ context.Context, link string, redirects int) (io.ReadCloser, int64, error) {
				asked = fmt.Sprint(link, " ", redirects)
				return io.NopCloser(strings.NewReader("a video")), 7, nil
			}
			file, length, err := a.Open(t.Context(), mediagate.JobRef{}, mediagate.Media{Ref: "/v1beta/files/abc:download?alt=media"})
			if asked != tt.want {
				t.Errorf("the guarded client got %q, want %q", asked, tt.want)
			}
			if tt.want == "" {
				if !mediagate.Is(err, tt.kind) {
					t.Errorf("%v, want %s", err, tt.kind)
				}
				return
			}
			if err != nil || length != 7 {
				t.Fatalf("%d, %v", length, err)
			}
			if got, err := io.ReadAll(file); err != nil || string(got) != "a video" {
				t.Errorf("%q, %v", got, err)
			}
		})
	}
}

// A download that is redirected within the host returns the file.
func TestDownloadIsLedOn(t *testing.T) {
	t.Parallel()
	var calls []string
	vendor := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		calls = append(calls, r.URL.RequestURI()+" "+r.Header.Get("X-Goog-Api-Key"))
		if r.URL.Path != "/google/download/abc" {
			http.Redirect(w, r, "/google/download/abc?alt=media", http.StatusFound)
			return
		}
		_, _ = io.WriteString(w, "a video")
	}))
	t.Cleanup(vendor.Close)
	file, length, err := open(t, vendor.URL+"/google").Open(t.Context(), mediagate.JobRef{}, mediagate.Media{Ref: "/v1beta/files/abc:download?alt=media"})
	if err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(file)
	if closed := file.Close(); err != nil || closed != nil || string(got) != "a video" || length != 7 {
		t.Errorf("%q of %d, %v, %v", got, length, err, closed)
	}
	want := []string{"/google/v1beta/files/abc:download?alt=media " + key, "/google/download/abc?alt=media " + key}
	if diff := cmp.Diff(want, calls); diff != "" {
		t.Error(diff)
	}
}
