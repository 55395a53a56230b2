package kling_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/providers"
	"github.com/mediagate/mediagate/providers/all"
	"github.com/mediagate/mediagate/providers/kling"
	"github.com/mediagate/mediagate/providers/providertest"
)

// TestFindAsksEachEndpoint checks a lookup after a crash, or after an answer was lost just before
// the channel changed its generation (D4). If the endpoint is unknown, Find asks all endpoints of
// the operation. A channel with an API key also asks the other generation. The job is absent only
// if all of them say so.
func TestFindAsksEachEndpoint(t *testing.T) {
	t.Parallel()
	const (
		text, image = "/v1/videos/text2video/" + externalID, "/v1/videos/image2video/" + externalID
		omni, newer = "/v1/videos/omni-video/" + externalID, "/tasks?external_task_ids=" + externalID
	)
	const notFound, transient = mediagate.KindNotFound, mediagate.KindTransient
	type (
		replies []providertest.Reply
		paths   []string
	)
	absent, running := refusal(400, "1201", "Task not found"), task(jobID, externalID, `,"task_status":"processing"`)
	none, one := newerList(), newerList(newerJob(jobID, externalID, `,"status":"processing"`))
	away := providertest.Reply{Status: 503}
	of := func(operation, state string) mediagate.JobRef {
		return mediagate.JobRef{ExternalID: externalID, Operation: operation, State: state}
	}
	for name, tc := range map[string]struct {
		suite   providertest.Suite
		ref     mediagate.JobRef
		answers replies
		kind    mediagate.Kind // of the error; 0: the job is found
		state   string
		asked   paths
	}{
		"at the first": {
			suite(), of("video", ""), replies{running}, 0, "text2video", paths{text},
		},
		"at the second": {
			suite(), of("video", ""), replies{absent, running}, 0, "image2video", paths{text, image},
		},
		"nowhere": {
			suite(), of("video", ""), replies{absent, absent}, notFound, "", paths{text, image},
		},
		"one does not answer": {
			suite(), of("video", ""), replies{absent, away}, transient, "", paths{text, image},
		},
		"the first does not answer": {
			suite(), of("video", ""), replies{away, running}, transient, "", paths{text},
		},
		"endpoint known": {
			suite(), of("video", "image2video"), replies{absent}, notFound, "", paths{image},
		},
		"omni":              {suite(), of("omni", ""), replies{running}, 0, "omni-video", paths{omni}},
		"unknown operation": {suite(), of("somersault", ""), nil, transient, "", nil},
		"no id":             {suite(), mediagate.JobRef{Operation: "video"}, nil, notFound, "", nil},
		"sent before v2": {
			newerSuite(), of("video", "tasks watermark"),
			replies{none, absent, running},
			0, "image2video watermark",
			paths{newer, text, image},
		},
		"of neither, asked by v2": {
			newerSuite(), of("video", "tasks"), replies{none, absent, absent}, notFound, "", paths{newer, text, image},
		},
		"the older one does not answer": {
			newerSuite(), of("video", "tasks"), replies{none, away}, transient, "", paths{newer, text},
		},
		"sent as v2": {
			keyed(), of("video", "text2video watermark"), replies{absent, one}, 0, "tasks watermark", paths{text, newer},
		},
		"of neither, asked by legacy": {
			keyed(), of("video", "text2video"), replies{absent, none}, notFound, "", paths{text, newer},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			vendor := providertest.NewVendor(t, tc.answers...)
			report, err := tc.suite.Open(t, vendor.URL, providers.Options{}).(providers.Finder).Find(t.Context(), tc.ref)
			switch {
			case tc.kind != 0:
				if !mediagate.Is(err, tc.kind) {
					t.Errorf("Find: %v, want kind %v", err, tc.kind)
				}
			case err != nil || report.Ref.State != tc.state || report.Ref.JobID != jobID:
				t.Errorf("Find: %+v, %v", report.Ref, err)
			}
			var asked paths
			for _, r := range vendor.Requests() {
				asked = append(asked, r.Path)
			}
			if d := cmp.Diff(tc.asked, asked); d != "" {
				t.Errorf("asked (-want +got):\n%s", d)
			}
		})
	}
}

