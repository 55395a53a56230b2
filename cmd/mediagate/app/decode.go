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

	"github.com/go-viper/mapstructure/v2"
)

// decode decodes the settings, and adds what it does not understand to the problems.
func (r *reader) decode(c *Config) {
	decoder, err := mapstructure.NewDecoder(&mapstructure.DecoderConfig{
		Result: c, RootName: root, TagName: "yaml", ErrorUnused: true, ZeroFields: true, DecodeHook: understand,
		MatchName: func(key, name string) bool { return key == name },
	})
	if err == nil {
		err = decoder.Decode(r.tree)
	}
	list := leaves(errors.Unwrap(err)) // below the library's heading
	slices.SortFunc(list, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	for _, wrong := range list {
		one, ok := errors.AsType[*mapstructure.DecodeError](wrong)
		if !ok {
			r.problems = append(r.problems, wrong)
			continue
		}
		path, text := settingPath(one.Name()), one.Unwrap().Error()
		unknown, ok := strings.CutPrefix(text, "has invalid keys: ")
		if !ok {
			r.fail(path, text)
			continue
		}
		for name := range strings.SplitSeq(unknown, ", ") {
			r.fail(below(path, name), "no such setting")
		}
	}
}

// root is the name that the library uses for the settings as a whole.
const root = "settings"

// inBrackets matches a key of a mapping, which the library writes like an index.
var inBrackets = regexp.MustCompile(`\[([^\]]*[^\]0-9][^\]]*)\]`)

// settingPath converts the library's name of a setting to our path.
func settingPath(name string) string {
	name = strings.TrimPrefix(strings.TrimPrefix(name, root), ".")
	return inBrackets.ReplaceAllStringFunc(name, func(key string) string { return below(".", key[1:len(key)-1])[1:] })
}

// understand converts a written value to the type of the setting. Its errors never show the value
// of a text setting, which may be a secret.
func understand(from, to reflect.Value) (any, error) {
	written := from.Interface()
	switch kept := to.Addr().Interface().(type) {
	case *time.Duration:
		return duration(written)
	case *ByteSize:
		return byteSizeOf(written)
	case *Proxies:
		return proxiesOf(written)
	case *Channel:
		*kept = newChannel() // the written values, including zeros, replace the defaults
	}
	text, isText := written.(string)
	switch to.Kind() {
	case reflect.Struct, reflect.Map:
		if _, ok := written.(map[string]any); !ok {
			return nil, errors.New(mustBeMapping)
		}
	case reflect.Slice:
		if _, ok := written.([]any); !ok {
			return nil, errors.New("must be a list")
		}
	case reflect.String:
		if _, ok := written.(bool); ok {
			return nil, errors.New("must be a text: put it in quotes")
		}
		if !isText {
			return nil, errors.New("must be a text")
		}
	case reflect.Bool:
		if _, ok := written.(bool); !ok {
			return nil, errors.New("must be true or false")
		}
	case reflect.Float64:
		f, err := strconv.ParseFloat(text, 64)
		if err != nil || math.IsInf(f, 0) || math.IsNaN(f) {
			return nil, errors.New("must be a number" + instead(written))
		}
		return f, nil
	case reflect.Int, reflect.Int64:
		return whole(written)
	default: // a pointer: its element follows
	}
	return written, nil
}

// whole parses an integer from its text. It does not round, truncate, or read another base.
func whole(written any) (int64, error) {
	text, _ := written.(string)
	n, err := strconv.ParseInt(text, 10, 64)
	switch {
	case errors.Is(err, strconv.ErrRange):
		return 0, errors.New("is too far from 0" + instead(written))
	case err != nil:
		return 0, errors.New(wholeNumber + instead(written))
	case octal.MatchString(text):
		return 0, errors.New("must be written without leading zeros" + instead(written))
	}
	return n, nil
}

func duration(written any) (time.Duration, error) {
	text, _ := written.(string)
	if days, ok := strings.CutSuffix(text, "d"); ok {
		if n, err := strconv.Atoi(days); err == nil && n >= 0 && n < 36500 {
			return time.Duration(n) * day, nil
		}
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		err = errors.New("must be a duration like 10s, 2h or 30d" + instead(written))
	}
	return d, err
}

func byteSizeOf(written any) (ByteSize, error) {
	text, _ := written.(string)
	size, ok := parseByteSize(text)
	if !ok {
		return 0, errors.New("must be a size like 256MiB, in whole bytes, KiB, MiB or GiB" + instead(written))
	}
	return size, nil
}

// instead shows what was written in place of a number.
func instead(written any) string {
	switch written.(type) {
	case string, bool:
		return fmt.Sprintf(", not %q", fmt.Sprint(written))
	default:
		return ""
	}
}

const (
	wholeNumber   = "must be a whole number"
	mustBeMapping = "must be a mapping, name: value"
)

// octal matches what some YAML parsers read as an octal number.
var octal = regexp.MustCompile(`^[+-]?0[0-9]`)

// plainName matches names that need no quotes in a path.
var plainName = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)

// below appends a name to a path.
func below(path, name string) string {
	if !plainName.MatchString(name) {
		name = strconv.Quote(name)
	}
	if path == "" {
		return name
	}
	return path + "." + name
}

// within reports whether path is outer or below it.
func within(outer, path string) bool {
	rest, ok := strings.CutPrefix(path, outer)
	return ok && (rest == "" || rest[0] == '.' || rest[0] == '[')
}
