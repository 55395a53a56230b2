package e2e_test

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// submitMany sends jobs from several clients at once and records the tasks. A client that gets
// no answer repeats its submit.
func (w *world) submitMany(n int, j job) []*task {
	w.t.Helper()
	const clients = 8
	tasks := make([]*task, n)
	next := make(chan int)
	var group sync.WaitGroup
	for range clients {
		group.Go(func() {
			for i := range next {
				one := j
				one.idemKey = randomText(20)
				r, t := w.request(one)
				tasks[i] = t
				if err := until(w.t.Context(), readyLimit, func() error {
					a, err := r.do(w.t.Context())
					if err == nil {
						t.id, err = taskID(a)
					}
					return err
				}); err != nil {
					w.t.Errorf("submit: %v", err)
				}
			}
		})
	}
	for i := range tasks {
		next <- i
	}
	close(next)
	group.Wait()
	if w.t.Failed() {
		w.t.FailNow()
	}
	w.tasks = append(w.tasks, tasks...)
	return tasks
}

// verifyFailover uses three accounts: two of one vendor, and one of another vendor with the same
// model. Each has a few slots, and there are more tasks than slots. One account answers with
// errors, later not at all, and recovers each time. Tasks that it may have accepted stay with
// it. All waiting tasks go to the other accounts. No task is lost or made twice, and the books
// are right.
func verifyFailover(t *testing.T) {
	t.Helper()
	const tasks = 250
	key := klingKey + "@" + strings.ToLower(randomText(8))
	limited := func(c map[string]any, slots, priority int) map[string]any {
		maps.Copy(c, map[string]any{"concurrency": slots, "priority": priority})
		return c
	}
	w := newWorld(t, options{shape: production, channels: []map[string]any{
		limited(klingChannel("kling-a", key, nil), 10, 1),
		limited(klingChannel("kling-b", spareKey+"-"+strings.ToLower(randomText(8)), nil), 5, 2),
		limited(map[string]any{
			"name": "dashscope-a", "provider": "dashscope",
			"credentials": map[string]string{"api_key": "sk-sandbox-dashscope@" + strings.ToLower(randomText(8))},
		}, 5, 1),
	}})
	long := job{model: alpha, directive: "duration=2s", noHook: true}
	for _, mode := range []string{"error", "hang"} {
		// A breaker opens when half of the submits of the last minute have failed. So wait until
		// the successful ones since the last outage no longer count.
		eventually(t, 3*time.Minute, "the last outage is forgotten", func() error {
			lately, err := w.column("SELECT task_id FROM attempts WHERE channel = 'kling-a' AND accepted_at > clock_timestamp() - interval '65 seconds'")
			if err == nil && len(lately) > 0 {
				err = fmt.Errorf("%d submits went well lately", len(lately))
			}
			return err
		})
		under := w.submit(job{model: alpha, directive: "duration=5s", noHook: true})
		w.awaitProcessing(under)
		w.outage(key, mode)
		// While the channel is away, all waiting tasks go elsewhere. A probe may still use it.
		waiting := w.tasksWithoutAttempt(w.submitMany(tasks, long))
		w.awaitChannel("kling-a", "broken", 2*time.Minute)
		out := w.now()
		for _, task := range waiting {
			w.await(task, recoverTime, "goes on elsewhere", func(o object) bool {
				return o.terminal() || slices.Contains(w.attemptChannels(task), "kling-a")
			})
		}
		probes, err := w.column("SELECT task_id FROM attempts WHERE channel = 'kling-a' AND created_at > $1::timestamptz + interval '1 second'", out)
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%s: %d of %d tasks waited while the channel was out, %d jobs tried it", mode, len(waiting), tasks, len(probes))
		if len(waiting) < tasks/5 {
			t.Errorf("only %d tasks waited", len(waiting))
		}
		if most := 1 + tasks/10; len(probes) > most {
			t.Errorf("%d jobs tried a channel that is out, want at most %d", len(probes), most)
		}
		w.outage(key, "off")
		for _, task := range w.tasks {
			task.resubmitted = true // after a refusal that proves that there is no job, the next submit has another external id
		}
		w.verify(recoverTime)
		w.awaitProcessing(w.submit(long)) // becomes the probe, if there was none
		w.awaitChannel("kling-a", "up", recoverTime)
	}
	w.verify(recoverTime)
	w.checkSlotsFree()
	served, err := w.column("SELECT channel FROM attempts WHERE document::json->'outcome' IS NOT NULL GROUP BY channel ORDER BY channel")
	if want := []string{"dashscope-a", "kling-a", "kling-b"}; err != nil || !slices.Equal(served, want) {
		t.Errorf("jobs were made by %v, %v; want by all of %v", served, err, want)
	}
}

// now returns the database's time as text.
func (w *world) now() string {
	w.t.Helper()
	at, err := w.column("SELECT clock_timestamp()::text")
	if err != nil {
		w.t.Fatal(err)
	}
	return at[0]
}

// tasksWithoutAttempt returns the tasks that have no attempt yet.
func (w *world) tasksWithoutAttempt(tasks []*task) []*task {
	w.t.Helper()
	attempted, err := w.column("SELECT DISTINCT task_id FROM attempts")
	if err != nil {
		w.t.Fatal(err)
	}
	return slices.DeleteFunc(slices.Clone(tasks), func(t *task) bool { return slices.Contains(attempted, t.id) })
}

// checkSlotsFree checks that no slot and no place in the queue is still taken.
func (w *world) checkSlotsFree() {
	w.t.Helper()
	for what, query := range map[string]string{
		"queued":                    "SELECT task_id FROM queue",
		"attempts that hold a slot": "SELECT task_id || ' ' || state FROM attempts WHERE state IN ('intent', 'accepted', 'unknown')",
	} {
		if left, err := w.column(query); err != nil || len(left) > 0 {
			w.t.Errorf("%s: %v, %v", what, left, err)
		}
	}
	var list struct {
		Data []channel `json:"data"`
	}
	w.admin(http.MethodGet, "/channels", nil, &list)
	for _, c := range list.Data {
		if c.InFlight != 0 || c.Polling != 0 {
			w.t.Errorf("at the end a channel is %+v", c)
		}
	}
}
