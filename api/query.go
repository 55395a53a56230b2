package api

import (
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/mediagate/mediagate"
)

// The default and the maximum of limit.
const (
	defaultLimit = 20
	maxLimit     = 100
)

// query parses the query. It keeps a parameter that is badly escaped or holds a semicolon as it
// is. url.ParseQuery would drop it, and a list without a requested filter is a wrong answer.
func (c *call) query() url.Values {
	q := url.Values{}
	for pair := range strings.SplitSeq(c.Request().URL.RawQuery, "&") {
		name, value, _ := strings.Cut(pair, "=")
		q.Add(unescaped(name), unescaped(value))
	}
	return q
}

func unescaped(s string) string {
	if text, err := url.QueryUnescape(s); err == nil {
		return text
	}
	return s
}

// intQuery reads an integer from least to most. It returns absent if the parameter is missing or
// empty.
func intQuery(q url.Values, name string, least, most, absent int) (int, error) {
	s := q.Get(name)
	if s == "" {
		return absent, nil
	}
	n, err := strconv.Atoi(s)
	if err != nil || n < least || n > most || strings.HasPrefix(s, "+") {
		return 0, mediagate.Invalid(
			name, "%s must be an integer between %d and %d", name, least, most,
		).Because(mediagate.ReasonOutOfRange)
	}
	return n, nil
}

// maxUnix is the last second of the year 9999, where RFC 3339 ends.
const maxUnix = 253402300799

// timeQuery reads Unix seconds or an RFC 3339 time.
func timeQuery(q url.Values, name string) (time.Time, error) {
	s := q.Get(name)
	if s == "" {
		return time.Time{}, nil
	}
	if t, ok := parseTime(s); ok {
		return t, nil
	}
	return time.Time{}, mediagate.Invalid(
		name, "%s must be Unix seconds or an RFC 3339 time", name,
	).Because(mediagate.ReasonMalformed)
}

func parseTime(s string) (time.Time, bool) {
	if n, err := strconv.ParseInt(s, 10, 64); err == nil {
		return time.Unix(n, 0).UTC(), n >= 0 && n <= maxUnix && s[0] != '+'
	}
	return parseRFC3339(s)
}

// smallLetters maps the two letters that RFC 3339 allows in lower case and package time does not.
var smallLetters = strings.NewReplacer("t", "T", "z", "Z")

func parseRFC3339(s string) (time.Time, bool) {
	t, err := time.Parse(time.RFC3339, smallLetters.Replace(s))
	return t.UTC(), err == nil
}

// oneOfQuery reads a parameter that must be one of the words.
func oneOfQuery(q url.Values, name string, words ...string) (string, error) {
	s := q.Get(name)
	if s == "" {
		return "", nil
	}
	if slices.Contains(words, s) {
		return s, nil
	}
	return "", mediagate.Invalid(
		name, "%s must be one of %s", name, strings.Join(words, ", "),
	).Because(mediagate.ReasonNotOneOf)
}

// textQuery reads a text such as a name or an id. It bounds the length and refuses what the
// database cannot store.
func textQuery(q url.Values, name string) (string, error) {
	s := q.Get(name)
	if utf8.RuneCountInString(s) > maxText || !storable(s) {
		return "", mediagate.Invalid(
			name, "%s must be a text of at most %d characters", name, maxText,
		).Because(mediagate.ReasonTooLong)
	}
	return s, nil
}

// The values of a boolean parameter.
const yes = "true"

var yesNo = []string{yes, "false"}

// isID reports whether s has the form of our ids: the prefix and a ULID. Other text is never
// looked up in the database.
func isID(s, prefix string) bool {
	digits, ok := strings.CutPrefix(s, prefix)
	if !ok || len(digits) != 26 || digits[0] > '7' {
		return false
	}
	for i := range len(digits) {
		if !strings.Contains("0123456789ABCDEFGHJKMNPQRSTVWXYZ", digits[i:i+1]) {
			return false
		}
	}
	return true
}

// words converts a list of constants to strings.
func words[T ~string](list []T) []string {
	texts := make([]string, len(list))
	for i, word := range list {
		texts[i] = string(word)
	}
	return texts
}
