package api

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/mediagate/mediagate"
)

// filePath is the path of uploads below public_url.
const filePath = "/" + mediagate.FileFolder + ":name"

// The bounds on how long a client may take to read a file.
const (
	fileStall = 20 * time.Second // for a piece
	fileTime  = 10 * time.Minute // for all of it
)

var errNoFile = &mediagate.Error{Kind: mediagate.KindNotFound, Message: "no such file, or its 72 hours are over"}

// handleFile serves an upload, whole or in part, as long as its link works.
func (s *Server) handleFile(c *call) error {
	now := s.now()
	file, ok := mediagate.ParseFile(c.Param("name"))
	if !ok || file.Expired(now) {
		return errNoFile
	}
	size, err := s.cfg.Files.Size(c.ctx, file.Key())
	if mediagate.Is(err, mediagate.KindGone) {
		return errNoFile
	}
	if err != nil {
		return err
	}
	header := c.Response().Header()
	header.Set("Content-Type", file.MimeType())
	header.Set("Content-Disposition", `inline; filename="`+file.Name()+`"`)
	header.Set("Cross-Origin-Resource-Policy", "cross-origin")
	header.Set("Referrer-Policy", "no-referrer")
	header.Set("Cache-Control", "private, max-age="+strconv.FormatInt(int64(file.ExpiresAt().Sub(now)/time.Second), 10))
	header.Set("Etag", `"`+file.Name()+`"`) // the content of a name never changes
	return s.serveObject(c, file.Key(), size, file.CreatedAt)
}

// serveObject serves an object of the bucket, whole or in part. The caller sets the headers that
// describe it. A zero modified sends no Last-Modified.
func (s *Server) serveObject(c *call, key string, size int64, modified time.Time) error {
	ctx, cancel := c.detachedContext(fileTime)
	defer cancel()
	content := &stored{ctx: ctx, files: s.cfg.Files, key: key, size: size}
	defer content.close()
	header := c.Response().Header()
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Content-Security-Policy", "default-src 'none'; sandbox")
	request := c.Request()
	if r := strings.Join(request.Header.Values("Range"), ","); !strings.HasPrefix(r, "bytes=") ||
		strings.Contains(r, ",") {
		request = request.Clone(request.Context())
		request.Header.Del("Range") // each of several ranges would need its own call to the bucket
	}
	out := c.paced(fileTime)
	out.size = size
	http.ServeContent(out, request, "", modified, content)
	if content.failed != nil {
		return fmt.Errorf("%w: %w", errCut, content.failed)
	}
	return nil
}

// pacedWriter bounds how long the client may take to read each piece, and all of the answer, in
// place of the usual deadline of an answer.
type pacedWriter struct {
	http.ResponseWriter
	call *call
	end  time.Time
	size int64
	mute bool
}

// paced returns a writer for the call's answer, which may take this long in all.
func (c *call) paced(most time.Duration) *pacedWriter {
	return &pacedWriter{ResponseWriter: c.Response(), call: c, end: time.Now().Add(most)}
}

// WriteHeader drops the text that net/http adds to 416 Range Not Satisfiable: it is in none of
// our envelopes.
func (w *pacedWriter) WriteHeader(status int) {
	if w.mute = status == http.StatusRequestedRangeNotSatisfiable; w.mute {
		header := w.Header()
		header.Del("Content-Type")
		header.Del("Content-Disposition")
		header.Set("Content-Length", "0")
		header.Set("Content-Range", "bytes */"+strconv.FormatInt(w.size, 10))
	}
	w.ResponseWriter.WriteHeader(status)
}

// Unwrap lets http.ResponseController reach the wrapped writer.
func (w *pacedWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *pacedWriter) Write(p []byte) (int, error) {
	if w.mute {
		return len(p), nil
	}
	by := time.Now().Add(fileStall)
	if by.After(w.end) {
		by = w.end
	}
	w.call.writeBy(by)
	return w.ResponseWriter.Write(p)
}

// stored reads an object for http.ServeContent, which seeks to the beginning of a range. It opens
// the object when the first byte is read.
type stored struct {
	ctx    context.Context
	files  Files
	key    string
	size   int64
	at     int64
	body   io.ReadCloser // nil until the first read
	failed error         // the bucket's error
}

func (f *stored) Seek(offset int64, whence int) (int64, error) {
	switch whence {
	case io.SeekCurrent:
		offset += f.at
	case io.SeekEnd:
		offset += f.size
	}
	if offset < 0 {
		return 0, errors.New("seek before the beginning of the file")
	}
	if offset != f.at {
		f.close()
		f.at = offset
	}
	return f.at, nil
}

func (f *stored) Read(p []byte) (int, error) {
	if f.at >= f.size {
		return 0, io.EOF
	}
	if f.body == nil {
		if f.body, f.failed = f.files.OpenAt(f.ctx, f.key, f.at); f.failed != nil {
			return 0, f.failed
		}
	}
	n, err := f.body.Read(p)
	f.at += int64(n)
	if err != nil && (!errors.Is(err, io.EOF) || f.at < f.size) {
		f.failed = err
	}
	return n, err
}

func (f *stored) close() {
	if f.body != nil {
		_ = f.body.Close()
		f.body = nil
	}
}
