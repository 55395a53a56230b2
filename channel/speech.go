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
	// speechSendTime is how long a speech may wait for its first byte to leave
	// us. A speech that was held up longer may have lost its hold.
	speechSendTime = 10 * time.Second
	// firstPiece is how much of the sound is read before it is handed on, at
	// most: what is there, as soon as anything is.
	firstPiece = 16 << 10
)

// Speakers have texts spoken by one of our channels, while the client waits.
//
// Channels are tried in their order. One is passed over that is disabled, whose
// breaker is open, or that has as many speeches under way here as its
// concurrency allows: a speech is no attempt, takes no slot in the database,
// and is counted by its process alone. What proves that a vendor has done
// nothing leads to the next channel, until the first byte of sound is there;
// nothing does after it, and a lost answer never does, since the vendor may have
// been paid for it. Its fields are set before it is used.
type Speakers struct {
	Channels Channels
	Breakers *Breakers
	Now      func() time.Time

	mu    sync.Mutex
	under map[string]int // speeches, by channel
}

// Speak begins to speak and returns once there is sound. Errors are of KindInvalid
// and KindModerated for what the vendor says of the request; KindThrottled where
// the vendor, or our own bound, asks for fewer calls; KindFunds, KindCredentials
// and KindShutOut where no channel is open to us; KindNoModel where no vendor has the
// model any more; KindUnreached where nothing was sent; KindAmbiguous and KindVendor where
// the vendor failed; and KindUnavailable without a database. Those of the sound's reader are KindAmbiguous. A ctx that
// ends because the vendor took too long says so: its cause is
// context.DeadlineExceeded.
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
		best = better(best, err)
		if !mayFollow(err) || ctx.Err() != nil {
			return nil, err
		}
	}
	switch {
	case best != nil:
	case len(s.Channels.Candidates(model, routes, job, nil)) > 0:
		return nil, mediagate.Errorf(mediagate.KindNoModel, "the model is retired")
	default:
		return nil, mediagate.Errorf(mediagate.KindShutOut, "no channel serves the model")
	}
	return nil, best
}

// speakBy asks one channel.
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
	sound, err := begin(ctx, speaker, mediagate.Job{
		Upstream: c.Route.Upstream, Operation: c.Route.Operation, Params: params,
		SendBefore: s.Now().Add(speechSendTime),
	})
	if mediagate.Is(err, mediagate.KindNoModel) {
		s.Breakers.Retire(ctx, c.Name, c.Route)
	}
	if err != nil {
		leave()
		if ctx.Err() != nil && !errors.Is(context.Cause(ctx), context.DeadlineExceeded) {
			pass.Unused(ctx) // the client has left: that shows nothing of the vendor
		} else {
			pass.Ended(ctx, err)
		}
		return nil, err
	}
	pass.Ended(ctx, nil)
	broke := func(err error) { s.Breakers.Inside(c.Name).Ended(ctx, err) }
	return &speech{sound: sound, ctx: ctx, broke: broke, leave: leave}, nil
}

// enter counts one more speech of the channel's, if it allows that, until leave is called.
func (s *Speakers) enter(c Candidate) (leave func(), ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.Concurrency > 0 && s.under[c.Name] >= c.Concurrency {
		return nil, false
	}
	if s.under == nil {
		s.under = map[string]int{}
	}
	s.under[c.Name]++
	return sync.OnceFunc(func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.under[c.Name]--
	}), true
}

// begin waits for the first sound: a vendor that answers and then says nothing
// has failed like one that does not answer.
func begin(ctx context.Context, speaker providers.Speaker, job mediagate.Job) (sound io.ReadCloser, err error) {
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
		return begun{buffered, body}, nil
	}
	_ = body.Close()
	if errors.Is(err, io.EOF) {
		err = mediagate.Errorf(mediagate.KindVendor, "the vendor's answer holds no sound")
	}
	return nil, err
}

// begun is sound of which the first piece is read, and waits in the buffer.
type begun struct {
	*bufio.Reader
	io.Closer
}

// speech is sound that a channel makes.
type speech struct {
	sound io.ReadCloser
	ctx   context.Context //nolint:containedctx // of its reader
	broke func(error)
	leave func()
}

// Read notes when the vendor breaks off.
func (s *speech) Read(p []byte) (int, error) {
	n, err := s.sound.Read(p)
	if err != nil && !errors.Is(err, io.EOF) && s.ctx.Err() == nil && s.broke != nil {
		s.broke(err)
		s.broke = nil
	}
	return n, err
}

// Close ends the call.
func (s *speech) Close() error {
	s.leave()
	return s.sound.Close()
}

// mayFollow reports whether another channel may be asked: the vendor has done
// nothing, and said nothing of the request.
func mayFollow(err error) bool {
	switch mediagate.KindOf(err) {
	case mediagate.KindThrottled, mediagate.KindCapacity, mediagate.KindCredentials, mediagate.KindFunds,
		mediagate.KindForbidden, mediagate.KindNotFound, mediagate.KindNoModel, mediagate.KindUnreached, mediagate.KindShutOut:
		return true
	default:
		return false
	}
}

// better is the one of two refusals that helps a client more: that it may come back at
// once, that a vendor failed, then that no channel is open to us, and only then that a
// vendor has no such model, since another one may have it.
func better(a, b error) error {
	if a == nil || helps(b) > helps(a) {
		return b
	}
	return a
}

func helps(err error) int {
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
