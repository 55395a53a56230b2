package catalog

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"

	"github.com/mediagate/mediagate"
)

// openAIFile says how fields of OpenAI's clients become fields of the operation
// (https://platform.openai.com/docs/api-reference/videos/create and images/create).
type openAIFile struct {
	Seconds string                       `yaml:"seconds"` // our field for seconds; empty if the length cannot be chosen
	Image   string                       `yaml:"image"`   // our field for input_reference: a text or a list
	Sizes   map[string]map[string]string `yaml:"sizes"`   // our fields for a size, by WIDTHxHEIGHT
}

// The fields of OpenAI that have other names or values here.
const (
	openAISeconds = "seconds"
	openAISize    = "size"
	openAIImage   = "input_reference"
	openAIPicture = "image" // of an edit; a list
	openAICount   = "n"
	openAIAuto    = "auto" // leaves the size to the model
)

// openAIIgnored are fields of OpenAI's images that have no effect here, with the values that they
// may have. nil allows any text. Other values would ask for a different picture.
var openAIIgnored = map[string][]any{
	"user":           nil,
	"moderation":     nil,
	"background":     {"auto"},
	"quality":        {"auto", "standard", "medium"},
	"output_format":  {"png"},
	"stream":         {false},
	"partial_images": {json.Number("0")},
}

// OpenAIPictureFields lists the fields of OpenAI's images that no model has.
func OpenAIPictureFields() []string { return slices.Sorted(maps.Keys(openAIIgnored)) }

var pixels = regexp.MustCompile(`^[0-9]{1,5}x[0-9]{1,5}$`)

// Pixels reports whether a size has OpenAI's form, WIDTHxHEIGHT.
func Pixels(size string) bool { return pixels.MatchString(size) }

// problems lists what is wrong with the table.
func (f *openAIFile) problems(s *shape) []string {
	if f == nil {
		return nil
	}
	var problems []string
	for _, name := range []string{f.Seconds, f.Image} {
		if name != "" && s.properties[name] == nil {
			problems = append(problems, name+" is no field of the schema")
		}
	}
	for _, size := range slices.Sorted(maps.Keys(f.Sizes)) {
		if !Pixels(size) {
			problems = append(problems, "sizes: "+size+" is not WIDTHxHEIGHT")
		}
		for _, name := range slices.Sorted(maps.Keys(f.Sizes[size])) {
			values := valuesOf(s.properties[name])
			if s.properties[name] == nil || values != nil && !slices.Contains(values, any(f.Sizes[size][name])) {
				problems = append(problems, "sizes: "+size+": "+name+" can never be that")
			}
		}
	}
	return problems
}

// FromOpenAI converts a body in OpenAI's form to the operation's own. names are all fields that
// the client wrote. sent has the client's field for each of ours that has another name. Fields
// with the same name in both, and our own, stay.
//
// Its errors are of KindInvalid and name the client's field. It drops only n: 1, which every
// model makes, empty texts, and fields that have no effect.
func (o *Operation) FromOpenAI(
	body map[string]any, names []string,
) (ours map[string]any, sent map[string]string, err error) {
	table := o.openai
	if table == nil {
		table = &openAIFile{}
	}
	body = maps.Clone(body)
	ours, sent = maps.Clone(body), map[string]string{}
	known := map[string]bool{}
	take := func(theirs string) {
		delete(ours, theirs)
		known[theirs] = true
	}
	give := func(name, theirs string, value any) error {
		if name == "" {
			return mediagate.Invalid(theirs, "%s cannot be chosen for model %s", theirs, o.Model.ID)
		}
		if ours[name] != nil {
			return mediagate.Invalid(theirs, "%s and %s say the same: give one of them", theirs, name)
		}
		ours[name], sent[name] = value, theirs
		return nil
	}
	for _, theirs := range []string{openAISeconds, openAISize, openAIImage} {
		if body[theirs] == "" {
			take(theirs)
			body[theirs] = nil
		}
	}
	if value := body[openAISeconds]; value != nil {
		take(openAISeconds)
		seconds, ok := wholeSeconds(value)
		if !ok {
			return nil, nil, mediagate.Invalid(
				openAISeconds, "seconds must be a whole number, as a number or as text",
			).Because(mediagate.ReasonWrongType)
		}
		if err := give(table.Seconds, openAISeconds, seconds); err != nil {
			return nil, nil, err
		}
	}
	if o.Model.Type == mediagate.TypeImage {
		if body[openAISize] == openAIAuto {
			take(openAISize)
			body[openAISize] = nil
		}
		if err := o.takeIgnored(body, take); err != nil {
			return nil, nil, err
		}
	}
	if size, isText := body[openAISize].(string); Pixels(size) || isText && !o.hasField(openAISize) {
		take(openAISize)
		fields, ok := table.Sizes[size]
		if !ok {
			return nil, nil, mediagate.Invalid(openAISize, "size must be %s", table.offer()).Because(mediagate.ReasonNotOneOf)
		}
		for _, name := range slices.Sorted(maps.Keys(fields)) {
			if err := give(name, openAISize, fields[name]); err != nil {
				return nil, nil, err
			}
		}
	}
	if value := body[openAIImage]; value != nil {
		take(openAIImage)
		if s := o.schema.shape.properties[table.Image]; s != nil && s.is("array") {
			value = []any{value}
		}
		if err := give(table.Image, openAIImage, value); err != nil {
			return nil, nil, err
		}
	}
	if value := body[openAIPicture]; value != nil && !o.hasField(openAIPicture) {
		take(openAIPicture)
		if err := give(table.Image, openAIPicture, value); err != nil {
			return nil, nil, err
		}
	}
	if n, ok := body[openAICount].(json.Number); ok && normalNumber(n) == "1" && !o.hasField(openAICount) {
		take(openAICount)
	}
	for _, name := range names {
		if !known[name] && !o.hasField(name) {
			return nil, nil, o.errUnknownField(name)
		}
	}
	return ours, sent, nil
}

