package mediagate

import (
	"encoding/json"
	"slices"
	"time"
)

// Status is the state of a task as its client sees it.
type Status string

// A task waits, is worked on, and ends in one of the last three, for good. A
// client may cancel it until it has ended.
const (
	StatusPending    Status = "pending"
	StatusProcessing Status = "processing"
	StatusCompleted  Status = "completed"
	StatusFailed     Status = "failed"
	StatusCancelled  Status = "cancelled"
)

// Statuses lists the states.
func Statuses() []Status {
	return []Status{StatusPending, StatusProcessing, StatusCompleted, StatusFailed, StatusCancelled}
}

// Terminal reports whether the state is final.
func (s Status) Terminal() bool {
	return s == StatusCompleted || s == StatusFailed || s == StatusCancelled
}

// Task is one acknowledged job. Zero times mean "not yet". Fields without a name in JSON are
// columns of its row; the others are in the row's document.
type Task struct {
	ID        string          `json:"-"`
	AccountID string          `json:"-"`
	KeyID     string          `json:"-"`
	Model     string          `json:"-"` // as the client named it: an alias stays an alias
	Type      Type            `json:"-"`
	Params    json.RawMessage `json:"-"` // the validated request with defaults, without webhook and metadata
	Reference string          `json:"-"` // metadata.reference
	RequestID string          `json:"request_id,omitempty"`
	// TraceParent is the span of the submit, as the W3C header writes it; empty where
	// traces were off.
	TraceParent string `json:"-"`
	// Endpoint is the path that takes Params; empty in rows from before it was stored.
	Endpoint string `json:"endpoint,omitempty"`
	Plan     Plan   `json:"plan"`
	// Sources are the inputs that are files of other tasks.
	Sources   []TaskFile `json:"sources,omitempty"`
	Charges   []Charge   `json:"charges,omitempty"` // the chosen prices, fixed at submit
	Hold      Micros     `json:"-"`                 // what Charges add up to
	CreatedAt time.Time  `json:"-"`

	Status            Status    `json:"-"`
	Progress          int       `json:"-"` // 0 to 100; 100 exactly when completed
	Version           int64     `json:"-"` // +1 at each change that a client can see
	StartedAt         time.Time `json:"-"` // accepted by a vendor, or sent to one that answers at once
	DeadlineAt        time.Time `json:"-"` // end of waiting for the vendor; the time of a wait is added when the wait is over
	CancelRequestedAt time.Time `json:"-"` // a promise: the task does not complete any more
	Wait              Wait      `json:"-"`
	RerouteTo         string    `json:"reroute_to,omitempty"` // the channel that an operator chose for the next attempt; empty: any
	Modal             Modal     `json:"modal,omitzero"`       // the zero value where the vendor never asked for more

	EndedAt time.Time `json:"-"`
	Results []Result  `json:"-"`                 // of a completed task
	Made    *Made     `json:"made,omitempty"`    // beside the files, of a completed task
	Failure *Failure  `json:"failure,omitempty"` // why it failed
	Cost    Micros    `json:"-"`                 // what was charged
	Webhook Webhook   `json:"-"`

	InputsErasedAt time.Time `json:"-"` // the request is gone, see WithoutInputs
	ErasedAt       time.Time `json:"-"` // all is gone but what the money and its statistics need: clients know it no more
}

// WaitsUntil is the deadline as it stands now: moved by the time of the wait so far (D10).
func (t Task) WaitsUntil(now time.Time) time.Time { return t.Wait.Moves(t.DeadlineAt, now) }

// Wait is what an open task waits for before its next step (D12). A vendor that works is
// no wait, and neither is a call that is under way.
type Wait struct {
	Why    WaitWhy    // empty: the task does not wait
	Reason ParkReason // why the task is stuck, so that a person may have to help; empty: it is not
	Since  time.Time
	TryAt  time.Time // no step begins before; zero: one may begin now
	EndsAt time.Time // the task fails then; zero: this wait has no end of its own
}

// WaitWhy is what a task waits for.
type WaitWhy string

// Reasons to wait. A pause has no end of its own, and neither has a source, whose task ends by itself.
const (
	WhySource  WaitWhy = "source"  // a source has not ended (D21)
	WhyPause   WaitWhy = "pause"   // before the next try
	WhyParked  WaitWhy = "parked"  // a step is stuck, and is tried again by itself
	WhySlot    WaitWhy = "slot"    // no channel has a slot free (D7)
	WhyModal   WaitWhy = "modal"   // for the client's modal parameters (D15)
	WhyUnknown WaitWhy = "unknown" // the vendor may have the job: its answer was lost (D6)
	WhyVendor  WaitWhy = "vendor"  // for the vendor's last answer, after the deadline (D10)
)

