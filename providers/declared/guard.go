package declared

import (
	"fmt"
	"reflect"
	"regexp/syntax"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/itchyny/gojq"
)

// guard checks and changes a program before it is compiled. It refuses functions that an expression
// may not use. After each part that makes a value, guard adds a check of the value's size. Before
// each part that can cost many times the length of its input, guard adds a check of that input. A
// limit of steps would not be enough, since a single step can double a text.
type guard struct {
	keys   []string        // of objects, in their order in the program
	uses   map[string]bool // names of the variables used
	costs  map[*gojq.Func]int
	faults []string
}

// refused lists the functions that reach outside of an expression, such as the clock. After them it
// lists the functions whose cost cannot be bounded.
var refused = []string{
	"env", "$ENV", "input", "inputs", "debug", "stderr", "halt", "halt_error", "modulemeta", "builtins",
	"now", "localtime", "strflocaltime",
	"setpath", "getpath", "pick", "fromstream", "transpose", "INDEX", "JOIN", "jn", "yn",
}

// selectors lists the functions whose output needs no check. Some return parts of their input, and may
// stand where jq requires a path. The others return nothing, or a value of small size such as a number.
// After each function of jq that is not listed here, guard adds a check.
var selectors = []string{
	"select", "empty", "error", "first", "last", "limit", "skip", "nth", "recurse",
	"arrays", "objects", "iterables", "booleans", "numbers", "strings", "nulls", "values", "scalars",
	"not", "length", "type", "has", "any", "all", "startswith", "endswith", "isempty",
}

// regexpFuncs lists the functions that take a regular expression. The value is true if the function
// finds all matches even without the flag g.
var regexpFuncs = map[string]bool{
	"test": false, "match": false, "capture": false, "sub": false,
	"scan": true, "splits": true, "split": true, "gsub": true,
}

// costs lists functions whose output can be many times as long as their input. The value is the
// number of bytes that one input byte can become. costs also lists functions whose time grows faster
// than the length of their input.
var costs = map[string]int{
	"split": 64, "explode": 32, "fromjson": 64, "tonumber": 1,
	"index": 32, "rindex": 32, "indices": 32, "contains": 1, "inside": 1,
}

// replacements maps functions of jq to our replacements.
var replacements = map[string]string{"join": "_join", "tostring": "_string", "tojson": "_json"}

// operators maps operators to the functions that replace them.
var operators = map[gojq.Operator]string{gojq.OpMul: "_times", gojq.OpSub: "_minus", gojq.OpDiv: "_over"}

// maxPattern bounds a regular expression: its text in bytes and its compiled program in
// instructions.
const maxPattern = 500

func (g *guard) addFault(format string, args ...any) {
	g.faults = append(g.faults, fmt.Sprintf(format, args...))
}

// walk visits the parts of a program. It calls enter before the contents of a part, and leave after
// them. If enter returns false, walk skips the contents and does not call leave.
func walk(program any, enter func(part any) bool, leave func(part any)) {
	var in func(v reflect.Value)
	in = func(v reflect.Value) {
		switch v.Kind() {
		case reflect.Pointer:
			if !v.IsNil() && enter(v.Interface()) {
				in(v.Elem())
				if leave != nil {
					leave(v.Interface())
				}
			}
		case reflect.Struct:
			for _, field := range v.Fields() {
				in(field)
			}
		case reflect.Slice:
			for i := range v.Len() {
				in(v.Index(i))
			}
		default: // a name
		}
	}
	in(reflect.ValueOf(program))
}

