package kling

import (
	"cmp"
	"context"
	"net/http"
	"net/url"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/providers"
	"github.com/mediagate/mediagate/providers/vendorhttp"
)

// PublicURL is the vendor's host for accounts outside mainland China.
const PublicURL = "https://api-singapore.klingai.com"

// The generations of the vendor's API, as a channel's option names them.
const (
	generationLegacy = "legacy"
	generationV2     = "v2"
)

// Adapter calls one vendor account. It submits new jobs to its generation, and asks for each older
// job in the generation that made it. It is safe for concurrent use.
type Adapter struct {
	http       *vendorhttp.Client
	auth       authorizer
	generation string
	opensBoth  bool // the credentials are valid in both generations
}

// New returns the adapter of a channel. Its errors name the channel and the field.
func New(ch mediagate.Channel, opt vendorhttp.Options) (providers.Provider, error) {
	check := vendorhttp.Check(ch)
	about := Description()
	check.CheckNames(about.Credentials, about.Options)
	base := check.BaseURL(PublicURL)
	has := func(name string) bool { return ch.Credentials[name] != (mediagate.Secret{}) }
	var keys credentials
	generation := generationOf(ch.Options)
	switch {
	case generation != generationLegacy && generation != generationV2:
		check.AddProblem("options.generation", "must be legacy or v2")
	case has("api_key") && (has("access_key") || has("secret_key")):
		check.AddProblem("credentials.api_key", "excludes access_key and secret_key")
	case has("api_key") || generation == generationV2: // v2 takes no key pair
		keys.api = check.Credential("api_key")
	default:
		keys.access, keys.secret = check.Credential("access_key"), check.Credential("secret_key")
	}
	if err := check.Err(); err != nil {
		return nil, err
	}
	client := vendorhttp.New(vendorhttp.Config{
		BaseURL: base,
		Secrets: []mediagate.Secret{keys.access, keys.secret, keys.api},
	}, opt)
	a := &Adapter{
		http: client, auth: newAuthorizer(keys, client.Now), generation: generation, opensBoth: has("api_key"),
	}
	if generation == generationV2 {
		return &batching{a}, nil
	}
	return a, nil
}

func generationOf(options map[string]string) string {
	return cmp.Or(options["generation"], generationLegacy)
}

// Account returns the name of the vendor account behind a channel. The access key names it, because
// it stays the same when its secret is renewed.
func Account(ch mediagate.Channel) string {
	return cmp.Or(ch.Credentials["access_key"].Reveal(), ch.Credentials["api_key"].Reveal())
}

// Close drops idle connections.
func (a *Adapter) Close() { a.http.Close() }

// Ref returns the reference that Submit would return for the job, without the vendor's id.
func (a *Adapter) Ref(job mediagate.Job) (mediagate.JobRef, error) {
	w, err := toWire(job, a.generation)
	if err != nil {
		return mediagate.JobRef{}, err
	}
	return refOf(job, w.at), nil
}

func refOf(job mediagate.Job, at place) mediagate.JobRef {
	return mediagate.JobRef{ExternalID: job.ExternalID, Operation: job.Operation, State: at.state()}
}

