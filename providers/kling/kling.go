package kling

import (
	"cmp"
	"context"
	"net/http"
	"net/url"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/providers/vendorhttp"
)

// PublicURL is the vendor's host for accounts outside mainland China.
const PublicURL = "https://api-singapore.klingai.com"

// Adapter speaks to one account. It is safe for concurrent use.
type Adapter struct {
	http *vendorhttp.Client
	auth authorizer
}

// New makes the adapter of a channel; errors name channel and field.
func New(ch mediagate.Channel, opt vendorhttp.Options) (*Adapter, error) {
	check := vendorhttp.Check(ch)
	about := Description()
	check.Known(about.Credentials, about.Options)
	base := check.BaseURL(PublicURL)
	var keys credentials
	switch {
	case ch.Credentials["api_key"] == "":
		keys.access, keys.secret = check.Credential("access_key"), check.Credential("secret_key")
	case ch.Credentials["access_key"] != "" || ch.Credentials["secret_key"] != "":
		check.Wrong("credentials.api_key", "excludes access_key and secret_key")
	default:
		keys.api = check.Credential("api_key")
	}
	switch ch.Options["generation"] {
	case "", "legacy":
	case "v2":
		check.Wrong("options.generation", "v2 is not served; use legacy")
	default:
		check.Wrong("options.generation", "must be legacy")
	}
	if err := check.Err(); err != nil {
		return nil, err
	}
	client := vendorhttp.New(vendorhttp.Config{
		BaseURL: base,
		Secrets: []string{keys.access, keys.secret, keys.api},
	}, opt)
	return &Adapter{http: client, auth: newAuthorizer(keys, client.Now)}, nil
}

// Account is what names the vendor account of a channel: the access key stays
// the same when its secret is renewed.
func Account(ch mediagate.Channel) string {
	return cmp.Or(ch.Credentials["access_key"], ch.Credentials["api_key"])
}

// Close drops idle connections.
func (a *Adapter) Close() { a.http.Close() }

// Ref is the reference that Submit returns for the job, less the vendor's id.
func (a *Adapter) Ref(job mediagate.Job) (mediagate.JobRef, error) {
	_, at, err := write(job)
	if err != nil {
		return mediagate.JobRef{}, err
	}
	return refOf(job, at), nil
}

func refOf(job mediagate.Job, at place) mediagate.JobRef {
	return mediagate.JobRef{ExternalID: job.ExternalID, Operation: job.Operation, State: at.state()}
}

// Submit sends the job once; providers.Provider says which kinds it returns.
// A token that the vendor refuses is made anew, once: that call was
// refused before the vendor looked at the job.
func (a *Adapter) Submit(ctx context.Context, job mediagate.Job) (mediagate.Submission, error) {
	if job.ExternalID == "" {
		return mediagate.Submission{}, mediagate.Errorf(mediagate.KindInvalid, "the job has no external id")
	}
	req, at, err := write(job)
	if err != nil {
		return mediagate.Submission{}, err
	}
	body, err := vendorhttp.Encode(req)
	if err != nil {
		return mediagate.Submission{}, mediagate.Errorf(mediagate.KindInvalid, "the request cannot be written: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, submitTimeout) // of both calls, where the first is refused
	defer cancel()
	call := vendorhttp.Call{
		Effect: vendorhttp.Submits, Path: videosPath + at.endpoint, Body: vendorhttp.JSON(body),
		SendBefore: job.SendBefore, Limits: vendorhttp.Limits{Total: submitTimeout},
	}
	answer, env, err := a.authorized(func(header http.Header) (vendorhttp.Answer, error) {
		call.Header = header
		return a.http.Do(ctx, call)
	})
	if err != nil {
		return mediagate.Submission{}, err
	}
	if err := a.submitError(answer, env); err != nil {
		return mediagate.Submission{}, err
	}
	ref := refOf(job, at)
	ref.JobID = env.Data.TaskID.ID()
	return mediagate.Submission{Ref: ref}, nil
}

// Poll asks for a job by the vendor's id.
func (a *Adapter) Poll(ctx context.Context, ref mediagate.JobRef) (mediagate.Report, error) {
	if ref.JobID == "" {
		return mediagate.Report{}, mediagate.Errorf(mediagate.KindNotFound, "the reference names no job")
	}
	return a.ask(ctx, ref, ref.JobID)
}

// Find asks for a job by our own id.
func (a *Adapter) Find(ctx context.Context, ref mediagate.JobRef) (mediagate.Report, error) {
	if ref.ExternalID == "" {
		return mediagate.Report{}, mediagate.Errorf(mediagate.KindNotFound, "the reference names no job")
	}
	ref.JobID = ""
	return a.ask(ctx, ref, ref.ExternalID)
}

// ask asks for a job where it is, or without a state at each endpoint that its
// operation may have used. It is absent only when each of them says so.
func (a *Adapter) ask(ctx context.Context, ref mediagate.JobRef, id string) (mediagate.Report, error) {
	if ref.State != "" {
		return a.query(ctx, ref, id)
	}
	if len(endpoints[ref.Operation]) == 0 {
		// Not KindNotFound, which would prove that there is no job.
		return mediagate.Report{}, mediagate.Errorf(mediagate.KindTransient, "operation %q is unknown here", ref.Operation)
	}
	var absent error
	for _, ref.State = range endpoints[ref.Operation] {
		report, err := a.query(ctx, ref, id)
		if !mediagate.Is(err, mediagate.KindNotFound) {
			return report, err
		}
		absent = err
	}
	return mediagate.Report{}, absent
}

func (a *Adapter) query(ctx context.Context, ref mediagate.JobRef, id string) (mediagate.Report, error) {
	call := vendorhttp.Call{
		Effect: vendorhttp.Reads, Path: videosPath + url.PathEscape(placeOf(ref.State).endpoint) + "/" + url.PathEscape(id),
	}
	answer, env, err := a.authorized(func(header http.Header) (vendorhttp.Answer, error) {
		call.Header = header
		return a.http.Do(ctx, call)
	})
	if err != nil {
		return mediagate.Report{}, err
	}
	if err := a.pollError(answer, env); err != nil {
		return mediagate.Report{}, err
	}
	return a.report(ref, env)
}

// authorized makes a call, and makes it once more with a new token when the
// vendor refuses the first one. The envelope is nil when the answer
// holds none.
func (a *Adapter) authorized(call func(http.Header) (vendorhttp.Answer, error)) (vendorhttp.Answer, *envelope, error) {
	for again := true; ; again = false {
		token, err := a.auth.token()
		if err != nil {
			return vendorhttp.Answer{}, nil, &mediagate.Error{
				Kind: mediagate.KindCredentials, Code: string(mediagate.CodeProviderRefused),
				Message: "our credentials cannot sign", Err: err,
			}
		}
		answer, err := call(http.Header{"Authorization": {"Bearer " + token}})
		if err != nil {
			return vendorhttp.Answer{}, nil, err
		}
		env := readEnvelope(answer)
		if again && env != nil && unfit(env.Code) && a.auth.renew(token) {
			continue
		}
		return answer, env, nil
	}
}
