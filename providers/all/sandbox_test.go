package all_test

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/media/mediainfo"
	"github.com/mediagate/mediagate/providers"
	"github.com/mediagate/mediagate/providers/all"
	"github.com/mediagate/mediagate/providers/providertest"
	"github.com/mediagate/mediagate/sandbox"
	"github.com/mediagate/mediagate/sandbox/sample"
	"github.com/mediagate/mediagate/sandbox/sandboxtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// These tests prove the sandbox: each runs the real adapter of each vendor against the vendor that
// the sandbox plays.

// script is the requests of one customer to one vendor.
type script struct {
	provider   string
	path       string            // below the vendor's own path
	options    map[string]string // the channel's options
	credential string            // the credential that has variants; empty if there are none
	jobs       []jobSpec         // sent one after the other; the first prompt takes directives

	internalCode   mediagate.FailureCode // the failure of an internal error at submit; default: CodeSubmissionUnknown
	refused        mediagate.FailureCode // the failure of a job that fails later; default: CodeGenerationFailed
	running        bool                  // the vendor reports a queued job as running
	cancelsRunning bool                  // a job can also be stopped while it runs, or after it was stopped
}

// jobSpec is one job of a script.
type jobSpec struct {
	operation, upstream, params string
	from                        int    // the source is the job this many places earlier; 0 means no source
	button                      string // the prefix of the customId of the source's button
	usesOwnSong                 bool   // the source is a song of our own instead
	waits                       bool   // the job waits for more input before it begins
	files                       string // the files of the result, by role and name; empty means not checked
}

const (
	klingText  = `{"prompt":"snow","mode":"std","duration":5,"aspect_ratio":"16:9","audio":false,"multi_shot":false}`
	wanText    = `{"prompt":"snow","duration":5,"resolution":"720P","aspect_ratio":"16:9","audio":true,"prompt_extend":true,"watermark":false}`
	viduText   = `{"prompt":"snow","image_urls":["https://media.example.com/a.png"],"duration":5,"resolution":"720p","aspect_ratio":"16:9","audio":true}`
	veoText    = `{"prompt":"snow","duration":8,"resolution":"720p","sample_count":2,"generate_audio":false,"first_frame_image":"https://media.example.com/a.png"}`
	imageText  = `{"prompt":"snow","image_urls":["https://media.example.com/a.png"]}`
	omniText   = `{"prompt":"snow","mode":"std","duration":5,"aspect_ratio":"16:9"}`
	twoImages  = `"image_urls":["https://media.example.com/1","https://media.example.com/2"]`
	fastParams = `{"speed":"fast"}`
	plainText  = `{"prompt":"snow","resolution":"1080p"}`
)

// subjects adds fields to a request, and two subjects by name, each with more pictures than may
// fit.
func subjects(params, fields string) string {
	named := func(name string) string {
		link := `"https://media.example.com/` + name + `"`
		return `{"name":"` + name + `","description":"a ` + name + `","element_input_urls":[` + strings.Repeat(link+",", 3) + link + `]}`
	}
	return strings.TrimSuffix(params, "}") + "," + fields + `,"element_list":[` + named("cat") + "," + named("dog") + `]}`
}

