package kernel

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Object reads one JSON object of a request strictly. The first broken rule
// sticks; what is read after it is meaningless.
type Object struct {
	fields map[string]any
	path   string
	err    *error
}

// ReadObject decodes a request's body of at most limit bytes.
func ReadObject(r *http.Request, limit int64) (*Object, error) {
	if mediaType, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || mediaType != "application/json" {
		return nil, errors.New("Content-Type must be application/json")
	}
	raw, err := io.ReadAll(io.LimitReader(r.Body, limit+1))
	if err != nil {
		return nil, errors.New("the body could not be read")
	}
	if int64(len(raw)) > limit {
		return nil, fmt.Errorf("the body is larger than %d bytes", limit)
	}
	if !utf8.Valid(raw) {
		return nil, errors.New("the body is not UTF-8")
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var fields map[string]any
	if err := dec.Decode(&fields); err != nil || fields == nil {
		return nil, errors.New("the body is not a JSON object")
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("the body has trailing data")
	}
	return &Object{fields: fields, err: new(error)}, nil
}

// Err is the first broken rule.
func (o *Object) Err() error { return *o.err }

// Value is the field as it came; nil when absent.
func (o *Object) Value(name string) any { return o.fields[name] }

// Set puts a value in the field's place, such as its default.
func (o *Object) Set(name string, value any) { o.fields[name] = value }

// Fail records the first broken rule.
func (o *Object) Fail(field, format string, args ...any) {
	if *o.err == nil {
		*o.err = fmt.Errorf("%s%s: %s", o.path, field, fmt.Sprintf(format, args...))
	}
}

// Only refuses fields that the vendor does not know.
func (o *Object) Only(names ...string) {
	var extra []string
	for name := range o.fields {
		if !slices.Contains(names, name) {
			extra = append(extra, name)
		}
	}
	if len(extra) > 0 {
		slices.Sort(extra)
		o.Fail(extra[0], "unknown field")
	}
}

// Has reports whether the field is given.
func (o *Object) Has(name string) bool {
	_, ok := o.fields[name]
	return ok
}

// Text reads a string; "" when absent.
func (o *Object) Text(name string) string {
	v, ok := o.fields[name]
	if !ok {
		return ""
	}
	s, ok := v.(string)
	if !ok {
		o.Fail(name, "must be a string")
	}
	return s
}

// TextMax reads a string of at most limit characters.
func (o *Object) TextMax(name string, limit int) string {
	s := o.Text(name)
	if n := utf8.RuneCountInString(s); n > limit {
		o.Fail(name, "has %d characters, at most %d are allowed", n, limit)
	}
	return s
}

// Word reads one of the words; fallback when absent.
func (o *Object) Word(name, fallback string, words ...string) string {
	if !o.Has(name) {
		return fallback
	}
	s := o.Text(name)
	if !slices.Contains(words, s) {
		o.Fail(name, "must be one of %s", strings.Join(words, ", "))
	}
	return s
}

// Flag reads a boolean; false when absent.
func (o *Object) Flag(name string) bool {
	v, ok := o.fields[name]
	if !ok {
		return false
	}
	b, ok := v.(bool)
	if !ok {
		o.Fail(name, "must be a boolean")
	}
	return b
}

// Integer reads a whole JSON number between the bounds.
func (o *Object) Integer(name string, least, most int64) int64 {
	n, ok := o.fields[name].(json.Number)
	if !ok {
		o.Fail(name, "must be an integer")
		return 0
	}
	v, err := n.Int64()
	if err != nil || v < least || v > most {
		o.Fail(name, "must be an integer from %d to %d", least, most)
	}
	return v
}

// Number reads a JSON number; ok is false for one that is absent or none.
func (o *Object) Number(name string) (v float64, ok bool) {
	if !o.Has(name) {
		return 0, false
	}
	n, _ := o.fields[name].(json.Number)
	v, err := n.Float64()
	if err != nil {
		o.Fail(name, "must be a number")
	}
	return v, err == nil
}

// Share reads a number from 0 to 1; one that is absent is no fault.
func (o *Object) Share(name string) {
	if v, ok := o.Number(name); ok && (v < 0 || v > 1) {
		o.Fail(name, "must be a number from 0 to 1")
	}
}

// ID reads a positive 64-bit integer.
func (o *Object) ID(name string) int64 { return o.Integer(name, 1, math.MaxInt64) }

// Nested reads an object; absent is an empty one.
func (o *Object) Nested(name string) *Object {
	in := &Object{fields: map[string]any{}, path: o.path + name + ".", err: o.err}
	if v, ok := o.fields[name]; ok {
		fields, ok := v.(map[string]any)
		if !ok {
			o.Fail(name, "must be an object")
			return in
		}
		in.fields = fields
	}
	return in
}

// Objects reads an array of at most limit objects.
func (o *Object) Objects(name string, limit int) []*Object {
	v, ok := o.fields[name]
	if !ok {
		return nil
	}
	items, ok := v.([]any)
	if !ok {
		o.Fail(name, "must be an array")
		return nil
	}
	if len(items) > limit {
		o.Fail(name, "has %d items, at most %d are allowed", len(items), limit)
		return nil
	}
	var out []*Object
	for i, item := range items {
		fields, ok := item.(map[string]any)
		if !ok {
			o.Fail(name, "item %d must be an object", i)
			return nil
		}
		out = append(out, &Object{fields: fields, path: fmt.Sprintf("%s%s[%d].", o.path, name, i), err: o.err})
	}
	return out
}

// Link reads a public http or https URL.
func (o *Object) Link(name string) string {
	s := o.Text(name)
	if !IsLink(s) {
		o.Fail(name, "must be an http or https URL")
	}
	return s
}

// IsLink reports whether the text is an http or https URL.
func IsLink(s string) bool {
	u, err := url.Parse(s)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != ""
}

// PageValue reads a number from 1 to most of the query.
func PageValue(r *http.Request, name string, fallback, most int) (int, bool) {
	text := r.URL.Query().Get(name)
	if text == "" {
		return fallback, true
	}
	n, err := strconv.Atoi(text)
	return n, err == nil && n >= 1 && n <= most
}
