package catalog

import (
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strconv"

	"github.com/mediagate/mediagate"
)

// openAIFile says how what OpenAI's clients write becomes fields of the operation
// (https://platform.openai.com/docs/api-reference/videos/create and images/create).
type openAIFile struct {
	Seconds string                       `yaml:"seconds"` // the field that takes its seconds; empty: they cannot be chosen
	Image   string                       `yaml:"image"`   // that takes its input_reference: a text, or a list of them
	Sizes   map[string]map[string]string `yaml:"sizes"`   // the fields that make a size, by WIDTHxHEIGHT
}

// The fields of OpenAI's that have other names here, or other values.
const (
	openAISeconds = "seconds"
	openAISize    = "size"
	openAIImage   = "input_reference"
	openAICount   = "n"
)

var pixels = regexp.MustCompile(`^[0-9]{1,5}x[0-9]{1,5}$`)

// Pixels reports a size that is written as OpenAI's clients write it, WIDTHxHEIGHT.
func Pixels(size string) bool { return pixels.MatchString(size) }

// problems are what is wrong with the table.
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

// FromOpenAI puts a body of OpenAI's form into the operation's own. What it says in
// other words is in sent, the client's field by ours. Fields that have the same name in
// both, and those that are ours alone, stay; names are all that the client wrote. Its
// errors are of KindInvalid and name the client's field: nothing is dropped but n: 1,
// which each model makes.
func (o *Operation) FromOpenAI(body map[string]any, names []string) (ours map[string]any, sent map[string]string, err error) {
	table := o.openai
	if table == nil {
		table = &openAIFile{}
	}
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
	if value := body[openAISeconds]; value != nil {
		take(openAISeconds)
		seconds, ok := wholeSeconds(value)
		if !ok {
			return nil, nil, mediagate.Invalid(openAISeconds, "seconds must be a whole number, as a number or as text").Because(mediagate.ReasonWrongType)
		}
		if err := give(table.Seconds, openAISeconds, seconds); err != nil {
			return nil, nil, err
		}
	}
	if size, isText := body[openAISize].(string); Pixels(size) || isText && !o.takes(openAISize) {
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
	if n, ok := body[openAICount].(json.Number); ok && normalNumber(n) == "1" && !o.takes(openAICount) {
		take(openAICount)
	}
	for _, name := range names {
		if !known[name] && !o.takes(name) {
			return nil, nil, o.unknown(name)
		}
	}
	return ours, sent, nil
}

// offer are the sizes that there are, as a rule.
func (f *openAIFile) offer() string {
	if len(f.Sizes) == 0 {
		return "left out: the model has none to choose from"
	}
	return "one of " + list(slices.Sorted(maps.Keys(f.Sizes)), "or")
}

// wholeSeconds reads seconds as OpenAI's clients write them.
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

// InOpenAI is what the parameters of a request say in OpenAI's words: seconds and size,
// each empty where it is left to the model or has no such word.
func (o *Operation) InOpenAI(params json.RawMessage) (seconds, size string) {
	var said map[string]any
	if o.openai == nil || json.Unmarshal(params, &said) != nil {
		return "", ""
	}
	if n, ok := said[o.openai.Seconds].(float64); ok && n > 0 {
		seconds = strconv.FormatFloat(n, 'f', -1, 64)
	}
	for _, name := range slices.Sorted(maps.Keys(o.openai.Sizes)) {
		same := true
		for field, value := range o.openai.Sizes[name] {
			same = same && said[field] == value
		}
		if same {
			return seconds, name
		}
	}
	return seconds, ""
}
