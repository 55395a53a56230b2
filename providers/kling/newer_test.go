package kling_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/providers"
	"github.com/mediagate/mediagate/providers/kling"
	"github.com/mediagate/mediagate/providers/providertest"
)

// newerJob returns a job in the form of the newer generation.
func newerJob(id, external, rest string) string {
	return fmt.Sprintf(`{"id":%s,"external_id":%s,"create_time":1781080778802,"update_time":1781080794151%s}`, quote(id), quote(external), rest)
}

func newerList(jobs ...string) providertest.Reply {
	return providertest.Reply{Body: `{"code":0,"message":"","request_id":"req-1","data":[` + strings.Join(jobs, ",") + `]}`}
}

func newerMade(id, external string) providertest.Reply {
	return providertest.Reply{Body: `{"code":0,"message":"","request_id":"req-1","data":` + newerJob(id, external, `,"status":"submitted"`) + `}`}
}

const outputs = `,"outputs":[{"type":"video","id":"v1","url":"https://cdn.example.com/v1.mp4","watermark_url":"https://cdn.example.com/v1-marked.mp4","duration":"5.1"}]` +
	`,"billing":[{"charge_type":"unit","package_type":"video","amount":"1.5","list_price":"0.21"}]`

// newerSuite returns the conformance suite of a channel of the newer generation.
func newerSuite() providertest.Suite {
	s := suite()
	s.Channel.Credentials = mediagate.Secrets(map[string]string{"api_key": "kl-7dPz4mQ9xW2vB8nR"})
	s.Channel.Options = map[string]string{"generation": "v2"}
	s.NoBatch = false
	s.Ref.State = "tasks"
	s.Submission = mediagate.Submission{Ref: s.Ref}
	s.Accepted = newerMade(jobID, externalID)
	s.SubmitRows["no id"] = providertest.Row{Reply: newerMade("", externalID), Kind: mediagate.KindAmbiguous}
	s.SubmitRows["id with a line break"] = providertest.Row{Reply: newerMade("a\nb", externalID), Kind: mediagate.KindAmbiguous}
	delete(s.SubmitRows, "answer of the newer standard")
	s.SubmitRows["answer of the older standard"] = providertest.Row{Reply: task(jobID, externalID, ""), Kind: mediagate.KindAmbiguous}
	s.Word = func(word string) providertest.Reply {
		return newerList(newerJob(jobID, externalID, `,"message":"the text","status":`+quote(word)+outputs))
	}
	s.Words = map[string]mediagate.JobState{
		"submitted": mediagate.JobQueued, "processing": mediagate.JobRunning,
		"succeeded": mediagate.JobSucceeded, "failed": mediagate.JobFailed,
		"succeed": mediagate.JobUnknown, // the word of the older generation
	}
	s.Failed = func(text string) providertest.Reply {
		return newerList(newerJob(jobID, externalID, `,"status":"failed","message":`+quote(text)))
	}
	for _, rows := range []map[string]providertest.Row{s.SubmitRows, s.PollRows} {
		for _, code := range []string{"1000", "1001", "1002", "1003", "1004"} { // an API key cannot be renewed
			row := rows[code]
			row.Calls = 1
			rows[code] = row
		}
	}
	// A lookup also asks the older generation; see TestFindAsksEachEndpoint.
	for _, name := range []string{"1201 task not found", "1203"} {
		delete(s.PollRows, name)
	}
	s.PollRows["data that is no list"] = providertest.Row{Reply: newerMade(jobID, externalID), Kind: mediagate.KindTransient}
	s.PollRows["no data"] = providertest.Row{Reply: providertest.Reply{Body: `{"code":0}`}, Kind: mediagate.KindTransient}
	s.PollRows["data null"] = providertest.Row{Reply: providertest.Reply{Body: `{"code":0,"data":null}`}, Kind: mediagate.KindTransient}
	succeeded := func(rest string) providertest.Reply {
		return newerList(newerJob(jobID, externalID, `,"status":"succeeded"`+rest))
	}
	s.ProtocolErrors = map[string]providertest.Reply{
		"another job":          newerList(newerJob("999", "task_other", `,"status":"processing"`)),
		"no id":                newerList(newerJob("", externalID, `,"status":"succeeded"`+outputs)),
		"the job twice":        newerList(newerJob(jobID, externalID, ""), newerJob(jobID, externalID, "")),
		"a job that is a text": newerList(`"soon"`),
	}
	s.WithoutMedia = map[string]providertest.Reply{
		"success without outputs":  succeeded(""),
		"success without a video":  succeeded(`,"outputs":[{"type":"image","url":"https://cdn.example.com/1.png"}]`),
		"success without links":    succeeded(`,"outputs":[{"type":"video","url":""}]`),
		"success with a file link": succeeded(`,"outputs":[{"type":"video","url":"file:///etc/passwd"}]`),
		"success of odd types":     succeeded(`,"outputs":{"type":"video"}`),
	}
	s.Partial = map[string]providertest.Partial{
		"one of two without a link": {
			Reply: succeeded(`,"outputs":[{"type":"video","url":""},{"type":"image"},{"type":"video","url":"https://cdn.example.com/2.mp4"}]`),
			Media: []mediagate.Media{{URL: "https://cdn.example.com/2.mp4", Index: 1, MimeType: "video/mp4"}},
		},
	}
	s.BatchCall = func(ids []string) string { return "GET /tasks?task_ids=" + strings.Join(ids, ",") }
	s.Batch = func(ids, words []string) providertest.Reply {
		var jobs []string
		for i := range ids {
			jobs = append(jobs, newerJob(ids[i], "", `,"status":`+quote(words[i])+outputs))
		}
		return newerList(jobs...)
	}
	return s
}

