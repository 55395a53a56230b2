package task

import (
	"cmp"
	"strings"
	"time"

	"github.com/mediagate/mediagate"
)

// Effects are what an event asks for beside the state itself. Whoever stores the
// state carries them out: in the same transaction the ledger's entry, the vendors'
// charges, and the times by which the run is to be woken and files are to be swept; after
// it the signal to the run, the stops, and a first sweep.
type Effects struct {
	// Wake says that the next step has changed: the run has to ask.
	Wake bool
	// Copy says that the poller which stored the job's end copies the files, and signals the
	// run after that: the run is to be woken later than after other changes (D2).
	Copy bool
	// Entry resolves the hold, once a task: a post of the state's Cost, which is never
	// above the hold, or a void. Empty: no money moves.
	Entry mediagate.EntryKind
	// Charged are what vendors charged us, by attempt.
	Charged map[int]*mediagate.VendorCharge
	// Stop are attempts whose jobs were reported when the task did not wait for them any
	// more: their vendors are to be asked to stop them, where they can (D5).
	Stop []int
	// Stray are jobs that no attempt of the task has: their vendors are to be asked to stop
	// them, and the task's story names them (D5).
	Stray []Stray
	// Evidence are signs that the database has lost its last commits.
	Evidence []mediagate.Evidence
	// Sweep says that files may be stored that the task does not show (D13).
	Sweep bool
}

// Changed is what came of a task's events: the task after them, its next step, and what
// is to be done outside of the database.
type Changed struct {
	State   State
	Step    Step
	Effects Effects
	At      time.Time // by the database's clock
}

// And joins the effects of two events, of which next came second.
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

// Apply is the only function that changes a task. It changes the state in memory, and
// returns what else is to be done. Returns KindConflict for an event that is refused;
// on an error the state is unchanged.
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

// change is an event being applied.
type change struct {
	*State
	Effects
	now time.Time
}

// differs reports that a client sees another task.
func differs(was, is mediagate.Task) bool {
	return was.Status != is.Status || was.Progress != is.Progress || was.Modal.State != is.Modal.State ||
		was.CancelRequestedAt.IsZero() != is.CancelRequestedAt.IsZero() ||
		was.Webhook.State != is.Webhook.State || was.Webhook.Reason != is.Webhook.Reason
}

func (s *State) open() bool { return !s.Status.Terminal() }

// current is the attempt, if it is the newest of an open task; nil otherwise.
func (s *State) current(n int) *Attempt {
	if a := s.Last(); s.open() && a != nil && a.N == n {
		return a
	}
	return nil
}

func conflict(format string, args ...any) error {
	return mediagate.Errorf(mediagate.KindConflict, format, args...)
}

// notOffered is the error for a command that does not apply. It names those that do.
func (s *State) notOffered(action string, now time.Time) error {
	offered := s.Actions(now)
	if len(offered) == 0 {
		return conflict("%s does not apply to this task: no action does", action)
	}
	return conflict("%s does not apply to this task now: what does is %s", action, strings.Join(offered, ", "))
}