func scripts() map[string]script {
	const invalid = mediagate.CodeInvalidParameters
	klingJobs := []jobSpec{
		{operation: "video", upstream: "kling-v3", params: klingText},
		{operation: "base_video", upstream: "kling-v3", params: `{"prompt":"snow","resolution":"1080p"}`},
		{operation: "omni_frames", upstream: "kling-v3-omni", params: strings.Replace(klingText, "}", `,"element_list":[{"element_id":7}]}`, 1)},
		{operation: "omni_frames", upstream: "kling-v3-omni", params: subjects(klingText, twoImages)},
		{
			operation: "omni_frames", upstream: "kling-v3-omni",
			params: subjects(strings.Replace(klingText, "false}", "true}", 1), `"shot_type":"customize","multi_prompt":[`+
				`{"index":1,"prompt":"@cat sits","duration":2},{"index":2,"prompt":"@dog runs","duration":3}],"negative_prompt":"fog"`),
		},
		{operation: "omni", upstream: "kling-video-o1", params: omniText},
		{operation: "omni", upstream: "kling-video-o1", params: subjects(omniText, twoImages)},
		{
			operation: "omni", upstream: "kling-video-o1",
			params: subjects(omniText, twoImages+`,"video_list":[{"video_url":"https://media.example.com/v","refer_type":"base","keep_original_sound":"yes"}]`),
		},
	}
	return map[string]script{
		"kling": {provider: "kling", credential: "api_key", jobs: klingJobs},
		"kling of the newer generation": {
			provider: "kling", credential: "api_key", options: map[string]string{"generation": "v2"}, jobs: klingJobs,
		},
		"kling by signed tokens": {provider: "kling", jobs: klingJobs[:1]},
		"dashscope": {provider: "dashscope", credential: "api_key", jobs: []jobSpec{
			{operation: "video", upstream: "wan2.6", params: wanText},
			{operation: "video_v2", upstream: "wan2.7", params: wanText},
			{
				operation: "edit", upstream: "wan2.7-videoedit",
				params: `{"video_urls":["https://media.example.com/a.mp4"],"resolution":"1080P","duration":0,"prompt_extend":true,"watermark":false,"metadata":{"audio_setting":"auto"}}`,
			},
			{operation: "kling", upstream: "kling/kling-v3-video-generation", params: klingText},
			{
				operation: "kling_omni", upstream: "kling/kling-v3-omni-video-generation",
				params: strings.Replace(klingText, "}", `,"element_list":[{"element_id":7}]}`, 1),
			},
			{operation: "vidu", upstream: "vidu/viduq3_reference2video", params: viduText},
			{operation: "base_video", upstream: "wan2.6-t2v", params: plainText},
		}},
		"dashscope, images": {provider: "dashscope", credential: "api_key", refused: invalid, jobs: []jobSpec{
			{operation: "image", upstream: "z-image-turbo", params: `{"prompt":"snow","size":"1:1","resolution":"1K","prompt_extend":false}`},
			{operation: "base_image", upstream: "z-image-turbo", params: `{"prompt":"snow"}`},
		}},
		"gemini": {provider: "gemini", credential: "api_key", jobs: []jobSpec{
			{operation: "image", upstream: "gemini-3.1-flash-image", params: imageText},
			{operation: "base_image", upstream: "gemini-3.1-flash-image", params: imageText},
		}},
		"minimax": {provider: "minimax", credential: "api_key", jobs: []jobSpec{
			{operation: "video", upstream: "MiniMax-Hailuo-02", params: `{"prompt":"snow","duration":5,"resolution":"768p","watermark":false}`},
			{operation: "base_video", upstream: "MiniMax-Hailuo-02", params: `{"prompt":"snow"}`},
		}},
		"minimax of the second generation": {provider: "minimax", credential: "api_key", jobs: []jobSpec{
			{operation: "video_v2", upstream: "MiniMax-H3", params: `{"prompt":"snow","duration":5,"resolution":"768P","aspect_ratio":"16:9"}`},
		}},
		"vidu": {provider: "vidu", credential: "api_key", jobs: []jobSpec{
			{operation: "reference", upstream: "viduq3", params: viduText},
			{operation: "base_video", upstream: "viduq3-turbo", params: plainText},
		}},
		"fal": {provider: "fal", credential: "api_key", cancelsRunning: true, jobs: []jobSpec{
			{
				operation: "video", upstream: "fal-ai/ltx-2.3/text-to-video",
				params: `{"prompt":"snow","duration":8,"resolution":"1080p","aspect_ratio":"9:16","audio":false}`,
			},
			{operation: "image", upstream: "fal-ai/flux/schnell", params: `{"prompt":"snow","size":"16:9","n":2,"seed":7}`, files: "main, main"},
		}},
		"vertex": {provider: "vertex", running: true, jobs: []jobSpec{
			{operation: "video", upstream: "veo-3.1-generate-001", params: veoText},
			{operation: "base_video", upstream: "veo-3.1-generate-001", params: imageText},
		}},
		"veo": {provider: "veo", credential: "api_key", running: true, jobs: []jobSpec{
			{operation: "video", upstream: "veo-3.1-generate-preview", params: veoText},
			{operation: "base_video", upstream: "veo-3.1-generate-preview", params: imageText},
		}},
		"midjourney": {provider: "midjourney", credential: "api_secret", internalCode: mediagate.CodeProviderAway, refused: invalid, cancelsRunning: true, jobs: []jobSpec{
			{operation: "imagine", params: `{"prompt":"snow","image_urls":["https://media.example.com/a.png"],"speed":"turbo","size":"2:1","version":"7"}`},
			{operation: "action", params: fastParams, from: 1, button: "MJ::JOB::reroll::", files: "grid"},
			{operation: "action", params: fastParams, from: 1, button: "MJ::JOB::variation::3::", files: "grid"},
			{operation: "action", params: fastParams, from: 1, button: "MJ::JOB::upsample::2::", files: "main"},
			{operation: "action", params: fastParams, from: 1, button: "MJ::JOB::upsample_v6_2x_subtle::", files: "main"},
			{operation: "action", params: fastParams, from: 2, button: "MJ::JOB::low_variation::", files: "grid"},
			{operation: "action", params: fastParams, from: 3, button: "MJ::JOB::high_variation::", files: "grid"},
			{operation: "action", params: fastParams, from: 4, button: "MJ::Outpaint::50::", files: "grid"},
			{operation: "action", params: fastParams, from: 5, button: "MJ::JOB::pan_up::", files: "grid"},
			{operation: "action", params: fastParams, from: 6, button: "MJ::Inpaint::", waits: true},
			{operation: "modal", params: `{"prompt":"a hat","mask_url":"https://media.example.com/a.png","speed":"fast"}`, from: 1, files: "grid"},
			{
				operation: "blend", files: "grid",
				params: `{"image_urls":["https://media.example.com/a.png","https://media.example.com/a.png"],"dimensions":"SQUARE","speed":"fast"}`,
			},
			{operation: "describe", params: `{"image_urls":["https://media.example.com/a.png"],"speed":"fast"}`},
			{operation: "action", params: fastParams, from: 1, button: "MJ::Job::PicReader::2", files: "grid"},
		}},
		"midjourney of the older dialect": {
			provider: "midjourney", path: "/novicezk", options: map[string]string{"dialect": "novicezk"}, credential: "api_secret",
			internalCode: mediagate.CodeProviderAway, refused: invalid, cancelsRunning: true,
			jobs: []jobSpec{
				{operation: "imagine", params: `{"prompt":"snow","speed":"turbo","version":"7"}`},
				{operation: "action", params: fastParams, from: 1, button: "MJ::JOB::upsample::2::"},
				{operation: "action", params: fastParams, from: 2, button: "MJ::JOB::variation::4::"},
				{operation: "action", params: fastParams, from: 1, button: "MJ::JOB::reroll::"},
			},
		},
		"openai": {provider: "openai", credential: "api_key", refused: invalid, jobs: []jobSpec{
			{operation: "speech", upstream: "gpt-4o-mini-tts", params: `{"input":"snow","voice":"coral","response_format":"mp3","speed":1}`},
			{operation: "speech", upstream: "gpt-4o-mini-tts", params: `{"input":"snow","voice":"coral","response_format":"opus"}`},
			{operation: "speech", upstream: "gpt-4o-mini-tts", params: `{"input":"snow","voice":"coral","response_format":"aac"}`},
			{operation: "speech", upstream: "gpt-4o-mini-tts", params: `{"input":"snow","voice":"coral","response_format":"flac"}`},
			{operation: "speech", upstream: "gpt-4o-mini-tts", params: `{"input":"snow","voice":"coral","response_format":"wav"}`},
			{operation: "speech", upstream: "gpt-4o-mini-tts", params: `{"input":"snow","voice":"coral","response_format":"pcm"}`},
		}},
		"acedata, suno": {provider: "acedata", credential: "api_key", running: true, refused: invalid, jobs: []jobSpec{
			{
				operation: "song", upstream: "chirp-v5",
				params: `{"custom":true,"instrumental":false,"prompt":"snow","tags":"pop","vocal_gender":"f","style_weight":0,"version":"v4"}`,
				files:  "main, cover, film, main, cover",
			},
			{operation: "remaster", params: `{"version":"v5.5"}`, from: 1},
			{operation: "replace", params: `{"start_s":1.006,"end_s":12,"infill_lyrics":"plums","tags":"folk","negative_tags":"metal","title":"b"}`, from: 1},
			{operation: "replace", params: `{"start_s":0,"end_s":12}`, from: 1},
			{operation: "stems", params: `{}`, from: 1, files: "stem vocals, stem backing-vocals, stem drums, stem bass"},
			{operation: "remaster", params: `{"version":"v5"}`, usesOwnSong: true},
			{operation: "voice", params: `{"audio_url":"{song}"}`},
			{operation: "song", params: `{"custom":true,"instrumental":false,"prompt":"snow","tags":"pop","version":"v5"}`, from: 1},
		}},
		"acedata, producer": {provider: "acedata", credential: "api_key", running: true, refused: invalid, jobs: []jobSpec{
			{operation: "flow_song", upstream: "FUZZ-2.0 Pro", params: `{"lyrics":"snow","bpm":90,"seed":1}`},
			{operation: "flow_replace", upstream: "FUZZ-2.0 Pro", params: `{"start_s":0,"end_s":12,"instruction":"a solo","seed":4294967295}`, from: 1},
			{operation: "flow_stems", upstream: "FUZZ-2.0 Pro", params: `{}`, from: 1, files: "main"},
			{operation: "flow_stems", upstream: "FUZZ-2.0 Pro", params: `{}`, usesOwnSong: true},
		}},
		"musicapi": {provider: "musicapi", credential: "api_key", jobs: []jobSpec{
			{operation: "sample", upstream: "sonic", params: `{"custom":true,"prompt":"snow","title":"b","tags":"pop","version":"v5","start_s":2}`, usesOwnSong: true},
			{operation: "sample", upstream: "sonic", params: `{"custom":true,"auto_lyrics":true,"tags":"pop","version":"v4.5+","end_s":17}`, from: 1},
			{
				operation: "sample", upstream: "sonic", from: 1,
				params: `{"custom":false,"gpt_description":"snow","vocal_gender":"m","instrumental":true,"version":"v4","start_s":1.25,"end_s":16}`,
			},
		}},
		"sunoapi": {provider: "sunoapi", credential: "api_key", jobs: []jobSpec{
			{operation: "song", upstream: "V5", params: `{"custom":true,"instrumental":false,"prompt":"snow","tags":"pop","style_weight":0.333,"version":"v5"}`},
			{operation: "replace", upstream: "V5", params: `{"start_s":1,"end_s":9.004}`, from: 1},
			{operation: "stems", upstream: "V5", params: `{}`, from: 1, files: "stem vocals, stem backing-vocals, stem drums, stem bass"},
		}},
	}
}

