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
	"github.com/mediagate/mediagate/catalog"
	"github.com/mediagate/mediagate/internal/limit"
)

const (
	bodyLimit = 1 << 20 // for submits without media in the body
	maxDepth  = 64      // of a body; the body itself is depth 1
	maxValues = 20_000  // in a body; the body itself is one
)

// readBody reads a JSON object within the route's limit. It returns the bytes, and the fields of
// the object that the mask keeps, with numbers as text. Reading a body may take long, so it
// checks the key again at the end.
func (s *Server) readBody(c *call, mask *catalog.FieldMask) (raw []byte, object map[string]any, err error) {
	if c.route.body != bodyJSON && c.route.body != bodyMaybe {
		return nil, nil, mediagate.Errorf(mediagate.KindInternal, "the table of routes has no body for %s", c.Path())
	}
	c.withoutTimeout(func() {
		raw, err = s.readLimited(c, c.route.bound)
		if err == nil && (len(raw) > 0 || c.route.body == bodyJSON) {
			object, err = s.parse(c, raw, mask)
		}
	})
	if err == nil {
		err = s.reauthorize(c.ctx, c)
	}
	return raw, object, err
}

// plainBody refuses a body with a content encoding, since the server decodes none.
func (c *call) plainBody() error {
	if c.route.body == bodyNone {
		return nil
	}
	coding := strings.Join(c.Request().Header.Values("Content-Encoding"), ", ")
	for one := range strings.SplitSeq(coding, ",") {
		if one = strings.TrimSpace(one); one != "" && !strings.EqualFold(one, "identity") {
			c.Response().Header().Set("Accept-Encoding", "identity")
			return mediagate.Errorf(
				mediagate.KindUnsupported, "Content-Encoding %s is not supported: send the body without an encoding",
				mediagate.Quote(coding),
			)
		}
	}
	return nil
}

// parse parses the body. Large bodies are parsed two at a time, accounts in round robin. Small
// bodies need no permit.
func (s *Server) parse(c *call, raw []byte, mask *catalog.FieldMask) (map[string]any, error) {
	if len(raw) <= firstBuffer {
		return parseObject(raw, mask)
	}
	ctx, cancel := c.detachedContext(requestTimeout)
	defer cancel()
	permit, err := s.cfg.Limits.Parsers.Acquire(ctx, c.tenant(), 1)
	if err != nil {
		return nil, c.errNoRoom(s.cfg.Limits.Parsers, bodies)
	}
	defer permit.Release()
	return parseObject(raw, mask)
}

func errTooLarge(limit int64) error {
	return mediagate.Errorf(mediagate.KindTooLarge, "the body must be at most %d bytes", limit)
}

// firstBuffer is the most that a body's first buffer holds, whatever length the request announces.
const firstBuffer = 32 << 10

// bodies names what Limits.Bodies bounds, for messages.
const bodies = "request bodies in progress"

func (s *Server) readLimited(c *call, limit int64) ([]byte, error) {
	announced := c.Request().ContentLength
	if announced > limit {
		return nil, errTooLarge(limit)
	}
	if announced < 0 {
		announced = limit
	}
	from := s.arrival(c, s.cfg.Limits.Bodies, s.cfg.BodyWait, bodies)
	buf, err := from.room(nil, min(firstBuffer, announced+1)) // one byte more, to see the end
	if err != nil {
		return nil, err
	}
	for c.begun = true; ; {
		n, err := from.Read(buf[len(buf):cap(buf)])
		buf = buf[:len(buf)+n]
		switch {
		case int64(len(buf)) > limit:
			return nil, errTooLarge(limit)
		case errors.Is(err, io.EOF):
			c.read = true
			return buf, nil
		case err != nil:
			c.giveUpBody()
			return nil, brokenBody(err)
		case len(buf) == cap(buf):
			if buf, err = from.room(buf, min(2*int64(cap(buf))+1, announced+1)); err != nil {
				return nil, err
			}
		}
	}
}

// arrival reads the body of a request as it arrives. The bytes that have arrived count against a
// limit. A sender that is slower than a [limit.Pace], or takes longer than a request may, is cut
// off.
type arrival struct {
	call *call
	of   *limit.Limit
	wait time.Duration // for room
	what string        // what the limit bounds, for messages
	pace limit.Pace
	end  time.Time
}

