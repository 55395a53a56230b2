package task

import (
	"encoding/json"
	"time"

	"github.com/mediagate/mediagate"
)

// Event is something that can happen to a task. The list is closed: it is this
// file. A report that comes late or twice changes nothing. An intent or a command
// that does not apply is refused with KindConflict, and changes nothing.
type Event interface{ apply(c *change) error }

// Events of the run.
type (
	// Asked is the run's question for its next step, with what the run has seen of its
	// task. A row that lacks some of that has lost its tail, and takes it over (D5).
	Asked struct{ Seen }

	// StepStopped says that an activity of the run was cancelled. Its run may have done so,
	// and asks next. Or an operator terminated or reset the run, and nobody asks before
	// the lease is over (D2). So the only effect is Wake.
	StepStopped struct{}

	// StepEnded says that the step, of attempt N where it has one, ended, and how:
	// Kind and Code are of its error, Reason becomes the task's failure.
	StepEnded struct {
		Step   Kind
		N      int
		Failed bool
		Kind   mediagate.Kind
		Code   string
		Reason string // only of KindInvalid and KindTooLarge
	}

	// EndDue ends the task, if its end is due: it is what the step Settle does.
	EndDue struct{}
)

// Events of steps.
type (
	// InputsChecked is the result of checking the client's files.
	InputsChecked struct{ Check mediagate.InputCheck }

	// IntentStored begins an attempt, before its call (D3). The caller has taken a slot
	// for it. Former are names that its channel had: they count as its own (D11).
	IntentStored struct {
		Sending
		Former []string
	}

	// Reopened stores the intent of sending an attempt again, under the same name, after
	// two lookups found no job. Absent is the SendBefore of the sending that they
	// looked for (D4).
	Reopened struct {
		N          int
		Absent     time.Time
		SendBefore time.Time
		CallEnds   time.Time
	}

	// Queued lets the task wait for a slot at one of the channels, for attempt N
	// (D7). OnlyFull says that one of them has no trouble and is merely full: it ends a
	// parking. Refused is what a person has to mend at the vendor before any of them
	// takes a job: the task parks for it, and keeps its place in the queue.
	Queued struct {
		N        int
		Channels []string
		OnlyFull bool
		Refused  mediagate.ParkReason
	}

	// ModelRetired says that attempt N cannot be made: all routes that are left name models
	// that their vendors no longer have. It ends the task, without a call.
	ModelRetired struct{ N int }

	// Accepted says that the vendor has the job, or had it when it was looked up.
	// FirstPollAt is when its channel asks first. A synchronous vendor's answer has
	// the outcome. The job of an earlier sending is the attempt's as well: all have one name.
	Accepted struct {
		Sending
		Submission  mediagate.Submission
		FirstPollAt time.Time
	}

	// Refused says that the vendor refused the sending, and has no job of it. Invalid says
	// that it refused the request as such, which may be its way of saying that the name is
	// taken. Elsewhere: see Attempt.
	Refused struct {
		Sending
		Failure   mediagate.Failure
		Invalid   bool
		Elsewhere bool
		Detail    string
	}

	// SubmitUnknown says that the vendor may or may not have the job of the sending.
	// SenderLost says that its sender did not report.
	SubmitUnknown struct {
		Sending
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

	// Mirrored says where the copied files of the attempt are. It ends the task: as
	// completed, unless a cancel or a fail is noted. With Keep the end is left to Settle.
	Mirrored struct {
		N       int
		Results []mediagate.Result
		Keep    bool
	}

	// StopProven says that the vendor has stopped the attempt's job.
	StopProven struct{ N int }
)

// Events of a channel's poller. Claim is the token of the poller. Of a poller that has
// lost its claim only VendorEnded counts (D8).
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

	// VendorEnded is how the job ended. The first one counts (D9). MayCopy says that the
	// poller has room to copy the files.
	VendorEnded struct {
		N       int
		Outcome mediagate.Outcome
		MayCopy bool
	}

	// VendorWaits says that the vendor waits for modal parameters (D15). NextAt is the
	// next poll where the task takes none.
	VendorWaits struct {
		N      int
		Claim  string
		NextAt time.Time
	}

	// Troubled says that the vendor cannot be asked for the job (D11).
	Troubled struct {
		N      int
		Claim  string
		Reason mediagate.ParkReason
	}

	// SlotExpired says that SlotUntil of an abandoned attempt has passed: its job counts
	// as ended. It comes from housekeeping, without a claim.
	SlotExpired struct{ N int }
)

