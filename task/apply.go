package task

import (
	"cmp"
	"strings"
	"time"

	"github.com/mediagate/mediagate"
)

// Effects are what an event asks for besides the change of the state. Storage and its callers
// carry them out. In the same transaction they write the ledger's entry, the vendors' charges,
// and the times at which the run is to be woken and files are to be swept. After the commit they
// signal the run, ask vendors to stop jobs, and sweep the files. Housekeeping sweeps again at the
// stored time, when no copy can be under way any more.
type Effects struct {
	// Wake says that the next step has changed, so that the run has to ask.
	Wake bool
	// Copy says that the poller that stored the job's end also copies the files, and signals the
	// run afterwards. Storage therefore gives the run ten seconds until its wake, instead of the
	// two seconds after other changes (D2).
	Copy bool
	// Entry resolves the hold, at most once in the life of a task. A post charges the state's
	// Cost, which is never above the hold; a void charges nothing. If Entry is empty, no money
	// moves.
	Entry mediagate.EntryKind
	// Charged holds what vendors charged us, by attempt.
	Charged map[int]*mediagate.VendorCharge
	// Stop lists attempts whose jobs were reported when the task no longer waited for them. Their
	// vendors are to be asked to stop them, if they can (D5).
	Stop []int
	// Stray lists jobs that belong to no attempt of the task. Their vendors are to be asked to
	// stop them, and the task's story names them (D5).
	Stray []Stray
	// Evidence lists signs that the database has lost its last commits.
	Evidence []mediagate.Evidence
	// Sweep says that files may be stored that the task does not show (D13).
	Sweep bool
}

// Changed is the result of a task's events: the task after them, its next step, and what remains
// to be done outside of the database.
type Changed struct {
	State   State
	Step    Step
	Effects Effects
	At      time.Time // by the database's clock
}

// And returns the effects of two events together; next is the later one.
func (e Effects) And(next Effects) Effects {
	e.Wake, e.Copy, e.Sweep = e.Wake || next.Wake, e.Copy || next.Copy, e.Sweep || next.Sweep
	e.Entry = cmp.Or(e.Entry, next.Entry)
	e.Stop = append(e.Stop, next.Stop...)
	e.Stray = append(e.Stray, next.Stray...)
	e.Evidence = append(e.Evidence, next.Evidence...)
	for n, charge := range next.Charged {
		if e.Charged == nil {
			e.Charged = map[int]*mediagate.VendorCharge{}
		}
		e.Charged[n] = charge
	}
	return e
}

// Apply applies an event to the state, in memory, and returns what else is to be done. Only Apply
// changes a task, and Begin for a new one. It returns KindConflict if the event is refused; on an
// error the state is unchanged.
func (s *State) Apply(event Event, now time.Time) (Effects, error) {
	before, next := s.Task, s.Advance(now)
	c := change{State: s, now: now}
	if err := event.apply(&c); err != nil {
		return Effects{}, err
	}
	if differs(before, s.Task) {
		s.Version++
	}
	c.Wake = c.Wake || s.Advance(now) != next
	return c.Effects, nil
}

// change is an event that is being applied.
type change struct {
	*State
	Effects
	now time.Time
}

// differs reports whether a client would see a difference between the two.
func differs(was, is mediagate.Task) bool {
	return was.Status != is.Status || was.Progress != is.Progress || was.Modal.State != is.Modal.State ||
		was.CancelRequestedAt.IsZero() != is.CancelRequestedAt.IsZero() ||
		was.Webhook.State != is.Webhook.State || was.Webhook.Reason != is.Webhook.Reason
}

func (s *State) open() bool { return !s.Status.Terminal() }

// current returns attempt n if it is the newest attempt of an open task, and nil otherwise.
func (s *State) current(n int) *Attempt {
	if a := s.Last(); s.open() && a != nil && a.N == n {
		return a
	}
	return nil
}

func conflict(format string, args ...any) error {
	return mediagate.Errorf(mediagate.KindConflict, format, args...)
}

// notOffered returns the error for a command that does not apply. It names the commands that do.
func (c *change) notOffered(action string) error {
	offered := c.Actions(c.now)
	if len(offered) == 0 {
		return conflict("%s does not apply to this task: no action does", action)
	}
	return conflict("%s does not apply to this task now: what does is %s", action, strings.Join(offered, ", "))
}
