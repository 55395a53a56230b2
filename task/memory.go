package task

import (
	"slices"
	"time"

	"github.com/mediagate/mediagate"
)

// A database may lose its last commits: in a failover to a replica that lagged, or because
// a backup was restored. Temporal, and the processes that are in a call, then know more
// than the row (D5, D17):
//
//   - A report carries the identity of its attempt. If the row lacks the attempt, or the
//     attempt's last sending, the report puts it back.
//   - A run remembers what it has seen of its task, and a sender what it has begun. Each
//     question carries that memory, and the row takes over what it lacks.
//
// An attempt that was put back is not sent before two lookups prove it absent. Either its job
// is known, or it is an intent like any other whose sender died: the bucket is searched, and
// the vendor asked.

// Sending identifies one sending of an attempt. The intent stores it; the reports of the
// vendor's answer and the memories repeat it.
type Sending struct {
	N           int             `json:"n,omitempty"`
	Channel     string          `json:"channel,omitempty"`
	Provider    string          `json:"provider,omitempty"`
	Fingerprint string          `json:"fingerprint,omitempty"`
	Route       mediagate.Route `json:"route,omitzero"`
	CanStop     bool            `json:"can_stop,omitempty"`
	ExternalID  string          `json:"external_id,omitempty"`
	SendBefore  time.Time       `json:"send_before,omitzero"`
	CallEnds    time.Time       `json:"call_ends,omitzero"`
	Sends       int             `json:"sends,omitempty"` // how often the attempt was sent, this time included
}

// Seen is what a run, or the sender of an attempt, has seen of its task. It becomes part of
// the run's history: it holds ids, words of ours and times.
type Seen struct {
	Sending                      // the last one; only N where nothing else is known of the attempt
	Ref       mediagate.JobRef   `json:"ref,omitzero"`        // the vendor's, once it has answered
	Cancelled bool               `json:"cancelled,omitempty"` // a cancel was requested
	Failed    bool               `json:"failed,omitempty"`    // an operator's fail was requested
	Status    mediagate.Status   `json:"status,omitempty"`    // of a task that has ended
	Failure   *mediagate.Failure `json:"failure,omitempty"`   // of a task that failed, without words
}

// With adds what another memory knows of a later sending, or of the same one.
func (s Seen) With(other Seen) Seen {
	sameNumber := other.N == s.N
	switch {
	case other.N < s.N:
	case sameNumber && other.SendBefore.Before(s.SendBefore):
	case sameNumber && other.Ref.JobID == "" && s.Ref.JobID != "":
	default:
		s.Sending, s.Ref = other.Sending, other.Ref
	}
	return s
}

// Heard is what a run knows after an answer: what that says, and what the run has heard
// before that the answer lacks, since its row is missing, cannot be read, or has lost its
// tail. If the row has another attempt of the same number, that one counts: the run has
// reported its own (D5).
func (s Seen) Heard(answer Seen) Seen {
	known := s.With(answer)
	if answer.N == s.N && answer.Channel != "" && !answer.sameAttempt(s.Sending) {
		known.Sending, known.Ref = answer.Sending, answer.Ref
	}
	answer.Sending, answer.Ref = known.Sending, known.Ref
	answer.Cancelled = answer.Cancelled || known.Cancelled
	answer.Failed = answer.Failed || known.Failed
	return answer
}

// Stray is a job that no attempt of its task has.
type Stray struct {
	Sending Sending
	Ref     mediagate.JobRef
}

// sameAttempt reports that two sendings, of one number, are of the same attempt.
func (s Sending) sameAttempt(other Sending) bool {
	return s.Channel == other.Channel && s.Fingerprint == other.Fingerprint && s.ExternalID == other.ExternalID
}

// identify gives the attempt the identity and the sending.
func (a *Attempt) identify(s Sending) {
	a.Sending = s
	a.Sends = max(s.Sends, 1)
}

// Seen is what a run sees of the task.
func (s *State) Seen() Seen {
	seen := Seen{Cancelled: !s.CancelRequestedAt.IsZero(), Failed: !s.FailRequestedAt.IsZero()}
	if !s.open() {
		seen.Status, seen.Failure = s.Status, s.Failure.WithoutMessage()
	}
	if a := s.Last(); a != nil {
		seen.Ref = a.Ref
		if seen.N = a.N; !a.unidentified() {
			seen.Sending = a.Sending
		}
	}
	return seen
}

// attemptOf returns the attempt that a report is about. An attempt, or a sending, that the
// row lacks is put back. It returns nil if the report fits no attempt: the row has one of
// that number at another channel or account, or under another name.
func (c *change) attemptOf(s Sending) *Attempt {
	a, lacked := c.identified(s)
	if lacked {
		c.addEvidence(mediagate.EvidenceAnswer)
	}
	return a
}

