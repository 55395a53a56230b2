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

// Speaker has texts spoken by vendors.
type Speaker interface {
	// Speak returns once the first byte of sound has come. Its errors have the kinds that
	// describe what a vendor did, or are KindShutOut or KindUnavailable. An error of the sound's
	// reader means that the vendor broke off. The end of ctx ends the vendor's call, and so does
	// closing the sound. The cause of ctx is context.DeadlineExceeded if the vendor took too
	// long.
	Speak(ctx context.Context, model string, routes []mediagate.Route, params json.RawMessage) (io.ReadCloser, error)
}

// The bounds of a speech. Its hold has a lease, which its process renews. If the process dies, the
// lease ends after speechLease, and another process voids the hold within speechRenew: in less than
// a minute in all.
const (
	speechLease = 30 * time.Second
	speechRenew = 10 * time.Second // also how often each process looks for holds to void
	speechBatch = 100
	speechCall  = 5 * time.Second  // for one query about holds
	speechFirst = 60 * time.Second // until the first sound
	speechStall = 30 * time.Second // how long a client may read nothing
	speechError = 10 * time.Second // for sending an error
	speechPiece = 32 << 10
	endPatience = 2 * time.Second // for settling the money before the client sees the end
	endEvery    = time.Second     // between two attempts to end a hold
)

// soundTypes are the formats of answers. The first is the default.
var soundTypes = []struct{ format, mimeType string }{
	{"mp3", "audio/mpeg"},
	{"opus", "audio/opus"},
	{"aac", "audio/aac"},
	{"flac", "audio/flac"},
	{"wav", "audio/wav"},
	{"pcm", "audio/pcm"},
}

// soundType returns the media type of the sound that a request asks for.
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

// soundBuffers are reused. A stream needs one, whatever its length.
var soundBuffers = sync.Pool{New: func() any { return new([speechPiece]byte) }}

// handleSpeech has a text spoken and passes the sound on while the vendor makes it. It holds the
// money before it calls the vendor, and charges it once all sound was passed on or the client has
// left. If the vendor or the gateway fails, it gives the money back and cuts the connection. A
// speech makes no task: the database keeps only what the hold needs.
func (s *Server) handleSpeech(c *call) error {
	raw, body, err := s.readBody(c, c.models.fieldMasks[speechPath])
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
	v, err := s.validate(c, submitRequest{endpoint: speechPath, body: body, size: len(raw), strict: names})
	if err != nil {
		return err
	}
	if err := s.moderate(c, v); err != nil {
		return err
	}
	if err := s.reauthorize(c.ctx, c); err != nil {
		return err
	}
	c.bodyPermit.Release()
	c.readBy(time.Time{}) // from here on reading only shows whether the client is still there
	mimeType, err := soundType(v.Params)
	if err != nil {
		return err
	}
	permit, err := c.tryAcquire(s.cfg.Limits.Speeches, 1, "speeches in progress")
	if err != nil {
		return err
	}
	defer permit.Release()
	s.speeches.Add(1)
	defer s.speeches.Done()
	u := &speechRequest{
		server:    s,
		call:      c,
		validated: v,
		mimeType:  mimeType,
		end:       mediagate.SpeechVoided,
		speech: mediagate.Speech{
			ID:        s.newID("speech_"),
			AccountID: c.caller.key.AccountID,
			KeyID:     c.caller.key.ID,
			RequestID: c.requestID,
			Model:     v.model,
			Charges:   v.Charges,
			Hold:      v.hold(),
		},
	}
	if err := s.cfg.Store.OpenSpeech(c.ctx, u.speech, speechLease); err != nil {
		return err
	}
	c.speech = u
	defer u.settle() // also after a panic, which voids the hold
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

	end  mediagate.SpeechState // how the hold has to end
	sent int64
}

// speak gets the sound and passes it on. Unlike other calls it uses the request's own context: a
// client that has closed its sending side counts as gone, so that the vendor stops when the client
// no longer listens.
func (u *speechRequest) speak() error {
	c := u.call
	ctx, end := context.WithCancelCause(c.Request().Context())
	cancel := func() { end(nil) }
	defer cancel()
	defer context.AfterFunc(c.server, cancel)()
	renewing, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	go u.server.renewHold(renewing, u.speech.ID)

	began := time.Now()
	patience := time.AfterFunc(speechFirst, func() { end(context.DeadlineExceeded) })
	sound, err := u.server.cfg.Speaker.Speak(ctx, u.validated.model, u.validated.Plan.Routes, u.validated.Params)
	if err != nil {
		return u.answerUnspoken(err, !patience.Stop())
	}
	defer sound.Close()
	if !patience.Stop() { // the time ran out just now, and the sound would be cut off
		return u.answerUnspoken(mediagate.Errorf(mediagate.KindAmbiguous, "no sound came in time"), true)
	}
	failpoint.Hit(failpoint.SpeechBegun)
	err = u.relay(ctx, sound, began)
	if err == nil {
		failpoint.Hit(failpoint.SpeechSent)
	}
	return err
}

// clientLeft reports whether the client has left while the server goes on.
func (u *speechRequest) clientLeft() bool {
	return u.call.server.Err() == nil && u.call.Request().Context().Err() != nil
}

