package task

import (
	"encoding/json"
	"time"

	"github.com/mediagate/mediagate"
)

// Event is something that can happen to a task. The list is closed: it is this
// file. An event that comes late or twice changes nothing; one that asks for what
// must not be returns KindConflict, and changes nothing either.
type Event interface{ event() }

// Events of the run.
type (
	// Asked is the run's question for its next step. Begun is the highest attempt
	// that this run has begun: a row that knows fewer has lost its tail (D17).
	Asked struct{ Begun int }

	// StepEnded says that the step, of attempt N where it has one, ended, and how:
	// Kind and Code are of its error.
	StepEnded struct {
		Step   Kind
		N      int
		Failed bool
		Kind   mediagate.Kind
		Code   string
		Reason string // for the task's failure; only of what is KindInvalid or KindTooLarge
	}

	// EndDue ends the task, if its end is due: it is what the step Settle does.
	EndDue struct{}
)

// Events of steps.
type (
	// InputsChecked tells what was found of the client's files.
	InputsChecked struct{ Judgement mediagate.Judgement }

	// IntentStored begins an attempt, before its call (D3). KindConflict where it
	// must not be made. The caller has taken a slot for it.
	IntentStored struct {
		N           int
		Channel     string
		Provider    string
		Fingerprint string
		Route       mediagate.Route
		CanStop     bool
		ExternalID  string
		SendBefore  time.Time
		CallEnds    time.Time
	}

	// Reopened sends an attempt again that provably made no job, under the same
	// name. Absent is the SendBefore of the sending that the proof is of (D4).
	Reopened struct {
		N          int
		Absent     time.Time
		SendBefore time.Time
		CallEnds   time.Time
	}

	// Queued lets the task wait for a slot at one of the channels, for attempt N
	// (D7). Well says that a channel without trouble is merely full: a parking for
	// another's trouble is over.
	Queued struct {
		N        int
		Channels []string
		Well     bool
	}

	// SlotGranted says that a channel keeps a slot for attempt N.
	SlotGranted struct{ N int }

	// Accepted says that the vendor has the job, or had it when it was looked up.
	// FirstPollAt is when its channel asks first. A synchronous vendor's answer has
	// the outcome.
	Accepted struct {
		N           int
		Submission  mediagate.Submission
		FirstPollAt time.Time
	}

	// Refused proves that the vendor has no job of the sending with that
	// SendBefore. Invalid says that it refused the request as such, which may be how
	// it says that the name is taken. Elsewhere: see Attempt.
	Refused struct {
		N          int
		SendBefore time.Time
		Failure    mediagate.Failure
		Invalid    bool
		Elsewhere  bool
		Detail     string
	}

	// SubmitUnknown says that the vendor may or may not have the job of the sending
	// with that SendBefore. SenderLost says that its sender did not report.
	SubmitUnknown struct {
		N          int
		SendBefore time.Time
		SenderLost bool
		Detail     string
	}

	// NotFound says that a lookup that began at AskedAt found no job of the sending
	// with that SendBefore. It counts from CallEnds on.
	NotFound struct {
		N          int
		SendBefore time.Time
		AskedAt    time.Time
	}

	// PartIntent stores the intent of one call of several: its first, with Sends 0,
	// or another after a refusal that Sends calls have led to.
	PartIntent struct {
		N, Part    int
		Sends      int
		SendBefore time.Time
		CallEnds   time.Time
	}

	// PartEnded says what came of one call of several: of the sending with the
	// part's SendBefore, and of no other.
	PartEnded struct {
		N    int
		Part Part
	}

	// PartsOver ends an attempt by its parts, where they tell enough: no further
	// call of it will be made by this sender. Over are parts of which nothing can be
	// under way any more.
	PartsOver struct {
		N           int
		SendersLost []int // parts whose senders were lost
		FirstPollAt time.Time
	}

	// Mirrored says where the files of the attempt are now. It ends the task.
	Mirrored struct {
		N       int
		Results []mediagate.Result
	}

	// StopProven says that the vendor has stopped the attempt's job.
	StopProven struct{ N int }
)

// Events of a channel's poller. Claim is the token that the row was claimed with;
// without it, or with another's, nothing counts but an end (D8).
type (
	// Claimed gives the attempt's row to a poller.
	Claimed struct {
		N     int
		Claim string
	}

	// Progressed is an answer that is no end. Percent is -1 where the vendor gives none.
	Progressed struct {
		N       int
		Claim   string
		Percent int
		NextAt  time.Time
	}

	// VendorEnded is how the job ended. The first one counts (D9).
	VendorEnded struct {
		N       int
		Outcome mediagate.Outcome
	}

	// VendorWaits says that the vendor waits for modal parameters (D15).
	VendorWaits struct {
		N     int
		Claim string
	}

	// Troubled says that the job cannot be asked for (D11).
	Troubled struct {
		N      int
		Claim  string
		Reason mediagate.ParkReason
	}

	// SlotExpired says that the time is over after which the job of an abandoned
	// attempt counts as ended.
	SlotExpired struct{ N int }
)

// Wishes of clients and operators. Those of operators name what they were given
// for: the step that the task slept on. The zero step stands for whatever it is.
type (
	// CancelRequested is the client's cancel. KindConflict after the end.
	CancelRequested struct{}
	// FailRequested is an operator's end of the task, refunded.
	FailRequested struct{}
	// RetryRequested has a stuck step tried now, with the time of a new task (D10).
	// Of a submission whose fate cannot be told it gives the attempt up: the
	// operator takes the risk of a second job.
	RetryRequested struct{ For Step }
	// RerouteRequested gives the last attempt up and makes another, at the channel
	// where one is named (D9).
	RerouteRequested struct {
		For     Step
		Channel string
	}
	// PollRequested has the channel ask now.
	PollRequested struct{}
	// RedeliverRequested begins another round of the callback (D14).
	RedeliverRequested struct{}
	// ModalGiven are the client's modal parameters. KindConflict where the task
	// does not wait for any (D15).
	ModalGiven struct{ Input json.RawMessage }
)

// Facts from elsewhere.
type (
	// Delivered says how a round of the callback stands: an empty state says that
	// another attempt follows.
	Delivered struct {
		Round  int
		State  mediagate.WebhookState
		Reason string
	}
	// BreakerClosed says that the channel takes jobs again: a task that is parked
	// for it tries again.
	BreakerClosed struct{ Reasons []mediagate.ParkReason }
)

func (Asked) event()              {}
func (StepEnded) event()          {}
func (EndDue) event()             {}
func (InputsChecked) event()      {}
func (IntentStored) event()       {}
func (Reopened) event()           {}
func (Queued) event()             {}
func (SlotGranted) event()        {}
func (Accepted) event()           {}
func (Refused) event()            {}
func (SubmitUnknown) event()      {}
func (NotFound) event()           {}
func (PartIntent) event()         {}
func (PartEnded) event()          {}
func (PartsOver) event()          {}
func (Mirrored) event()           {}
func (StopProven) event()         {}
func (Claimed) event()            {}
func (Progressed) event()         {}
func (VendorEnded) event()        {}
func (VendorWaits) event()        {}
func (Troubled) event()           {}
func (SlotExpired) event()        {}
func (CancelRequested) event()    {}
func (FailRequested) event()      {}
func (RetryRequested) event()     {}
func (RerouteRequested) event()   {}
func (PollRequested) event()      {}
func (RedeliverRequested) event() {}
func (ModalGiven) event()         {}
func (Delivered) event()          {}
func (BreakerClosed) event()      {}