func (s *Server) arrival(c *call, of *limit.Limit, wait time.Duration, what string) *arrival {
	return &arrival{
		call: c, of: of, wait: wait, what: what, pace: limit.Pace{Over: s.cfg.BodyPace}, end: time.Now().Add(requestTimeout),
	}
}

func (a *arrival) Read(b []byte) (int, error) {
	by := a.pace.By(time.Now())
	if by.After(a.end) {
		by = a.end
	}
	a.call.readBy(by)
	n, err := a.call.Request().Body.Read(b)
	a.pace.Came(n, time.Now())
	return n, err
}

// room returns a copy of the buffer with this capacity, once the limit permits it.
func (a *arrival) room(buf []byte, size int64) ([]byte, error) {
	if err := a.grow(size); err != nil {
		return nil, err
	}
	return append(make([]byte, 0, size), buf...), nil
}

// grow enlarges the call's permit to size, once the limit has room for that. The time that grow
// waits does not count against the sender's pace.
func (a *arrival) grow(size int64) (err error) {
	began := time.Now()
	ctx, cancel := a.call.detachedContext(a.wait)
	defer cancel()
	if held := a.call.bodyPermit; held != nil {
		err = held.Grow(ctx, size-held.Held())
	} else {
		a.call.bodyPermit, err = a.of.Acquire(ctx, a.call.tenant(), size)
	}
	if err != nil {
		return a.call.errNoRoom(a.of, a.what)
	}
	a.pace.Pause(time.Since(began))
	return nil
}

// readBy sets the connection's deadline for reading. The zero time means none. net/http resets it
// when the body is complete. Without a connection, as in a test, it does nothing.
func (c *call) readBy(t time.Time) {
	_ = http.NewResponseController(c.Response().Writer).SetReadDeadline(t)
}

// writeBy sets the connection's deadline for writing, like readBy.
func (c *call) writeBy(t time.Time) {
	_ = http.NewResponseController(c.Response().Writer).SetWriteDeadline(t)
}

// brokenBody returns the error of a body that could not be read to its end. A client that closed
// its sending side, or stopped sending, may still read, so it gets an answer. Only if the
// connection is broken does brokenBody return errCut.
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

// The bounds of what skipBody reads.
const (
	restLimit = 32 << 20
	restTime  = 3 * time.Second
)

// skipBody runs before every answer. It lets a client that is still sending finish, within bounds:
// closing a connection with unread data resets it, and the client would see the reset instead of
// the answer. A client that waits for 100 Continue has sent nothing, so nothing of its body is
// read.
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

// giveUpBody closes the connection after the answer, since the server cannot tell where the next
// request would begin.
func (c *call) giveUpBody() {
	c.read = true
	c.Response().Header().Set("Connection", "close")
}

// parseObject parses the text as one JSON object, more strictly than encoding/json: two parsers
// must never see different requests in the same bytes. Numbers become json.Number.
//
// It checks all of the text but keeps only what the mask selects, since parsed values can take
// fifty times the memory of their JSON.
func parseObject(raw []byte, mask *catalog.FieldMask) (map[string]any, error) {
	if bytes.HasPrefix(raw, []byte("\xef\xbb\xbf")) {
		return nil, invalidBody("it starts with a byte order mark")
	}
	if !utf8.Valid(raw) {
		return nil, invalidBody("it is not valid UTF-8")
	}
	if len(bytes.TrimLeft(raw, " \t\r\n")) == 0 {
		return nil, mediagate.Errorf(mediagate.KindInvalid, "the body is empty").Because(mediagate.ReasonInvalidJSON)
	}
	// The decoder reads a bytes.Buffer in place, without a copy.
	p := parser{decoder: jsontext.NewDecoder(bytes.NewBuffer(raw))}
	if kind := p.decoder.PeekKind(); kind != '{' && kind != 0 {
		return nil, mediagate.Errorf(
			mediagate.KindInvalid, "the body must be a JSON object",
		).Because(mediagate.ReasonWrongType)
	}
	value, err := p.value(mask)
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
	values  int // read so far
}

// value parses the next value and returns the part that the mask selects. The nesting of a body
// is bounded, and so is this recursion.
func (p *parser) value(mask *catalog.FieldMask) (any, error) {
	p.values++
	if p.values > maxValues {
		return nil, invalidBody(
			"it holds more than " + strconv.Itoa(maxValues) + " values, each object, array and scalar being one",
		)
	}
	switch kind := p.decoder.PeekKind(); {
	case kind == '"' && mask == nil:
		return nil, p.skipText()
	case kind == '"':
		return p.text()
	case kind == '0':
		return p.number(mask != nil)
	}
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
	case '{':
		return p.object(mask)
	default:
		return p.array(mask)
	}
}

