package e2e_test

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// submitMany sends jobs from several clients at once, and takes note of the
// tasks. Who got no answer says the same again.
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

// Of three accounts, two of one vendor and one of another that has the same
// model, each with a few slots and more tasks than those, one answers with
// errors, then not at all, and recovers each time. What may have been taken
// stays with it; all that waits goes to the others while it is away; nothing is
// lost or made twice, and the books are right.
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
		// A breaker opens when half of the submits of the last minute failed: those
		// that went well since the last outage are to be forgotten.
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
		// What waits goes elsewhere, all of it, while the channel is away. A probe
		// may still go there.
		waiting := w.unattempted(w.submitMany(tasks, long))
		w.awaitChannel("kling-a", "broken", 2*time.Minute)
		out := w.now()
		for _, task := range waiting {
			w.await(task, recoverTime, "goes on elsewhere", func(o object) bool {
				return o.terminal() || slices.Contains(w.attempted(task), "kling-a")
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
			task.again = true // a refusal that proves that there is no job is followed by another name
		}
		w.verify(recoverTime)
		w.awaitProcessing(w.submit(long)) // the probe, if nobody was
		w.awaitChannel("kling-a", "up", recoverTime)
	}
	w.verify(recoverTime)
	w.checkSlotsFree()
	served, err := w.column("SELECT channel FROM attempts WHERE outcome IS NOT NULL GROUP BY channel ORDER BY channel")
	if want := []string{"dashscope-a", "kling-a", "kling-b"}; err != nil || !slices.Equal(served, want) {
		t.Errorf("jobs were made by %v, %v; want by all of %v", served, err, want)
	}
}

// now is the database's time, as text.
func (w *world) now() string {
	w.t.Helper()
	at, err := w.column("SELECT clock_timestamp()::text")
	if err != nil {
		w.t.Fatal(err)
	}
	return at[0]
}

// unattempted are those of the tasks that no vendor was asked for yet.
func (w *world) unattempted(tasks []*task) []*task {
	w.t.Helper()
	attempted, err := w.column("SELECT DISTINCT task_id FROM attempts")
	if err != nil {
		w.t.Fatal(err)
	}
	return slices.DeleteFunc(slices.Clone(tasks), func(t *task) bool { return slices.Contains(attempted, t.id) })
}

// checkSlotsFree looks for slots and places in the queue that nobody gave back.
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

func TestSlotsUnderLoad(t *testing.T) {
	t.Parallel()
	slotsUnderLoad(t, 60, 1)
}

func verifySlots(t *testing.T) {
	t.Helper()
	slotsUnderLoad(t, 2000, 4)
}

// slotsUnderLoad gives thousands of tasks to an account of five slots, at a
// vendor that refuses the sixth. None is refused, whoever is killed meanwhile;
// tasks of another account don't wait behind those that were there before; and
// in the end no slot is missing.
func slotsUnderLoad(t *testing.T, tasks, kills int) {
	t.Helper()
	const slots = 5
	key := fmt.Sprintf("%s@%s*%d", klingKey, strings.ToLower(randomText(8)), slots)
	w := newWorld(t, options{shape: production, ownTemporal: true, channels: []map[string]any{
		klingChannel("kling-a", key, map[string]any{
			"concurrency": slots, "requests_per_second": 200, "poll_interval": map[string]string{"min": "100ms", "max": "500ms"},
		}),
	}})
	w.noteGrants()
	newcomer := *w
	newcomer.openAccount()
	began := time.Now()
	short := job{model: alpha, directive: "duration=0.1s", noHook: true}
	w.submitMany(tasks, short)
	for range 3 {
		newcomer.servedInTurn(short)
	}
	for i := range kills {
		victim := []*service{w.workers[0], w.temporal}[i%2]
		w.awaitDone((i + 1) * tasks / (kills + 2))
		t.Logf("%s: kill -9 %s", time.Since(began).Round(time.Second), victim.name)
		victim.kill()
		victim.start(t)
	}
	newcomer.servedInTurn(short)

	w.awaitDone(tasks)
	t.Logf("%d tasks in %s", tasks, time.Since(began).Round(time.Second))
	ends, theirs := w.awaitEnds(recoverTime), newcomer.awaitEnds(recoverTime)
	for _, each := range []struct {
		*world
		ends map[string]object
	}{{w, ends}, {&newcomer, theirs}} {
		each.checkEnds(each.ends)
		each.checkJobs(each.ends)
		each.checkMoney(each.ends)
	}
	both := *w
	both.tasks = slices.Concat(w.tasks, newcomer.tasks)
	maps.Copy(ends, theirs)
	both.checkBucket(ends)
	both.checkWorkflows()
	both.checkSlotsFree()
	refused, err := w.column("SELECT task_id || ' ' || n FROM attempts WHERE n > 1 OR state = 'rejected'")
	if err != nil || len(refused) > 0 {
		t.Errorf("%d attempts were refused, or follow one that was: %v, %v", len(refused), refused[:min(len(refused), 10)], err)
	}
}

// awaitDone waits until so many tasks have ended.
func (w *world) awaitDone(n int) {
	w.t.Helper()
	last, since := "", time.Now()
	eventually(w.t, 20*time.Minute, fmt.Sprintf("%d tasks end", n), func() error {
		done, err := w.column("SELECT count(*)::text FROM tasks WHERE ended_at IS NOT NULL")
		if err != nil {
			return err
		}
		var got int
		if _, err := fmt.Sscan(done[0], &got); err != nil || got >= n {
			return err
		}
		if done[0] != last {
			last, since = done[0], time.Now()
		}
		if time.Since(since) > recoverTime {
			return &stopError{fmt.Sprintf("none since %s, at %d", since.Format(time.TimeOnly), got)}
		}
		return fmt.Errorf("%d have", got)
	})
}

// noteGrants has the database note the order in which tasks are queued and granted slots,
// which it does under the lock of the channel.
func (w *world) noteGrants() {
	w.t.Helper()
	w.exec("CREATE TABLE grant_order (place bigserial, task_id text, granted boolean)",
		`CREATE FUNCTION note_grant() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
			INSERT INTO grant_order (task_id, granted) VALUES (NEW.task_id, NEW.granted_at IS NOT NULL); RETURN NULL; END $$`,
		"CREATE TRIGGER note_queued AFTER INSERT ON queue FOR EACH ROW EXECUTE FUNCTION note_grant()",
		`CREATE TRIGGER note_granted AFTER UPDATE OF granted_at ON queue FOR EACH ROW
			WHEN (NEW.granted_at IS NOT NULL) EXECUTE FUNCTION note_grant()`)
}

// servedInTurn submits a task while others have queued thousands. From the moment it is
// queued the accounts take turns, so that at most one of the others' tasks is granted a slot
// before it. When tasks use their grants is up to the machine.
func (w *world) servedInTurn(j job) {
	w.t.Helper()
	task := w.submit(j)
	eventually(w.t, recoverTime, task.id+" is served", func() error {
		if len(w.attempted(task)) == 0 {
			return errors.New("it waits")
		}
		return nil
	})
	before, err := w.column(`SELECT other.task_id FROM grant_order other, (
			SELECT min(place) FILTER (WHERE NOT granted) AS queued, min(place) FILTER (WHERE granted) AS granted
			FROM grant_order WHERE task_id = $1) own
		WHERE other.granted AND other.place > own.queued AND other.place < own.granted`, task.id)
	if err != nil || len(before) > 1 {
		w.t.Errorf("granted a slot while a newcomer waited: %v, %v; want at most one task", before, err)
	}
}
