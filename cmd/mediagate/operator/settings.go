package operator

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"
)

// setting is a flag that becomes a field of a body.
type setting struct {
	field string // caps.day is the field day of caps
	flag  string
	bare  bool // the flag needs no value
	read  func(text string) (any, error)
}

// settings returns the settings of accounts and keys.
func settings() []setting {
	return []setting{
		{field: "group", flag: "group", read: asText},
		{field: "unlimited", flag: "unlimited", bare: true, read: asTruth},
		{field: "quota", flag: "quota", read: asText},
		{field: "models", flag: "models", read: asList},
		{field: "expires_at", flag: "expires", read: asTime},
		{field: "allow_ips", flag: "allow-ips", read: asList},
		{field: "caps.day", flag: "caps-day", read: asText},
		{field: "caps.week", flag: "caps-week", read: asText},
		{field: "caps.month", flag: "caps-month", read: asText},
		{field: "rate", flag: "rate", read: asNumber},
		{field: "in_flight", flag: "in-flight", read: asNumber},
		{field: "unpaid", flag: "unpaid", read: asText},
		{field: "uploads_per_day", flag: "uploads-per-day", read: asNumber},
		{field: "scopes", flag: "scopes", read: asList},
		{field: "erase_inputs", flag: "erase-inputs", bare: true, read: asTruth},
		{field: "grace_seconds", flag: "grace", read: asSeconds},
	}
}

// settings adds flags for the fields to the command. Parsing puts the given flags into the body. It
// refuses an empty value, which a script's unset variable would pass and which would make a key
// without the limit.
func (c *call) settings(fields ...string) (body map[string]any) {
	body = map[string]any{}
	for _, s := range settings() {
		if !slices.Contains(fields, s.field) {
			continue
		}
		take := func(text string) error {
			if text == "" {
				return errors.New("a value is wanted: leave the flag out to set nothing")
			}
			value, err := s.read(text)
			if err != nil {
				return err
			}
			outer, inner, nested := strings.Cut(s.field, ".")
			if !nested {
				body[outer] = value
				return nil
			}
			within, ok := body[outer].(map[string]any)
			if !ok {
				within = map[string]any{}
				body[outer] = within
			}
			within[inner] = value
			return nil
		}
		if s.bare {
			c.flags.BoolFunc(s.flag, "", take)
		} else {
			c.flags.Func(s.flag, "", take)
		}
	}
	return body
}

func asText(text string) (any, error) { return text, nil }

func asList(text string) (any, error) { return strings.Split(text, ","), nil }

func asTruth(text string) (any, error) {
	truth, err := strconv.ParseBool(text)
	if err != nil {
		return nil, errors.New("true or false is wanted")
	}
	return truth, nil
}

func asNumber(text string) (any, error) {
	n, err := strconv.Atoi(text)
	if err != nil {
		return nil, errors.New("a whole number is wanted")
	}
	return n, nil
}

// asTime parses RFC 3339 or Unix seconds.
func asTime(text string) (any, error) {
	if seconds, err := strconv.ParseInt(text, 10, 64); err == nil {
		return seconds, nil
	}
	return text, nil
}

// asSeconds parses a duration with a unit, or a number of seconds.
func asSeconds(text string) (any, error) {
	if seconds, err := strconv.Atoi(text); err == nil {
		return seconds, nil
	}
	d, err := time.ParseDuration(text)
	if err != nil || d%time.Second != 0 {
		return nil, errors.New("a time in whole seconds is wanted, as 90m")
	}
	return int(d / time.Second), nil
}
