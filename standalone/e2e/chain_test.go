package e2e_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/big"
	"net/http"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
)

// modalWait is how long art tasks wait in MODAL in these tests' worlds.
const modalWait = "25s"

// TestChains lets users make one thing of another, file by file: each chain is
// a user with an account, and all share one gateway.
func TestChains(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{shape: standalone, settings: map[string]any{"art_modal_timeout": modalWait}})
	elsewhere := w.songElsewhere()
	chains := map[string]func(*chain){
		"songs":            chainSongs,
		"a song elsewhere": func(c *chain) { chainElsewhere(c, elsewhere) },
		"songs of music-b": chainFlow,
		"inpainting":       chainInpaint,
		"pictures":         chainPictures,
		"patience":         chainPatience,
		"cancels":          chainCancels,
	}
	all := make(chan *chain, len(chains))
	t.Run("users", func(t *testing.T) {
		for name, run := range chains {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				c := w.user(t)
				if name == "a song elsewhere" {
					c = elsewhere.of(t)
				}
				run(c)
				c.settled()
				all <- c // when it has seen all tasks end
			})
		}
	})
	close(all)
	ends := map[string]object{}
	for c := range all {
		maps.Copy(ends, c.ends)
		w.tasks = append(w.tasks, c.tasks...)
		if w.uploads == nil {
			w.uploads = map[string]bool{}
		}
		maps.Copy(w.uploads, c.uploads)
	}
	if t.Failed() {
		return
	}
	w.checkBucket(ends)
	w.checkWorkflows()
	w.checkVendors(map[string]int{"acedata": 11, "sunoapi": 3, "musicapi": 1, "midjourney": 23})
}

// chain is a user of a world that others use as well.
type chain struct {
	*world
	charged *big.Rat          // what has been taken from the account
	ends    map[string]object // of its tasks, once settled
}

// user opens an account for the test.
func (w *world) user(t *testing.T) *chain {
	t.Helper()
	own := *w
	own.t, own.tasks, own.uploads = t, nil, nil
	own.hooks = newReceiver(t)
	own.hooks.know(w.contract)
	own.openAccount()
	return &chain{world: &own, charged: new(big.Rat)}
}

// of is the user in the hands of another test.
func (c *chain) of(t *testing.T) *chain {
	t.Helper()
	own := *c.world
	own.t = t
	return &chain{world: &own, charged: c.charged}
}

// step is what a user asks for next.
type step struct {
	path    string // below /v1
	body    map[string]any
	price   string
	files   int // as those of a task
	objects int
}

const (
	songs  = "/music/generations"
	artgen = "/artgen/generations"
)

func (c *chain) call(method, path string, body any, header ...string) answer {
	c.t.Helper()
	r := request{method: method, url: c.apiURLs[0] + "/v1" + path, key: c.key, body: body, header: map[string]string{}}
	for i := 0; i+1 < len(header); i += 2 {
		r.header[header[i]] = header[i+1]
	}
	a, err := r.do(c.t.Context())
	if err != nil {
		c.t.Fatalf("%s %s: %v", method, path, err)
	}
	return a
}

// show decodes what a path answers.
func (c *chain) show(path string, v any) {
	c.t.Helper()
	if err := c.get("/v1"+path, c.key, v); err != nil {
		c.t.Fatalf("GET %s: %v", path, err)
	}
}

// order asks what the step costs and sends it twice under one key: it is one
// task, and what it costs is off the balance at once.
func (c *chain) order(s step) *task {
	c.t.Helper()
	t := &task{model: s.path, hook: true, files: s.files, objects: s.objects, price: s.price}
	body := map[string]any{"webhook": c.hooks.url, "metadata": map[string]any{"reference": "ref" + randomText(12)}}
	maps.Copy(body, s.body)
	quoted := map[string]any{"endpoint": "/v1" + s.path}
	maps.Copy(quoted, body)
	var quote struct{ Cost json.Number }
	if err := c.call(http.MethodPost, "/quote", quoted).decode(&quote); err != nil {
		c.t.Fatalf("quote of %s: %v", s.path, err)
	}
	if amount(c.world, quote.Cost.String()).Cmp(amount(c.world, s.price)) != 0 {
		c.t.Errorf("%s is quoted at %s, want %s", s.path, quote.Cost, s.price)
	}
	key := randomText(20)
	for _, replayed := range []string{"", "true"} {
		a := c.call(http.MethodPost, s.path, body, "Idempotency-Key", key)
		id, err := taskID(a)
		if err != nil {
			c.t.Fatalf("%s: %v", s.path, err)
		}
		if got := a.header.Get("Idempotency-Replayed"); got != replayed || replayed != "" && id != t.id {
			c.t.Errorf("%s under the same key: task %s after %s, Idempotency-Replayed %q", s.path, id, t.id, got)
		}
		t.id = id
	}
	c.charged.Add(c.charged, amount(c.world, s.price))
	c.checkLeft()
	c.tasks = append(c.tasks, t)
	return t
}

