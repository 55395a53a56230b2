package activities

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/imagefile"
	"github.com/mediagate/mediagate/mediainfo"
)

// inputTries is how many attempts a task makes while the server of its media is
// away. The workflow's pauses between them add up to half a minute.
const inputTries = 5

// inputs opens the media of a client for one call (mediagate.Inputs).
type inputs struct {
	fetcher Fetcher
	bucket  Bucket
	own     map[string]string // our links, to what came within the request and to uploads → object key
	params  json.RawMessage   // of the job, where the links have their places

	mu     sync.Mutex
	failed error // the first
}

// Open fetches through the guarded client; what is our own is read from the
// bucket itself, which may be where that client may not go. A file that
// is no media is refused by its first bytes. A picture is read as an upload is:
// without what does not show, and up to the end of it.
func (in *inputs) Open(ctx context.Context, url string, limit int64) (io.ReadCloser, int64, error) {
	var (
		body   io.ReadCloser
		length int64
		err    error
	)
	if key, ok := in.own[url]; ok {
		body, length, err = in.bucket.Open(ctx, key)
	} else {
		body, length, err = in.fetcher.Fetch(ctx, url, "")
	}
	field := in.field(url)
	if err != nil {
		return nil, 0, in.note(inputError(field, err))
	}
	if length > limit {
		_ = body.Close()
		return nil, 0, in.note(tooLarge(field, limit))
	}
	file := &input{ReadCloser: body, in: in, field: field, left: limit, limit: limit}
	if err := file.lookAhead(); err != nil {
		_ = body.Close()
		return nil, 0, in.note(err)
	}
	if _, ok := imagefile.Detect(file.head); ok {
		return file.cleaned(), -1, nil
	}
	return file, length, nil
}

// field is where the request has the link; the first place of several.
func (in *inputs) field(url string) string {
	if request, err := parse(in.params); err == nil {
		if path, ok := placeOf(request, url, ""); ok {
			return path
		}
	}
	return "an input"
}

// placeOf finds a text in a request.
func placeOf(in any, text, path string) (string, bool) {
	switch v := in.(type) {
	case string:
		return path, v == text
	case []any:
		for i, item := range v {
			if found, ok := placeOf(item, text, path+"["+strconv.Itoa(i)+"]"); ok {
				return found, true
			}
		}
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			if found, ok := placeOf(v[name], text, strings.TrimPrefix(path+"."+name, ".")); ok {
				return found, true
			}
		}
	}
	return "", false
}

// note remembers an error, so that what the adapter makes of it is known for
// what it is.
func (in *inputs) note(err error) error {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.failed == nil {
		in.failed = err
	}
	return err
}

// refusal is how an attempt ends that made no job for want of the client's
// media. ok is false where the call failed for another reason, or may have had
// its effect.
func (in *inputs) refusal(callErr error, n int) (f mediagate.Failure, ok bool) {
	in.mu.Lock()
	defer in.mu.Unlock()
	switch kind := mediagate.KindOf(callErr); {
	case in.failed == nil:
		return f, false
	case kind == mediagate.KindUnreached: // broken off while it was sent on
	case !errors.Is(callErr, in.failed), kind != mediagate.KindInvalid && kind != mediagate.KindTransient:
		return f, false
	}
	return mediagate.Failure{
		Code: mediagate.CodeImageProcessing, Message: messageOf(in.failed),
		Retryable: mediagate.Is(in.failed, mediagate.KindTransient) && n < inputTries,
	}, true
}

// input is one file on its way: bounded, its errors in our words.
type input struct {
	io.ReadCloser
	in    *inputs
	field string
	head  []byte // read already, and still to be handed on
	left  int64
	limit int64
	err   error
}

// lookAhead reads the first bytes of the file, which show what it is.
func (i *input) lookAhead() error {
	var head bytes.Buffer
	_, err := mediainfo.Glance(io.TeeReader(i.peeked(), &head))
	i.head = head.Bytes()
	if words, ok := errors.AsType[mediainfo.Unreadable](err); ok {
		return wrong(i.field, flaw{unusable: true, words: words.Error()})
	}
	return err
}

// cleanedInput is a picture on its way through imagefile.
type cleanedInput struct {
	*io.PipeReader
	file *input
}

// Close hangs up.
func (c cleanedInput) Close() error {
	_ = c.PipeReader.Close() // never fails
	return c.file.Close()
}

// cleaned is the file, a picture, without what does not show. A goroutine reads it
// until it ends or is closed.
func (i *input) cleaned() io.ReadCloser {
	out, w := io.Pipe()
	go func() { _ = w.CloseWithError(i.clean(w)) }() // nil: the end of the file
	return cleanedInput{out, i}
}

// clean writes the picture to w. A panic is an error, since the file is a stranger's
// and the goroutine our own.
func (i *input) clean(w io.Writer) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = mediagate.Panicked(p)
		}
	}()
	info, err := imagefile.Clean(w, i)
	switch words, bad := errors.AsType[imagefile.Unusable](err); {
	case i.err != nil:
		return i.err
	case bad:
		return i.in.note(wrong(i.field, flaw{unusable: true, words: words.Error()}))
	case err != nil:
		return err
	}
	if f, ok := sane("", mediainfo.Facts{Info: mediainfo.Info{Width: info.Width, Height: info.Height}}); !ok {
		return i.in.note(wrong(i.field, f))
	}
	return nil
}

// peeked is the file as it arrives, with its bound and its errors.
func (i *input) peeked() io.Reader { return readerFunc(i.arrive) }

type readerFunc func(p []byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

func (i *input) Read(p []byte) (int, error) {
	if len(i.head) > 0 {
		n := copy(p, i.head)
		i.head = i.head[n:]
		return n, nil
	}
	return i.arrive(p)
}

func (i *input) arrive(p []byte) (int, error) {
	if i.err != nil {
		return 0, i.err
	}
	if int64(len(p)) > i.left+1 { // one more than allowed, to see the end
		p = p[:i.left+1]
	}
	n, err := i.ReadCloser.Read(p)
	switch i.left -= int64(n); {
	case i.left < 0:
		n, i.err = n-1, i.in.note(tooLarge(i.field, i.limit))
		return n, i.err
	case err != nil && !errors.Is(err, io.EOF):
		i.err = i.in.note(brokeOff(i.field, err))
		return n, i.err
	default:
		return n, err
	}
}

// inputError says to the client what is wrong with the address that it named.
func inputError(field string, err error) error {
	e := &mediagate.Error{Kind: mediagate.KindInvalid, Code: string(mediagate.CodeImageProcessing), Param: field, Err: err}
	switch mediagate.KindOf(err) {
	case mediagate.KindInvalid:
		e.Message = field + " has an address that is not allowed, or leads to one"
	case mediagate.KindGone:
		e.Message = field + " cannot be fetched from its address"
	default:
		return serverAway(field, err)
	}
	return e
}

func serverAway(field string, err error) error {
	return &mediagate.Error{Kind: mediagate.KindTransient, Param: field, Message: field + " cannot be fetched: its server does not answer", Err: err}
}

func brokeOff(field string, err error) error {
	return &mediagate.Error{Kind: mediagate.KindTransient, Param: field, Message: field + " broke off while it was fetched", Err: err}
}

func tooLarge(field string, limit int64) error {
	return wrong(field, flaw{unusable: true, words: fmt.Sprintf("is larger than %d bytes", limit)})
}
