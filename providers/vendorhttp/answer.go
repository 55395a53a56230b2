package vendorhttp

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// Answer is a vendor's complete answer, of any status.
type Answer struct {
	Status int
	Header http.Header
	Body   []byte
	at     time.Time
}

// Decode reads the body as one JSON object into v. A field whose type differs from v's stays zero,
// so that one odd field does not hide the id next to it. Decode ignores the Content-Type, because
// vendors often send a wrong one.
func (a Answer) Decode(v any) error { return a.decode("{", v) }

// DecodeList is Decode for a body that is one JSON array.
func (a Answer) DecodeList(v any) error { return a.decode("[", v) }

func (a Answer) decode(begins string, v any) error {
	if !bytes.HasPrefix(bytes.TrimLeft(a.Body, " \t\r\n"), []byte(begins)) {
		return errors.New("the answer is no JSON object or array, as it should be")
	}
	err := json.Unmarshal(a.Body, v)
	if _, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return nil
	}
	if err != nil {
		return errors.New("the answer is no valid JSON") // the decoder's text may quote the body
	}
	return nil
}

// maxRetryAfter bounds the pause that a vendor may ask for.
const maxRetryAfter = 5 * time.Minute

// RetryAfter returns the pause that the Retry-After header asks for, as seconds or as a date. It
// returns 0 if there is none.
func (a Answer) RetryAfter() time.Duration {
	value := strings.TrimSpace(a.Header.Get("Retry-After"))
	if seconds, err := strconv.ParseUint(value, 10, 32); err == nil {
		return min(time.Duration(seconds)*time.Second, maxRetryAfter)
	}
	if at, err := http.ParseTime(value); err == nil {
		return min(max(at.Sub(a.at), 0), maxRetryAfter)
	}
	return 0
}

// Encode writes the body of a request. Unlike json.Marshal, it does not escape <, > and &, which
// vendors read as markers in prompts.
func Encode(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimRight(b.Bytes(), "\n"), nil
}

// Text is a JSON string, number or boolean as text. Any other JSON value reads as empty.
type Text string

// UnmarshalJSON never fails, so that one odd field does not hide the others.
func (t *Text) UnmarshalJSON(b []byte) error {
	*t = ""
	switch b[0] {
	case '"':
		var s string
		if err := json.Unmarshal(b, &s); err == nil {
			*t = Text(s)
		}
	case '{', '[', 'n':
	default:
		*t = Text(b)
	}
	return nil
}

// maxMoment is the year 10000 in milliseconds. ISO 8601 writes years with four digits.
const maxMoment = 253402300800000

// maxSeconds is longer than any clip that a vendor makes.
const maxSeconds = 24 * 3600

// Seconds returns the text as a number of seconds. It returns 0 if the text is no number from 0 to
// maxSeconds.
func (t Text) Seconds() float64 {
	n, err := strconv.ParseFloat(strings.TrimSpace(string(t)), 64)
	if err != nil || math.IsNaN(n) || n < 0 || n > maxSeconds {
		return 0
	}
	return n
}

// Moment returns the text as a time in ISO 8601, in UTC. It reads milliseconds since 1970 and
// written times, which are in UTC unless they name a zone. It returns "" for any other text.
func (t Text) Moment() string {
	const iso = "2006-01-02T15:04:05.000Z"
	if ms, err := strconv.ParseInt(string(t), 10, 64); err == nil && ms > 0 && ms < maxMoment {
		return time.UnixMilli(ms).UTC().Format(iso)
	}
	for _, layout := range []string{time.RFC3339Nano, time.DateTime} {
		if at, err := time.Parse(layout, string(t)); err == nil {
			return at.UTC().Format(iso)
		}
	}
	return ""
}

// Prose returns the text for clients to read, such as lyrics. It keeps line breaks and tabs, and
// drops other control characters.
func (t Text) Prose() string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && r != '\n' && r != '\t' {
			return -1
		}
		return r
	}, strings.ToValidUTF8(string(t), ""))
}

// Decimal returns the text if it is a plain decimal amount, else "".
func (t Text) Decimal() string {
	s := strings.TrimSpace(string(t))
	if len(s) == 0 || len(s) > 32 || strings.Trim(s, "0123456789.") != "" || strings.Count(s, ".") > 1 {
		return ""
	}
	return s
}

// Link returns the text if it is an absolute http or https URL, else "".
func (t Text) Link() string {
	s := strings.TrimSpace(string(t))
	u, err := url.Parse(s)
	if err != nil || len(s) > 8192 || (u.Scheme != "http" && u.Scheme != "https") || u.Hostname() == "" {
		return ""
	}
	return s
}

// ID returns the text if it can be an id of a vendor, else "". An id has 1 to 256 printable ASCII
// characters and no spaces.
func (t Text) ID() string {
	if len(t) > 256 || strings.ContainsFunc(string(t), func(r rune) bool { return r <= ' ' || r > '~' }) {
		return ""
	}
	return string(t)
}
