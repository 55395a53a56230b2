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

// filePath is where uploads are served, below public_url.
const filePath = "/" + mediagate.FileFolder + ":name"

// How long a client may take to read a file.
const (
	fileStall = 20 * time.Second // a piece of it
	fileTime  = 10 * time.Minute // all of it
)

var errNoFile = &mediagate.Error{Kind: mediagate.KindNotFound, Message: "no such file, or its 72 hours are over"}

// handleFile serves an upload, whole or in part, for as long as its link works.
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
	header.Set("Etag", `"`+file.Name()+`"`) // a name is never given to another content
	return s.serveObject(c, file.Key(), size, file.CreatedAt)
}

// serveObject passes an object of the bucket through, whole or in part. The caller has set
// the headers that say what the object is; modified is the zero time for none.
func (s *Server) serveObject(c *call, key string, size int64, modified time.Time) error {
	ctx, cancel := c.lasting(fileTime)
	defer cancel()
	content := &stored{ctx: ctx, files: s.cfg.Files, key: key, size: size}
	defer content.close()
	header := c.Response().Header()
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Content-Security-Policy", "default-src 'none'; sandbox")
	request := c.Request()
	if r := strings.Join(request.Header.Values("Range"), ","); !strings.HasPrefix(r, "bytes=") || strings.Contains(r, ",") {
		request = request.Clone(request.Context())
		request.Header.Del("Range") // each of several pieces would be a call of its own
	}
	out := c.paced(fileTime)
	out.size = size
	http.ServeContent(out, request, "", modified, content)
	if content.failed != nil {
		return fmt.Errorf("%w: %w", errCut, content.failed)
	}
	return nil
}

// pacedWriter bounds how long the client may take to read each piece, and all of
// them, in place of the bound of the whole answer.
type pacedWriter struct {
	http.ResponseWriter
	call *call
	end  time.Time
	size int64
	mute bool
}

// paced is the call's answer, which may take so long in all.
func (c *call) paced(most time.Duration) *pacedWriter {
	return &pacedWriter{ResponseWriter: c.Response(), call: c, end: time.Now().Add(most)}
}

// WriteHeader leaves the words for people out where a range is none of the file:
// they are in no form of ours.
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

// Unwrap lets http.ResponseController reach what it wraps.
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

// stored reads an object as http.ServeContent reads files: it seeks to where a
// range begins. The bucket is asked when the first byte is.
type stored struct {
	ctx    context.Context
	files  Files
	key    string
	size   int64
	at     int64
	body   io.ReadCloser // nil until it is asked for
	failed error         // of the bucket
}

func (f *stored) Seek(offset int64, whence int) (int64, error) {
	switch whence {
	case io.SeekCurrent:
		offset += f.at
	case io.SeekEnd:
		offset += f.size
	}
	if offset < 0 {
		return 0, errors.New("before the beginning of the file")
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
