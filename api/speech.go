package api

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/internal/failpoint"
)

const speechPath = "/v1/audio/speech"

// SpeechStore keeps the holds of speeches.
type SpeechStore interface {
	OpenSpeech(ctx context.Context, n mediagate.Speech, lease time.Duration) error
	RenewSpeech(ctx context.Context, id string, lease time.Duration) (open bool, err error)
	EndSpeech(ctx context.Context, id string, end mediagate.SpeechState) (won bool, err error)
	VoidSpeeches(ctx context.Context, limit int) (voided int, err error)
}

// Speaker has texts spoken by our vendors.
type Speaker interface {
	// Speak returns once there is sound, at least a byte of it. Errors are of the
	// kinds that describe what a vendor did, and of KindShutOut and
	// KindUnavailable; those of the sound's reader mean that it broke off. The
	// end of ctx ends the vendor's call, as closing the sound does. Its cause is
	// context.DeadlineExceeded where the vendor took too long.
	Speak(ctx context.Context, model string, routes []mediagate.Route, params json.RawMessage) (io.ReadCloser, error)
}

// The bounds of a speech. Its hold has a lease, which whoever speaks renews: a
// process that dies leaves it for speechLease and the time between two looks for
// what is left, together less than a minute.
const (
	speechLease = 30 * time.Second
	speechRenew = 10 * time.Second // also between two looks
	speechBatch = 100
	speechCall  = 5 * time.Second  // of one such call to the database
	speechFirst = 60 * time.Second // until there is sound
	speechStall = 30 * time.Second // for which a client may take nothing
	speechError = 10 * time.Second // to send an error
	speechPiece = 32 << 10
	endPatience = 2 * time.Second // for the money, before the client is told of the end
	endEvery    = time.Second     // between two tries to end a hold
)

// soundTypes are the formats of answers, the first for requests of none.
var soundTypes = []struct{ format, mimeType string }{
	{"mp3", "audio/mpeg"}, {"opus", "audio/opus"}, {"aac", "audio/aac"}, {"flac", "audio/flac"}, {"wav", "audio/wav"}, {"pcm", "audio/pcm"},
}

// soundType is the type of the sound that a request asks for.
func soundType(params json.RawMessage) (string, error) {
	var asked struct {
		Format string `json:"response_format"`
	}
	if err := json.Unmarshal(params, &asked); err != nil {
		return "", &mediagate.Error{Kind: mediagate.KindInternal, Message: "the accepted parameters cannot be read", Err: err}
	}
	for _, t := range soundTypes {
		if t.format == asked.Format || asked.Format == "" {
			return t.mimeType, nil
		}
	}
	return "", mediagate.Errorf(mediagate.KindInternal, "format %q has no type", asked.Format)
}

// soundBuffers hold the pieces on their way: a stream has one, whatever its
// length.
var soundBuffers = sync.Pool{New: func() any { return new([speechPiece]byte) }}

// handleSpeech has a text spoken, and passes the sound on while the vendor makes
// it. Money is held before the vendor is asked. It is charged when all has been
// passed on, or the client has left; where the vendor fails, or we do, it is
// given back and the connection cut. No task is made: the database only keeps
// what the hold hangs on.
func (s *Server) handleSpeech(c *call) error {
	raw, body, err := s.readBody(c, c.models.outlines[speechPath])
	if err != nil {
		return err
	}
	names, err := c.strictNames(raw)
	if err != nil {
		return err
	}
	if err := c.caller.mayBegin(); err != nil {
		return err
	}
	o, err := s.validate(c, order{endpoint: speechPath, body: body, size: len(raw), strict: names})
	if err != nil {
		return err
	}
	if err := s.moderate(c, o); err != nil {
		return err
	}
	if err := s.again(c.ctx, c); err != nil {
		return err
	}
	c.held.Release()
	c.readBy(time.Time{}) // what is read from here on is whether the client is there
	mimeType, err := soundType(o.Params)
	if err != nil {
		return err
	}
	lease, err := c.take(s.cfg.Limits.Speeches, 1, "the speeches under way")
	if err != nil {
		return err
	}
	defer lease.Release()
	s.speeches.Add(1)
	defer s.speeches.Done()
	u := &speechRequest{server: s, call: c, validated: o, mimeType: mimeType, end: mediagate.SpeechVoided, speech: mediagate.Speech{
		ID: s.newID("speech_"), AccountID: c.caller.key.AccountID, KeyID: c.caller.key.ID, RequestID: c.requestID,
		Model: o.model, Charges: o.Charges, Hold: o.hold(),
	}}
	if err := s.cfg.Store.OpenSpeech(c.ctx, u.speech, speechLease); err != nil {
		return err
	}
	c.speech = u
	defer u.settle() // a panic too voids
	failpoint.Hit(failpoint.SpeechHeld)
	return u.speak()
}

