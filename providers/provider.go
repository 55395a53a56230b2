package providers

import (
	"context"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/providers/vendorhttp"
)

// Provider submits jobs to one vendor account and asks for them. All errors
// are *mediagate.Error, and no text in them holds secrets or hosts.
type Provider interface {
	// Submit sends the job once. KindInvalid, KindModerated, KindCredentials,
	// KindFunds, KindThrottled, KindCapacity, KindNotFound and KindUnreached
	// prove that the vendor has no job of this call. KindAmbiguous means that
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
	// Find asks for a job by ref.ExternalID. The report's Ref carries the
	// vendor's id. Without ref.Endpoint all that the operation may have used
	// are asked. KindNotFound: at this moment the vendor has no such job.
	Find(ctx context.Context, ref mediagate.JobRef) (mediagate.Report, error)
}

// Referrer is implemented by Finders: it tells what to remember of a job
// before it is submitted.
type Referrer interface {
	// Ref is the reference that Submit would return for the job, less the
	// vendor's id. It makes no call.
	Ref(job mediagate.Job) (mediagate.JobRef, error)
}

// Canceller is implemented by adapters whose vendor can stop a job.
type Canceller interface {
	Cancel(ctx context.Context, ref mediagate.JobRef) error
}

// Closer is implemented by adapters that keep idle connections.
type Closer interface {
	Close()
}

// Options are what the process decides about calls to vendors.
type Options = vendorhttp.Options

// vendor is a row of the table in all.go.
type vendor struct {
	open    func(mediagate.Channel, Options) (Provider, error)
	account func(mediagate.Channel) string
}