// smallPicture keeps a request within one write. If the vendor refuses a call before it has read
// the whole request, the caller may see a closed connection instead of the refusal.
var smallPicture = providertest.Picture(64, 64)

// customer is a gateway's channel to a vendor of the sandbox.
type customer struct {
	providers.Provider
	box      *sandboxtest.Sandbox
	song     string // the link to a song of our own
	callback string // the address for callbacks; empty for none
	sent     int
}

// start opens a sandbox and a customer of it. The sandbox's clock begins at the current time,
// because one of the adapters signs its tokens with that time.
func (s script) start(t *testing.T) *customer {
	t.Helper()
	box := sandboxtest.Open(t)
	box.Clock.Advance(time.Since(box.Clock.Now()))
	return s.customer(t, box, "")
}

// customer returns a customer whose credential ends with suffix; see the kernel's Accounts.
func (s script) customer(t *testing.T, box *sandboxtest.Sandbox, suffix string) *customer {
	t.Helper()
	at := slices.IndexFunc(sandbox.DefaultAccounts(), func(a sandbox.Account) bool { return a.Provider == s.provider })
	channel := sandbox.Channels(box.URL)[at]
	credentials := channel.Credentials
	if s.credential != "" {
		credentials = map[string]string{s.credential: sandbox.DefaultAccounts()[at].Credentials[s.credential] + suffix}
	}
	p, err := all.Builtin().New(mediagate.Channel{
		Name: "a", Provider: s.provider, BaseURL: box.URL + channel.Path + s.path, Options: s.options, Credentials: mediagate.Secrets(credentials),
	}, providers.Options{Now: box.Clock.Now})
	if err != nil {
		t.Fatal(err)
	}
	if c, ok := p.(providers.Closer); ok {
		t.Cleanup(c.Close)
	}
	song := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.Copy(w, sample.MP3(20)) }))
	t.Cleanup(song.Close)
	return &customer{Provider: p, box: box, song: song.URL + "/song.mp3"}
}

