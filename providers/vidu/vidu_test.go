package vidu_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/providers"
	"github.com/mediagate/mediagate/providers/all"
	"github.com/mediagate/mediagate/providers/providertest"
)

// Supports checks the vendor's limits before anything is sent. It counts a prompt in code points:
// an emoji is one, although it has four bytes.
func TestBounds(t *testing.T) {
	t.Parallel()
	const image = "https://media.example.com/a.png"
	for name, tt := range map[string]struct {
		prompt string
		images []string
		param  string
	}{
		"5000 emoji":             {strings.Repeat("🦊", 5000), []string{image}, ""},
		"5001 emoji":             {strings.Repeat("🦊", 5001), []string{image}, "prompt"},
		"5000 characters of CJK": {strings.Repeat("語", 5000), []string{image}, ""},
		"5001 characters of CJK": {strings.Repeat("語", 5001), []string{image}, "prompt"},
		"seven images":           {"a", []string{image, image, image, image, image, image, image}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text, err := json.Marshal(map[string]any{"prompt": tt.prompt, "image_urls": tt.images})
			if err != nil {
				t.Fatal(err)
			}
			adapter, _ := all.Builtin().Adapter("vidu")
			err = adapter.Supports(mediagate.Job{Upstream: "viduq3", Operation: "reference", Params: text}, nil)
			var e *mediagate.Error
			switch {
			case tt.param == "":
				if err != nil {
					t.Error(err)
				}
			case !errors.As(err, &e) || e.Kind != mediagate.KindInvalid || e.Param != tt.param:
				t.Errorf("%.300v, want a refusal of %s", err, tt.param)
			}
		})
	}
}

func poll(t *testing.T, ref mediagate.JobRef, answer providertest.Reply) mediagate.Report {
	t.Helper()
	s := suite()
	vendor := s.Vendor(t, answer)
	report, err := s.Open(t, vendor.URL, providers.Options{}).Poll(t.Context(), ref)
	if err != nil {
		t.Fatal(err)
	}
	return report
}

// The watermarked copy is always offered, but used only if the client asked for it.
func TestWatermark(t *testing.T) {
	t.Parallel()
	ref := suite().Ref
	asked := ref
	asked.State = "watermark"
	const plainOnly = `,"creations":[{"id":"1","url":"https://cdn.example.com/v.mp4?sig=abc","watermarked_url":""}]`
	for name, tt := range map[string]struct {
		ref   mediagate.JobRef
		files string
		want  string
	}{
		"not asked for":           {ref, files, "https://cdn.example.com/v.mp4?sig=abc"},
		"asked for":               {asked, files, "https://cdn.example.com/w.mp4?sig=abc"},
		"asked for, not there":    {asked, plainOnly, "https://cdn.example.com/v.mp4?sig=abc"},
		"only a marked one there": {asked, `,"creations":[{"watermarked_url":"https://cdn.example.com/w.mp4"}]`, "https://cdn.example.com/w.mp4"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := poll(t, tt.ref, job("success", tt.files)).Outcome
			want := &mediagate.Outcome{
				Succeeded: true, VendorCharge: mediagate.ChargedBy("25", "credits"), Media: []mediagate.Media{{URL: tt.want, MimeType: "video/mp4"}},
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("outcome (-want +got):\n%s", diff)
			}
		})
	}
}

// An answer may lack the id. Then the payload proves which job it is about.
func TestNamed(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		ids  string
		want bool
	}{
		"the id":               {`"id":"` + jobID + `"`, true},
		"the id as a number":   {`"id":` + jobID, true},
		"the payload":          {`"payload":"` + externalID + `"`, true},
		"the id, no payload":   {`"id":"` + jobID + `","payload":""`, true},
		"neither":              {`"credits":"4"`, false},
		"the id and other one": {`"id":"` + jobID + `","payload":"something"`, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := poll(t, suite().Ref, plain(http.StatusOK, `{"state":"processing",`+tt.ids+`}`))
			if got.Named != tt.want || got.State != mediagate.JobRunning {
				t.Errorf("named %v in state %q", got.Named, got.State)
			}
		})
	}
}

// The error name says why a job failed. The job has failed whatever the name, although the same
// name may permit a retry at submit.
func TestFailed(t *testing.T) {
	t.Parallel()
	const (
		policy  = mediagate.CodeContentPolicy
		image   = mediagate.CodeImageProcessing
		invalid = mediagate.CodeInvalidParameters
		fault   = mediagate.CodeGenerationFailed
	)
	for name, tt := range map[string]struct {
		code    mediagate.FailureCode
		message string
	}{
		"AuditSubmitIllegal":        {policy, "the content was refused"},
		"TaskPromptPolicyViolation": {policy, "the content was refused"},
		"CreationPolicyViolation":   {policy, "the content was refused"},
		"creation_policy_violation": {policy, "the content was refused"},
		"ImageDownloadFailure":      {image, "an image of image_urls could not be used"},
		"ImageFormatInvalid":        {image, "an image of image_urls could not be used"},
		"PageSizeOutOfRange":        {image, "an image of image_urls could not be used"},
		"FieldInvalid":              {invalid, "the request was refused as invalid"},
		"BadRequest":                {invalid, "the request was refused as invalid"},
		"UserCancelled":             {fault, "the job was stopped at the vendor"},
		"CreditInsufficient":        {fault, "the generation failed at the vendor"},
		"QuotaExceeded":             {fault, "the generation failed at the vendor"},
		"SystemThrottling":          {fault, "the generation failed at the vendor"},
		"InternalServiceFailure":    {fault, "the generation failed at the vendor"},
		"Canceled":                  {fault, "the generation failed at the vendor"},
		"NovelError":                {fault, "the generation failed at the vendor"},
		"":                          {fault, "the generation failed at the vendor"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := poll(t, suite().Ref, job("failed", fmt.Sprintf(`,"err_code":%q,"creations":[]`, name)))
			want := mediagate.Failure{Code: tt.code, Message: tt.message, Retryable: tt.code == fault}
			if got.State != mediagate.JobFailed || got.Outcome.VendorCharge != nil {
				t.Errorf("state %q, charge %v", got.State, got.Outcome.VendorCharge)
			}
			if diff := cmp.Diff(want, *got.Outcome.Failure); diff != "" {
				t.Errorf("failure (-want +got):\n%s", diff)
			}
			if !strings.EqualFold(strings.ReplaceAll(got.Outcome.VendorText, "_", ""), strings.ReplaceAll(name, "_", "")) {
				t.Errorf("the vendor's word is kept as %q", got.Outcome.VendorText)
			}
		})
	}
}

// The vendor's own text becomes the message if it is in English.
func TestFailedInWords(t *testing.T) {
	t.Parallel()
	english := poll(t, suite().Ref, job("failed", `,"err_code":"CreationPolicyViolation","message":"a face was found"`)).Outcome
	if english.Failure.Message != "a face was found" || english.Failure.Code != mediagate.CodeContentPolicy {
		t.Errorf("failure %+v", english.Failure)
	}
	chinese := poll(t, suite().Ref, job("failed", `,"err_code":"CreationPolicyViolation","message":"内容违规"`)).Outcome
	if chinese.Failure.Message != "the content was refused" || chinese.VendorText != "内容违规" {
		t.Errorf("failure %+v, text %q", chinese.Failure, chinese.VendorText)
	}
}
