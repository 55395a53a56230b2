package providers

import (
	"context"
	"io"
	"time"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/providers/vendorhttp"
)

// Provider submits jobs to one vendor account and asks for them. All errors
// are *mediagate.Error, and no text in them holds secrets or hosts.
type Provider interface {
	// Submit sends the job once. KindInvalid, KindModerated, KindCredentials,
	// KindFunds, KindThrottled, KindCapacity, KindNotFound, KindNoModel and
	// KindUnreached prove that the vendor has no job of this call. KindNoModel says, in
	// the vendor's own words, that it does not have the model. KindAmbiguous means that
	// it may have one: that of this call, or an earlier one of the same
	// external id. Synchronous vendors set the submission's Outcome.
	Submit(ctx context.Context, job mediagate.Job) (mediagate.Submission, error)

	// Poll asks for a job by its vendor id once. Its errors are KindNotFound,
	// KindCredentials, KindFunds, KindThrottled and KindTransient; a job that
	// failed is no error but a report.
	Poll(ctx context.Context, ref mediagate.JobRef) (mediagate.Report, error)
}

// Finder is implemented by adapters whose vendor finds a job by our own id.
type Finder interface {
	// Ref is the reference that Submit would return for the job, less the
	// vendor's id. It makes no call.
	Ref(job mediagate.Job) (mediagate.JobRef, error)
	// Find asks for a job by ref.ExternalID. The report's Ref carries the
	// vendor's id. Without ref.State all places are asked that the operation
	// may have used. KindNotFound: at this moment the vendor has no such job.
	Find(ctx context.Context, ref mediagate.JobRef) (mediagate.Report, error)
}

// Batcher is implemented by adapters whose vendor tells of many jobs at once.
type Batcher interface {
	// PollAll is Poll for up to Operation.Batch jobs in one call. The answers
	// stand in the order of refs; the error is that of the call as a whole.
	// After one of KindNotFound or KindInvalid each job is asked for by Poll,
	// since one of them may have spoiled the call for all.
	PollAll(ctx context.Context, refs []mediagate.JobRef) ([]Answer, error)
}

// Chooser is implemented by a Batcher that takes some jobs only.
type Chooser interface {
	// Batches reports whether PollAll takes the job of ref; any other is polled
	// alone.
	Batches(ref mediagate.JobRef) bool
}

// Answer is what PollAll tells of one job: what Poll would.
type Answer struct {
	Report mediagate.Report
	Err    error
}

// Canceller is implemented by adapters whose vendor can stop a job.
type Canceller interface {
	Cancel(ctx context.Context, ref mediagate.JobRef) error
}

// Opener is implemented by adapters whose vendor offers files by reference.
type Opener interface {
	// Open opens the file that media.Ref names. length is -1 when unknown.
	// KindGone: the vendor has it no more. KindInvalid: it leads to where nobody
	// may follow. KindTransient otherwise.
	Open(ctx context.Context, ref mediagate.JobRef, media mediagate.Media) (file io.ReadCloser, length int64, err error)
}

// Speaker is implemented by adapters whose vendor answers with sound while it
// makes it.
type Speaker interface {
	// Speak sends the job once and returns when the vendor begins to answer with
	// sound. Its errors are Submit's, those of the sound's reader KindAmbiguous.
	// Whoever reads closes it, which ends the call, also in the middle.
	Speak(ctx context.Context, job mediagate.Job) (io.ReadCloser, error)
}

// Closer is implemented by adapters that keep idle connections.
type Closer interface {
	Close()
}

// Options are what the process decides about calls to vendors.
type Options = vendorhttp.Options

// Description is what an adapter says of itself.
type Description struct {
	Credentials []string // that a channel may have, by name
	Options     []string // of a channel, by name
	Operations  map[string]Operation
}

// Operation is one thing that an adapter can do.
type Operation struct {
	Fields []string // of the canonical request that it takes
	Idle   []string // those of Fields that change nothing at the vendor
	Media  string   // class of its results: "video", "image", "audio"

	Sync bool // the submit call itself brings the result
	// Streams: the job goes through Speak and not through Submit, whose answer is
	// passed on while it arrives. No task has it.
	Streams bool
	Find    bool // the vendor can be asked for the job by our own id
	Cancel  bool // the vendor can stop the job
	Batch   int  // jobs that one poll can ask for, where the channel's dialect has such a call; 0 is one
	Base    bool // it takes requests of the base contract, those for models of no catalog
	Source  bool // it works on what an earlier job made: Job.Source is set, and Supports looks at it
	Inputs  bool // Submit opens the client's media, which takes time before its first byte
	// Uploads: Submit lets the vendor fetch a file before the call that submits,
	// which takes as much time.
	Uploads bool
	// Callback: Submit tells the vendor Job.CallbackURL.
	Callback bool
	// FailUnknown: a task of a model of no catalog fails when nobody can tell whether
	// the vendor has its job; otherwise it is parked.
	FailUnknown bool

	// Submit is the longest that a submission takes, from the first call that
	// it makes to the end of the last answer; of one that streams, to its first
	// byte.
	Submit time.Duration
}

// Adapter is a row of the table of vendors: all that can be known of one
// without a channel that is complete, and how to open a channel.
type Adapter struct {
	Description Description
	// Open makes the provider of a channel. It makes no call. An error is of
	// KindInvalid; each of the problems that it joins names channel and field.
	Open func(mediagate.Channel, Options) (Provider, error)
	// Account names the vendor account behind a channel's credentials: what
	// stays the same when a secret is renewed.
	Account func(mediagate.Channel) string
	// Supports returns nil if the vendor's API can express the job's request, or an error of
	// KindInvalid that names the field and the rule. It writes the request as far as that is
	// possible without credentials, calls and the client's media. The options are those of a
	// channel, since they may choose between dialects of a vendor.
	Supports func(job mediagate.Job, options map[string]string) error
}