func TestNewerConformance(t *testing.T) {
	t.Parallel()
	providertest.Run(t, newerSuite())
}

func TestNewerGolden(t *testing.T) {
	t.Parallel()
	newerSuite().Golden(t, "testdata/v2/*.txtar", *update)
}

// keyed returns the suite of a channel of the older generation with an API key.
func keyed() providertest.Suite {
	s := suite()
	s.Channel.Credentials = mediagate.Secrets(map[string]string{"api_key": "kl-7dPz4mQ9xW2vB8nR"})
	return s
}

// TestNewerPollsOlderJobsAlone checks that jobs of the older generation are polled one by one,
// where they were made, after the channel changed its generation.
func TestNewerPollsOlderJobsAlone(t *testing.T) {
	t.Parallel()
	vendor := providertest.NewVendor(t, task(jobID, externalID, `,"task_status":"processing"`))
	p := newerSuite().Open(t, vendor.URL, providers.Options{})
	older := mediagate.JobRef{JobID: jobID, Operation: "video", State: "image2video"}
	if p.(providers.Chooser).Batches(older) || !p.(providers.Chooser).Batches(newerSuite().Ref) {
		t.Error("Batches takes jobs of the older generation, or refuses those of the newer one")
	}
	if report, err := p.Poll(t.Context(), older); err != nil || report.State != mediagate.JobRunning {
		t.Errorf("Poll: %+v, %v", report, err)
	}
	if got := vendor.Requests()[0].Path; got != "/v1/videos/image2video/"+jobID {
		t.Errorf("asked for %s", got)
	}
}

func TestNewerCharges(t *testing.T) {
	t.Parallel()
	const unit = "unit"
	for name, tc := range map[string]struct {
		billing string
		want    *mediagate.VendorCharge
	}{
		"cash":               {`[{"charge_type":"cash","amount":"0.35","currency":"USD"}]`, mediagate.ChargedBy("0.35", "USD")},
		"cash of what":       {`[{"charge_type":"cash","amount":"0.35"}]`, mediagate.ChargedBy("0.35", "cash")},
		"numbers":            {`[{"charge_type":"unit","amount":0.5}]`, mediagate.ChargedBy("0.5", unit)},
		"of one kind":        {`[{"charge_type":"unit","amount":"1.5"},{"charge_type":"unit","amount":"2"}]`, mediagate.ChargedBy("3.5", unit)},
		"of two kinds":       {`[{"charge_type":"unit","amount":"1.5"},{"charge_type":"cash","amount":"2"}]`, nil},
		"none":               {`[]`, nil},
		"no amount":          {`[{"charge_type":"unit"}]`, nil},
		"one without amount": {`[{"charge_type":"unit","amount":"1"},{"charge_type":"unit"}]`, nil},
		"not a decimal":      {`[{"charge_type":"unit","amount":"1e9"}]`, nil},
		"too much":           {`[{"charge_type":"unit","amount":"99999999999999999999"}]`, nil},
		"no unit":            {`[{"charge_type":"=1+1","amount":"1"}]`, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			vendor := providertest.NewVendor(t, newerList(newerJob(jobID, externalID,
				`,"status":"succeeded","outputs":[{"type":"video","url":"https://cdn.example.com/v1.mp4"}],"billing":`+tc.billing)))
			report, err := newerSuite().Open(t, vendor.URL, providers.Options{}).Poll(t.Context(), newerSuite().Ref)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, report.Outcome.VendorCharge); diff != "" {
				t.Errorf("charge (-want +got):\n%s", diff)
			}
		})
	}
}