// send submits the job with its source. The directive, if there is one, goes into the prompt.
func (c *customer) send(t *testing.T, a jobSpec, directive string, source *mediagate.Source) (mediagate.Submission, error) {
	t.Helper()
	if directive != "" {
		a.params = strings.Replace(a.params, "snow", "[[sandbox: "+directive+"]]", 1)
	}
	c.sent++
	id := fmt.Sprint("task_", c.sent)
	job := mediagate.Job{
		TaskID: id, ExternalID: id, Upstream: a.upstream, Operation: a.operation, Source: source, CallbackURL: c.callback,
		Params: []byte(strings.ReplaceAll(a.params, "{song}", c.song)),
		Inputs: providertest.Inputs{"https://media.example.com/a.png": smallPicture}, Sink: providertest.NewSink(),
	}
	speaker, speaks := c.Provider.(providers.Speaker)
	if !speaks {
		return c.Submit(t.Context(), job)
	}
	sound, err := speaker.Speak(t.Context(), job)
	if err != nil {
		return mediagate.Submission{}, err
	}
	defer sound.Close()
	file, err := job.Sink.Store(t.Context(), 0, sound)
	return mediagate.Submission{Outcome: &mediagate.Outcome{Succeeded: true, Media: []mediagate.Media{file}}}, err
}

