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

// Pace is how slowly a client's file may arrive. Once it has begun to, that is
// [limit.Pace].
type Pace struct {
	Silence time.Duration // before it begins
	Whole   time.Duration // for the file
}

// ErrSlow is why a file is not waited for any longer though it arrives.
var ErrSlow = errors.New("the file does not arrive in time")

// errStalled is why a server is hung up on that does not answer.
var errStalled = errors.New("the server does not answer")

// Check fetches a client's file as far as it takes to check it. Returns KindInvalid,
// with the code of the failure, for one that is no good, KindTransient while its server
// is away, and the errors of open. A ctx whose cause is ErrSlow ends a file that is still
// arriving.
func (p Pace) Check(ctx context.Context, in mediagate.Input, open Open) error {
	ctx, cancel := context.WithTimeoutCause(ctx, p.Whole, ErrSlow)
	defer cancel()
	ctx, hangUp := context.WithCancelCause(ctx)
	defer hangUp(nil)
	file := p.watch(hangUp)
	defer file.timer.Stop()
	body, length, err := open(ctx)
	if err != nil {
		return blame(ctx, in.Field, err)
	}
	defer body.Close()
	file.r = body
	found, err := check(in, file, length)
	if found != nil {
		return found.of(in.Field)
	}
	return blame(ctx, in.Field, err)
}

// check reads the file and finds what is wrong with it. An error is of reading.
func check(in mediagate.Input, file io.Reader, length int64) (*flaw, error) {
	if in.MaxBytes > 0 && length > in.MaxBytes {
		f := tooManyBytes(in.MaxBytes)
		return &f, nil
	}
	counted := &counter{r: file, max: in.MaxBytes}
	facts, err := mediainfo.Inspect(counted)
	if words, ok := errors.AsType[mediainfo.Unreadable](err); ok {
		return &flaw{unusable: true, words: words.Error()}, nil
	}
	if err == nil {
		if f, ok := sane(in.Kind, facts); !ok {
			return &f, nil
		}
		if f, ok := within(in, facts); !ok {
			return &f, nil
		}
		if in.MaxBytes > 0 && length < 0 { // its end alone tells its size
			_, err = io.Copy(io.Discard, counted)
		}
	}
	if counted.over {
		f := tooManyBytes(in.MaxBytes)
		return &f, nil
	}
	return nil, err
}

// FaultOf says in words what is wrong with a file of ours as an input, as far as is known of
// it: words that follow the field's name, empty for none.
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
	for _, judge := range []func() (flaw, bool){
		func() (flaw, bool) { return sane(in.Kind, facts) },
		func() (flaw, bool) { return within(in, facts) },
	} {
		if f, fine := judge(); !fine {
			return f.words
		}
	}
	return ""
}

// MostRead is how many bytes Check reads of a file at most that tells that length; -1
// where it does not.
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

// counter ends a file that is longer than it may be, whatever it said of
// itself. A max of 0 is none of the contract's.
type counter struct {
	r    io.Reader
	read int64
	max  int64
	over bool
}

// mostBytes is what is read of a file whose size no contract bounds, for the
// headers that may stand at its end.
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

// watched is a file on its way.
type watched struct {
	r      io.Reader
	hangUp context.CancelCauseFunc

	mu    sync.Mutex
	timer *time.Timer
	pace  limit.Pace
	begun bool
	came  bool // something, since the last look
}

func (p Pace) watch(hangUp context.CancelCauseFunc) *watched {
	w := &watched{hangUp: hangUp}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.timer = time.AfterFunc(p.Silence, w.look)
	return w
}

func (w *watched) look() {
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

// blame says what an error on the way means: a file that crawls is no good, a
// server that fell silent may come back.
func blame(ctx context.Context, field string, err error) error {
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
