package e2e_test

import (
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mediagate/mediagate/internal/failpoint"
)

// quickPoints are the failpoints of every run, with the standalone program.
var quickPoints = []string{
	failpoint.SubmitCommitted, failpoint.VendorAccepted, failpoint.VendorIDStored, failpoint.PollTerminal,
	failpoint.MirrorHalf, failpoint.SettleCommitted, failpoint.WebhookSent,
}

// passes reports whether the tasks of a model pass the failpoint. A synchronous image is never
// polled. Only Gemini hands its files over instead of linking to them. Only Vidu's models have
// bounds for clients' media.
func passes(model, point string) bool {
	switch point {
	case failpoint.SpeechHeld, failpoint.SpeechBegun, failpoint.SpeechSent: // see TestSpeechOutlivesNoProcess
		return false
	case failpoint.TaskErased: // see TestErasureOutlivesTheProcess
		return false
	case failpoint.ModalBegun, failpoint.ModalCommitted, failpoint.ModalExpired: // only art; see TestCrashChains
		return false
	case failpoint.SlotGranted: // only channels with slots; see TestD7SlotsOutliveTheirWorker
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

// The limits of recovery are sums of timeouts. A dead worker is noticed after 10 to 45 s. A
// vendor that may not have received the call yet is asked for the job twice before the call is
// repeated, about 80 s after the first call.
const (
	crashLimit  = 90 * time.Second
	recoverTime = 4 * time.Minute
)

// TestCrashFailpoints kills the process at each failpoint of the path and starts it again. The
// end must be the same as without a crash.
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

// expectEnd sets the expected end of a task whose worker dies at the point. If the vendor cannot
// look the job up, the submit is not repeated: a synchronous task fails, and any other task is
// parked until an operator decides.
func (w *world) expectEnd(t *task, point string) {
	w.t.Helper()
	if t.model == alpha || point != failpoint.IntentStored && point != failpoint.VendorAccepted {
		return
	}
	t.wantStatus, t.wantCode = "failed", "provider_submission_unknown"
	if point == failpoint.IntentStored {
		t.minJobs, t.maxJobs = 0, 0
	}
	if !images[t.model] {
		w.decide(t, "fail")
		return
	}
	if t.model == zeta && point == failpoint.VendorAccepted { // the vendor had handed over its file
		t.objectsIfFailed = 1
		eventually(w.t, recoverTime, "what "+t.id+" leaves is to be swept", func() error {
			due, err := w.column("SELECT id FROM tasks WHERE id = $1 AND sweep_at IS NOT NULL", t.id)
			if err == nil && len(due) != 1 {
				err = errors.New("it is not")
			}
			return err
		})
	}
}

// submitAgain submits a job over a connection that breaks before the acknowledgement, and
// repeats the submit. The second answer must be the task that was stored before.
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
