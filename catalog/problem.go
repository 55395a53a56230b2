package catalog

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"

	"github.com/mediagate/mediagate"
)

// problem is one broken rule: its place, and words that follow the name of the field.
type problem struct {
	path  []any // names and indexes
	rank  int   // of several problems at one place the lowest rank is reported
	depth int   // the number of schemas that validate the place, up to the broken one
	text  string
	why   string // the reason code
}

// The ranks of problems. A wrong type comes first, since the others would only follow from it.
const (
	rankType = iota
	rankMissing
	rankValue
	rankSize
	rankForm
)

func (p problem) err() *mediagate.Error {
	param := paramName(p.path)
	if param == "" {
		return mediagate.Invalid("", "the request %s", p.text).Because(p.why)
	}
	return mediagate.Invalid(param, "%s %s", param, p.text).Because(p.why)
}

// paramName writes a path as clients read it: multi_prompt[0].duration.
func paramName(path []any) string {
	var b strings.Builder
	for _, step := range path {
		switch step := step.(type) {
		case int:
			fmt.Fprintf(&b, "[%d]", step)
		case string:
			if b.Len() > 0 {
				b.WriteByte('.')
			}
			b.WriteString(step)
		}
	}
	return b.String()
}

// firstProblem picks the problem that comes first in the order of the schema's fields, in whatever
// order the validator found them. Of two problems at one place it picks the one of a rule under a
// condition, since that rule bounds more.
func (s *schema) firstProblem(invalid *jsonschema.ValidationError) problem {
	r := reader{schema: s}
	r.collect(invalid, nil)
	if len(r.found) == 0 { // collect does not know the keyword
		return problem{text: "does not match the model's schema"}
	}
	return slices.MinFunc(r.found, func(a, b problem) int {
		return cmp.Or(
			comparePaths(s.shape, a.path, b.path), cmp.Compare(a.rank, b.rank), cmp.Compare(b.depth, a.depth),
			cmp.Compare(a.text, b.text),
		)
	})
}

// comparePaths orders places as a reader of the schema meets them. A whole comes before its
// parts.
func comparePaths(s *shape, a, b []any) int {
	for i := range min(len(a), len(b)) {
		if c := cmp.Compare(position(s, a[i]), position(s, b[i])); c != 0 {
			return c
		}
		if s != nil {
			s = s.at(a[i : i+1])
		}
	}
	return cmp.Compare(len(a), len(b))
}

func position(s *shape, step any) int {
	if i, ok := step.(int); ok {
		return i
	}
	if s == nil {
		return -1
	}
	name, _ := step.(string)
	return slices.Index(s.names, name)
}

// reader turns the leaves of a validation error into problems.
type reader struct {
	schema *schema
	found  []problem
}

// referrer is a schema with a $ref to another one. Its other keywords apply to the same value.
type referrer struct {
	depth int // depth of the value in the document
	node  any
}

func (r *reader) collect(v *jsonschema.ValidationError, by []referrer) {
	path := placeOf(r.schema.shape, v.InstanceLocation)
	at := layersAt(r.schema.doc, v.SchemaURL)
	for _, from := range by {
		if from.depth == len(v.InstanceLocation) {
			at = append(at, from.node)
		}
	}
	broken := ruleOf(at)
	add := func(rank int, text string, why string) {
		r.found = append(r.found, problem{path: path, rank: rank, depth: len(at), text: text, why: why})
	}
	switch k := v.ErrorKind.(type) {
	case *kind.Reference:
		if len(at) > 0 {
			by = append([]referrer{{len(v.InstanceLocation), at[len(at)-1]}}, by...)
		}
		for _, cause := range v.Causes {
			r.collect(cause, by)
		}
	case *kind.Schema, *kind.Group, *kind.AllOf:
		for _, cause := range v.Causes {
			r.collect(cause, by)
		}
	case *kind.Required:
		for _, name := range k.Missing {
			field := ruleOf(at.field(r.schema.doc, name))
			text := cmp.Or(field.missing, field.words, "is required")
			r.found = append(r.found, problem{
				path: append(slices.Clone(path), name), rank: rankMissing, depth: len(at), text: text,
				why: mediagate.ReasonRequired,
			})
		}
	case *kind.Type:
		add(rankType, broken.text()+r.asNumber(broken, k.Got == "string"), mediagate.ReasonWrongType)
	case *kind.Enum:
		_, isText := k.Got.(string)
		add(rankValue, broken.text()+r.asNumber(broken, isText), mediagate.ReasonNotOneOf)
	case *kind.Format:
		add(rankForm, formatWords(k.Want, k.Err), mediagate.ReasonMalformed)
	case *kind.AnyOf:
		if names := requiredNames(v.Causes); len(path) == 0 && len(names) > 0 {
			others := "or one of " + list(names[1:], "and")
			if len(names) == 2 {
				others = "or " + names[1]
			}
			r.found = append(
				r.found,
				problem{path: []any{names[0]}, rank: rankMissing, text: "is required, " + others, why: mediagate.ReasonRequired},
			)
			return
		}
		add(rankForm, broken.text(), mediagate.ReasonMalformed)
	case *kind.OneOf:
		add(rankForm, broken.text(), mediagate.ReasonMalformed)
	case *kind.MaxLength, *kind.MaxItems:
		add(rankSize, broken.text(), mediagate.ReasonTooLong)
	case *kind.MinLength, *kind.MinItems:
		add(rankSize, broken.text(), mediagate.ReasonTooShort)
	case *kind.Minimum, *kind.Maximum, *kind.ExclusiveMinimum, *kind.ExclusiveMaximum:
		add(rankValue, broken.text(), mediagate.ReasonOutOfRange)
	case *kind.Const:
		add(rankValue, broken.text(), mediagate.ReasonNotOneOf)
	default: // such as the pattern that a blank text breaks
		add(rankValue, broken.text(), "")
	}
}

// asNumber returns a hint for clients that sent a number as a string.
func (r *reader) asNumber(broken rule, isText bool) string {
	if isText && broken.wantsNumber() {
		return ", sent as a JSON number, not as a string"
	}
	return ""
}

// requiredNames returns the fields of an anyOf that only requires fields.
func requiredNames(causes []*jsonschema.ValidationError) []string {
	var names []string
	for _, cause := range causes {
		k, ok := cause.ErrorKind.(*kind.Required)
		if !ok {
			return nil
		}
		names = append(names, k.Missing...)
	}
	return names
}

// placeOf converts a validator's location to a path. The shape says which steps are indexes.
func placeOf(s *shape, location []string) []any {
	path := make([]any, 0, len(location))
	for _, step := range location {
		if s != nil && s.items != nil {
			if i, err := strconv.Atoi(step); err == nil {
				path, s = append(path, i), s.items
				continue
			}
		}
		path = append(path, step)
		if s != nil {
			s = s.properties[step]
		}
	}
	return path
}

// list joins words as a sentence does.
func list(words []string, last string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:len(words)-1], ", ") + " " + last + " " + words[len(words)-1]
}
