package mediagate

import (
	"encoding/json"
	"slices"
	"time"
)

// Status is the state of a task as its client sees it.
type Status string

// The states of a task. It is pending, then processing, and ends in one of the other three, for good.
// A client may cancel it until it has ended.
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

// Task is one acknowledged request. Zero times mean "not yet". Fields without a JSON name are
// columns of its row, the others are in the row's document.
type Task struct {
	ID        string          `json:"-"`
	AccountID string          `json:"-"`
	KeyID     string          `json:"-"`
	Model     string          `json:"-"` // as the client named it, which may be an alias
	Type      Type            `json:"-"`
	Params    json.RawMessage `json:"-"` // the validated request with defaults, without webhook and metadata
	Reference string          `json:"-"` // metadata.reference
	RequestID string          `json:"request_id,omitempty"`
	// TraceParent is the span of the submit in the form of the W3C header. It is empty without tracing.
	TraceParent string `json:"-"`
	// Endpoint is the path that accepts Params. It may be empty in old rows.
	Endpoint string `json:"endpoint,omitempty"`
	Plan     Plan   `json:"plan"`
	// Sources are the inputs that are files of other tasks.
	Sources   []TaskFile `json:"sources,omitempty"`
	Charges   []Charge   `json:"charges,omitempty"` // the prices, fixed at submit
	Hold      Micros     `json:"-"`                 // the sum of Charges
	CreatedAt time.Time  `json:"-"`

	Status            Status    `json:"-"`
	Progress          int       `json:"-"` // 0 to 100; 100 exactly when completed
	Version           int64     `json:"-"` // incremented at each change that clients can see
	StartedAt         time.Time `json:"-"` // when a vendor accepted the job, or a synchronous vendor was called
	DeadlineAt        time.Time `json:"-"` // end of waiting for the vendor; a wait's time is added when the wait ends
	CancelRequestedAt time.Time `json:"-"` // from here on the task cannot complete
	Wait              Wait      `json:"-"`
	RerouteTo         string    `json:"reroute_to,omitempty"` // the channel that an operator chose for the next attempt; empty for any
	Modal             Modal     `json:"modal,omitzero"`       // zero if the vendor never asked for parameters

	EndedAt time.Time `json:"-"`
	Results []Result  `json:"-"`                 // of a completed task
	Made    *Made     `json:"made,omitempty"`    // other results of a completed task
	Failure *Failure  `json:"failure,omitempty"` // why it failed
	Cost    Micros    `json:"-"`                 // what was charged
	Webhook Webhook   `json:"-"`

	InputsErasedAt time.Time `json:"-"` // the request was erased, see WithoutInputs
	ErasedAt       time.Time `json:"-"` // all was erased except for accounting; the task is unknown to clients
}

// WaitsUntil returns the current deadline, extended by the time of the present wait (D10).
func (t Task) WaitsUntil(now time.Time) time.Time { return t.Wait.Moves(t.DeadlineAt, now) }

// Wait is what an open task waits for before its next step (D12). Waiting for a vendor that
// works, or for a call in progress, is no Wait.
type Wait struct {
	Why    WaitWhy    // empty if the task does not wait
	Reason ParkReason // why the task is stuck and may need an operator; empty if it is not
	Since  time.Time
	TryAt  time.Time // no step begins before this time
	EndsAt time.Time // the task fails at this time; zero if the wait has no end of its own
}

// WaitWhy is what a task waits for.
type WaitWhy string

// The reasons to wait. A pause has no end of its own. Neither has the wait for a source, whose task
// ends by itself.
const (
	WhySource  WaitWhy = "source"  // a source has not ended (D21)
	WhyPause   WaitWhy = "pause"   // before the next attempt
	WhyParked  WaitWhy = "parked"  // a step is stuck, and is retried
	WhySlot    WaitWhy = "slot"    // no channel has a free slot (D7)
	WhyModal   WaitWhy = "modal"   // for the client's modal parameters (D15)
	WhyUnknown WaitWhy = "unknown" // the vendor may have the job, but its answer was lost (D6)
	WhyVendor  WaitWhy = "vendor"  // for the vendor's last answer, after the deadline (D10)
)

// StopsClock reports whether the time of the wait does not count against the deadline (D10): the
// task is stuck or queued, or waits for its client or a source.
func (w Wait) StopsClock() bool {
	return w.Reason != "" || w.Why == WhySlot || w.Why == WhyModal || w.Why == WhySource
}

