package kernel

import (
	"net/http"
	"strings"
	"time"
)

// Fault is the reason why a vendor refuses a call. Each vendor has its own words for it.
type Fault int

// The faults.
const (
	NoKey         Fault = iota // the caller is not a customer
	NoPath                     // there is no such endpoint
	NoModel                    // there is no such model
	NoJob                      // the customer has no such job
	WrongState                 // the state of the job does not allow it
	Invalid                    // the request breaks a rule
	Inappropriate              // the content is refused
	Internal                   // the server fails
	TooManyJobs                // the customer has too many jobs at once
	InUse                      // the external id is in use
)

// FaultText holds the status, code and message with which a vendor reports a fault.
type FaultText struct {
	Status  int
	Code    any
	Message string // before the text of the error
}

// NewFaultText returns a FaultText with these values.
func NewFaultText(status int, code any, message string) FaultText {
	return FaultText{status, code, message}
}

// Refuse returns the answer to a call that is refused. err describes the fault further, or is
// nil.
type Refuse func(kind string, f Fault, err error) Reply

// NewRefuse returns a Refuse that puts the vendor's text of a fault into its envelope. A fault
// without a text has that of Invalid.
func NewRefuse(texts map[Fault]FaultText, envelope func(FaultText) any) Refuse {
	return func(kind string, f Fault, err error) Reply {
		w, ok := texts[f]
		if !ok {
			w = texts[Invalid]
		}
		if err != nil {
			w.Message += err.Error()
		}
		return Reply{Kind: kind, Status: w.Status, Body: envelope(w)}
	}
}

// OK returns an answer with HTTP 200.
func OK(kind string, body any) Reply { return Reply{Kind: kind, Status: http.StatusOK, Body: body} }

// API is a vendor's API, or one generation of it: how its jobs are created, polled and
// cancelled.
type API struct {
	*Service
	Schemas  *Schemas
	Limit    int64  // largest request, in bytes
	Endpoint string // of its jobs: their ids are valid only there
	Refuse   Refuse

	SubmitView View // the answer to a submission that created a job
	PollView   View // the answer to a poll of a job

	// The callbacks to the customer; see Callback. If CallbackState is nil, there are none.
	CallbackState func(j *Job, now time.Time) string
	CallbackBody  View
	Challenge     bool
}

// View returns the vendor's JSON for a job at the time now.
type View = func(r *http.Request, j *Job, now time.Time) any

// Maker returns the job of a request that has passed its schema, or an error if the request
// breaks another rule.
type Maker = func(Body) (*Job, error)

// Read validates a request and returns its job. If the request is refused, Read returns nil and
// the answer.
func (api *API) Read(r *http.Request, operation string, job Maker) (*Job, Reply) {
	body, err := api.Schemas.Read(r, operation, api.Limit)
	var j *Job
	if err == nil {
		j, err = job(body)
	}
	if err != nil {
		return nil, api.Refuse(CallSubmit, Invalid, err)
	}
	j.Endpoint = api.Endpoint
	return j, Reply{}
}

// Submit creates the job of a request and returns the answer.
func (api *API) Submit(r *http.Request, a Account, operation string, job Maker) Reply {
	j, rep := api.Read(r, operation, job)
	if j == nil {
		return rep
	}
	return api.AcceptAndCallBack(r, a, j)
}

// SubmitHandler returns the handler of an operation that creates a job.
func (api *API) SubmitHandler(operation string, job Maker) Handler {
	return func(r *http.Request, a Account) Reply { return api.Submit(r, a, operation, job) }
}

// AcceptAndCallBack accepts a job whose request broke no rule, and starts its callbacks.
func (api *API) AcceptAndCallBack(r *http.Request, a Account, j *Job) Reply {
	rep := api.Accept(a, j, api.Refuse, func(j *Job) Reply { return OK(CallSubmit, api.SubmitView(r, j, j.Created)) })
	if rep.External = j.ExternalID; rep.Made && api.CallbackState != nil {
		body := func(j *Job) any { return api.CallbackBody(r, j, api.Now()) }
		api.CallBack(j, Callback{To: j.CallbackURL, State: api.CallbackState, Body: body, Challenge: api.Challenge})
	}
	return rep
}

