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

// The failures that a directive can ask for, and where they strike.
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

	// internalTimes is how many calls an internal error spoils by default.
	internalTimes = 3
)

// Directive is what a prompt asks of the sandbox. The zero value asks for
// nothing.
type Directive struct {
	Duration    *time.Duration `json:"duration,omitempty"`
	Fail        string         `json:"fail,omitempty"`
	At          string         `json:"at,omitempty"`
	Times       int            `json:"times,omitempty"` // 0: every call
	ResultBytes int64          `json:"result_bytes,omitempty"`
	Filtered    int            `json:"filtered,omitempty"` // of several results: how many are held back
	Media       string         `json:"media,omitempty"`    // what is wrong with the media of a job that succeeds
	Piece       int            `json:"piece,omitempty"`    // of several files: the one that media, or a failure at download, is about; 0: all
	Progress    *int           `json:"progress,omitempty"`
	Ref         string         `json:"ref,omitempty"`
	Callback    string         `json:"callback,omitempty"`
	Download    time.Duration  `json:"download,omitempty"` // how long a file takes; 0: as fast as it goes
	Answer      time.Duration  `json:"answer,omitempty"`   // how long after the job is made the submit is answered
}

// Fails reports whether the directive spoils this step.
func (d Directive) Fails(at string) bool { return d.Fail != "" && d.At == at }

// Spoils reports whether it spoils the nth call (from 1) of this step.
func (d Directive) Spoils(at string, nth int) bool {
	return d.Fails(at) && (d.Times == 0 || nth <= d.Times)
}

// findDirective takes the directive out of a text. ok is false when there is
// none.
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

// Saying is the text in which a directive may stand: of several the first that
// has one, else the first that is there.
func Saying(texts ...string) string {
	if i := slices.IndexFunc(texts, func(s string) bool { return strings.Contains(s, directiveOpen) }); i >= 0 {
		return texts[i]
	}
	return cmp.Or(texts...)
}

// WithoutDirective is a text less what it asks of the sandbox, for jobs that
// take over the words of another one.
func WithoutDirective(text string) string {
	before, rest, found := strings.Cut(text, directiveOpen)
	_, after, closed := strings.Cut(rest, directiveClose)
	if !found || !closed {
		return text
	}
	return strings.TrimSpace(strings.TrimRight(before, " ") + after)
}

// parseDirective reads "key=value, …".
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
		v, err := parseSeconds(value)
		d.Duration = &v
		return err
	case "fail":
		d.Fail = value
		return oneOf(value, FailModeration, FailInternal, FailTimeout, FailReject)
	case "at":
		d.At = value
		return oneOf(value, AtSubmit, AtPoll, AtDownload)
	case "times":
		n, err := strconv.Atoi(value)
		if err != nil || n < 1 || n > maxTimes {
			return fmt.Errorf("not a number from 1 to %d", maxTimes)
		}
		d.Times = n
	case "result_bytes":
		n, err := strconv.ParseInt(value, 10, 64)
		if err != nil || n < 1 || n > maxResultBytes {
			return fmt.Errorf("not a number from 1 to %d", int64(maxResultBytes))
		}
		d.ResultBytes = n
	case "filtered":
		n, err := strconv.Atoi(value)
		if err != nil || n < 1 || n > maxFiltered {
			return fmt.Errorf("not a number from 1 to %d", maxFiltered)
		}
		d.Filtered = n
	case "media":
		d.Media = value
		return oneOf(value, MediaNone, MediaEmpty, MediaPage, MediaElsewhere)
	case "piece":
		n, err := strconv.Atoi(value)
		if err != nil || n < 1 || n > maxFiltered {
			return fmt.Errorf("not a number from 1 to %d", maxFiltered)
		}
		d.Piece = n
	case "progress":
		n, err := strconv.Atoi(strings.TrimSuffix(value, "%"))
		if err != nil || n < 0 || n > 100 {
			return errors.New("not a number from 0 to 100")
		}
		d.Progress = &n
	case "ref":
		d.Ref = value
	case "callback":
		d.Callback = value
		return oneOf(value, CallbackNone, CallbackLate, CallbackFlood)
	case "download":
		v, err := parseSeconds(value)
		if err != nil || v > maxDownload {
			return fmt.Errorf("not a duration such as 40s, up to %s", maxDownload)
		}
		d.Download = v
	case "answer":
		v, err := parseSeconds(value)
		if err != nil || v > maxAnswer {
			return fmt.Errorf("not a duration such as 10s, up to %s", maxAnswer)
		}
		d.Answer = v
	default:
		return errors.New("unknown")
	}
	return nil
}

// complete fills what depends on other fields.
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

// parseSeconds reads a duration, a bare number being seconds.
func parseSeconds(value string) (time.Duration, error) {
	if _, err := strconv.ParseFloat(value, 64); err == nil {
		value += "s"
	}
	v, err := time.ParseDuration(value)
	if err != nil || v < 0 || v > maxDuration {
		return 0, errors.New("not a duration such as 3s, up to 720h")
	}
	return v, nil
}

func oneOf(value string, words ...string) error {
	if !slices.Contains(words, value) {
		return fmt.Errorf("not one of %s", strings.Join(words, ", "))
	}
	return nil
}

// DirectiveTrouble says what is wrong with a prompt's directive, or that it
// asked for a refusal.
func DirectiveTrouble(prompt string) string {
	if _, _, err := findDirective(prompt); err != nil {
		return err.Error()
	}
	return "is not acceptable"
}
