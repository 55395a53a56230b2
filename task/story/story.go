package story

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/task"
)

// Story is everything that is stored about a task, as operators read it.
type Story struct {
	State      task.State // with all attempts
	Lease      Lease
	Commands   []mediagate.Action
	Deliveries []mediagate.Delivery
	Ledger     []mediagate.Transfer
	At         time.Time // when it was read, by the database's clock
}

// Lease is the wake of a task's run: by WakeAt the run must have asked for its next step. A task
// without a wake has the zero value.
type Lease struct {
	WakeAt time.Time
	Tries  int  // tries of the wake scan since a run asked last
	Asked  bool // a run has asked before
}

// firstTry and lastTry are the shortest and the longest pause between tries of the wake scan.
const (
	firstTry = time.Minute
	lastTry  = time.Hour
)

// TryAgain returns how long the wake scan pauses after that many tries: one minute, then twice as
// long each time, up to one hour (D2).
func TryAgain(tries int) time.Duration { return min(firstTry<<min(tries, 6), lastTry) }

// overdue reports whether the run has not asked for its next step, although the wake scan has
// tried StuckTries times to get it going.
func (s *Story) overdue() bool {
	return !s.State.Status.Terminal() && s.Lease.Tries >= mediagate.StuckTries
}

// Waits explains what the task waits for. If its run is overdue, or was not started yet, the task
// first waits for the wake scan.
func (s *Story) Waits() (e Explanation, until time.Time, then string) {
	e = Explain(&s.State, s.State.Advance(s.At), s.At)
	until, then = e.Step.Until, e.Then()
	switch {
	case s.State.Status.Terminal():
	case s.overdue():
		until = s.Lease.WakeAt
		then = fmt.Sprintf("the run has not asked for this step after %d tries: "+
			"the wake scan describes the run in Temporal, and signals or replaces it. After that, %s", s.Lease.Tries, then)
	case !s.Lease.WakeAt.IsZero() && s.At.Sub(s.Lease.WakeAt) > firstTry:
		until = s.Lease.WakeAt
		then = "this time has passed without the wake scan: in a burst, other tasks come first; " +
			"otherwise no worker is alive, or Temporal is away. After that, " + then
	case until.IsZero():
		until = s.Lease.WakeAt
		then += ". If the run has made no progress by this time, the wake scan signals or replaces it"
	}
	return e, until, then
}

// Stuck says why a task is stuck, since when, and until when it may stay so.
type Stuck struct {
	Reason       string
	Since, Until time.Time
	Actions      []string
}

// Stuck returns nil for a task that is not stuck. If the task is parked and its run is overdue,
// Stuck returns the parking.
func (s *Story) Stuck() *Stuck {
	switch st := &s.State; {
	case !st.Status.Terminal() && st.Wait.Reason != "":
		return &Stuck{string(st.Wait.Reason), st.Wait.Since, st.FailsAt(), st.Actions(s.At)}
	case s.overdue():
		since := s.Lease.WakeAt
		for i := range s.Lease.Tries {
			since = since.Add(-TryAgain(i))
		}
		return &Stuck{mediagate.ReasonRunOverdue, since, s.Lease.WakeAt, st.Actions(s.At)}
	default:
		return nil
	}
}

// Line is one line of a task's story.
type Line struct {
	At     time.Time
	What   string
	Detail string
}

// Lines returns the story of a task in the order of time. It has only what rows still know: once a
// parking or a wait for a slot is over, no row shows it.
func (s *Story) Lines() []Line {
	var lines []Line
	say := func(at time.Time, what, detail string, args ...any) {
		if !at.IsZero() {
			lines = append(lines, Line{at, what, fmt.Sprintf(detail, args...)})
		}
	}
	st := &s.State
	say(st.CreatedAt, "submitted", "%s, key %s", st.Model, st.KeyID)
	money := func(ofHold bool) {
		for _, entry := range s.Ledger {
			if (entry.Kind == mediagate.EntryHold) == ofHold {
				say(entry.At, string(entry.Kind), "%s", entry.Amount)
			}
		}
	}
	money(true)
	for _, c := range s.Commands {
		if c.Action == mediagate.ActionStray {
			say(c.At, "stray job", "%s", c.Reason)
			continue
		}
		say(c.At, "command "+c.Action, "%s", commanded(c))
	}
	for i := range st.Attempts {
		attemptLines(&st.Attempts[i], say)
	}
	waitLines(st, say)
	say(st.CancelRequestedAt, "cancel requested", "")
	say(st.FailRequestedAt, "fail requested", "")
	say(st.EndedAt, string(st.Status), "%s", s.ending())
	money(false)
	for _, a := range st.Attempts {
		if a.State == mediagate.AttemptAbandoned && a.GivenUpAt.IsZero() {
			since := slices.MaxFunc([]time.Time{st.EndedAt, a.AcceptedAt}, time.Time.Compare)
			say(since, fmt.Sprintf("attempt %d abandoned", a.N),
				"its job may run on, until %s at the latest", a.SlotUntil.Format(time.RFC3339))
		}
	}
	for _, d := range s.Deliveries {
		detail := fmt.Sprintf("round %d, attempt %d: ", d.Round, d.Attempt)
		if d.Status != 0 {
			detail += fmt.Sprintf("status %d", d.Status)
		}
		say(d.At, "callback", "%s, %d ms", strings.TrimSuffix(detail+d.Error, ": "), d.Duration.Milliseconds())
	}
	say(st.InputsErasedAt, "inputs erased", "")
	say(st.ErasedAt, "erased", "")
	slices.SortStableFunc(lines, func(a, b Line) int { return a.At.Compare(b.At) })
	return lines
}

