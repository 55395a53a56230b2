package vendorhttp

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/url"
	"sync"
)

// Body is the body of a request. The zero value is no body.
type Body struct {
	kind   string // Content-Type
	bytes  []byte
	stream io.Reader // read instead of bytes; nil: bytes is the body
	length int64     // of the stream; -1 if unknown
	err    error     // why the body cannot be written
}

func (b Body) empty() bool { return b.kind == "" }

// JSON returns a JSON body, as Encode writes it. If the document cannot be written, no call is
// made: a submission then fails with KindInvalid, any other call with KindInternal.
func JSON(document any) Body {
	text, err := Encode(document)
	return Body{kind: "application/json", bytes: text, err: err}
}

// Form returns a body of form fields.
func Form(fields url.Values) Body {
	return Body{kind: "application/x-www-form-urlencoded", bytes: []byte(fields.Encode())}
}

// Streamed returns a body that is read while it is sent, such as a document with files in it.
// length is -1 if it is unknown. The body serves one call. The caller closes the reader after the
// call.
//
// If the reader fails before its end, the request stays incomplete, and no vendor can act on it.
// The call then returns the reader's error if that is of KindInvalid. Otherwise a submission fails
// with KindUnreached.
func Streamed(contentType string, r io.Reader, length int64) Body {
	return Body{kind: contentType, stream: r, length: length}
}

// attach sets the body of a request. If the body is streamed, attach returns the reader that it gives
// to the transport, and otherwise nil. once says that the transport must not send the request again.
func (b Body) attach(req *http.Request, once bool) *outgoing {
	if b.empty() {
		return nil
	}
	req.Header.Set("Content-Type", b.kind)
	if b.stream != nil {
		out := &outgoing{r: b.stream, left: b.length}
		req.Body, req.ContentLength = out, b.length
		return out
	}
	open := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(b.bytes)), nil }
	req.Body, _ = open()
	req.ContentLength = int64(len(b.bytes))
	if !once {
		req.GetBody = open // lets the transport send the request again
	}
	return nil
}

// outgoing gives a streamed body to the transport, and records whether the transport has read all
// of it. After end, outgoing gives out nothing more, so an incomplete request stays incomplete.
type outgoing struct {
	r io.Reader

	mu     sync.Mutex
	left   int64 // bytes still to come; negative if unknown
	whole  bool
	failed error // the reader's error
	shut   bool
}

// Read does not hold the lock while it waits for the reader.
func (o *outgoing) Read(p []byte) (int, error) {
	if o.isShut() {
		return 0, errShut
	}
	n, err := o.r.Read(p)
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.shut {
		return 0, errShut
	}
	if o.left >= 0 {
		o.left = max(0, o.left-int64(n))
	}
	switch {
	case errors.Is(err, io.EOF) && o.left > 0:
		o.failed = io.ErrUnexpectedEOF // the stated length was wrong
	case err == nil && o.left == 0, errors.Is(err, io.EOF):
		o.whole = true
	case err != nil:
		o.failed = err
	}
	return n, err
}

func (o *outgoing) isShut() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.shut
}

// Close does nothing: the maker of the reader closes it.
func (o *outgoing) Close() error { return nil }

// end stops the body: Read fails from now on. It reports whether the transport has read all of it,
// and returns the reader's own error.
func (o *outgoing) end() (whole bool, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.shut = true
	return o.whole, o.failed
}