// TestPollWithoutState checks a reference from a row without a State, as older versions wrote it.
// Poll asks each endpoint of its operation.
func TestPollWithoutState(t *testing.T) {
	t.Parallel()
	vendor := providertest.NewVendor(t, refusal(400, "1201", "Task not found"), task(jobID, externalID, `,"task_status":"processing"`))
	p := suite().Open(t, vendor.URL, providers.Options{})
	report, err := p.Poll(t.Context(), mediagate.JobRef{JobID: jobID, Operation: "video"})
	if err != nil || report.Ref.State != "image2video" || !report.Named {
		t.Errorf("Poll = %+v, %v", report, err)
	}
	if _, err := p.Poll(t.Context(), mediagate.JobRef{JobID: jobID, Operation: "somersault"}); !mediagate.Is(err, mediagate.KindTransient) {
		t.Errorf("an unknown operation: %v", err)
	}
	if n := len(vendor.Requests()); n != 2 {
		t.Errorf("%d requests, want 2", n)
	}
}

// TestStateOfAMarkedFile checks that Submit, Ref and Poll all return the State of a job whose
// client wants a watermark.
func TestStateOfAMarkedFile(t *testing.T) {
	t.Parallel()
	vendor := providertest.NewVendor(t, suite().Accepted, task(jobID, externalID, `,"task_status":"processing"`))
	p := suite().Open(t, vendor.URL, providers.Options{})
	job := suite().Job
	job.Params = []byte(`{"prompt":"a","watermark":true,"image_urls":["https://a.example.com/1.png"]}`)
	const want = "image2video watermark"
	sub, err := p.Submit(t.Context(), job)
	if err != nil || sub.Ref.State != want {
		t.Errorf("Submit: %+v, %v", sub.Ref, err)
	}
	if ref, err := p.(providers.Finder).Ref(job); err != nil || ref.State != want {
		t.Errorf("Ref: %+v, %v", ref, err)
	}
	if report, err := p.Poll(t.Context(), sub.Ref); err != nil || report.Ref.State != want {
		t.Errorf("Poll: %+v, %v", report.Ref, err)
	}
	if got := vendor.Requests()[1].Path; got != "/v1/videos/image2video/"+jobID {
		t.Errorf("asked for %s", got)
	}
}

func TestPollNeedsJob(t *testing.T) {
	t.Parallel()
	vendor := providertest.NewVendor(t)
	p := suite().Open(t, vendor.URL, providers.Options{})
	if _, err := p.Poll(t.Context(), mediagate.JobRef{State: "text2video"}); !mediagate.Is(err, mediagate.KindNotFound) {
		t.Errorf("without an id: %v", err)
	}
	if _, err := p.Poll(t.Context(), mediagate.JobRef{JobID: "a/../b?c", State: "text2video"}); err == nil {
		t.Error("Poll accepted an answer that the script does not have")
	}
	if got := vendor.Requests()[0].Path; got != "/v1/videos/text2video/a%2F..%2Fb%3Fc" {
		t.Errorf("asked for %s: an id must stay one segment", got)
	}
}

// TestReportNamesTheJob covers D11: only an answer with the requested id proves that the account
// has the job.
func TestReportNamesTheJob(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		suite  providertest.Suite
		answer providertest.Reply
		want   bool
	}{
		"with our id":     {suite(), task(jobID, externalID, `,"task_status":"processing"`), true},
		"without":         {suite(), task(jobID, "", `,"task_status":"processing"`), false},
		"v2, with our id": {newerSuite(), newerList(newerJob(jobID, externalID, `,"status":"processing"`)), true},
		"v2, without":     {newerSuite(), newerList(newerJob(jobID, "", `,"status":"processing"`)), false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			vendor := providertest.NewVendor(t, tc.answer, tc.answer)
			p := tc.suite.Open(t, vendor.URL, providers.Options{})
			ref := mediagate.JobRef{ExternalID: externalID, Operation: "video", State: tc.suite.Ref.State}
			found, err := p.(providers.Finder).Find(t.Context(), ref)
			if err != nil || found.Named != tc.want {
				t.Errorf("found by our id: named %v, %v, want %v", found.Named, err, tc.want)
			}
			ref.JobID = jobID
			polled, err := p.Poll(t.Context(), ref)
			if err != nil || !polled.Named {
				t.Errorf("polled by the vendor's id: named %v, %v", polled.Named, err)
			}
		})
	}
}

