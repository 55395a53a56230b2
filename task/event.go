package task

import (
	"encoding/json"
	"time"

	"github.com/mediagate/mediagate"
)

// Event is something that can happen to a task. The list is closed: this file declares all
// events.
//
// A report that comes late or twice changes nothing. An intent or a command that does not apply
// is refused with KindConflict, and changes nothing.
type Event interface{ apply(c *change) error }

// Events of the run.
type (
	// Asked is the run's question for its next step, with what the run has seen of its task. If
	// the row lacks some of that, the database has lost commits, and the row adopts it (D5).
	Asked struct{ Seen }

	// StepStopped says that an activity of the run was cancelled. If the run cancelled it, the
	// run asks next. If an operator terminated or reset the run, no question comes before the
	// lease is over (D2). StepStopped brings that question forward: its only effect is Wake.
	StepStopped struct{}

	// StepEnded says that a step has ended, for attempt N if it has one. If the step failed, Kind
	// and Code are those of its error, and Reason becomes the message of the task's failure.
	StepEnded struct {
		Step   Kind
		N      int
		Failed bool
		Kind   mediagate.Kind
		Code   string
		Reason string // set for KindInvalid and KindTooLarge only
	}

	// EndDue ends the task if its end is due. The step Settle applies it.
	EndDue struct{}
)

// Events of steps.
type (
	// InputsChecked is the result of a check of the client's files.
	InputsChecked struct{ Check mediagate.InputCheck }

	// IntentStored begins an attempt, before its call (D3). The caller has taken a slot for it.
	// Former lists earlier names of the channel: attempts under those names count as the
	// channel's own (D11).
	IntentStored struct {
		Sending
		Former []string
	}

	// Reopened stores the intent to send an attempt once more under the same name, after two
	// lookups found no job. Absent is the SendBefore of the sending that the lookups asked about
	// (D4).
	Reopened struct {
		N          int
		Absent     time.Time
		SendBefore time.Time
		CallEnds   time.Time
	}

	// Queued lets attempt N of the task wait for a slot at one of the channels (D7). OnlyFull says
	// that one of them has no trouble and is merely full, which ends a parking. Refused is set if
	// none of the channels takes a job until a person has mended something at the vendor: the task
	// then shows as parked for that reason, and keeps its place in the queue.
	Queued struct {
		N        int
		Channels []string
		OnlyFull bool
		Refused  mediagate.ParkReason
	}

	// ModelRetired says that attempt N cannot be made: no vendor of the remaining routes has the
	// model any more. It ends the task without a call.
	ModelRetired struct{ N int }

	// Accepted says that the vendor has the job, either by its answer or by a lookup. FirstPollAt
	// is when the channel polls for the first time. The answer of a synchronous vendor holds the
	// outcome. The job of an earlier sending belongs to the attempt as well, since all sendings
	// have one name.
	Accepted struct {
		Sending
		Submission  mediagate.Submission
		FirstPollAt time.Time
	}

	// Refused says that the vendor refused the sending, and made no job of it. Invalid says that
	// the vendor refused the request itself; a vendor that has a job under that name already may
	// answer in the same way. For Elsewhere see Attempt.
	Refused struct {
		Sending
		Failure   mediagate.Failure
		Invalid   bool
		Elsewhere bool
		Detail    string
	}

	// SubmitUnknown says that the vendor may or may not have the job of the sending. SenderLost
	// says that the reason is a sender that did not report.
	SubmitUnknown struct {
		Sending
		SenderLost bool
		Detail     string
	}

	// NotFound says that a lookup of attempt N, begun at AskedAt, found no job. SendBefore
	// identifies the sending that the lookup asked about. NotFound counts only if the lookup began
	// after the call was over, at the attempt's CallEnds or later.
	NotFound struct {
		N          int
		SendBefore time.Time
		AskedAt    time.Time
	}

	// Mirrored says where the copied files of the attempt are. It ends the task: as completed,
	// unless a cancel or a fail is noted. With Keep, the end is left to Settle.
	Mirrored struct {
		N       int
		Results []mediagate.Result
		Keep    bool
	}

	// StopProven says that the vendor has stopped the attempt's job.
	StopProven struct{ N int }
)

// Events of a channel's poller. Claim is the token of the poller's claim. From a poller that has
// lost its claim only VendorEnded counts (D8).
type (
	// Claimed gives the attempt's row to a poller.
	Claimed struct {
		N     int
		Claim string
	}

	// Progressed says that the job still runs. Percent is -1 if the vendor gives no progress.
	Progressed struct {
		N       int
		Claim   string
		Percent int
		NextAt  time.Time
	}

	// VendorEnded says how the job ended. The first outcome counts (D9). MayCopy says that the
	// poller has room to copy the files itself.
	VendorEnded struct {
		N       int
		Outcome mediagate.Outcome
		MayCopy bool
	}

	// VendorWaits says that the vendor waits for modal parameters (D15). NextAt is the time of
	// the next poll if the task takes no such parameters.
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

	// SlotExpired says that SlotUntil of an abandoned attempt has passed, so that its job counts
	// as ended. Housekeeping sends it, without a claim.
	SlotExpired struct{ N int }
)

// Commands of clients and operators. Retry and reroute name the step that the task was sleeping
// on when the command was given. If the task sleeps on another step by now, they do nothing; the
// zero step matches any.
type (
	// CancelRequested is the client's cancel. It is refused with KindConflict after the end.
	CancelRequested struct{}
	// FailRequested is an operator's order to end the task as failed. The client pays nothing.
	FailRequested struct{}
	// RetryRequested has the task try its next step now, and gives it as much time as a new task
	// has (D10). If the last attempt is unknown and its vendor cannot be asked, the attempt is
	// given up: the operator takes the risk of a second job (D6).
	RetryRequested struct{ For Step }
	// RerouteRequested gives up the last attempt and makes another: at the named channel, if one
	// is named (D9).
	RerouteRequested struct {
		For     Step
		Channel string
	}
	// PollRequested has the channel poll for the job now.
	PollRequested struct{}
	// RedeliverRequested begins another round of the callback (D14).
	RedeliverRequested struct{}
	// ModalGiven brings the client's modal parameters. It is refused with KindConflict if the
	// task does not wait for any (D15).
	ModalGiven struct{ Input json.RawMessage }
)

// Facts from elsewhere.
type (
	// Delivered says how a round of the callback stands. An empty state says that another attempt
	// follows.
	Delivered struct {
		Round  int
		State  mediagate.WebhookState
		Reason string
	}
	// BreakerClosed says that a channel takes jobs again. If the task is parked for one of the
	// reasons, it tries again.
	BreakerClosed struct{ Reasons []mediagate.ParkReason }
	// Restored says that the task's row comes from a backup. At identifies the restore: the event
	// counts once for each restore (D17).
	Restored struct{ At time.Time }
	// ChannelGone says that no worker has the channel any more. A task that is queued for it
	// looks for another channel (D11).
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