// checkLeft compares what the user can still spend.
func (c *chain) checkLeft() {
	c.t.Helper()
	var account struct {
		Remain json.Number `json:"remain_balance"`
	}
	c.show("/user/balance", &account)
	want := new(big.Rat).Sub(amount(c.world, granted), c.charged)
	if amount(c.world, account.Remain.String()).Cmp(want) != 0 {
		c.t.Errorf("the account has %s left, want %s", account.Remain, want.FloatString(6))
	}
}

// done waits for the task's end.
func (c *chain) done(t *task) object {
	c.t.Helper()
	return c.await(t, recoverTime, "completes", func(o object) bool { return o.Status == "completed" })
}

// run is order and done.
func (c *chain) run(s step) *task {
	c.t.Helper()
	t := c.order(s)
	c.done(t)
	c.checkLeft()
	return t
}

// refused expects the field's 400 that says so.
func (c *chain) refused(path string, body map[string]any, says ...string) {
	c.t.Helper()
	a := c.call(http.MethodPost, path, body)
	for _, words := range says {
		if a.status != http.StatusBadRequest || !strings.Contains(string(a.body), words) {
			c.t.Errorf("%s with %v: %d %s, want 400 with %q", path, body, a.status, a.body, words)
		}
	}
	c.checkLeft()
}

// settled asks what must hold when all tasks of the user have ended.
func (c *chain) settled() {
	c.t.Helper()
	c.ends = c.awaitEnds(recoverTime)
	c.checkEnds(c.ends)
	c.checkMoney(c.ends)
	c.checkHooks(c.ends)
	for _, t := range c.tasks {
		c.checkCallback(t)
	}
	c.checkLists()
}

// checkCallback compares the callback with what the task's endpoint answers.
func (c *chain) checkCallback(t *task) {
	c.t.Helper()
	arrivals := c.hooks.all()[t.id]
	if t.want == "cancelled" || len(arrivals) == 0 { // which checkHooks has judged
		return
	}
	var wrapped struct {
		Data map[string]any `json:"data"`
	}
	c.show("/tasks/"+t.id, &wrapped)
	delete(wrapped.Data, "webhook")
	var came map[string]any
	if err := json.Unmarshal([]byte(arrivals[0].body), &came); err != nil {
		c.t.Fatal(err)
	}
	if diff := gocmp.Diff(unsigned(wrapped.Data), unsigned(came)); diff != "" {
		c.t.Errorf("callback of %s %s (-task +callback):\n%s", t.model, t.id, diff)
	}
}

// unsigned is a task without what differs at each reading: the signatures of
// its links, and when these end.
func unsigned(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for name, value := range v {
			v[name] = unsigned(value)
			if name == "expires_at" {
				v[name] = "later"
			}
		}
	case []any:
		for i := range v {
			v[i] = unsigned(v[i])
		}
	case string:
		if link, _, ok := strings.Cut(v, "?"); ok && strings.HasPrefix(link, "http") {
			return link
		}
	}
	return v
}

// checkLists compares the lists of the user's tasks by type.
func (c *chain) checkLists() {
	c.t.Helper()
	want := map[string]map[string]bool{"music": {}, "art": {}, "video": {}, "image": {}}
	for _, t := range c.tasks {
		of := "art"
		if strings.HasPrefix(t.model, songs) {
			of = "music"
		}
		want[of][t.id] = true
	}
	for of := range want {
		var list struct {
			Data []struct{ ID, Type string }
		}
		c.show("/tasks?limit=100&type="+of, &list)
		got := map[string]bool{}
		for _, t := range list.Data {
			got[t.ID] = t.Type == of
		}
		if diff := gocmp.Diff(want[of], got); diff != "" {
			c.t.Errorf("tasks of the type %s (-want +got):\n%s", of, diff)
		}
	}
}

// file reads a link whole.
func (w *world) file(link string) (answer, error) {
	a, err := request{method: http.MethodGet, url: link}.do(w.t.Context())
	if err == nil && a.status != http.StatusOK {
		err = fmt.Errorf("status %d: %s", a.status, a.body[:min(len(a.body), 200)])
	}
	return a, err
}

// same compares the file behind a link with what it must be.
func (w *world) same(what, link, mime string, want []byte) {
	w.t.Helper()
	a, err := w.file(link)
	if err == nil && (string(a.body) != string(want) || a.header.Get("Content-Type") != mime) {
		err = fmt.Errorf("it has %d bytes of %s, want %d of %s", len(a.body), a.header.Get("Content-Type"), len(want), mime)
	}
	if err != nil {
		w.t.Errorf("%s: %v", what, err)
	}
}

// checkVendors compares how many jobs each vendor has in a world with vendors of
// its own: as many as were ordered of it, each sent once.
func (w *world) checkVendors(want map[string]int) {
	w.t.Helper()
	a, err := w.file(w.sandbox + "/_sandbox/jobs")
	var list struct{ Jobs []vendorJob }
	if err == nil {
		err = a.decode(&list)
	}
	if err != nil {
		w.t.Fatal(err)
	}
	got := map[string]int{}
	for _, j := range list.Jobs {
		if got[j.Provider]++; j.Calls.Submit != 1 {
			w.t.Errorf("a job of %s was sent %d times", j.Provider, j.Calls.Submit)
		}
	}
	if diff := gocmp.Diff(want, got); diff != "" {
		w.t.Errorf("jobs by vendor (-want +got):\n%s", diff)
	}
}
