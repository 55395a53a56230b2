package kernel

import (
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"time"
)

// Service gives one vendor's folder access to the server.
type Service struct {
	server *Server
	vendor string
}

// Reply is a vendor's answer to one call.
type Reply struct {
	Kind     string // of the call
	Status   int
	Header   map[string]string
	Body     any     // encoded as JSON
	Stream   *Stream // sent instead of Body
	File     string  // sent instead of Body: the name of a file of Job
	Job      string
	External string
	Made     bool // the call created Job
	Lost     bool // no answer is sent

	after time.Duration // delay between the call and its answer
}

// Stream is an answer that is generated while it is sent, so it need not fit into memory. The
// directive of the reply's job decides how fast it is sent and whether it is cut off.
type Stream struct {
	Type          string // of its content
	Size          int64
	Content       io.Reader
	NeverStalls   bool // a timeout at download does not cut it off
	CutByInternal bool // an internal error at download cuts it off
}

// maxUnread exceeds the largest body that any vendor accepts.
const maxUnread = 64 << 20

// Handle returns an HTTP handler that runs one of the vendor's handlers. It records the call in
// the journal before the first byte of the answer leaves.
func (v *Service) Handle(handle func(*http.Request) Reply) http.HandlerFunc {
	s := v.server
	return func(w http.ResponseWriter, r *http.Request) {
		rep, isDown := s.outageReply(v.vendor, r)
		if !isDown {
			rep = handle(r)
		}
		// A handler that refuses may leave the body unread. net/http would cut the connection after
		// the answer, and a sender that is still writing might not see it.
		_, _ = io.Copy(io.Discard, io.LimitReader(r.Body, maxUnread))
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
			// This panic makes net/http cut the connection without an answer.
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

// Customer returns the vendor's customer whose credential has the value.
func (v *Service) Customer(credential, value string) (Account, bool) {
	return v.server.customer(v.vendor, credential, value)
}

// Now returns the time by the sandbox's clock.
func (v *Service) Now() time.Time { return v.server.now() }

// Wait waits for d. It returns false if the caller leaves or the server closes before.
func (v *Service) Wait(r *http.Request, d time.Duration) bool { return v.server.wait(r, d) }

// Find returns the account's job with this id or external id. It returns nil if there is none or
// if the customer removed it.
func (v *Service) Find(a Account, id string) *Job {
	j := v.server.store.lookup(v.vendor, a.ID(), id)
	if j == nil || j.Removed {
		return nil
	}
	return j
}

// Jobs returns the account's jobs that match, oldest first. It leaves out removed jobs.
func (v *Service) Jobs(a Account, match func(*Job) bool) []*Job {
	return v.server.store.list(func(j *Job) bool {
		return j.Provider == v.vendor && j.Account == a.ID() && !j.Removed && match(j)
	})
}

// Count counts a call of the kind for the job and returns the number of such calls so far.
func (v *Service) Count(j *Job, kind string) int { return v.server.store.count(j.ID, kind) }

// CountPoll counts a poll of the job. It reports whether the job's directive makes this poll fail
// with an internal error.
func (v *Service) CountPoll(j *Job) (fails bool) {
	nth := v.Count(j, CallPoll)
	return j.Directive.Fail == FailInternal && j.Directive.FailsCall(AtPoll, nth)
}

// Change calls change with a fresh copy of the job and stores the copy if change returns true.
// Changes run one at a time. Change returns false if change does or if the journal cannot be
// written.
func (v *Service) Change(j *Job, change func(*Job) bool) (changed bool) {
	err := v.server.store.update(func(t tx) error {
		current := t.job(j.ID)
		if current == nil || !change(current) {
			return nil
		}
		changed = true
		return t.change(current)
	})
	if err != nil {
		v.server.log.Error("sandbox job is not stored", "error", err)
	}
	return changed && err == nil
}

// Stop counts a cancel call and cancels the job if its state is one of states. It reports
// whether it cancelled the job.
func (v *Service) Stop(j *Job, states ...State) bool {
	v.Count(j, CallCancel)
	now := v.Now().UTC()
	return v.Change(j, func(j *Job) bool {
		if !slices.Contains(states, j.State(now)) {
			return false
		}
		j.Cancelled = &now
		return true
	})
}

// stallTime is how long the connection of a call without an answer stays open.
const stallTime = time.Minute

// stall waits until the caller leaves, the server closes or stallTime has passed.
func (s *Server) stall(r *http.Request) { s.wait(r, stallTime) }

// wait waits for d. It returns false if the caller leaves or the server closes before.
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

// fault returns the fault with which the directive refuses a submission. ok is false if the
// submission creates a job.
func (d Directive) fault() (f Fault, ok bool) {
	f, ok = map[string]Fault{FailReject: Invalid, FailModeration: Inappropriate, FailInternal: Internal}[d.Fail]
	return f, ok && d.At == AtSubmit
}

// Accept stores the job and returns the answer that made builds for it. It returns refuse's
// answer instead if the external id is in use, the account has too many jobs, or the directive
// asks for a failure at submit. The directive is the prompt's, or else the oldest one that was
// arranged for the vendor.
func (v *Service) Accept(a Account, j *Job, refuse Refuse, made func(*Job) Reply) Reply {
	s := v.server
	d, own, err := findDirective(j.Prompt)
	if err != nil {
		return refuse(CallSubmit, Invalid, NewViolation("prompt", "%s", err))
	}
	j.Provider, j.Account, j.Created = v.vendor, a.ID(), s.now().UTC()
	var (
		older   *Job // has the same external id
		fault   Fault
		refused bool
	)
	err = s.store.update(func(t tx) (err error) {
		if older = t.external(j.Provider, j.Account, j.ExternalID); older != nil {
			fault, refused = InUse, true
			older.Calls.add(CallSubmit)
			return t.change(older)
		}
		if a.Concurrency > 0 {
			if n, err := t.active(j); err != nil || n >= a.Concurrency {
				fault, refused = TooManyJobs, true
				return err
			}
		}
		if !own {
			if d, _, err = t.claim(v.vendor); err != nil {
				return err
			}
		}
		j.Directive = d
		if fault, refused = d.fault(); refused {
			return nil
		}
		return t.add(j, s.store.keep)
	})
	rep := s.answer(d, fault, refused, err, refuse)
	switch {
	case older != nil:
		rep.Job = older.ID
	case err == nil && !refused:
		if !rep.Lost {
			rep = made(j)
		}
		rep.after, rep.Job, rep.Made = d.Answer, j.ID, true
	}
	return rep
}

// answer returns the refusal of a submission. For an accepted submission it returns a reply that
// sets only Kind, and Lost if the directive asks for no answer.
func (s *Server) answer(d Directive, fault Fault, refused bool, err error, refuse Refuse) Reply {
	switch {
	case err != nil:
		s.log.Error("sandbox job is not stored", "error", err)
		return refuse(CallSubmit, Internal, nil)
	case refused && fault == Invalid:
		return refuse(CallSubmit, Invalid, NewViolation("prompt", "is not acceptable"))
	case refused:
		return refuse(CallSubmit, fault, nil)
	default:
		return Reply{Kind: CallSubmit, Lost: d.Fails(AtSubmit)}
	}
}

// Resume starts a job that waits for its customer. prompt is the customer's input, and billed
// the number of jobs that the vendor charges. Resume answers as Accept does. The directive is
// the prompt's, or else the oldest one that was arranged for the vendor, or else the job's own.
func (v *Service) Resume(id, prompt string, billed int, refuse Refuse, made func(*Job) Reply) Reply {
	s := v.server
	d, given, err := findDirective(prompt)
	if err != nil {
		return refuse(CallSubmit, Invalid, NewViolation("prompt", "%s", err))
	}
	var (
		resumed *Job
		fault   Fault
		refused bool
	)
	err = s.store.update(func(t tx) (err error) {
		if resumed = t.job(id); resumed == nil || !resumed.Waits {
			fault, refused = WrongState, true
			return nil
		}
		if !given {
			if d, given, err = t.claim(v.vendor); err != nil {
				return err
			}
		}
		if fault, refused = d.fault(); refused {
			return nil
		}
		if given {
			resumed.Directive = d
		}
		now := s.now().UTC()
		resumed.Waits, resumed.Begun, resumed.Prompt, resumed.Billed = false, &now, prompt, billed
		return t.change(resumed)
	})
	rep := s.answer(d, fault, refused, err, refuse)
	if err == nil && !refused {
		if !rep.Lost {
			rep = made(resumed)
		}
		rep.Job = id
	}
	return rep
}

// writeJSON writes a vendor's answer as JSON. It replaces links by null if their jobs'
// directives say media=none.
func (s *Server) writeJSON(w http.ResponseWriter, status int, body any) {
	raw, err := json.Marshal(body)
	if err != nil {
		http.Error(w, "sandbox: answer is not encodable", http.StatusInternalServerError)
		return
	}
	raw = s.removeLinks(raw)
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write(raw) // fails only if the caller has left
}

// Base returns the address by which the caller reaches the sandbox.
func Base(r *http.Request) string {
	if r.TLS != nil {
		return "https://" + r.Host
	}
	return "http://" + r.Host
}