// Find returns the API's job with this id or external id, or nil.
func (api *API) Find(a Account, id string) *Job {
	if j := api.Service.Find(a, id); j != nil && j.Endpoint == api.Endpoint {
		return j
	}
	return nil
}

// Query answers a poll of the job whose id is in the path.
func (api *API) Query(r *http.Request, a Account) Reply { return api.QueryID(r, a, r.PathValue("id")) }

// QueryID answers a poll of the job with this id.
func (api *API) QueryID(r *http.Request, a Account, id string) Reply {
	return api.AnswerPoll(api.Find(a, id), func(j *Job) Reply { return OK(CallPoll, api.PollView(r, j, api.Now())) })
}

// AnswerPoll answers a poll of a job with the reply that show returns. It refuses the poll if j is nil
// or if the job's directive makes the poll fail.
func (api *API) AnswerPoll(j *Job, show func(j *Job) Reply) Reply {
	if j == nil {
		return api.Refuse(CallPoll, NoJob, nil)
	}
	rep := show(j)
	if api.CountPoll(j) {
		rep = api.Refuse(CallPoll, Internal, nil)
	}
	rep.Kind, rep.Job, rep.External = CallPoll, j.ID, j.ExternalID
	return rep
}

// Cancel cancels the job whose id is in the path, if it is queued.
func (api *API) Cancel(r *http.Request, a Account) Reply {
	j := api.Find(a, r.PathValue("id"))
	if j == nil {
		return api.Refuse(CallCancel, NoJob, nil)
	}
	rep := OK(CallCancel, map[string]any{})
	if !api.Stop(j, StateQueued) {
		rep = api.Refuse(CallCancel, WrongState, nil)
	}
	rep.Job = j.ID
	return rep
}

// Handler answers a customer's call.
type Handler = func(*http.Request, Account) Reply

// Recognise returns the customer that makes a call, or the answer that refuses it.
type Recognise = func(*http.Request) (Account, *Reply)

// Routes returns a handler that serves routes to customers and refuses every other path.
func (v *Service) Routes(who Recognise, refuse Refuse, routes map[string]Handler) http.Handler {
	mux := http.NewServeMux()
	handle := func(path string, h Handler) {
		mux.Handle(path, v.Handle(func(r *http.Request) Reply {
			a, refused := who(r)
			if refused != nil {
				return *refused
			}
			return h(r, a)
		}))
	}
	for path, h := range routes {
		handle(path, h)
	}
	handle("/", func(*http.Request, Account) Reply { return refuse(CallOther, NoPath, nil) })
	return mux
}

// ByCredential returns a Recognise that finds a customer by the credential in a header, after a
// prefix such as "Bearer ".
func (v *Service) ByCredential(header, prefix, credential string, refuse Refuse) Recognise {
	return func(r *http.Request) (Account, *Reply) {
		if key, ok := strings.CutPrefix(r.Header.Get(header), prefix); ok {
			if a, known := v.Customer(credential, key); known {
				return a, nil
			}
		}
		refused := refuse(CallOther, NoKey, nil)
		return Account{}, &refused
	}
}

// Await waits until a job is done whose vendor answers in the submitting call. If the directive
// makes the job fail, Await returns the answer and true.
func (v *Service) Await(r *http.Request, j *Job, refuse Refuse) (rep Reply, failed bool) {
	v.Wait(r, j.Duration())
	if !j.Directive.Fails(AtPoll) {
		return Reply{}, false
	}
	switch j.Directive.Fail {
	case FailModeration:
		return refuse(CallSubmit, Inappropriate, nil), true
	case FailReject:
		return refuse(CallSubmit, Invalid, NewViolation("prompt", "could not be processed")), true
	case FailInternal:
		return refuse(CallSubmit, Internal, nil), true
	default:
		return Reply{Kind: CallSubmit, Lost: true}, true
	}
}
