package sandbox

import (
	"encoding/json"
	"errors"
	"net/http"
	"time"
)

// vendorEntry is one line of the table of vendors.
type vendorEntry struct {
	name  string
	mount func(*Server) http.Handler // paths begin after the vendor's name
}

// vendors lists whom the sandbox can play. A new one is a file and a line.
func vendors() []vendorEntry {
	return []vendorEntry{
		{name: "dashscope", mount: mountDashScope},
		{name: "kling", mount: mountKling},
	}
}

// reply is what a vendor answers to one call.
type reply struct {
	kind     string // of the call
	status   int
	body     any
	job      string
	external string
	made     bool // the call made the job
	lost     bool // no answer is given
}

// serve runs one vendor's handler: the call is in the journal before the
// first byte of its answer leaves.
func (s *Server) serve(provider string, handle func(*http.Request) reply) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		rep := handle(r)
		if rep.lost {
			rep.status = 0
		}
		err := s.store.note(call{
			At: s.now().UTC(), Provider: provider, Kind: rep.kind, Method: r.Method, Path: "/" + provider + r.URL.Path,
			Status: rep.status, Job: rep.job, ExternalID: rep.external, Made: rep.made,
		})
		if err != nil {
			s.log.ErrorContext(r.Context(), "sandbox call is not stored", "error", err)
			http.Error(w, "sandbox: journal is not writable", http.StatusInternalServerError)
			return
		}
		if rep.lost {
			s.stall(r)
			// The way net/http offers to cut a connection without an answer.
			panic(http.ErrAbortHandler)
		}
		writeJSON(w, rep.status, rep.body)
	}
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

// verdict is what becomes of a submission that broke no rule of its vendor.
type verdict int

const (
	accepted   verdict = iota
	answerLost         // the job is made, the caller will not know
	rejected           // no job: invalid parameter
	moderated          // no job: content refused
	broken             // no job: internal error
	duplicate          // no job: the external id is in use
	busy               // no job: the account's slots are taken
)

// accept stores a job unless its directive or its account speaks against it.
// The directive is the prompt's, else the one arranged for the vendor's next
// job. For duplicates the older job is returned.
func (s *Server) accept(a Account, j *job) (*job, verdict) {
	d, own, err := findDirective(j.Prompt)
	if err != nil {
		return nil, rejected
	}
	var next arranged
	if !own {
		if next, own = s.store.claim(j.Provider); own {
			d = next.Directive
		}
	}
	j.Directive, j.Account, j.Created = d, a.id(), s.now().UTC()
	if d.fails(atSubmit) && d.Fail != failTimeout {
		return nil, s.refuse(d, next)
	}
	old, err := s.store.add(j, next.ID, a.Concurrency)
	if err != nil && next.ID != "" {
		s.store.restore(next)
	}
	switch {
	case errors.Is(err, errDuplicate):
		s.store.count(old.ID, callSubmit)
		return old, duplicate
	case errors.Is(err, errBusy):
		return nil, busy
	case err != nil:
		s.log.Error("sandbox job is not stored", "error", err)
		return nil, broken
	case d.fails(atSubmit):
		return j, answerLost
	default:
		return j, accepted
	}
}

// refuse answers for a directive that lets no job be made.
func (s *Server) refuse(d directive, next arranged) verdict {
	if next.ID != "" {
		if err := s.store.spend(next.ID); err != nil {
			s.log.Error("sandbox directive is not stored", "error", err)
			return broken
		}
	}
	switch d.Fail {
	case failReject:
		return rejected
	case failModeration:
		return moderated
	default:
		return broken
	}
}

func writeJSON(w http.ResponseWriter, status int, body any) {
	raw, err := json.Marshal(body)
	if err != nil {
		http.Error(w, "sandbox: answer is not encodable", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write(raw) // a caller that has gone needs no answer
}

// base is the address under which the caller reaches us.
func base(r *http.Request) string {
	if r.TLS != nil {
		return "https://" + r.Host
	}
	return "http://" + r.Host
}
