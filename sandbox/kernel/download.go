package kernel

import (
	"io"
	"net/http"
	"strconv"
	"time"
)

// handleDownload serves one of a job's files.
func (s *Server) handleDownload(w http.ResponseWriter, r *http.Request) {
	s.sendFile(w, r, s.store.find(r.PathValue("job")), r.PathValue("file"), r.URL.Path)
}

// sendFile answers with a file of the job if it can be fetched. The journal records the call
// under path.
func (s *Server) sendFile(w http.ResponseWriter, r *http.Request, j *Job, name, path string) {
	out := &downloadWriter{ResponseWriter: w, note: func(status int) error {
		c := call{At: s.now().UTC(), Provider: "media", Kind: CallDownload, Method: r.Method, Path: path, Status: status}
		if j != nil {
			c.Provider, c.Job, c.ExternalID = j.Provider, j.ID, j.ExternalID
		}
		return s.store.note(c)
	}}
	nth := 0
	if j != nil {
		nth = s.store.count(j.ID, CallDownload)
	}
	if j == nil || !j.isAvailable(name, s.now()) {
		http.Error(out, "no such file", http.StatusNotFound)
		return
	}
	if end, err := strconv.ParseInt(r.FormValue("expires"), 10, 64); err == nil && s.now().Unix() >= end {
		http.Error(out, "the link has expired", http.StatusForbidden)
		return
	}
	if serveOtherMedia(out, r, j, name, path) {
		return
	}
	file, mimeType, ok := s.file(j, name)
	if !ok {
		http.Error(out, "no such file", http.StatusNotFound)
		return
	}
	out.Header().Set("Content-Type", mimeType)
	if j.Directive.Download > 0 && !j.Directive.Fails(AtDownload) {
		begin(out, file.Size())
		s.trickle(out, r, file, file.Size(), j.Directive.Download)
		return
	}
	if !j.Directive.FailsCall(AtDownload, nth) || !j.Directive.AppliesTo(path) {
		http.ServeContent(out, r, "", j.StateSince(s.now()), file)
		return
	}
	switch j.Directive.Fail {
	case FailInternal:
		http.Error(out, "storage is away", http.StatusInternalServerError)
	case FailReject:
		http.Error(out, "the link is not valid", http.StatusForbidden)
	case FailModeration:
		http.Error(out, "the file was removed", http.StatusNotFound)
	default:
		begin(out, file.Size())
		s.stallHalfway(out, r, file, file.Size())
	}
}

// file makes one of the job's files.
func (s *Server) file(j *Job, name string) (content *io.SectionReader, mimeType string, ok bool) {
	if content, mimeType, ok = j.File(name); ok {
		return content, mimeType, true
	}
	for _, v := range s.vendors {
		if v.Name == j.Provider && v.Files != nil {
			return v.Files(j, name)
		}
	}
	return nil, "", false
}

// trickleStep is the pause between two pieces of a slow download.
const trickleStep = 250 * time.Millisecond

// begin sends the header of an answer that holds a whole file.
func begin(w http.ResponseWriter, size int64) {
	w.Header().Set("Content-Length", strconv.FormatInt(size, 10))
	w.WriteHeader(http.StatusOK)
}

// stream sends an answer that contains the job's files. It does not announce the length, because
// the vendors with such answers do not. It cuts the answer in the middle if the directive asks
// for a timeout at download, or for an internal error on a stream with CutByInternal. The vendor's
// handler takes care of the other failures.
func (s *Server) stream(w http.ResponseWriter, r *http.Request, rep Reply) {
	var d Directive
	if j := s.store.find(rep.Job); j != nil {
		d = j.Directive
	}
	w.Header().Set("Content-Type", rep.Stream.Type)
	w.WriteHeader(rep.Status)
	switch content, size := rep.Stream.Content, rep.Stream.Size; {
	case d.Fails(AtDownload) && d.Fail == FailTimeout && !rep.Stream.NeverStalls:
		s.stallHalfway(w, r, content, size)
	case d.Fails(AtDownload) && d.Fail == FailInternal && rep.Stream.CutByInternal:
		if _, err := io.CopyN(w, content, size/2); err == nil && http.NewResponseController(w).Flush() == nil {
			panic(http.ErrAbortHandler) // cuts the connection
		}
	case d.Download > 0:
		s.trickle(w, r, content, size, d.Download)
	default:
		_, _ = io.CopyN(w, content, size) // fails only if the caller has left
	}
}

// trickle sends the content in even pieces over the time that it takes.
func (s *Server) trickle(w http.ResponseWriter, r *http.Request, content io.Reader, size int64, takes time.Duration) {
	steps := int64(takes/trickleStep) + 1
	for sent := int64(0); sent < size; {
		n, err := io.CopyN(w, content, min(size/steps+1, size-sent))
		if err != nil || http.NewResponseController(w).Flush() != nil {
			return
		}
		if sent += n; sent < size && !s.wait(r, trickleStep) {
			return
		}
	}
}

// stallHalfway sends the first half of the content, then stalls and cuts the connection.
func (s *Server) stallHalfway(w http.ResponseWriter, r *http.Request, content io.Reader, size int64) {
	if _, err := io.CopyN(w, content, size/2); err != nil {
		return
	}
	if http.NewResponseController(w).Flush() == nil {
		s.stall(r)
	}
	// This panic makes net/http cut the connection in the middle of the body.
	panic(http.ErrAbortHandler)
}

// downloadWriter records the call in the journal before the answer begins.
type downloadWriter struct {
	http.ResponseWriter
	note  func(status int) error
	noted bool
}

// WriteHeader implements http.ResponseWriter.
func (w *downloadWriter) WriteHeader(status int) {
	if !w.noted {
		w.noted = true
		if w.note(status) != nil {
			status = http.StatusInternalServerError
		}
	}
	w.ResponseWriter.WriteHeader(status)
}

// Unwrap lets http.ResponseController reach the connection.
func (w *downloadWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
