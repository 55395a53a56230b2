package channel

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"sync"
	"time"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/providers"
)

const (
	// speechSendTime is how long a speech may wait until the first byte of its request to the
	// vendor is sent. After a longer wait another process may have given back the money that the
	// speech holds.
	speechSendTime = 10 * time.Second
	// firstPiece is the size of the buffer for the first read. Sound is handed on as soon as any
	// has arrived.
	firstPiece = 16 << 10
)

// Speakers lets one of our channels speak a text while the client waits.
//
// Channels are tried in their order. A channel is skipped if it is disabled, if its breaker is
// open, or if this process has as many speeches under way there as the channel's concurrency
// allows. A speech is not an attempt and takes no slot in the database, so each process counts
// only its own speeches. Two processes together may thus have twice as many under way at a channel.
//
// Speak tries the next channel if an error proves that the vendor has done nothing, and says nothing
// about the request. It tries no other channel after a lost answer, since the vendor may have charged
// for the speech, and none after the first byte of sound. The fields are set before the first use.
type Speakers struct {
	Channels Channels
	Breakers *Breakers
	Now      func() time.Time

	// mu protects underWay. It is held only to count.
	mu       sync.Mutex
	underWay map[string]int // speeches under way, by channel
}

// Speak begins a speech and returns once there is sound. Its errors are
//
//   - KindInvalid and KindModerated for what the vendor says about the request;
//   - KindThrottled if the vendor, or our own bound, asks for fewer calls;
//   - KindCapacity if the vendor is full;
//   - KindFunds, KindCredentials and KindShutOut if no channel is open to us;
//   - KindForbidden and KindNotFound if a vendor answers so, and no other channel serves;
//   - KindNoModel if no vendor has the model any more;
//   - KindUnreached if nothing was sent;
//   - KindAmbiguous and KindVendor if the vendor failed;
//   - KindInternal if the adapter failed, or cannot speak;
//   - KindUnavailable if a breaker's probe is due, and the database is away.
//
// Errors of the returned reader are KindAmbiguous. If ctx ends because the vendor took too long,
// its cause has to be context.DeadlineExceeded.
func (s *Speakers) Speak(
	ctx context.Context, model string, routes []mediagate.Route, params json.RawMessage,
) (io.ReadCloser, error) {
	var best error
	job := mediagate.Job{Params: params}
	for _, c := range s.Channels.Candidates(model, routes, job, s.Breakers.Retired) {
		sound, err := s.speakBy(ctx, c, params)
		if err == nil {
			return sound, nil
		}
		best = moreHelpful(best, err)
		if !mayTryNext(err) || ctx.Err() != nil {
			return nil, err
		}
	}
	switch {
	case best != nil: // every channel has refused
	// There was no channel to try. Without retired routes there would be one.
	case len(s.Channels.Candidates(model, routes, job, nil)) > 0:
		return nil, mediagate.Errorf(mediagate.KindNoModel, "the model is retired")
	default:
		return nil, mediagate.Errorf(mediagate.KindShutOut, "no channel serves the model")
	}
	return nil, best
}

// speakBy asks one channel. It checks the process's bound before the breaker, so that a probe is never
// refused for lack of room. The first sound counts as a success for the breaker. If the vendor
// breaks the sound off later, that counts as one more failed submit.
func (s *Speakers) speakBy(ctx context.Context, c Candidate, params json.RawMessage) (io.ReadCloser, error) {
	speaker, ok := c.Vendor.(providers.Speaker)
	if !ok {
		return nil, mediagate.Errorf(mediagate.KindInternal, "the adapter of %s does not speak", c.Name)
	}
	leave, ok := s.enter(c)
	if !ok {
		return nil, &mediagate.Error{
			Kind:       mediagate.KindThrottled,
			RetryAfter: time.Second,
			Message:    "as many speeches are under way as the channel allows",
		}
	}
	pass, open, err := s.Breakers.Enter(ctx, c.Name, c.Adapter.Description.Operations[c.Route.Operation].Submit)
	if err != nil || !open {
		leave()
		if err == nil {
			err = mediagate.Errorf(mediagate.KindShutOut, "the channel takes no jobs")
		}
		return nil, err
	}
	sound, err := startSpeech(ctx, speaker, mediagate.Job{
		Upstream: c.Route.Upstream, Operation: c.Route.Operation, Params: params,
		SendBefore: s.Now().Add(speechSendTime),
	})
	if mediagate.Is(err, mediagate.KindNoModel) {
		pass.Retire(ctx, c.Route)
	}
	if err != nil {
		leave()
		if ctx.Err() != nil && !errors.Is(context.Cause(ctx), context.DeadlineExceeded) {
			pass.Unused(ctx) // the client has left: that says nothing about the vendor
		} else {
			pass.Ended(ctx, err)
		}
		return nil, err
	}
	pass.Ended(ctx, nil)
	broke := func(err error) { s.Breakers.Inside(c.Name).Ended(ctx, err) }
	return &speech{sound: sound, ctx: ctx, onBreak: broke, leave: leave}, nil
}

