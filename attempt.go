package mediagate

import (
	"context"
	"encoding/json"
	"io"
	"slices"
	"time"
)

// AttemptState says how far a submission to a vendor has come.
type AttemptState string

// The states of an attempt. task/doc.go describes the transitions.
const (
	AttemptIntent    AttemptState = "intent"    // stored before the call
	AttemptAccepted  AttemptState = "accepted"  // the vendor's id is stored
	AttemptRejected  AttemptState = "rejected"  // it is proven that the vendor has no job
	AttemptUnknown   AttemptState = "unknown"   // the vendor may have a job
	AttemptEnded     AttemptState = "ended"     // an outcome is stored, or the job is known not to run any more
	AttemptAbandoned AttemptState = "abandoned" // the task no longer waits for it, but the job may run on
)

// CopyLimit bounds one attempt to copy the files of a job.
const CopyLimit = 30 * time.Minute

// Job is what an adapter submits.
type Job struct {
	TaskID     string
	ExternalID string // our id of the job, unique in the vendor account
	Upstream   string // the vendor's name for the model
	Operation  string
	Params     json.RawMessage // the canonical request: Task.Params
	SendBefore time.Time       // no byte of the call may be sent after this

	Source *Source // the earlier result that the job works on; nil for none

	// CallbackURL is where the vendor may report that the job has changed. It is secret and belongs
	// to this attempt only. It may be empty.
	CallbackURL string

	Inputs Inputs // opens the client's media; nil if the job is not sent
	Sink   Sink   // stores files that arrive with the answer; nil if the job is not sent
}

// Inputs opens the media that a client's request names, for vendors that want bytes.
type Inputs interface {
	// Open returns the file behind a URL. After limit bytes the file ends with a KindInvalid that
	// names the bound. length is -1 if it is unknown. Other errors are KindInvalid with the code
	// image_processing_error for a file that cannot or must not be fetched, and KindTransient
	// while its server is away. At that point nothing has been sent to the vendor, so the attempt
	// is rejected, not unknown.
	Open(ctx context.Context, url string, limit int64) (file io.ReadCloser, length int64, err error)
}

// Sink stores files while they arrive from a vendor that answers with the result.
type Sink interface {
	// Store streams one file into the bucket, under a key of the attempt and the index, and
	// returns the Media for the outcome. It returns an error of the file's reader unchanged, and
	// leaves nothing behind then.
	Store(ctx context.Context, index int, file io.Reader) (Media, error)

	// Record notes the results so far of a submission that takes several calls. If the process
	// dies before Submit returns, the task ends with these files. A failure to store the note is
	// logged, and the submission goes on.
	Record(ctx context.Context, soFar Submission)
}

// JobRef is what an adapter needs to ask about a job.
type JobRef struct {
	JobID      string `json:"job_id,omitempty"` // the vendor's id; empty while unknown
	ExternalID string `json:"external_id,omitempty"`
	Operation  string `json:"operation,omitempty"`
	// State is whatever else the adapter needs to ask about the job. It is short, and only the adapter
	// reads it.
	State string `json:"state,omitempty"`
}

// Submission is a vendor's acceptance of a job. Outcome is set if the vendor answered with the
// result.
type Submission struct {
	Ref     JobRef   `json:"ref"`
	Outcome *Outcome `json:"outcome,omitempty"`
}

// JobState is a vendor's status of a job, mapped to ours.
type JobState string

// The states of a job. JobUnknown is a status that the adapter does not know: it is counted, and
// polling goes on.
const (
	JobQueued    JobState = "queued"
	JobRunning   JobState = "running"
	JobWaiting   JobState = "waiting" // the vendor waits for input of the client; only in operations that declare it
	JobSucceeded JobState = "succeeded"
	JobFailed    JobState = "failed"
	JobUnknown   JobState = "unknown"
)

// Report is the answer to one poll. Outcome is set if State is JobSucceeded or JobFailed.
type Report struct {
	Ref     JobRef // the job that was found; after a lookup by external id it has the vendor's id
	State   JobState
	Word    string // the vendor's own status
	Percent int    // 0 to 99, or -1 if the vendor reports none
	// Named is set if the vendor's answer names the job by the id that was asked for. Only such an
	// answer proves that the account has the job.
	Named   bool
	Outcome *Outcome
	// Incomplete is set if the vendor says that the job succeeded, but its answer names fewer media
	// than pieces, or none. A later answer may name the rest. Outcome is what there is now, which
	// without any media is a failure.
	Incomplete bool `json:",omitempty"`
}

