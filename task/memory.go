package task

import (
	"slices"
	"time"

	"github.com/mediagate/mediagate"
)

// A database may lose its last commits: in a failover to a replica that lagged, or because a
// backup was restored. Temporal, and the processes that are in a call, then know more than the
// row (D5, D17). For example, a run has seen that attempt 2 was sent, and the row knows attempt 1
// only. Two kinds of messages repair that:
//
//   - Each report of a call carries the identity of its attempt. If the row lacks the attempt, or the
//     attempt's last sending, the report puts it back.
//   - A run remembers what it has seen of its task, and a sender remembers what it has begun. Each
//     [Asked] carries that memory, and the row adopts what it lacks.
//
// An attempt that was put back is not sent again before two lookups prove that there is no job. If
// the report or the memory names its job, the channel polls for that job. Otherwise the attempt is
// treated like any intent whose sender died: the bucket is searched, and the vendor is asked.

// Sending identifies one sending of an attempt. The intent stores it; the reports of the vendor's
// answer, and the memories of run and sender, repeat it.
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
	Sends       int             `json:"sends,omitempty"` // how often the attempt was sent, including this time
}

// Seen is what a run, or the sender of an attempt, has seen of its task. It becomes part of the
// run's history, so it holds ids, names, times and codes, but no text of the client and no message
// of the vendor.
type Seen struct {
	Sending                      // the last sending; only N if nothing else is known of the attempt
	Ref       mediagate.JobRef   `json:"ref,omitzero"`        // the vendor's name for the job, once it has answered
	Cancelled bool               `json:"cancelled,omitempty"` // a cancel was requested
	Failed    bool               `json:"failed,omitempty"`    // an operator's fail was requested
	Status    mediagate.Status   `json:"status,omitempty"`    // set if the task has ended
	Failure   *mediagate.Failure `json:"failure,omitempty"`   // set if the task failed; without its message
}

// With merges two memories of sendings. The later sending counts. If both are of the same sending,
// the memory that knows the job counts.
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

// Updated returns what a run knows after an answer to its question. The answer may know less than
// the run, because the row is missing, cannot be read, or has lost commits. Updated therefore keeps
// what the answer lacks. If the row and the run know different attempts with the same number, the
// row's attempt counts, since the run has already reported its own (D5).
func (s Seen) Updated(answer Seen) Seen {
	known := s.With(answer)
	if answer.N == s.N && answer.Channel != "" && !answer.sameAttempt(s.Sending) {
		known.Sending, known.Ref = answer.Sending, answer.Ref
	}
	answer.Sending, answer.Ref = known.Sending, known.Ref
	answer.Cancelled = answer.Cancelled || known.Cancelled
	answer.Failed = answer.Failed || known.Failed
	return answer
}

// Stray is a job that belongs to no attempt of its task.
type Stray struct {
	Sending Sending
	Ref     mediagate.JobRef
}

// sameAttempt reports whether two sendings with the same number belong to the same attempt.
func (s Sending) sameAttempt(other Sending) bool {
	return s.Channel == other.Channel && s.Fingerprint == other.Fingerprint && s.ExternalID == other.ExternalID
}

// identify gives the attempt its identity, and makes s its last sending.
func (a *Attempt) identify(s Sending) {
	a.Sending = s
	a.Sends = max(s.Sends, 1)
}

// Seen returns what a run sees of the task.
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

// attemptOf returns the attempt that a report is about. It puts back an attempt, or a sending,
// that the row lacks. It returns nil if the report fits no attempt: the row has one with that
// number at another channel or account, or under another name. It also returns nil if the row lacks
// the attempt, and the report names no channel or the row cannot be read.
func (c *change) attemptOf(s Sending) *Attempt {
	a, lacked := c.findAttempt(s)
	if lacked {
		c.addEvidence(mediagate.EvidenceAnswer)
	}
	return a
}

// findAttempt does the same as attemptOf, and reports whether the row lacked something. Unlike
// attemptOf, it notes no evidence.
func (c *change) findAttempt(s Sending) (a *Attempt, lacked bool) {
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
	case a.ExternalID != s.ExternalID && c.ErasedAt.IsZero() && !c.Unreadable: // an erased or unreadable name is empty
		return nil, false
	case s.SendBefore.After(a.SendBefore) && a.awaitsReport():
		a.identify(s)
		a.reopen()
		if c.current(a.N) == a {
			c.endWait() // the wait was about an earlier sending
		}
		return a, true
	}
	return a, false
}

