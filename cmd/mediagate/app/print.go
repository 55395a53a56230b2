package app

import (
	"net/url"
	"reflect"
	"strings"
	"time"

	"github.com/goccy/go-yaml"
)

// redacted stands for a secret that is set.
const redacted = "(redacted)"

// Print writes the settings in force as YAML, without secrets.
func (c Config) Print() (string, error) {
	text, err := yaml.Marshal(printable(reflect.ValueOf(c)))
	return string(text), err
}

// printable turns a struct into an ordered map with its secrets redacted.
func printable(v reflect.Value) any {
	switch v.Kind() {
	case reflect.Struct:
		m := yaml.MapSlice{}
		for i := range v.NumField() {
			f := v.Type().Field(i)
			name, opts, _ := strings.Cut(f.Tag.Get("yaml"), ",")
			if strings.Contains(opts, "omitempty") && v.Field(i).IsZero() {
				continue
			}
			m = append(m, yaml.MapItem{Key: name, Value: field(v.Field(i), f.Tag.Get("secret"))})
		}
		return m
	case reflect.Slice:
		list := make([]any, v.Len())
		for i := range list {
			list[i] = printable(v.Index(i))
		}
		return list
	case reflect.Map:
		m := map[string]any{}
		for _, k := range v.MapKeys() {
			m[k.String()] = printable(v.MapIndex(k))
		}
		return m
	default:
		if d, ok := reflect.TypeAssert[time.Duration](v); ok {
			return d.String()
		}
		return v.Interface()
	}
}

func field(v reflect.Value, secret string) any {
	switch {
	case secret == "" || v.IsZero():
		return printable(v)
	case secret == "url":
		return redactURL(v.String())
	case v.Kind() == reflect.Map:
		m := map[string]any{}
		for _, k := range v.MapKeys() {
			m[k.String()] = redacted
		}
		return m
	case v.Kind() == reflect.Slice:
		list := make([]any, v.Len())
		for i := range list {
			list[i] = redacted
		}
		return list
	default:
		return redacted
	}
}

func redactURL(s string) string {
	u, err := url.Parse(s)
	if err != nil {
		return redacted
	}
	return u.Redacted()
}
