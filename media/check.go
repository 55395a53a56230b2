package media

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/internal/limit"
	"github.com/mediagate/mediagate/media/mediainfo"
)

// Pace limits the time that a client's file may take. From its first byte [limit.Pace] applies too.
type Pace struct {
	Silence time.Duration // before the first byte
	Whole   time.Duration // for the file
}

// ErrSlow is the cause that ends a file which arrives too slowly.
var ErrSlow = errors.New("the file does not arrive in time")

// errStalled is the cause that ends a file whose server does not answer.
var errStalled = errors.New("the server does not answer")

// Check downloads as much of a client's file as it needs to check it. It returns KindInvalid with
// the code of the failure for an invalid file, KindTransient while its server does not answer, and
// the errors of open. If ctx ends with the cause ErrSlow, a file that is still arriving is invalid.
func (p Pace) Check(ctx context.Context, in mediagate.Input, open Open) error {
	ctx, cancel := context.WithTimeoutCause(ctx, p.Whole, ErrSlow)
	defer cancel()
	ctx, hangUp := context.WithCancelCause(ctx)
	defer hangUp(nil)
	file := p.watch(hangUp)
	defer file.timer.Stop()
	body, length, err := open(ctx)
	if err != nil {
		return explain(ctx, in.Field, err)
	}
	defer body.Close()
	file.r = body
	found, err := check(in, file, length)
	if found != nil {
		return found.of(in.Field)
	}
	return explain(ctx, in.Field, err)
}

// check reads the file and returns its flaw, or nil. The error is of reading.
func check(in mediagate.Input, file io.Reader, length int64) (*flaw, error) {
	if in.MaxBytes > 0 && length > in.MaxBytes {
		return tooManyBytes(in.MaxBytes), nil
	}
	counted := &counter{r: file, max: in.MaxBytes}
	facts, err := mediainfo.Inspect(counted)
	if words, ok := errors.AsType[mediainfo.Unreadable](err); ok {
		return &flaw{unusable: true, words: words.Error()}, nil
	}
	if err == nil {
		if found := flawOf(in, facts); found != nil {
			return found, nil
		}
		if in.MaxBytes > 0 && length < 0 { // unknown size: count to the end
			_, err = io.Copy(io.Discard, counted)
		}
	}
	if counted.over {
		return tooManyBytes(in.MaxBytes), nil
	}
	return nil, err
}

// FaultOf explains why one of our own files is invalid as an input. It checks the values that are
// known of the file. The words follow the field's name; they are empty for a valid file.
func FaultOf(in mediagate.Input, r mediagate.Result) string {
	format, ok := mediainfo.FormatOf(r.MimeType)
	if !ok {
		return "is " + r.MimeType + ", not " + aKind(in.Kind)
	}
	facts := mediainfo.Facts{Format: format, Info: mediainfo.Info{Width: r.Width, Height: r.Height, Duration: r.Duration}}
	if r.Width == 0 {
		in.MinSide, in.MaxSide, in.MinRatio, in.MaxRatio = 0, 0, mediagate.Ratio{}, mediagate.Ratio{}
	}
	if r.Duration == 0 {
		in.MinSeconds, in.MaxSeconds, in.Covers = 0, 0, nil
	}
	if in.MaxBytes > 0 && r.Size > in.MaxBytes {
		return tooManyBytes(in.MaxBytes).words
	}
	if found := flawOf(in, facts); found != nil {
		return found.words
	}
	return ""
}

// MostRead returns the maximum number of bytes that Check reads of a file of the length; -1 is an
// unknown length.
func MostRead(in mediagate.Input, length int64) int64 {
	most := int64(mostBytes)
	if in.MaxBytes > 0 {
		most = min(most, in.MaxBytes+1)
	}
	if length >= 0 {
		most = min(most, length)
	}
	return most
}

// counter ends a file that is longer than allowed, whatever its server stated. With a max of 0 only
// mostBytes limits it.
type counter struct {
	r    io.Reader
	read int64
	max  int64
	over bool
}

// mostBytes limits the bytes read of any file. Headers may be at its end.
const mostBytes = 512 << 20

var errOver = errors.New("the file is too long")

func (c *counter) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.read += int64(n)
	switch {
	case c.max > 0 && c.read > c.max:
		c.over = true
		return 0, errOver
	case c.read > mostBytes:
		return 0, ErrSlow
	}
	return n, err
}

// watched is a file that must arrive at the pace.
type watched struct {
	r      io.Reader
	hangUp context.CancelCauseFunc

	mu    sync.Mutex
	timer *time.Timer
	pace  limit.Pace
	begun bool
	came  bool // bytes came since the last checkPace
}

func (p Pace) watch(hangUp context.CancelCauseFunc) *watched {
	w := &watched{hangUp: hangUp}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.timer = time.AfterFunc(p.Silence, w.checkPace)
	return w
}

func (w *watched) checkPace() {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := time.Now()
	switch left := w.pace.By(now).Sub(now); {
	case !w.came:
		w.hangUp(errStalled)
	case left <= 0:
		w.hangUp(ErrSlow)
	default:
		w.timer.Reset(left)
	}
	w.came = false
}

func (w *watched) Read(b []byte) (int, error) {
	n, err := w.r.Read(b)
	if n > 0 {
		w.mu.Lock()
		defer w.mu.Unlock()
		now := time.Now()
		if !w.begun {
			w.begun = true
			w.timer.Reset(w.pace.By(now).Sub(now))
		}
		w.pace.Came(n, now)
		w.came = true
	}
	return n, err
}

// explain converts an error of reading. A file that arrives too slowly is unusable; a server that
// fell silent may answer later.
func explain(ctx context.Context, field string, err error) error {
	_, ours := errors.AsType[*mediagate.Error](err)
	switch cause := context.Cause(ctx); {
	case err == nil:
		return nil
	case errors.Is(cause, ErrSlow), errors.Is(err, ErrSlow):
		return Unusable(field, "arrives too slowly, or does not end")
	case errors.Is(cause, errStalled):
		return serverAway(field, err)
	case ours:
		return err
	default:
		return brokeOff(field, err)
	}
}
