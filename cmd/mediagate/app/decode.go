package app

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml"
)

// decoder puts layers of settings into a Config, and remembers what it could
// not understand so that nobody complains about that again.
type decoder struct {
	origin   string          // the variable or flag that is read; empty: the file
	problems []error         // in the order of reading
	broken   map[string]bool // paths whose value in force was not understood
	said     map[string]bool // paths that the present layer gives a value
}

// report adds a problem.
func (d *decoder) report(path, problem string) {
	if d.origin != "" {
		problem += " (" + d.origin + ")"
	}
	d.problems = append(d.problems, fmt.Errorf("%s: %s", path, problem))
}

// fail adds a problem with a value, which is thereby unknown.
func (d *decoder) fail(path, problem string) {
	d.report(path, problem)
	d.broken[path] = true
}

// fields decodes a mapping into the fields of a struct.
func (d *decoder) fields(path string, n any, v reflect.Value) bool {
	m, ok := n.(yaml.MapSlice)
	if !ok && n != nil {
		d.fail(path, mustBeMapping)
		return false
	}
	for i, e := range m {
		if slices.ContainsFunc(m[i+1:], func(own yaml.MapItem) bool { return own.Key == e.Key }) {
			continue // merged, and said otherwise
		}
		name := fmt.Sprint(e.Key)
		at := below(path, name)
		field, ok := fieldOf(v, name)
		switch {
		case !ok:
			d.report(at, "no such setting")
		case field.Kind() == reflect.Struct && field.Type() != proxiesType:
			d.fields(at, e.Value, field)
		case e.Value != nil || field.Kind() == reflect.Pointer:
			d.leaf(at, e.Value, field)
		}
	}
	return true
}

// leaf decodes one setting, which replaces that of lower layers as a whole.
func (d *decoder) leaf(path string, n any, v reflect.Value) {
	for other := range d.broken {
		if within(path, other) {
			delete(d.broken, other)
		}
	}
	if d.value(path, n, v) {
		d.said[path] = true
	}
}

func fieldOf(v reflect.Value, name string) (reflect.Value, bool) {
	for f := range v.Type().Fields() {
		if tag, _, _ := strings.Cut(f.Tag.Get("yaml"), ","); tag == name {
			return v.FieldByIndex(f.Index), true
		}
	}
	return reflect.Value{}, false
}

// value decodes anything. When the whole of it is of the wrong type, v stays
// as it is and the answer is false. Problems never show the value of a text,
// which may be a secret.
func (d *decoder) value(path string, n any, v reflect.Value) bool {
	var problem string
	switch v.Kind() {
	case reflect.Struct:
		if p, ok := reflect.TypeAssert[*Proxies](v.Addr()); ok {
			return d.proxies(path, n, p)
		}
		return d.fields(path, n, v)
	case reflect.Pointer: // null is a value
		if n == nil {
			v.SetZero()
			return true
		}
		is := reflect.New(v.Type().Elem())
		if d.value(path, n, is.Elem()) {
			v.Set(is)
			return true
		}
		return false
	case reflect.Slice:
		if items, ok := n.([]any); ok {
			list := reflect.MakeSlice(v.Type(), len(items), len(items))
			for i, item := range items {
				if c, ok := reflect.TypeAssert[*Channel](list.Index(i).Addr()); ok {
					*c = newChannel() // beneath what is said of it, zeros too
				}
				d.value(fmt.Sprintf("%s[%d]", path, i), item, list.Index(i))
			}
			v.Set(list)
			return true
		}
		problem = "must be a list"
	case reflect.Map:
		if m, ok := n.(yaml.MapSlice); ok {
			d.entries(path, m, v)
			return true
		}
		problem = mustBeMapping
	case reflect.String:
		if text, ok := n.(string); ok {
			v.SetString(text)
			return true
		}
		problem = "must be a text"
		if _, ok := n.(bool); ok {
			problem += ": put it in quotes"
		}
	case reflect.Bool:
		if is, ok := n.(bool); ok {
			v.SetBool(is)
			return true
		}
		problem = "must be true or false"
	default:
		err := number(n, v)
		if err == nil {
			return true
		}
		problem = err.Error()
	}
	d.fail(path, problem)
	return false
}

// entries decodes a mapping whose names are free.
func (d *decoder) entries(path string, entries yaml.MapSlice, v reflect.Value) {
	m := reflect.MakeMap(v.Type())
	for _, e := range entries {
		name, value := fmt.Sprint(e.Key), reflect.New(v.Type().Elem()).Elem()
		if e.Value == nil && value.Kind() == reflect.String {
			continue
		}
		d.value(below(path, name), e.Value, value)
		m.SetMapIndex(reflect.ValueOf(name), value)
	}
	v.Set(m)
}

// number decodes durations, sizes and numbers. These are judged by their text:
// nothing is rounded, cut off or read in another base.
func number(n any, v reflect.Value) error {
	text, shown := "", ""
	switch n := n.(type) {
	case string:
		text, shown = n, fmt.Sprintf(", not %q", n)
	case bool:
		shown = fmt.Sprintf(", not \"%t\"", n)
	}
	if v.Type() == reflect.TypeFor[time.Duration]() {
		d, err := parseDuration(text)
		if err != nil {
			return errors.New("must be a duration like 10s, 2h or 30d" + shown)
		}
		v.SetInt(int64(d))
		return nil
	}
	if v.Type() == reflect.TypeFor[ByteSize]() {
		size, ok := parseByteSize(text)
		if !ok {
			return errors.New("must be a size like 256MiB, in whole bytes, KiB, MiB or GiB" + shown)
		}
		v.SetInt(int64(size))
		return nil
	}
	if v.Kind() == reflect.Float64 {
		f, err := strconv.ParseFloat(text, 64)
		if err != nil || math.IsInf(f, 0) || math.IsNaN(f) {
			return errors.New("must be a number" + shown)
		}
		v.SetFloat(f)
		return nil
	}
	i, err := strconv.ParseInt(text, 10, v.Type().Bits())
	switch {
	case errors.Is(err, strconv.ErrRange):
		return errors.New("is too far from 0" + shown)
	case err != nil:
		return errors.New(wholeNumber + shown)
	case octal.MatchString(text):
		return errors.New("must be written without leading zeros" + shown)
	}
	v.SetInt(i)
	return nil
}

const (
	wholeNumber   = "must be a whole number"
	mustBeMapping = "must be a mapping, name: value"
)

// octal is what some readers of YAML take for a number to the base 8.
var octal = regexp.MustCompile(`^[+-]?0[0-9]`)

// parseDuration reads 10s, 2h and 30d.
func parseDuration(text string) (time.Duration, error) {
	if days, ok := strings.CutSuffix(text, "d"); ok {
		if n, err := strconv.Atoi(days); err == nil && n >= 0 && n < 36500 {
			return time.Duration(n) * day, nil
		}
	}
	return time.ParseDuration(text)
}

// plainName needs no quotes in a path.
var plainName = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)

// below is the path of a name within another path.
func below(path, name string) string {
	if !plainName.MatchString(name) {
		name = strconv.Quote(name)
	}
	if path == "" {
		return name
	}
	return path + "." + name
}

// within reports whether path is outer or lies in it.
func within(outer, path string) bool {
	rest, ok := strings.CutPrefix(path, outer)
	return ok && (rest == "" || rest[0] == '.' || rest[0] == '[')
}
