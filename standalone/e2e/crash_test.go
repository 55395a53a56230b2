package e2e_test

import (
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mediagate/mediagate/internal/failpoint"
)

// quickPoints are the failpoints that every run passes, on the standalone.
var quickPoints = []string{
	failpoint.SubmitCommitted, failpoint.VendorAccepted, failpoint.VendorIDStored, failpoint.PollTerminal,
	failpoint.MirrorHalf, failpoint.SettleCommitted, failpoint.WebhookSent,
}

// passes says which points a model's path has: a synchronous image is never
// polled for, only Gemini hands its files over instead of pointing to them, and
// only Vidu's models bound what clients send.
func passes(model, point string) bool {
	switch point {
	case failpoint.SpeechHeld, failpoint.SpeechBegun, failpoint.SpeechSent: // see TestSpeechOutlivesNoProcess
		return false
	case failpoint.TaskErased: // see TestErasureOutlivesTheProcess
		return false
	case failpoint.ModalBegun, failpoint.ModalCommitted, failpoint.ModalExpired: // of art, see TestCrashChains
		return false
	case failpoint.SlotGranted: // of channels with slots, see TestD7SlotsOutliveTheirWorker
		return false
	case failpoint.HandedOver:
		return model == zeta
	case failpoint.InputsChecked:
		return model == beta
	case failpoint.MirrorHalf:
		return model != zeta
	case failpoint.PollTerminal, failpoint.OutcomeStored:
		return !images[model]
	default:
		return true
	}
}

// The limits of recovery are sums of timeouts: a dead worker is noticed after
// 10 to 45 s, and a vendor that cannot have got the call yet is asked twice
// before it is called again, some 80 s after the first time.
const (
	crashLimit  = 90 * time.Second
	recoverTime = 4 * time.Minute
)

// TestCrashFailpoints kills the process at each point of the path, starts it
// again, and expects the end as if nothing had happened.
func TestCrashFailpoints(t *testing.T) {
	t.Parallel()
	t.Run(standalone, func(t *testing.T) {
		t.Parallel()
		for _, point := range quickPoints {
			t.Run(point, func(t *testing.T) {
				t.Parallel()
				crash(t, standalone, alpha, point)
			})
		}
		t.Run(failpoint.HandedOver, func(t *testing.T) {
			t.Parallel()
			crash(t, standalone, zeta, failpoint.HandedOver)
		})
		t.Run(failpoint.InputsChecked, func(t *testing.T) {
			t.Parallel()
			crash(t, standalone, beta, failpoint.InputsChecked)
		})
	})
	if !suite.verify {
		return
	}
	t.Run(production, func(t *testing.T) {
		t.Parallel()
		for _, model := range []string{alpha, beta, delta, theta, zeta} {
			for _, point := range failpoint.Names() {
				if passes(model, point) {
					t.Run(point+"/"+model, func(t *testing.T) {
						t.Parallel()
						crash(t, production, model, point)
					})
				}
			}
		}
	})
}

func crash(t *testing.T, shape, model, point string) {
	t.Helper()
	w := newWorld(t, options{shape: shape, failpoint: point})
	if point == failpoint.SubmitCommitted {
		w.submitAgain(job{model: model, idemKey: "once " + randomText(8)})
	} else {
		task := w.submit(job{model: model})
		w.victim().awaitKilled(t, crashLimit)
		w.victim().start(t)
		w.expectEnd(task, point)
	}
	w.verify(recoverTime)
}

// expectEnd is what becomes of a task whose worker dies at the point. A vendor that
// cannot be asked what it did is sent nothing twice: a task that waits for an answer
// fails, any other is parked until somebody decides.
func (w *world) expectEnd(t *task, point string) {
	w.t.Helper()
	if t.model == alpha || point != failpoint.IntentStored && point != failpoint.VendorAccepted {
		return
	}
	t.want, t.code = "failed", "provider_submission_unknown"
	if point == failpoint.IntentStored {
		t.minJobs, t.maxJobs = 0, 0
	}
	if !images[t.model] {
		w.decide(t, "fail")
		return
	}
	if t.model == zeta && point == failpoint.VendorAccepted { // it had handed its file over
		t.left = 1
		eventually(w.t, recoverTime, "what "+t.id+" leaves is to be swept", func() error {
			due, err := w.column("SELECT id FROM tasks WHERE id = $1 AND sweep_at IS NOT NULL", t.id)
			if err == nil && len(due) != 1 {
				err = errors.New("it is not")
			}
			return err
		})
	}
}

// submitAgain is a client whose connection breaks before the acknowledgement:
// it says the same again and is told of the task that was stored before.
func (w *world) submitAgain(j job) {
	w.t.Helper()
	r, task := w.request(j)
	if a, err := r.do(w.t.Context()); err == nil {
		w.t.Fatalf("the submit was answered: %d %s", a.status, a.body)
	}
	w.victim().awaitKilled(w.t, crashLimit)
	w.victim().start(w.t)
	a, err := r.do(w.t.Context())
	if err == nil {
		task.id, err = taskID(a)
	}
	if err != nil {
		w.t.Fatalf("submit again: %v", err)
	}
	if diff := cmp.Diff("true", a.header.Get("Idempotency-Replayed")); diff != "" || a.status != http.StatusOK {
		w.t.Errorf("status %d, Idempotency-Replayed (-want +got):\n%s", a.status, diff)
	}
	w.tasks = append(w.tasks, task)
}
