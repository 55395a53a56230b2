package catalog

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"

	"github.com/mediagate/mediagate"
)

// problem is one broken rule: where, and in words that follow the name of
// the field.
type problem struct {
	path []any // names and indexes
	rank int   // of several at one place, the lowest is told
	text string
}

// The ranks of problems. A wrong type comes first since the rest would only
// follow from it.
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
		return mediagate.Invalid("", "the request %s", p.text)
	}
	return mediagate.Invalid(param, "%s %s", param, p.text)
}

// paramName writes a path the way clients read it: multi_prompt[0].duration.
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

// firstProblem picks from a validator's verdict the problem that comes first
// in the order of the schema's fields, whatever order it was found in.
func firstProblem(root *shape, verdict *jsonschema.ValidationError) problem {
	var found []problem
	collect(root, verdict, &found)
	if len(found) == 0 { // a keyword that collect does not know
		return problem{text: "does not match the model's schema"}
	}
	return slices.MinFunc(found, func(a, b problem) int {
		return cmp.Or(comparePaths(root, a.path, b.path), cmp.Compare(a.rank, b.rank), cmp.Compare(a.text, b.text))
	})
}

// comparePaths orders places as a reader of the schema meets them; the whole
// comes before its parts.
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

// collect turns the leaves of a verdict into problems.
func collect(root *shape, v *jsonschema.ValidationError, found *[]problem) {
	path := placeOf(root, v.InstanceLocation)
	s := root.at(path)
	add := func(rank int, text string) { *found = append(*found, problem{path: path, rank: rank, text: text}) }
	switch k := v.ErrorKind.(type) {
	case *kind.Schema, *kind.Group, *kind.AllOf, *kind.Reference:
		for _, cause := range v.Causes {
			collect(root, cause, found)
		}
	case *kind.Required:
		for _, name := range k.Missing {
			text := "is required"
			if field := s.at([]any{name}); field != nil && field.rule != "" {
				text = field.rule
			}
			*found = append(*found, problem{path: append(slices.Clone(path), name), rank: rankMissing, text: text})
		}
	case *kind.Type:
		text := ruleOf(s)
		if k.Got == "string" && (s.is("integer") || s.is("number")) {
			text += ", sent as a JSON number, not as a string"
		}
		add(rankType, text)
	case *kind.Enum:
		text := ruleOf(s)
		if _, isText := k.Got.(string); isText && s != nil && len(s.enum) > 0 {
			if _, wantsNumber := s.enum[0].(json.Number); wantsNumber {
				text += ", sent as a JSON number, not as a string"
			}
		}
		add(rankValue, text)
	case *kind.Format:
		add(rankForm, reasonOf(k.Err))
	case *kind.AnyOf:
		if names := requiredNames(v.Causes); len(path) == 0 && len(names) > 0 {
			*found = append(*found, problem{path: []any{names[0]}, rank: rankMissing, text: "is required, or one of " + list(names[1:], "and")})
			return
		}
		add(rankForm, ruleOf(s))
	case *kind.OneOf:
		add(rankForm, ruleOf(s))
	case *kind.MinLength, *kind.MaxLength, *kind.MinItems, *kind.MaxItems:
		add(rankSize, ruleOf(s))
	default:
		add(rankValue, ruleOf(s))
	}
}

// requiredNames are the fields of an anyOf that only demands fields.
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

// placeOf turns a validator's location into a path: what is an index and
// what a name depends on the shape.
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

// reasonOf is the text of a URL check's refusal, without the field's name.
func reasonOf(err error) string {
	var e *mediagate.Error
	if errors.As(err, &e) && e.Message != "" {
		return "is refused: " + e.Message
	}
	return "must be an absolute http or https URL"
}

// ruleOf says in words what a value must be.
func ruleOf(s *shape) string {
	switch {
	case s == nil:
		return "is not allowed"
	case s.rule != "":
		return s.rule
	case s.constant != nil:
		return fmt.Sprintf("must be %v", s.constant)
	case len(s.enum) > 0:
		words := make([]string, len(s.enum))
		for i, v := range s.enum {
			words[i] = fmt.Sprint(v)
		}
		return "must be " + list(words, "or")
	case s.is("boolean"):
		return "must be true or false"
	case s.is("integer"):
		return "must be an integer" + rangeText(s)
	case s.is("number"):
		return "must be a number" + rangeText(s)
	case s.is("array"):
		return "must be an array" + sizeText(s.minItems, s.maxItems, "item")
	case s.is("object"):
		return "must be an object"
	case s.format == "uri":
		return fmt.Sprintf("must be an http or https URL of at most %d characters", s.maxLength)
	case s.is("string"):
		return "must be a string" + sizeText(s.minLength, s.maxLength, "character")
	default:
		return "breaks a rule of the model's schema"
	}
}

func rangeText(s *shape) string {
	switch {
	case s.minimum != "" && s.maximum != "":
		return fmt.Sprintf(" between %s and %s", s.minimum, s.maximum)
	case s.minimum != "":
		return fmt.Sprintf(" of at least %s", s.minimum)
	case s.maximum != "":
		return fmt.Sprintf(" of at most %s", s.maximum)
	default:
		return ""
	}
}

func sizeText(low, high int64, unit string) string {
	plural := func(n int64) string {
		if n == 1 {
			return unit
		}
		return unit + "s"
	}
	switch {
	case high > 0 && low > 0:
		return fmt.Sprintf(" of %d to %d %s", low, high, plural(high))
	case high > 0:
		return fmt.Sprintf(" of at most %d %s", high, plural(high))
	case low > 0:
		return fmt.Sprintf(" of at least %d %s", low, plural(low))
	default:
		return ""
	}
}

// list joins words as a sentence does.
func list(words []string, last string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:len(words)-1], ", ") + " " + last + " " + words[len(words)-1]
}