// Submit sends the job once. providers.Provider lists the kinds of its errors. If the vendor refuses
// a token that was signed with a key pair, Submit signs a new one and sends the job again, once. The
// refused call made no job, because the vendor checks the token first.
func (a *Adapter) Submit(ctx context.Context, job mediagate.Job) (mediagate.Submission, error) {
	if job.ExternalID == "" {
		return mediagate.Submission{}, mediagate.Errorf(mediagate.KindInvalid, "the job has no external id")
	}
	w, err := toWire(job, a.generation)
	if err != nil {
		return mediagate.Submission{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, submitTimeout) // for both calls, if the vendor refuses the first token
	defer cancel()
	call := vendorhttp.Call{
		Effect: vendorhttp.Submits, Path: w.path, Body: vendorhttp.JSON(w.body),
		SendBefore: job.SendBefore, Limits: vendorhttp.Limits{Total: submitTimeout},
	}
	answer, head, err := a.do(ctx, call)
	if err != nil {
		return mediagate.Submission{}, err
	}
	if err := a.http.ErrorOf(vendorhttp.Submits, answer, readSubmission(answer, head, w.at)); err != nil {
		return mediagate.Submission{}, err
	}
	ref := refOf(job, w.at)
	ref.JobID = readJobID(answer, w.at)
	return mediagate.Submission{Ref: ref}, nil
}

// Poll asks for a job by the vendor's id.
func (a *Adapter) Poll(ctx context.Context, ref mediagate.JobRef) (mediagate.Report, error) {
	if ref.JobID == "" {
		return mediagate.Report{}, mediagate.Errorf(mediagate.KindNotFound, "the reference names no job")
	}
	return a.ask(ctx, ref, ref.JobID)
}

// Find asks for a job by our id.
func (a *Adapter) Find(ctx context.Context, ref mediagate.JobRef) (mediagate.Report, error) {
	if ref.ExternalID == "" {
		return mediagate.Report{}, mediagate.Errorf(mediagate.KindNotFound, "the reference names no job")
	}
	ref.JobID = ""
	return a.ask(ctx, ref, ref.ExternalID)
}

// ask asks for a job at each place where it may be. The job is absent only if every place says so.
func (a *Adapter) ask(ctx context.Context, ref mediagate.JobRef, id string) (mediagate.Report, error) {
	places := a.placesOf(ref)
	if len(places) == 0 {
		// KindNotFound would prove that the vendor has no such job.
		return mediagate.Report{}, mediagate.Errorf(
			mediagate.KindTransient, "operation %q is unknown here", ref.Operation)
	}
	var absent error
	for _, at := range places {
		ref.State = at.state()
		report, err := a.query(ctx, ref, at, id)
		if !mediagate.Is(err, mediagate.KindNotFound) {
			return report, err
		}
		absent = err
	}
	return mediagate.Report{}, absent
}

// placesOf returns the places where the job may be. If the reference has a State, that is the place.
// Without a State, the places are all endpoints of the older generation that the operation may have
// used. If the vendor's id is not known, the channel may have sent the job before its generation was
// changed, so placesOf adds the places of the other generation. With a key pair it does not add the
// newer generation, which takes API keys only.
func (a *Adapter) placesOf(ref mediagate.JobRef) []place {
	at := placeOf(ref.State)
	var older []place
	for _, endpoint := range endpoints[ref.Operation] {
		older = append(older, place{endpoint, at.wantsWatermark})
	}
	stated := []place{at}
	switch {
	case ref.State == "":
		stated = older
	case ref.JobID == "" && at.newer():
		return append(stated, older...)
	}
	if ref.JobID == "" && a.opensBoth && len(stated) > 0 {
		return append(stated, place{newerTasks, at.wantsWatermark})
	}
	return stated
}

func (a *Adapter) query(ctx context.Context, ref mediagate.JobRef, at place, id string) (mediagate.Report, error) {
	if at.newer() {
		return a.queryNewer(ctx, ref, id)
	}
	answer, head, err := a.do(ctx, vendorhttp.Call{
		Effect: vendorhttp.Reads, Path: videosPath + url.PathEscape(at.endpoint) + "/" + url.PathEscape(id),
	})
	if err != nil {
		return mediagate.Report{}, err
	}
	if err := a.http.ErrorOf(vendorhttp.Reads, answer, readQuery(answer, head)); err != nil {
		return mediagate.Report{}, err
	}
	return a.report(ref, readTask(answer))
}

// do makes a call with a token.
func (a *Adapter) do(ctx context.Context, call vendorhttp.Call) (vendorhttp.Answer, *head, error) {
	return a.authorized(func(header http.Header) (vendorhttp.Answer, error) {
		call.Header = header
		return a.http.Do(ctx, call)
	})
}

// authorized makes a call. If the vendor refuses the token and a new one can be signed, authorized
// repeats the call once with the new token. The returned head is nil if the answer has none.
func (a *Adapter) authorized(call func(http.Header) (vendorhttp.Answer, error)) (vendorhttp.Answer, *head, error) {
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
		head := readHead(answer)
		if again && head != nil && mayRefuseToken(head.Code) && a.auth.renew(token) {
			continue
		}
		return answer, head, nil
	}
}
