package e2e_test

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"

	"github.com/mediagate/mediagate/internal/failpoint"
)

// The chains during which the process dies.
const (
	crashStems    = "an archive of stems"
	crashPictures = "pictures that are cut"
	crashInpaint  = "pictures that wait"       // up to the wait for modal parameters
	crashModal    = "modal parameters"         // from the modal call to the end
	crashExpiry   = "pictures nobody waits on" // expiry without modal parameters
)

// crashPoints returns the failpoints that each chain passes, in order.
func crashPoints() map[string][]string {
	begins := []string{failpoint.SubmitCommitted, failpoint.IntentStored, failpoint.VendorAccepted, failpoint.VendorIDStored}
	ends := []string{
		failpoint.PollTerminal, failpoint.OutcomeStored, failpoint.MirrorHalf, failpoint.Mirrored,
		failpoint.SettleBeforeCommit, failpoint.SettleCommitted, failpoint.WebhookBeforeSend, failpoint.WebhookSent,
	}
	whole := slices.Concat(begins, ends)
	settles := []string{failpoint.SettleBeforeCommit, failpoint.SettleCommitted, failpoint.WebhookBeforeSend, failpoint.WebhookSent}
	return map[string][]string{
		crashStems: whole, crashPictures: whole,
		crashInpaint: append(slices.Clone(begins), failpoint.ModalBegun), // this chain stops before its end
		crashModal:   slices.Concat([]string{failpoint.ModalCommitted}, begins[1:], ends),
		crashExpiry:  append([]string{failpoint.ModalExpired}, settles...),
	}
}

// TestCrashChains kills the process at the failpoints that chains pass and starts it again. The
// end must be the same as without a crash: the same files, the same money, one job at the
// vendor. The chains of a world run one after the other.
func TestCrashChains(t *testing.T) {
	t.Parallel()
	worlds := map[string]map[string][]string{
		"waiting": {crashInpaint: {failpoint.ModalBegun}, crashModal: {failpoint.ModalCommitted}},
		"expiry":  {crashExpiry: {failpoint.ModalExpired}},
		"mirror":  {crashStems: {failpoint.MirrorHalf}, crashPictures: {failpoint.MirrorHalf}},
	}
	if suite.verify {
		worlds = map[string]map[string][]string{}
		for chain, points := range crashPoints() {
			for half := range slices.Chunk(points, 4) {
				worlds[chain+" from "+half[0]] = map[string][]string{chain: half}
			}
		}
	}
	for name, chains := range worlds {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			settings := map[string]any{}
			if _, ok := chains[crashExpiry]; ok {
				settings["art_modal_timeout"] = "5s"
			}
			w := newWorld(t, options{shape: standalone, settings: settings})
			d := &crashingUser{user: w.user(t)}
			for chain, points := range chains {
				for _, point := range points {
					d.runWithCrash(chain, point)
				}
			}
			d.checkSettled()
			d.checkBucket(d.ends)
			d.checkWorkflows()
		})
	}
}

// crashingUser is a user whose gateway dies, with the tasks from which the chains begin.
type crashingUser struct {
	*user
	song, picture *task
}

// step returns the chain's request, its provider, and a check of the result.
func (d *crashingUser) step(chain string) (s step, provider string, check func(*task)) {
	d.t.Helper()
	grid := func(t *task) { d.checkGrid(t, pictureWidth, pictureHeight) }
	switch chain {
	case crashStems:
		if d.song == nil {
			d.song = d.run(songStep)
		}
		of := d.clips(d.song, 2)[0].AudioID
		s := after(d.song, 1, step{path: songs + "/stemsAll", price: "0.25"})
		return s, "acedata", func(t *task) { d.checkStems(t, of, fourTracks(songSeconds)) }
	case crashPictures:
		return imagine(), "midjourney", grid
	default:
		if d.picture == nil {
			_, d.picture = d.upscaled()
		}
		return grids("/inpaint", "0.04", map[string]any{"task_id": d.picture.id}), "midjourney", grid
	}
}

