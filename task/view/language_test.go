package view

import (
	"testing"

	"github.com/mediagate/mediagate"
)

func TestMessage(t *testing.T) {
	t.Parallel()
	codes := []mediagate.FailureCode{
		"content_policy_violation", "invalid_parameters", "image_processing_error", "generation_failed", "generation_timeout",
		"provider_unavailable", "provider_rejected_credentials", "provider_submission_unknown", "result_unavailable",
		"modal_expired", "model_retired", "internal_error",
	}
	for _, code := range codes {
		seen := map[string]bool{}
		for _, language := range []string{"", "en", "zh", "ko", "ja"} {
			m := message(mediagate.Failure{Code: code, Message: "stored"}, language)
			english := language == "" || language == "en"
			if english != (m == "stored") || !english && seen[m] {
				t.Errorf("%s in %q reads %q", code, language, m)
			}
			seen[m] = true
		}
	}
	if m := message(mediagate.Failure{Code: "new_code", Message: "stored"}, "zh"); m != "stored" {
		t.Errorf("a code without a table reads %q", m)
	}
}

// A message that was erased reads as what the code says, for each code.
func TestErasedMessages(t *testing.T) {
	t.Parallel()
	for _, code := range mediagate.FailureCodes() {
		task := mediagate.Task{Status: mediagate.StatusFailed, Failure: &mediagate.Failure{Code: code, Retryable: true}}
		unified, legacy, art := Of(&task, 1000, nil), LegacyOf(&task, nil), ArtOf(&task, 1000, nil)
		for name, message := range map[string]string{
			"unified": unified.Error.Message, "in English": unified.In(
				"en",
			).Error.Message, "legacy": legacy.Error.Message, "legacy reason": legacy.FailReason, "art": art.FailReason,
		} {
			if message == "" || message != unified.Error.Message {
				t.Errorf("%s, %s: %q", code, name, message)
			}
		}
		if unified.Error.Code != code || !unified.Error.Retryable || task.Failure.Message != "" {
			t.Errorf("%s: %+v, the task %+v", code, unified.Error, task.Failure)
		}
	}
}
