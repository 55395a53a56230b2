package kernel

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// The failures that a directive can ask for, and the steps at which they happen.
const (
	FailModeration = "moderation"
	FailInternal   = "internal"
	FailTimeout    = "timeout"
	FailReject     = "reject"

	AtSubmit   = "submit"
	AtPoll     = "poll"
	AtDownload = "download"
)

const (
	directiveOpen  = "[[sandbox:"
	directiveClose = "]]"

	maxDuration    = 30 * 24 * time.Hour
	maxResultBytes = 64 << 30
	maxTimes       = 1000
	maxDownload    = time.Hour
	maxAnswer      = time.Minute
	maxFiltered    = 16

	// internalTimes is the default for how many calls an internal error makes fail.
	internalTimes = 3
)

// Directive is a set of instructions for the sandbox about one job. The zero value changes
// nothing.
type Directive struct {
	Duration    *time.Duration `json:"duration,omitempty"`
	Fail        string         `json:"fail,omitempty"`
	At          string         `json:"at,omitempty"`
	Times       int            `json:"times,omitempty"` // 0: every call
	ResultBytes int64          `json:"result_bytes,omitempty"`
	Filtered    int            `json:"filtered,omitempty"` // how many of several results are held back
	Media       string         `json:"media,omitempty"`    // what is wrong with the media of a job that succeeds
	// Piece is the number of the file to which media or a failure at download applies; 0: all.
	Piece    int           `json:"piece,omitempty"`
	Progress *int          `json:"progress,omitempty"`
	Ref      string        `json:"ref,omitempty"`
	Callback string        `json:"callback,omitempty"`
	Download time.Duration `json:"download,omitempty"` // how long a download takes; 0: as fast as possible
	Answer   time.Duration `json:"answer,omitempty"`   // how long after the job's creation the submission is answered
}

// Fails reports whether the directive asks for a failure at this step.
func (d Directive) Fails(at string) bool { return d.Fail != "" && d.At == at }

// FailsCall reports whether the directive makes the nth call of this step fail, counted from 1.
func (d Directive) FailsCall(at string, nth int) bool {
	return d.Fails(at) && (d.Times == 0 || nth <= d.Times)
}

// findDirective parses the directive in a text. ok is false if the text has none.
func findDirective(text string) (d Directive, ok bool, err error) {
	_, rest, ok := strings.Cut(text, directiveOpen)
	if !ok {
		return Directive{}, false, nil
	}
	inner, after, closed := strings.Cut(rest, directiveClose)
	if !closed {
		return Directive{}, true, errors.New("sandbox directive: no closing ]]")
	}
	if strings.Contains(after, directiveOpen) {
		return Directive{}, true, errors.New("sandbox directive: given twice")
	}
	d, err = parseDirective(inner)
	return d, true, err
}

// DirectiveText returns the first text with a directive. If no text has one, it returns the first
// text that is not empty.
func DirectiveText(texts ...string) string {
	if i := slices.IndexFunc(texts, func(s string) bool { return strings.Contains(s, directiveOpen) }); i >= 0 {
		return texts[i]
	}
	return cmp.Or(texts...)
}

// WithoutDirective returns the text without its directive. A job that takes over another job's
// prompt must not take over its directive.
func WithoutDirective(text string) string {
	before, rest, found := strings.Cut(text, directiveOpen)
	_, after, closed := strings.Cut(rest, directiveClose)
	if !found || !closed {
		return text
	}
	return strings.TrimSpace(strings.TrimRight(before, " ") + after)
}

// parseDirective parses "key=value, …".
func parseDirective(inner string) (Directive, error) {
	var d Directive
	var seen []string
	for pair := range strings.SplitSeq(inner, ",") {
		key, value, ok := strings.Cut(pair, "=")
		key, value = strings.TrimSpace(key), strings.TrimSpace(value)
		if !ok || value == "" {
			return Directive{}, fmt.Errorf("sandbox directive: %q is not key=value", strings.TrimSpace(pair))
		}
		if slices.Contains(seen, key) {
			return Directive{}, fmt.Errorf("sandbox directive: %s is given twice", key)
		}
		seen = append(seen, key)
		if err := d.set(key, value); err != nil {
			return Directive{}, fmt.Errorf("sandbox directive: %s: %w", key, err)
		}
	}
	return d, d.complete(seen)
}

func (d *Directive) set(key, value string) error {
	switch key {
	case "duration":
		d.Duration = new(time.Duration)
		return readSeconds(d.Duration, value, maxDuration)
	case "fail":
		return readWord(&d.Fail, value, FailModeration, FailInternal, FailTimeout, FailReject)
	case "at":
		return readWord(&d.At, value, AtSubmit, AtPoll, AtDownload)
	case "times":
		return readNumber(&d.Times, value, 1, maxTimes)
	case "result_bytes":
		return readNumber(&d.ResultBytes, value, 1, maxResultBytes)
	case "filtered":
		return readNumber(&d.Filtered, value, 1, maxFiltered)
	case "media":
		return readWord(&d.Media, value, MediaNone, MediaEmpty, MediaPage, MediaElsewhere)
	case "piece":
		return readNumber(&d.Piece, value, 1, maxFiltered)
	case "progress":
		d.Progress = new(int)
		return readNumber(d.Progress, strings.TrimSuffix(value, "%"), 0, 100)
	case "ref":
		d.Ref = value
	case "callback":
		return readWord(&d.Callback, value, CallbackNone, CallbackLate, CallbackFlood)
	case "download":
		return readSeconds(&d.Download, value, maxDownload)
	case "answer":
		return readSeconds(&d.Answer, value, maxAnswer)
	default:
		return errors.New("unknown")
	}
	return nil
}

// complete checks the combination of keys and fills in defaults that depend on other fields.
func (d *Directive) complete(seen []string) error {
	if d.Piece != 0 && d.Media == "" && d.At != AtDownload {
		return errors.New("sandbox directive: piece needs media, or at=download")
	}
	if d.Fail == "" {
		if d.At != "" || d.Times != 0 {
			return errors.New("sandbox directive: at and times need fail")
		}
		return nil
	}
	if d.At == "" {
		d.At = AtPoll
		if d.Fail == FailReject || d.Fail == FailTimeout {
			d.At = AtSubmit
		}
	}
	counted := d.At == AtDownload || d.At == AtPoll && d.Fail == FailInternal
	if slices.Contains(seen, "times") && !counted {
		return fmt.Errorf("sandbox directive: times means nothing for %s at %s", d.Fail, d.At)
	}
	if d.Times == 0 && d.Fail == FailInternal && counted {
		d.Times = internalTimes
	}
	return nil
}

// readSeconds parses a duration. A bare number is in seconds.
func readSeconds(into *time.Duration, value string, most time.Duration) (err error) {
	if _, bare := strconv.ParseFloat(value, 64); bare == nil {
		value += "s"
	}
	if *into, err = time.ParseDuration(value); err != nil || *into < 0 || *into > most {
		return fmt.Errorf("not a duration such as 3s, up to %s", most)
	}
	return nil
}

func readNumber[T int | int64](into *T, value string, least, most T) error {
	n, err := strconv.ParseInt(value, 10, 64)
	if *into = T(n); err != nil || *into < least || *into > most {
		return fmt.Errorf("not a number from %d to %d", least, most)
	}
	return nil
}

func readWord(into *string, value string, words ...string) error {
	if *into = value; !slices.Contains(words, value) {
		return fmt.Errorf("not one of %s", strings.Join(words, ", "))
	}
	return nil
}