// StopsClock reports that the time of the wait does not count against the deadline (D10):
// the time that a task is stuck, queued, or waits for its client or a source.
func (w Wait) StopsClock() bool {
	return w.Reason != "" || w.Why == WhySlot || w.Why == WhyModal || w.Why == WhySource
}

// Moves is the deadline as it stands now: moved by the time that the task has waited.
func (w Wait) Moves(deadline, now time.Time) time.Time {
	if !w.StopsClock() {
		return deadline
	}
	return deadline.Add(max(0, now.Sub(w.Since)))
}

// Plan is the snapshot of how a task is to be produced, taken from the
// catalog at submit, so that a later change of the catalog touches new tasks
// only.
type Plan struct {
	Routes      []Route       `json:"routes"` // in order of preference
	Expected    time.Duration `json:"expected"`
	Timeout     time.Duration `json:"timeout"`    // from submit to the end of waiting
	OnUnknown   string        `json:"on_unknown"` // OnUnknownFail or OnUnknownPark (D6)
	Media       string        `json:"media"`      // accepted class of result: "video", "image", "audio"
	MaxBytes    int64         `json:"max_bytes"`  // of one result file
	KeepForever bool          `json:"keep_forever,omitempty"`
	// Files is how many files the operation makes at most that can be another task's
	// input; nil: as many as are charged.
	Files *int `json:"files,omitempty"`

	// Uploads are the fields of the request whose media came within it: the
	// object keys in our bucket. Params lacks them; a job gets them as links.
	Uploads map[string]string `json:"uploads,omitempty"`
	// Attached are the links in Params to media that came within the request, for a model
	// that takes nothing but links.
	Attached []string `json:"attached,omitempty"`
	// Inputs are the client's media that the contract bounds: they are judged
	// before the first submit.
	Inputs []Input `json:"inputs,omitempty"`
	// Source is what an earlier task made and this one works on.
	Source *Source `json:"source,omitempty"`
	// Skipped are the routes that cannot express the request, for operators.
	Skipped []SkippedRoute `json:"skipped,omitempty"`
	// Action is the word of the operation, for art.
	Action string `json:"action,omitempty"`
	// Modal is how long the task may wait for modal parameters; 0 where no
	// vendor asks for any.
	Modal time.Duration `json:"modal,omitempty"`
	// How long the task stays parked at the most, how often a parked step is tried
	// again, and how long it waits for a slot.
	ParkTimeout  time.Duration `json:"park_timeout,omitempty"`
	ParkRetry    time.Duration `json:"park_retry,omitempty"`
	QueueTimeout time.Duration `json:"queue_timeout,omitempty"`
}

// SkippedRoute is a route that was left out of a plan.
type SkippedRoute struct {
	Provider string `json:"provider"`
	Upstream string `json:"upstream"`
	Reason   string `json:"reason"`
}

// What is done with a submission whose fate the vendor cannot tell.
const (
	OnUnknownFail = "fail"
	OnUnknownPark = "park"
)

// Route is one way to produce a model: a provider, the vendor's name for it, and
// the operation of the adapter.
type Route struct {
	Provider  string `json:"provider"`
	Upstream  string `json:"upstream"`
	Operation string `json:"operation"`
	Sync      bool   `json:"sync,omitempty"` // the submit call itself returns the result
	Find      bool   `json:"find,omitempty"` // the vendor can be asked by our own id; set when an attempt takes the route
	// Passthrough: of a model that no catalog has, for channels that name it.
	Passthrough bool `json:"passthrough,omitempty"`
}

// Unit is what a Charge counts.
type Unit string

// The billing units.
const (
	UnitSecond    Unit = "second"    // of delivered video
	UnitImage     Unit = "image"     // successful images
	UnitSong      Unit = "song"      // one generation, whatever number of clips it makes
	UnitOperation Unit = "operation" // one change of an earlier result
	UnitCharacter Unit = "character" // of the text that is spoken
)

