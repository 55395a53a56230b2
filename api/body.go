package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/mediagate/mediagate"
)

const (
	bodyLimit = 1 << 20 // of submits that take no media inline
	maxDepth  = 64      // of a body; the body itself is depth 1
)

// readBody reads a JSON object within the route's limit: the bytes themselves,
// and the object with numbers kept as text.
func (s *Server) readBody(c *call) (raw []byte, object map[string]any, err error) {
	c.uncounted(func() { raw, err = s.readLimited(c, c.limit) })
	if err != nil {
		return nil, nil, err
	}
	object, err = parseObject(raw)
	return raw, object, err
}

func errTooLarge(limit int64) error {
	return mediagate.Errorf(mediagate.KindTooLarge, "the body must be at most %d bytes", limit)
}

// firstBuffer is what a body is given at once, whatever length it announces:
// a client that sends nothing must not take much.
const firstBuffer = 32 << 10

func (s *Server) readLimited(c *call, limit int64) ([]byte, error) {
	r := c.Request()
	if r.ContentLength > limit {
		return nil, errTooLarge(limit)
	}
	c.begun = true
	buf := bytes.NewBuffer(make([]byte, 0, min(max(r.ContentLength, 0)+bytes.MinRead, firstBuffer)))
	n, err := buf.ReadFrom(io.LimitReader(s.pieces(c), limit+1))
	switch {
	case n > limit:
		return nil, errTooLarge(limit)
	case err != nil:
		c.giveUpBody()
		return nil, brokenBody(err)
	default:
		c.read = true
		return buf.Bytes(), nil
	}
}

// pieces reads the body of a request and bounds how long each piece may take
// to arrive, and all of them.
type pieces struct {
	body  io.Reader
	by    func(time.Time)
	stall time.Duration
	end   time.Time
}

func (s *Server) pieces(c *call) pieces {
	return pieces{c.Request().Body, c.readBy, s.cfg.BodyStall, time.Now().Add(s.cfg.BodyTimeout)}
}

func (p pieces) Read(b []byte) (int, error) {
	by := time.Now().Add(p.stall)
	if by.After(p.end) {
		by = p.end
	}
	p.by(by)
	return p.body.Read(b)
}

// readBy sets the connection's deadline for reading. net/http takes it back
// when the body is complete. Where there is no connection, as in a test, there
// is no deadline either.
func (c *call) readBy(t time.Time) {
	_ = http.NewResponseController(c.Response().Writer).SetReadDeadline(t)
}

// brokenBody tells apart why a body could not be read to its end. Only a
// connection that is broken has nobody at its other end; who closed the
// sending side, or stopped to send, may still read.
func brokenBody(err error) error {
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return &mediagate.Error{Kind: mediagate.KindStalled, Message: "the body did not arrive in time", Err: err}
	}
	if _, broken := errors.AsType[*net.OpError](err); broken {
		return fmt.Errorf("%w: %w", errCut, err)
	}
	message := "the body ended before it was complete"
	if !errors.Is(err, io.ErrUnexpectedEOF) {
		message += ", or its chunks are malformed"
	}
	return &mediagate.Error{Kind: mediagate.KindInvalid, Message: message, Err: err}
}

// How much of an unwanted body is still read, and for how long.
const (
	restLimit = 32 << 20
	restTime  = 3 * time.Second
)

// skipBody comes before every answer. It lets a client that is still sending
// finish, within reason: closing the connection while its data is unread would
// reset it, and the client would see that instead of the answer. One that
// waits to be told to go on has sent nothing.
func (c *call) skipBody() {
	r := c.Request()
	if c.read || r.ContentLength == 0 || r.Body == nil {
		return
	}
	if c.begun || r.Header.Get("Expect") == "" {
		c.readBy(time.Now().Add(restTime))
		if _, err := io.CopyN(io.Discard, r.Body, restLimit); errors.Is(err, io.EOF) {
			c.read = true
			return
		}
	}
	c.giveUpBody()
}

// giveUpBody ends the connection after the answer: nobody knows where in it
// the next request would begin.
func (c *call) giveUpBody() {
	c.read = true
	c.Response().Header().Set("Connection", "close")
}

// parseObject reads the text as one JSON object, more strictly than
// encoding/json does: two readers must never see different requests in the
// same bytes. Numbers become json.Number.
func parseObject(raw []byte) (map[string]any, error) {
	if bytes.HasPrefix(raw, []byte("\xef\xbb\xbf")) {
		return nil, invalidBody("it starts with a byte order mark")
	}
	if !utf8.Valid(raw) {
		return nil, invalidBody("it is not valid UTF-8")
	}
	p := parser{decoder: jsontext.NewDecoder(bytes.NewReader(raw))}
	if kind := p.decoder.PeekKind(); kind != '{' && kind != 0 {
		return nil, mediagate.Errorf(mediagate.KindInvalid, "the body must be a JSON object")
	}
	value, err := p.value()
	if err != nil {
		return nil, err
	}
	if _, err := p.decoder.ReadToken(); !errors.Is(err, io.EOF) {
		return nil, invalidBody("data follows the object")
	}
	object, _ := value.(map[string]any)
	return object, nil
}

