package kernel

import (
	"net/http"
	"strings"
	"time"
)

// Fault is why a vendor refuses a call. Each vendor has words of its own for it.
type Fault int

// The faults.
const (
	NoKey         Fault = iota // the caller is no customer
	NoPath                     // there is no such call
	NoModel                    // there is no such model
	NoJob                      // the customer has no such job
	NotNow                     // the state of the job speaks against it
	Invalid                    // the request breaks a rule
	Inappropriate              // the content is refused
	Internal                   // the server fails
	Crowded                    // the customer has too many jobs at once
	InUse                      // the external id is
)

// Words are what a vendor says of a fault.
type Words struct {
	Status  int
	Code    any
	Message string // goes before what is wrong with a request
}

// Says returns the words of a fault.
func Says(status int, code any, message string) Words { return Words{status, code, message} }

// Refuse answers a call that is refused; err tells more of the fault, or is nil.
type Refuse func(kind string, f Fault, err error) Reply

// Refuser returns a Refuse that puts the vendor's words into its envelope. Of a fault
// without words those of Invalid are used.
func Refuser(words map[Fault]Words, envelope func(Words) any) Refuse {
	return func(kind string, f Fault, err error) Reply {
		w, ok := words[f]
		if !ok {
			w = words[Invalid]
		}
		if err != nil {
			w.Message += err.Error()
		}
		return Reply{Kind: kind, Status: w.Status, Body: envelope(w)}
	}
}

// OK answers a call with HTTP 200.
func OK(kind string, body any) Reply { return Reply{Kind: kind, Status: http.StatusOK, Body: body} }

// API is a vendor's API, or a generation of it: how its jobs are made, asked for and
// cancelled.
type API struct {
	*Service
	Schemas  *Schemas
	Limit    int64  // the most bytes of a request
	Endpoint string // of its jobs: ids are known there only
	Refuse   Refuse

	Made View // the answer to the submission of a new job
	Task View // the answer about a job

	// How the customer is called back; see Callback. Without a word it is not.
	Word      func(j *Job, now time.Time) string
	Told      View
	Challenge bool
}

// View is what a vendor tells of a job at a time.
type View = func(r *http.Request, j *Job, now time.Time) any

// Maker makes the job of a request that broke no rule of its schema, or tells of another rule
// that it breaks.
type Maker = func(Body) (*Job, error)

// Read reads the job of a request, or refuses it.
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

// Submit makes the job of a request.
func (api *API) Submit(r *http.Request, a Account, operation string, job Maker) Reply {
	j, rep := api.Read(r, operation, job)
	if j == nil {
		return rep
	}
	return api.Begin(r, a, j)
}

// Submits serves an operation that makes a job.
func (api *API) Submits(operation string, job Maker) Handler {
	return func(r *http.Request, a Account) Reply { return api.Submit(r, a, operation, job) }
}

// Begin takes a job that broke no rule, and calls the customer back.
func (api *API) Begin(r *http.Request, a Account, j *Job) Reply {
	rep := api.Accept(a, j, api.Refuse, func(j *Job) Reply { return OK(CallSubmit, api.Made(r, j, j.Created)) })
	if rep.External = j.ExternalID; rep.Made && api.Word != nil {
		body := func(j *Job) any { return api.Told(r, j, api.Now()) }
		api.CallBack(j, Callback{To: j.CallbackURL, Word: api.Word, Body: body, Challenge: api.Challenge})
	}
	return rep
}

// Find finds a job of the API by its own or its external id.
func (api *API) Find(a Account, id string) *Job {
	if j := api.Service.Find(a, id); j != nil && j.Endpoint == api.Endpoint {
		return j
	}
	return nil
}

// Query tells of the job whose id is in the path.
func (api *API) Query(r *http.Request, a Account) Reply { return api.QueryID(r, a, r.PathValue("id")) }

// QueryID tells of a job.
func (api *API) QueryID(r *http.Request, a Account, id string) Reply {
	return api.Tell(api.Find(a, id), func(j *Job) Reply { return OK(CallPoll, api.Task(r, j, api.Now())) })
}

// Tell answers a question about a job by show, unless there is none or its directive
// spoils the question.
func (api *API) Tell(j *Job, show func(j *Job) Reply) Reply {
	if j == nil {
		return api.Refuse(CallPoll, NoJob, nil)
	}
	rep := show(j)
	if api.Spoiled(j) {
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
		rep = api.Refuse(CallCancel, NotNow, nil)
	}
	rep.Job = j.ID
	return rep
}

// Handler answers a customer's call.
type Handler = func(*http.Request, Account) Reply

// Recognise finds the customer that makes a call, or refuses the call.
type Recognise = func(*http.Request) (Account, *Reply)

// Routes serves the calls of customers, and refuses what is no call.
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

// Customers recognises them by the credential that stands in a header behind a prefix.
func (v *Service) Customers(header, prefix, credential string, refuse Refuse) Recognise {
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

// Await waits for a job that is answered in the call that submits it, and answers for one
// whose directive lets it fail then.
func (v *Service) Await(r *http.Request, j *Job, refuse Refuse) (rep Reply, failed bool) {
	v.Wait(r, j.Takes())
	if !j.Directive.Fails(AtPoll) {
		return Reply{}, false
	}
	switch j.Directive.Fail {
	case FailModeration:
		return refuse(CallSubmit, Inappropriate, nil), true
	case FailReject:
		return refuse(CallSubmit, Invalid, Wrong("prompt", "could not be processed")), true
	case FailInternal:
		return refuse(CallSubmit, Internal, nil), true
	default:
		return Reply{Kind: CallSubmit, Lost: true}, true
	}
}