// Commands of clients and operators. Retry and reroute name the step that the task slept
// on when the command was given. They do nothing if the task sleeps on another one by
// now; the zero step matches any.
type (
	// CancelRequested is the client's cancel. KindConflict after the end.
	CancelRequested struct{}
	// FailRequested is an operator's end of the task, refunded.
	FailRequested struct{}
	// RetryRequested has a step tried now that the task waits for, with the time of a
	// new task (D10). An unknown attempt whose vendor cannot be asked is given up: the
	// operator takes the risk of a second job (D6).
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
	// Restored says that the task's row is of a backup. At names the restore: the event
	// counts once for each (D17).
	Restored struct{ At time.Time }
	// ChannelGone says that no worker has the channel any more: a task that is queued
	// for it looks for another one (D11).
	ChannelGone struct{ Channel string }
)

func (e Asked) apply(c *change) error            { c.applyAsked(e); return nil }
func (StepStopped) apply(c *change) error        { c.Wake = c.open(); return nil }
func (e StepEnded) apply(c *change) error        { c.applyStepEnded(e); return nil }
func (EndDue) apply(c *change) error             { c.endIfDue(); return nil }
func (e InputsChecked) apply(c *change) error    { c.applyInputsChecked(e); return nil }
func (e IntentStored) apply(c *change) error     { return c.applyIntentStored(e) }
func (e Reopened) apply(c *change) error         { return c.applyReopened(e) }
func (e Queued) apply(c *change) error           { return c.applyQueued(e) }
func (e ModelRetired) apply(c *change) error     { return c.applyModelRetired(e) }
func (e Accepted) apply(c *change) error         { c.applyAccepted(e); return nil }
func (e Refused) apply(c *change) error          { c.applyRefused(e); return nil }
func (e SubmitUnknown) apply(c *change) error    { c.applySubmitUnknown(e); return nil }
func (e NotFound) apply(c *change) error         { c.applyNotFound(e); return nil }
func (e Mirrored) apply(c *change) error         { c.applyMirrored(e); return nil }
func (e StopProven) apply(c *change) error       { c.applyStopProven(e); return nil }
func (e Claimed) apply(c *change) error          { c.applyClaimed(e); return nil }
func (e Progressed) apply(c *change) error       { c.applyProgressed(e); return nil }
func (e VendorEnded) apply(c *change) error      { c.applyVendorEnded(e); return nil }
func (e VendorWaits) apply(c *change) error      { c.applyVendorWaits(e); return nil }
func (e Troubled) apply(c *change) error         { c.applyTroubled(e); return nil }
func (e SlotExpired) apply(c *change) error      { c.applySlotExpired(e); return nil }
func (CancelRequested) apply(c *change) error    { return c.applyCancelRequested() }
func (FailRequested) apply(c *change) error      { return c.applyFailRequested() }
func (e RetryRequested) apply(c *change) error   { return c.applyRetryRequested(e) }
func (e RerouteRequested) apply(c *change) error { return c.applyRerouteRequested(e) }
func (PollRequested) apply(c *change) error      { return c.applyPollRequested() }
func (RedeliverRequested) apply(c *change) error { return c.applyRedeliverRequested() }
func (e ModalGiven) apply(c *change) error       { return c.applyModalGiven(e) }
func (e Delivered) apply(c *change) error        { c.applyDelivered(e); return nil }
func (e BreakerClosed) apply(c *change) error    { c.applyBreakerClosed(e); return nil }
func (e Restored) apply(c *change) error         { c.applyRestored(e); return nil }
func (e ChannelGone) apply(c *change) error      { c.applyChannelGone(e); return nil }