// Moves returns the deadline extended by the time that the task has waited.
func (w Wait) Moves(deadline, now time.Time) time.Time {
	if !w.StopsClock() {
		return deadline
	}
	return deadline.Add(max(0, now.Sub(w.Since)))
}

// Plan says how a task is produced. It is a snapshot of the catalog at submit, so that a later
// change of the catalog affects only new tasks.
type Plan struct {
	Routes      []Route       `json:"routes"` // in order of preference
	Expected    time.Duration `json:"expected"`
	Timeout     time.Duration `json:"timeout"`    // from the submit to the end of waiting for the vendor
	OnUnknown   string        `json:"on_unknown"` // OnUnknownFail or OnUnknownPark (D6)
	Media       string        `json:"media"`      // class of the result: "video", "image" or "audio"
	MaxBytes    int64         `json:"max_bytes"`  // for one result file
	KeepForever bool          `json:"keep_forever,omitempty"`
	// Files is the maximum number of result files that can be another task's input. Nil means as many
	// as are charged.
	Files *int `json:"files,omitempty"`

	// Uploads are the object keys of media from the request's body, by field. Params lacks these
	// fields, and a job gets them as links.
	Uploads map[string]string `json:"uploads,omitempty"`
	// Attached are the links in Params to media from the request's body, for a model that takes links
	// only.
	Attached []string `json:"attached,omitempty"`
	// Inputs are the client's media that have bounds in the contract. They are checked before the first
	// submission.
	Inputs []Input `json:"inputs,omitempty"`
	// Source is an earlier task's result that this task works on.
	Source *Source `json:"source,omitempty"`
	// Skipped are the routes that do not support the request. Operators see them.
	Skipped []SkippedRoute `json:"skipped,omitempty"`
	// Action is the operation of an art task.
	Action string `json:"action,omitempty"`
	// Modal is how long the task may wait for modal parameters. It is 0 if no vendor asks for any.
	Modal time.Duration `json:"modal,omitempty"`
	// ParkTimeout is how long the task may stay parked, ParkRetry how often a parked step is retried,
	// and QueueTimeout how long the task may wait for a slot.
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

// What happens to a submission if not even the vendor can say whether it has the job.
const (
	OnUnknownFail = "fail"
	OnUnknownPark = "park"
)

// Route is one way to produce a model: a provider, the vendor's name for the model, and the
// adapter's operation.
type Route struct {
	Provider  string `json:"provider"`
	Upstream  string `json:"upstream"`
	Operation string `json:"operation"`
	Sync      bool   `json:"sync,omitempty"` // the call that submits the job returns the result
	Find      bool   `json:"find,omitempty"` // the vendor can look a job up by our id; set when an attempt takes the route
	// Passthrough marks the route of an uncataloged model, for channels that name it.
	Passthrough bool `json:"passthrough,omitempty"`
}

// Unit is what a Charge counts.
type Unit string

// The billing units.
const (
	UnitSecond    Unit = "second"    // of delivered video
	UnitImage     Unit = "image"     // successful images
	UnitSong      Unit = "song"      // one generation, however many clips it makes
	UnitOperation Unit = "operation" // one change of an earlier result
	UnitCharacter Unit = "character" // of the text that is spoken
)

// Charge is one line of a price: quantity × unit price.
type Charge struct {
	Item      string `json:"item"` // such as "alpha-v3 std"
	Unit      Unit   `json:"unit"`
	Quantity  int64  `json:"quantity"`
	Files     int64  `json:"files,omitempty"` // files that share the quantity equally, if more than one
	UnitPrice Micros `json:"unit_price"`
}

// Amount is quantity × unit price.
func (c Charge) Amount() Micros { return Micros(c.Quantity) * c.UnitPrice }

// Role is what a result file is to its task.
type Role string

// The roles. RoleMain is what clients pay for.
const (
	RoleMain  Role = ""
	RoleCover Role = "cover" // a cover picture
	RoleWAV   Role = "wav"   // the same sound as a WAV file
	RoleFilm  Role = "film"  // a film for a song
	RoleGrid  Role = "grid"  // four pictures in one; the main files are its quarters
	RoleStem  Role = "stem"  // a track of a song; the stems of an outcome become one archive, the main file
)

// IsExtra reports whether a task is complete without the file.
func (r Role) IsExtra() bool {
	switch r {
	case RoleCover, RoleWAV, RoleFilm:
		return true
	case RoleMain, RoleGrid, RoleStem:
	}
	return false
}

// Result is one mirrored file of a completed task. Zero values mean unknown.
type Result struct {
	Role     Role    `json:"role,omitempty"`
	Index    int     `json:"index,omitempty"` // among the files of its role
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

// FailureCode is a stable word for why a task failed, which clients see.
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

	// Only an attempt has this code: its task parks and never ends with it.
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
	WebhookAbandoned WebhookState = "abandoned" // the attempts are used up, or the receiver answered 4xx
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

// DeliveryResult is the result of an attempt to deliver a webhook.
type DeliveryResult struct {
	Outcome DeliveryOutcome
	Status  int    // HTTP status; 0 without an answer
	Error   string // why there was no answer, without addresses or secrets
	Reason  string // set for DeliveryDrop and DeliveryAbandon, for the task's webhook state

	Headers map[string]string // the headers that were sent; nil if nothing was
	Answer  string            // the beginning of the answer's body
}

// DeliveryOutcome says what happens to a delivery after an attempt.
type DeliveryOutcome string

// The outcomes of an attempt.
const (
	DeliveryDone    DeliveryOutcome = "delivered" // the receiver answered 2xx
	DeliveryRetry   DeliveryOutcome = "retry"     // no answer, a redirect or a server error
	DeliveryAbandon DeliveryOutcome = "abandon"   // the receiver refused with a 4xx
	DeliveryDrop    DeliveryOutcome = "drop"      // the URL breaks a rule, so nothing was sent
)

// TaskFilter selects tasks, newest first. Zero fields do not filter.
type TaskFilter struct {
	AccountID     string       `json:"account,omitempty"` // empty, for operators, selects all accounts
	KeyID         string       `json:"key,omitempty"`     // the key that submitted them; only together with its account
	Limit         int          `json:"-"`
	After         string       `json:"-"` // a task id: selects older tasks
	OldestFirst   bool         `json:"-"` // oldest first, and newer than After; not with Stuck
	Status        Status       `json:"status,omitempty"`
	Model         string       `json:"model,omitempty"`
	Type          Type         `json:"type,omitempty"`
	Reference     string       `json:"reference,omitempty"`
	Source        string       `json:"source,omitempty"` // the id of a task whose file they use
	CreatedAfter  time.Time    `json:"created_after,omitzero"`
	CreatedBefore time.Time    `json:"created_before,omitzero"`
	Channel       string       `json:"channel,omitempty"` // of the last attempt
	Stuck         bool         `json:"stuck,omitempty"`   // parked, or overdue
	Webhook       WebhookState `json:"webhook,omitempty"` // the state of the callback
	// Search, for operators, is the id of a task, a vendor's job or an account, or a part of an
	// account's name.
	Search string `json:"q,omitempty"`
}

// TaskLabel is what operators see in addition to a task's own row.
type TaskLabel struct {
	Channel     string // of the last attempt; empty before the first
	AccountName string
}

// A task is stuck while its Wait has a Reason, and while its run is overdue: the wake scan has tried
// StuckTries times, and the run has not asked for its next step.
const (
	StuckTries       = 3
	ReasonRunOverdue = "run_overdue"
)

// Type says what a task produces.
type Type string

// The types. TypeSpeech belongs to requests that are answered at once: no task has it.
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
	Category  string     // its category in the model list
	Operation string     // its operation in contracts; empty if its models have none
	Media     string     // class of its files: "video", "image" or "audio"
	List      ResultList // list of the result that has the files
	Task      bool       // whether a request makes a task
}

// The operations in contracts.
const (
	OperationVideo = "video_generation"
	OperationImage = "image_generation"
)

// CategoryUnknown is the category of uncataloged models.
const CategoryUnknown = "unknown"

// ResultList is a list of the unified result.
type ResultList string

// The lists.
const (
	ListImages ResultList = "images"
	ListVideos ResultList = "videos"
	ListAudios ResultList = "audios"
)

// types is the table: everything that depends on the type of a model or task is read from here.
var types = []TypeFacts{
	{Type: TypeVideo, Category: "video", Operation: OperationVideo, Media: "video", List: ListVideos, Task: true},
	{Type: TypeImage, Category: "image", Operation: OperationImage, Media: "image", List: ListImages, Task: true},
	{Type: TypeMusic, Category: "audio", Media: "audio", List: ListAudios, Task: true},
	{Type: TypeArt, Category: "image", Operation: OperationImage, Media: "image", List: ListImages, Task: true},
	{Type: TypeSpeech, Category: "audio", Media: "audio"},
}

// Types lists all types.
func Types() []TypeFacts { return slices.Clone(types) }

// Facts returns the type's row of the table. ok is false for an unknown type.
func (t Type) Facts() (TypeFacts, bool) {
	i := slices.IndexFunc(types, func(f TypeFacts) bool { return f.Type == t })
	if i < 0 {
		return TypeFacts{}, false
	}
	return types[i], true
}

// TaskTypes lists the types that a task can have.
func TaskTypes() []Type {
	var list []Type
	for _, f := range types {
		if f.Task {
			list = append(list, f.Type)
		}
	}
	return list
}

// OperationModal replaces a route's operation for the attempt that sends the client's modal
// parameters to the account whose job waits for them.
const OperationModal = "modal"

// ModalState is the progress of a task whose vendor wants more parameters from the client (D15).
type ModalState string

// A task goes from MODAL to SUBMITTED or EXPIRED, at most once. The first event under the lock of
// the task's row decides which.
const (
	ModalNone      ModalState = ""
	ModalWaiting   ModalState = "MODAL"     // the task waits for the client
	ModalSubmitted ModalState = "SUBMITTED" // the client has sent the parameters; the attempts after Modal.N send them to the vendor
	ModalExpired   ModalState = "EXPIRED"   // the client sent nothing in time; the task fails
)

// Modal is a task's wait for parameters from its client.
type Modal struct {
	State ModalState `json:"state"`
	N     int        `json:"n"` // the attempt whose job waits at the vendor
	// Input is the canonical request of the client's modal call. It is in no workflow history.
	Input json.RawMessage `json:"input,omitempty"`
}

// Resumes reports whether attempt n sends the modal parameters to the vendor, instead of asking
// for a new job.
func (m Modal) Resumes(n int) bool { return m.State == ModalSubmitted && n > m.N }

// NoModal is the failure of a task whose client sent no modal parameters in time.
func NoModal() *Failure {
	return &Failure{Code: CodeModalExpired, Message: "no modal parameters came in time"}
}

// ModelRetired is the failure of a task whose routes all name models that no vendor has any more.
func ModelRetired() *Failure {
	return &Failure{Code: CodeModelRetired, Message: "the provider no longer has the model"}
}

// ModalCall is a client's modal call, with its idempotency record if it has a key.
type ModalCall struct {
	AccountID      string
	TaskID         string
	Input          json.RawMessage
	IdempotencyKey string
	Path           string
	BodySHA256     [32]byte
}

// The functions below erase the inputs of a task at its end, if its account has chosen that. The
// results stay, and so does the record of how the task got them. The texts of vendors are erased,
// since they may repeat the prompt. The lyrics of a song and the titles of its clips are results
// and stay, even if the client wrote them.

// NoParams are the parameters of a task whose request was erased.
var NoParams = json.RawMessage(`{}`)

// WithoutMessage returns the failure without its message. Clients then see a message for its
// code. It returns nil for nil.
func (f *Failure) WithoutMessage() *Failure {
	if f == nil {
		return nil
	}
	return &Failure{Code: f.Code, Retryable: f.Retryable}
}

// WithoutPrompt returns m without the prompt, or nil for nil.
func (m *Made) WithoutPrompt() *Made {
	if m == nil {
		return nil
	}
	kept := *m
	kept.Prompt = ""
	return &kept
}

// WithoutInputs returns the outcome without what may repeat the request.
func (o Outcome) WithoutInputs() Outcome {
	o.Failure, o.Made, o.VendorText = o.Failure.WithoutMessage(), o.Made.WithoutPrompt(), ""
	return o
}

// Bare returns the outcome without its results: how the job ended, and what it cost.
func (o Outcome) Bare() Outcome {
	return Outcome{
		Succeeded: o.Succeeded, Failure: o.Failure.WithoutMessage(), Seconds: o.Seconds, VendorCharge: o.VendorCharge,
	}
}

// WithoutInputs returns the plan without what it took from the request. The keys of uploads stay
// until their objects are removed.
func (p Plan) WithoutInputs() Plan {
	p.Inputs, p.Source, p.Skipped, p.Attached = nil, nil, nil, nil
	return p
}

// WithoutInputs returns the task as clients see it once its inputs are erased.
func (t Task) WithoutInputs() Task {
	t.Params, t.Modal.Input, t.Sources = NoParams, nil, nil
	t.Plan, t.Made, t.Failure = t.Plan.WithoutInputs(), t.Made.WithoutPrompt(), t.Failure.WithoutMessage()
	return t
}
