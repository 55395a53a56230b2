package api

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/catalog"
)

// mute is vendors that never answer.
type mute struct{ cause error }

func (m *mute) Speak(ctx context.Context, _ string, _ []mediagate.Route, _ json.RawMessage) (io.ReadCloser, error) {
	<-ctx.Done()
	m.cause = context.Cause(ctx)
	return nil, mediagate.Errorf(mediagate.KindAmbiguous, "the vendor's answer was lost")
}

// renewing is a store that only renews leases.
type renewing struct {
	Store
	renewed int
}

func (r *renewing) RenewSpeech(context.Context, string, time.Duration) (bool, error) {
	r.renewed++
	return true, nil
}

// TestSpeechThatNeverComes checks the reason why a wait for sound ends: a silent vendor is an
// error of the vendor, a client that leaves is not.
func TestSpeechThatNeverComes(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		leaves time.Duration
		cause  error
		end    mediagate.SpeechState
		cut    bool
	}{
		"the vendor is silent": {time.Hour, context.DeadlineExceeded, mediagate.SpeechVoided, false},
		"the client leaves":    {30 * time.Second, context.Canceled, mediagate.SpeechPosted, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				vendor, store := &mute{}, &renewing{}
				ctx, leave := context.WithCancel(t.Context())
				defer leave()
				defer time.AfterFunc(test.leaves, leave).Stop()
				req := httptest.NewRequestWithContext(ctx, http.MethodPost, speechPath, http.NoBody)
				u := &speechRequest{
					server: &Server{cfg: Config{Speaker: vendor, Store: store}, log: slog.New(slog.DiscardHandler)},
					call:   &call{Context: echo.New().NewContext(req, httptest.NewRecorder()), server: t.Context()},
					end:    mediagate.SpeechVoided,
				}
				err := u.speak()
				synctest.Wait()
				if !errors.Is(vendor.cause, test.cause) || u.end != test.end || errors.Is(err, errCut) != test.cut {
					t.Errorf("the wait ends with %v, the speech as %s, %v", vendor.cause, u.end, err)
				}
				if store.renewed == 0 {
					t.Error("meanwhile the lease was not renewed")
				}
			})
		})
	}
}

// leftBehind is a store with expired holds, which two processes void.
type leftBehind struct {
	Store
	speeches int
	looks    int
}

func (l *leftBehind) VoidSpeeches(_ context.Context, limit int) (int, error) {
	l.looks++
	found := min(l.speeches, limit)
	l.speeches -= found
	return found / 2, nil // the other process was first with the rest
}

// TestSpeechesLeftBehindAtOnce checks that all holds that a process left are voided in one scan.
func TestSpeechesLeftBehindAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := &leftBehind{speeches: 2_000}
		s := &Server{cfg: Config{Store: store}, log: slog.New(slog.DiscardHandler)}
		s.life, s.end = context.WithCancel(t.Context())
		defer s.end()
		go s.sweepSpeeches()
		synctest.Wait()
		if store.speeches > 0 {
			t.Errorf("%d holds wait for the next look", store.speeches)
		}
		looks := store.looks
		time.Sleep(speechRenew - time.Nanosecond)
		if store.looks != looks {
			t.Errorf("%d looks at nothing", store.looks-looks)
		}
	})
}

// deadlines is a connection that records its write deadline.
type deadlines struct {
	*httptest.ResponseRecorder
	write time.Time
}

func (d *deadlines) SetWriteDeadline(t time.Time) error {
	d.write = t
	return nil
}

// late is a vendor whose sound ends some time after its last piece.
type late struct{ pause time.Duration }

func (l late) Speak(context.Context, string, []mediagate.Route, json.RawMessage) (io.ReadCloser, error) {
	r, w := io.Pipe()
	go func() {
		_, _ = w.Write([]byte("sound"))
		time.Sleep(l.pause)
		_ = w.Close()
	}()
	return r, nil
}

// TestSpeechEndsLate checks that a late end of the vendor's sound is passed on, even if the
// charge takes time before it. Otherwise a charged speech would be cut.
func TestSpeechEndsLate(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		answer := &deadlines{ResponseRecorder: httptest.NewRecorder()}
		req := httptest.NewRequestWithContext(t.Context(), http.MethodPost, speechPath, http.NoBody)
		u := &speechRequest{
			server:    &Server{cfg: Config{Speaker: late{29 * time.Second}, Store: &renewing{}, TaskTimeout: time.Hour}, log: slog.New(slog.DiscardHandler)},
			call:      &call{Context: echo.New().NewContext(req, answer), server: t.Context()},
			validated: validated{Request: catalog.Request{Plan: mediagate.Plan{Timeout: time.Hour, MaxBytes: 100}}},
		}
		if err := u.speak(); err != nil || u.end != mediagate.SpeechPosted || answer.Body.String() != "sound" {
			t.Fatalf("%q, %s, %v", answer.Body, u.end, err)
		}
		if left := time.Until(answer.write); left < speechError {
			t.Errorf("%s are left to end the answer", left)
		}
	})
}

// forgetful is a store whose first answer to an end is lost.
type forgetful struct {
	Store
	lost, ended bool
}

func (f *forgetful) EndSpeech(context.Context, string, mediagate.SpeechState) (bool, error) {
	won := !f.ended
	f.ended = true
	if f.lost {
		f.lost = false
		return false, mediagate.Errorf(mediagate.KindUnavailable, "the answer is lost")
	}
	return won, nil
}

// TestSpeechWhoseEndIsLost checks that the log reports the right end: an end that was stored
// although its answer was lost is not a void.
func TestSpeechWhoseEndIsLost(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		store *forgetful
		says  bool
	}{
		"stored":                   {&forgetful{}, false},
		"stored, the answer lost":  {&forgetful{lost: true}, false},
		"somebody else came first": {&forgetful{ended: true}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var log bytes.Buffer
				s := &Server{cfg: Config{Store: test.store}, log: slog.New(slog.NewTextHandler(&log, nil)), life: t.Context()}
				req := httptest.NewRequestWithContext(t.Context(), http.MethodPost, speechPath, http.NoBody)
				u := &speechRequest{server: s, end: mediagate.SpeechPosted, call: &call{Context: echo.New().NewContext(req, httptest.NewRecorder())}}
				u.settle()
				s.speeches.Wait()
				if says := strings.Contains(log.String(), "had been voided"); says != test.says {
					t.Errorf("the log says %q", log.String())
				}
			})
		})
	}
}