// speechRequest is a speech on its way to its client.
type speechRequest struct {
	server    *Server
	call      *call
	validated validated
	mimeType  string
	speech    mediagate.Speech

	end  mediagate.SpeechState // that is due
	sent int64
}

// speak asks for the sound and passes it on. The context is the request's own,
// unlike that of other calls: a client that has closed its side, if only the one
// that sends, counts as gone, so that no vendor speaks to nobody.
func (u *speechRequest) speak() error {
	c := u.call
	ctx, end := context.WithCancelCause(c.Request().Context())
	cancel := func() { end(nil) }
	defer cancel()
	defer context.AfterFunc(c.server, cancel)()
	renewing, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	go u.server.renew(renewing, u.speech.ID)

	began := time.Now()
	patience := time.AfterFunc(speechFirst, func() { end(context.DeadlineExceeded) })
	sound, err := u.server.cfg.Speaker.Speak(ctx, u.validated.model, u.validated.Plan.Routes, u.validated.Params)
	if err != nil {
		return u.unspoken(err, !patience.Stop())
	}
	defer sound.Close()
	if !patience.Stop() { // in the very moment: what follows would be cut
		return u.unspoken(mediagate.Errorf(mediagate.KindAmbiguous, "no sound came in time"), true)
	}
	failpoint.Hit(failpoint.SpeechBegun)
	err = u.pass(ctx, sound, began)
	if err == nil {
		failpoint.Hit(failpoint.SpeechSent)
	}
	return err
}

// gone reports whether the client has left, and not we.
func (u *speechRequest) gone() bool {
	return u.call.server.Err() == nil && u.call.Request().Context().Err() != nil
}

// unspoken is the answer where there was no sound. Who left before we knew of a
// refusal is charged like whoever left later.
func (u *speechRequest) unspoken(err error, late bool) error {
	if u.gone() && !late {
		if mediagate.Is(err, mediagate.KindAmbiguous) {
			u.end = mediagate.SpeechPosted
		}
		return errCut
	}
	u.call.writeBy(time.Now().Add(speechError))
	return speechFailure(err)
}

// pass passes the sound on, piece by piece as it comes. Nothing is read while
// the client takes nothing.
func (u *speechRequest) pass(ctx context.Context, sound io.Reader, began time.Time) error {
	response := u.call.Response()
	response.Header().Set("Content-Type", u.mimeType)
	buffer, _ := soundBuffers.Get().(*[speechPiece]byte)
	defer soundBuffers.Put(buffer)
	limit := began.Add(min(u.validated.Plan.Timeout, u.server.cfg.TaskTimeout))
	var vendor, client time.Duration // waited for
	for {
		asked := time.Now()
		n, err := sound.Read(buffer[:])
		came := time.Now()
		vendor += came.Sub(asked)
		u.call.writeBy(came.Add(speechStall)) // also for the end of the answer, once the money is settled
		if n > 0 {
			if _, werr := response.Write(buffer[:n]); werr != nil || http.NewResponseController(response).Flush() != nil {
				return u.left()
			}
			client += time.Since(came)
			u.sent += int64(n)
		}
		switch {
		case errors.Is(err, io.EOF):
			u.end = mediagate.SpeechPosted
			return nil
		case ctx.Err() != nil && u.gone():
			return u.left()
		case err != nil:
			return u.broken("the vendor broke off", err)
		case u.sent > u.validated.Plan.MaxBytes:
			return u.broken("the vendor does not end", nil)
		case time.Now().After(limit):
			if client > vendor { // who is slow to listen pays like who leaves
				return u.left()
			}
			return u.broken("the vendor takes too long", nil)
		}
	}
}

