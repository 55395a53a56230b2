package musicapi_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/providers/musicapi"
	"github.com/mediagate/mediagate/providers/vendorhttp"
	"github.com/mediagate/mediagate/sandbox"
	"github.com/mediagate/mediagate/sandbox/sample"
	"github.com/mediagate/mediagate/sandbox/sandboxtest"
)

// A song of another account's by its link, and songs of what came of it, by the
// adapter against the sandbox.
func TestChain(t *testing.T) {
	t.Parallel()
	files := http.NewServeMux()
	files.HandleFunc("/song.mp3", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.Copy(w, sample.MP3(20)) })
	files.HandleFunc("/page", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("<html>")) })
	srv := httptest.NewServer(files)
	t.Cleanup(srv.Close)
	box := sandboxtest.Open(t)
	var a *musicapi.Adapter
	for _, c := range sandbox.Channels(box.URL) {
		if c.Provider != "musicapi" {
			continue
		}
		var err error
		a, err = musicapi.New(mediagate.Channel{
			Name: "a", Provider: c.Provider, BaseURL: box.URL + c.Path, Credentials: mediagate.Secrets(c.Credentials),
		}, vendorhttp.Options{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(a.Close)
	}
	source := &mediagate.Source{VendorID: "1", URL: srv.URL + "/song.mp3"}
	for _, params := range []string{
		`{"custom":false,"gpt_description":"snow","vocal_gender":"m","instrumental":true,"version":"v4","start_s":1.25,"end_s":20}`,
		`{"custom":true,"prompt":"la","title":"b","tags":"pop","negative_tags":"metal","style_weight":0.333,"weirdness_constraint":1,"audio_weight":0,"start_s":2}`,
		`{"custom":true,"auto_lyrics":true,"tags":"pop","version":"v4.5+","end_s":17}`,
		`{"custom":true,"tags":"pop","version":"v4.5"}`,
	} {
		sub, err := a.Submit(t.Context(), job(params, source))
		if err != nil {
			t.Fatalf("%s: %v", params, err)
		}
		var states []mediagate.JobState
		var out *mediagate.Outcome
		for range 4 {
			report, err := a.Poll(t.Context(), sub.Ref)
			if err != nil {
				t.Fatalf("%s: %v", params, err)
			}
			states, out = append(states, report.State), report.Outcome
			box.Clock.Advance(time.Second)
		}
		if states[0] != mediagate.JobQueued || states[1] != mediagate.JobRunning || out == nil || len(out.Made.Clips) != 2 || len(out.Media) != 5 {
			t.Fatalf("%s: %v, %+v", params, states, out)
		}
		for _, f := range out.Media {
			if r := box.Call(t, "GET", f.URL, nil, nil); r.Status != http.StatusOK {
				t.Errorf("%s of song %d: %d", f.Role, f.Index, r.Status)
			}
		}
		last := out.Made.Clips[1]
		source = &mediagate.Source{VendorID: last.ID, Clip: &last, Own: true}
	}
	_, err := a.Submit(t.Context(), job(spring, &mediagate.Source{VendorID: "1", URL: srv.URL + "/page"}))
	if !mediagate.Is(err, mediagate.KindInvalid) || !strings.Contains(err.Error(), "not a valid audio") {
		t.Errorf("%v", err)
	}
	if _, err := a.Poll(t.Context(), mediagate.JobRef{JobID: "nobody", Operation: "sample"}); !mediagate.Is(err, mediagate.KindNotFound) {
		t.Errorf("an unknown job: %v", err)
	}
}
