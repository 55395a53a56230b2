package e2e_test

import (
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// Twenty clients say the same at once, to two processes: there is one task,
// one hold and one job.
func TestIdenticalSubmitsAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{shape: production, apis: 2})
	const clients = 20
	r, task := w.request(job{model: alpha, idemKey: "the same"})
	ids := make([]string, clients)
	fresh := make([]bool, clients)
	var all sync.WaitGroup
	for i := range clients {
		one := r
		one.url = w.apiURLs[i%2] + "/v1/videos/generations"
		all.Go(func() {
			a, err := one.do(t.Context())
			if err == nil {
				ids[i], err = taskID(a)
			}
			if err != nil {
				t.Errorf("client %d: %v", i, err)
			}
			fresh[i] = a.header.Get("Idempotency-Replayed") == ""
		})
	}
	all.Wait()
	first := 0
	for i := range clients {
		if ids[i] != ids[0] {
			t.Errorf("client %d was told of %s, client 0 of %s", i, ids[i], ids[0])
		}
		if fresh[i] {
			first++
		}
	}
	if first != 1 {
		t.Errorf("%d answers are the first, want one", first)
	}
	task.id = ids[0]
	w.tasks = append(w.tasks, task)
	w.verify(recoverTime)
	w.checkLedger(task, "post", "hold")
}

// checkLedger compares the kinds of the task's entries, newest first.
func (w *world) checkLedger(t *task, kinds ...string) {
	w.t.Helper()
	var ledger struct {
		Data []struct{ Kind string }
	}
	w.admin(http.MethodGet, "/accounts/"+w.account+"/ledger?task="+t.id, nil, &ledger)
	var got []string
	for _, entry := range ledger.Data {
		got = append(got, entry.Kind)
	}
	if diff := cmp.Diff(kinds, got); diff != "" {
		w.t.Errorf("ledger entries of %s (-want +got):\n%s", t.id, diff)
	}
}

// A task taken in by one API process is seen, and ended, through another.
func TestTwoAPIs(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{shape: production, apis: 2, workers: 2})
	one, two := w.submit(job{model: alpha, api: 0}), w.submit(job{model: alpha, api: 1, directive: "duration=60s"})
	w.awaitProcessing(two)
	w.apis[1].kill()
	w.cancel(two)
	two.want = "cancelled"
	w.verify(recoverTime)
	w.checkLedger(one, "post", "hold")
	w.checkLedger(two, "void", "hold")
}

