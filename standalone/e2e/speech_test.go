package e2e_test

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/mediagate/mediagate/internal/failpoint"
)

// TestSpeechOutlivesNoProcess kills the process during a speech. The client gets an incomplete
// answer and pays nothing, and its hold ends within a minute. The rows are the same at each
// failpoint of a speech, so every run uses only the last one, and make verify also the others.
func TestSpeechOutlivesNoProcess(t *testing.T) {
	t.Parallel()
	points := []string{failpoint.SpeechSent}
	if suite.verify {
		points = append(points, failpoint.SpeechHeld, failpoint.SpeechBegun)
	}
	for _, point := range points {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, options{shape: standalone, failpoint: point})
			r := request{
				method: http.MethodPost, url: w.apiURLs[0] + "/v1/audio/speech", key: w.key,
				body: map[string]any{"model": "eta-4o-mini-tts", "input": "Ahoy!", "voice": "coral"},
			}
			if a, err := r.do(t.Context()); err == nil {
				t.Fatalf("the speech was answered whole: %d", a.status)
			}
			w.victim().awaitKilled(t, crashLimit)
			w.victim().start(t)
			type balance struct{ Available, Held, Spent string }
			got, want := balance{}, balance{granted + ".00", "0.00", "0.00"}
			eventually(t, time.Minute, "the hold of a dead process", func() error {
				w.admin(http.MethodGet, "/accounts/"+w.account, nil, &got)
				if got != want {
					return fmt.Errorf("the account has %+v", got)
				}
				return nil
			})
			var check struct {
				OK       bool
				Problems []string
			}
			if w.admin(http.MethodGet, "/ledger/check", nil, &check); !check.OK {
				t.Errorf("the ledger: %q", check.Problems)
			}
			if a, err := r.do(t.Context()); err != nil || a.status != http.StatusOK || len(a.body) == 0 {
				t.Errorf("the next one: %d, %v", a.status, err)
			}
			if w.admin(http.MethodGet, "/accounts/"+w.account, nil, &got); got.Held != "0.00" || got.Spent != "0.0003" {
				t.Errorf("the account has %+v", got)
			}
		})
	}
}
