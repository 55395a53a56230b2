package sunoapi_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/providers/sunoapi"
	"github.com/mediagate/mediagate/providers/vendorhttp"
	"github.com/mediagate/mediagate/sandbox"
	"github.com/mediagate/mediagate/sandbox/sandboxtest"
)

// A song, a section of it replaced, and its tracks, by the adapter against the
// sandbox.
func TestChain(t *testing.T) {
	t.Parallel()
	box := sandboxtest.Open(t)
	var a *sunoapi.Adapter
	for _, c := range sandbox.Channels(box.URL) {
		if c.Provider != "sunoapi" {
			continue
		}
		var err error
		a, err = sunoapi.New(mediagate.Channel{
			Name: "a", Provider: c.Provider, BaseURL: box.URL + c.Path, Credentials: mediagate.Secrets(c.Credentials),
		}, vendorhttp.Options{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(a.Close)
	}
	run := func(j mediagate.Job) (mediagate.JobRef, *mediagate.Outcome) {
		t.Helper()
		sub, err := a.Submit(t.Context(), j)
		if err != nil {
			t.Fatalf("%s: %v", j.Operation, err)
		}
		for range 5 {
			report, err := a.Poll(t.Context(), sub.Ref)
			if err != nil {
				t.Fatalf("%s: %v", j.Operation, err)
			}
			if report.Outcome != nil {
				return sub.Ref, report.Outcome
			}
			box.Clock.Advance(500 * time.Millisecond)
		}
		t.Fatalf("%s does not end", j.Operation)
		return mediagate.JobRef{}, nil
	}
	source := func(ref mediagate.JobRef, out *mediagate.Outcome) *mediagate.Source {
		last := out.Made.Clips[len(out.Made.Clips)-1]
		return &mediagate.Source{Ref: ref, VendorID: last.ID, Clip: &last, Own: true}
	}
	song := source(run(job("song", `{"custom":true,"instrumental":true,"tags":"pop","style_weight":0.333,"version":"v5"}`, nil)))
	song = source(run(job("replace", `{"start_s":1,"end_s":9.004}`, song)))
	_, out := run(job("stems", `{}`, song))
	if len(out.Media) != 4 || out.Made.Clips[0].ID != song.VendorID {
		t.Fatalf("%+v of %+v", out.Media, out.Made)
	}
	for _, m := range out.Media {
		if r := box.Call(t, "GET", m.URL, nil, nil); r.Status != http.StatusOK {
			t.Errorf("%s: %d", m.Name, r.Status)
		}
	}
}