// source returns the source of a job: an earlier result, or a song of our own.
func (c *customer) source(t *testing.T, a jobSpec, before []finished) *mediagate.Source {
	t.Helper()
	if a.usesOwnSong {
		return &mediagate.Source{VendorID: "1", URL: c.song}
	}
	if a.from == 0 {
		return nil
	}
	from := before[len(before)-a.from]
	source := &mediagate.Source{Ref: from.ref, Own: true}
	if from.outcome == nil {
		return source
	}
	made := from.outcome.Made
	switch {
	case a.button != "":
		at := slices.IndexFunc(made.Buttons, func(b mediagate.Button) bool { return strings.HasPrefix(b.CustomID, a.button) })
		if at < 0 {
			t.Fatalf("no button %s: %+v", a.button, made.Buttons)
		}
		source.Button = made.Buttons[at].CustomID
	case len(made.Voices) > 0:
		source.VendorID = made.Voices[0]
	default:
		source.Clip = &made.Clips[len(made.Clips)-1]
		source.VendorID = source.Clip.ID
	}
	return source
}

// finished is a job that has succeeded, or that waits.
type finished struct {
	ref     mediagate.JobRef
	outcome *mediagate.Outcome // nil if the job waits
}

// await polls a job until it ends or waits, and returns the states that the polls reported.
func (c *customer) await(t *testing.T, ref mediagate.JobRef) (mediagate.Report, []mediagate.JobState) {
	t.Helper()
	var states []mediagate.JobState
	for range 30 {
		report, err := c.Poll(t.Context(), ref)
		if err != nil {
			t.Fatal(err)
		}
		states = append(states, report.State)
		if report.Outcome != nil || report.State == mediagate.JobWaiting {
			return report, slices.Compact(states)
		}
		c.box.Clock.Advance(500 * time.Millisecond)
	}
	t.Fatalf("the job has not ended: %v", states)
	return mediagate.Report{}, nil
}

// code returns the failure code of a submission, or "" if it has not failed.
func code(sub mediagate.Submission, err error) mediagate.FailureCode {
	var e *mediagate.Error
	switch {
	case errors.As(err, &e):
		return mediagate.FailureCode(e.Code)
	case sub.Outcome != nil && sub.Outcome.Failure != nil:
		return sub.Outcome.Failure.Code
	}
	return ""
}

// operation returns the description of the script's first operation.
func (s script) operation() providers.Operation {
	adapter, _ := all.Builtin().Adapter(s.provider)
	return adapter.Description.Operations[s.jobs[0].operation]
}

