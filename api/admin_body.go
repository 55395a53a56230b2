package api

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/catalog"
)

// fields reads the top-level fields of a settings body. It keeps the first problem that a read
// finds, so the caller checks err once, after all reads.
type fields struct {
	body   map[string]any
	models *models // those in force when the call began
	err    error
}

// settingsFields are all fields that the bodies of settings may have: those about accounts, money,
// keys, endpoints, webhook tests and recovery. Each is a single value or a list of texts, except
// caps, which is an object.
var settingsFields = fieldMaskOf(
	"name", "group", "amount", "reference", "unlimited", "quota", "models", "expires_at", "allow_ips",
	"rate", "in_flight", "unpaid", "uploads_per_day", "scopes", "strict",
	"erase_inputs", "webhook", "suspended", "reason", "url", "grace_seconds", "restored_to", "after",
	"events", "enabled", "description", "balance_low",
)

func fieldMaskOf(names ...string) *catalog.FieldMask {
	mask := &catalog.FieldMask{Fields: map[string]*catalog.FieldMask{"caps": {Whole: true}}}
	for _, name := range names {
		mask.Fields[name] = &catalog.FieldMask{Item: &catalog.FieldMask{}}
	}
	return mask
}

// fieldsOf reads the call's body and keeps the fields in the mask.
func (s *Server) fieldsOf(c *call, mask *catalog.FieldMask) (*fields, error) {
	_, body, err := s.readBody(c, mask)
	if err != nil {
		return nil, err
	}
	return &fields{body: body, models: c.models}, nil
}

// readFields reads the call's body and passes its fields to read. It returns the first problem of
// the body or of a field.
func readFields[T any](
	s *Server, c *call, mask *catalog.FieldMask, read func(f *fields) T,
) (f *fields, value T, err error) {
	if f, err = s.fieldsOf(c, mask); err != nil {
		return nil, value, err
	}
	value = read(f)
	return f, value, f.err
}

func (f *fields) fail(param, format string, args ...any) {
	if f.err == nil {
		f.err = mediagate.Invalid(param, format, args...)
	}
}

// refuse is fail with a reason code.
func (f *fields) refuse(reason, param, format string, args ...any) {
	if f.err == nil {
		f.err = mediagate.Invalid(param, format, args...).Because(reason)
	}
}

// has reports whether the field is present and not null.
func (f *fields) has(name string) bool { return f.body[name] != nil }

// given reports whether the field is present, even as null. Null removes a limit.
func (f *fields) given(name string) bool {
	_, ok := f.body[name]
	return ok
}

// only refuses all fields except those in names.
func (f *fields) only(names ...string) {
	for _, name := range slices.Sorted(maps.Keys(f.body)) {
		if !slices.Contains(names, name) {
			f.fail(name, "%s cannot be changed here", name)
		}
	}
}

// maxText bounds names and references, in code points.
const maxText = 255

// text reads an optional string that must not be blank.
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

// required reads a string that must be present and not blank.
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

// amount reads money that must not be zero: a decimal string, or a number in the same form.
func (f *fields) amount(name string) mediagate.Micros {
	if !f.has(name) {
		f.fail(name, "%s is required", name)
		return 0
	}
	m, ok := f.money(name, f.body[name])
	if ok && m == 0 {
		f.fail(name, "%s must not be zero", name)
	}
	return m
}

func (f *fields) money(param string, value any) (m mediagate.Micros, ok bool) {
	var s string
	switch v := value.(type) {
	case string:
		s = v
	case json.Number:
		s = v.String()
	default:
		f.fail(param, "%s must be a decimal string or a number", param)
		return 0, false
	}
	m, err := mediagate.ParseMicros(s)
	if err != nil {
		f.fail(param, "%s must have 1 to 12 digits and at most 6 decimals, such as 12.50", param)
	}
	return m, err == nil
}

// mostOf bounds integers. It fits into an integer column and exceeds any real limit.
const mostOf = 1_000_000_000

// decimal reads an optional amount of money that must not be negative.
func (f *fields) decimal(name string) *mediagate.Micros {
	if !f.has(name) {
		return nil
	}
	m, ok := f.money(name, f.body[name])
	if ok && m < 0 {
		f.fail(name, "%s must not be negative", name)
	}
	return &m
}

