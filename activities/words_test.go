package activities

import (
	"encoding/json"
	"testing"
)

func TestWithoutRequest(t *testing.T) {
	t.Parallel()
	const prompt = "a fox that jumps over a very lazy dog"
	params := json.RawMessage(`{"prompt":"` + prompt + `","mode":"std","shots":[{"prompt":"狐狸跳过了一只非常懒的狗"}],"duration":5}`)
	for text, want := range map[string]string{
		"no such model":                     "no such model",
		"the mode std is not known":         "the mode std is not known",
		"refused: " + prompt + ".":          "refused: ….",
		prompt + " and " + prompt:           "… and …",
		`invalid "a fox that jumps ov" (…)`: `invalid "…" (…)`,
		"a fox that jumps":                  "…",
		"a fox that":                        "a fox that",
		"不行：狐狸跳过了一只非常懒的狗":                   "不行：…",
		"不行：狐狸跳过了一只":                        "不行：…",
		"":                                  "",
	} {
		if got := withoutRequest(text, params); got != want {
			t.Errorf("%q without the request's words is %q, want %q", text, got, want)
		}
	}
	if got := withoutRequest("as it is", json.RawMessage(`{`)); got != "as it is" {
		t.Errorf("without a request: %q", got)
	}
}