func (p *parser) object(mask *catalog.FieldMask) (any, error) {
	var object map[string]any
	if mask != nil {
		object = map[string]any{}
	}
	for p.decoder.PeekKind() != '}' {
		if err := p.member(object, mask); err != nil {
			return nil, err
		}
	}
	if _, err := p.decoder.ReadToken(); err != nil {
		return nil, p.syntax(err)
	}
	return object, nil
}

// member parses a name and its value, and adds them to the object if the mask selects them.
func (p *parser) member(object map[string]any, mask *catalog.FieldMask) error {
	if mask == nil {
		if err := p.skipText(); err != nil {
			return err
		}
		_, err := p.value(nil)
		return err
	}
	name, err := p.text()
	if err != nil {
		return err
	}
	inner := mask.Field(name)
	value, err := p.value(inner)
	if err == nil && inner != nil {
		object[name] = value
	}
	return err
}

func (p *parser) array(mask *catalog.FieldMask) (any, error) {
	array := []any{}
	for p.decoder.PeekKind() != ']' {
		inner := mask.At(len(array))
		value, err := p.value(inner)
		if err != nil {
			return nil, err
		}
		if inner != nil {
			array = append(array, value)
		}
	}
	if _, err := p.decoder.ReadToken(); err != nil {
		return nil, p.syntax(err)
	}
	return array, nil
}

// text parses a string. It refuses U+0000, which PostgreSQL's text type cannot hold.
func (p *parser) text() (string, error) {
	token, err := p.decoder.ReadToken()
	if err != nil {
		return "", p.syntax(err)
	}
	s := token.String()
	if strings.IndexByte(s, 0) >= 0 {
		return "", p.invalid(textWithNUL)
	}
	return s, nil
}

const textWithNUL = "a string holds U+0000"

// skipText checks a string as text does, but allocates none.
func (p *parser) skipText() error {
	quoted, err := p.decoder.ReadValue()
	if err != nil {
		return p.syntax(err)
	}
	if escapesNUL(quoted) {
		return p.invalid(textWithNUL)
	}
	return nil
}

// escapesNUL reports whether a valid JSON string holds U+0000, which can only be an escape.
func escapesNUL(quoted []byte) bool {
	for {
		i := bytes.IndexByte(quoted, '\\')
		if i < 0 {
			return false
		}
		if bytes.HasPrefix(quoted[i:], []byte(`\u0000`)) {
			return true
		}
		quoted = quoted[i+2:]
	}
}

// number parses a number. It refuses a number that a double cannot hold, since parsers read such a
// number differently.
func (p *parser) number(keep bool) (any, error) {
	literal, err := p.decoder.ReadValue()
	if err != nil {
		return nil, p.syntax(err)
	}
	s := string(literal)
	if _, err := strconv.ParseFloat(s, 64); err != nil {
		return nil, p.invalid("a number is too large")
	}
	if !keep {
		return nil, nil
	}
	return json.Number(s), nil
}

// syntax replaces the decoder's error with one of ours, since the decoder's text may repeat parts
// of the body.
func (p *parser) syntax(err error) error {
	var syntactic *jsontext.SyntacticError
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return invalidBody("it ends too early")
	case errors.As(err, &syntactic) && errors.Is(err, jsontext.ErrDuplicateName):
		return &mediagate.Error{
			Kind: mediagate.KindInvalid, Code: mediagate.ReasonInvalidJSON, Param: fieldName(syntactic.JSONPointer),
			Message: "the body is not acceptable JSON: the name " +
				mediagate.Quote(syntactic.JSONPointer.LastToken()) + " is there twice",
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

// invalid is invalidBody with the name of the field at fault.
func (p *parser) invalid(why string) error {
	e := invalidBody(why)
	e.Param = fieldName(p.decoder.StackPointer())
	return e
}

func invalidBody(why string) *mediagate.Error {
	return &mediagate.Error{
		Kind: mediagate.KindInvalid, Code: mediagate.ReasonInvalidJSON, Message: "the body is not acceptable JSON: " + why,
	}
}

// fieldName writes a JSON pointer as the API names fields: multi_prompt[0].duration. It returns
// "" for a name that is too long to be a real field.
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
