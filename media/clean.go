package media

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/media/imagefile"
	"github.com/mediagate/mediagate/media/mediainfo"
)

// Clean returns a client's file for a vendor, up to the limit. It removes all invisible data from a
// picture, and all bytes after it, as for an upload. It refuses a file that is no media by its first
// bytes. note gets and returns each error about the file, also those of later reads. Clean closes the
// body if it fails.
func Clean(
	field string, body io.ReadCloser, length, limit int64, note func(error) error,
) (io.ReadCloser, int64, error) {
	refuse := func(err error) (io.ReadCloser, int64, error) {
		_ = body.Close()
		return nil, 0, note(err)
	}
	if length > limit {
		return refuse(tooLarge(field, limit))
	}
	file := &bounded{ReadCloser: body, field: field, left: limit, limit: limit, note: note}
	if err := file.lookAhead(); err != nil {
		return refuse(err)
	}
	if _, ok := imagefile.Detect(file.head); ok {
		return file.cleaned(), -1, nil
	}
	return file, length, nil
}

func tooLarge(field string, limit int64) error {
	return Unusable(field, fmt.Sprintf("is larger than %d bytes", limit))
}

// bounded reads a file up to the limit and converts its errors.
type bounded struct {
	io.ReadCloser
	field string
	head  []byte // read ahead, returned by the next Read
	left  int64
	limit int64
	note  func(error) error
	err   error
}

// lookAhead reads the first bytes of the file, which show its format.
func (b *bounded) lookAhead() error {
	var head bytes.Buffer
	_, err := mediainfo.Glance(io.TeeReader(readerFunc(b.arrive), &head))
	b.head = head.Bytes()
	if words, ok := errors.AsType[mediainfo.Unreadable](err); ok {
		return Unusable(b.field, words.Error())
	}
	return err
}

// cleaned is a picture that imagefile cleans while it is read.
type cleaned struct {
	*io.PipeReader
	file *bounded
}

// Close closes the connection.
func (c cleaned) Close() error {
	_ = c.PipeReader.Close() // never fails
	return c.file.Close()
}

// cleaned returns the picture without its invisible data. A goroutine reads the file until it ends
// or is closed.
func (b *bounded) cleaned() io.ReadCloser {
	out, w := io.Pipe()
	go func() {
		// A client's file must not end the process, so a panic is an error of the file.
		err := mediagate.Guarded(func() error { return b.clean(w) })
		_ = w.CloseWithError(err) // nil: the end of the file
	}()
	return cleaned{out, b}
}

// clean writes the picture to w.
func (b *bounded) clean(w io.Writer) error {
	info, err := imagefile.Clean(w, b)
	switch words, bad := errors.AsType[imagefile.Unusable](err); {
	case b.err != nil:
		return b.err
	case bad:
		return b.note(Unusable(b.field, words.Error()))
	case err != nil:
		return err
	}
	facts := mediainfo.Facts{Info: mediainfo.Info{Width: info.Width, Height: info.Height}}
	if found := generalFlaw("", facts); found != nil {
		return b.note(found.of(b.field))
	}
	return nil
}

type readerFunc func(p []byte) (int, error)

// Read calls the function.
func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

// Read reads from the file.
func (b *bounded) Read(p []byte) (int, error) {
	if len(b.head) > 0 {
		n := copy(p, b.head)
		b.head = b.head[n:]
		return n, nil
	}
	return b.arrive(p)
}

// arrive reads the next bytes of the file, up to the limit.
func (b *bounded) arrive(p []byte) (int, error) {
	if b.err != nil {
		return 0, b.err
	}
	if int64(len(p)) > b.left+1 { // one more than allowed, to see the end
		p = p[:b.left+1]
	}
	n, err := b.ReadCloser.Read(p)
	switch b.left -= int64(n); {
	case b.left < 0:
		n, b.err = n-1, b.note(tooLarge(b.field, b.limit))
		return n, b.err
	case err != nil && !errors.Is(err, io.EOF):
		b.err = b.note(brokeOff(b.field, err))
		return n, b.err
	default:
		return n, err
	}
}
