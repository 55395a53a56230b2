package midjourney_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/providers"
	"github.com/mediagate/mediagate/providers/midjourney"
	"github.com/mediagate/mediagate/providers/providertest"
)

// open returns an adapter of a dialect.
func open(t *testing.T, dialect, address string) providers.Provider {
	t.Helper()
	s := suite()
	s.Channel.Options = map[string]string{"dialect": dialect}
	return s.Open(t, address, providers.Options{})
}

func TestDialectOfChannels(t *testing.T) {
	t.Parallel()
	s := suite()
	s.Channel.Options = map[string]string{"dialect": "other"}
	s.Channel.BaseURL = "https://proxy.example.com"
	if _, err := midjourney.New(s.Channel, providers.Options{}); err == nil || !strings.Contains(err.Error(), "options.dialect") {
		t.Errorf("New: %v", err)
	}
	for dialect, stops := range map[string]bool{"trueai": true, "novicezk": false} {
		if _, ok := open(t, dialect, "http://127.0.0.1:1").(providers.Canceller); ok != stops {
			t.Errorf("%s: can stop jobs: %v", dialect, ok)
		}
	}
}

// TestNovicezk checks the requests of the older dialect, which has no buttons, no modals, no bots,
// and no speed except in a prompt.
func TestNovicezk(t *testing.T) {
	t.Parallel()
	const state = `"state":"` + externalID + `"`
	press := func(button string) mediagate.Job { return following("action", `{"speed":"fast"}`, button) }
	for name, tt := range map[string]struct {
		job   mediagate.Job
		sent  string // empty if refused
		param string
	}{
		"imagine":       {jobOf("imagine", strings.Replace(imagined, "fast", "turbo", 1)), "/mj/submit/imagine\n" + `{"prompt":"a red kite --v 7 --turbo",` + state + `}`, ""},
		"niji":          {jobOf("imagine", strings.Replace(imagined, `"7"`, `"niji 6"`, 1)), "/mj/submit/imagine\n" + `{"prompt":"a red kite --niji 6 --fast",` + state + `}`, ""},
		"a number":      {jobOf("imagine", strings.Replace(imagined, `"7"`, `6.1`, 1)), "/mj/submit/imagine\n" + `{"prompt":"a red kite --v 6.1 --fast",` + state + `}`, ""},
		"upscale":       {press(upscale2), "/mj/submit/change\n" + `{"taskId":"` + parentID + `","action":"UPSCALE","index":2,` + state + `}`, ""},
		"variation":     {press("MJ::JOB::variation::4::u"), "/mj/submit/change\n" + `{"taskId":"` + parentID + `","action":"VARIATION","index":4,` + state + `}`, ""},
		"reroll":        {press("MJ::JOB::reroll::0::u::SOLO"), "/mj/submit/change\n" + `{"taskId":"` + parentID + `","action":"REROLL",` + state + `}`, ""},
		"a fifth":       {press("MJ::JOB::upsample::5::u"), "", "custom_id"},
		"none":          {press("MJ::JOB::variation::0::u"), "", "custom_id"},
		"pan":           {press("MJ::JOB::pan_left::1::u::SOLO"), "", "custom_id"},
		"inpaint":       {press("MJ::Inpaint::1::u::SOLO"), "", "custom_id"},
		"high":          {press("MJ::JOB::high_variation::1::u::SOLO"), "", "custom_id"},
		"a window":      {following("modal", told, ""), "", "task_id"},
		"slow upscale":  {following("action", `{"speed":"relax"}`, upscale2), "", "speed"},
		"hasty blend":   {jobOf("blend", strings.Replace(blended, "fast", "turbo", 1)), "", "speed"},
		"slow describe": {jobOf("describe", strings.Replace(described, "fast", "relax", 1)), "", "speed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			vendor := providertest.NewVendor(t, suite().Accepted)
			_, err := open(t, "novicezk", vendor.URL).Submit(t.Context(), tt.job)
			said := midjourney.Supports(tt.job, map[string]string{"dialect": "novicezk"})
			var e *mediagate.Error
			if tt.sent == "" {
				if !errors.As(err, &e) || e.Kind != mediagate.KindInvalid || e.Param != tt.param || said == nil || len(vendor.Requests()) != 0 {
					t.Errorf("%v, %v, %d requests; want an error about %s", err, said, len(vendor.Requests()), tt.param)
				}
				return
			}
			if err != nil || said != nil || len(vendor.Requests()) != 1 {
				t.Fatalf("%v, %v, %d requests", err, said, len(vendor.Requests()))
			}
			if d := cmp.Diff("POST "+tt.sent, vendor.Requests()[0].String()); d != "" {
				t.Error(d)
			}
		})
	}
}

