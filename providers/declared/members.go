package declared

import (
	"slices"
	"strings"

	"github.com/itchyny/gojq"
)

// members returns the names of the members that a program certainly reads of its input. Parts after a
// pipe or within a function may have another input, so members leaves them out.
func members(q *gojq.Query) (names []string) {
	r := memberCollector{func(name string) {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}}
	walk(q, r.enter, nil)
	return names
}

// memberCollector visits those parts of a program that have the same input as the whole program.
type memberCollector struct{ add func(name string) }

// enter reports whether walk should visit the contents of a part.
func (r memberCollector) enter(part any) bool {
	within := func(parts ...*gojq.Query) bool {
		walk(parts, r.enter, nil)
		return false
	}
	switch p := part.(type) {
	case *gojq.Func, *gojq.FuncDef:
		return false
	case *gojq.Query:
		if p.Op == gojq.OpModify || p.Op == gojq.OpPipe && len(p.Patterns) == 0 {
			if p.Left.String() == "." {
				return within(p.Right)
			}
			return within(p.Left)
		}
	case *gojq.Reduce:
		return within(p.Query, p.Start)
	case *gojq.Foreach:
		return within(p.Query, p.Start)
	case *gojq.Try:
		return within(p.Body)
	case *gojq.Suffix: // a further step of a path may be computed from the input
		if p.Index == nil {
			return false
		}
		return within(p.Index.Start, p.Index.End)
	case *gojq.Index: // the first step, such as .prompt or .["prompt"]
		r.name(p.Name, p.Str)
		if p.Start != nil && p.Start.Term != nil {
			r.name("", p.Start.Term.Str)
		}
	case *gojq.ObjectKeyVal: // {prompt} reads .prompt
		if p.Val == nil && !strings.HasPrefix(p.Key, "$") {
			r.name(p.Key, p.KeyString)
		}
	}
	return true
}

// name adds a name, which may be a quoted text.
func (r memberCollector) name(name string, quoted *gojq.String) {
	if quoted != nil && len(quoted.Queries) == 0 {
		name = quoted.Str
	}
	if name != "" {
		r.add(name)
	}
}
