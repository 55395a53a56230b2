package declared

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/itchyny/gojq"

	"github.com/mediagate/mediagate/providers/vendorhttp"
)

// The bounds of an expression.
const (
	maxSource = 64 << 10 // of its text
	maxSteps  = 100_000
	maxOutput = 1 << 20 // of what it makes, beside what it was given
	maxTime   = time.Second
	maxPart   = 64 << 10 // of what a regular expression reads or inserts
)

// errBounds is the error of an expression that went beyond its bounds.
var errBounds = errors.New("an expression goes beyond its bounds")

// scope holds what an expression may use beside its input: a variable for each field.
type scope struct {
	model, task, callback string // of a submission
	job, kept             string // of a job
	source, poll          any    // poll is the answer to the poll, for a result that is elsewhere
	options               map[string]string
	call                  string         // which call was answered
	status                int            // of the answer
	headers               map[string]any // of the answer, by their names in lower case
	code                  string         // of the error that the answer states
}

// room is the variable that holds how large a value may become.
const room = "$__room"

func variables() []string {
	return []string{
		"$model", "$task", "$callback", "$job", "$kept", "$source", "$poll", "$options", "$call", "$status", "$headers",
		"$code", room,
	}
}

func (s scope) values(room int) []any {
	var values []any
	for _, text := range []string{s.model, s.task, s.callback, s.job, s.kept} {
		values = append(values, orNull(text))
	}
	options := map[string]any{}
	for name, option := range s.options {
		options[name] = option
	}
	return append(values, s.source, s.poll, options, orNull(s.call), s.status, s.headers, orNull(s.code), room)
}

func orNull(text string) any {
	if text == "" {
		return nil
	}
	return text
}

// expression is a jq program of a file. The nil expression has no output.
type expression struct {
	code *gojq.Code
	keys []string        // of objects, in the order in which the program names them
	uses map[string]bool // variables
}

// programError is the error of a program that failed. What it says may hold a part of a
// request or of an answer, so only an example shows it.
type programError struct{ cause error }

// Error says nothing of the values.
func (*programError) Error() string { return "an expression of the file fails" }

// run returns the outputs. errBounds says that they are too many, too large or too late;
// any other error is a *programError.
func (e *expression) run(input any, s scope) (outputs []any, err error) {
	if e == nil {
		return nil, nil
	}
	left := maxOutput + size(input) + size(s.poll)
	ctx := &budget{Context: context.Background(), steps: maxSteps, until: time.Now().Add(maxTime)}
	for iter := e.code.RunWithContext(ctx, input, s.values(left)...); ; {
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

// budget is a context that ends after so many steps: gojq asks for Done before each.
type budget struct {
	context.Context
	steps int
	until time.Time
}

var ended = func() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()

// Done counts a step.
func (b *budget) Done() <-chan struct{} {
	if b.steps--; b.steps < 0 || time.Now().After(b.until) {
		return ended
	}
	return nil
}

// Err is why the context ends.
func (b *budget) Err() error { return errBounds }

// size estimates the bytes of a value.
func size(v any) int { return sizeUpTo(v, 1<<62) }

// sizeUpTo stops to count above the limit: a value may be small in memory and hold the
// same part a million times.
func sizeUpTo(v any, limit int) int {
	n := 16
	switch v := v.(type) {
	case string:
		n += len(v)
	case json.Number:
		n += len(v)
	case *big.Int:
		n += v.BitLen() * 64 // to write a long one takes more than its length
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

// prelude has the functions that replace those whose output has no bound.
const prelude = `
def _times($l; $r): if [$l, $r] | any(type == "string") then error("a text cannot be multiplied") else $l * $r end;
def _join($s): if length * ($s | length) > 1048576 then error("the text is too long") else join($s) end;
.`

// compile makes an expression. An error comes with the offset in the text at which it was
// found, or 0.
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
	g := guard{uses: map[string]bool{}}
	g.walk(reflect.ValueOf(query))
	if len(g.faults) > 0 {
		return nil, 0, errors.New(strings.Join(g.faults, "; "))
	}
	around, err := gojq.Parse(prelude)
	if err != nil {
		return nil, 0, err
	}
	query.FuncDefs = append(around.FuncDefs, query.FuncDefs...)
	code, err := gojq.Compile(query, gojq.WithVariables(variables()),
		gojq.WithFunction("_fits", 1, 1, func(v any, limit []any) any {
			n, _ := limit[0].(int)
			return unlessLarger(v, n)
		}),
		gojq.WithFunction("_part", 0, 0, func(v any, _ []any) any { return unlessLarger(v, maxPart) }))
	if err != nil {
		return nil, 0, err
	}
	return &expression{code: code, keys: g.keys, uses: g.uses}, 0, nil
}

func unlessLarger(v any, limit int) any {
	if sizeUpTo(v, limit) > limit {
		return errBounds
	}
	return v
}

// encode writes a document whose objects have their members in the order of the keys.
// Members that are null are left out.
func (e *expression) encode(v any) ([]byte, error) {
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
		return e.joined('{', '}', len(keys), func(i int) ([]byte, error) {
			name, err := vendorhttp.Encode(keys[i])
			if err != nil {
				return nil, err
			}
			member, err := e.encode(v[keys[i]])
			return slices.Concat(name, []byte{':'}, member), err
		})
	case []any:
		return e.joined('[', ']', len(v), func(i int) ([]byte, error) { return e.encode(v[i]) })
	case *big.Int:
		return []byte(v.String()), nil
	default:
		return vendorhttp.Encode(v)
	}
}

func (e *expression) joined(begin, end byte, n int, part func(i int) ([]byte, error)) ([]byte, error) {
	text := []byte{begin}
	for i := range n {
		if i > 0 {
			text = append(text, ',')
		}
		one, err := part(i)
		if err != nil {
			return nil, err
		}
		text = append(text, one...)
	}
	return append(text, end), nil
}

// textOf is a text, or a number or boolean as a text. Anything else is empty.
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
