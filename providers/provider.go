package providers

import (
	"context"
	"io"
	"time"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/providers/vendorhttp"
)

// Provider submits jobs to one vendor account and polls them. All errors are *mediagate.Error, and
// their texts contain no secrets or hosts.
type Provider interface {
	// Submit sends the job once. KindInvalid, KindModerated, KindCredentials, KindForbidden,
	// KindFunds, KindThrottled, KindCapacity, KindNotFound, KindNoModel and KindUnreached prove that
	// this call made no job at the vendor. For KindNoModel, the vendor itself must say that it does
	// not have the model. KindAmbiguous means that the vendor may have a job, from this call or from
	// an earlier call with the same external id. Adapters of synchronous vendors set the submission's
	// Outcome.
	Submit(ctx context.Context, job mediagate.Job) (mediagate.Submission, error)

	// Poll asks once for a job by its vendor id. Its errors are KindNotFound, KindCredentials,
	// KindForbidden, KindFunds, KindThrottled and KindTransient. A failed job is a report, not an
	// error.
	Poll(ctx context.Context, ref mediagate.JobRef) (mediagate.Report, error)
}

// Finder is implemented by adapters whose vendor can find a job by our own id.
type Finder interface {
	// Ref returns the reference that Submit would return for the job, without the vendor's id. It
	// makes no call.
	Ref(job mediagate.Job) (mediagate.JobRef, error)
	// Find asks for a job by ref.ExternalID. The report's Ref has the vendor's id. If ref.State is
	// empty, Find asks all places that the operation may have used. KindNotFound means that the
	// vendor has no such job at this moment.
	Find(ctx context.Context, ref mediagate.JobRef) (mediagate.Report, error)
}

// Batcher is implemented by adapters whose vendor reports many jobs in one call.
type Batcher interface {
	// PollAll polls up to Operation.Batch jobs in one call. The answers are in the order of refs. An
	// error means that the whole call failed. After KindNotFound, KindInvalid or KindInternal, the
	// caller polls each job with Poll, because a single job may have made the call fail for all.
	PollAll(ctx context.Context, refs []mediagate.JobRef) ([]Answer, error)
}

// Chooser is implemented by a Batcher that accepts only some jobs.
type Chooser interface {
	// Batches reports whether PollAll accepts the job of ref. Any other job is polled alone.
	Batches(ref mediagate.JobRef) bool
}

// Answer is the result of PollAll for one job, as Poll would return it.
type Answer struct {
	Report mediagate.Report
	Err    error
}

// Canceller is implemented by adapters whose vendor can stop a job.
type Canceller interface {
	Cancel(ctx context.Context, ref mediagate.JobRef) error
}

// Opener is implemented by adapters whose vendor gives files by reference instead of a URL.
type Opener interface {
	// Open opens the file that media.Ref names. length is -1 if it is unknown. KindGone means that
	// the vendor no longer has the file. KindInvalid means that the reference leads to an address
	// that may not be reached. All other errors are KindTransient.
	Open(ctx context.Context, ref mediagate.JobRef, media mediagate.Media) (file io.ReadCloser, length int64, err error)
}

// Speaker is implemented by adapters whose vendor streams sound while it makes it.
type Speaker interface {
	// Speak sends the job once and returns when the vendor begins to send sound. Its errors are
	// those of Submit; the errors of the reader are KindAmbiguous. The caller closes the reader. If
	// the call is still running, Close ends it.
	Speak(ctx context.Context, job mediagate.Job) (io.ReadCloser, error)
}

// Closer is implemented by adapters that keep idle connections.
type Closer interface {
	Close()
}

// Options are the settings of the process for calls to vendors.
type Options = vendorhttp.Options

// Description states what an adapter supports.
type Description struct {
	Credentials []string // names of the credentials that a channel may have
	Options     []string // names of the options that a channel may have
	Operations  map[string]Operation
}

// Operation is one kind of job that an adapter can submit.
type Operation struct {
	Fields []string // of the canonical request that the operation takes
	Idle   []string // those of Fields that have no effect at the vendor
	Media  string   // class of the results: "video", "image", "audio"

	Sync bool // the submit call itself returns the result
	// Streams is set if the job goes through Speak instead of Submit. The gateway then passes the
	// sound on while it arrives, and the job has no task.
	Streams bool
	Find    bool // the vendor can find the job by our own id
	Cancel  bool // the vendor can stop the job
	Batch   int  // the most jobs that one call can poll, if the channel's dialect has such a call; 0 means 1
	Base    bool // accepts requests of the base contract, for models without a catalog entry
	Source  bool // works on an earlier job's result: Job.Source is set, and Supports checks it
	Inputs  bool // Submit opens the client's media, which takes time before its first byte
	// Uploads is set if Submit makes the vendor fetch a file before the call that submits. Like
	// Inputs, this takes time before the first byte.
	Uploads bool
	// Callback is set if Submit passes Job.CallbackURL to the vendor.
	Callback bool
	// FailUnknown decides what happens if it stays unknown whether the vendor has a task's job, for
	// models without a catalog entry. The task fails if FailUnknown or Sync is set, and else parks.
	FailUnknown bool

	// Submit is the longest time that a submission takes, from its first call to the end of its
	// last answer. For an operation that streams, it ends with the first byte of the answer.
	Submit time.Duration
}

// Adapter is an entry in the table of vendors. It has the function that opens a channel of the
// vendor, and everything that callers need to know before they open one.
type Adapter struct {
	Description Description
	// Open returns the provider of a channel. It makes no call. Its error is of KindInvalid and
	// joins all problems; each names channel and field.
	Open func(mediagate.Channel, Options) (Provider, error)
	// Account returns a name for the vendor account behind a channel's credentials. If the
	// credentials name the account, the name stays the same when a secret is renewed. If not, the
	// name is made of the secrets.
	Account func(mediagate.Channel) string
	// Supports returns nil if the vendor's API can express the job's request, or an error of
	// KindInvalid that names the field and the rule. It builds the request as far as possible
	// without credentials, calls and the client's media. options are those of a channel, which may
	// choose between dialects of a vendor.
	Supports func(job mediagate.Job, options map[string]string) error
}