// runWithCrash runs a chain while the process dies at the point.
func (d *crashingUser) runWithCrash(chain, point string) {
	d.t.Helper()
	s, provider, check := d.step(chain)
	d.t.Logf("%s, %s", chain, point)
	before := d.vendorHas(provider)
	var t *task
	if chain == crashModal {
		t = d.submitStep(s)
		d.awaitModal(t)
		modal := map[string]any{"task_id": t.id, "prompt": "a straw hat", "mask_url": d.mask()}
		if modalID := d.submitThroughCrash(point, artgen+"/modal", modal); modalID != t.id {
			d.t.Errorf("the modal call names %s, want %s", modalID, t.id)
		}
	} else {
		t = &task{model: s.path, hook: true, files: s.files, objects: s.objects, price: s.price}
		d.tasks = append(d.tasks, t)
		s.body = maps.Clone(s.body)
		s.body["webhook"] = d.hooks.url
		t.id = d.submitThroughCrash(point, s.path, s.body)
	}
	switch {
	case chain == crashExpiry:
		d.expires(t)
	case chain != crashModal && point == failpoint.IntentStored:
		// The vendor cannot look the job up. An operator has the submit repeated.
		d.decide(t, "retry")
	case chain != crashModal && point == failpoint.VendorAccepted:
		t.wantStatus, t.wantCode = "failed", "provider_submission_unknown"
		d.decide(t, "fail")
		d.await(t, recoverTime, "is ended", func(o object) bool { return o.Status == "failed" })
	}
	if t.wantStatus == "" && chain == crashInpaint {
		d.awaitModal(t)
		if _, err := taskID(d.call(http.MethodPost, artgen+"/modal", map[string]any{"task_id": t.id, "mask_url": d.mask()})); err != nil {
			d.t.Errorf("modal: %v", err)
		}
	}
	if t.wantStatus == "" {
		d.awaitCompleted(t)
		check(t)
	}
	eventually(d.t, recoverTime, "the webhook is delivered", func() error { // before the next chain arms its failpoint
		o, err := d.read(t.id)
		if err == nil && o.Webhook.State != "delivered" {
			err = fmt.Errorf("it is %+v", o.Webhook)
		}
		return err
	})
	if got := d.vendorHas(provider); got != before+1 {
		d.t.Errorf("%s, %s: the vendor made %d jobs, want one", chain, point, got-before)
	}
}

// submitThroughCrash sends the request to a process that dies at the point and is started again. If the
// request gets no answer, submitThroughCrash repeats it. It returns the id of the acknowledged
// task.
func (d *crashingUser) submitThroughCrash(point, path string, body map[string]any) string {
	d.t.Helper()
	victim := d.workers[0]
	if code, _ := victim.terminate(d.t, 40*time.Second); code != 0 {
		d.t.Fatalf("the program exits with %d", code)
	}
	if err := os.Remove(filepath.Join(d.dir, "data", "failpoint-"+point)); err != nil && !errors.Is(err, os.ErrNotExist) {
		d.t.Fatal(err)
	}
	victim.env = []string{"MEDIAGATE_FAILPOINT=" + point}
	victim.start(d.t)
	r := request{
		method: http.MethodPost, url: d.apiURLs[0] + "/v1" + path, key: d.key, body: body,
		header: map[string]string{"Idempotency-Key": randomText(20)},
	}
	a, lost := r.do(d.t.Context())
	if lost == nil && (point == failpoint.SubmitCommitted || point == failpoint.ModalCommitted) {
		d.t.Fatalf("%s is answered: %d %s", path, a.status, a.body)
	}
	victim.awaitKilled(d.t, crashLimit)
	victim.start(d.t)
	if lost != nil {
		var err error
		if a, err = r.do(d.t.Context()); err != nil || a.header.Get("Idempotency-Replayed") != "true" {
			d.t.Fatalf("%s again: %d %s %v", path, a.status, a.body, err)
		}
	}
	id, err := taskID(a)
	if err != nil {
		d.t.Fatalf("%s: %v", path, err)
	}
	return id
}

// submitUnanswered submits a task whose vendor creates the job and sends no answer. The vendor
// cannot look the job up, so the task parks after a minute. If the submit is repeated, the
// vendor answers.
func (w *world) submitUnanswered() *task {
	w.t.Helper()
	a, err := request{
		method: http.MethodPost, url: w.sandbox + "/_sandbox/next",
		body:   map[string]string{"provider": "minimax", "directive": "fail=timeout, at=submit"},
		header: map[string]string{"Content-Type": "application/json"},
	}.do(w.t.Context())
	if err != nil || a.status != http.StatusNoContent {
		w.t.Fatalf("the next job's directive: %d %s, %v", a.status, a.body, err)
	}
	t := w.submit(job{model: delta})
	w.awaitJob(t)
	return t
}

// decide waits until a task is parked with a submission whose outcome is unknown, and sends an
// operator's signal.
func (w *world) decide(t *task, signal string) {
	w.t.Helper()
	c := w.dial()
	defer c.Close()
	w.awaitUndecided(c, t)
	if err := c.SignalWorkflow(w.t.Context(), t.id, "", signal, nil); err != nil {
		w.t.Fatal(err)
	}
}

// awaitUndecided waits until a task is parked with a submission whose outcome is unknown.
func (w *world) awaitUndecided(c client.Client, t *task) {
	w.t.Helper()
	eventually(w.t, recoverTime, t.id+" parks", func() error {
		found, err := c.CountWorkflow(w.t.Context(), &workflowservice.CountWorkflowExecutionsRequest{
			Namespace: w.namespace, Query: fmt.Sprintf(`WorkflowId = %q AND MediagateReason = "provider_submission_unknown"`, t.id),
		})
		if err == nil && found.GetCount() != 1 {
			err = errors.New("it is not parked")
		}
		return err
	})
}

// vendorHas returns the number of the vendor's jobs.
func (w *world) vendorHas(provider string) int {
	w.t.Helper()
	a, err := w.file(w.sandbox + "/_sandbox/jobs?provider=" + provider)
	var list struct{ Jobs []vendorJob }
	if err == nil {
		err = a.decode(&list)
	}
	if err != nil {
		w.t.Fatal(err)
	}
	return len(list.Jobs)
}