// TestScriptsAreWhole checks that the scripts try each operation of each adapter.
func TestScriptsAreWhole(t *testing.T) {
	t.Parallel()
	tried := map[string]bool{}
	for _, s := range scripts() {
		for _, a := range s.jobs {
			tried[s.provider+" "+a.operation] = true
		}
	}
	for _, provider := range all.Builtin().Names() {
		adapter, _ := all.Builtin().Adapter(provider)
		for operation := range adapter.Description.Operations {
			if !tried[provider+" "+operation] {
				t.Errorf("no script tries %s of %s", operation, provider)
			}
		}
	}
}

// TestLives follows jobs from submission to success, and downloads each of their files.
func TestLives(t *testing.T) {
	t.Parallel()
	for name, s := range scripts() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := s.start(t)
			var ended []finished
			for i, a := range s.jobs {
				directive := ""
				if i == 0 && !s.operation().Sync {
					directive = "duration=10s"
				}
				sub, err := c.send(t, a, directive, c.source(t, a, ended))
				if err != nil {
					t.Fatalf("%s: %v", a.operation, err)
				}
				end := finished{sub.Ref, sub.Outcome}
				if sub.Outcome == nil {
					report, states := c.await(t, sub.Ref)
					end.outcome = report.Outcome
					want := []mediagate.JobState{mediagate.JobQueued, mediagate.JobRunning, mediagate.JobSucceeded}
					if s.running {
						want = want[1:]
					}
					if i == 0 && !slices.Equal(states, want) || report.Incomplete {
						t.Errorf("%s: states %v, want %v; %+v", a.operation, states, want, report)
					}
				}
				ended = append(ended, end)
				if a.waits && end.outcome == nil {
					continue
				}
				if a.waits || end.outcome == nil || !end.outcome.Succeeded {
					t.Fatalf("%s: %+v", a.operation, end.outcome)
				}
				c.box.Clock.Advance(time.Second) // a synchronous file exists when its job is over
				var names []string
				for _, m := range end.outcome.Media {
					c.download(t, sub.Ref, m)
					names = append(names, strings.TrimSpace(fmt.Sprint(cmp.Or(m.Role, "main"), " ", m.Name)))
				}
				if got := strings.Join(names, ", "); a.files != "" && got != a.files {
					t.Errorf("%s: files %s, want %s", a.operation, got, a.files)
				}
			}
		})
	}
}

// download checks that a file can be downloaded.
func (c *customer) download(t *testing.T, ref mediagate.JobRef, m mediagate.Media) {
	t.Helper()
	var size int
	switch {
	case m.Stored != nil:
		size = int(m.Stored.Size)
	case m.Ref != "":
		file, _, err := c.Provider.(providers.Opener).Open(t.Context(), ref, m)
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		n, err := io.Copy(io.Discard, file)
		if err != nil {
			t.Error(err)
		}
		size = int(n)
	default:
		got := c.box.Call(t, "GET", m.URL, nil, nil)
		size = len(got.Raw)
		_, err := mediainfo.Inspect(bytes.NewReader(got.Raw))
		if got.Status != http.StatusOK || err != nil && got.Header.Get("Content-Type") != "application/zip" {
			t.Errorf("%s: %d, %v", m.URL, got.Status, err)
		}
	}
	if size == 0 {
		t.Errorf("an empty file: %+v", m)
	}
}

// TestDirectives checks that a directive in the prompt fails a job in the vendor's own way.
func TestDirectives(t *testing.T) {
	t.Parallel()
	for name, s := range scripts() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			unknown := mediagate.CodeSubmissionUnknown
			for directive, want := range map[string]mediagate.FailureCode{
				"fail=reject":                mediagate.CodeInvalidParameters,
				"fail=moderation, at=submit": mediagate.CodeContentPolicy,
				"fail=internal, at=submit":   cmp.Or(s.internalCode, unknown),
			} {
				c := s.start(t)
				sub, err := c.send(t, s.jobs[0], directive, c.source(t, s.jobs[0], nil))
				if got := code(sub, err); got != want || len(c.box.Jobs(t, "")) != 0 {
					t.Errorf("%s: %q (%v), want %q, and no job", directive, got, err, want)
				}
			}
			later := map[string]mediagate.FailureCode{
				"fail=moderation":      mediagate.CodeContentPolicy,
				"fail=reject, at=poll": cmp.Or(s.refused, mediagate.CodeGenerationFailed),
			}
			if s.operation().Sync {
				later["fail=internal"] = unknown
			}
			for directive, want := range later {
				c := s.start(t)
				sub, err := c.send(t, s.jobs[0], directive, c.source(t, s.jobs[0], nil))
				got := code(sub, err)
				if got == "" {
					report, _ := c.await(t, sub.Ref)
					got = report.Outcome.Failure.Code
				}
				if got != want || len(c.box.Jobs(t, "")) != 1 {
					t.Errorf("%s: %q (%v), want %q of one job", directive, got, err, want)
				}
			}
			if s.operation().Sync {
				return
			}
			c := s.start(t)
			sub, err := c.send(t, s.jobs[0], "fail=internal, times=1", c.source(t, s.jobs[0], nil))
			if err != nil {
				t.Fatal(err)
			}
			if _, err := c.Poll(t.Context(), sub.Ref); !mediagate.Is(err, mediagate.KindTransient) {
				t.Errorf("a spoiled poll: %v", err)
			}
			if report, _ := c.await(t, sub.Ref); !report.Outcome.Succeeded {
				t.Errorf("after a spoiled poll: %+v", report.Outcome)
			}
		})
	}
}

