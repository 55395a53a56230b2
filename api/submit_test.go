package api_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/oklog/ulid/v2"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/api"
)

func TestSubmitStoresTheTask(t *testing.T) {
	t.Parallel()
	g := newGateway(t)
	a := g.post(videos, `{"model":"alpha-v3","prompt":"a cat","duration":10,"webhook":"https://hooks.example.com/x?y=1",
		"metadata":{"reference":"order 7","other":1},"unknown":{"nested":true}}`)
	id := a.taskID(t)
	if want := `{"code":200,"data":[{"status":"submitted","task_id":"` + id + `"}]}` + "\n"; a.status != 200 || a.body != want {
		t.Errorf("%d %s", a.status, a.body)
	}
	if a.header.Get("Idempotency-Replayed") != "" {
		t.Error("a first submit looks replayed")
	}
	row, err := g.store.Task(t.Context(), g.account.ID, id)
	g.must(err)
	if row.AccountID != g.account.ID || row.KeyID != g.keyRow.ID || row.Model != "alpha-v3" || row.Type != mediagate.TypeVideo ||
		row.Status != mediagate.StatusPending || row.Reference != "order 7" || row.Hold != 840_000 || row.Cost != 0 ||
		!row.CreatedAt.Equal(g.clock.now()) || !row.DeadlineAt.Equal(g.clock.now().Add(row.Plan.Timeout)) ||
		row.RequestID != a.header.Get("X-Request-Id") || len(row.Plan.Routes) == 0 {
		t.Errorf("stored: %+v", row)
	}
	if row.Webhook.URL != "https://hooks.example.com/x?y=1" || row.Webhook.State != mediagate.WebhookPending {
		t.Errorf("webhook: %+v", row.Webhook)
	}
	if diff := cmp.Diff([]mediagate.Charge{{Item: "alpha-v3 std", Unit: mediagate.UnitSecond, Quantity: 10, UnitPrice: 84_000}}, row.Charges); diff != "" {
		t.Error(diff)
	}
	var params map[string]any
	g.must(json.Unmarshal(row.Params, &params))
	for _, name := range []string{"webhook", "metadata", "model", "unknown"} {
		if _, kept := params[name]; kept {
			t.Errorf("%s is kept in the parameters: %s", name, row.Params)
		}
	}
	if started := g.started(); len(started) != 1 || started[0].ID != id {
		t.Errorf("started: %v", started)
	}
}

// The times of a task are fixed at its submit.
func TestSubmitTimes(t *testing.T) {
	t.Parallel()
	g := newGateway(t, func(c *api.Config) {
		c.TaskTimeout, c.ParkTimeout, c.ParkRetry, c.QueueTimeout = time.Minute, time.Hour, time.Second, 2*time.Hour
	})
	row := g.row(g.submit(videos, videoBody))
	if row.Plan.Timeout != time.Minute || !row.DeadlineAt.Equal(g.clock.now().Add(time.Minute)) {
		t.Errorf("the setting is shorter, but the timeout is %s, the deadline %s", row.Plan.Timeout, row.DeadlineAt)
	}
	if p := row.Plan; p.ParkTimeout != time.Hour || p.ParkRetry != time.Second || p.QueueTimeout != 2*time.Hour {
		t.Errorf("the plan is %+v", p)
	}
}

func TestSubmitRefusals(t *testing.T) {
	t.Parallel()
	g := newGateway(t)
	_, onlyAlpha := g.newKey(mediagate.Key{Unlimited: true, Models: []string{"alpha-*"}})
	_, images := g.newKey(mediagate.Key{Unlimited: true, Group: "images"})
	_, lostGroup := g.newKey(mediagate.Key{Unlimited: true, Group: "default"})
	_, poor := g.newKey(mediagate.Key{Quota: 419_999}) // one micro short of 5 s at 0.084
	_, rich := g.newKey(mediagate.Key{Quota: 420_000})
	tests := map[string]struct {
		path, key, body string
		status          int
		kind, message   string
	}{
		"no JSON":                   {videos, g.key, `prompt=a`, 400, "invalid_request_error", "not acceptable JSON"},
		"no model":                  {videos, g.key, `{"prompt":"a"}`, 400, "invalid_request_error", "model is required"},
		"unknown model":             {videos, g.key, `{"model":"omega-9","prompt":"a"}`, 400, "invalid_request_error", "omega-9"},
		"model of another endpoint": {videos, g.key, imageBody, 400, "invalid_request_error", "theta-image-turbo"},
		"unknown before validation": {videos, onlyAlpha, `{"model":"omega-9"}`, 400, "invalid_request_error", "omega-9"},
		"model not of the key":      {"/v1/images/generations", onlyAlpha, imageBody, 403, "permission_error", "theta-image-turbo"},
		"allowed before validation": {"/v1/images/generations", onlyAlpha, `{"model":"theta-image-turbo"}`, 403, "permission_error", "theta-image-turbo"},
		"model not of the group":    {videos, images, videoBody, 403, "permission_error", "alpha-v3"},
		"validation":                {videos, g.key, `{"model":"alpha-v3","prompt":"a","duration":2}`, 400, "invalid_request_error", "duration"},
		"validation before balance": {videos, poor, `{"model":"alpha-v3","prompt":"a","duration":"5"}`, 400, "invalid_request_error", "duration"},
		"quota one micro short":     {videos, poor, videoBody, 402, "payment_required", ""},
		"quota just enough":         {videos, rich, videoBody, 200, "", ""},
		"group of the account":      {videos, lostGroup, videoBody, 200, "", ""},
		"model of the key":          {videos, onlyAlpha, videoBody, 200, "", ""},
		"model of the group":        {"/v1/images/generations", images, imageBody, 200, "", ""},
	}
	accepted := 0
	for _, test := range tests {
		if test.status == 200 {
			accepted++
		}
	}
	t.Run("all", func(t *testing.T) {
		for name, test := range tests {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				a := g.send(request{method: http.MethodPost, path: test.path, key: test.key, body: test.body})
				if test.status == 200 {
					a.taskID(t)
					return
				}
				a.wantError(t, test.status, test.kind, test.message)
			})
		}
	})
	if got := g.starts(); got != accepted {
		t.Errorf("%d workflows for %d accepted submits", got, accepted)
	}
	tasks, _, err := g.store.Tasks(t.Context(), mediagate.TaskFilter{AccountID: g.account.ID, Limit: 100})
	g.must(err)
	if len(tasks) != accepted {
		t.Errorf("%d rows for %d accepted submits", len(tasks), accepted)
	}
}