// left ends a speech that nobody listens to any more.
func (u *speechRequest) left() error {
	if u.call.server.Err() == nil {
		u.end = mediagate.SpeechPosted
	}
	return errCut
}

// broken ends a speech in the middle. Nothing is charged, and the connection is
// cut, so that the client does not take it for whole.
func (u *speechRequest) broken(why string, err error) error {
	u.server.log.WarnContext(u.call.Request().Context(), "a speech was cut", "speech", u.speech.ID, "why", why, "bytes", u.sent, "error", err)
	return errCut
}

// settle ends the hold. Where the database is away it goes on trying for as long
// as nobody else may end it.
func (u *speechRequest) settle() {
	s := u.server
	ctx := context.WithoutCancel(u.call.Request().Context())
	sure := true // that nothing of ours has ended it
	try := func(patience time.Duration) error {
		ctx, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		won, err := s.cfg.Store.EndSpeech(ctx, u.speech.ID, u.end)
		if err == nil && !won && sure {
			s.log.WarnContext(ctx, "a speech had been voided before it ended", "speech", u.speech.ID, "end", string(u.end))
		}
		sure = sure && err == nil // it may be stored, and only the answer lost
		return err
	}
	if try(endPatience) == nil {
		return
	}
	s.speeches.Go(func() {
		until := time.Now().Add(speechLease)
		for {
			select {
			case <-time.After(endEvery):
			case <-s.life.Done():
			}
			err := try(speechCall)
			if err == nil {
				return
			}
			if time.Now().After(until) || s.life.Err() != nil {
				s.log.ErrorContext(ctx, "a speech was not ended: it will be voided", "speech", u.speech.ID, "end", string(u.end), "error", err)
				return
			}
		}
	})
}

// attrs tell of the speech in the call's log line.
func (u *speechRequest) attrs() []slog.Attr {
	return []slog.Attr{slog.String("speech", u.speech.ID), slog.String("end", string(u.end)), slog.Int64("bytes", u.sent)}
}

// renew keeps the hold from being voided while its process lives.
func (s *Server) renew(ctx context.Context, id string) {
	tick := time.NewTicker(speechRenew)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		try, cancel := context.WithTimeout(ctx, speechCall)
		open, err := s.cfg.Store.RenewSpeech(try, id, speechLease)
		cancel()
		switch {
		case ctx.Err() != nil || err == nil && !open: // settle says what became of it
			return
		case err != nil:
			s.log.WarnContext(ctx, "the hold of a speech was not renewed", "speech", id, "error", err)
		}
	}
}

// sweepSpeeches voids the holds that processes have left behind, this one's
// before it died among them, until the server ends. Each process that answers
// clients looks, so that no other needs to run. While there is something to void
// the next look follows at once.
func (s *Server) sweepSpeeches() {
	tick := time.NewTicker(speechRenew)
	defer tick.Stop()
	for {
		ctx, cancel := context.WithTimeout(s.life, speechCall)
		voided, err := s.cfg.Store.VoidSpeeches(ctx, speechBatch)
		cancel()
		if s.life.Err() != nil {
			return
		}
		if err != nil {
			s.log.Warn("speeches that were left behind were not all voided", "error", err)
		}
		if voided > 0 {
			s.log.Info("speeches were left behind: their holds are voided", "speeches", voided)
			continue
		}
		select {
		case <-tick.C:
		case <-s.life.Done():
			return
		}
	}
}

// speechFailure is what a client is told where there was no sound.
func speechFailure(err error) error {
	e := domainError(err)
	switch e.Kind {
	case mediagate.KindModerated, mediagate.KindNoModel, mediagate.KindUnavailable, mediagate.KindInternal:
		return err
	case mediagate.KindThrottled, mediagate.KindCapacity:
		return &mediagate.Error{
			Kind: mediagate.KindRateLimited, RetryAfter: max(e.RetryAfter, time.Second), Message: "too many speeches at the moment", Err: err,
		}
	case mediagate.KindShutOut, mediagate.KindFunds, mediagate.KindCredentials:
		return &mediagate.Error{Kind: mediagate.KindUnavailable, Message: "no channel is open", Err: err}
	default:
		return &mediagate.Error{Kind: mediagate.KindBadGateway, Message: "the vendor failed", Err: err}
	}
}