// Charge is one line of a price: quantity × unit price.
type Charge struct {
	Item      string `json:"item"` // as "alpha-v3 std"
	Unit      Unit   `json:"unit"`
	Quantity  int64  `json:"quantity"`
	Files     int64  `json:"files,omitempty"` // that the quantity is for, in equal shares, when more than one
	UnitPrice Micros `json:"unit_price"`
}

// Amount is quantity × unit price.
func (c Charge) Amount() Micros { return Micros(c.Quantity) * c.UnitPrice }

// Role is what a result file is to its task.
type Role string

// The roles. What is delivered and paid for has the first one.
const (
	RoleMain  Role = ""
	RoleCover Role = "cover" // a picture of it
	RoleWAV   Role = "wav"   // the same sound as a WAV file
	RoleFilm  Role = "film"  // a film to a song
	RoleGrid  Role = "grid"  // four pictures in one, of which the main files are the quarters
	RoleStem  Role = "stem"  // a track of a song: those of an outcome become one archive, a main file
)

// Result is one mirrored file of a completed task. Zero values mean unknown.
type Result struct {
	Role     Role    `json:"role,omitempty"`
	Index    int     `json:"index,omitempty"` // among those of its role
	Key      string  `json:"key"`             // object key in our bucket
	MimeType string  `json:"mime_type"`
	Size     int64   `json:"size"`
	SHA256   string  `json:"sha256"` // hex
	Width    int     `json:"width,omitempty"`
	Height   int     `json:"height,omitempty"`
	Duration float64 `json:"duration,omitempty"` // seconds, from the file's own headers
}

// Link is a signed address of a stored object.
type Link struct {
	URL       string
	ExpiresAt time.Time
}

// Failure is why a task failed.
type Failure struct {
	Code      FailureCode `json:"code"`
	Message   string      `json:"message"`
	Retryable bool        `json:"retryable"`
}

// FailureCode is a stable word for why a task failed, as clients read it.
type FailureCode string

// The codes of failed tasks.
const (
	CodeContentPolicy     FailureCode = "content_policy_violation"
	CodeInvalidParameters FailureCode = "invalid_parameters"
	CodeImageProcessing   FailureCode = "image_processing_error"
	CodeGenerationFailed  FailureCode = "generation_failed"
	CodeGenerationTimeout FailureCode = "generation_timeout"
	CodeProviderAway      FailureCode = "provider_unavailable"
	CodeProviderRefused   FailureCode = "provider_rejected_credentials"
	CodeSubmissionUnknown FailureCode = "provider_submission_unknown"
	CodeResultUnavailable FailureCode = "result_unavailable"
	CodeModalExpired      FailureCode = "modal_expired"
	CodeSourceFailed      FailureCode = "source_failed"
	CodeModelRetired      FailureCode = "model_retired"
	CodeInternal          FailureCode = "internal_error"

	// Of an attempt only: its task parks, and never ends with it.
	CodeFunds = FailureCode(ParkFunds)
)

// FailureCodes lists the codes that a task may end with.
func FailureCodes() []FailureCode {
	return []FailureCode{
		CodeContentPolicy, CodeInvalidParameters, CodeImageProcessing, CodeGenerationFailed, CodeGenerationTimeout,
		CodeProviderAway, CodeProviderRefused, CodeSubmissionUnknown, CodeResultUnavailable, CodeModalExpired,
		CodeSourceFailed, CodeModelRetired, CodeInternal,
	}
}

// WebhookState is how far a task's callback has come.
type WebhookState string

// The states of a callback.
const (
	WebhookPending   WebhookState = "pending"
	WebhookDelivered WebhookState = "delivered"
	WebhookDropped   WebhookState = "dropped"   // nothing is sent
	WebhookAbandoned WebhookState = "abandoned" // attempts used up, or a 4xx
)

// WebhookStates lists the states of a callback.
func WebhookStates() []WebhookState {
	return []WebhookState{WebhookPending, WebhookDelivered, WebhookDropped, WebhookAbandoned}
}

// Webhook is a task's callback.
type Webhook struct {
	URL    string
	State  WebhookState
	Reason string
	Round  int // 0 until the task has ended
}

// Delivery is one attempt to deliver a webhook.
type Delivery struct {
	TaskID        string
	Round         int
	Attempt       int
	At            time.Time
	Status        int    // HTTP status, 0 when there was no answer
	Error         string // without addresses or secrets
	Duration      time.Duration
	NextAttemptAt time.Time
}

