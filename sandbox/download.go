package sandbox

import (
	"io"
	"net/http"
	"time"

	"github.com/mediagate/mediagate/sandbox/sample"
)

// handleDownload serves a finished job's file.
func (s *Server) handleDownload(w http.ResponseWriter, r *http.Request) {
	j := s.store.find(r.PathValue("job"))
	out := &downloadWriter{ResponseWriter: w, note: func(status int) error {
		c := call{At: s.now().UTC(), Provider: "media", Kind: callDownload, Method: r.Method, Path: r.URL.Path, Status: status}
		if j != nil {
			c.Provider, c.Job, c.ExternalID = j.Provider, j.ID, j.ExternalID
		}
		return s.store.note(c)
	}}
	nth := 0
	if j != nil {
		nth = s.store.count(j.ID, callDownload)
	}
	if j == nil || j.state(s.now()) != stateSucceeded {
		http.Error(out, "no such file", http.StatusNotFound)
		return
	}
	content, mimeType, ok := j.file(r.PathValue("file"))
	if !ok {
		http.Error(out, "no such file", http.StatusNotFound)
		return
	}
	out.Header().Set("Content-Type", mimeType)
	file := sample.Padded(content, j.Directive.ResultBytes)
	if j.Directive.Download > 0 && !j.Directive.fails(atDownload) {
		s.trickle(out, r, file, j.Directive.Download)
		return
	}
	if !j.Directive.spoils(atDownload, nth) {
		http.ServeContent(out, r, "", j.changed(s.now()), file)
		return
	}
	switch j.Directive.Fail {
	case failInternal:
		http.Error(out, "storage is away", http.StatusInternalServerError)
	case failReject:
		http.Error(out, "the link is not valid", http.StatusForbidden)
	case failModeration:
		http.Error(out, "the file was removed", http.StatusNotFound)
	default:
		s.stallHalfway(out, r, file)
	}
}

// trickleStep is the pause between two pieces of a file that takes its time.
const trickleStep = 250 * time.Millisecond

// trickle sends the file in even pieces over the time.
func (s *Server) trickle(w http.ResponseWriter, r *http.Request, file *io.SectionReader, takes time.Duration) {
	w.Header().Set("Content-Length", formatInt(file.Size()))
	w.WriteHeader(http.StatusOK)
	steps := int64(takes/trickleStep) + 1
	for sent := int64(0); sent < file.Size(); {
		n, err := io.CopyN(w, file, min(file.Size()/steps+1, file.Size()-sent))
		if err != nil || http.NewResponseController(w).Flush() != nil {
			return
		}
		if sent += n; sent < file.Size() && !s.wait(r, trickleStep) {
			return
		}
	}
}

// stallHalfway sends the first half of the file and then nothing more.
func (s *Server) stallHalfway(w http.ResponseWriter, r *http.Request, file *io.SectionReader) {
	w.Header().Set("Content-Length", formatInt(file.Size()))
	w.WriteHeader(http.StatusOK)
	if _, err := io.CopyN(w, file, file.Size()/2); err != nil {
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
