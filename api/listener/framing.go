package listener

import (
	"bufio"
	"bytes"
	"net/http"
	"net/textproto"
)

// Framing says how sure it is where a request ends. Two servers on the way of a
// request that see its end at different places take a part of it for another
// request (RFC 9112, 6.1 and 11.2).
type Framing uint8

// How sure it is.
const (
	Sure     Framing = iota
	Doubtful         // the connection ends after the answer
	Twofold          // refused, and the connection ends
)

// FramingOf judges a request by its header as it came: net/http takes
// Content-Length out beside Transfer-Encoding, and Transfer-Encoding out of
// HTTP/1.0. Where the header came together with the request before it, it is not
// known, and the connection ends after the answer.
func FramingOf(r *http.Request, head []byte) Framing {
	if len(r.TransferEncoding) == 0 && r.ProtoAtLeast(1, 1) {
		return Sure
	}
	lines := textproto.NewReader(bufio.NewReader(bytes.NewReader(head)))
	first, err := lines.ReadLine()
	if err != nil || first != r.Method+" "+r.RequestURI+" "+r.Proto {
		return Doubtful
	}
	header, err := lines.ReadMIMEHeader()
	_, long := header["Content-Length"]
	_, coded := header["Transfer-Encoding"]
	switch {
	case long && coded:
		return Twofold
	case err != nil, coded && !r.ProtoAtLeast(1, 1):
		return Doubtful
	default:
		return Sure
	}
}

// MaxHeaderBytes is what net/http reads of a header, give or take a few KiB.
const MaxHeaderBytes = 64 << 10

// maxHead is more than net/http reads of a header.
const maxHead = MaxHeaderBytes + 8<<10

// Read keeps the header of the next request as it comes.
func (c *Connection) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.headMu.Lock()
	defer c.headMu.Unlock()
	if !c.busy && len(c.head) < maxHead {
		c.head = append(c.head, p[:n]...)
	}
	return n, err
}

// TakeHead returns what came of the request whose call begins.
func (c *Connection) TakeHead() (head []byte) {
	c.headMu.Lock()
	defer c.headMu.Unlock()
	head, c.head, c.busy, c.calling = c.head, nil, true, true
	return head
}

// EndCall says that what comes from now on is the next request.
func (c *Connection) EndCall() {
	c.headMu.Lock()
	defer c.headMu.Unlock()
	c.busy = false
}

// answered says that what is written from now on is no part of a call's answer.
func (c *Connection) answered() {
	c.headMu.Lock()
	defer c.headMu.Unlock()
	c.calling = false
}

// inEnvelope is the piece of an answer as it goes out: net/http's own answers to
// what never becomes a call are put into our envelope.
func (c *Connection) inEnvelope(piece []byte) []byte {
	c.headMu.Lock()
	head, calling := c.head, c.calling
	c.headMu.Unlock()
	if calling || c.all.reword == nil {
		return piece
	}
	return c.all.reword(head, piece)
}
