package kernel

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"time"
)

// Service is the server as one vendor's folder uses it.
type Service struct {
	server *Server
	vendor string
}

// Reply is what a vendor answers to one call.
type Reply struct {
	Kind     string // of the call
	Status   int
	Header   map[string]string
	Body     any     // as JSON
	Stream   *Stream // instead of Body
	File     string  // instead of Body: this one of the job's files, as the directive wants it
	Job      string
	External string
	Made     bool // the call made the job
	Lost     bool // no answer is given

	after time.Duration // the answer is given so long after the call
}

// Stream is an answer that is made while it is sent, so that it may be larger
// than what one would hold. The directive of the reply's job says how it goes.
type Stream struct {
	Type    string // of its content
	Size    int64
	Content io.Reader
	Whole   bool // it is not cut short, whatever the directive says
	Breaks  bool // an internal error at download cuts it off in the middle
}

// Handle runs one of the vendor's handlers: the call is in the journal before
// the first byte of its answer leaves.
func (v *Service) Handle(handle func(*http.Request) Reply) http.HandlerFunc {
	s := v.server
	return func(w http.ResponseWriter, r *http.Request) {
		rep, away := s.away(v.vendor, r)
		if !away {
			rep = handle(r)
		}
		if rep.File != "" {
			s.sendFile(w, r, s.store.find(rep.Job), rep.File, "/"+v.vendor+r.URL.Path)
			return
		}
		if rep.Lost {
			rep.Status = 0
		}
		err := s.store.note(call{
			At: s.now().UTC(), Provider: v.vendor, Kind: rep.Kind, Method: r.Method, Path: "/" + v.vendor + r.URL.Path,
			Status: rep.Status, Job: rep.Job, ExternalID: rep.External, Made: rep.Made,
		})
		if err != nil {
			s.log.ErrorContext(r.Context(), "sandbox call is not stored", "error", err)
			http.Error(w, "sandbox: journal is not writable", http.StatusInternalServerError)
			return
		}
		if rep.Lost {
			s.stall(r)
			// The way net/http offers to cut a connection without an answer.
			panic(http.ErrAbortHandler)
		}
		if rep.after > 0 && !s.wait(r, rep.after) {
			panic(http.ErrAbortHandler)
		}
		for name, value := range rep.Header {
			w.Header().Set(name, value)
		}
		if rep.Stream != nil {
			s.stream(w, r, rep)
			return
		}
		s.writeJSON(w, rep.Status, rep.Body)
	}
}

// Customer finds the vendor's customer whose credential has the value.
func (v *Service) Customer(credential, value string) (Account, bool) {
	return v.server.customer(v.vendor, credential, value)
}

// Keyed is Handle for the vendor's customers, whose API key stands behind the
// scheme in the Authorization header. Any other caller is refused.
func (v *Service) Keyed(scheme string, handle func(*http.Request, Account) Reply, refuse func(*http.Request) Reply) http.HandlerFunc {
	return v.Handle(func(r *http.Request) Reply {
		if key, ok := strings.CutPrefix(r.Header.Get("Authorization"), scheme); ok {
			if a, known := v.Customer("api_key", key); known {
				return handle(r, a)
			}
		}
		return refuse(r)
	})
}

// Now is the time by the sandbox's clock.
func (v *Service) Now() time.Time { return v.server.now() }

// Wait reports whether the time passed with the caller still there.
func (v *Service) Wait(r *http.Request, d time.Duration) bool { return v.server.wait(r, d) }

// Find finds a job of the account by its own or its external id. One that the
// customer removed is not found.
func (v *Service) Find(a Account, id string) *Job {
	j := v.server.store.lookup(v.vendor, a.id(), id)
	if j == nil || j.Removed {
		return nil
	}
	return j
}

// Jobs lists the account's jobs that match and are not removed, oldest first.
func (v *Service) Jobs(a Account, match func(*Job) bool) []*Job {
	var jobs []*Job
	for _, j := range v.server.store.list(func(j *Job) bool {
		return j.Provider == v.vendor && j.Account == a.id() && !j.Removed && match(j)
	}) {
		jobs = append(jobs, j.Job)
	}
	return jobs
}

// Count adds a call of the kind to the job and returns its number, from 1.
func (v *Service) Count(j *Job, kind string) int { return v.server.store.count(j.ID, kind) }

// Spoiled counts a question about the job, and reports whether the job's
// directive wants it answered with an internal error.
func (v *Service) Spoiled(j *Job) bool {
	nth := v.Count(j, CallPoll)
	return j.Directive.Fail == FailInternal && j.Directive.Spoils(AtPoll, nth)
}

// Change does what the customer may still do to a job: it cancels or removes
// it, unless its state speaks against it. No other change comes in between.
// It reports false when change did, and when the journal cannot be written.
func (v *Service) Change(j *Job, change func(*Job) bool) bool {
	changed, err := v.server.store.change(j.ID, change)
	if err != nil {
		v.server.log.Error("sandbox job is not stored", "error", err)
	}
	return changed
}

// stallTime is how long a call without an answer is held open.
const stallTime = time.Minute

// stall waits until the caller leaves, the server closes or a minute passed.
func (s *Server) stall(r *http.Request) { s.wait(r, stallTime) }

// wait reports whether the time passed with the caller still there.
func (s *Server) wait(r *http.Request, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-r.Context().Done():
	case <-s.closing:
	}
	return false
}

// Admission is what becomes of a submission that broke no rule of its vendor.
type Admission int

