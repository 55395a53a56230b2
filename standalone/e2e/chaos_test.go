package e2e_test

import (
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

var (
	chaosSeed = flag.Uint64("chaos.seed", 0, "seed of the first run of TestChaos; 0: 1 for the short run, else one of the clock's")
	chaosRuns = flag.Int("chaos.runs", 0, "long runs of TestChaos, with one seed after the other; 0: a short one")
)

// TestChaos runs tasks of several accounts, of all media, with vendors that succeed, fail and
// hang. Meanwhile each part of an installation is killed with -9, stopped, and cut off from
// others. Then the test repairs everything, waits, and checks each promise. The seed determines
// the tasks, the faults and their order: batches of tasks, and a fault with the second half of
// each batch.
func TestChaos(t *testing.T) {
	t.Parallel()
	if *chaosRuns == 0 {
		chaosRun(t, max(*chaosSeed, 1), true)
		return
	}
	seed := *chaosSeed
	if seed == 0 {
		seed = uint64(time.Now().Unix())
	}
	for i := range *chaosRuns {
		t.Run(fmt.Sprint("seed ", seed+uint64(i)), func(t *testing.T) { chaosRun(t, seed+uint64(i), false) }) // not parallel
	}
}

func chaosRun(t *testing.T, seed uint64, short bool) {
	t.Helper()
	c := newChaos(t, seed, short)
	c.play()
	if left := c.awaitQuiet(quietPatience); len(left) > 0 {
		t.Fatalf("%d tasks do not end:\n%s", len(left), strings.Join(left, "\n"))
	}
	c.check()
}

// TestChaosWithoutWakes is a run in which no wake is ever due (D2). Some tasks must not end in
// it, because otherwise TestChaos could not fail. Once wakes are due again, all tasks must end
// well.
func TestChaosWithoutWakes(t *testing.T) {
	if *chaosRuns == 0 {
		t.Skip("takes minutes: make chaos")
	}
	c := newChaos(t, max(*chaosSeed, 1), true)
	c.exec(
		`CREATE FUNCTION never() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.wake_at := NEW.wake_at + interval '1 year'; RETURN NEW; END $$`,
		`CREATE TRIGGER never BEFORE INSERT OR UPDATE OF wake_at ON wakes FOR EACH ROW EXECUTE FUNCTION never()`)
	c.play()
	left := c.awaitQuiet(90 * time.Second)
	if len(left) == 0 {
		t.Fatal("without wakes each task has ended: this test cannot fail")
	}
	t.Logf("without wakes %d of %d tasks do not end, such as\n%s", len(left), len(c.all()), left[0])
	c.exec("DROP TRIGGER never ON wakes", "UPDATE wakes SET wake_at = clock_timestamp()")
	if left := c.awaitQuiet(quietPatience); len(left) > 0 {
		t.Fatalf("%d tasks do not end:\n%s", len(left), strings.Join(left, "\n"))
	}
	c.check()
}

// quietPatience is how long nothing may change in a repaired installation before the open tasks
// count as lost. It is longer than all pauses between lookups but the last (D6), and than the
// lease of a step. The lease matters after a lapse: a row may name an activity whose run has
// completed since, and its wake comes ten minutes later (D2).
const quietPatience = 12 * time.Minute

// chaos is one run of the test.
type chaos struct {
	*world
	short  bool
	random *rand.Rand
	users  []*user
	faults []fault
	masks  map[*user]string
	group  sync.WaitGroup // clients that work on with their tasks

	gate   sync.RWMutex // read-locked by each client's call, locked during a lapse
	lapses []span       // of the database

	mu           sync.Mutex
	acknowledged []acknowledged
	decided      map[string]bool // tasks that the operator has made fail
}

// acknowledged is an acknowledged submit, which the test repeats later.
type acknowledged struct {
	user *user
	task *task
	path string
	body map[string]any
	key  string
}

// span is a period of time.
type span struct{ from, to time.Time }

// fault is a fault of one part of the installation for a while.
type fault struct {
	what  string // kill, stop, lapse, a trouble of a link, or an outage mode of a vendor
	who   string
	to    string // far end of a link
	holds time.Duration
}

const (
	faultKill  = "kill -9"
	faultStop  = "SIGSTOP"
	faultLapse = "lapse" // the database loses the commits of that time
)

func (f fault) String() string {
	return strings.TrimSpace(fmt.Sprintf("%s %s %s for %s", f.what, f.who, f.to, f.holds))
}

func newChaos(t *testing.T, seed uint64, short bool) *chaos {
	t.Helper()
	t.Logf("chaos: -chaos.seed=%d", seed)
	w := newWorld(t, options{
		shape: production, apis: 2, workers: 2, ownTemporal: true, ownS3: true, ownPostgres: true, ownSandbox: true, links: true,
		settings: map[string]any{"art_modal_timeout": "20s"},
		alter: func(settings map[string]any) {
			channels, _ := settings["channels"].([]map[string]any)
			for _, c := range channels {
				if c["provider"] == "kling" {
					c["concurrency"] = 8 // so that some tasks wait for slots
				}
			}
		},
	})
	c := &chaos{
		world: w, short: short, random: rand.New(rand.NewPCG(seed, seed)), masks: map[*user]string{},
		decided: map[string]bool{},
	}
	for _, fails := range []int{0, 2, 0, 1000} { // number of deliveries that fail first, for each account
		u := w.user(t)
		u.hooks.failFirst = fails
		c.users = append(c.users, u)
		c.masks[u] = u.mask()
	}
	c.faults = c.plan()
	return c
}

// plan returns the list of faults. Each kind of fault occurs before any kind occurs again.
func (c *chaos) plan() []fault {
	var kills, stops, troubles, moods []fault
	processes := c.links.processes()
	for _, who := range append(processes, toTemporal, toS3, toPostgres) {
		kills = append(kills, fault{what: faultKill, who: who})
		stops = append(stops, fault{what: faultStop, who: who})
	}
	for _, who := range processes {
		for _, to := range []string{toPostgres, toTemporal, toS3, toSandbox} {
			for _, what := range []string{linkCut, linkHole, linkSlow} {
				troubles = append(troubles, fault{what: what, who: who, to: to})
			}
		}
	}
	for _, who := range []string{"kling", "vidu", "minimax", "dashscope", "gemini", "acedata", "midjourney"} {
		moods = append(moods, fault{what: "error", who: who}, fault{what: "hang", who: who})
	}
	kinds := [][]fault{kills, stops, troubles, moods}
	for _, kind := range kinds {
		c.random.Shuffle(len(kind), func(i, j int) { kind[i], kind[j] = kind[j], kind[i] })
	}
	// Every run has the fault that takes longest to notice: an API process acknowledges tasks,
	// and is killed before Temporal is back.
	plan := []fault{{what: faultKill, who: toTemporal, holds: 9 * time.Second}}
	for i := 0; len(plan) < c.size(8, 30); i++ {
		kind := kinds[i%len(kinds)]
		f := kind[i/len(kinds)%len(kind)]
		f.holds = time.Duration(500+c.random.IntN(c.size(4000, 12_000))) * time.Millisecond
		plan = append(plan, f)
	}
	if c.short {
		return plan
	}
	// Every long run has a lapse of the database, and an absence that is longer than any pause
	// before a retry.
	for _, f := range []fault{
		{what: faultLapse, who: toPostgres, holds: time.Duration(3+c.random.IntN(8)) * time.Second},
		{what: faultKill, who: toPostgres, holds: time.Duration(80+c.random.IntN(100)) * time.Second},
	} {
		plan = slices.Insert(plan, 1+c.random.IntN(len(plan)), f)
	}
	return plan
}

// size returns a number that depends on the length of the run.
func (c *chaos) size(short, long int) int {
	if c.short {
		return short
	}
	return long
}

// play submits a batch of tasks for each fault, and leaves an installation without faults.
func (c *chaos) play() {
	c.t.Helper()
	began := time.Now()
	batch := c.size(7, 12)
	for n, f := range c.faults {
		orders := make([]order, batch)
		for i := range orders {
			orders[i] = c.order(n, i)
		}
		c.submitAll(orders[:batch/2])
		var rest sync.WaitGroup
		c.t.Logf("%5.1fs: %s", time.Since(began).Seconds(), f)
		heal := c.startFault(f)
		rest.Go(func() { c.submitAll(orders[batch/2:]) })
		for until := time.Now().Add(f.holds); time.Now().Before(until); {
			time.Sleep(min(time.Until(until), 500*time.Millisecond)) // the fault must last this long
			c.revive(f.who)
		}
		heal()
		rest.Wait()
		if c.t.Failed() {
			c.t.FailNow()
		}
	}
	for _, s := range c.services() {
		if s.gone() {
			s.start(c.t)
		} else if err := s.awaitReady(c.t.Context()); err != nil {
			c.t.Fatal(err)
		}
	}
	c.t.Logf("%5.1fs: healed", time.Since(began).Seconds())
}

// services returns the processes except PostgreSQL, by name.
func (c *chaos) services() map[string]*service {
	all := map[string]*service{toTemporal: c.temporal, toS3: c.s3Server}
	for _, s := range slices.Concat(c.apis, c.workers) {
		all[s.name] = s
	}
	return all
}

// startFault starts a fault. heal ends it.
func (c *chaos) startFault(f fault) (heal func()) {
	c.t.Helper()
	s := c.services()[f.who]
	switch {
	case f.to != "":
		return c.links.trouble(c.t, f.who, f.to, f.what)
	case f.what == faultLapse:
		return c.lapse()
	case f.what == faultKill && f.who == toPostgres:
		c.database.kill(c.t)
		return func() { c.database.start(c.t) }
	case f.what == faultStop && f.who == toPostgres:
		c.database.signal(c.t, syscall.SIGSTOP)
		return func() { c.database.signal(c.t, syscall.SIGCONT) }
	case f.what == faultKill:
		s.kill()
		return func() { c.revive("") }
	case f.what == faultStop:
		s.signal(syscall.SIGSTOP)
		return func() { s.signal(syscall.SIGCONT) }
	default:
		c.setOutage(f.who, f.what)
		return func() { c.setOutage(f.who, "off") }
	}
}

// lapse makes the database lose its commits from now until heal is called. Clients get no answer
// in that time, so the database loses nothing that a client knows, and every promise still
// holds. Vendors, receivers of callbacks, Temporal and the bucket continue.
func (c *chaos) lapse() (heal func()) {
	c.t.Helper()
	c.gate.Lock()
	from, backup := time.Now(), c.database.backup(c.t)
	return func() {
		defer c.gate.Unlock()
		c.database.lapse(c.t, backup)
		c.lapses = append(c.lapses, span{from, time.Now()})
	}
}

// setOutage sets the outage mode of a vendor.
func (c *chaos) setOutage(provider, mode string) {
	c.t.Helper()
	a, err := request{
		method: http.MethodPost, url: c.sandbox + "/_sandbox/outage", body: map[string]string{"provider": provider, "mode": mode},
		header: map[string]string{"Content-Type": "application/json"},
	}.do(c.t.Context())
	if err != nil || a.status != http.StatusNoContent {
		c.t.Fatalf("outage: %d %s, %v", a.status, a.body, err)
	}
}

// revive restarts processes that have ended, as an installation's supervisor does, except the
// one that a fault keeps down.
func (c *chaos) revive(down string) {
	c.t.Helper()
	for name, s := range c.services() {
		if name != down && s.gone() {
			if err := s.spawn(); err != nil {
				c.t.Fatal(err)
			}
		}
	}
}

// order is a client's request and its further steps.
type order struct {
	acknowledged
	api    int
	again  bool // also sent to the other API process at the same time
	cancel bool
	then   func(*chaos, acknowledged) // next step of the client after the acknowledgement
}

// chaosKinds are the kinds of orders. Each sets the expected end of its task. "either" means
// that the end depends on the faults, because the vendor cannot look a job up by our id.
var chaosKinds = []struct {
	name  string
	make  func(*chaos, *order)
	often int
}{
	{"video", func(c *chaos, o *order) { c.makeMediaOrder(o, alpha, fmt.Sprintf("duration=%ds", c.random.IntN(7))) }, 6},
	{"video whose answer is lost", func(c *chaos, o *order) {
		c.makeMediaOrder(o, alpha, "fail=timeout, at=submit, duration=2s")
	}, 2},
	{"video with trouble in polls", func(c *chaos, o *order) {
		c.makeMediaOrder(o, alpha, "fail=internal, at=poll, times=2, duration=1s")
	}, 1},
	{"video with trouble in downloads", func(c *chaos, o *order) {
		c.makeMediaOrder(o, alpha, "fail=internal, at=download, times=2, duration=1s")
	}, 1},
	{"large video", func(c *chaos, o *order) {
		c.makeMediaOrder(o, alpha, "result_bytes=20000000, duration=1s, download=3s")
	}, 1},
	{"refused video", func(c *chaos, o *order) {
		c.makeMediaOrder(o, alpha, "fail=moderation, duration=1s")
		o.task.wantStatus, o.task.wantCode = "failed", "content_policy_violation"
	}, 1},
	{"cancelled video", func(c *chaos, o *order) {
		c.makeMediaOrder(o, alpha, fmt.Sprintf("duration=%ds", c.random.IntN(12)))
		o.cancel = true
	}, 2},
	{"video of a picture", func(c *chaos, o *order) { c.makeMediaOrder(o, beta, "duration=2s") }, 2},
	{"video of minimax", func(c *chaos, o *order) { c.makeMediaOrder(o, delta, "duration=2s") }, 1},
	{"video of dashscope", func(c *chaos, o *order) { c.makeMediaOrder(o, gamma, "duration=3s") }, 1},
	{"image", func(c *chaos, o *order) { c.makeMediaOrder(o, theta, "duration=300ms") }, 3},
	{"image with its bytes", func(c *chaos, o *order) { c.makeMediaOrder(o, zeta, "duration=200ms") }, 2},
	{"cancelled image", func(c *chaos, o *order) {
		c.makeMediaOrder(o, theta, "duration=2s")
		o.cancel = true
	}, 1},
	{"image and a video of it", func(c *chaos, o *order) {
		c.makeMediaOrder(o, theta, "duration=2s")
		o.then = func(c *chaos, a acknowledged) { c.filmOf(a) }
	}, 2},
	{"cancelled image and a video of it", func(c *chaos, o *order) {
		c.makeMediaOrder(o, theta, "duration=5s")
		o.then = func(c *chaos, a acknowledged) {
			c.filmOf(a)
			c.cancelTask(a)
		}
	}, 1},
	{"song", func(c *chaos, o *order) { c.makeTextOrder(o, songStep, "prompt") }, 2},
	{"song of music-b", func(c *chaos, o *order) { c.makeTextOrder(o, flowStep, "sound_prompt") }, 1},
	{"pictures", func(c *chaos, o *order) { c.makeTextOrder(o, imagine(), "prompt") }, 1},
	{"a part painted anew", func(c *chaos, o *order) {
		c.makeTextOrder(o, imagine(), "prompt")
		given := c.random.IntN(3) > 0
		o.then = func(c *chaos, a acknowledged) { c.repaint(a, given) }
	}, 1},
}

// order returns the ith order of the nth batch.
func (c *chaos) order(n, i int) order {
	users := c.users
	if c.short || n > 2 { // leave out the account whose receiver accepts nothing: its callbacks take minutes to be abandoned
		users = users[:len(users)-1]
	}
	o := order{api: c.random.IntN(2), again: c.random.IntN(4) == 0}
	o.user = users[c.random.IntN(len(users))]
	o.key = fmt.Sprintf("chaos %d %d", n, i)
	total := 0
	for _, kind := range chaosKinds {
		total += kind.often
	}
	at := c.random.IntN(total)
	for _, kind := range chaosKinds {
		if at -= kind.often; at < 0 {
			kind.make(c, &o)
			break
		}
	}
	return o
}

// makeMediaOrder makes o an order of a video or an image.
func (c *chaos) makeMediaOrder(o *order, model, directive string) {
	r, t := o.user.request(job{model: model, directive: directive})
	if model != alpha {
		t.wantStatus, t.minJobs = "either", 0
	}
	o.task, o.path = t, strings.TrimPrefix(r.url, c.apiURLs[0]+"/v1")
	o.body, _ = r.body.(map[string]any)
}

// makeTextOrder makes o an order of music or art, with the reference in field.
func (c *chaos) makeTextOrder(o *order, s step, field string) {
	ref := "ref" + randomText(20)
	o.task = &task{
		ref: ref, model: s.path, hook: true, wantStatus: "either", maxJobs: 1,
		files: s.files, objects: s.objects, price: s.price,
	}
	o.path, o.body = s.path, maps.Clone(s.body)
	o.body["webhook"], o.body["metadata"] = o.user.hooks.url, map[string]any{"reference": ref}
	o.body[field] = fmt.Sprint(o.body[field], " ", ref)
}

// submitAll sends each order by a client of its own.
func (c *chaos) submitAll(orders []order) {
	var group sync.WaitGroup
	for _, o := range orders {
		group.Go(func() { c.submitOne(o) })
	}
	group.Wait()
}

// submitOne sends an order until it is acknowledged. The order's further steps continue after
// submitOne has returned.
func (c *chaos) submitOne(o order) {
	ids := make([]string, 2)
	var both sync.WaitGroup
	for i := range ids {
		if i == 0 || o.again {
			both.Go(func() {
				a := c.callUntilAnswered(o.user, o.api+i, http.MethodPost, o.path, o.body, o.key)
				var err error
				if ids[i], err = taskID(a); err != nil {
					c.t.Errorf("%s: %v", o.path, err)
				}
			})
		}
	}
	both.Wait()
	if o.again && ids[0] != ids[1] {
		c.t.Errorf("one key, two tasks: %v", ids)
	}
	o.task.id = ids[0]
	c.mu.Lock()
	o.user.tasks = append(o.user.tasks, o.task)
	c.acknowledged = append(c.acknowledged, o.acknowledged)
	c.mu.Unlock()
	if o.cancel {
		c.group.Go(func() { c.cancelTask(o.acknowledged) })
	}
	if o.then != nil {
		c.group.Go(func() { o.then(c, o.acknowledged) })
	}
}

// callUntilAnswered makes a call until it is answered. It repeats calls that get no answer, or the answer that
// the service is unavailable.
func (c *chaos) callUntilAnswered(u *user, api int, method, path string, body any, key string) (a answer) {
	err := until(c.t.Context(), quietPatience, func() (err error) {
		r := request{method: method, url: c.apiURLs[api%len(c.apiURLs)] + "/v1" + path, key: u.key, body: body}
		if key != "" {
			r.header = map[string]string{"Idempotency-Key": key}
		}
		api++
		c.gate.RLock()
		a, err = r.do(c.t.Context())
		c.gate.RUnlock()
		if err == nil && (a.status >= http.StatusInternalServerError || a.status == http.StatusTooManyRequests) {
			err = fmt.Errorf("%d %s", a.status, a.body)
		}
		return err
	})
	if err != nil {
		c.t.Errorf("%s %s: %v", method, path, err)
	}
	return a
}

// readTask reads a task.
func (c *chaos) readTask(u *user, id string) (o object) {
	var wrapped struct {
		Data object `json:"data"`
	}
	if err := c.callUntilAnswered(u, 0, http.MethodGet, "/tasks/"+id, nil, "").decode(&wrapped); err != nil {
		c.t.Errorf("%s: %v", id, err)
	}
	return wrapped.Data
}

// cancelTask cancels a task. An answer of 202 must hold (D13). If that answer is lost, the next one
// may report that the task is already cancelled.
func (c *chaos) cancelTask(o acknowledged) {
	want := "cancelled"
	a := c.callUntilAnswered(o.user, 1, http.MethodPost, "/tasks/"+o.task.id+"/cancel", nil, "")
	if a.status == http.StatusConflict {
		if want = c.readTask(o.user, o.task.id).Status; want == "failed" {
			want = "either"
		}
	} else if a.status != http.StatusAccepted {
		c.t.Errorf("cancel: %d %s", a.status, a.body)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	o.task.wantStatus, o.task.minJobs = want, 0
}

// end waits until the task has ended and returns its status.
func (c *chaos) end(o acknowledged) (status string) {
	err := until(c.t.Context(), 2*quietPatience, func() error {
		seen := c.readTask(o.user, o.task.id)
		if status = seen.Status; !seen.terminal() {
			return fmt.Errorf("it is %s", status)
		}
		return nil
	})
	if err != nil {
		c.t.Logf("%s does not end: %v", o.task.id, err) // awaitQuiet reports the failure
	}
	return status
}

// follow submits a step that works on a task.
func (c *chaos) follow(o acknowledged, s step, key string) acknowledged {
	next := o
	next.task = &task{
		model: s.path, hook: true, wantStatus: "either", maxJobs: 1,
		files: s.files, objects: s.objects, price: s.price,
	}
	next.path, next.body, next.key = s.path, maps.Clone(s.body), o.key+key
	next.body["webhook"] = o.user.hooks.url
	c.submitOne(order{acknowledged: next})
	return next
}

// filmOf submits a video of an image that is not yet made. If the image's task has ended without
// a file, the submit is refused.
func (c *chaos) filmOf(o acknowledged) {
	body := map[string]any{"model": "beta-q3", "prompt": "it sails away", "image_urls": []any{"/v1/tasks/" + o.task.id + "/files/1"}}
	film := step{path: "/videos/generations", price: "0.5", body: body}
	body["webhook"] = o.user.hooks.url
	const key = " film"
	a := c.callUntilAnswered(o.user, 0, http.MethodPost, film.path, body, o.key+key)
	if a.status == http.StatusBadRequest {
		if status := c.readTask(o.user, o.task.id).Status; status != "failed" && status != "cancelled" {
			c.t.Errorf("a video of %s, which is %s: %d %s", o.task.id, status, a.status, a.body)
		}
		return
	}
	c.follow(o, film, key).task.source = o.task // repeats the same submit
}

// repaint goes on from four pictures. It enlarges one and repaints a part of it. If given is
// set, it sends the mask in a modal call. Otherwise the mask never comes.
func (c *chaos) repaint(o acknowledged, given bool) {
	if c.end(o) != "completed" {
		return
	}
	one := c.follow(o, single("/upscale", "0.01", map[string]any{"task_id": o.task.id, "index": 2}), " upscale")
	if c.end(one) != "completed" {
		return
	}
	paint := c.follow(one, grids("/inpaint", "0.04", map[string]any{"task_id": one.task.id}), " inpaint")
	waits := false
	_ = until(c.t.Context(), quietPatience, func() error {
		var a art
		if err := c.callUntilAnswered(o.user, 0, http.MethodGet, "/artgen/"+paint.task.id, nil, "").decode(&a); err != nil {
			c.t.Errorf("art task: %v", err)
		}
		if waits = a.Status == "MODAL"; !waits && a.Status != "FAILURE" && a.Status != "SUCCESS" {
			return fmt.Errorf("it is %s", a.Status)
		}
		return nil
	})
	if !waits || !given {
		return
	}
	mask := map[string]any{"task_id": paint.task.id, "prompt": "a straw hat", "mask_url": c.masks[o.user]}
	a := c.callUntilAnswered(o.user, 0, http.MethodPost, artgen+"/modal", mask, paint.key+" modal")
	if a.status != http.StatusOK && a.status != http.StatusConflict { // too late
		c.t.Errorf("modal: %d %s", a.status, a.body)
	}
}
