package api

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/mediagate/mediagate"
)

// mute is vendors that say nothing.
type mute struct{ cause error }

func (m *mute) Speak(ctx context.Context, _ string, _ []mediagate.Route, _ json.RawMessage) (io.ReadCloser, error) {
	<-ctx.Done()
	m.cause = context.Cause(ctx)
	return nil, mediagate.Errorf(mediagate.KindAmbiguous, "the vendor's answer was lost")
}

// renewing is a database that only renews leases.
type renewing struct {
	Store
	renewed int
}

func (r *renewing) RenewSpeech(context.Context, string, time.Duration) (bool, error) {
	r.renewed++
	return true, nil
}

// Who asked for the sound learns why the wait for it is over: it is not the
// vendor's fault when a client leaves, and is when it says nothing.
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
				u := &utterance{
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