// The admissions.
const (
	Accepted   Admission = iota
	AnswerLost           // the job is made, the caller will not know
	Rejected             // no job: invalid parameter
	Moderated            // no job: content refused
	Broken               // no job: internal error
	Duplicate            // no job: the external id is in use
	Busy                 // no job: the account's slots are taken
)

// Accept stores a job unless its directive or its account speaks against it.
// The directive is the prompt's, else the one arranged for the vendor's next
// job. For duplicates the older job is returned.
func (v *Service) Accept(a Account, j *Job) (*Job, Admission) {
	s := v.server
	d, own, err := findDirective(j.Prompt)
	if err != nil {
		return nil, Rejected
	}
	j.Provider = v.vendor
	var next arranged
	if !own {
		if next, own = s.store.claim(j.Provider); own {
			d = next.Directive
		}
	}
	j.Directive, j.Account, j.Created = d, a.id(), s.now().UTC()
	if d.Fails(AtSubmit) && d.Fail != FailTimeout {
		return nil, s.refuse(d, next)
	}
	old, err := s.store.add(j, next.ID, a.Concurrency)
	if err != nil && next.ID != "" {
		s.store.restore(next)
	}
	switch {
	case errors.Is(err, errDuplicate):
		s.store.count(old.ID, CallSubmit)
		return old, Duplicate
	case errors.Is(err, errBusy):
		return nil, Busy
	case err != nil:
		s.log.Error("sandbox job is not stored", "error", err)
		return nil, Broken
	case d.Fails(AtSubmit):
		return j, AnswerLost
	default:
		return j, Accepted
	}
}

// Refusals are a vendor's answers to a submission of which it makes no job.
type Refusals struct {
	Rejected  Reply
	Moderated Reply
	Broken    Reply
	Busy      Reply
	Duplicate Reply // of a vendor that knows jobs by external ids; else as Rejected
}

// Take is Accept with the answer to the caller, which taken makes of a new job.
func (v *Service) Take(a Account, j *Job, no Refusals, taken func(*Job) Reply) Reply {
	made, admission := v.Accept(a, j)
	return admission.Reply(made, no, taken)
}

// Reply is the answer to a submission of this admission.
func (a Admission) Reply(j *Job, no Refusals, taken func(*Job) Reply) Reply {
	var rep Reply
	switch a {
	case Accepted:
		rep = taken(j)
		rep.after = j.Directive.Answer
	case AnswerLost:
		rep = Reply{Kind: CallSubmit, Lost: true}
	case Rejected:
		return no.Rejected
	case Moderated:
		return no.Moderated
	case Busy:
		return no.Busy
	case Duplicate:
		if rep = no.Duplicate; rep.Status == 0 {
			rep = no.Rejected
		}
		rep.Job = j.ID
		return rep
	default:
		return no.Broken
	}
	rep.Job, rep.Made = j.ID, true
	return rep
}

// Resume lets a job that waits begin, with what its customer has told it. The
// directive is that of the text, else the one arranged for the vendor's next
// job, else the job's own. Duplicate: the job does not wait.
func (v *Service) Resume(j *Job, prompt string) (*Job, Admission) {
	s := v.server
	d, given, err := findDirective(prompt)
	if err != nil {
		return nil, Rejected
	}
	if !j.Waits {
		return j, Duplicate
	}
	if !given {
		if next, ok := s.store.claim(v.vendor); ok {
			d, given = next.Directive, true
			if err := s.store.spend(next.ID); err != nil {
				s.log.Error("sandbox directive is not stored", "error", err)
				return nil, Broken
			}
		}
	}
	if given && d.Fails(AtSubmit) && d.Fail != FailTimeout {
		return nil, s.refuse(d, arranged{})
	}
	var told *Job
	changed := v.Change(j, func(c *Job) bool {
		if !c.Waits {
			return false
		}
		now := s.now().UTC()
		c.Waits, c.Begun, c.Prompt = false, &now, prompt
		if given {
			c.Directive = d
		}
		told = c
		return true
	})
	switch {
	case !changed:
		return j, Duplicate
	case given && d.Fails(AtSubmit):
		return told, AnswerLost
	default:
		return told, Accepted
	}
}

// refuse answers for a directive that lets no job be made.
func (s *Server) refuse(d Directive, next arranged) Admission {
	if next.ID != "" {
		if err := s.store.spend(next.ID); err != nil {
			s.log.Error("sandbox directive is not stored", "error", err)
			return Broken
		}
	}
	switch d.Fail {
	case FailReject:
		return Rejected
	case FailModeration:
		return Moderated
	default:
		return Broken
	}
}

// writeJSON writes a vendor's answer, less the links that directives want unnamed.
func (s *Server) writeJSON(w http.ResponseWriter, status int, body any) {
	raw, err := json.Marshal(body)
	if err != nil {
		http.Error(w, "sandbox: answer is not encodable", http.StatusInternalServerError)
		return
	}
	writeRaw(w, status, s.named(raw))
}

func writeJSON(w http.ResponseWriter, status int, body any) {
	raw, err := json.Marshal(body)
	if err != nil {
		http.Error(w, "sandbox: answer is not encodable", http.StatusInternalServerError)
		return
	}
	writeRaw(w, status, raw)
}

func writeRaw(w http.ResponseWriter, status int, raw []byte) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write(raw) // a caller that has gone needs no answer
}

// Base is the address under which the caller reaches us.
func Base(r *http.Request) string {
	if r.TLS != nil {
		return "https://" + r.Host
	}
	return "http://" + r.Host
}
