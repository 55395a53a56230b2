package e2e_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mediagate/mediagate/internal/failpoint"
)

// TestVerify runs the scenarios that take minutes. It runs only with MEDIAGATE_VERIFY.
func TestVerify(t *testing.T) {
	t.Parallel()
	scenarios := map[string]func(*testing.T){}
	if suite.verify {
		scenarios = actionScenarios()
		maps.Copy(scenarios, map[string]func(*testing.T){
			"workers away past the deadline":               verifyWorkersAway,
			"sender stopped before its call":               verifySenderStopped,
			"sender stopped and continued before others":   verifySenderContinues,
			"sender stopped with the answer":               verifySenderStoppedWithAnswer,
			"worker frozen for a while":                    verifyFrozenWorker,
			"killed in the middle of a large file":         verifyKilledInLargeFile,
			"standalone killed again and again under load": verifyStandaloneKills,
			"failover under load":                          verifyFailover,
		})
	}
	t.Logf("%d scenarios", len(scenarios))
	for name, run := range scenarios {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run(t)
		})
	}
}

// verifyStandaloneKills kills the standalone program with all its servers, at random moments.
func verifyStandaloneKills(t *testing.T) {
	t.Helper()
	w := newWorld(t, options{shape: standalone})
	for i := range 20 {
		w.submit(job{model: alpha, directive: fmt.Sprintf("duration=%ds", i)})
	}
	for range 5 {
		time.Sleep(time.Duration(2000+rand.IntN(5000)) * time.Millisecond) // a random moment
		w.apis[0].restart(t)
	}
	w.verify(recoverTime)
}

// verifyKilledInLargeFile kills the worker when half of a file with several parts is stored.
// Nothing of the first upload stays behind.
func verifyKilledInLargeFile(t *testing.T) {
	t.Helper()
	w := newWorld(t, options{shape: production, failpoint: failpoint.MirrorHalf})
	w.submit(job{model: alpha, directive: "result_bytes=40000000"})
	w.victim().awaitKilled(t, crashLimit)
	w.victim().start(t)
	w.verify(recoverTime)
}

// verifyWorkersAway stops all workers until long after the deadline. A job that the vendor has
// finished in the meantime still completes its task, because only our own poll was late.
func verifyWorkersAway(t *testing.T) {
	t.Helper()
	w := newWorld(t, options{shape: production, settings: map[string]any{"task_timeout": "15s"}})
	w.awaitProcessing(w.submit(job{model: alpha, directive: "duration=8s"}))
	w.workers[0].kill()
	unsent := w.submit(job{model: alpha})
	time.Sleep(20 * time.Second) // the deadline passes
	w.workers[0].start(t)
	// A task that was never sent fails at its deadline.
	unsent.wantStatus, unsent.wantCode, unsent.minJobs, unsent.maxJobs = "failed", "generation_timeout", 0, 0
	w.verify(recoverTime)
}

// verifySenderStopped stops the sender between its intent and its call. Another worker finds
// that the vendor has no such job, and submits it. When the sender continues, its time is up.
func verifySenderStopped(t *testing.T) {
	t.Helper()
	w := newWorld(t, options{shape: production, workers: 2, workersOff: true, armed: 1, failpoint: failpoint.IntentStored + failpoint.StopSuffix})
	w.workers[0].start(t)
	task := w.submit(job{model: alpha, directive: "duration=30s"})
	w.workers[0].awaitStopped(t, crashLimit)
	w.workers[1].start(t)
	w.awaitJob(task)
	w.workers[0].signal(syscall.SIGCONT)
	w.verify(recoverTime)
	w.checkCalls(task, 1)
}

// checkCalls checks how many submits for the task the vendor received, whether they created a
// job or not.
func (w *world) checkCalls(t *task, want int) {
	w.t.Helper()
	var calls struct {
		Calls []struct {
			Kind       string `json:"kind"`
			ExternalID string `json:"external_id"`
		} `json:"calls"`
	}
	a, err := request{method: http.MethodGet, url: w.sandbox + "/_sandbox/calls"}.do(w.t.Context())
	if err == nil {
		err = a.decode(&calls)
	}
	if err != nil {
		w.t.Fatal(err)
	}
	submits := 0
	for _, c := range calls.Calls {
		if c.Kind == "submit" && strings.HasPrefix(c.ExternalID, t.id) {
			submits++
		}
	}
	if submits != want {
		w.t.Errorf("the vendor received %d submits for %s, want %d", submits, t.id, want)
	}
}

// verifySenderContinues stops the sender as well, but lets it continue when its time is up and
// another worker still looks for the job. The sender must not send. It thereby proves that there
// is no job.
func verifySenderContinues(t *testing.T) {
	t.Helper()
	w := newWorld(t, options{
		shape: production, workers: 2, workersOff: true, armed: 1, failpoint: failpoint.IntentStored + failpoint.StopSuffix,
		channels: []map[string]any{klingChannel("kling-a", klingKey, nil)}, // its calls carry our ids, unlike those of a second vendor
	})
	w.workers[0].start(t)
	task := w.submit(job{model: alpha})
	w.workers[0].awaitStopped(t, crashLimit)
	w.workers[1].start(t)
	eventually(t, crashLimit, "others look for the job", func() error {
		states, err := w.column("SELECT state FROM attempts WHERE task_id = $1", task.id)
		if err == nil && (len(states) != 1 || states[0] != "unknown") {
			err = fmt.Errorf("attempts %v", states)
		}
		return err
	})
	w.workers[0].signal(syscall.SIGCONT)
	task.resubmitted = true
	w.verify(recoverTime)
	w.checkCalls(task, 1)
}

// verifySenderStoppedWithAnswer stops the sender after the vendor has answered. Another worker
// finds the job. The sender's late report changes nothing.
func verifySenderStoppedWithAnswer(t *testing.T) {
	t.Helper()
	w := newWorld(t, options{shape: production, workers: 2, workersOff: true, armed: 1, failpoint: failpoint.VendorAccepted + failpoint.StopSuffix})
	w.workers[0].start(t)
	task := w.submit(job{model: alpha})
	w.workers[0].awaitStopped(t, crashLimit)
	w.workers[1].start(t)
	w.await(task, recoverTime, "completes", func(o object) bool { return o.Status == "completed" })
	w.workers[0].signal(syscall.SIGCONT)
	w.verify(recoverTime)
	w.checkCalls(task, 1)
}

// verifyFrozenWorker freezes a worker for longer than every timeout and then lets it continue.
func verifyFrozenWorker(t *testing.T) {
	t.Helper()
	w := newWorld(t, options{shape: production, workers: 2})
	for i := range 12 {
		w.submit(job{model: alpha, directive: fmt.Sprintf("duration=%ds", i)})
	}
	time.Sleep(4 * time.Second) // until there are tasks in every state
	w.workers[0].signal(syscall.SIGSTOP)
	time.Sleep(70 * time.Second)
	w.workers[0].signal(syscall.SIGCONT)
	w.verify(recoverTime)
}
