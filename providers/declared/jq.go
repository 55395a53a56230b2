package declared

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/itchyny/gojq"

	"github.com/mediagate/mediagate/providers/vendorhttp"
)

// The limits of an expression.
const (
	maxSource = 64 << 10 // of its text, in bytes
	maxSteps  = 100_000
	maxOutput = 1 << 20  // of each value, and of all outputs together, in addition to the size of the input
	maxMade   = 16 << 20 // of all values that are made, in addition to four times the size of the input
	maxTime   = time.Second
	maxText   = 16 << 10 // of the input of a costly function, such as a search
	maxKey    = 4 << 10  // of a sort key
	maxDigits = 1000     // of a number
)

// errBounds is the error of an expression that exceeded its limits.
var errBounds = errors.New("an expression goes beyond its bounds")

// scope holds what an expression may use in addition to its input: one variable for each field.
type scope struct {
	model, task, callback string // for a submission
	job, kept             string // for calls about a job
	source, poll          any    // poll is the answer to the poll, for a result that has its own call
	options               map[string]string
	call                  string         // the call whose answer is read
	status                int            // of the answer
	headers               map[string]any // of the answer, by their lower-case names
	code                  string         // of the error that the answer states
}

// budgetVariable is the variable that holds the budget of the run.
const budgetVariable = "$__run"

func variables() []string {
	return []string{
		"$model", "$task", "$callback", "$job", "$kept", "$source", "$poll", "$options", "$call", "$status", "$headers",
		"$code", budgetVariable,
	}
}

func (s scope) values(b *budget) []any {
	var values []any
	for _, text := range []string{s.model, s.task, s.callback, s.job, s.kept} {
		values = append(values, orNull(text))
	}
	options := map[string]any{}
	for name, option := range s.options {
		options[name] = option
	}
	return append(values, s.source, s.poll, options, orNull(s.call), s.status, s.headers, orNull(s.code), b)
}

func orNull(text string) any {
	if text == "" {
		return nil
	}
	return text
}

// expression is a jq program of a file. A nil expression has no outputs.
type expression struct {
	code  *gojq.Code
	keys  []string        // of objects, in the order in which the program names them
	uses  map[string]bool // names of the variables used
	reads []string        // members of the input
}

// programError is the error of a program that failed. The cause may quote a request or an answer,
// so only examples show it.
type programError struct{ cause error }

// Error does not include the cause.
func (*programError) Error() string { return "an expression of the file fails" }

// run returns the outputs. Its error is errBounds if the run exceeds a limit; any other error is a
// *programError.
func (e *expression) run(input any, s scope) (outputs []any, err error) {
	if e == nil {
		return nil, nil
	}
	given := size(input) + size(s.poll)
	if given > oversize {
		return nil, errBounds
	}
	b := &budget{
		Context: context.Background(), steps: maxSteps, until: time.Now().Add(maxTime),
		room: maxOutput + given, made: maxMade + 4*given,
	}
	left := b.room
	for iter := e.code.RunWithContext(b, input, s.values(b)...); ; {
		output, ok := iter.Next()
		if !ok {
			return outputs, nil
		}
		if err, failed := output.(error); failed && errors.Is(err, errBounds) {
			return nil, errBounds
		} else if failed {
			return nil, &programError{err}
		}
		if left -= sizeUpTo(output, left); left < 0 {
			return nil, errBounds
		}
		outputs = append(outputs, output)
	}
}

// budget is what a run may still use. It is the context of the run, since gojq calls Done before each
// step. The checks in the program charge the budget for the values that they see.
type budget struct {
	context.Context
	steps int
	room  int // limit of one value
	made  int // what is left of the limit for all values
	until time.Time
}

var closed = func() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()

// Done counts a step. It returns a closed channel if the budget is used up.
func (b *budget) Done() <-chan struct{} {
	if b.steps--; b.steps < 0 || b.made < 0 || time.Now().After(b.until) {
		return closed
	}
	return nil
}

// Err returns why the context ended.
func (b *budget) Err() error { return errBounds }

// sizeCheck returns the check of a value's size. The check charges the budget and returns the value,
// or returns errBounds if the value is too large. If whole is false, the program has made the value
// from parts that were charged before. Then the check of a list or object charges only the container.
func sizeCheck(whole bool) func(v any, args []any) any {
	return func(v any, args []any) any {
		b, _ := args[0].(*budget)
		n := sizeUpTo(v, b.room)
		if n > b.room {
			return errBounds
		}
		if list, ok := v.([]any); ok && !whole {
			n = 16 * (1 + len(list))
		} else if object, ok := v.(map[string]any); ok && !whole {
			n = 64 * (1 + len(object))
		}
		b.made -= n
		return v
	}
}

// checkInput charges the budget the cost for each byte of the value and returns the value. If the
// value is larger than the limit, it returns errBounds.
func checkInput(v any, args []any) any {
	b, _ := args[0].(*budget)
	limit, _ := args[1].(int)
	cost, _ := args[2].(int)
	n := sizeUpTo(v, limit+16)
	if n > limit+16 {
		return errBounds
	}
	b.made -= n * cost
	return v
}

// oversize exceeds the size of any valid value.
const oversize = 1 << 40

// size estimates the bytes of a value. If the value contains a JSON number that is too long, size
// returns more than oversize.
func size(v any) int { return sizeUpTo(v, 1<<50) }

