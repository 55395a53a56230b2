package mediagate

import "time"

// Story is what the workflow knows of its task, the facts that its decisions
// rest on: its rows, read by each activity, and the settings of the worker
// that bear on them. It holds no prompt, no media link and no secret, since
// it becomes part of the history.
type Story struct {
	ReadAt  time.Time `json:"read_at,omitzero"`  // by the database's clock, as all times here
	Missing bool      `json:"missing,omitempty"` // the row is gone

	Generation int `json:"generation,omitempty"` // of the code that a run began with, in its first story; see activities.Generation

	Status Status `json:"status,omitempty"`
	Model  string `json:"model,omitempty"`
	Type   Type   `json:"type,omitempty"`

	CancelRequested bool       `json:"cancel,omitempty"`
	DeadlineAt      time.Time  `json:"deadline,omitzero"`
	ParkedAt        time.Time  `json:"parked_at,omitzero"`
	ParkReason      ParkReason `json:"park_reason,omitempty"`

	QueuedAt  time.Time `json:"queued_at,omitzero"`   // since when it waits for a slot for the attempt after N
	QueuedFor []string  `json:"queued_for,omitempty"` // at one of these channels
	Granted   bool      `json:"granted,omitempty"`    // and one of them keeps it for the task

	ModalUntil   time.Time `json:"modal_until,omitzero"`    // it waits for modal parameters, and so long (D15)
	ModalExpired bool      `json:"modal_expired,omitempty"` // none came

	Behind string `json:"behind,omitempty"` // of a step that made no attempt: the channel whose calls it has to wait behind

	Expected  time.Duration `json:"expected,omitempty"`
	OnUnknown string        `json:"on_unknown,omitempty"`

	JudgeInputs bool `json:"judge_inputs,omitempty"` // the client's media are still to be judged

	ParkTimeout time.Duration `json:"park_timeout,omitempty"` // a parked task that nobody mends fails then
	ParkRetry   time.Duration `json:"park_retry,omitempty"`   // a parked step is tried again so often

	QueueTimeout time.Duration `json:"queue_timeout,omitempty"` // a task that no channel has a slot for fails then

	// Of the newest attempt; N is 0 when there is none.
	N          int          `json:"n,omitempty"`
	State      AttemptState `json:"state,omitempty"`
	Channel    string       `json:"channel,omitempty"`
	Provider   string       `json:"provider,omitempty"`
	SendBefore time.Time    `json:"send_before,omitzero"`
	SenderLost bool         `json:"sender_lost,omitempty"` // of an unknown attempt: see SenderLost
	CallEnds   time.Time    `json:"call_ends,omitzero"`    // of an intent, and of a lost sender's synchronous call: nothing of it is under way from then on
	AbsentAt   time.Time    `json:"absent_at,omitzero"`
	Succeeded  bool         `json:"succeeded,omitempty"` // an outcome is stored: success
	Failure    *Failure     `json:"failure,omitempty"`   // an outcome or rejection is stored: failure
	Elsewhere  bool         `json:"elsewhere,omitempty"` // of an attempt that its channel was the first time to reject: another that never did takes new jobs
	Mirrored   bool         `json:"mirrored,omitempty"`
	Trouble    ParkReason   `json:"trouble,omitempty"`
	Unanswered bool         `json:"unheard,omitempty"`    // polled for again after a trouble, and not answered yet
	Sync       bool         `json:"sync,omitempty"`       // the submit call itself brings the result
	CanFind    bool         `json:"can_find,omitempty"`   // the vendor can be asked by our own id
	CanCancel  bool         `json:"can_cancel,omitempty"` // the vendor can stop a job

	// The signal that tells what is new of attempt N is outstanding: it is repeated
	// until the run is known to have read this.
	Outstanding bool `json:"-"`

	WebhookRound int          `json:"webhook_round,omitempty"`
	WebhookState WebhookState `json:"webhook_state,omitempty"`
}

// WaitsUntil is the end of waiting for the vendor as it stands now, see there.
func (s Story) WaitsUntil(now time.Time) time.Time {
	return WaitsUntil(s.DeadlineAt, s.ParkedAt, s.QueuedAt, now)
}