// TestCustomers checks that a customer sees only its own jobs, also with a new key, and that its
// limit of parallel jobs holds.
func TestCustomers(t *testing.T) {
	t.Parallel()
	for name, s := range scripts() {
		if s.credential == "" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := s.start(t)
			nobody := s.customer(t, c.box, "x")
			if sub, err := nobody.send(t, s.jobs[0], "", nobody.source(t, s.jobs[0], nil)); !mediagate.Is(err, mediagate.KindCredentials) {
				t.Errorf("an unknown key: %+v, %v", sub, err)
			}
			busy := s.customer(t, c.box, "@one*1")
			sub, err := busy.send(t, s.jobs[0], "", busy.source(t, s.jobs[0], nil))
			if err != nil {
				t.Fatal(err)
			}
			_, err = busy.send(t, s.jobs[0], "", busy.source(t, s.jobs[0], nil))
			if !mediagate.Is(err, mediagate.KindThrottled) && !mediagate.Is(err, mediagate.KindCapacity) && !s.operation().Streams {
				t.Errorf("a second job at once: %v", err)
			}
			if s.operation().Sync {
				return
			}
			if _, err := s.customer(t, c.box, "@one~2").Poll(t.Context(), sub.Ref); err != nil {
				t.Errorf("with a new key: %v", err)
			}
			if _, err := c.Poll(t.Context(), sub.Ref); !mediagate.Is(err, mediagate.KindNotFound) {
				t.Errorf("another customer's job: %v", err)
			}
		})
	}
}

// TestFinds checks vendors that find jobs by our id: they make one job of an id, and find it.
func TestFinds(t *testing.T) {
	t.Parallel()
	for name, s := range scripts() {
		if !s.operation().Find {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := s.start(t)
			finder, _ := c.Provider.(providers.Finder)
			sub, err := c.send(t, s.jobs[0], "", nil)
			if err != nil {
				t.Fatal(err)
			}
			c.sent--
			if _, err := c.send(t, s.jobs[0], "", nil); !mediagate.Is(err, mediagate.KindAmbiguous) || len(c.box.Jobs(t, "")) != 1 {
				t.Errorf("sent again: %v", err)
			}
			asked := sub.Ref
			asked.JobID = ""
			if report, err := finder.Find(t.Context(), asked); err != nil || report.Ref.JobID != sub.Ref.JobID {
				t.Errorf("found: %+v, %v", report, err)
			}
			asked.ExternalID = "task_9"
			if _, err := finder.Find(t.Context(), asked); !mediagate.Is(err, mediagate.KindNotFound) {
				t.Errorf("another id: %v", err)
			}
		})
	}
}

