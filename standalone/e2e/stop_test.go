package e2e_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// stopLimit is how long a stop may take by the contract.
const stopLimit = 20 * time.Second

// TestStopUnderLoad stops the program while tasks are in every state. The program releases its
// waits and exits with 0. After a new start, it finishes the tasks.
func TestStopUnderLoad(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{shape: standalone})
	s := w.apis[0]
	for range 8 {
		w.submit(job{model: alpha, directive: "duration=10s"})
		w.submit(job{model: alpha})
		w.submit(job{model: theta, directive: "duration=3s"})
	}
	w.awaitProcessing(w.tasks[0])
	code, took := s.terminate(t, 2*stopLimit)
	if code != 0 || took > stopLimit {
		t.Errorf("it exits with %d after %s, want 0 within %s", code, took, stopLimit)
	}
	if _, err := os.Stat(filepath.Join(w.dir, "data", "standalone.json")); !os.IsNotExist(err) {
		t.Errorf("standalone.json stays: %v", err)
	}
	s.start(t)
	w.verify(recoverTime)
}

// TestWorkerStops stops one of several workers. The worker ends its calls and leaves the rest to
// the others.
func TestWorkerStops(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{shape: production, workers: 2})
	for range 6 {
		w.submit(job{model: alpha, directive: "duration=5s"})
		w.submit(job{model: theta, directive: "duration=3s"})
	}
	w.awaitProcessing(w.tasks[0])
	if code, took := w.workers[0].terminate(t, 2*stopLimit); code != 0 || took > stopLimit {
		t.Errorf("the worker exits with %d after %s, want 0 within %s", code, took, stopLimit)
	}
	// The channel's work moves at once, without waiting for a timeout.
	w.verify(90 * time.Second)
	if code, took := w.apis[0].terminate(t, 2*stopLimit); code != 0 || took > stopLimit {
		t.Errorf("the API exits with %d after %s, want 0 within %s", code, took, stopLimit)
	}
}
