package api

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/textproto"
	"strings"

	"github.com/mediagate/mediagate"
)

// framing says how sure it is where a request ends. Two servers on the way of a
// request that see its end at different places take a part of it for another
// request (RFC 9112, 6.1 and 11.2).
type framing uint8

const (
	framingSure     framing = iota
	framingDoubtful         // the connection ends after the answer
	framingTwofold          // refused, and the connection ends
)

var errTwoLengths = &mediagate.Error{
	Kind: mediagate.KindInvalid, Message: "a request must not have both Content-Length and Transfer-Encoding",
}

// framingOf judges a request by its header as it came: net/http takes
// Content-Length out beside Transfer-Encoding, and Transfer-Encoding out of
// HTTP/1.0. Where the header came together with the request before it, it is not
// known, and the connection ends after the answer.
func framingOf(r *http.Request, head []byte) framing {
	if len(r.TransferEncoding) == 0 && r.ProtoAtLeast(1, 1) {
		return framingSure
	}
	lines := textproto.NewReader(bufio.NewReader(bytes.NewReader(head)))
	first, err := lines.ReadLine()
	if err != nil || first != r.Method+" "+r.RequestURI+" "+r.Proto {
		return framingDoubtful
	}
	header, err := lines.ReadMIMEHeader()
	_, long := header["Content-Length"]
	_, coded := header["Transfer-Encoding"]
	switch {
	case long && coded:
		return framingTwofold
	case err != nil, coded && !r.ProtoAtLeast(1, 1):
		return framingDoubtful
	default:
		return framingSure
	}
}

// maxHead is more than net/http reads of a header.
const maxHead = maxHeaderBytes + 8<<10

// Read keeps the header of the next request as it comes.
func (c *connection) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.headMu.Lock()
	defer c.headMu.Unlock()
	if !c.busy && len(c.head) < maxHead {
		c.head = append(c.head, p[:n]...)
	}
	return n, err
}

// takeHead returns what came of the request whose call begins.
func (c *connection) takeHead() (head []byte) {
	c.headMu.Lock()
	defer c.headMu.Unlock()
	head, c.head, c.busy, c.calling = c.head, nil, true, true
	return head
}

// endCall says that what comes from now on is the next request.
func (c *connection) endCall() {
	c.headMu.Lock()
	defer c.headMu.Unlock()
	c.busy = false
}

// answered says that what is written from now on is no part of a call's answer.
func (c *connection) answered() {
	c.headMu.Lock()
	defer c.headMu.Unlock()
	c.calling = false
}

// inEnvelope is the piece of an answer as it goes out: net/http's own answers to
// what never becomes a call are put into our envelope.
func (c *connection) inEnvelope(piece []byte) []byte {
	c.headMu.Lock()
	head, calling := c.head, c.calling
	c.headMu.Unlock()
	if calling || c.all.refusal == nil {
		return piece
	}
	return c.all.refusal(head, piece)
}

// refusal words an answer of net/http anew, in the envelope of the path that the
// header names.
func (s *Server) refusal(head, piece []byte) []byte {
	said, err := http.ReadResponse(bufio.NewReader(bytes.NewReader(piece)), nil)
	if err != nil || said.StatusCode < http.StatusBadRequest {
		return piece
	}
	text, err := io.ReadAll(said.Body)
	_ = said.Body.Close()
	if err != nil {
		return piece
	}
	status := http.StatusText(said.StatusCode)
	e := &mediagate.Error{Message: strings.TrimPrefix(strings.TrimPrefix(string(text), fmt.Sprintf("%d %s", said.StatusCode, status)), ": ")}
	_, path, _ := strings.Cut(string(head), " ")
	c := &call{envelope: envelopeFor(path), requestID: s.newID("req_")}
	r := rendering{status: said.StatusCode, word: wordInvalid, wordB: "invalid_request", codeB: "invalid_request"}
	body, err := json.Marshal(envelopeOf(c, r, e, messageOf(e, r)))
	if err != nil {
		return piece
	}
	s.log.LogAttrs(context.Background(), slog.LevelInfo, "request refused",
		slog.Int("status", said.StatusCode), slog.String("request", c.requestID))
	return fmt.Appendf(nil, "HTTP/1.1 %d %s\r\nConnection: close\r\nContent-Type: application/json\r\nContent-Length: %d\r\nX-Request-Id: %s\r\n\r\n%s\n",
		said.StatusCode, status, len(body)+1, c.requestID, body)
}