// enter reports the faults of a part.
func (g *guard) enter(part any) bool {
	switch p := part.(type) {
	case *gojq.Query:
		if len(p.Imports) > 0 {
			g.addFault("import is not possible here")
		}
		if p.Op > gojq.OpModify || p.Op >= gojq.OpAssign && !isPlace(p.Left) {
			g.addFault("%s: an assignment is to members by their names, with = or |=", p)
		}
	case *gojq.FuncDef:
		for _, name := range append([]string{p.Name}, p.Args...) {
			if builtins()[name] {
				g.addFault("%s is not the file's to define", name)
			}
			g.checkName(name)
		}
	case *gojq.Func:
		if g.uses[p.Name] = true; slices.Contains(refused, p.Name) || p.Name == budgetVariable {
			g.addFault("%s is not possible here", p.Name)
		} else if strings.HasPrefix(p.Name, "_") {
			g.addFault("%s is no function", p.Name)
		}
		g.checkCall(p)
	case *gojq.Pattern:
		g.checkName(p.Name)
	case *gojq.PatternObject:
		g.checkName(p.Key)
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
	return true
}

// checkName reports an invalid name for a variable or a function.
func (g *guard) checkName(name string) {
	if strings.HasPrefix(name, "$_") || strings.HasPrefix(name, "_") {
		g.addFault("%s: names that begin with _ are not the file's to give", name)
	}
}

// checkCall records the cost of a function. Some arguments decide the cost, so checkCall requires
// them to be literal texts in the file.
func (g *guard) checkCall(f *gojq.Func) {
	cost := costs[f.Name]
	all, searches := regexpFuncs[f.Name]
	switch searches = searches && (f.Name != "split" || len(f.Args) > 1); {
	case f.Name == "strftime" && len(f.Args) == 1:
		if format, ok := literal(f.Args[0]); !ok || strings.ContainsAny(format, "0123456789") {
			g.addFault("strftime: the format must be a text in quotes, without digits")
		}
	case f.Name == "add" && len(f.Args) > 0:
		g.addFault("write [f] | add for add(f)")
	case searches && len(f.Args) > 0:
		pattern, ok := literal(f.Args[0])
		var flags string
		if at := 1 + strings.Count(f.Name, "sub"); len(f.Args) > at {
			var given bool
			flags, given = literal(f.Args[at])
			ok = ok && given
		}
		re, err := syntax.Parse(pattern, syntax.Perl)
		if !ok || len(pattern) > maxPattern || err != nil {
			const rule = "%s: pattern and flags must be texts in quotes, and the pattern valid and of at most %d bytes"
			g.addFault(rule, f.Name, maxPattern)
			return
		}
		prog, err := syntax.Compile(re.Simplify())
		if err != nil || len(prog.Inst) > maxPattern {
			g.addFault("%s: the pattern is too large: it repeats too much", f.Name)
			return
		}
		if cost = 64; all || strings.Contains(flags, "g") {
			cost = 512 * (1 + re.MaxCap()) // each match has its groups
		}
	}
	g.costs[f] = cost
}

// literal returns the text of a query that is only a literal string.
func literal(q *gojq.Query) (string, bool) {
	t := q.Term
	if t == nil || t.Type != gojq.TermTypeString || len(t.SuffixList)+len(q.FuncDefs)+len(t.Str.Queries) > 0 {
		return "", false
	}
	return t.Str.Str, true
}

// builtins returns the names of jq's functions.
var builtins = sync.OnceValue(func() map[string]bool {
	names := map[string]bool{}
	query, err := gojq.Parse("builtins[]")
	if err != nil {
		panic(err)
	}
	for iter := query.Run(nil); ; {
		name, ok := iter.Next()
		if !ok {
			return names
		}
		text, _, _ := strings.Cut(fmt.Sprint(name), "/")
		names[text] = true
	}
})

// isPlace reports whether a query is a path of literal member names, such as .a.b[].
func isPlace(q *gojq.Query) bool {
	if q.Term == nil || q.Term.Type != gojq.TermTypeIdentity && q.Term.Type != gojq.TermTypeIndex {
		return false
	}
	computed := func(i *gojq.Index) bool { return i != nil && (i.Start != nil || i.IsSlice) }
	return !computed(q.Term.Index) &&
		!slices.ContainsFunc(q.Term.SuffixList, func(s *gojq.Suffix) bool { return computed(s.Index) })
}

// leave adds the checks around a part.
func (g *guard) leave(part any) {
	switch p := part.(type) {
	case *gojq.Query:
		if name, ok := operators[p.Op]; ok {
			// The arguments are in the order in which jq evaluates operands.
			*p = gojq.Query{Term: call(name, p.Right, p.Left), FuncDefs: p.FuncDefs}
			addSizeCheck(p.Term)
		} else if p.Op == gojq.OpAdd || p.Op == gojq.OpMod || p.Op >= gojq.OpAssign {
			inner := *p
			*p = gojq.Query{Term: &gojq.Term{Type: gojq.TermTypeQuery, Query: &inner}}
			addSizeCheck(p.Term)
		}
	case *gojq.Index:
		if p.Start != nil && !p.IsSlice {
			p.Start = pipe(p.Start, call("_key"))
		}
	case *gojq.String:
		for i, q := range p.Queries {
			if _, ok := literal(q); !ok {
				p.Queries[i] = &gojq.Query{Term: &gojq.Term{Type: gojq.TermTypeQuery, Query: pipe(q, call("_plain"))}}
			}
		}
	case *gojq.Term:
		switch {
		case p.Type == gojq.TermTypeFunc:
			g.function(p)
		case p.Type == gojq.TermTypeFormat && p.Str == nil:
			*p = gojq.Term{Type: gojq.TermTypeQuery, SuffixList: p.SuffixList, Query: checkedTerm(p, maxOutput, 6)}
			addSizeCheck(p)
		case p.Str != nil && len(p.Str.Queries) > 0,
			slices.Contains([]gojq.TermType{gojq.TermTypeObject, gojq.TermTypeArray, gojq.TermTypeUnary}, p.Type):
			addSizeCheck(p)
		}
	}
}

// function adds the checks around a call of one of jq's functions, or replaces the function by a
// bounded one.
func (g *guard) function(t *gojq.Term) {
	f := t.Func
	if !builtins()[f.Name] || slices.Contains(selectors, f.Name) {
		return
	}
	if cost := g.costs[f]; cost > 0 {
		for i := range f.Args {
			f.Args[i] = pipe(f.Args[i], inputCheck(maxText, cost))
		}
		*t = gojq.Term{Type: gojq.TermTypeQuery, SuffixList: t.SuffixList, Query: checkedTerm(t, maxText, cost)}
	} else if strings.HasSuffix(f.Name, "_by") && len(f.Args) == 1 {
		f.Args[0] = pipe(f.Args[0], inputCheck(maxKey, 1))
	} else if name, ok := replacements[f.Name]; ok {
		f.Name = name
	}
	check(t, "_made")
}

func call(name string, args ...*gojq.Query) *gojq.Term {
	return &gojq.Term{Type: gojq.TermTypeFunc, Func: &gojq.Func{Name: name, Args: args}}
}

func number(n int) *gojq.Query {
	return &gojq.Query{Term: &gojq.Term{Type: gojq.TermTypeNumber, Number: strconv.Itoa(n)}}
}

func pipe(q *gojq.Query, into *gojq.Term) *gojq.Query {
	return &gojq.Query{Left: q, Op: gojq.OpPipe, Right: &gojq.Query{Term: into}}
}

// inputCheck returns the check of an input of a costly part.
func inputCheck(limit, cost int) *gojq.Term {
	return call("_takes", &gojq.Query{Term: call(budgetVariable)}, number(limit), number(cost))
}

// checkedTerm returns a query that checks the input and then evaluates the term without its suffixes.
func checkedTerm(t *gojq.Term, limit, cost int) *gojq.Query {
	inner := *t
	inner.SuffixList = nil
	return pipe(&gojq.Query{Term: inputCheck(limit, cost)}, &inner)
}

// addSizeCheck makes a term check the size of the value that it makes from its parts. The check comes
// before the term's suffixes.
func addSizeCheck(t *gojq.Term) { check(t, "_fits") }

func check(t *gojq.Term, name string) {
	inner := *t
	inner.SuffixList = nil
	*t = gojq.Term{
		Type: gojq.TermTypeQuery, SuffixList: t.SuffixList,
		Query: pipe(&gojq.Query{Term: &inner}, call(name, &gojq.Query{Term: call(budgetVariable)})),
	}
}