// Offer sets the outcome of a job that succeeded according to the vendor. whole says that every
// piece in the answer has its media. A cover alone is no success: the client pays for the song.
func (r *Report) Offer(out *Outcome, whole bool) {
	paidFor := func(m Media) bool { return !m.Role.IsExtra() }
	out.Succeeded = slices.ContainsFunc(out.Media, paidFor) || out.Made.StandsAlone()
	if !out.Succeeded {
		*out, whole = Outcome{Failure: NoMedia(), VendorCharge: out.VendorCharge}, false
	}
	r.Outcome, r.Incomplete = out, !whole
}

// NoMedia is the failure of a job that succeeded according to the vendor, but has nothing to
// deliver.
func NoMedia() *Failure {
	return &Failure{Code: CodeResultUnavailable, Message: "the provider returned no file", Retryable: true}
}

// Outcome is the end of a vendor's job.
type Outcome struct {
	Succeeded    bool          `json:"succeeded"`
	Media        []Media       `json:"media,omitempty"`
	Made         *Made         `json:"made,omitempty"` // results other than files
	Failure      *Failure      `json:"failure,omitempty"`
	VendorText   string        `json:"vendor_text,omitempty"` // the vendor's words, if they are not the message
	Seconds      float64       `json:"seconds,omitempty"`     // the delivered length, as the vendor states it
	VendorCharge *VendorCharge `json:"vendor_charge,omitempty"`
}

// Media is one file of a result: behind a URL, which works for a short time and is never shown,
// by a reference that its adapter opens, or already stored by the job's sink.
type Media struct {
	URL      string  `json:"url,omitempty"`
	Ref      string  `json:"ref,omitempty"`
	Stored   *Result `json:"stored,omitempty"`
	Role     Role    `json:"role,omitempty"`
	Index    int     `json:"index,omitempty"`     // among the files of its role
	Name     string  `json:"name,omitempty"`      // of a stem: what it holds, such as vocals
	MimeType string  `json:"mime_type,omitempty"` // as claimed; the content decides
	Duration float64 `json:"duration,omitempty"`
}

// SenderLost is the Error of an unknown attempt whose sender has not reported. The sender is
// dead, or lost its connection to Temporal and may still be in the vendor's call.
const SenderLost = "the sender was lost"

// ParkReason says why a task waits for an operator, or for a problem that may resolve itself.
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

// Await is an accepted attempt that a channel polls for.
type Await struct {
	TaskID      string
	N           int
	Channel     string
	Fingerprint string
	Model       string
	Ref         JobRef
	Expected    time.Duration
	AcceptedAt  time.Time
	NextPollAt  time.Time // when this poll was due
	Claim       string    // the claim's token
	ClaimedAt   time.Time
	Hinted      bool // a hint says that the job may have ended
	Progress    int  // the task's stored progress
	Missing     int  // as in PollResult
}

// Channel is one account with a vendor.
type Channel struct {
	Name              string
	Provider          string
	BaseURL           string // scheme, host and prefix; empty for the vendor's public one
	Credentials       map[string]Secret
	Options           map[string]string
	Models            []string // empty: all models of its provider
	Priority          int      // lower is tried first
	Weight            int
	Concurrency       int     // vendor jobs at once; 0 = no limit
	RequestsPerSecond float64 // the polling budget
	PollMin, PollMax  time.Duration
	CallbackSecret    Secret
	Account           string   // names the vendor account whatever the credentials are; may be empty
	Former            []string // earlier names of the channel

	// Passthrough maps the ids of uncataloged models to the vendor's names for them.
	Passthrough map[string]string
}

// Serves reports whether jobs for the model may take the route on the channel. An uncataloged
// model is served only if the channel names it.
func (c Channel) Serves(model string, r Route) bool {
	if upstream, ok := c.Passthrough[model]; ok {
		return c.Provider == r.Provider && upstream == r.Upstream
	}
	return c.Provider == r.Provider && !r.Passthrough && (len(c.Models) == 0 || slices.Contains(c.Models, model))
}

// Slots returns the slots of the channel's vendor account.
func (c Channel) Slots() Slots {
	return Slots{Names: append([]string{c.Name}, c.Former...), Limit: c.Concurrency}
}