// Lists go by the time in a task's id.
func TestTheIDHasTheTimeOfCreation(t *testing.T) {
	t.Parallel()
	g := newGateway(t)
	g.clock.stepBy(3 * time.Millisecond)
	id := g.send(request{method: http.MethodPost, path: videos, key: g.key, body: videoBody}).taskID(t)
	task := g.row(id)
	parsed, err := ulid.ParseStrict(strings.TrimPrefix(id, "task_"))
	g.must(err)
	if made := int64(parsed.Time()); made != task.CreatedAt.UnixMilli() {
		t.Errorf("the id is of %d, the task of %d", made, task.CreatedAt.UnixMilli())
	}
}

// A body may be larger than 1 MiB for the data URIs in it, not for anything
// else: no adapter is asked for a request that only looks like one with media.
func TestLargeBodiesAreForMedia(t *testing.T) {
	t.Parallel()
	g := newGateway(t)
	body := func(prompt int, picture int) string {
		return `{"model":"delta-02","prompt":"` + strings.Repeat("<", prompt) + `","first_frame_image":"` + dataOf(pictureOf(picture)) + `"}`
	}
	for name, send := range map[string]func(body string) answer{
		"submit": func(body string) answer { return g.post(videos, body) },
		"quote": func(body string) answer {
			return g.post("/v1/quote", strings.Replace(body, "{", `{"endpoint":"`+videos+`",`, 1))
		},
	} {
		send(body(1<<19, 2<<20)).wantStatus(t, 200, "large media", name)
		asked := len(g.vendors.asked)
		send(body(2<<20, len(aPicture))).wantError(t, 413, "invalid_request_error", "without the media")
		if len(g.vendors.asked) != asked {
			t.Errorf("%s: adapters were asked for a request of 2 MiB", name)
		}
	}
}

func TestSubmitOutlivesTheWorkflows(t *testing.T) {
	t.Parallel()
	g := newGateway(t)
	g.starter.fail = errors.New("temporal is away at 10.9.8.7")
	a := g.post(videos, videoBody)
	a.taskID(t)
	api.AwaitStarts(g.server)
	g.server.Close() // tells how many starts failed
	if strings.Contains(a.body, "temporal") || !strings.Contains(g.log.String(), "temporal is away") {
		t.Errorf("the failure belongs in the log alone: %s", a.body)
	}
}

func TestIdempotencyKeyForm(t *testing.T) {
	t.Parallel()
	g := newGateway(t)
	submit := func(keys ...string) answer {
		header := http.Header{"Idempotency-Key": keys}
		return g.send(request{method: http.MethodPost, path: videos, key: g.key, body: videoBody, header: header})
	}
	for _, fine := range []string{strings.Repeat("k", 255), "a b", "~!\"'"} {
		submit(fine).taskID(t)
	}
	for _, keys := range [][]string{{strings.Repeat("k", 256)}, {"ä"}, {"c", "d"}} {
		submit(keys...).wantError(t, 400, "invalid_request_error", "Idempotency-Key")
	}
}