// TestStops checks that a job can be stopped before it runs.
func TestStops(t *testing.T) {
	t.Parallel()
	for name, s := range scripts() {
		if !s.operation().Cancel {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := s.start(t)
			stopper, ok := c.Provider.(providers.Canceller)
			if !ok {
				return // the dialect has no such call
			}
			send := func() mediagate.JobRef {
				sub, err := c.send(t, s.jobs[0], "duration=100s", nil)
				if err != nil {
					t.Fatal(err)
				}
				return sub.Ref
			}
			stopped := send()
			if err := stopper.Cancel(t.Context(), stopped); err != nil {
				t.Errorf("Cancel: %v", err)
			}
			if report, _ := c.await(t, stopped); report.State != mediagate.JobFailed {
				t.Errorf("a stopped job: %+v", report)
			}
			running := send()
			c.box.Clock.Advance(50 * time.Second)
			for name, ref := range map[string]mediagate.JobRef{"stopped": stopped, "running": running} {
				if err := stopper.Cancel(t.Context(), ref); (err == nil) != s.cancelsRunning {
					t.Errorf("Cancel of a job that is %s: %v", name, err)
				}
			}
			if report, err := c.Poll(t.Context(), running); err != nil || (report.State == mediagate.JobFailed) != s.cancelsRunning {
				t.Errorf("the running job: %+v, %v", report, err)
			}
		})
	}
}

// TestTogether checks that one call asks for several jobs.
func TestTogether(t *testing.T) {
	t.Parallel()
	for name, s := range scripts() {
		if s.operation().Batch < 2 {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := s.start(t)
			batcher, ok := c.Provider.(providers.Batcher)
			if !ok {
				return // the dialect has no such call
			}
			var refs []mediagate.JobRef
			for range 2 {
				sub, err := c.send(t, s.jobs[0], "", nil)
				if err != nil {
					t.Fatal(err)
				}
				refs = append(refs, sub.Ref)
			}
			c.box.Clock.Advance(time.Minute)
			unknown := refs[0]
			unknown.JobID = "1"
			answers, err := batcher.PollAll(t.Context(), append(refs, unknown))
			if err != nil || len(answers) != 3 || !mediagate.Is(answers[2].Err, mediagate.KindNotFound) {
				t.Fatalf("%+v, %v", answers, err)
			}
			for i, a := range answers[:2] {
				if a.Err != nil || a.Report.State != mediagate.JobSucceeded || a.Report.Ref.JobID != refs[i].JobID {
					t.Errorf("job %d: %+v, %v", i, a.Report, a.Err)
				}
			}
		})
	}
}

// TestModelsThatAreGone checks that the adapters recognize the answers for an unknown model.
func TestModelsThatAreGone(t *testing.T) {
	t.Parallel()
	gone := map[string]string{
		"kling": "kling-v9", "dashscope": "wan9.9", "gemini": "gemini-9-image", "veo": "veo-9", "vertex": "veo-9", "openai": "tts-9",
	}
	for name, s := range scripts() {
		if gone[s.provider] == "" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := s.jobs[0]
			a.upstream = gone[s.provider]
			if _, err := s.start(t).send(t, a, "", nil); !mediagate.Is(err, mediagate.KindNoModel) {
				t.Errorf("%v", err)
			}
		})
	}
}

// TestCallbacks checks that a vendor calls back while it makes a job. MiniMax calls only an address
// that answers its challenge.
func TestCallbacks(t *testing.T) {
	t.Parallel()
	for name, s := range scripts() {
		if !s.operation().Callback {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			challenges := s.provider == "minimax"
			for _, answers := range []bool{true, false} {
				c := s.start(t)
				calls := make(chan bool, 100) // true for a challenge
				server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					body, _ := io.ReadAll(r.Body)
					if answers {
						_, _ = w.Write(body)
					}
					calls <- bytes.Contains(body, []byte(`"challenge"`))
				}))
				t.Cleanup(server.Close)
				next := func() bool {
					for patience := time.After(10 * time.Second); ; {
						select {
						case challenge := <-calls:
							return challenge
						case <-patience:
							t.Fatal("the vendor does not call back")
						case <-time.After(time.Millisecond):
							c.box.Clock.Advance(100 * time.Millisecond)
						}
					}
				}
				c.callback = server.URL + "/callbacks/1"
				if _, err := c.send(t, s.jobs[0], "", c.source(t, s.jobs[0], nil)); err != nil {
					t.Fatal(err)
				}
				if next() != challenges {
					t.Errorf("the first call is a challenge: %v", !challenges)
				}
				if challenges && answers && next() {
					t.Error("challenged again")
				}
				if c.box.Stop(); challenges && !answers && len(calls) != 0 {
					t.Error("the vendor called an address that did not answer its challenge")
				}
			}
		})
	}
}
