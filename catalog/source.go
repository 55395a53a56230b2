package catalog

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/mediagate/mediagate"
)

// SourceRule says by which fields requests of an operation name what an
// earlier task made and they work on. These fields are no part of the canonical
// request: what they name is looked up, and comes to adapters as a
// mediagate.Source.
type SourceRule struct {
	Task   string   `yaml:"task"`   // the id of the task that made it
	Index  string   `yaml:"index"`  // beside it: which of its clips, from 1
	Clip   string   `yaml:"clip"`   // a clip's own id
	Voice  string   `yaml:"voice"`  // a voice's own id
	Button string   `yaml:"button"` // beside the id of the task: a button of it, which is pressed
	Of     []string `yaml:"of"`     // the models one of which made it, by their ids
	Within []string `yaml:"within"` // fields with seconds of it, which stay: none is beyond its end, the last is that end where it is not given

	Press []pressFile `yaml:"press"` // which button, where none is named
	// Owns are the beginnings of the buttons that are this operation, wherever
	// a request names one: what is pressed is what is charged.
	Owns []string `yaml:"owns"`
}

// Source is what a request names. Of a rule's fields that it may name one by,
// those that it does not are empty.
type Source struct {
	Rule  SourceRule
	Task  string
	Index int // from 1
	Clip  string
	Voice string

	Fields map[string]any // of the request that name it, with their defaults

	Button string // as named; empty for the one that the fields say

	prefixes []string // of that button
	times    map[string]float64
}

// Field is the field that names it.
func (s *Source) Field() string {
	switch {
	case s.Task != "":
		return s.Rule.Task
	case s.Clip != "":
		return s.Rule.Clip
	default:
		return s.Rule.Voice
	}
}

// Fits refuses times that are beyond the end of a source of that length, and
// one at its end that nothing follows but that end; without a length there is
// nothing to judge by.
func (s *Source) Fits(seconds float64) error {
	if seconds <= 0 {
		return nil
	}
	seconds = mediagate.ShownSeconds(seconds) // a client may send back what it was shown
	for i, name := range s.Rule.Within {
		at, given := s.times[name]
		open := i+1 < len(s.Rule.Within) && !s.given(s.Rule.Within[i+1:])
		if given && (at > seconds || open && at == seconds) {
			return mediagate.Invalid(name, "%s must be within the clip, which is %s seconds long", name, strconv.FormatFloat(seconds, 'f', -1, 64))
		}
	}
	return nil
}

// given reports whether the request has any of these times.
func (s *Source) given(names []string) bool {
	return slices.ContainsFunc(names, func(name string) bool {
		_, given := s.times[name]
		return given
	})
}

// taken are the fields that leave the request.
func (r *SourceRule) taken() []string {
	if r == nil {
		return nil
	}
	return slices.DeleteFunc(append(r.pressed(), r.Task, r.Index, r.Clip, r.Voice, r.Button), func(name string) bool { return name == "" })
}

// take moves what names the source out of the parameters; nil for none.
func (r *SourceRule) take(params map[string]any) *Source {
	if r == nil {
		return nil
	}
	s := &Source{Rule: *r, Fields: map[string]any{}, times: map[string]float64{}}
	s.Task, _ = params[r.Task].(string)
	s.Clip, _ = params[r.Clip].(string)
	s.Voice, _ = params[r.Voice].(string)
	if n, ok := int64Of(params[r.Index]); ok {
		s.Index = int(n)
	}
	if s.Button, _ = params[r.Button].(string); strings.TrimSpace(s.Button) == "" {
		s.Button = ""
	}
	s.prefixes = r.prefixes(params)
	for _, name := range r.taken() {
		if value, given := params[name]; given {
			s.Fields[name] = value
		}
		delete(params, name)
	}
	for _, name := range r.Within {
		if n, given := params[name].(json.Number); given {
			s.times[name], _ = n.Float64()
		}
	}
	if s.Task == "" && s.Clip == "" && s.Voice == "" {
		return nil
	}
	return s
}

// maxSourceIndex is far above the number of clips of any task.
const maxSourceIndex = 1000

// problems says what is wrong with a rule.
func (r *SourceRule) problems(s *shape) []string {
	if r == nil {
		return nil
	}
	var problems []string
	for _, name := range slices.DeleteFunc([]string{r.Task, r.Clip, r.Voice}, func(name string) bool { return name == "" }) {
		if field := s.properties[name]; field == nil || !field.is("string") {
			problems = append(problems, fmt.Sprintf("%q is no text of the schema", name))
		}
	}
	if r.Task == "" && r.Clip == "" && r.Voice == "" {
		problems = append(problems, "task, clip or voice must name a field")
	}
	if r.Index != "" {
		field := s.properties[r.Index]
		low, high := int64(0), int64(0)
		if field != nil {
			low, _ = int64Of(field.minimum)
			high, _ = int64Of(field.maximum)
		}
		if r.Task == "" || field == nil || !field.is("integer") || !field.hasFallback || low != 1 || high < 1 || high > maxSourceIndex {
			problems = append(problems, fmt.Sprintf("index %q must be an integer from 1, at most %d, with a default, beside task", r.Index, maxSourceIndex))
		}
	}
	for _, name := range r.Within {
		if field := s.properties[name]; field == nil || !field.is("number") {
			problems = append(problems, fmt.Sprintf("within: %q is no number of the schema", name))
		}
	}
	problems = append(problems, r.pressProblems(s)...)
	if len(r.Of) == 0 {
		problems = append(problems, "of is missing: the models whose results it takes")
	}
	return problems
}