func TestIdempotentReplay(t *testing.T) {
	t.Parallel()
	g := newGateway(t)
	send := func(path, key, body string) answer {
		return g.send(request{
			method: http.MethodPost, path: path, key: key, body: body, header: http.Header{"Idempotency-Key": {"order 7"}},
		})
	}
	// Refusals are not remembered.
	send(videos, g.key, `{"model":"alpha-v3"}`).wantError(t, 400, "invalid_request_error", "prompt")
	first := send(videos, g.key, videoBody)
	_, sibling := g.newKey(mediagate.Key{Quota: 1, Models: []string{"nothing"}})
	for name, key := range map[string]string{"same key": g.key, "another key of the account": sibling} {
		a := send(videos, key, videoBody)
		if a.body != first.body || a.status != 200 || a.header.Get("Idempotency-Replayed") != "true" {
			t.Errorf("%s: %d %s, replayed %q", name, a.status, a.body, a.header.Get("Idempotency-Replayed"))
		}
	}
	if first.header.Get("Idempotency-Replayed") != "" {
		t.Error("the first one looks replayed")
	}
	const reused = "idempotency key reused with a different request"
	send(videos, g.key, videoBody+" ").wantError(t, 409, "invalid_request_error", reused)
	send(images, g.key, videoBody).wantError(t, 409, "invalid_request_error", reused)
	// JSON is judged before the replay, the model after it.
	send(videos, g.key, `{`).wantError(t, 400, "invalid_request_error", "JSON")
	send(videos, g.key, `{"model":"omega-9"}`).wantError(t, 409, "invalid_request_error", reused)
	if other := send(videos, g.other(), videoBody).taskID(t); other == first.taskID(t) {
		t.Error("another account got this one's task")
	}
	if got := g.starts(); got != 2 {
		t.Errorf("%d workflows, want 2", got)
	}
}

// A quote may be as long as its submit, beside the endpoint. It starts nothing, and takes no
// money.
func TestQuote(t *testing.T) {
	t.Parallel()
	g := newGateway(t)
	_, poor := g.newKey(mediagate.Key{Quota: 1})
	long := func(n int) string {
		body := `{"model":"alpha-v3","prompt":"a","x":""}`
		return strings.Replace(body, `"x":""`, `"x":"`+strings.Repeat("x", n-len(body))+`"`, 1)
	}
	for n, status := range map[int]int{1 << 20: 200, 1<<20 + 1: 413} {
		body := strings.Replace(long(n), "{", `{"endpoint":"`+videos+`",`, 1)
		if got := g.send(request{method: http.MethodPost, path: "/v1/quote", key: g.key, body: body}).status; got != status {
			t.Errorf("the quote of a submit of %d bytes is a %d, want %d", n, got, status)
		}
	}
	a := g.send(request{method: http.MethodPost, path: "/v1/quote", key: poor, body: `{"model":"alpha-v3","prompt":"a","mode":"pro","audio":true,"endpoint":"` + videos + `"}`})
	want := `{"cost":0.84,"credits_cost":840,"currency":"USD","breakdown":[{"item":"alpha-v3 pro audio","quantity":5,"unit_price":0.168,"amount":0.84}]}` + "\n"
	if a.status != 200 || a.body != want {
		t.Errorf("who cannot pay may still ask: %d %s", a.status, a.body)
	}
	g.untouched()
}

func TestQuoteRefusals(t *testing.T) {
	t.Parallel()
	g := newGateway(t)
	_, onlyAlpha := g.newKey(mediagate.Key{Unlimited: true, Models: []string{"alpha-*"}})
	tests := map[string]struct {
		key, body string
		status    int
		kind      string
		message   string
	}{
		"no endpoint":      {g.key, videoBody, 400, "invalid_request_error", "endpoint"},
		"empty endpoint":   {g.key, `{"endpoint":""}`, 400, "invalid_request_error", "endpoint is required"},
		"unknown endpoint": {g.key, `{"endpoint":"/v1/nothing"}`, 400, "invalid_request_error", "endpoint"},
		"wrong endpoint":   {g.key, `{"endpoint":"/v1/images/generations","model":"alpha-v3","prompt":"a"}`, 400, "invalid_request_error", "alpha-v3"},
		"not allowed":      {onlyAlpha, `{"endpoint":"/v1/images/generations","model":"theta-image-turbo","prompt":"a"}`, 403, "permission_error", "theta-image-turbo"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g.send(request{method: http.MethodPost, path: "/v1/quote", key: test.key, body: test.body}).
				wantError(t, test.status, test.kind, test.message)
		})
	}
}

// A submit to a group that has all in flight that it may is answered with 429. A quote is not.
func TestGroupCapacity(t *testing.T) {
	t.Parallel()
	g := newGateway(t, func(c *api.Config) {
		c.Groups = map[string]api.Group{"default": {Capacity: 1}, "free": {}}
	})
	_, free := g.newKey(mediagate.Key{Unlimited: true, Group: "free"})
	g.submit(videos, videoBody)
	a := g.post(images, imageBody)
	a.wantError(t, 429, "rate_limit_error", "capacity is saturated")
	a.wantWait(t, "5")
	g.send(request{method: "POST", path: videos, key: free, body: videoBody}).taskID(t)
	g.post("/v1/quote", `{"endpoint":"`+videos+`","model":"alpha-v3","prompt":"a cat"}`).
		wantStatus(t, 200, "the quote")
}