type parser struct {
	decoder *jsontext.Decoder
}

// value reads the next value. The depth is bounded, so the recursion is.
func (p *parser) value() (any, error) {
	token, err := p.decoder.ReadToken()
	if err != nil {
		return nil, p.syntax(err)
	}
	if p.decoder.StackDepth() > maxDepth {
		return nil, invalidBody("it is nested more than " + strconv.Itoa(maxDepth) + " levels deep")
	}
	switch token.Kind() {
	case 'n':
		return nil, nil
	case 't', 'f':
		return token.Bool(), nil
	case '"':
		return p.text(token)
	case '0':
		return p.number(token)
	case '{':
		return p.object()
	default:
		return p.array()
	}
}

func (p *parser) object() (any, error) {
	object := map[string]any{}
	for p.decoder.PeekKind() != '}' {
		token, err := p.decoder.ReadToken()
		if err != nil {
			return nil, p.syntax(err)
		}
		name, err := p.text(token)
		if err != nil {
			return nil, err
		}
		if object[name], err = p.value(); err != nil {
			return nil, err
		}
	}
	if _, err := p.decoder.ReadToken(); err != nil {
		return nil, p.syntax(err)
	}
	return object, nil
}

func (p *parser) array() (any, error) {
	array := []any{}
	for p.decoder.PeekKind() != ']' {
		value, err := p.value()
		if err != nil {
			return nil, err
		}
		array = append(array, value)
	}
	if _, err := p.decoder.ReadToken(); err != nil {
		return nil, p.syntax(err)
	}
	return array, nil
}

// text refuses U+0000, which PostgreSQL's text cannot hold.
func (p *parser) text(token jsontext.Token) (string, error) {
	s := token.String()
	if strings.IndexByte(s, 0) >= 0 {
		return "", p.invalid("a string holds U+0000")
	}
	return s, nil
}

// number refuses what a double cannot hold: each reader would make something
// else of it.
func (p *parser) number(token jsontext.Token) (json.Number, error) {
	s := token.String()
	if _, err := strconv.ParseFloat(s, 64); err != nil {
		return "", p.invalid("a number is too large")
	}
	return json.Number(s), nil
}

// syntax words the decoder's verdict anew: its own text may repeat the body.
func (p *parser) syntax(err error) error {
	var syntactic *jsontext.SyntacticError
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return invalidBody("it ends too early")
	case errors.As(err, &syntactic) && errors.Is(err, jsontext.ErrDuplicateName):
		return &mediagate.Error{
			Kind: mediagate.KindInvalid, Param: fieldName(syntactic.JSONPointer),
			Message: "the body is not acceptable JSON: the name " + clip(syntactic.JSONPointer.LastToken()) + " is there twice",
		}
	case errors.As(err, &syntactic):
		if strings.Contains(syntactic.Err.Error(), "surrogate") {
			return p.invalid("a string holds half of a surrogate pair")
		}
		return invalidBody("there is an error at byte " + strconv.FormatInt(syntactic.ByteOffset, 10))
	default:
		return invalidBody("it cannot be read")
	}
}

// invalid names the field at fault.
func (p *parser) invalid(why string) error {
	e := invalidBody(why)
	e.Param = fieldName(p.decoder.StackPointer())
	return e
}

func invalidBody(why string) *mediagate.Error {
	return &mediagate.Error{Kind: mediagate.KindInvalid, Message: "the body is not acceptable JSON: " + why}
}

// fieldName writes a JSON pointer as the API names fields:
// multi_prompt[0].duration. Names too long to be anyone's field are left out.
func fieldName(pointer jsontext.Pointer) string {
	var b strings.Builder
	for token := range pointer.Tokens() {
		if _, err := strconv.ParseUint(token, 10, 32); err == nil && b.Len() > 0 {
			b.WriteString("[" + token + "]")
			continue
		}
		if b.Len() > 0 {
			b.WriteByte('.')
		}
		b.WriteString(token)
	}
	if b.Len() > 200 {
		return ""
	}
	return b.String()
}

// clip quotes text of a client for a message, cut to a readable length.
func clip(s string) string {
	const most = 100
	if utf8.RuneCountInString(s) > most {
		s = string([]rune(s)[:most]) + "…"
	}
	return strconv.Quote(s)
}
