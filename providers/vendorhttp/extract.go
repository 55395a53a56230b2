package vendorhttp

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// Extract reads a JSON document that holds files, without keeping the files in memory. It streams
// each string member with the given name to the function take. It returns the document with the
// result of take in place of each such string. The result must contain no character that JSON
// escapes. The returned document has at most limit bytes. Extract does not validate the document;
// the decoder does that later.
//
// Extract returns the errors of r and of take unchanged. It returns io.ErrUnexpectedEOF if the
// document ends within a string.
func Extract(r io.Reader, name string, limit int64, take func(text io.Reader) (string, error)) ([]byte, error) {
	x := NewExtractor(r, name, limit)
	for {
		text, err := x.Next()
		if errors.Is(err, io.EOF) {
			return x.Document(), nil
		}
		if err != nil {
			return nil, err
		}
		replacement, err := take(text)
		if err != nil {
			return nil, err
		}
		x.Replace(replacement)
	}
}

// Extractor does the work of Extract step by step, for callers that may not need all of the
// strings.
type Extractor struct {
	in    *bufio.Reader
	name  string
	limit int64
	out   bytes.Buffer

	last        byte   // the last character outside of strings that is no space
	text        string // the last string, as written
	key         string // the last string that was a member's name
	open        []byte // closing brackets of the open objects and arrays
	current     *textReader
	replacement string // replaces the string that was handed out
}

// NewExtractor returns an Extractor. Its arguments are those of Extract.
func NewExtractor(r io.Reader, name string, limit int64) *Extractor {
	return &Extractor{in: bufio.NewReaderSize(r, 64<<10), name: name, limit: limit}
}

// Next returns the next string member with the name. It first skips the unread rest of the previous
// one. It returns io.EOF at the end of the document.
func (x *Extractor) Next() (io.Reader, error) {
	if err := x.finishString(); err != nil {
		return nil, err
	}
	for {
		c, err := x.in.ReadByte()
		switch {
		case err != nil: // also io.EOF
			return nil, err
		case c == '"' && x.last == ':' && x.key == x.name:
			x.current, x.last = &textReader{in: x.in}, c
			return x.current, nil
		case c == '"':
			err = x.copyText()
			x.last = c
		default:
			err = x.copyMark(c)
		}
		if err != nil {
			return nil, err
		}
	}
}

// Replace sets the text that replaces the string last returned by Next. The text must contain no
// character that JSON escapes. The default is "".
func (x *Extractor) Replace(replacement string) { x.replacement = replacement }

// Document returns the document as read so far, without the extracted strings. It is complete after
// Next has returned io.EOF.
func (x *Extractor) Document() []byte { return x.out.Bytes() }

// Cut returns the document up to the string last returned by Next, with all open brackets closed.
func (x *Extractor) Cut() []byte {
	cut := slices.Concat(x.out.Bytes(), []byte(strconv.Quote(x.replacement)))
	for _, end := range slices.Backward(x.open) {
		cut = append(cut, end)
	}
	return cut
}

// finishString reads the handed-out string to its end and writes its replacement.
func (x *Extractor) finishString() error {
	if x.current == nil {
		return nil
	}
	if _, err := io.Copy(io.Discard, x.current); err != nil {
		return err
	}
	err := x.appendBounded([]byte(strconv.Quote(x.replacement))...)
	x.current, x.replacement = nil, ""
	return err
}

// copyMark copies a character outside of strings.
func (x *Extractor) copyMark(c byte) error {
	switch c {
	case ':':
		x.key = x.text
	case '{':
		x.open = append(x.open, '}')
	case '[':
		x.open = append(x.open, ']')
	case '}', ']':
		x.open = x.open[:max(0, len(x.open)-1)]
	}
	if c != ' ' && c != '\t' && c != '\r' && c != '\n' {
		x.last = c
	}
	return x.appendBounded(c)
}

func (x *Extractor) appendBounded(p ...byte) error {
	if int64(x.out.Len()+len(p)) > x.limit {
		return fmt.Errorf("the answer is longer than %d bytes beside its files", x.limit)
	}
	x.out.Write(p)
	return nil
}

// copyText copies a string whose first quote has been read.
func (x *Extractor) copyText() error {
	if err := x.appendBounded('"'); err != nil {
		return err
	}
	start := x.out.Len()
	for escaped := false; ; {
		c, err := x.in.ReadByte()
		if err != nil {
			return unexpected(err)
		}
		if err := x.appendBounded(c); err != nil {
			return err
		}
		switch {
		case escaped:
			escaped = false
		case c == '\\':
			escaped = true
		case c == '"':
			x.text = string(x.out.Bytes()[start : x.out.Len()-1])
			return nil
		}
	}
}

func unexpected(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// textReader reads the characters of a JSON string up to its closing quote.
type textReader struct {
	in   *bufio.Reader
	rest []byte // the rest of an unescaped character that did not fit
	err  error
}

func (t *textReader) Read(p []byte) (int, error) {
	if len(p) == 0 || t.err != nil {
		return 0, t.err
	}
	if len(t.rest) > 0 {
		n := copy(p, t.rest)
		t.rest = t.rest[n:]
		return n, nil
	}
	if t.in.Buffered() == 0 {
		if _, err := t.in.Peek(1); err != nil {
			t.err = unexpected(err)
			return 0, t.err
		}
	}
	ready, _ := t.in.Peek(min(t.in.Buffered(), len(p)))
	plain := bytes.IndexAny(ready, `"\`)
	if plain < 0 {
		plain = len(ready)
	}
	if plain > 0 {
		n := copy(p, ready[:plain])
		_, _ = t.in.Discard(n)
		return n, nil
	}
	if ready[0] == '"' {
		_, _ = t.in.Discard(1)
		t.err = io.EOF
		return 0, t.err
	}
	if t.rest, t.err = t.escape(); t.err != nil {
		return 0, t.err
	}
	n := copy(p, t.rest)
	t.rest = t.rest[n:]
	return n, nil
}

// escape reads an escape sequence.
func (t *textReader) escape() ([]byte, error) {
	two, err := t.in.Peek(2)
	if err != nil {
		return nil, unexpected(err)
	}
	kind := two[1]
	_, _ = t.in.Discard(2)
	switch kind {
	case 'n':
		return []byte{'\n'}, nil
	case 'r':
		return []byte{'\r'}, nil
	case 't':
		return []byte{'\t'}, nil
	case 'b':
		return []byte{'\b'}, nil
	case 'f':
		return []byte{'\f'}, nil
	case 'u':
		return t.unicode()
	default:
		return []byte{kind}, nil
	}
}

func (t *textReader) unicode() ([]byte, error) {
	r, err := t.unit()
	if err != nil {
		return nil, err
	}
	if utf16.IsSurrogate(r) {
		if next, err := t.in.Peek(2); err == nil && string(next) == `\u` {
			_, _ = t.in.Discard(2)
			low, err := t.unit()
			if err != nil {
				return nil, err
			}
			r = utf16.DecodeRune(r, low)
		}
	}
	return utf8.AppendRune(nil, r), nil
}

func (t *textReader) unit() (rune, error) {
	four, err := t.in.Peek(4)
	if err != nil {
		return 0, unexpected(err)
	}
	n, err := strconv.ParseUint(string(four), 16, 32)
	if err != nil {
		return 0, errors.New("the answer is no valid JSON")
	}
	_, _ = t.in.Discard(4)
	return rune(n), nil
}