// What the vendor does wrong, and how the task ends.
func TestVendorFailures(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{shape: production})
	for name, c := range map[string]struct {
		model, directive string
		want, code       string
		jobs             int
	}{
		"a video is refused for its content":   {alpha, "fail=moderation, at=submit", "failed", "content_policy_violation", 0},
		"an image is refused for its content":  {theta, "fail=moderation, at=submit", "failed", "content_policy_violation", 0},
		"a result is refused for its content":  {alpha, "fail=moderation", "failed", "content_policy_violation", 1},
		"a submit is refused as invalid":       {alpha, "fail=reject", "failed", "invalid_parameters", 0},
		"a job fails":                          {alpha, "fail=reject, at=poll", "failed", "generation_failed", 1},
		"polls fail for a while":               {alpha, "fail=internal", "completed", "", 1},
		"the answer to a submit is lost":       {alpha, "fail=timeout", "completed", "", 1},
		"the file's server fails for a while":  {alpha, "fail=internal, at=download", "completed", "", 1},
		"the file breaks off the first time":   {alpha, "fail=timeout, at=download, times=1", "completed", "", 1},
		"an image's file fails for a while":    {theta, "fail=internal, at=download", "completed", "", 1},
		"an image is large":                    {theta, "result_bytes=30000000", "completed", "", 1},
		"an image within the answer is large":  {zeta, "result_bytes=30000000", "completed", "", 1},
		"an answer breaks in its image":        {zeta, "fail=timeout, at=download", "failed", "provider_submission_unknown", 1},
		"an answer has no image":               {zeta, "fail=moderation", "failed", "content_policy_violation", 1},
		"a video's file takes another call":    {delta, "result_bytes=30000000", "completed", "", 1},
		"a video is refused in the end":        {delta, "fail=moderation", "failed", "content_policy_violation", 1},
		"a link is asked for anew":             {beta, "fail=reject, at=download, times=1", "completed", "", 1},
		"links stay dead":                      {beta, "fail=reject, at=download", "failed", "result_unavailable", 1},
		"a file is a page":                     {alpha, "media=page", "failed", "result_unavailable", 1},
		"a file is empty":                      {delta, "media=empty", "failed", "result_unavailable", 1},
		"a download leads to another host":     {alpha, "media=elsewhere", "completed", "", 1},
		"an image leads to another host":       {theta, "media=elsewhere", "completed", "", 1},
		"an answer names no image":             {theta, "media=none", "failed", "result_unavailable", 1},
		"a video of images is refused":         {beta, "fail=moderation", "failed", "content_policy_violation", 1},
		"text in another vendor's envelope":    {gamma, "fail=internal", "completed", "", 1},
		"a failure that comes with HTTP 200":   {gamma, "fail=moderation", "failed", "content_policy_violation", 1},
		"an edit costs what was delivered":     {edit, "", "completed", "", 1},
		"the video is large, in several parts": {alpha, "result_bytes=30000000", "completed", "", 1},
	} {
		task := w.submit(job{model: c.model, directive: c.directive})
		task.want, task.code, task.minJobs, task.maxJobs = c.want, c.code, c.jobs, c.jobs
		t.Logf("%s: %s", task.id, name)
	}
	w.verify(recoverTime)
}

// A client cancels in each state; a cancel is obeyed within seconds.
func TestCancel(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{shape: production, workersOff: true})
	pending := w.submit(job{model: alpha})
	pending.want, pending.minJobs, pending.maxJobs = "cancelled", 0, 0
	w.cancel(pending)
	if o, err := w.read(pending.id); err != nil || o.Status != "pending" || !o.CancelRequested {
		t.Errorf("without a worker the cancelled task is %+v, %v", o, err)
	}
	w.workers[0].start(t)

	waiting := w.submit(job{model: alpha, directive: "duration=10m"})
	mirroring := w.submit(job{model: alpha, directive: "duration=0, fail=timeout, at=download"})
	ended := w.submit(job{model: theta})
	var queued []*task
	for _, model := range []string{beta, gamma} {
		queued = append(queued, w.submit(job{model: model, directive: "duration=30m"})) // the vendor begins after a tenth of it
	}
	w.awaitProcessing(waiting)
	w.cancel(waiting)
	for _, task := range queued {
		w.awaitProcessing(task)
		w.cancel(task)
	}
	w.awaitDownload(mirroring)
	w.cancel(mirroring)
	for _, task := range append(queued, pending, waiting, mirroring) {
		task.want = "cancelled"
		w.await(task, 45*time.Second, "is cancelled", func(o object) bool { return o.Status == "cancelled" })
	}
	w.await(ended, 60*time.Second, "completes", func(o object) bool { return o.Status == "completed" })
	a, err := request{method: http.MethodPost, url: w.apiURLs[0] + "/v1/tasks/" + ended.id + "/cancel", key: w.key}.do(t.Context())
	if err != nil || a.status != http.StatusConflict {
		t.Errorf("cancelling an ended task: %d %s, %v", a.status, a.body, err)
	}
	eventually(t, 30*time.Second, "the vendor has stopped what it had not begun", func() error {
		for _, task := range queued {
			jobs, err := w.jobs(task)
			if err == nil && (len(jobs) != 1 || jobs[0].State != "cancelled") {
				err = fmt.Errorf("the vendor's jobs for %s: %+v", task.model, jobs)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
	w.verify(recoverTime)
	w.checkLedger(pending, "void", "hold")
}