// DeliveryResult is how an attempt to deliver a webhook went.
type DeliveryResult struct {
	Outcome DeliveryOutcome
	Status  int    // HTTP status; 0 without an answer
	Error   string // why there was no answer, without addresses or secrets
	Reason  string // of DeliveryDrop and DeliveryAbandon, for the task's webhook state

	Headers map[string]string // that were sent; nil where nothing was
	Answer  string            // how the answer's body begins
}

// DeliveryOutcome says what is to become of a delivery after an attempt.
type DeliveryOutcome string

// The outcomes of an attempt.
const (
	DeliveryDone    DeliveryOutcome = "delivered" // the receiver answered 2xx
	DeliveryRetry   DeliveryOutcome = "retry"     // no answer, a redirect or a server error
	DeliveryAbandon DeliveryOutcome = "abandon"   // the receiver refused with a 4xx
	DeliveryDrop    DeliveryOutcome = "drop"      // the URL breaks a rule: nothing was sent
)

// TaskFilter selects tasks, newest first. Zero fields do not filter.
type TaskFilter struct {
	AccountID     string       `json:"account,omitempty"` // empty, for operators: of all accounts
	KeyID         string       `json:"key,omitempty"`     // that submitted them; only with its account
	Limit         int          `json:"-"`
	After         string       `json:"-"` // task id: only older ones
	OldestFirst   bool         `json:"-"` // and only newer ones than After; not with Stuck
	Status        Status       `json:"status,omitempty"`
	Model         string       `json:"model,omitempty"`
	Type          Type         `json:"type,omitempty"`
	Reference     string       `json:"reference,omitempty"`
	Source        string       `json:"source,omitempty"` // the id of a task that they use a file of
	CreatedAfter  time.Time    `json:"created_after,omitzero"`
	CreatedBefore time.Time    `json:"created_before,omitzero"`
	Channel       string       `json:"channel,omitempty"` // of the last attempt
	Stuck         bool         `json:"stuck,omitempty"`   // parked, or overdue
	Webhook       WebhookState `json:"webhook,omitempty"` // for operators
	// Search, for operators: the id of a task, of a vendor's job or of an account, or a part of an
	// account's name.
	Search string `json:"q,omitempty"`
}

// TaskLabel is what operators read beside a task's own row.
type TaskLabel struct {
	Channel     string // of the last attempt; empty before the first
	AccountName string
}

// A task is stuck while its Wait has a Reason, and while it is overdue: the
// wake scan has tried StuckTries times, and its run has not asked for the next step.
const (
	StuckTries       = 3
	ReasonRunOverdue = "run_overdue"
)

// Type says what a task produces.
type Type string

// The types. TypeSpeech is of requests that are answered at once: no task has
// it.
const (
	TypeVideo  Type = "video"
	TypeImage  Type = "image"
	TypeMusic  Type = "music"
	TypeArt    Type = "art"
	TypeSpeech Type = "speech"
)

// TypeFacts is all that follows from a type.
type TypeFacts struct {
	Type      Type
	Category  string     // its word in the model list
	Operation string     // its word in contracts; empty: its models have none
	Media     string     // the class of its files: "video", "image" or "audio"
	List      ResultList // which they fill of a task's result
	Task      bool       // whether a request makes a task
}

// What a model that has a contract does, in the contract's words.
const (
	OperationVideo = "video_generation"
	OperationImage = "image_generation"
)

// CategoryUnknown is the word of the model list for models of no catalog.
const CategoryUnknown = "unknown"

// ResultList is a list of the unified result.
type ResultList string

// The lists.
const (
	ListImages ResultList = "images"
	ListVideos ResultList = "videos"
	ListAudios ResultList = "audios"
)

// types is the table: whatever else depends on the type of a model or a task
// is read from here.
var types = []TypeFacts{
	{Type: TypeVideo, Category: "video", Operation: OperationVideo, Media: "video", List: ListVideos, Task: true},
	{Type: TypeImage, Category: "image", Operation: OperationImage, Media: "image", List: ListImages, Task: true},
	{Type: TypeMusic, Category: "audio", Media: "audio", List: ListAudios, Task: true},
	{Type: TypeArt, Category: "image", Operation: OperationImage, Media: "image", List: ListImages, Task: true},
	{Type: TypeSpeech, Category: "audio", Media: "audio"},
}

// Types lists all types.
func Types() []TypeFacts { return slices.Clone(types) }

