package view

import (
	"bytes"
	"encoding/json"
	"slices"

	"github.com/mediagate/mediagate"
)

// Request returns a body that asks for what the task was asked for, at the endpoint that took
// it: the model as the client named it, the fields with their defaults, and those that name
// what an earlier task made. The body lacks media that came within the request, and the webhook
// and the reference, which change nothing of what is made. Request returns nil once the inputs
// of the task are erased.
func Request(t *mediagate.Task) (map[string]any, error) {
	if !t.InputsErasedAt.IsZero() {
		return nil, nil
	}
	body := map[string]any{}
	if err := readInto(body, t.Params); err != nil {
		return nil, err
	}
	if source := t.Plan.Source; source != nil {
		if err := readInto(body, source.Fields); err != nil {
			return nil, err
		}
	}
	if len(t.Plan.Attached) > 0 {
		drop(body, t.Plan.Attached)
	}
	body["model"] = t.Model
	return body, nil
}

// promptFields hold what the client wrote for the vendor, the most telling first.
var promptFields = []string{"prompt", "gpt_description", "sound_prompt", "lyrics", "title"}

// longestPrompt is how many characters of a prompt a list shows.
const longestPrompt = 200

// Prompt is the beginning of the text that the task was asked for with; empty where its request has none,
// or was erased.
func Prompt(t *mediagate.Task) string {
	if !t.InputsErasedAt.IsZero() {
		return ""
	}
	var params map[string]json.RawMessage
	if json.Unmarshal(t.Params, &params) != nil {
		return "" // a list shows the other tasks all the same
	}
	for _, name := range promptFields {
		var text string
		if json.Unmarshal(params[name], &text) != nil || text == "" {
			continue
		}
		if runes := []rune(text); len(runes) > longestPrompt {
			return string(runes[:longestPrompt]) + "…"
		}
		return text
	}
	return ""
}

// readInto adds the fields of a JSON object to the body. Numbers stay as they are written.
func readInto(body map[string]any, object json.RawMessage) error {
	if len(object) == 0 {
		return nil
	}
	decoder := json.NewDecoder(bytes.NewReader(object))
	decoder.UseNumber()
	if err := decoder.Decode(&body); err != nil {
		return mediagate.Errorf(mediagate.KindInternal, "the stored request cannot be read: %w", err)
	}
	return nil
}

// drop leaves out links, which are fields or items of lists.
func drop(body map[string]any, links []string) {
	isLink := func(value any) bool {
		text, isText := value.(string)
		return isText && slices.Contains(links, text)
	}
	for name, value := range body {
		items, isList := value.([]any)
		left := slices.DeleteFunc(items, isLink)
		switch {
		case isLink(value), isList && len(left) == 0:
			delete(body, name)
		case isList:
			body[name] = left
		}
	}
}
