package declared

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/itchyny/gojq"
)

// guard goes through a program before it is compiled. It refuses what an expression may
// not do, and puts a check of size behind each part that makes a value. So no step makes
// more than a few times what it may: gojq counts steps, and one step can double a text.
type guard struct {
	keys   []string        // of objects, in their order
	uses   map[string]bool // variables
	faults []string
}

// refused are the functions that reach out of an expression, and then those whose output
// cannot be bounded.
var refused = []string{
	"env", "$ENV", "input", "inputs", "debug", "stderr", "halt", "halt_error", "modulemeta", "builtins",
	"now", "localtime", "strflocaltime",
	"setpath", "pick", "fromstream", "transpose",
}

// searching are the functions with a regular expression.
var searching = []string{"test", "match", "capture", "scan", "splits", "split", "sub", "gsub"}

// selecting are the functions that return parts of their input, which may stand where
// jq wants a path, or a value of no size. All others make values.
var selecting = []string{
	"select", "empty", "error", "first", "last", "limit", "skip", "nth", "recurse", "getpath", "path",
	"arrays", "objects", "iterables", "booleans", "numbers", "strings", "nulls", "values", "scalars",
	"not", "length", "type", "has", "any", "all", "startswith", "endswith", "isempty",
}

func (g *guard) wrong(format string, args ...any) {
	g.faults = append(g.faults, fmt.Sprintf(format, args...))
}

// walk goes through the parts of a program, and calls enter before and leave behind what
// is in them.
func (g *guard) walk(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			g.enter(v.Interface())
			g.walk(v.Elem())
			g.leave(v.Interface())
		}
	case reflect.Struct:
		for _, field := range v.Fields() {
			g.walk(field)
		}
	case reflect.Slice:
		for i := range v.Len() {
			g.walk(v.Index(i))
		}
	default: // a name
	}
}

// enter refuses what is not possible.
func (g *guard) enter(part any) {
	switch p := part.(type) {
	case *gojq.Query:
		if len(p.Imports) > 0 {
			g.wrong("import is not possible here")
		}
		if isUpdate(p.Op) && (p.Op == gojq.OpUpdateMul || !isPlace(p.Left)) {
			g.wrong("%s: an assignment is to members by their names, without *=", p)
		}
	case *gojq.FuncDef:
		for _, name := range append([]string{p.Name}, p.Args...) {
			if slices.Contains(slices.Concat(refused, searching, []string{"add", "join"}), name) {
				g.wrong("%s is not the file's to define", name)
			}
			g.name(name)
		}
	case *gojq.Func:
		if g.uses[p.Name] = true; slices.Contains(refused, p.Name) || p.Name == room {
			g.wrong("%s is not possible here", p.Name)
		} else if strings.HasPrefix(p.Name, "_") {
			g.wrong("%s is no function", p.Name)
		}
	case *gojq.Pattern:
		g.name(p.Name)
	case *gojq.PatternObject:
		g.name(p.Key)
	case *gojq.ObjectKeyVal:
		if strings.HasPrefix(p.Key, "$") {
			g.enter(&gojq.Func{Name: p.Key})
		}
		key := strings.TrimPrefix(p.Key, "$")
		if p.KeyString != nil && len(p.KeyString.Queries) == 0 {
			key = p.KeyString.Str
		}
		if !slices.Contains(g.keys, key) {
			g.keys = append(g.keys, key)
		}
	}
}

// name guards a name that the program gives to a variable or a function.
func (g *guard) name(name string) {
	if strings.HasPrefix(name, "$_") || strings.HasPrefix(name, "_") {
		g.wrong("%s: names that begin with _ are not the file's to give", name)
	}
}

func isUpdate(op gojq.Operator) bool {
	return slices.Contains([]gojq.Operator{
		gojq.OpAssign, gojq.OpModify, gojq.OpUpdateAdd, gojq.OpUpdateSub,
		gojq.OpUpdateMul, gojq.OpUpdateDiv, gojq.OpUpdateMod, gojq.OpUpdateAlt,
	}, op)
}

// isPlace reports whether a query leads to members by their names, such as .a.b[].
func isPlace(q *gojq.Query) bool {
	if q.Term == nil || q.Term.Type != gojq.TermTypeIdentity && q.Term.Type != gojq.TermTypeIndex {
		return false
	}
	computed := func(i *gojq.Index) bool { return i != nil && (i.Start != nil || i.IsSlice) }
	return !computed(q.Term.Index) &&
		!slices.ContainsFunc(q.Term.SuffixList, func(s *gojq.Suffix) bool { return computed(s.Index) })
}

// leave puts the check behind a part.
func (g *guard) leave(part any) {
	switch p := part.(type) {
	case *gojq.Query:
		switch p.Op {
		case gojq.OpMul:
			*p = gojq.Query{Term: call("_times", p.Left, p.Right), FuncDefs: p.FuncDefs}
			fit(p.Term)
		case gojq.OpAdd, gojq.OpSub, gojq.OpDiv, gojq.OpMod:
			g.wrap(p)
		default:
			if isUpdate(p.Op) {
				g.wrap(p)
			}
		}
	case *gojq.Term:
		switch p.Type {
		case gojq.TermTypeObject, gojq.TermTypeArray, gojq.TermTypeFormat, gojq.TermTypeString:
			fit(p)
		case gojq.TermTypeFunc:
			g.function(p)
		default: // has no value of its own
		}
	}
}

func (g *guard) wrap(q *gojq.Query) {
	inner := *q
	*q = gojq.Query{Term: &gojq.Term{Type: gojq.TermTypeQuery, Query: &inner}}
	fit(q.Term)
}

// function puts the check behind a call of a function, and bounded ones in the place of
// some.
func (g *guard) function(t *gojq.Term) {
	f := t.Func
	switch {
	case strings.HasPrefix(f.Name, "$"), slices.Contains(selecting, f.Name):
		return
	case f.Name == "add" && len(f.Args) > 0:
		g.wrong("write [f] | add for add(f)")
	case f.Name == "join":
		f.Name = "_join"
	case slices.Contains(searching, f.Name):
		if strings.HasSuffix(f.Name, "sub") && len(f.Args) > 1 {
			f.Args[1] = pipe(f.Args[1], call("_part"))
		}
		inner := *t
		inner.SuffixList = nil
		query := pipe(&gojq.Query{Term: call("_part")}, &inner)
		*t = gojq.Term{Type: gojq.TermTypeQuery, SuffixList: t.SuffixList, Query: query}
	case strings.HasSuffix(f.Name, "_by") && len(f.Args) == 1:
		f.Args[0] = pipe(f.Args[0], call("_part"))
	}
	fit(t)
}

func call(name string, args ...*gojq.Query) *gojq.Term {
	return &gojq.Term{Type: gojq.TermTypeFunc, Func: &gojq.Func{Name: name, Args: args}}
}

func pipe(q *gojq.Query, into *gojq.Term) *gojq.Query {
	return &gojq.Query{Left: q, Op: gojq.OpPipe, Right: &gojq.Query{Term: into}}
}

// fit puts the check of size behind a term, before its suffixes.
func fit(t *gojq.Term) {
	inner := *t
	inner.SuffixList = nil
	*t = gojq.Term{
		Type: gojq.TermTypeQuery, SuffixList: t.SuffixList,
		Query: pipe(&gojq.Query{Term: &inner}, call("_fits", &gojq.Query{Term: call(room)})),
	}
}
