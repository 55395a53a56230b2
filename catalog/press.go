package catalog

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/mediagate/mediagate"
)

// pressFile says which button of the earlier task a request presses if it names none: the first
// one whose id begins with the prefix, in which {field} stands for the value of that field. With
// When, the row applies to requests with these values. Clients see the ids of buttons and may
// name one, so the ids stand in the model's file, next to its routes, and in no code.
type pressFile struct {
	When   map[string]any `yaml:"when"`
	Prefix string         `yaml:"prefix"`
}

var placeholder = regexp.MustCompile(`\{([a-z_]+)\}`)

// fields lists the fields that a row reads.
func (p pressFile) fields() []string {
	var names []string
	for _, m := range placeholder.FindAllStringSubmatch(p.Prefix, -1) {
		names = append(names, m[1])
	}
	for name := range p.When {
		names = append(names, name)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// buttonFields lists the fields that choose a button.
func (r *SourceRule) buttonFields() []string {
	var names []string
	for _, row := range r.Press {
		names = append(names, row.fields()...)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// prefixes returns the prefixes of the buttons that the request means.
func (r *SourceRule) prefixes(params map[string]any) []string {
	var prefixes []string
	for _, row := range r.Press {
		fits := true
		for name, value := range row.When {
			fits = fits && fmt.Sprint(params[name]) == fmt.Sprint(jsonValue(value))
		}
		for _, name := range row.fields() {
			fits = fits && params[name] != nil
		}
		if fits {
			prefixes = append(prefixes, placeholder.ReplaceAllStringFunc(row.Prefix, func(m string) string {
				return fmt.Sprint(params[m[1:len(m)-1]])
			}))
		}
	}
	return prefixes
}

// ownerOf returns the model's operation that owns the button with this id, by the longest
// matching prefix, or nil.
func (m *Model) ownerOf(id string) *Operation {
	if id == "" {
		return nil
	}
	var owner *Operation
	longest := 0
	for _, o := range m.operations {
		if o.source == nil {
			continue
		}
		for _, prefix := range o.source.Owns {
			if len(prefix) > longest && strings.HasPrefix(id, prefix) {
				owner, longest = o, len(prefix)
			}
		}
	}
	return owner
}

// withoutButtonFields returns the body without the fields that choose a button, which have no
// effect if the request names one.
func (r *SourceRule) withoutButtonFields(body map[string]any) map[string]any {
	body = maps.Clone(body)
	for _, name := range r.buttonFields() {
		delete(body, name)
	}
	return body
}

func (r *SourceRule) pressProblems(s *shape) []string {
	if r.Button == "" && len(r.Press) == 0 && len(r.Owns) == 0 {
		return nil
	}
	var problems []string
	if field := s.properties[r.Button]; field == nil || !field.is("string") || r.Task == "" || len(r.Press) == 0 {
		problems = append(
			problems, fmt.Sprintf("button %q must be a text of the schema, in addition to task, with rows of press", r.Button),
		)
	}
	if slices.Contains(r.Owns, "") {
		problems = append(problems, "owns: a beginning is empty")
	}
	for i, row := range r.Press {
		if row.Prefix == "" {
			problems = append(problems, fmt.Sprintf("press: row %d has no prefix", i+1))
		}
		for _, name := range row.fields() {
			if s.properties[name] == nil {
				problems = append(problems, fmt.Sprintf("press: row %d: %q is no field of the schema", i+1, name))
			}
		}
		for name, value := range row.When {
			if s.properties[name] != nil && !slices.Contains(valuesOf(s.properties[name]), jsonValue(value)) {
				problems = append(problems, fmt.Sprintf("press: row %d: %s can never be %v", i+1, name, value))
			}
		}
	}
	return problems
}

// PickButton returns the button that the request presses, among those that the earlier task offers.
// Its errors are for the client, and say what that task is and what it offers.
func (s *Source) PickButton(task *mediagate.Task) (mediagate.Button, error) {
	var offered []mediagate.Button
	if task.Made != nil {
		offered = task.Made.Buttons
	}
	if s.Button != "" {
		for _, b := range offered {
			if b.CustomID == s.Button {
				return b, nil
			}
		}
		return mediagate.Button{}, mediagate.Invalid(
			s.Rule.Button, "%s is not on offer by the task, %s: %s", s.Rule.Button, whatIs(task), offer(offered),
		)
	}
	for _, prefix := range s.prefixes {
		for _, b := range offered {
			if strings.HasPrefix(b.CustomID, prefix) {
				return b, nil
			}
		}
	}
	field := s.Rule.Task
	if fields := s.Rule.buttonFields(); len(fields) > 0 {
		field = fields[0]
	}
	return mediagate.Button{}, mediagate.Invalid(
		field, "%s: the task offers no such action, %s: %s", field, whatIs(task), offer(offered),
	)
}

// whatIs describes a task for a message.
func whatIs(task *mediagate.Task) string {
	return fmt.Sprintf("its type is %s and its action %s", task.Type, task.Plan.Action)
}

// offer lists buttons for a message.
func offer(buttons []mediagate.Button) string {
	if len(buttons) == 0 {
		return "it offers none"
	}
	words := make([]string, len(buttons))
	for i, b := range buttons {
		words[i] = b.CustomID
		if b.Label != "" {
			words[i] += " (" + b.Label + ")"
		}
	}
	return "it offers " + list(words, "and")
}
