package sandbox

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
	"strings"
	"unicode/utf8"
)

// object reads one JSON object of a request strictly. The first broken rule
// sticks; what is read after it is meaningless.
type object struct {
	fields map[string]any
	path   string
	err    *error
}

// readObject decodes a request's body of at most limit bytes.
func readObject(r *http.Request, limit int64) (*object, error) {
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
	return &object{fields: fields, err: new(error)}, nil
}

// fail records the first broken rule.
func (o *object) fail(field, format string, args ...any) {
	if *o.err == nil {
		*o.err = fmt.Errorf("%s%s: %s", o.path, field, fmt.Sprintf(format, args...))
	}
}

// only refuses fields that the vendor does not know.
func (o *object) only(names ...string) {
	var extra []string
	for name := range o.fields {
		if !slices.Contains(names, name) {
			extra = append(extra, name)
		}
	}
	if len(extra) > 0 {
		slices.Sort(extra)
		o.fail(extra[0], "unknown field")
	}
}

func (o *object) has(name string) bool {
	_, ok := o.fields[name]
	return ok
}

// text reads a string; "" when absent.
func (o *object) text(name string) string {
	v, ok := o.fields[name]
	if !ok {
		return ""
	}
	s, ok := v.(string)
	if !ok {
		o.fail(name, "must be a string")
	}
	return s
}

// textMax reads a string of at most limit characters.
func (o *object) textMax(name string, limit int) string {
	s := o.text(name)
	if n := utf8.RuneCountInString(s); n > limit {
		o.fail(name, "has %d characters, at most %d are allowed", n, limit)
	}
	return s
}

// word reads one of the words; fallback when absent.
func (o *object) word(name, fallback string, words ...string) string {
	if !o.has(name) {
		return fallback
	}
	s := o.text(name)
	if !slices.Contains(words, s) {
		o.fail(name, "must be one of %s", strings.Join(words, ", "))
	}
	return s
}

// flag reads a boolean; false when absent.
func (o *object) flag(name string) bool {
	v, ok := o.fields[name]
	if !ok {
		return false
	}
	b, ok := v.(bool)
	if !ok {
		o.fail(name, "must be a boolean")
	}
	return b
}

// integer reads a whole JSON number between the bounds.
func (o *object) integer(name string, least, most int64) int64 {
	n, ok := o.fields[name].(json.Number)
	if !ok {
		o.fail(name, "must be an integer")
		return 0
	}
	v, err := n.Int64()
	if err != nil || v < least || v > most {
		o.fail(name, "must be an integer from %d to %d", least, most)
	}
	return v
}

// id reads a positive 64-bit integer.
func (o *object) id(name string) int64 { return o.integer(name, 1, math.MaxInt64) }

// nested reads an object; absent is an empty one.
func (o *object) nested(name string) *object {
	in := &object{fields: map[string]any{}, path: o.path + name + ".", err: o.err}
	if v, ok := o.fields[name]; ok {
		fields, ok := v.(map[string]any)
		if !ok {
			o.fail(name, "must be an object")
			return in
		}
		in.fields = fields
	}
	return in
}

// objects reads an array of at most limit objects.
func (o *object) objects(name string, limit int) []*object {
	v, ok := o.fields[name]
	if !ok {
		return nil
	}
	items, ok := v.([]any)
	if !ok {
		o.fail(name, "must be an array")
		return nil
	}
	if len(items) > limit {
		o.fail(name, "has %d items, at most %d are allowed", len(items), limit)
		return nil
	}
	var out []*object
	for i, item := range items {
		fields, ok := item.(map[string]any)
		if !ok {
			o.fail(name, "item %d must be an object", i)
			return nil
		}
		out = append(out, &object{fields: fields, path: fmt.Sprintf("%s%s[%d].", o.path, name, i), err: o.err})
	}
	return out
}

// link reads a public http or https URL.
func (o *object) link(name string) string {
	s := o.text(name)
	if !isLink(s) {
		o.fail(name, "must be an http or https URL")
	}
	return s
}

func isLink(s string) bool {
	u, err := url.Parse(s)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != ""
}