func TestResultFiles(t *testing.T) {
	t.Parallel()
	const plain, marked = "https://cdn.example.com/a.mp4", "https://cdn.example.com/a-marked.mp4"
	for name, tc := range map[string]struct {
		videos string
		want   bool // the client wants the watermark
		media  []mediagate.Media
		total  float64
	}{
		"plain":                    {`[{"url":"` + plain + `","watermark_url":"` + marked + `","duration":"5"}]`, false, []mediagate.Media{{URL: plain, MimeType: "video/mp4", Duration: 5}}, 5},
		"marked":                   {`[{"url":"` + plain + `","watermark_url":"` + marked + `","duration":"5"}]`, true, []mediagate.Media{{URL: marked, MimeType: "video/mp4", Duration: 5}}, 5},
		"no marked file":           {`[{"url":"` + plain + `","duration":"5"}]`, true, []mediagate.Media{{URL: plain, MimeType: "video/mp4", Duration: 5}}, 5},
		"duration as a number":     {`[{"url":"` + plain + `","duration":5.041}]`, false, []mediagate.Media{{URL: plain, MimeType: "video/mp4", Duration: 5.041}}, 5.041},
		"duration unknown":         {`[{"url":"` + plain + `"}]`, false, []mediagate.Media{{URL: plain, MimeType: "video/mp4"}}, 0},
		"duration negative":        {`[{"url":"` + plain + `","duration":"-5"}]`, false, []mediagate.Media{{URL: plain, MimeType: "video/mp4"}}, 0},
		"one duration of two":      {`[{"url":"` + plain + `","duration":"5"},{"url":"` + marked + `"}]`, false, []mediagate.Media{{URL: plain, MimeType: "video/mp4", Duration: 5}, {URL: marked, Index: 1, MimeType: "video/mp4"}}, 0},
		"two durations":            {`[{"url":"` + plain + `","duration":"5"},{"url":"` + marked + `","duration":"3"}]`, false, []mediagate.Media{{URL: plain, MimeType: "video/mp4", Duration: 5}, {URL: marked, Index: 1, MimeType: "video/mp4", Duration: 3}}, 8},
		"one without link skipped": {`[{"duration":"5"},{"url":"` + plain + `","duration":"3"}]`, false, []mediagate.Media{{URL: plain, Index: 1, MimeType: "video/mp4", Duration: 3}}, 3},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			vendor := providertest.NewVendor(t, task(jobID, externalID, `,"task_status":"succeed","task_result":{"videos":`+tc.videos+`}`))
			state := "text2video"
			if tc.want {
				state += " watermark"
			}
			ref := mediagate.JobRef{JobID: jobID, State: state}
			report, err := suite().Open(t, vendor.URL, providers.Options{}).Poll(t.Context(), ref)
			if err != nil {
				t.Fatal(err)
			}
			want := &mediagate.Outcome{Succeeded: true, Media: tc.media, Seconds: tc.total}
			if d := cmp.Diff(want, report.Outcome); d != "" {
				t.Errorf("outcome (-want +got):\n%s", d)
			}
		})
	}
}

func TestFailureCodes(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]mediagate.Failure{
		"Failure to pass the risk control system": {Code: mediagate.CodeContentPolicy, Message: "Failure to pass the risk control system"},
		"The prompt contains SENSITIVE words":     {Code: mediagate.CodeContentPolicy, Message: "The prompt contains SENSITIVE words"},
		"内容违规":                                    {Code: mediagate.CodeContentPolicy, Message: "the content was refused"},
		"生成失败，请重试":                                {Code: mediagate.CodeGenerationFailed, Message: "the generation failed at the vendor", Retryable: true},
		"Violates our usage terms":                {Code: mediagate.CodeContentPolicy, Message: "Violates our usage terms"},
		"rendering failed":                        {Code: mediagate.CodeGenerationFailed, Message: "rendering failed", Retryable: true},
		"":                                        {Code: mediagate.CodeGenerationFailed, Message: "the generation failed at the vendor", Retryable: true},
	} {
		t.Run(text, func(t *testing.T) {
			t.Parallel()
			vendor := providertest.NewVendor(t, suite().Failed(text))
			report, err := suite().Open(t, vendor.URL, providers.Options{}).Poll(t.Context(), suite().Ref)
			if err != nil {
				t.Fatal(err)
			}
			out := &mediagate.Outcome{Failure: &want}
			if text != "" && want.Message != text {
				out.VendorText = text
			}
			if d := cmp.Diff(out, report.Outcome); d != "" {
				t.Errorf("outcome (-want +got):\n%s", d)
			}
		})
	}
}