// takeIgnored takes the fields that have no effect, and refuses other values of them.
func (o *Operation) takeIgnored(body map[string]any, take func(string)) error {
	for _, name := range OpenAIPictureFields() {
		value, values := body[name], openAIIgnored[name]
		if value == nil || o.hasField(name) {
			continue
		}
		if n, ok := value.(json.Number); ok {
			value = normalNumber(n)
		}
		_, isText := value.(string)
		switch {
		case value == "", values == nil && isText, values != nil && slices.Contains(values, value):
			take(name)
		case values == nil:
			return mediagate.Invalid(name, "%s must be a string", name).Because(mediagate.ReasonWrongType)
		default:
			words := make([]string, len(values))
			for i, v := range values {
				words[i] = fmt.Sprint(v)
			}
			return mediagate.Invalid(
				name, "%s must be %s here, or left out", name, list(words, "or"),
			).Because(mediagate.ReasonNotOneOf)
		}
	}
	return nil
}

// FromForm converts the texts of a form to the types of the operation's schema: numbers,
// booleans, and lists of a single item. A text that cannot be converted stays as it is, for the
// schema to refuse.
func (o *Operation) FromForm(body map[string]any) map[string]any {
	typed := o.schema.shape.fromTexts(body)
	if o.Model.Type == mediagate.TypeImage {
		for name, kind := range map[string]string{openAICount: "integer", "partial_images": "integer", "stream": "boolean"} {
			if text, ok := typed[name].(string); ok && !o.hasField(name) {
				typed[name] = fromText(text, kind)
			}
		}
	}
	return typed
}

// fromTexts returns the fields of an object with the types of the schema.
func (s *shape) fromTexts(fields map[string]any) map[string]any {
	typed := make(map[string]any, len(fields))
	for name, value := range fields {
		field := s.properties[name]
		if field == nil {
			typed[name] = value
			continue
		}
		if value == "" && !field.mayBe("string") {
			continue // an empty input of the form
		}
		typed[name] = field.typed(value)
	}
	return typed
}

// typed returns a value of a form with the type of the schema.
func (s *shape) typed(value any) any {
	switch v := value.(type) {
	case map[string]any:
		return s.fromTexts(v)
	case []any:
		items := make([]any, len(v))
		for i, item := range v {
			if items[i] = item; s.items != nil {
				items[i] = s.items.typed(item)
			}
		}
		return items
	case string:
		switch {
		case s.mayBe("string"):
			return v
		case s.is("array") && s.items != nil:
			return []any{s.items.typed(v)}
		}
		for _, kind := range s.kinds {
			if typed := fromText(v, kind); typed != any(v) {
				return typed
			}
		}
	}
	return value
}

var numeral = regexp.MustCompile(`^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?$`)

// fromText converts a text to a number or a boolean if it is one. Otherwise it returns the text.
func fromText(text, kind string) any {
	switch kind {
	case "integer", "number":
		if _, err := strconv.ParseFloat(text, 64); err == nil && numeral.MatchString(text) {
			return json.Number(text)
		}
	case "boolean":
		if text == "true" || text == "false" {
			return text == "true"
		}
	}
	return text
}

// offer lists the sizes, as the end of a rule.
func (f *openAIFile) offer() string {
	if len(f.Sizes) == 0 {
		return "left out: the model has none to choose from"
	}
	return "one of " + list(slices.Sorted(maps.Keys(f.Sizes)), "or")
}

// wholeSeconds parses seconds, as a number or a text.
func wholeSeconds(value any) (json.Number, bool) {
	switch v := value.(type) {
	case json.Number:
		n := normalNumber(v)
		_, ok := int64Of(n)
		return n, ok
	case string:
		n, err := strconv.ParseUint(v, 10, 32)
		return json.Number(strconv.FormatUint(n, 10)), err == nil
	default:
		return "", false
	}
}

// ToOpenAI returns the seconds and size of a request in OpenAI's terms. Each is empty if it is
// left to the model or has no such term.
func (o *Operation) ToOpenAI(params json.RawMessage) (seconds, size string) {
	var given map[string]any
	if o.openai == nil || json.Unmarshal(params, &given) != nil {
		return "", ""
	}
	if n, ok := given[o.openai.Seconds].(float64); ok && n > 0 {
		seconds = strconv.FormatFloat(n, 'f', -1, 64)
	}
	for _, name := range slices.Sorted(maps.Keys(o.openai.Sizes)) {
		same := true
		for field, value := range o.openai.Sizes[name] {
			same = same && given[field] == value
		}
		if same {
			return seconds, name
		}
	}
	return seconds, ""
}
