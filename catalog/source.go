package catalog

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/mediagate/mediagate"
)

// SourceRule says by which fields requests of an operation name an earlier task's result. These
// fields are not part of the canonical request: the result is looked up and comes to adapters as
// a mediagate.Source.
type SourceRule struct {
	Task   string   `yaml:"task"`   // the field with the id of the task that made it
	Index  string   `yaml:"index"`  // with Task: the field that says which of its clips, from 1
	Clip   string   `yaml:"clip"`   // the field with the clip's own id
	Voice  string   `yaml:"voice"`  // the field with the voice's own id
	Button string   `yaml:"button"` // with Task: the field that names the button to press
	Of     []string `yaml:"of"`     // the ids of the models that may have made it
	Within []string `yaml:"within"` // fields with times in the result, at most its length; the last one defaults to the length

	Press []pressFile `yaml:"press"` // which button to press if none is named
	// Owns are the prefixes of the buttons that belong to this operation, wherever a request names
	// one: the price is that of the button.
	Owns []string `yaml:"owns"`
}

// Source is the earlier result that a request names. Of Task, Clip and Voice only the ones that
// the request uses are set.
type Source struct {
	Rule  SourceRule
	Task  string
	Index int // from 1
	Clip  string
	Voice string

	Fields map[string]any // the fields of the request that name it, with defaults

	Button string // as the request names it; empty if other fields choose it

	prefixes []string // of the button
	times    map[string]float64
}

// Field returns the field that names the source.
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

// CheckTimes refuses times beyond the end of a source of this length, and a time at its end that
// is followed by nothing but the end. Without a length it checks nothing.
func (s *Source) CheckTimes(seconds float64) error {
	if seconds <= 0 {
		return nil
	}
	seconds = mediagate.ShownSeconds(seconds) // a client may send back the time that it was shown
	for i, name := range s.Rule.Within {
		at, given := s.times[name]
		open := i+1 < len(s.Rule.Within) && !s.given(s.Rule.Within[i+1:])
		if given && (at > seconds || open && at == seconds) {
			return mediagate.Invalid(
				name, "%s must be within the clip, which is %s seconds long", name, strconv.FormatFloat(seconds, 'f', -1, 64),
			)
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

// sourceFields lists the fields that are removed from the request.
func (r *SourceRule) sourceFields() []string {
	if r == nil {
		return nil
	}
	return slices.DeleteFunc(
		append(r.buttonFields(), r.Task, r.Index, r.Clip, r.Voice, r.Button), func(name string) bool { return name == "" },
	)
}

// extract removes the fields that name the source from the parameters. It returns nil if there is
// no source.
func (r *SourceRule) extract(params map[string]any) *Source {
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
	for _, name := range r.sourceFields() {
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

// problems lists what is wrong with the rule.
func (r *SourceRule) problems(s *shape) []string {
	if r == nil {
		return nil
	}
	var problems []string
	for _, name := range slices.DeleteFunc(
		[]string{r.Task, r.Clip, r.Voice}, func(name string) bool { return name == "" },
	) {
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
		if r.Task == "" || field == nil || !field.is("integer") || !field.hasFallback || low != 1 || high < 1 ||
			high > maxSourceIndex {
			problems = append(
				problems,
				fmt.Sprintf("index %q must be an integer from 1 to at most %d, with a default, in addition to task", r.Index, maxSourceIndex),
			)
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