// putBack adds an attempt that the row lacks, as an intent. Open attempts before it are abandoned.
// If the task does not need the added attempt, that attempt is abandoned at once.
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
		c.DeadlineAt = c.now.Add(c.Plan.Timeout) // as the client's call had set it
		c.close(before, mediagate.AttemptEnded)
	case before != nil:
		c.abandon(before) // its outcome is only recorded
	}
	if wanted {
		c.endWait()        // the wait was about the attempt before
		c.TailLost = false // from now on only this attempt is uncertain
		if s.Channel == c.RerouteTo {
			c.RerouteTo = "" // this is the attempt that the reroute led to
		}
		if s.Route.Sync {
			c.begin()
		}
	}
	at, _ := slices.BinarySearchFunc(c.Attempts, s.N, func(a Attempt, n int) int { return a.N - n })
	c.Attempts = slices.Insert(c.Attempts, at, put)
	return &c.Attempts[at]
}

// mayHaveAsked reports whether the vendor has asked the client for parameters of the attempt's
// job, or may have done so in a commit that the row has lost.
func (c *change) mayHaveAsked(a *Attempt) bool {
	return c.waitsForClient() || c.Modal.State == mediagate.ModalNone && a.State == mediagate.AttemptAccepted
}

// addEvidence notes a sign that the database has lost commits, once for each kind.
func (c *change) addEvidence(e mediagate.Evidence) {
	if !slices.Contains(c.Evidence, e) {
		c.Evidence = append(c.Evidence, e)
	}
}

// recordStray records a job that belongs to no attempt, so that its vendor is asked to stop it
// (D5). A lookup may already have found the job at another channel of the same vendor account, or
// under the channel's new name. The attempt with that number then has the job, and recordStray
// records nothing.
func (c *change) recordStray(s Sending, ref mediagate.JobRef) {
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

// adopt lets the row adopt what a run or a sender has seen and the row lacks. A cancel or a fail
// comes first, then the attempt with its sending and its job, then the end of a task that failed
// (D13). The end of a completed task is not adopted, since the run does not know its files. The
// task completes again, from its job or from the files in the bucket.
func (c *change) adopt(seen Seen) {
	lacked := false
	if (seen.Cancelled || seen.Status == mediagate.StatusCancelled) && c.CancelRequestedAt.IsZero() {
		c.CancelRequestedAt, lacked = c.now, true
	}
	if seen.Failed && c.FailRequestedAt.IsZero() {
		c.FailRequestedAt, lacked = c.now, true
	}
	if seen.N > 0 && seen.N >= c.lastN() && c.adoptAttempt(seen) {
		lacked = true
	}
	if seen.Status == mediagate.StatusFailed && seen.Failure != nil && c.CancelRequestedAt.IsZero() {
		c.end(failedWith(seen.Failure))
		lacked = true
	}
	if lacked {
		c.addEvidence(mediagate.EvidenceRunAhead)
	}
}

// adoptAttempt lets the row adopt the last attempt that a run or a sender knows, and reports
// whether the row lacked something. The job of a synchronous call is not adopted, even if the
// answer had an id: such a vendor keeps no job that could be polled for. The manifest in the
// bucket is the memory of that call.
func (c *change) adoptAttempt(seen Seen) (lacked bool) {
	if seen.Channel == "" {
		return c.putBackNumbered(seen.N)
	}
	a, lacked := c.findAttempt(seen.Sending)
	switch {
	case a == nil || seen.Ref.JobID != "" && a.Ref.JobID != "" && a.Ref.JobID != seen.Ref.JobID:
		c.recordStray(seen.Sending, seen.Ref)
	case seen.Ref.JobID != "" && !a.Route.Sync && a.Ref.JobID == "" && a.Outcome == nil:
		c.accept(a, mediagate.Submission{Ref: seen.Ref}, c.now)
		return true
	}
	return lacked
}