// sizeUpTo is size, but stops counting above the limit. Without that, it could count for a long time: a
// value may be small in memory and contain the same part a million times.
func sizeUpTo(v any, limit int) int {
	n := 16
	switch v := v.(type) {
	case string:
		n += len(v)
	case json.Number:
		if n += len(v); n > maxDigits { // the time to calculate with a number grows with the square of its length
			n = oversize + 1
		}
	case *big.Int:
		n += v.BitLen() * 64 // the time to write a long number grows faster than its length
	case []any:
		for i := 0; i < len(v) && n <= limit; i++ {
			n += sizeUpTo(v[i], limit-n)
		}
	case map[string]any:
		for key, member := range v {
			if n += len(key) + sizeUpTo(member, limit-n); n > limit {
				break
			}
		}
	}
	return n
}

// prelude defines the replacements of functions and operators whose output or time has no limit.
const prelude = `
def _plain: if type == "string" then _fits($__run) else _takes($__run; 1048576; 6) end;
def _string: _plain | tostring;
def _json: _takes($__run; 1048576; 6) | tojson;
def _join($s): if length * ($s | length) > 1048576 then error("the text is too long") else join($s) end;
def _key: if type == "array" then error("an index is a text or a number") else . end;
def _times($r; $l): if [$l, $r] | any(type == "string") then error("a text cannot be multiplied") else $l * $r end;
def _minus($r; $l): def list: if type == "array" then _takes($__run; 16384; 1) else . end; ($l | list) - ($r | list);
def _over($r; $l): ($l | if type == "string" then _takes($__run; 16384; 64) else . end) / $r;
.`

// compile compiles an expression. If that fails, it returns the offset of the error in the text, or 0
// if the offset is unknown.
func compile(text string) (*expression, int, error) {
	if len(text) > maxSource {
		return nil, 0, fmt.Errorf("the expression is longer than %d bytes", maxSource)
	}
	query, err := gojq.Parse(text)
	if parse, ok := errors.AsType[*gojq.ParseError](err); ok {
		return nil, max(0, parse.Offset-1), err
	}
	if err != nil {
		return nil, 0, err
	}
	reads := members(query)
	g := guard{uses: map[string]bool{}, costs: map[*gojq.Func]int{}}
	walk(query, g.enter, g.leave)
	if len(g.faults) > 0 {
		return nil, 0, errors.New(strings.Join(g.faults, "; "))
	}
	around, err := gojq.Parse(prelude)
	if err != nil {
		return nil, 0, err
	}
	query.FuncDefs = append(around.FuncDefs, query.FuncDefs...)
	code, err := gojq.Compile(query, gojq.WithVariables(variables()),
		gojq.WithFunction("_fits", 1, 1, sizeCheck(false)),
		gojq.WithFunction("_made", 1, 1, sizeCheck(true)), gojq.WithFunction("_takes", 3, 3, checkInput))
	if err != nil {
		return nil, 0, err
	}
	return &expression{code: code, keys: g.keys, uses: g.uses, reads: reads}, 0, nil
}

// encode appends a document to b. It writes the members of an object in the order in which the program
// names them, and leaves out members that are null.
func (e *expression) encode(b []byte, v any) ([]byte, error) {
	switch v := v.(type) {
	case map[string]any:
		at := func(key string) int {
			if i := slices.Index(e.keys, key); i >= 0 {
				return i
			}
			return len(e.keys)
		}
		var keys []string
		for key, member := range v {
			if member != nil {
				keys = append(keys, key)
			}
		}
		slices.SortFunc(keys, func(a, b string) int { return cmp.Or(at(a)-at(b), strings.Compare(a, b)) })
		return e.appendJoined(b, "{}", len(keys), func(b []byte, i int) ([]byte, error) {
			name, err := vendorhttp.Encode(keys[i])
			if err != nil {
				return nil, err
			}
			return e.encode(append(append(b, name...), ':'), v[keys[i]])
		})
	case []any:
		return e.appendJoined(b, "[]", len(v), func(b []byte, i int) ([]byte, error) { return e.encode(b, v[i]) })
	case *big.Int:
		return v.Append(b, 10), nil
	default:
		text, err := vendorhttp.Encode(v)
		return append(b, text...), err
	}
}

// appendJoined appends the parts of a list or object between its brackets.
func (e *expression) appendJoined(
	b []byte, marks string, n int, part func(b []byte, i int) ([]byte, error),
) (_ []byte, err error) {
	b = append(b, marks[0])
	for i := range n {
		if i > 0 {
			b = append(b, ',')
		}
		if b, err = part(b, i); err != nil {
			return nil, err
		}
	}
	return append(b, marks[1]), nil
}

// textOf returns a string, number or boolean as a text. It returns "" for anything else.
func textOf(v any) vendorhttp.Text {
	switch v := v.(type) {
	case string:
		return vendorhttp.Text(v)
	case json.Number:
		return vendorhttp.Text(v)
	case int:
		return vendorhttp.Text(strconv.Itoa(v))
	case float64:
		return vendorhttp.Text(strconv.FormatFloat(v, 'f', -1, 64))
	case bool:
		return vendorhttp.Text(strconv.FormatBool(v))
	case *big.Int:
		return vendorhttp.Text(v.String())
	default:
		return ""
	}
}
