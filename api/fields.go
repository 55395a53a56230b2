package api

import (
	"encoding/json"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/catalog"
)

// fields reads the top level of an admin body. The first problem is kept and
// all later reads return zero values, so that a handler asks once at its end.
type fields struct {
	body map[string]any
	err  error
}

// operatorsFields are all that an admin body may have. None is deeper than a
// list of texts.
var operatorsFields = outlineOf(
	"name", "group", "amount", "reference", "unlimited", "quota", "models", "expires_at", "allow_ips", "caps", "rate", "in_flight",
)

func outlineOf(names ...string) *catalog.Outline {
	o := &catalog.Outline{Fields: map[string]*catalog.Outline{}}
	for _, name := range names {
		o.Fields[name] = &catalog.Outline{Item: &catalog.Outline{}}
	}
	return o
}

func (s *Server) readFields(c *call) (*fields, error) {
	_, body, err := s.readBody(c, operatorsFields)
	if err != nil {
		return nil, err
	}
	return &fields{body: body}, nil
}

func (f *fields) fail(param, format string, args ...any) {
	if f.err == nil {
		f.err = mediagate.Invalid(param, format, args...)
	}
}

// has reports whether the field is there; null is not.
func (f *fields) has(name string) bool { return f.body[name] != nil }

// maxText is the longest name or reference, in code points.
const maxText = 255

// text reads an optional text, which must not be blank when it is there.
func (f *fields) text(name string) string {
	if !f.has(name) {
		return ""
	}
	s, ok := f.body[name].(string)
	switch {
	case !ok:
		f.fail(name, "%s must be a string", name)
	case strings.TrimSpace(s) == "":
		f.fail(name, "%s must not be blank", name)
	case utf8.RuneCountInString(s) > maxText:
		f.fail(name, "%s must have at most %d characters", name, maxText)
	default:
		return s
	}
	return ""
}

// required reads a text that must be there.
func (f *fields) required(name string) string {
	if s, ok := f.body[name].(string); !f.has(name) || ok && strings.TrimSpace(s) == "" {
		f.fail(name, "%s is required", name)
		return ""
	}
	return f.text(name)
}

func (f *fields) flag(name string) bool {
	if !f.has(name) {
		return false
	}
	b, ok := f.body[name].(bool)
	if !ok {
		f.fail(name, "%s must be true or false", name)
	}
	return b
}

// amount reads money: a decimal string, or a number written like one.
func (f *fields) amount(name string) mediagate.Micros {
	var s string
	switch v := f.body[name].(type) {
	case nil:
		f.fail(name, "%s is required", name)
		return 0
	case string:
		s = v
	case json.Number:
		s = v.String()
	default:
		f.fail(name, "%s must be a decimal string or a number", name)
		return 0
	}
	m, err := mediagate.ParseMicros(s)
	switch {
	case err != nil:
		f.fail(name, "%s must have 1 to 12 digits and at most 6 decimals, as 12.50", name)
	case m == 0:
		f.fail(name, "%s must not be zero", name)
	}
	return m
}

// texts reads an optional list of texts; an empty list is none.
func (f *fields) texts(name string) []string {
	if !f.has(name) {
		return nil
	}
	list, ok := f.body[name].([]any)
	if !ok {
		f.fail(name, "%s must be an array of strings", name)
		return nil
	}
	var out []string
	for i, v := range list {
		s, ok := v.(string)
		if !ok || strings.TrimSpace(s) == "" {
			item := name + "[" + strconv.Itoa(i) + "]"
			f.fail(item, "%s must be a string that is not blank", item)
			return nil
		}
		out = append(out, s)
	}
	return out
}

// future reads an optional time that must not have passed: RFC 3339 or a
// number of Unix seconds.
func (f *fields) future(name string, now time.Time) time.Time {
	var t time.Time
	ok := false
	switch v := f.body[name].(type) {
	case nil:
		return time.Time{}
	case string:
		// A number as text is no RFC 3339 time.
		t, ok = parseRFC3339(v)
	case json.Number:
		seconds, err := strconv.ParseFloat(v.String(), 64)
		if ok = err == nil && seconds == float64(int64(seconds)) && seconds >= 0 && seconds <= maxUnix; ok {
			t = time.Unix(int64(seconds), 0).UTC()
		}
	}
	switch {
	case !ok:
		f.fail(name, "%s must be an RFC 3339 time or Unix seconds as a number", name)
	case !t.After(now):
		f.fail(name, "%s must be in the future", name)
	}
	return t
}
