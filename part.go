package mediagate

import "time"

// PartState is how far one call of a job that takes several has come.
type PartState string

// intent → done | refused | unknown; unknown → done | refused; refused →
// intent where the vendor only refused for now.
const (
	PartIntent  PartState = "intent"  // stored before the call
	PartDone    PartState = "done"    // what it made is on record
	PartRefused PartState = "refused" // proven: it made nothing
	PartUnknown PartState = "unknown" // it may have made something that nobody has
)

// Part is one call of an attempt whose job takes several, one a file.
type Part struct {
	TaskID     string
	N          int
	Part       int // from 0
	State      PartState
	SendBefore time.Time   // the first byte of the call is written before this (D4)
	Sends      int         // how often its intent was stored
	Submission *Submission // the vendor's answer: of a part that is done, or whose job failed
	Failure    *Failure    // why a part without an answer was refused
	Error      string
}

// Refusal is why the vendor made nothing of a refused part.
func (p Part) Refusal() Failure {
	switch {
	case p.Failure != nil:
		return *p.Failure
	case p.Submission != nil && p.Submission.Outcome != nil && p.Submission.Outcome.Failure != nil:
		return *p.Submission.Outcome.Failure
	default:
		return Failure{Code: CodeGenerationFailed, Message: "the provider made no file"}
	}
}