// TestFieldsThatAnOperationLacks checks that a field which the operation lacks is an error with its
// name. The adapter sends nothing and ignores no field.
func TestFieldsThatAnOperationLacks(t *testing.T) {
	t.Parallel()
	const images = `"image_urls":["https://a.example.com/1.png","https://a.example.com/2.png"`
	subject := `{"name":"cat","element_input_urls":["https://a.example.com/1.png"]}`
	film := `{"prompt":"a","video_list":[{"video_url":"https://a.example.com/v.mp4"}]`
	for name, tc := range map[string]struct{ operation, params, field string }{
		"subject in text2video":     {"video", `{"element_list":[` + subject + `]}`, "element_list[0].name"},
		"subject in image2video":    {"video", `{` + images + `],"element_list":[{"element_id":1},` + subject + `]}`, "element_list[1].name"},
		"third image":               {"video", `{` + images + `,"https://a.example.com/3.png"]}`, "image_urls"},
		"video in text2video":       {"video", film + `}`, "video_list"},
		"video in image2video":      {"video", film + `,` + images + `]}`, "video_list"},
		"elements in text2video":    {"video", `{"element_list":[{"element_id":1}]}`, "element_list"},
		"broken duration":           {"video", `{"duration":5.5}`, "duration"},
		"huge duration":             {"video", `{"duration":1e300}`, "duration"},
		"broken shot":               {"video", `{"multi_shot":true,"shot_type":"customize","multi_prompt":[{"index":1,"duration":0.5}]}`, "multi_prompt[0].duration"},
		"shot without index":        {"video", `{"multi_shot":true,"shot_type":"customize","multi_prompt":[{"duration":3}]}`, "multi_prompt[0].index"},
		"third frame in omni":       {"omni_frames", `{` + images + `,"https://a.example.com/3.png"],"element_list":[` + subject + `]}`, "image_urls"},
		"no subject in omni":        {"omni_frames", `{` + images + `]}`, "element_list"},
		"known subject and frame":   {"omni_frames", `{` + images + `],"element_list":[{"element_id":1}]}`, "image_urls"},
		"known subject in 4k":       {"omni_frames", `{"mode":"4k","element_list":[{"element_id":1}]}`, "mode"},
		"subject in 4k":             {"omni_frames", `{"mode":"4k","element_list":[` + subject + `]}`, "mode"},
		"element of a name only":    {"omni_frames", `{"element_list":[{"element_id":1},{"name":"cat"}]}`, "element_list[1].name"},
		"element id of a float":     {"omni_frames", `{"element_list":[{"element_id":1.5}]}`, "element_list[0].element_id"},
		"video in omni frames":      {"omni_frames", film + `,"element_list":[` + subject + `]}`, "video_list"},
		"negative prompt in omni":   {"omni", `{"negative_prompt":"blur"}`, "negative_prompt"},
		"shots in omni":             {"omni", `{"multi_shot":false}`, "multi_shot"},
		"sound with a video":        {"omni", `{"audio":true,"video_list":[{"video_url":"https://a.example.com/v.mp4"}]}`, "audio"},
		"too many subjects in omni": {"omni", film + `,` + images + `,"https://a.example.com/3.png"],"element_list":[{"element_id":1},` + subject + `]}`, "element_list"},
		"an unknown field":          {"omni", `{"prompt":"a","cfg_scale":1}`, "cfg_scale"},
		"an unknown field of shots": {"video", `{"multi_prompt":[{"camera":"left"}]}`, "camera"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			vendor := providertest.NewVendor(t)
			job := suite().Job
			job.Operation, job.Params = tc.operation, json.RawMessage(tc.params)
			_, err := suite().Open(t, vendor.URL, providers.Options{}).Submit(t.Context(), job)
			if !mediagate.Is(err, mediagate.KindInvalid) || !strings.Contains(err.Error(), "("+tc.field+")") {
				t.Errorf("Submit: %v, want invalid %s", err, tc.field)
			}
			if n := len(vendor.Requests()); n != 0 {
				t.Errorf("%d requests, want none", n)
			}
			if said := kling.Supports(job, nil); said == nil || said.Error() != err.Error() {
				t.Errorf("Supports: %v, Submit: %v", said, err)
			}
		})
	}
}