// Facts is the type's row of the table. A word that is no type has none.
func (t Type) Facts() (TypeFacts, bool) {
	i := slices.IndexFunc(types, func(f TypeFacts) bool { return f.Type == t })
	if i < 0 {
		return TypeFacts{}, false
	}
	return types[i], true
}

// TaskTypes are the types that a task can have.
func TaskTypes() []Type {
	var list []Type
	for _, f := range types {
		if f.Task {
			list = append(list, f.Type)
		}
	}
	return list
}

// OperationModal is what a route's operation becomes for the attempt that takes
// the client's modal parameters to the account whose job waits for them.
const OperationModal = "modal"

// ModalState is how far a task has come whose vendor wants to hear more from
// the client before it goes on (D15).
type ModalState string

// MODAL → SUBMITTED | EXPIRED, once a task. The first event under the lock of the task's row
// decides which of the two.
const (
	ModalNone      ModalState = ""
	ModalWaiting   ModalState = "MODAL"     // for the client, until the end of the wait
	ModalSubmitted ModalState = "SUBMITTED" // the client has spoken: the attempts after Modal.N take it to the vendor
	ModalExpired   ModalState = "EXPIRED"   // nobody spoke: the task fails
)

// Modal is a task's wait for parameters that its client has yet to give.
type Modal struct {
	State ModalState `json:"state"`
	N     int        `json:"n"` // the attempt whose job waits at the vendor
	// Input is what the client then said: the canonical request of the modal
	// call. It is in no history.
	Input json.RawMessage `json:"input,omitempty"`
}

// Resumes reports that attempt n of the task takes the modal parameters to the
// vendor, instead of asking for a new job.
func (m Modal) Resumes(n int) bool { return m.State == ModalSubmitted && n > m.N }

// NoModal is how a task ends whose client said nothing in time.
func NoModal() *Failure {
	return &Failure{Code: CodeModalExpired, Message: "no modal parameters came in time"}
}

// ModelRetired is how a task ends of whose routes no vendor has the model any more.
func ModelRetired() *Failure {
	return &Failure{Code: CodeModelRetired, Message: "the provider no longer has the model"}
}

// ModalCall is a client's modal call: what it says, and the idempotency record
// when it sent a key.
type ModalCall struct {
	AccountID      string
	TaskID         string
	Input          json.RawMessage
	IdempotencyKey string
	Path           string
	BodySHA256     [32]byte
}

// What is left of a task when its inputs are erased at its end, as an account may
// wish: the results, and how it came to them. What a vendor wrote goes as well,
// since it may repeat the prompt. The words of a song and the names of its clips
// are results, whoever wrote them first.

// NoParams are the parameters of a task whose request is erased.
var NoParams = json.RawMessage(`{}`)

// Wordless is the failure without its message, which readers are told by the
// code; nil for none.
func (f *Failure) Wordless() *Failure {
	if f == nil {
		return nil
	}
	return &Failure{Code: f.Code, Retryable: f.Retryable}
}

// WithoutPrompt is what was made, but for the prompt; nil for nothing.
func (m *Made) WithoutPrompt() *Made {
	if m == nil {
		return nil
	}
	kept := *m
	kept.Prompt = ""
	return &kept
}

// WithoutInputs is the outcome without what may repeat the request.
func (o Outcome) WithoutInputs() Outcome {
	o.Failure, o.Made, o.VendorText = o.Failure.Wordless(), o.Made.WithoutPrompt(), ""
	return o
}

// Bare is the outcome without what it made: how it ended, and what it cost.
func (o Outcome) Bare() Outcome {
	return Outcome{Succeeded: o.Succeeded, Failure: o.Failure.Wordless(), Seconds: o.Seconds, VendorCharge: o.VendorCharge}
}

// WithoutInputs is the plan of a task that has ended, without what it took from
// the request. The keys of uploads stay until their objects are gone.
func (p Plan) WithoutInputs() Plan {
	p.Inputs, p.Source, p.Skipped, p.Attached = nil, nil, nil, nil
	return p
}

// WithoutInputs is the task as readers see it once its inputs are erased.
func (t Task) WithoutInputs() Task {
	t.Params, t.Modal.Input, t.Sources = NoParams, nil, nil
	t.Plan, t.Made, t.Failure = t.Plan.WithoutInputs(), t.Made.WithoutPrompt(), t.Failure.Wordless()
	return t
}
