package acedata_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/providers/acedata"
	"github.com/mediagate/mediagate/providers/vendorhttp"
	"github.com/mediagate/mediagate/sandbox"
	"github.com/mediagate/mediagate/sandbox/sample"
	"github.com/mediagate/mediagate/sandbox/sandboxtest"
)

// played is the adapter against the sandbox.
type played struct {
	*acedata.Adapter
	box *sandboxtest.Sandbox
}

func play(t *testing.T, customer string) played {
	t.Helper()
	box := sandboxtest.Open(t)
	return played{account(t, box, customer), box}
}

func account(t *testing.T, box *sandboxtest.Sandbox, customer string) *acedata.Adapter {
	t.Helper()
	for _, c := range sandbox.Channels(box.URL) {
		if c.Provider == "acedata" {
			a, err := acedata.New(mediagate.Channel{
				Name: "a", Provider: c.Provider, BaseURL: box.URL + c.Path,
				Credentials: mediagate.Secrets(map[string]string{"api_key": c.Credentials["api_key"] + customer}),
			}, vendorhttp.Options{})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(a.Close)
			return a
		}
	}
	t.Fatal("the sandbox does not play acedata")
	return nil
}

// run submits the job and polls it to its end.
func (p played) run(t *testing.T, j mediagate.Job) (mediagate.JobRef, *mediagate.Outcome) {
	t.Helper()
	sub, err := p.Submit(t.Context(), j)
	if err != nil {
		t.Fatalf("%s: %v", j.Operation, err)
	}
	if sub.Outcome != nil {
		return sub.Ref, sub.Outcome
	}
	for range 3 {
		report, err := p.Poll(t.Context(), sub.Ref)
		if err != nil {
			t.Fatalf("%s: %v", j.Operation, err)
		}
		if report.Outcome != nil {
			return sub.Ref, report.Outcome
		}
		p.box.Clock.Advance(time.Second)
	}
	t.Fatalf("%s does not end", j.Operation)
	return mediagate.JobRef{}, nil
}

// What a client would do one after the other, by the adapter alone.
func TestChains(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		song    mediagate.Job
		follows []mediagate.Job
		stems   mediagate.Job
		want    []string // role, name and type of its files
	}{
		"suno": {
			job("song", `{"custom":true,"instrumental":false,"auto_lyrics":true,"prompt":"snow","tags":"pop","vocal_gender":"f","style_weight":0,"version":"v4"}`, nil),
			[]mediagate.Job{
				job("remaster", `{"version":"v5.5"}`, nil),
				job("replace", `{"start_s":1.006,"end_s":12,"infill_lyrics":"plums","tags":"folk","negative_tags":"metal","title":"b"}`, nil),
				job("replace", `{"start_s":0,"end_s":12}`, nil),
			},
			job("stems", `{}`, nil),
			[]string{"stem vocals", "stem backing-vocals", "stem drums", "stem bass"},
		},
		"producer": {
			job("flow_song", `{"lyrics":"snow","bpm":90,"seed":1}`, nil),
			[]mediagate.Job{job("flow_replace", `{"start_s":0,"end_s":12,"instruction":"a solo","seed":4294967295}`, nil)},
			job("flow_stems", `{}`, nil),
			[]string{" application/zip"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := play(t, "")
			_, out := p.run(t, tc.song)
			source := &mediagate.Source{VendorID: out.Made.Clips[0].ID, Own: true}
			for _, j := range tc.follows {
				j.Source = source
				_, out = p.run(t, j)
				source = &mediagate.Source{VendorID: out.Made.Clips[0].ID, Own: true}
			}
			tc.stems.Source = source
			_, out = p.run(t, tc.stems)
			var names []string
			for _, m := range out.Media {
				names = append(names, string(m.Role)+" "+m.Name+m.MimeType)
			}
			if diff := cmp.Diff(tc.want, names); diff != "" || out.Made.Clips[0].ID != source.VendorID {
				t.Errorf("%+v: %s", out.Made, diff)
			}
			for _, m := range out.Media {
				if r := p.box.Call(t, "GET", m.URL, nil, nil); r.Status != http.StatusOK {
					t.Errorf("%s: %d", m.Name, r.Status)
				}
			}
		})
	}
}