// outcome polls a job and returns its outcome, which must be a success.
func outcome(t *testing.T, dialect, operation, body string) mediagate.Outcome {
	t.Helper()
	vendor := providertest.NewVendor(t, plain(200, body))
	report, err := open(t, dialect, vendor.URL).Poll(t.Context(), mediagate.JobRef{JobID: jobID, Operation: operation})
	if err != nil || report.Outcome == nil || !report.Outcome.Succeeded {
		t.Fatalf("%+v, %v", report, err)
	}
	return *report.Outcome
}

// TestButtonsOfNovicezk checks that, for the dialect without buttons, the adapter returns the
// buttons that trueai would show and that novicezk can press.
func TestButtonsOfNovicezk(t *testing.T) {
	t.Parallel()
	shown := func(action string) []mediagate.Button {
		return outcome(t, "novicezk", "imagine", fmt.Sprintf(
			`{"id":%q,"action":%q,"status":"SUCCESS","imageUrl":"https://cdn.example.com/a.png","properties":{"messageHash":"3dbbd469"}}`, jobID, action)).Made.Buttons
	}
	buttons := shown("IMAGINE")
	if len(buttons) != 9 || buttons[1] != (mediagate.Button{CustomID: "MJ::JOB::upsample::2::3dbbd469", Label: "U2"}) ||
		buttons[7] != (mediagate.Button{CustomID: "MJ::JOB::variation::4::3dbbd469", Label: "V4"}) ||
		buttons[8] != (mediagate.Button{CustomID: "MJ::JOB::reroll::0::3dbbd469::SOLO", Label: "🔄"}) {
		t.Errorf("%+v", buttons)
	}
	for _, b := range buttons {
		if err := midjourney.Supports(following("action", `{"speed":"fast"}`, b.CustomID), map[string]string{"dialect": "novicezk"}); err != nil {
			t.Errorf("%s: %v", b.Label, err)
		}
	}
	if single := shown("UPSCALE"); len(single) != 0 {
		t.Errorf("buttons of one picture: %+v", single)
	}
}

