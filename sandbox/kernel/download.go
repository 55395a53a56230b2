package kernel

import (
	"io"
	"net/http"
	"strconv"
	"time"
)

// handleDownload serves a finished job's file.
func (s *Server) handleDownload(w http.ResponseWriter, r *http.Request) {
	s.sendFile(w, r, s.store.find(r.PathValue("job")), r.PathValue("file"), r.URL.Path)
}

// sendFile answers with a file of the job's, if it is there. The call is in the
// journal under path.
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
	if j == nil || !j.shows(name, s.now()) {
		http.Error(out, "no such file", http.StatusNotFound)
		return
	}
	if end, err := strconv.ParseInt(r.FormValue("expires"), 10, 64); err == nil && s.now().Unix() >= end {
		http.Error(out, "the link has expired", http.StatusForbidden)
		return
	}
	if misplaced(out, r, j, name, path) {
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
	if !j.Directive.Spoils(AtDownload, nth) || !j.Directive.Concerns(path) {
		http.ServeContent(out, r, "", j.Changed(s.now()), file)
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

// trickleStep is the pause between two pieces of a file that takes its time.
const trickleStep = 250 * time.Millisecond

// begin announces a whole file.
func begin(w http.ResponseWriter, size int64) {
	w.Header().Set("Content-Length", strconv.FormatInt(size, 10))
	w.WriteHeader(http.StatusOK)
}

// stream sends an answer that holds the file. Its length is not announced, as
// with vendors that make such answers. Of the failures at download the one
// that cuts a file short happens here; the others are the vendor's to answer.
func (s *Server) stream(w http.ResponseWriter, r *http.Request, rep Reply) {
	var d Directive
	if j := s.store.find(rep.Job); j != nil {
		d = j.Directive
	}
	w.Header().Set("Content-Type", rep.Stream.Type)
	w.WriteHeader(rep.Status)
	switch content, size := rep.Stream.Content, rep.Stream.Size; {
	case d.Fails(AtDownload) && d.Fail == FailTimeout && !rep.Stream.Whole:
		s.stallHalfway(w, r, content, size)
	case d.Fails(AtDownload) && d.Fail == FailInternal && rep.Stream.Breaks:
		if _, err := io.CopyN(w, content, size/2); err == nil && http.NewResponseController(w).Flush() == nil {
			panic(http.ErrAbortHandler) // as below
		}
	case d.Download > 0:
		s.trickle(w, r, content, size, d.Download)
	default:
		_, _ = io.CopyN(w, content, size) // a caller that has gone needs no answer
	}
}

// trickle sends the content in even pieces over the time.
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

// stallHalfway sends the first half of the content and then nothing more.
func (s *Server) stallHalfway(w http.ResponseWriter, r *http.Request, content io.Reader, size int64) {
	if _, err := io.CopyN(w, content, size/2); err != nil {
		return
	}
	if http.NewResponseController(w).Flush() == nil {
		s.stall(r)
	}
	// The way net/http offers to cut a connection in the middle of a body.
	panic(http.ErrAbortHandler)
}

// downloadWriter writes the call into the journal before the answer begins.
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
