package catalog

import (
	"fmt"
	"slices"
)

// inferFile is a rule that gives an absent field a value if another field is present. The first
// rule that applies counts.
type inferFile struct {
	Field string `yaml:"field"`
	Value any    `yaml:"value"`
	With  names  `yaml:"with"` // applies if one of these is given and not blank
}

func compileInfer(files []inferFile, s *shape) (rules []inferFile, problems []string) {
	for i, f := range files {
		f.Value = jsonValue(f.Value)
		if !slices.Contains(valuesOf(s.properties[f.Field]), f.Value) {
			problems = append(problems, fmt.Sprintf("rule %d: %q can never be %v", i+1, f.Field, f.Value))
		}
		if len(f.With) == 0 {
			problems = append(problems, fmt.Sprintf("rule %d: with is missing", i+1))
		}
		for _, name := range f.With {
			if s.properties[name] == nil {
				problems = append(problems, fmt.Sprintf("rule %d: %q is no field of the schema", i+1, name))
			}
		}
		rules = append(rules, f)
	}
	return rules, problems
}

// infer sets the fields that follow from other fields.
func infer(rules []inferFile, given map[string]any) {
	for _, r := range rules {
		if _, ok := given[r.Field]; ok {
			continue
		}
		if slices.ContainsFunc(r.With, func(name string) bool { v, ok := given[name]; return ok && !blank(v) }) {
			given[r.Field] = r.Value
		}
	}
}