// A song of another customer's goes by its link; what is no song is refused by
// the field that named it.
func TestForeignSources(t *testing.T) {
	t.Parallel()
	files := http.NewServeMux()
	files.HandleFunc("/song.mp3", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.Copy(w, sample.MP3(1)) })
	files.HandleFunc("/page", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("<html>")) })
	srv := httptest.NewServer(files)
	t.Cleanup(srv.Close)
	p := play(t, "@acme")
	p.run(t, job("remaster", `{"version":"v5"}`, &mediagate.Source{VendorID: "1", URL: srv.URL + "/song.mp3"}))
	p.run(t, job("flow_stems", `{}`, &mediagate.Source{VendorID: "1", URL: srv.URL + "/song.mp3"}))
	for field, j := range map[string]mediagate.Job{
		"task_id":   job("stems", `{}`, &mediagate.Source{VendorID: "1", URL: srv.URL + "/page"}),
		"clip_id":   job("flow_stems", `{}`, &mediagate.Source{VendorID: "1", URL: srv.URL + "/page"}),
		"audio_url": job("voice", `{"audio_url":"`+srv.URL+`/page"}`, nil),
	} {
		_, err := p.Submit(t.Context(), j)
		if !mediagate.Is(err, mediagate.KindInvalid) || !strings.Contains(err.Error(), "("+field+")") {
			t.Errorf("%s: %v", field, err)
		}
	}
	if n := len(p.box.Jobs(t, "")); n != 2 {
		t.Errorf("%d jobs, want 2", n)
	}
}

// A voice sings for the account that made it.
func TestVoiceSings(t *testing.T) {
	t.Parallel()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.Copy(w, sample.WAV(1)) }))
	t.Cleanup(srv.Close)
	p := play(t, "")
	ref, out := p.run(t, job("voice", `{"audio_url":"`+srv.URL+`/voice.wav"}`, nil))
	voice := &mediagate.Source{VendorID: out.Made.Voices[0], Ref: ref, Own: true}
	p.run(t, job("song", spring, voice))
	voice.Ref = mediagate.JobRef{}
	p.run(t, job("song", spring, voice))
}

func TestBatchOfSandbox(t *testing.T) {
	t.Parallel()
	p := play(t, "")
	var refs []mediagate.JobRef
	for range 3 {
		sub, err := p.Submit(t.Context(), job("song", spring, nil))
		if err != nil {
			t.Fatal(err)
		}
		refs = append(refs, sub.Ref)
	}
	p.box.Clock.Advance(2 * time.Second)
	unknown := refs[0]
	unknown.JobID = "nobody"
	answers, err := p.PollAll(t.Context(), append(refs, unknown))
	if err != nil || len(answers) != 4 || !mediagate.Is(answers[3].Err, mediagate.KindNotFound) {
		t.Fatalf("%+v, %v", answers, err)
	}
	for i, a := range answers[:3] {
		if a.Err != nil || a.Report.Outcome == nil || a.Report.Ref != refs[i] {
			t.Errorf("job %d: %+v, %v", i, a.Report, a.Err)
		}
	}
	if _, err := p.Poll(t.Context(), unknown); !mediagate.Is(err, mediagate.KindNotFound) {
		t.Errorf("an unknown job: %v", err)
	}
}

// Songs whose links the vendor leaves out, of one question or of a batch.
func TestSongsWithoutLinks(t *testing.T) {
	t.Parallel()
	for directive, want := range map[string][]int{"media=none, piece=1": {1}, "media=none, piece=2": {0}, "media=none": nil} {
		t.Run(directive, func(t *testing.T) {
			t.Parallel()
			p := play(t, "")
			song := job("song", `{"custom":true,"instrumental":false,"prompt":"snow [[sandbox: `+directive+`]]","tags":"pop","version":"v5"}`, nil)
			sub, err := p.Submit(t.Context(), song)
			if err != nil {
				t.Fatal(err)
			}
			p.box.Clock.Advance(time.Minute)
			alone, err := p.Poll(t.Context(), sub.Ref)
			if err != nil {
				t.Fatal(err)
			}
			together, err := p.PollAll(t.Context(), []mediagate.JobRef{sub.Ref})
			if err != nil || together[0].Err != nil {
				t.Fatal(err, together)
			}
			if diff := cmp.Diff(alone, together[0].Report); diff != "" {
				t.Errorf("alone and together (-alone +together):\n%s", diff)
			}
			var files []int
			for _, m := range alone.Outcome.Media {
				if m.Role == mediagate.RoleMain {
					files = append(files, m.Index)
				}
			}
			if diff := cmp.Diff(want, files); diff != "" || !alone.Incomplete || alone.Outcome.Succeeded != (want != nil) {
				t.Errorf("%+v %s", alone, diff)
			}
		})
	}
}