// identified returns what attemptOf returns, and whether the row lacked something. It counts
// no evidence.
func (c *change) identified(s Sending) (a *Attempt, lacked bool) {
	a = c.Attempt(s.N)
	switch {
	case a == nil && (s.Channel == "" || c.Unreadable):
		return nil, false
	case a == nil:
		return c.putBack(s), true
	case a.unidentified() && s.Channel != "":
		a.identify(s)
	case a.Channel != s.Channel || a.Fingerprint != s.Fingerprint:
		return nil, false
	case a.ExternalID != s.ExternalID && c.ErasedAt.IsZero() && !c.Unreadable: // a name that is gone is no other name
		return nil, false
	case s.SendBefore.After(a.SendBefore) && a.awaitsReport():
		a.identify(s)
		a.reopen()
		if c.current(a.N) == a {
			c.endWait() // it was for what became of an earlier sending
		}
		return a, true
	}
	return a, false
}

// putBack adds an attempt that the row lacks, as an intent. Open ones before it are
// abandoned. If the task does not wait for the attempt, the attempt is abandoned itself.
func (c *change) putBack(s Sending) *Attempt {
	put := Attempt{TaskID: c.ID, State: mediagate.AttemptIntent, CreatedAt: c.now}
	put.identify(s)
	before := c.Last()
	wanted := c.open() && s.N > c.lastN()
	switch {
	case !wanted:
		c.abandon(&put)
	case before != nil && s.Route.Operation == mediagate.OperationModal && c.mayHaveAsked(before): // D15: the same job
		c.Modal.State, c.Modal.N = mediagate.ModalSubmitted, before.N
		c.endWait()
		c.DeadlineAt = c.now.Add(c.Plan.Timeout) // as the call had given it
		c.close(before, mediagate.AttemptEnded)
	case before != nil:
		c.abandon(before) // what comes of its job is only recorded
	}
	if wanted {
		c.endWait()        // it was for the attempt before
		c.TailLost = false // the doubt is the attempt's
		if s.Channel == c.RerouteTo {
			c.RerouteTo = "" // the attempt is the one that the reroute led to
		}
		if s.Route.Sync {
			c.begin()
		}
	}
	at, _ := slices.BinarySearchFunc(c.Attempts, s.N, func(a Attempt, n int) int { return a.N - n })
	c.Attempts = slices.Insert(c.Attempts, at, put)
	return &c.Attempts[at]
}

// mayHaveAsked reports that the vendor has asked the client for parameters of the attempt's
// job, or may have done so since: the row has lost that as well then.
func (c *change) mayHaveAsked(a *Attempt) bool {
	return c.waitsForClient() || c.Modal.State == mediagate.ModalNone && a.State == mediagate.AttemptAccepted
}

func (c *change) addEvidence(e mediagate.Evidence) {
	if !slices.Contains(c.Evidence, e) {
		c.Evidence = append(c.Evidence, e)
	}
}

// noteStray notes a job that no attempt has: its vendor is asked to stop it (D5). The attempt
// has the job if a lookup found it at another channel of the same vendor account, or at the
// channel's new name.
func (c *change) noteStray(s Sending, ref mediagate.JobRef) {
	a := c.Attempt(s.N)
	found := a != nil && a.Provider == s.Provider && ref.JobID != "" && a.Ref.JobID == ref.JobID
	if s.Channel == "" || found {
		return
	}
	c.addEvidence(mediagate.EvidenceStray)
	c.Sweep = true
	if ref.JobID != "" {
		c.Stray = append(c.Stray, Stray{Sending: s, Ref: ref})
	}
}

// takeOver has the row take over what a run or a sender has seen and the row lacks: a
// cancel or a fail first, then the attempt, its sending and its job, then the end of a task
// that failed (D13). A completed task completes again by its job or its files.
func (c *change) takeOver(seen Seen) {
	lacked := false
	if (seen.Cancelled || seen.Status == mediagate.StatusCancelled) && c.CancelRequestedAt.IsZero() {
		c.CancelRequestedAt, lacked = c.now, true
	}
	if seen.Failed && c.FailRequestedAt.IsZero() {
		c.FailRequestedAt, lacked = c.now, true
	}
	if seen.N > 0 && seen.N >= c.lastN() && c.takeOverAttempt(seen) {
		lacked = true
	}
	if seen.Status == mediagate.StatusFailed && seen.Failure != nil && c.CancelRequestedAt.IsZero() {
		c.end(failed(seen.Failure))
		lacked = true
	}
	if lacked {
		c.addEvidence(mediagate.EvidenceRunAhead)
	}
}

// takeOverAttempt has the row take over the last attempt of which a run or a sender knows.
// It says whether the row lacked something. A synchronous vendor keeps no job that could be
// polled for, whatever id its answer has: the manifest in the bucket is the memory of that.
func (c *change) takeOverAttempt(seen Seen) (lacked bool) {
	if seen.Channel == "" {
		return c.putBackNumbered(seen.N)
	}
	a, lacked := c.identified(seen.Sending)
	job := mediagate.Submission{Ref: seen.Ref}
	switch {
	case a == nil || seen.Ref.JobID != "" && a.Ref.JobID != "" && a.Ref.JobID != seen.Ref.JobID:
		c.noteStray(seen.Sending, seen.Ref)
	case seen.Ref.JobID != "" && !a.Route.Sync && a.Ref.JobID == "" && a.Outcome == nil:
		c.accept(a, job, c.now)
		return true
	}
	return lacked
}