// TestNewerWords checks prompts of the newer generation that the golden files do not cover.
func TestNewerWords(t *testing.T) {
	t.Parallel()
	const film = `"mode":"std","duration":5,"aspect_ratio":"16:9","audio":false,"multi_shot":true,"shot_type":"customize"`
	shot := func(n int, text string) string {
		return fmt.Sprintf(`{"index":%d,"prompt":%s,"duration":%d}`, n, quote(text), 5)
	}
	long := strings.Repeat("草", 512)
	for name, tc := range map[string]struct {
		upstream, operation, params string
		want                        string // the prompt
		field                       string // the field of the error
	}{
		"shots in their order": {
			"kling-v3", "video", `{"prompt":"unread",` + film + `,"multi_prompt":[` + shot(2, "a dog; asleep") + `,` + shot(1, " a fox ") + `]}`,
			"shot 1, 5, a fox; shot 2, 5, a dog\uff1b asleep;", "",
		},
		"5 long shots": {"kling-v3", "video", `{` + film + `,"multi_prompt":[` +
			strings.Join([]string{shot(1, long), shot(2, long), shot(3, long), shot(4, long), shot(5, long)}, ",") + `]}`, "*", ""},
		"6 long shots": {"kling-v3", "video", `{` + film + `,"multi_prompt":[` +
			strings.Join([]string{shot(1, long), shot(2, long), shot(3, long), shot(4, long), shot(5, long), shot(6, long)}, ",") + `]}`, "", "multi_prompt"},
		"words to avoid, 3072 in all": {
			"kling-v3", "video", `{"mode":"std","duration":5,"aspect_ratio":"16:9","prompt":` + quote(strings.Repeat("🎬", 2500)) + `,"negative_prompt":` + quote(strings.Repeat("x", 3072-2500-8)) + `}`, "*", "",
		},
		"words to avoid, one more": {
			"kling-v3", "video", `{"mode":"std","duration":5,"aspect_ratio":"16:9","prompt":` + quote(strings.Repeat("🎬", 2500)) + `,"negative_prompt":` + quote(strings.Repeat("x", 3073-2500-8)) + `}`, "", "prompt",
		},
		"references within words": {
			"kling-video-o1", "omni", `{"mode":"pro","duration":5,"aspect_ratio":"16:9","prompt":"put<<<image_2>>>on <<<image_1>>>, 加<<<image_2>>>。<<<image_1>>><<<image_2>>>","image_urls":["https://a.example.com/1.png","https://a.example.com/2.png"]}`,
			"put @image_2 on @image_1, 加@image_2。@image_1 @image_2", "",
		},
		"a subject by id": {
			"kling-v3", "video", `{"mode":"std","duration":5,"prompt":"<<<element_1>>> runs","image_urls":["https://a.example.com/1.png"],"element_list":[{"element_id":7}]}`,
			"@element_1 runs", "",
		},
		"an unknown mode": {"kling-v3", "video", `{"mode":"8k","duration":5,"prompt":"a"}`, "", "mode"},
		"no duration":     {"kling-v3", "video", `{"mode":"std","prompt":"a"}`, "", "duration"},
		"sound and a video": {
			"kling-video-o1", "omni", `{"mode":"std","duration":5,"prompt":"a","audio":true,"video_list":[{"video_url":"https://a.example.com/v.mp4","refer_type":"base","keep_original_sound":"no"}]}`, "", "audio",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			job := newerSuite().Job
			job.Upstream, job.Operation, job.Params = tc.upstream, tc.operation, json.RawMessage(tc.params)
			vendor := providertest.NewVendor(t, newerSuite().Accepted)
			_, err := newerSuite().Open(t, vendor.URL, providers.Options{}).Submit(t.Context(), job)
			if said := kling.Supports(job, map[string]string{"generation": "v2"}); (said == nil) != (err == nil) || said != nil && said.Error() != err.Error() {
				t.Errorf("Supports: %v, Submit: %v", said, err)
			}
			if tc.field != "" {
				if !mediagate.Is(err, mediagate.KindInvalid) || !strings.Contains(err.Error(), "("+tc.field+")") || len(vendor.Requests()) != 0 {
					t.Errorf("Submit: %v, want invalid %s and no request", err, tc.field)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			var body struct {
				Prompt   string `json:"prompt"`
				Contents []struct{ Type, Text string }
			}
			if err := json.Unmarshal([]byte(vendor.Requests()[0].Body), &body); err != nil {
				t.Fatal(err)
			}
			got := body.Prompt
			if got == "" {
				got = body.Contents[0].Text
			}
			if tc.want != "*" && got != tc.want {
				t.Errorf("prompt %q, want %q", got, tc.want)
			}
		})
	}
}
