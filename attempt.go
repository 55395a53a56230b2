package mediagate

import (
	"context"
	"encoding/json"
	"io"
	"slices"
	"time"
)

// AttemptState is how far one submission to a vendor has come.
type AttemptState string

// What leads from one to another is in task/doc.go.
const (
	AttemptIntent    AttemptState = "intent"    // stored before the call
	AttemptAccepted  AttemptState = "accepted"  // the vendor's id is stored
	AttemptRejected  AttemptState = "rejected"  // proven: the vendor has no job
	AttemptUnknown   AttemptState = "unknown"   // the vendor may or may not have one
	AttemptEnded     AttemptState = "ended"     // an outcome is stored, or its job does not run any more
	AttemptAbandoned AttemptState = "abandoned" // its task does not wait for it any more; its job may run on
)

// CopyLimit is the longest that one try copies the files of an attempt.
const CopyLimit = 30 * time.Minute

// Job is what an adapter submits.
type Job struct {
	TaskID     string
	ExternalID string // unique a vendor account
	Upstream   string // the vendor's name for the model
	Operation  string
	Params     json.RawMessage // the canonical request: Task.Params
	SendBefore time.Time       // the first byte may only be written before this

	Source *Source // what the job works on, where it works on something

	// CallbackURL is where the vendor may tell that the job has changed; empty:
	// nowhere. It is the attempt's own and a secret.
	CallbackURL string

	Inputs Inputs // opens the client's media; nil where the job is not to be sent
	Sink   Sink   // takes files that arrive with the answer; nil where the job is not to be sent
}

// Inputs opens media that a client named in its request, for vendors that want
// bytes.
type Inputs interface {
	// Open returns the file behind a URL, which ends with KindInvalid, naming
	// the bound, after limit bytes. length is -1 when unknown. Other errors are
	// KindInvalid, code image_processing_error, for what cannot be fetched or
	// must not be, and KindTransient while its server is away. Nothing has been
	// sent to the vendor by then: the attempt is rejected, not unknown.
	Open(ctx context.Context, url string, limit int64) (file io.ReadCloser, length int64, err error)
}

// Sink stores the files of a synchronous vendor while they arrive.
type Sink interface {
	// Store streams one file into the bucket, under the key of the attempt and
	// the index, and returns what the outcome names it by. An error of the
	// file's reader comes back as it is and leaves nothing behind.
	Store(ctx context.Context, index int, file io.Reader) (Media, error)

	// Record notes what a submission that takes several calls has made so far. If the
	// process dies before Submit returns, the task ends with these files. A note that
	// cannot be stored is logged: the submission goes on without it.
	Record(ctx context.Context, soFar Submission)
}

// JobRef is what an adapter needs to ask for a job again.
type JobRef struct {
	JobID      string `json:"job_id,omitempty"` // the vendor's id; empty while unknown
	ExternalID string `json:"external_id,omitempty"`
	Operation  string `json:"operation,omitempty"`
	// State is what else the adapter needs to ask for the job: short, and
	// nobody else reads it.
	State string `json:"state,omitempty"`
}

// Submission is a vendor's acceptance. A synchronous vendor sets Outcome.
type Submission struct {
	Ref     JobRef   `json:"ref"`
	Outcome *Outcome `json:"outcome,omitempty"`
}

// JobState is a vendor's word for a job, mapped.
type JobState string

// JobUnknown is a word that the adapter's table lacks: keep polling, count it.
const (
	JobQueued    JobState = "queued"
	JobRunning   JobState = "running"
	JobWaiting   JobState = "waiting" // the vendor waits for what only the client can tell; only operations that say so
	JobSucceeded JobState = "succeeded"
	JobFailed    JobState = "failed"
	JobUnknown   JobState = "unknown"
)

// Report is the answer to one poll. Outcome is set when State is
// JobSucceeded or JobFailed.
type Report struct {
	Ref     JobRef // as found; for lookups by external id it carries the vendor's id
	State   JobState
	Word    string // the vendor's own status word
	Percent int    // 0 to 99, or -1 where the vendor gives none
	// Named: the vendor's answer itself named the job, by the id that it was
	// asked for. Only such an answer proves that an account has the job.
	Named   bool
	Outcome *Outcome
	// Incomplete: the vendor says that the job succeeded, and its answer names no
	// media, or less than it has pieces. Asked again it may name the rest. Outcome is
	// what there is now: without any media, a failure.
	Incomplete bool `json:",omitempty"`
}

