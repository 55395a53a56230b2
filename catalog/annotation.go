package catalog

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// annotations are the keywords of a schema for readers who build a form or a request from it.
// They do not affect validation, except that x-media sets the bounds of files.
type annotations struct {
	title, description string
	examples           []any
	unit, group        *string    // x-unit and x-group; nil for none
	media              *mediaRule // x-media
	problems           []string
}

// annotate reads the keyword if it is an annotation.
func (a *annotations) annotate(key string, value any) {
	text := fmt.Sprint(value)
	switch key {
	case "title":
		a.title = text
	case "description":
		a.description = text
	case "examples":
		a.examples, _ = value.([]any)
	case "x-unit":
		a.unit = &text
	case "x-group":
		a.group = &text
	case "x-media":
		a.media, a.problems = readMedia(value)
	}
}

var (
	schemaUnits = []string{"seconds", "characters", "pixels"}
	groupWord   = regexp.MustCompile(`^[a-z]+$`)
)

// checkAnnotations finds missing annotations: each field must say what it is and does, and show
// an example unless its values are listed. It also checks that examples and defaults are valid.
func (s *schema) checkAnnotations() []string {
	problems := s.shape.unannotated("", s.shape)
	for _, name := range s.shape.names {
		field := s.shape.properties[name]
		validator, err := s.compile("/properties/" + pointerEscape.Replace(name))
		if err != nil {
			problems = append(problems, fmt.Sprintf("properties.%s: %v", name, err))
			continue
		}
		for i, example := range field.notes.examples {
			if validator.Validate(jsonValue(example)) != nil {
				problems = append(problems, fmt.Sprintf("properties.%s.examples[%d] breaks the field's own rules", name, i))
			}
		}
		if field.hasFallback && validator.Validate(field.fallback) != nil {
			problems = append(problems, fmt.Sprintf("properties.%s.default breaks the field's own rules", name))
		}
	}
	return prefixed("schema: ", problems)
}

var pointerEscape = strings.NewReplacer("~", "~0", "/", "~1")

// unannotated returns the problems of the fields of an object, recursively.
func (s *shape) unannotated(path string, root *shape) []string {
	var problems []string
	for _, name := range s.names {
		field := s.properties[name]
		if field.never { // no request can have it
			continue
		}
		at := path + "properties." + name
		problems = append(problems, prefixed(at+": ", field.missingNotes(name == s.standsFor))...)
		if field.notes.media != nil {
			problems = append(problems, prefixed(at+": ", field.notes.media.misplacements(field, root))...)
		}
		problems = append(problems, field.unannotated(at+".", root)...)
		if field.items != nil {
			problems = append(problems, field.items.unannotated(at+".items.", root)...)
		}
	}
	return problems
}

// missingNotes returns the problems of one field. In an object that stands for a file, the outer
// field has the x-media.
func (s *shape) missingNotes(within bool) []string {
	var problems []string
	demand := func(ok bool, problem string) {
		if !ok {
			problems = append(problems, problem)
		}
	}
	n := s.notes
	demand(strings.TrimSpace(n.title) != "", "title is missing")
	demand(strings.TrimSpace(n.description) != "", "description is missing")
	listed := len(s.enum) > 0 || s.constant != nil || len(s.kinds) > 0 && !slices.ContainsFunc(
		s.kinds, func(kind string) bool { return kind != "boolean" },
	)
	demand(listed || len(n.examples) > 0, "examples are missing: a list")
	demand(n.unit == nil || slices.Contains(schemaUnits, *n.unit), "x-unit must be "+list(schemaUnits, "or"))
	demand(n.group == nil || groupWord.MatchString(*n.group), "x-group must be one word in small letters")
	if n.media == nil && len(n.problems) == 0 {
		demand(!s.takesMedia() || within, "x-media is missing: the field takes media")
	}
	return append(problems, n.problems...)
}

// takesMedia reports whether the field is a file's address, or a list of them.
func (s *shape) takesMedia() bool {
	switch {
	case s.media:
		return true
	case s.standsFor != "":
		return s.properties[s.standsFor] != nil && s.properties[s.standsFor].media
	case s.items != nil:
		return s.items.media || s.items.standsFor != "" && s.items.takesMedia()
	default:
		return false
	}
}