func TestSubmitNeedsAnExternalID(t *testing.T) {
	t.Parallel()
	vendor := providertest.NewVendor(t)
	job := suite().Job
	job.ExternalID = ""
	_, err := suite().Open(t, vendor.URL, providers.Options{}).Submit(t.Context(), job)
	if !mediagate.Is(err, mediagate.KindInvalid) || len(vendor.Requests()) != 0 {
		t.Errorf("Submit: %v after %d requests", err, len(vendor.Requests()))
	}
}

func TestSettings(t *testing.T) {
	t.Parallel()
	keys := map[string]string{"access_key": "AKabcdef", "secret_key": "SKabcdef"}
	for name, tc := range map[string]struct {
		channel mediagate.Channel
		fields  []string // empty if New succeeds
	}{
		"legacy":         {mediagate.Channel{Credentials: mediagate.Secrets(keys), Options: map[string]string{"generation": "legacy"}}, nil},
		"api key":        {mediagate.Channel{Credentials: mediagate.Secrets(map[string]string{"api_key": "kl-abcdef"})}, nil},
		"v2":             {mediagate.Channel{Credentials: mediagate.Secrets(map[string]string{"api_key": "kl-abcdef"}), Options: map[string]string{"generation": "v2"}}, nil},
		"v2 with keys":   {mediagate.Channel{Credentials: mediagate.Secrets(keys), Options: map[string]string{"generation": "v2"}}, []string{"credentials.api_key"}},
		"v3":             {mediagate.Channel{Credentials: mediagate.Secrets(keys), Options: map[string]string{"generation": "v3"}}, []string{"options.generation"}},
		"nothing at all": {mediagate.Channel{}, []string{"credentials.access_key", "credentials.secret_key"}},
		"both kinds of keys": {
			mediagate.Channel{Credentials: mediagate.Secrets(map[string]string{"api_key": "kl-abcdef", "access_key": "AKabcdef"})},
			[]string{"credentials.api_key"},
		},
		"all problems at once": {
			mediagate.Channel{BaseURL: "nowhere", Credentials: mediagate.Secrets(map[string]string{"pin": "1"}), Options: map[string]string{"generation": "v2", "speed": "9"}},
			[]string{"base_url", "credentials.pin", "credentials.api_key", "options.speed"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tc.channel.Provider, tc.channel.Name = "kling", "kling-a"
			p, err := all.Builtin().New(tc.channel, providers.Options{})
			if err == nil {
				p.(providers.Closer).Close()
			}
			if (err == nil) != (len(tc.fields) == 0) {
				t.Fatalf("New: %v", err)
			}
			if slices.ContainsFunc(tc.fields, func(f string) bool { return !strings.Contains(err.Error(), f) }) {
				t.Errorf("the error does not name all of %v: %v", tc.fields, err)
			}
		})
	}
}

// TestModerationInALongText checks that the words of moderation count in a part of the text that is
// too long to be shown.
func TestModerationInALongText(t *testing.T) {
	t.Parallel()
	vendor := providertest.NewVendor(t, suite().Failed(strings.Repeat("the job was stopped ", 40)+"by the risk control system"))
	report, err := suite().Open(t, vendor.URL, providers.Options{}).Poll(t.Context(), suite().Ref)
	if err != nil {
		t.Fatal(err)
	}
	if f := report.Outcome.Failure; f.Code != mediagate.CodeContentPolicy || f.Retryable {
		t.Errorf("failure %+v, want one about the content", f)
	}
}
