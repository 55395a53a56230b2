package e2e_test

import (
	"fmt"
	"maps"
	"net/http"
	"testing"
)

// user is one of the users that share a world.
type user struct {
	*world
	ends map[string]object // its tasks at their ends, set by checkSettled
}

// user opens an account for the test.
func (w *world) user(t *testing.T) *user {
	t.Helper()
	own := *w
	own.t, own.tasks, own.uploads = t, nil, nil
	own.hooks = newReceiver(t)
	own.hooks.setContract(w.contract)
	own.openAccount()
	return &user{world: &own}
}

// step is a user's next request.
type step struct {
	path    string // below /v1
	body    map[string]any
	price   string
	files   int // as in task
	objects int
}

const (
	songs  = "/music/generations"
	artgen = "/artgen/generations"
)

func (c *user) call(method, path string, body any) answer {
	c.t.Helper()
	a, err := request{method: method, url: c.apiURLs[0] + "/v1" + path, key: c.key, body: body}.do(c.t.Context())
	if err != nil {
		c.t.Fatalf("%s %s: %v", method, path, err)
	}
	return a
}

// submitStep submits the step.
func (c *user) submitStep(s step) *task {
	c.t.Helper()
	t := &task{model: s.path, hook: true, files: s.files, objects: s.objects, price: s.price}
	body := map[string]any{"webhook": c.hooks.url, "metadata": map[string]any{"reference": "ref" + randomText(12)}}
	maps.Copy(body, s.body)
	var err error
	if t.id, err = taskID(c.call(http.MethodPost, s.path, body)); err != nil {
		c.t.Fatalf("%s: %v", s.path, err)
	}
	c.tasks = append(c.tasks, t)
	return t
}

// awaitCompleted waits for the task's end.
func (c *user) awaitCompleted(t *task) object {
	c.t.Helper()
	return c.await(t, recoverTime, "completes", func(o object) bool { return o.Status == "completed" })
}

// run submits the step and waits for its task's end.
func (c *user) run(s step) *task {
	c.t.Helper()
	t := c.submitStep(s)
	c.awaitCompleted(t)
	return t
}

// checkSettled waits until all tasks of the user have ended, and makes the checks of verify.
func (c *user) checkSettled() {
	c.t.Helper()
	c.ends = c.awaitEnds(recoverTime)
	c.checkEnds(c.ends)
	c.checkMoney(c.ends)
	c.checkHooks(c.ends)
}

// file reads the whole file behind a link.
func (w *world) file(link string) (answer, error) {
	a, err := request{method: http.MethodGet, url: link}.do(w.t.Context())
	if err == nil && a.status != http.StatusOK {
		err = fmt.Errorf("status %d: %s", a.status, a.body[:min(len(a.body), 200)])
	}
	return a, err
}

// same compares the file behind a link with the expected content.
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