// waitLines adds the line of the task's present wait.
func waitLines(st *task.State, say func(at time.Time, what, detail string, args ...any)) {
	switch since := st.Wait.Since; st.Wait.Why {
	case mediagate.WhySource:
		say(since, "waits for sources", "%s", strings.Join(st.SourceIDs(), ", "))
	case mediagate.WhySlot:
		say(since, "queued", "for a slot of %s", strings.Join(st.QueuedFor, ", "))
	case mediagate.WhyModal:
		say(since, "waits for modal parameters", "attempt %d", st.Modal.N)
	case mediagate.WhyUnknown:
		say(since, fmt.Sprintf("attempt %d unknown", st.Last().N), "the vendor's answer was lost")
	case mediagate.WhyVendor:
		say(since, fmt.Sprintf("attempt %d asked a last time", st.Last().N), "at the deadline")
	case mediagate.WhyPause, mediagate.WhyParked:
	}
	if st.Wait.Reason != "" {
		say(st.Wait.Since, "parked", "%s", st.Wait.Reason)
	}
}

func commanded(c mediagate.Action) string {
	text := "by " + c.By
	if c.Channel != "" {
		text = "to " + c.Channel + ", " + text
	}
	if c.Reason != "" {
		text += ": " + c.Reason
	}
	return text
}

func (s *Story) ending() string {
	if f := s.State.Failure; f != nil {
		return wordsOf(f)
	}
	size := int64(0)
	for _, r := range s.State.Results {
		size += r.Size
	}
	if n := len(s.State.Results); n > 0 {
		files := "files"
		if n == 1 {
			files = "file"
		}
		return fmt.Sprintf("%d %s copied, %d bytes", n, files, size)
	}
	return ""
}

// attemptLines adds the lines of an attempt.
func attemptLines(a *task.Attempt, say func(at time.Time, what, detail string, args ...any)) {
	name := fmt.Sprintf("attempt %d", a.N)
	say(a.CreatedAt, name, "to %s as %s", cmp.Or(a.Channel, "no channel that is known"), a.ExternalID)
	say(a.AbsentAt, name+" not found", "by a lookup")
	say(a.AbsentAgainAt, name+" proven absent", "by a second lookup")
	say(a.AcceptedAt, name+" accepted", "the vendor's id is %s", a.Ref.JobID)
	if a.LookedAt.After(a.AbsentAgainAt) {
		say(a.LookedAt, name+" looked up", "%d times, without an answer", a.Lookups)
	}
	say(a.GivenUpAt, name+" given up", "by a command")
	switch {
	case a.State == mediagate.AttemptRejected:
		say(a.EndedAt, name+" rejected", "%s", Words(a))
	case a.Outcome != nil && a.Outcome.Succeeded:
		say(a.EndedAt, name+" succeeded", "%s", Words(a))
	default:
		say(a.EndedAt, name+" ended", "%s", Words(a))
	}
}

// Words returns what is known about why the attempt ended as it did, including the vendor's own
// words.
func Words(a *task.Attempt) string {
	var words []string
	add := func(text string) {
		if text != "" && !slices.Contains(words, text) {
			words = append(words, text)
		}
	}
	add(string(a.Trouble))
	for _, f := range []*mediagate.Failure{a.Failure, a.Refusal, a.Unusable} {
		add(wordsOf(f))
	}
	if o := a.Outcome; o != nil {
		add(wordsOf(o.Failure))
		add(o.VendorText)
	}
	add(a.Error)
	return strings.Join(words, "; ")
}

func wordsOf(f *mediagate.Failure) string {
	if f == nil {
		return ""
	}
	return strings.TrimSuffix(string(f.Code)+": "+f.Message, ": ")
}
