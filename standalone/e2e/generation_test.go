package e2e_test

import (
	"testing"
)

// D4: a channel changes to the vendor's other generation and back. Jobs in
// flight go on where they are, and one whose answer was lost just before is
// found there: none is sent a second time.
func TestD4OtherGeneration(t *testing.T) {
	t.Parallel()
	legacy := klingChannel("kling-a", klingKey, nil)
	newer := klingChannel("kling-a", klingKey, map[string]any{"options": map[string]string{"generation": "v2"}})
	w := newWorld(t, options{shape: production, channels: []map[string]any{legacy}})
	for _, next := range []map[string]any{newer, legacy} {
		w.awaitProcessing(w.submit(job{model: alpha, directive: "duration=25s"}))
		w.awaitProcessing(w.submit(job{model: alpha, directive: "duration=25s"}))                  // one call asks for both, where that can be
		w.awaitJob(w.submit(job{model: alpha, directive: "fail=timeout, at=submit, duration=5s"})) // its answer is lost
		w.reconfigure(next)
	}
	w.verify(recoverTime)
	w.checkNeverParked()
	w.checkSentOnce()
	w.checkCharged("kling unit")
}
