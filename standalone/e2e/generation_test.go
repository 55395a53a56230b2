package e2e_test

import (
	"testing"
)

// TestD4OtherGeneration changes a channel to the vendor's other generation and back (D4). Jobs
// in progress continue in their generation. A job whose answer was lost just before is found
// there. No job is submitted a second time.
func TestD4OtherGeneration(t *testing.T) {
	t.Parallel()
	long(t)
	legacy := klingChannel("kling-a", klingKey, nil)
	newer := klingChannel("kling-a", klingKey, map[string]any{"options": map[string]string{"generation": "v2"}})
	w := newWorld(t, options{shape: production, channels: []map[string]any{legacy}})
	for _, next := range []map[string]any{newer, legacy} {
		w.awaitProcessing(w.submit(job{model: alpha, directive: "duration=25s"}))
		w.awaitProcessing(w.submit(job{model: alpha, directive: "duration=25s"}))                  // one call polls both, if the generation allows that
		w.awaitJob(w.submit(job{model: alpha, directive: "fail=timeout, at=submit, duration=5s"})) // its answer is lost
		w.reconfigure(next)
	}
	w.verify(recoverTime)
	w.checkNeverParked()
	w.checkSentOnce()
	w.checkCharged("kling unit")
}
