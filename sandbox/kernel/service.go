package kernel

import (
	"encoding/json"
	"io"
	"net/http"
	"slices"
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

// Now is the time by the sandbox's clock.
func (v *Service) Now() time.Time { return v.server.now() }

// Wait reports whether the time passed with the caller still there.
func (v *Service) Wait(r *http.Request, d time.Duration) bool { return v.server.wait(r, d) }

// Find finds a job of the account by its own or its external id. One that the
// customer removed is not found.
func (v *Service) Find(a Account, id string) *Job {
	j := v.server.store.lookup(v.vendor, a.ID(), id)
	if j == nil || j.Removed {
		return nil
	}
	return j
}

// Jobs lists the account's jobs that match and are not removed, oldest first.
func (v *Service) Jobs(a Account, match func(*Job) bool) []*Job {
	return v.server.store.list(func(j *Job) bool {
		return j.Provider == v.vendor && j.Account == a.ID() && !j.Removed && match(j)
	})
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

// Stop counts a call that cancels the job, and cancels it if it is in one of the states.
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

// fault is what the directive makes of the submission that has it; ok is false where a job
// is made.
func (d Directive) fault() (f Fault, ok bool) {
	f, ok = map[string]Fault{FailReject: Invalid, FailModeration: Inappropriate, FailInternal: Internal}[d.Fail]
	return f, ok && d.At == AtSubmit
}

// Accept makes the job unless its directive or its account speaks against it, and answers:
// of a new job as made does. The directive is the prompt's, else the one arranged for the
// vendor's next job.
func (v *Service) Accept(a Account, j *Job, refuse Refuse, made func(*Job) Reply) Reply {
	s := v.server
	d, own, err := findDirective(j.Prompt)
	if err != nil {
		return refuse(CallSubmit, Invalid, Wrong("prompt", "%s", err))
	}
	j.Provider, j.Account, j.Created = v.vendor, a.ID(), s.now().UTC()
	var (
		older   *Job // that has the external id
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
				fault, refused = Crowded, true
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

// answer answers a submission that is refused, or whose answer is lost.
func (s *Server) answer(d Directive, fault Fault, refused bool, err error, refuse Refuse) Reply {
	switch {
	case err != nil:
		s.log.Error("sandbox job is not stored", "error", err)
		return refuse(CallSubmit, Internal, nil)
	case refused && fault == Invalid:
		return refuse(CallSubmit, Invalid, Wrong("prompt", "is not acceptable"))
	case refused:
		return refuse(CallSubmit, fault, nil)
	default:
		return Reply{Kind: CallSubmit, Lost: d.Fails(AtSubmit)}
	}
}

// Resume lets a job that waits begin, with what its customer has told it, and is billed
// as so many; it answers as Accept does. The directive is that of the text, else the one
// arranged for the vendor's next job, else the job's own.
func (v *Service) Resume(id, prompt string, billed int, refuse Refuse, made func(*Job) Reply) Reply {
	s := v.server
	d, given, err := findDirective(prompt)
	if err != nil {
		return refuse(CallSubmit, Invalid, Wrong("prompt", "%s", err))
	}
	var (
		told    *Job
		fault   Fault
		refused bool
	)
	err = s.store.update(func(t tx) (err error) {
		if told = t.job(id); told == nil || !told.Waits {
			fault, refused = NotNow, true
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
			told.Directive = d
		}
		now := s.now().UTC()
		told.Waits, told.Begun, told.Prompt, told.Billed = false, &now, prompt, billed
		return t.change(told)
	})
	rep := s.answer(d, fault, refused, err, refuse)
	if err == nil && !refused {
		if !rep.Lost {
			rep = made(told)
		}
		rep.Job = id
	}
	return rep
}

// writeJSON writes a vendor's answer, less the links that directives want unnamed.
func (s *Server) writeJSON(w http.ResponseWriter, status int, body any) {
	raw, err := json.Marshal(body)
	if err != nil {
		http.Error(w, "sandbox: answer is not encodable", http.StatusInternalServerError)
		return
	}
	raw = s.named(raw)
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
