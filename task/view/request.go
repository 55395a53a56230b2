package view

import (
	"bytes"
	"encoding/json"
	"slices"

	"github.com/mediagate/mediagate"
)

// Request returns a body that asks the same endpoint for the same thing again. It has the model as
// the client named it, the fields with their defaults, and the fields that name the result of an
// earlier task. It leaves out media that came within the request, and the webhook and the
// reference, which do not affect the result. Request returns nil once the inputs of the task are
// erased.
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

// promptFields are the fields that may hold the client's text. The field that says most about the
// task comes first.
var promptFields = []string{"prompt", "gpt_description", "sound_prompt", "lyrics", "title"}

// longestPrompt is how many characters of a prompt a list shows.
const longestPrompt = 200

// Prompt returns the beginning of the client's text. It is empty if the request has none, or was
// erased.
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

// drop removes the links from the body. A link is the value of a field, or an item of a list.
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