// answerUnspoken answers a call without any sound. A client that left before the vendor answered
// is charged, like one that leaves later, since the vendor may have spoken (KindAmbiguous). After
// any other error, nothing is charged.
func (u *speechRequest) answerUnspoken(err error, late bool) error {
	if u.clientLeft() && !late {
		if mediagate.Is(err, mediagate.KindAmbiguous) {
			u.end = mediagate.SpeechPosted
		}
		return errCut
	}
	u.call.writeBy(time.Now().Add(speechError))
	return speechFailure(err)
}

// relay passes the sound on piece by piece, as it comes. It reads no more than the client takes.
func (u *speechRequest) relay(ctx context.Context, sound io.Reader, began time.Time) error {
	response := u.call.Response()
	response.Header().Set("Content-Type", u.mimeType)
	buffer, _ := soundBuffers.Get().(*[speechPiece]byte)
	defer soundBuffers.Put(buffer)
	limit := began.Add(min(u.validated.Plan.Timeout, u.server.cfg.TaskTimeout))
	var vendor, client time.Duration // time spent waiting for each
	for {
		asked := time.Now()
		n, err := sound.Read(buffer[:])
		came := time.Now()
		vendor += came.Sub(asked)
		u.call.writeBy(came.Add(speechStall)) // also covers the end of the answer, after the money is settled
		if n > 0 {
			if _, werr := response.Write(buffer[:n]); werr != nil || http.NewResponseController(response).Flush() != nil {
				return u.endForClient()
			}
			client += time.Since(came)
			u.sent += int64(n)
		}
		switch {
		case errors.Is(err, io.EOF):
			u.end = mediagate.SpeechPosted
			return nil
		case ctx.Err() != nil && u.clientLeft():
			return u.endForClient()
		case err != nil:
			return u.cut("the vendor broke off", err)
		case u.sent > u.validated.Plan.MaxBytes:
			return u.cut("the vendor does not end", nil)
		case time.Now().After(limit):
			if client > vendor { // a slow client pays like one that leaves
				return u.endForClient()
			}
			return u.cut("the vendor takes too long", nil)
		}
	}
}

// endForClient ends a speech whose client has left or is too slow. It charges the client.
func (u *speechRequest) endForClient() error {
	if u.call.server.Err() == nil {
		u.end = mediagate.SpeechPosted
	}
	return errCut
}

// cut ends a speech in the middle. It charges nothing and cuts the connection, so that the client
// does not take the sound for complete.
func (u *speechRequest) cut(why string, err error) error {
	u.server.log.WarnContext(
		u.call.Request().Context(), "a speech was cut", "speech", u.speech.ID, "why", why, "bytes", u.sent, "error", err,
	)
	return errCut
}

// settle ends the hold. While the database is away it keeps trying until another process may void
// the hold.
func (u *speechRequest) settle() {
	s := u.server
	ctx := context.WithoutCancel(u.call.Request().Context())
	sure := true // no earlier attempt of ours can have ended it
	try := func(patience time.Duration) error {
		ctx, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		won, err := s.cfg.Store.EndSpeech(ctx, u.speech.ID, u.end)
		if err == nil && !won && sure {
			s.log.WarnContext(ctx, "a speech had been voided before it ended", "speech", u.speech.ID, "end", string(u.end))
		}
		sure = sure && err == nil // the end may be stored although its answer was lost
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
				s.log.ErrorContext(
					ctx, "a speech was not ended: it will be voided", "speech", u.speech.ID, "end", string(u.end), "error", err,
				)
				return
			}
		}
	})
}

// attrs describe the speech in the call's log line.
func (u *speechRequest) attrs() []slog.Attr {
	return []slog.Attr{slog.String("speech", u.speech.ID), slog.String("end", string(u.end)), slog.Int64("bytes", u.sent)}
}

// renewHold renews the lease of the hold, so that it is not voided while its process lives.
func (s *Server) renewHold(ctx context.Context, id string) {
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
		case ctx.Err() != nil || err == nil && !open: // settle reports what happened to it
			return
		case err != nil:
			s.log.WarnContext(ctx, "the hold of a speech was not renewed", "speech", id, "error", err)
		}
	}
}

// sweepSpeeches voids the holds that dead processes have left behind, until the server ends.
// Every process that serves the API does this, so no other process is needed. It continues at
// once as long as it finds holds to void.
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
			s.log.Warn("not all abandoned speeches were voided", "error", err)
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

// speechFailure is the client's error for a speech without sound.
func speechFailure(err error) error {
	e := domainError(err)
	switch e.Kind {
	case mediagate.KindModerated, mediagate.KindNoModel, mediagate.KindUnavailable, mediagate.KindInternal:
		return err
	case mediagate.KindThrottled, mediagate.KindCapacity:
		return &mediagate.Error{
			Kind: mediagate.KindRateLimited, RetryAfter: max(e.RetryAfter, time.Second),
			Message: "too many speeches at once, try again later", Err: err,
		}
	case mediagate.KindShutOut, mediagate.KindFunds, mediagate.KindCredentials:
		return &mediagate.Error{Kind: mediagate.KindUnavailable, Message: "no channel is open", Err: err}
	default:
		return &mediagate.Error{Kind: mediagate.KindBadGateway, Message: "the vendor failed", Err: err}
	}
}
