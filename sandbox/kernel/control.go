package kernel

import (
	"encoding/json"
	"io"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// mountControl adds the control endpoints, which tests and operators use.
func (s *Server) mountControl(mux *http.ServeMux) {
	mux.HandleFunc("GET /_sandbox/jobs", s.handleJobs)
	mux.HandleFunc("DELETE /_sandbox/jobs", s.handleForget)
	mux.HandleFunc("GET /_sandbox/calls", s.handleCalls)
	mux.HandleFunc("POST /_sandbox/next", s.handleNext)
	mux.HandleFunc("POST /_sandbox/outage", s.handleOutage)
}

// jobView is a job as the control endpoint shows it.
type jobView struct {
	ID         string   `json:"id"`
	Provider   string   `json:"provider"`
	Model      string   `json:"model"`
	ExternalID string   `json:"external_id"`
	Prompt     string   `json:"prompt"`
	State      State    `json:"state"`
	Created    int64    `json:"created"`
	Billed     int      `json:"billed,omitempty"` // number of jobs charged; 0: one
	Calls      counters `json:"calls"`
}

// handleJobs lists the jobs, oldest first.
func (s *Server) handleJobs(w http.ResponseWriter, r *http.Request) {
	provider, reference := r.FormValue("provider"), r.FormValue("reference")
	jobs := []jobView{}
	now := s.now()
	for _, j := range s.store.list(func(j *Job) bool {
		return (provider == "" || j.Provider == provider) && (reference == "" || j.refers(reference))
	}) {
		jobs = append(jobs, jobView{
			ID: j.ID, Provider: j.Provider, Model: j.Model, ExternalID: j.ExternalID, Prompt: j.Prompt,
			State: j.State(now), Created: j.Created.Unix(), Billed: j.Billed, Calls: j.Calls,
		})
	}
	s.writeJSON(w, http.StatusOK, map[string]any{"jobs": jobs})
}

// refers reports whether the reference names the job. It may be the job's id, its external id,
// the directive's ref, or a part of the prompt. The external id may have a suffix that begins
// with neither a letter nor a digit.
func (j *Job) refers(reference string) bool {
	if j.ID == reference || j.Directive.Ref == reference || strings.Contains(j.Prompt, reference) {
		return true
	}
	suffix, ok := strings.CutPrefix(j.ExternalID, reference)
	next, _ := utf8.DecodeRuneInString(suffix)
	return ok && (suffix == "" || !unicode.IsLetter(next) && !unicode.IsDigit(next))
}

// handleForget deletes jobs, calls, arranged directives and outages.
func (s *Server) handleForget(w http.ResponseWriter, r *http.Request) {
	s.answerStored(w, r, s.store.forget())
}

// handleCalls lists the calls, oldest first. The parameters provider and job filter the list.
func (s *Server) handleCalls(w http.ResponseWriter, r *http.Request) {
	provider, id := r.FormValue("provider"), r.FormValue("job")
	calls := []call{}
	err := s.store.view(func(t tx) error {
		return each(t, bucketCalls, func(_ []byte, c call) error {
			if (provider == "" || c.Provider == provider) && (id == "" || c.Job == id) {
				calls = append(calls, c)
			}
			return nil
		})
	})
	if err != nil {
		s.log.ErrorContext(r.Context(), "sandbox calls are not readable", "error", err)
		http.Error(w, "sandbox: journal is not readable", http.StatusInternalServerError)
		return
	}
	s.writeJSON(w, http.StatusOK, map[string]any{"calls": calls})
}

// handleNext stores the directive for a vendor's next job.
func (s *Server) handleNext(w http.ResponseWriter, r *http.Request) {
	var in struct {
		Provider  string `json:"provider"`
		Directive string `json:"directive"`
	}
	if !s.decodeControl(w, r, &in, &in.Provider, "the body is {provider, directive}") {
		return
	}
	d, wrapped, err := findDirective(in.Directive)
	if !wrapped {
		d, err = parseDirective(in.Directive)
	}
	if err != nil {
		s.controlError(w, err.Error())
		return
	}
	next := nextDirective{Provider: in.Provider, Directive: d}
	s.answerStored(w, r, s.store.update(func(t tx) error { return t.push(bucketNext, next) }))
}

// decodeControl decodes a control request about one vendor. If the request is invalid, it answers
// with an error and returns false.
func (s *Server) decodeControl(w http.ResponseWriter, r *http.Request, order any, provider *string, shape string) bool {
	// A web page may send forms, plain text and bodies without a type to any host without a
	// preflight. So only JSON is accepted, which needs one.
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		s.writeJSON(w, http.StatusUnsupportedMediaType, map[string]string{"error": "Content-Type must be application/json"})
		return false
	}
	dec := json.NewDecoder(io.LimitReader(r.Body, 64<<10))
	dec.DisallowUnknownFields()
	if err := dec.Decode(order); err != nil {
		s.controlError(w, shape)
		return false
	}
	if !slices.ContainsFunc(s.vendors, func(v Vendor) bool { return v.Name == *provider }) {
		s.controlError(w, "provider: unknown "+strconv.Quote(*provider))
		return false
	}
	return true
}

// answerStored answers a control request: with 204, or with 500 if err shows that the journal has not
// stored it.
func (s *Server) answerStored(w http.ResponseWriter, r *http.Request, err error) {
	if err != nil {
		s.log.ErrorContext(r.Context(), "sandbox order is not stored", "error", err)
		http.Error(w, "sandbox: journal is not writable", http.StatusInternalServerError)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

func (s *Server) controlError(w http.ResponseWriter, message string) {
	s.writeJSON(w, http.StatusBadRequest, map[string]string{"error": message})
}
