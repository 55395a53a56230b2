package veo

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync/atomic"
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

// A file of the account's is asked for at the channel's address; any other link
// is one for the guarded client, which has no key.
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

// The key goes to the channel's own host and to no other.
func TestDownloadCarriesTheKeyHome(t *testing.T) {
	t.Parallel()
	a := open(t, "")
	for address, want := range map[string]struct{ key, followed bool }{
		PublicURL + "/download/v1beta/files/abc":             {true, true},
		"https://storage.googleapis.com/b/o?token=x":         {false, true},
		"https://rr1.googleusercontent.com/a":                {false, true},
		"http://storage.googleapis.com/a":                    {false, false},
		"https://storage.googleapis.com:8443/a":              {false, false},
		"https://me@storage.googleapis.com/a":                {false, false},
		"https://googleapis.com.example.com/a":               {false, false},
		"https://evilgoogleapis.com/a":                       {false, false},
		"https://\u00e9.googleapis.com/a":                    {false, false},
		"http://generativelanguage.googleapis.com/v1beta/a":  {false, false},
		"https://generativelanguage.googleapis.com:444/a":    {false, false},
		"https://169.254.169.254/computeMetadata/v1/project": {false, false},
	} {
		at, err := url.Parse(address)
		if err != nil {
			t.Fatal(err)
		}
		if got := a.own(at) || google(at); got != want.followed {
			t.Errorf("%s: followed %v, want %v", address, got, want.followed)
		}
		if got := a.download(at).Header.Get("X-Goog-Api-Key") != ""; got != want.key {
			t.Errorf("%s: with the key %v, want %v", address, got, want.key)
		}
	}
}

// A download that is led to a host of nobody's ends there, without a call.
func TestDownloadIsNotLedAway(t *testing.T) {
	t.Parallel()
	var calls atomic.Int32
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { calls.Add(1) }))
	t.Cleanup(other.Close)
	vendor := httptest.NewServer(http.RedirectHandler(other.URL+"/a.mp4", http.StatusFound))
	t.Cleanup(vendor.Close)
	_, _, err := open(t, vendor.URL).Open(t.Context(), mediagate.JobRef{}, mediagate.Media{Ref: "/v1beta/files/abc:download?alt=media"})
	if !mediagate.Is(err, mediagate.KindTransient) || calls.Load() != 0 {
		t.Errorf("%v, after %d calls to another host", err, calls.Load())
	}
}

// A download that is led on within the host ends with the file.
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