// mostUploads bounds uploads_per_day: one pebibyte.
const mostUploads = 1 << 50

// number reads an optional integer from 0 to most. It accepts 5.0.
func (f *fields) number(name string, most int) *int {
	n := f.whole(name, most)
	if n == nil {
		return nil
	}
	return new(int(*n))
}

func (f *fields) whole(name string, most int) *int64 {
	if !f.has(name) {
		return nil
	}
	v, ok := f.body[name].(json.Number)
	n, err := strconv.ParseFloat(v.String(), 64)
	if !ok || err != nil || n != math.Trunc(n) || n < 0 || n > float64(most) {
		f.fail(name, "%s must be an integer between 0 and %d", name, most)
		return nil
	}
	return new(int64(n))
}

// caps reads which caps change, and returns the function that changes them. Caps that the body does
// not name stay unchanged.
func (f *fields) caps() func(c *mediagate.Caps) {
	unchanged := func(*mediagate.Caps) {}
	if !f.given("caps") {
		return unchanged
	}
	if !f.has("caps") {
		return func(c *mediagate.Caps) { *c = mediagate.Caps{} }
	}
	given, ok := f.body["caps"].(map[string]any)
	if !ok {
		f.fail("caps", "caps must be an object of day, week and month")
		return unchanged
	}
	bounds := map[string]*mediagate.Micros{}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		param := "caps." + name
		if name != "day" && name != "week" && name != "month" {
			f.fail("caps", "caps has no field %s: its fields are day, week and month", mediagate.Quote(name))
			return unchanged
		}
		bounds[name] = nil
		if given[name] == nil {
			continue
		}
		m, ok := f.money(param, given[name])
		if text := fmt.Sprint(given[name]); ok && strings.HasPrefix(text, "-") {
			f.fail(param, "%s must not be negative", param)
		}
		bounds[name] = &m
	}
	return func(c *mediagate.Caps) {
		for name, to := range map[string]**mediagate.Micros{"day": &c.Day, "week": &c.Week, "month": &c.Month} {
			if bound, ok := bounds[name]; ok {
				*to = bound
			}
		}
	}
}

// mostEntries bounds the length of a list, since each call with a key may search all the lists of
// that key.
const mostEntries = 100

// texts reads an optional list of strings.
func (f *fields) texts(name string) []string {
	if !f.has(name) {
		return nil
	}
	list, ok := f.body[name].([]any)
	if !ok {
		f.fail(name, "%s must be an array of strings", name)
		return nil
	}
	if len(list) > mostEntries {
		f.fail(name, "%s must have at most %d entries", name, mostEntries)
		return nil
	}
	var out []string
	for i, v := range list {
		s, ok := v.(string)
		if !ok || strings.TrimSpace(s) == "" || utf8.RuneCountInString(s) > maxText {
			param := item(name, i)
			f.fail(param, "%s must be a string that is not blank, of at most %d characters", param, maxText)
			return nil
		}
		out = append(out, s)
	}
	return out
}

// item names an entry of a list, such as models[2].
func item(list string, i int) string { return list + "[" + strconv.Itoa(i) + "]" }

// future reads an optional time that must be in the future: RFC 3339 or a number of Unix seconds.
func (f *fields) future(name string, now time.Time) time.Time {
	t := f.moment(name)
	if f.has(name) && f.err == nil && !t.After(now) {
		f.fail(name, "%s must be in the future", name)
	}
	return t
}

// moment reads an optional time: RFC 3339 or a number of Unix seconds.
func (f *fields) moment(name string) time.Time {
	var t time.Time
	ok := false
	switch v := f.body[name].(type) {
	case nil:
		return time.Time{}
	case string:
		// Unix seconds are accepted as a number only.
		t, ok = parseRFC3339(v)
	case json.Number:
		seconds, err := strconv.ParseFloat(v.String(), 64)
		if ok = err == nil && seconds == float64(int64(seconds)) && seconds >= 0 && seconds <= maxUnix; ok {
			t = time.Unix(int64(seconds), 0).UTC()
		}
	}
	if !ok {
		f.fail(name, "%s must be an RFC 3339 time or Unix seconds as a number", name)
	}
	return t
}