// TestPictures checks that the buttons decide what the picture is, or the action of a job without
// buttons.
func TestPictures(t *testing.T) {
	t.Parallel()
	upsamples := func(n int) string {
		var b []string
		for i := range n {
			b = append(b, fmt.Sprintf(`{"customId":"MJ::JOB::upsample::%d::u","label":"U%d"}`, i+1, i+1))
		}
		return `"buttons":[` + strings.Join(b, ",") + `]`
	}
	list := func(n int) string {
		var b []string
		for i := range n {
			b = append(b, fmt.Sprintf(`{"url":"https://cdn.example.com/%d.png"}`, i))
		}
		return `"imageUrls":[` + strings.Join(b, ",") + `]`
	}
	const image, other = `"imageUrl":"https://cdn.example.com/all.png"`, `"buttons":[{"customId":"MJ::JOB::pan_left::1::u::SOLO"}]`
	all := mediagate.Media{URL: "https://cdn.example.com/all.png"}
	grid := all
	grid.Role = mediagate.RoleGrid
	single := func(n int) []mediagate.Media {
		var out []mediagate.Media
		for i := range n {
			out = append(out, mediagate.Media{URL: fmt.Sprintf("https://cdn.example.com/%d.png", i), Index: i})
		}
		return out
	}
	for name, tt := range map[string]struct {
		action, rest string
		want         []mediagate.Media
	}{
		"a grid":                {"IMAGINE", image + "," + upsamples(4), []mediagate.Media{grid}},
		"a pan that is a grid":  {"PAN", image + "," + upsamples(4), []mediagate.Media{grid}},
		"a zoom that is none":   {"ZOOM", image + "," + other, []mediagate.Media{all}},
		"no grid after all":     {"VARIATION", image + "," + other, []mediagate.Media{all}},
		"three of four":         {"IMAGINE", image + "," + upsamples(3), []mediagate.Media{all}},
		"no buttons, imagined":  {"BLEND", image, []mediagate.Media{grid}},
		"no buttons, upscaled":  {"UPSCALE", image + `,"buttons":[]`, []mediagate.Media{all}},
		"cut by the proxy":      {"IMAGINE", image + "," + list(4) + "," + upsamples(4), append([]mediagate.Media{grid}, single(4)...)},
		"cut, and no grid":      {"IMAGINE", list(4) + "," + upsamples(4), single(4)},
		"a grid in a list":      {"IMAGINE", image + "," + list(1) + "," + upsamples(4), []mediagate.Media{grid}},
		"one in a list":         {"UPSCALE", list(1) + "," + other, single(1)},
		"one, beside the four":  {"UPSCALE", image + "," + list(4) + "," + other, []mediagate.Media{all}},
		"a list of odd entries": {"IMAGINE", image + `,"imageUrls":["a",{"url":1}],` + upsamples(4), []mediagate.Media{grid}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out := outcome(t, "trueai", "action", fmt.Sprintf(`{"id":%q,"action":%q,"status":"SUCCESS",%s}`, jobID, tt.action, tt.rest))
			if d := cmp.Diff(tt.want, out.Media); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestDescriptions(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("é", 5000)
	for name, tt := range map[string]struct {
		text string
		want []string
	}{
		"keycaps":             {"1️⃣ a\n\n2️⃣ b\n\n3️⃣ c\n\n4️⃣ d", []string{"a", "b", "c", "d"}},
		"numbers":             {"1. a\n2) b", []string{"a", "b"}},
		"of several lines":    {"1️⃣ a\nmore\n\n2️⃣ b", []string{"a more", "b"}},
		"a heading":           {"Here:\n1️⃣ a\n2️⃣ b", []string{"a", "b"}},
		"no numbers":          {"a kite in the sky", []string{"a kite in the sky"}},
		"a number in a text":  {"2 kites and 3.5 dogs", []string{"2 kites and 3.5 dogs"}},
		"links":               {"1️⃣ a [kite](https://example.com/(a)", []string{"a kite"}},
		"too long":            {long, []string{long[:8000]}},
		"control characters":  {"1. a\x00b\x1b", []string{"ab"}},
		"more than there are": {strings.Repeat("1. a\n", 20), slices.Repeat([]string{"a"}, 8)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text, err := json.Marshal(tt.text)
			if err != nil {
				t.Fatal(err)
			}
			out := outcome(t, "trueai", "describe", fmt.Sprintf(`{"id":%q,"action":"DESCRIBE","status":"SUCCESS","prompt":%s,"imageUrl":"https://cdn.example.com/own.png"}`, jobID, text))
			if d := cmp.Diff(tt.want, out.Made.Descriptions); d != "" || len(out.Media) != 0 {
				t.Error(d, out.Media)
			}
		})
	}
	t.Run("none", func(t *testing.T) {
		t.Parallel()
		vendor := providertest.NewVendor(t, plain(200, fmt.Sprintf(`{"id":%q,"action":"DESCRIBE","status":"SUCCESS","prompt":"1. \n"}`, jobID)))
		report, err := open(t, "trueai", vendor.URL).Poll(t.Context(), mediagate.JobRef{JobID: jobID, Operation: "describe"})
		if err != nil || !report.Incomplete || report.Outcome == nil || report.Outcome.Succeeded {
			t.Errorf("%+v, %v", report, err)
		}
	})
}

// TestWordsOfJobs checks that the English text precedes the original, and that the prompt hides
// where the vendor stores the images of a request.
func TestWordsOfJobs(t *testing.T) {
	t.Parallel()
	describe := outcome(t, "trueai", "describe", fmt.Sprintf(`{"id":%q,"status":"SUCCESS","prompt":"1️⃣ 风筝","promptEn":"1️⃣ a kite"}`, jobID))
	if d := cmp.Diff([]string{"a kite"}, describe.Made.Descriptions); d != "" {
		t.Error(d)
	}
	for final, want := range map[string]string{
		"<https://s.mj.run/Xy_1> a kite --v 7":                                    "a kite --v 7",
		"https://cdn.discordapp.com/attachments/1/a.png?ex=1&is=2 a kite":         "a kite",
		"a kite --sref https://img.example.com/a.png":                             "a kite --sref https://img.example.com/a.png",
		"https://media.discordapp.net/a.png <https://s.mj.run/b> two kites --v 7": "two kites --v 7",
	} {
		out := outcome(t, "trueai", "imagine", fmt.Sprintf(
			`{"id":%q,"action":"IMAGINE","status":"SUCCESS","prompt":"no","imageUrl":"https://cdn.example.com/a.png","properties":{"finalPrompt":%s}}`, jobID, quote(final)))
		if out.Made.Prompt != want {
			t.Errorf("the prompt %q becomes %q", final, out.Made.Prompt)
		}
	}
}

func TestFailures(t *testing.T) {
	t.Parallel()
	for reason, code := range map[string]mediagate.FailureCode{
		"Banned prompt detected":                              mediagate.CodeContentPolicy,
		"Blocked by our AI moderator":                         mediagate.CodeContentPolicy,
		"This may violate our community standards":            mediagate.CodeContentPolicy,
		"Image denied":                                        mediagate.CodeContentPolicy,
		"可能包含敏感词":                                             mediagate.CodeContentPolicy,
		"Invalid parameter: --w needs a value":                mediagate.CodeInvalidParameters,
		"Invalid link":                                        mediagate.CodeInvalidParameters,
		"[Internal Server Error] null":                        mediagate.CodeGenerationFailed,
		"任务超时":                                                mediagate.CodeGenerationFailed,
		"取消任务":                                                mediagate.CodeGenerationFailed,
		"Queue full; you have reached the maximum of 3 jobs.": mediagate.CodeGenerationFailed,
	} {
		vendor := providertest.NewVendor(t, suite().Failed(reason))
		report, err := open(t, "trueai", vendor.URL).Poll(t.Context(), suite().Ref)
		if err != nil || report.Outcome.Failure.Code != code || report.Outcome.Failure.Message == "" {
			t.Errorf("%q: %+v, %v", reason, report.Outcome, err)
		}
		if cancelled := strings.Contains(report.Outcome.Failure.Message, "cancelled"); cancelled != (reason == "取消任务") {
			t.Errorf("%q: %q", reason, report.Outcome.Failure.Message)
		}
	}
}

// TestModalIsTold checks that a job which has got its mask or words is queued, although its status
// stays MODAL. The client must not be asked again.
func TestModalIsTold(t *testing.T) {
	t.Parallel()
	for operation, want := range map[string]mediagate.JobState{"modal": mediagate.JobQueued, "action": mediagate.JobWaiting} {
		vendor := providertest.NewVendor(t, plain(200, job(jobID, "MODAL", "")))
		report, err := open(t, "trueai", vendor.URL).Poll(t.Context(), mediagate.JobRef{JobID: jobID, Operation: operation})
		if err != nil || report.State != want || report.Outcome != nil {
			t.Errorf("%s: %+v, %v", operation, report, err)
		}
	}
}

func TestProgress(t *testing.T) {
	t.Parallel()
	for progress, want := range map[string]int{
		`"0%"`: 0, `"45%"`: 45, `"100%"`: 99, `"Waiting to start"`: -1, `""`: -1, `null`: -1, `"-3%"`: -1, `"4.5%"`: -1, `46`: 46,
	} {
		vendor := providertest.NewVendor(t, plain(200, job(jobID, "IN_PROGRESS", `,"progress":`+progress)))
		report, err := open(t, "trueai", vendor.URL).Poll(t.Context(), suite().Ref)
		if err != nil || report.Percent != want {
			t.Errorf("%s: %d, %v", progress, report.Percent, err)
		}
	}
}
