package vendorhttp

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/url"
	"sync"
)

// Body is what a request carries. The zero value is none.
type Body struct {
	kind   string // Content-Type
	bytes  []byte
	stream io.Reader // in the place of bytes
	length int64     // of the stream; -1: unknown
	err    error     // why it cannot be written
}

func (b Body) empty() bool { return b.kind == "" }

// JSON is a body of JSON, as Encode writes it. A call whose body cannot be written
// is not made: that is KindInvalid of a submission, else KindInternal.
func JSON(document any) Body {
	text, err := Encode(document)
	return Body{kind: "application/json", bytes: text, err: err}
}

// Form is a body of form fields.
func Form(fields url.Values) Body {
	return Body{kind: "application/x-www-form-urlencoded", bytes: []byte(fields.Encode())}
}

// Streamed is a body that is read while it is sent, such as a document with
// files in it. length is -1 where it is unknown. A call with it can be made
// once; whoever made the reader closes it after the call.
//
// Where the reader fails before its end, the request stays incomplete, and no
// vendor can have acted on it: an error of the reader's own is the call's if
// it is of KindInvalid, otherwise a submission is KindUnreached.
func Streamed(contentType string, r io.Reader, length int64) Body {
	return Body{kind: contentType, stream: r, length: length}
}

// attach puts the body on a request. The outgoing is nil for bytes in memory.
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
		req.GetBody = open // without it no transport can send the request again
	}
	return nil
}

// outgoing hands a streamed body to the transport, and knows whether the
// transport has got all of it. Once shut it hands out nothing more, so that a
// request found incomplete stays so.
type outgoing struct {
	r io.Reader

	mu     sync.Mutex
	left   int64 // negative: unknown
	whole  bool
	failed error // of the reader
	shut   bool
}

// Read never holds the lock while it waits for the reader.
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
		o.failed = io.ErrUnexpectedEOF // the length was wrong
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

// Close leaves the reader to whoever made it.
func (o *outgoing) Close() error { return nil }

// end hands out nothing more. It reports whether the transport got all, and
// the reader's own error.
func (o *outgoing) end() (whole bool, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.shut = true
	return o.whole, o.failed
}