// Offer makes out, of a job that the vendor says succeeded, the outcome of the
// report. whole says that each piece which the answer names has its media.
func (r *Report) Offer(out *Outcome, whole bool) {
	out.Succeeded = len(out.Media) > 0 || out.Made.StandsAlone()
	if !out.Succeeded {
		*out, whole = Outcome{Failure: NoMedia(), VendorCharge: out.VendorCharge}, false
	}
	r.Outcome, r.Incomplete = out, !whole
}

// NoMedia is the failure of a job that succeeded by the vendor's word, and of
// which the vendor offers nothing.
func NoMedia() *Failure {
	return &Failure{Code: CodeResultUnavailable, Message: "the provider returned no file", Retryable: true}
}

// Outcome is how a vendor's job ended.
type Outcome struct {
	Succeeded    bool          `json:"succeeded"`
	Media        []Media       `json:"media,omitempty"`
	Made         *Made         `json:"made,omitempty"` // beside the files
	Failure      *Failure      `json:"failure,omitempty"`
	VendorText   string        `json:"vendor_text,omitempty"` // in its own words, where they are not the message
	Seconds      float64       `json:"seconds,omitempty"`     // delivered, as the vendor states it
	VendorCharge *VendorCharge `json:"vendor_charge,omitempty"`
}

// Media is one file that a vendor offers: by a URL, which is short-lived and
// never shown, by a reference that its adapter opens, or stored already by the
// sink that came with the job.
type Media struct {
	URL      string  `json:"url,omitempty"`
	Ref      string  `json:"ref,omitempty"`
	Stored   *Result `json:"stored,omitempty"`
	Role     Role    `json:"role,omitempty"`
	Index    int     `json:"index,omitempty"`     // among those of its role
	Name     string  `json:"name,omitempty"`      // of a stem: what it holds, as vocals
	MimeType string  `json:"mime_type,omitempty"` // claimed; the content decides
	Duration float64 `json:"duration,omitempty"`
}

// SenderLost is the Error of an unknown attempt whose sender has not reported:
// it is dead, or out of Temporal's sight and still holds the vendor's call.
const SenderLost = "the sender was lost"

// ParkReason is why a task waits for a person, or for what may mend itself.
type ParkReason string

// The reasons for which a task is parked.
const (
	ParkProviderAway      ParkReason = "provider_unavailable"
	ParkCredentials       ParkReason = "provider_rejected_credentials"
	ParkFunds             ParkReason = "provider_out_of_funds"
	ParkSubmissionUnknown ParkReason = "provider_submission_unknown"
	ParkChannelMissing    ParkReason = "channel_missing"
	ParkJobLost           ParkReason = "vendor_job_lost"
	ParkResult            ParkReason = "result_unavailable"
	ParkStorage           ParkReason = "storage_unavailable"
	ParkInternal          ParkReason = "internal_error"
)

// Await is one accepted attempt that a channel polls for.
type Await struct {
	TaskID      string
	N           int
	Channel     string
	Fingerprint string
	Model       string
	Ref         JobRef
	Expected    time.Duration
	AcceptedAt  time.Time
	NextPollAt  time.Time // the time for which this claim was due
	Claim       string    // token of the claim
	ClaimedAt   time.Time
	Hinted      bool // somebody has hinted that the job may have ended
	Progress    int  // of the task, as stored
	Missing     int  // as in PollResult
}

// Channel is one account with a vendor.
type Channel struct {
	Name              string
	Provider          string
	BaseURL           string // scheme, host and prefix; empty for the vendor's public one
	Credentials       map[string]Secret
	Options           map[string]string
	Models            []string // empty: all that its provider serves
	Priority          int      // lower is tried first
	Weight            int
	Concurrency       int     // vendor jobs at once; 0 = no limit
	RequestsPerSecond float64 // polling budget
	PollMin, PollMax  time.Duration
	CallbackSecret    Secret
	Account           string   // names the vendor account, whatever the credentials; may be empty
	Former            []string // names that the channel had

	// Passthrough are the vendor's names of models that no catalog has, by ours.
	Passthrough map[string]string
}

// Serves reports whether jobs for the model may take the route on the channel.
// A model of no catalog is served where it is named.
func (c Channel) Serves(model string, r Route) bool {
	if upstream, ok := c.Passthrough[model]; ok {
		return c.Provider == r.Provider && upstream == r.Upstream
	}
	return c.Provider == r.Provider && !r.Passthrough && (len(c.Models) == 0 || slices.Contains(c.Models, model))
}

// Slots are those of the account.
func (c Channel) Slots() Slots {
	return Slots{Names: append([]string{c.Name}, c.Former...), Limit: c.Concurrency}
}