// enter counts one more speech of the channel until leave is called. It returns false if the
// channel allows no more. Further calls of leave do nothing.
func (s *Speakers) enter(c Candidate) (leave func(), ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.Concurrency > 0 && s.underWay[c.Name] >= c.Concurrency {
		return nil, false
	}
	if s.underWay == nil {
		s.underWay = map[string]int{}
	}
	s.underWay[c.Name]++
	return sync.OnceFunc(func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.underWay[c.Name]--
	}), true
}

// startSpeech begins a speech and waits for its first sound. If the vendor answers and then sends
// nothing, startSpeech returns an error, as if the vendor had not answered.
func startSpeech(ctx context.Context, speaker providers.Speaker, job mediagate.Job) (sound io.ReadCloser, err error) {
	defer func() {
		if p := recover(); p != nil { // the call may have been sent
			err = &mediagate.Error{
				Kind: mediagate.KindInternal, Message: "the adapter failed", Err: mediagate.Panicked(p),
			}
		}
	}()
	body, err := speaker.Speak(ctx, job)
	if err != nil {
		return nil, err
	}
	buffered := bufio.NewReaderSize(body, firstPiece)
	if _, err = buffered.Peek(1); err == nil {
		return bufferedSound{buffered, body}, nil
	}
	_ = body.Close()
	if errors.Is(err, io.EOF) {
		err = mediagate.Errorf(mediagate.KindVendor, "the vendor's answer holds no sound")
	}
	return nil, err
}

// bufferedSound is sound whose first piece is in the buffer already.
type bufferedSound struct {
	*bufio.Reader
	io.Closer
}

// speech is the sound that a channel makes. Its reader must close it, which ends the call and makes
// room for another speech.
type speech struct {
	sound io.ReadCloser
	ctx   context.Context //nolint:containedctx // the context of its reader
	// Set to nil after its call, so that the break counts once.
	onBreak func(error)
	leave   func()
}

// Read reads the sound, and notes when the vendor breaks it off. If the context has ended, the
// client has left or its time is over, and the error says nothing about the vendor.
func (s *speech) Read(p []byte) (int, error) {
	n, err := s.sound.Read(p)
	if err != nil && !errors.Is(err, io.EOF) && s.ctx.Err() == nil && s.onBreak != nil {
		s.onBreak(err)
		s.onBreak = nil
	}
	return n, err
}

// Close ends the call.
func (s *speech) Close() error {
	s.leave()
	return s.sound.Close()
}

// mayTryNext reports whether another channel may be asked: the vendor has done nothing, and said
// nothing about the request.
func mayTryNext(err error) bool {
	switch mediagate.KindOf(err) {
	case mediagate.KindThrottled, mediagate.KindCapacity, mediagate.KindCredentials, mediagate.KindFunds,
		mediagate.KindForbidden, mediagate.KindNotFound, mediagate.KindNoModel, mediagate.KindUnreached,
		mediagate.KindShutOut:
		return true
	default:
		return false
	}
}

// moreHelpful returns the one of two errors that helps a client more. An error that asks the client
// to come back soon helps most, then one of a vendor that failed, then one that says that no
// channel is open to us. "No such model" helps least, since another vendor may have the model. If
// both help equally, the earlier one stays.
func moreHelpful(a, b error) error {
	if a == nil || helpfulness(b) > helpfulness(a) {
		return b
	}
	return a
}

// helpfulness ranks an error for moreHelpful.
func helpfulness(err error) int {
	switch mediagate.KindOf(err) {
	case mediagate.KindThrottled, mediagate.KindCapacity:
		return 3
	case mediagate.KindShutOut, mediagate.KindFunds, mediagate.KindCredentials:
		return 1
	case mediagate.KindNoModel:
		return 0
	default:
		return 2
	}
}
