package catalog

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/mediagate/mediagate"
)

// fold moves the contents of chat messages into other fields of the request: texts go after the
// prompt, media to the end of lists. A canonical request has no messages, so no later reader has
// to handle them.
//
// The content of a message is a text or a list of parts. A part has a type, and its value in the
// field of that name.
type fold struct {
	from  string
	into  map[string]string // the target field by type of part
	shape *shape            // of the request
}

// textPart is the type of a text part, and of a content that is no list.
const textPart = "text"

// compileFold checks that parts and fields fit together: texts go into a text, media into lists.
func compileFold(f *foldFile, s *shape) (*fold, []string) {
	if f == nil {
		return nil, nil
	}
	var problems []string
	part := s.at([]any{f.From, 0, "content", 0})
	if part == nil || part.properties["type"] == nil {
		return nil, []string{
			fmt.Sprintf("%q is no list of messages, whose content may be a list of parts, each with a type", f.From),
		}
	}
	for _, kind := range part.properties["type"].enum {
		if f.Into[fmt.Sprint(kind)] == "" {
			problems = append(problems, fmt.Sprintf("into: nothing takes parts of type %v", kind))
		}
	}
	for _, kind := range slices.Sorted(maps.Keys(f.Into)) {
		wanted := "array"
		if kind == textPart {
			wanted = "string"
		}
		switch field := s.properties[f.Into[kind]]; {
		case part.properties[kind] == nil:
			problems = append(problems, fmt.Sprintf("into: parts have no %q", kind))
		case field == nil || !field.is(wanted):
			problems = append(
				problems, fmt.Sprintf("into: %q is no %s, which parts of type %s go into", f.Into[kind], wanted, kind),
			)
		}
	}
	return &fold{from: f.From, into: f.Into, shape: s}, problems
}

// apply folds the messages of a request that has passed the schema. It returns the fields whose
// values come only from messages.
func (f *fold) apply(params map[string]any) (folded map[string]string, err error) {
	messages, _ := params[f.from].([]any)
	delete(params, f.from)
	if len(messages) == 0 {
		return nil, nil // the schema has already checked the fields by themselves
	}
	var absent []string
	for _, name := range f.into {
		if _, ok := params[name]; !ok {
			absent = append(absent, name)
		}
	}
	for _, item := range messages {
		message, _ := item.(map[string]any)
		parts, isList := message["content"].([]any)
		if !isList {
			f.add(params, textPart, message["content"])
			continue
		}
		for _, item := range parts {
			part, _ := item.(map[string]any)
			kind, _ := part["type"].(string)
			f.add(params, kind, part[kind])
		}
	}
	folded = map[string]string{}
	for _, name := range absent {
		if _, ok := params[name]; ok {
			folded[name] = f.from
		}
	}
	return folded, f.checkBounds(params)
}

func (f *fold) add(params map[string]any, kind string, value any) {
	field := f.into[kind]
	if kind != textPart {
		list, _ := params[field].([]any)
		params[field] = append(slices.Clip(list), value)
		return
	}
	text, _ := value.(string)
	if before, ok := params[field].(string); ok && !blank(before) {
		text = strings.Join([]string{before, text}, "\n")
	}
	params[field] = text
}

// checkBounds checks the results of the fold against the bounds of the fields.
func (f *fold) checkBounds(params map[string]any) error {
	for _, kind := range slices.Sorted(maps.Keys(f.into)) {
		name := f.into[kind]
		bounds := f.shape.properties[name]
		switch v := params[name].(type) {
		case []any:
			if n := bounds.maxItems; n > 0 && int64(len(v)) > n {
				return mediagate.Invalid(f.from, "%s and %s may hold at most %d items together", f.from, name, n)
			}
		case string:
			if n := bounds.maxLength; n > 0 && int64(utf8.RuneCountInString(v)) > n {
				return mediagate.Invalid(f.from, "%s and %s may hold at most %d characters together", f.from, name, n)
			}
		}
	}
	return nil
}
