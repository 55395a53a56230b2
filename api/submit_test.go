package api_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
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
	if row.Webhook == nil || row.Webhook.URL != "https://hooks.example.com/x?y=1" || row.Webhook.State != mediagate.WebhookPending {
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
	row, err := g.store.TaskByID(t.Context(), g.submit(videos, videoBody))
	g.must(err)
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
		"empty":                     {videos, g.key, ``, 400, "invalid_request_error", "the body is empty"},
		"array":                     {videos, g.key, `[]`, 400, "invalid_request_error", "JSON object"},
		"trailing":                  {videos, g.key, videoBody + `{}`, 400, "invalid_request_error", "data follows"},
		"duplicate, unknown field":  {videos, g.key, `{"model":"alpha-v3","prompt":"a","x":1,"x":2}`, 400, "invalid_request_error", `"x"`},
		"NUL in an unknown field":   {videos, g.key, `{"model":"alpha-v3","prompt":"a","x":"\u0000"}`, 400, "invalid_request_error", "U+0000"},
		"1e309 in an unknown field": {videos, g.key, `{"model":"alpha-v3","prompt":"a","x":1e309}`, 400, "invalid_request_error", "too large"},
		"no model":                  {videos, g.key, `{"prompt":"a"}`, 400, "invalid_request_error", "model is required"},
		"null model":                {videos, g.key, `{"model":null,"prompt":"a"}`, 400, "invalid_request_error", "model is required"},
		"blank model":               {videos, g.key, `{"model":" \u3000","prompt":"a"}`, 400, "invalid_request_error", "model is required"},
		"number as model":           {videos, g.key, `{"model":3,"prompt":"a"}`, 400, "invalid_request_error", "model must be a string"},
		"unknown model":             {videos, g.key, `{"model":"omega-9","prompt":"a"}`, 400, "invalid_request_error", "omega-9"},
		"model in another case":     {videos, g.key, `{"model":"Alpha-v3","prompt":"a"}`, 400, "invalid_request_error", "Alpha-v3"},
		"model of another endpoint": {videos, g.key, imageBody, 400, "invalid_request_error", "theta-image-turbo"},
		"unknown before validation": {videos, onlyAlpha, `{"model":"omega-9"}`, 400, "invalid_request_error", "omega-9"},
		"model not of the key":      {"/v1/images/generations", onlyAlpha, imageBody, 403, "permission_error", "theta-image-turbo"},
		"allowed before validation": {"/v1/images/generations", onlyAlpha, `{"model":"theta-image-turbo"}`, 403, "permission_error", "theta-image-turbo"},
		"model not of the group":    {videos, images, videoBody, 403, "permission_error", "alpha-v3"},
		"validation":                {videos, g.key, `{"model":"alpha-v3","prompt":"a","duration":2}`, 400, "invalid_request_error", "duration"},
		"validation before balance": {videos, poor, `{"model":"alpha-v3","prompt":"a","duration":"5"}`, 400, "invalid_request_error", "duration"},
		"webhook of another type":   {videos, g.key, `{"model":"alpha-v3","prompt":"a","webhook":1}`, 400, "invalid_request_error", "webhook"},
		"metadata as array":         {videos, g.key, `{"model":"alpha-v3","prompt":"a","metadata":[]}`, 400, "invalid_request_error", "metadata"},
		"long reference":            {videos, g.key, `{"model":"alpha-v3","prompt":"a","metadata":{"reference":"` + strings.Repeat("é", 256) + `"}}`, 400, "invalid_request_error", "metadata.reference"},
		"quota one micro short":     {videos, poor, videoBody, 402, "payment_required", ""},
		"account short":             {videos, g.key, `{"model":"alpha-v3","prompt":"a","duration":15,"mode":"4k","audio":true,"n":1}`, 200, "", ""},
		"quota just enough":         {videos, rich, videoBody, 200, "", ""},
		"group of the account":      {videos, lostGroup, videoBody, 200, "", ""},
		"model of the key":          {videos, onlyAlpha, videoBody, 200, "", ""},
		"model of the group":        {"/v1/images/generations", images, imageBody, 200, "", ""},
		"longest reference":         {videos, g.key, `{"model":"alpha-v3","prompt":"a","metadata":{"reference":"` + strings.Repeat("é", 255) + `"}}`, 200, "", ""},
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
	task, err := g.store.TaskByID(t.Context(), id)
	g.must(err)
	parsed, err := ulid.ParseStrict(strings.TrimPrefix(id, "task_"))
	g.must(err)
	if made := int64(parsed.Time()); made != task.CreatedAt.UnixMilli() {
		t.Errorf("the id is of %d, the task of %d", made, task.CreatedAt.UnixMilli())
	}
}

func TestSubmitWithoutMoney(t *testing.T) {
	t.Parallel()
	g := newGateway(t)
	account, err := g.store.CreateAccount(t.Context(), mediagate.Account{Name: "poor", Group: "default"})
	g.must(err)
	_, key := g.newKey(mediagate.Key{AccountID: account.ID, Unlimited: true})
	send := func() answer {
		return g.send(request{method: http.MethodPost, path: images, key: key, body: imageBody})
	}
	send().wantError(t, 402, "payment_required", "") // an unlimited key is still bound by its account
	_, _, _, err = g.store.Grant(t.Context(), account.ID, 14_999, "a")
	g.must(err)
	send().wantError(t, 402, "payment_required", "")
	_, _, _, err = g.store.Grant(t.Context(), account.ID, 1, "b")
	g.must(err)
	send().taskID(t)
	send().wantError(t, 402, "payment_required", "")
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
		if a := send(body(1<<19, 2<<20)); a.status != 200 {
			t.Errorf("%s: large media: %d %s", name, a.status, a.body)
		}
		asked := len(g.vendors.asked)
		send(body(2<<20, len(aPicture))).wantError(t, 413, "invalid_request_error", "beside the media")
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

func TestWebhookAtSubmit(t *testing.T) {
	t.Parallel()
	g := newGateway(t)
	tests := map[string]struct {
		field string
		state mediagate.WebhookState // empty: no webhook
	}{
		"absent":        {``, ""},
		"null":          {`,"webhook":null`, ""},
		"empty":         {`,"webhook":""`, ""},
		"fine":          {`,"webhook":"https://hooks.example.com"`, mediagate.WebhookPending},
		"private":       {`,"webhook":"http://10.0.0.1/"`, mediagate.WebhookDropped},
		"other port":    {`,"webhook":"https://hooks.example.com:8443/"`, mediagate.WebhookDropped},
		"no URL at all": {`,"webhook":"call me"`, mediagate.WebhookDropped},
		"blank":         {`,"webhook":"  "`, mediagate.WebhookDropped},
		"too long":      {`,"webhook":"https://hooks.example.com/` + strings.Repeat("é", 5000) + `"`, mediagate.WebhookDropped},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			id := g.submit(videos, `{"model":"alpha-v3","prompt":"a"`+test.field+`}`)
			a := g.get("/v1/tasks/" + id)
			if test.state == "" {
				if a.at("data", "webhook") != nil {
					t.Errorf("webhook: %s", a.body)
				}
				return
			}
			reason, _ := a.at("data", "webhook", "reason").(string)
			if a.at("data", "webhook", "state") != string(test.state) || (reason != "") != (test.state == mediagate.WebhookDropped) {
				t.Errorf("webhook: %s", a.body)
			}
		})
	}
}

func TestIdempotencyKeyForm(t *testing.T) {
	t.Parallel()
	g := newGateway(t)
	tests := map[string]struct {
		keys []string
		fine bool
	}{
		"one character":  {[]string{"a"}, true},
		"255 characters": {[]string{strings.Repeat("k", 255)}, true},
		"256 characters": {[]string{strings.Repeat("k", 256)}, false},
		"empty":          {[]string{""}, false},
		"inner space":    {[]string{"a b"}, true},
		"tilde":          {[]string{"~!\"'"}, true},
		"tab":            {[]string{"a\tb"}, false},
		"delete":         {[]string{"a\x7f"}, false},
		"umlaut":         {[]string{"ä"}, false},
		"two headers":    {[]string{"c", "d"}, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := g.send(request{
				method: http.MethodPost, path: videos, key: g.key, body: videoBody, header: http.Header{"Idempotency-Key": test.keys},
			})
			if test.fine {
				a.taskID(t)
				return
			}
			a.wantError(t, 400, "invalid_request_error", "Idempotency-Key")
		})
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
	id := first.taskID(t)
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
	send(videos, g.key, imageBody).wantError(t, 409, "invalid_request_error", reused)
	send(images, g.key, videoBody).wantError(t, 409, "invalid_request_error", reused)
	// JSON is judged before the replay, the model after it.
	send(videos, g.key, `{`).wantError(t, 400, "invalid_request_error", "JSON")
	send(videos, g.key, `{"model":"omega-9"}`).wantError(t, 409, "invalid_request_error", reused)
	if other := send(videos, g.other(), videoBody).taskID(t); other == id {
		t.Error("another account got this one's task")
	}
	if got := g.starts(); got != 2 {
		t.Errorf("%d workflows, want 2", got)
	}
	g.clock.advance(23 * time.Hour)
	if send(videos, g.key, videoBody).taskID(t) != id {
		t.Error("forgotten within 24 hours")
	}
}

func TestTwentyAtOnceWithOneKey(t *testing.T) {
	t.Parallel()
	g := newGateway(t)
	ids, fresh := map[string]int{}, 0
	var mu sync.Mutex
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			a := g.send(request{
				method: http.MethodPost, path: videos, key: g.key, body: videoBody, header: http.Header{"Idempotency-Key": {"one"}},
			})
			mu.Lock()
			defer mu.Unlock()
			ids[a.taskID(t)]++
			if a.header.Get("Idempotency-Replayed") == "" {
				fresh++
			}
		})
	}
	all.Wait()
	if len(ids) != 1 || fresh != 1 || g.starts() != 1 {
		t.Errorf("%d tasks, %d fresh answers, %d workflows", len(ids), fresh, g.starts())
	}
	account, err := g.store.Account(t.Context(), g.account.ID)
	g.must(err)
	if account.Held != 420_000 {
		t.Errorf("held %s", account.Held)
	}
}

func TestQuoteEqualsTheHold(t *testing.T) {
	t.Parallel()
	g := newGateway(t)
	_, half := g.newKey(mediagate.Key{Unlimited: true, Group: "half"})
	_, poor := g.newKey(mediagate.Key{Quota: 1})
	i := 0
	for _, path := range []string{videos, images} {
		var bodies []string
		if path == images {
			for _, resolution := range []string{"1K", "2K"} {
				for _, extend := range []string{"true", "false"} {
					bodies = append(bodies, fmt.Sprintf(`"model":"theta-image-turbo","resolution":%q,"prompt_extend":%s`, resolution, extend))
				}
			}
		} else {
			for _, mode := range []string{"std", "pro", "4k"} {
				bodies = append(bodies, fmt.Sprintf(`"model":"alpha-v3","mode":%q,"duration":3,"audio":true`, mode))
			}
			bodies = append(bodies, `"model":"alpha-v3"`, `"model":"alpha-video-o1","duration":5.0`)
		}
		for _, body := range bodies {
			for _, key := range []string{g.key, half} {
				i++
				quoted := g.send(request{method: http.MethodPost, path: "/v1/quote", key: key, body: `{` + body + `,"prompt":"a","endpoint":"` + path + `"}`})
				a := g.send(request{method: http.MethodPost, path: path, key: key, body: `{` + body + `,"prompt":"a"}`})
				row, err := g.store.TaskByID(t.Context(), a.taskID(t))
				g.must(err)
				cost := row.Hold.Number()
				if quoted.status != 200 || fmt.Sprint(quoted.at("cost")) != cost.String() || fmt.Sprint(quoted.at("credits_cost")) != row.Hold.Credits(1000).String() {
					t.Errorf("%s: quoted %s, held %s", body, quoted.body, row.Hold)
				}
			}
		}
	}
	// Whatever a submit may be long, its quote may be, with its endpoint.
	long := func(n int) string {
		body := `{"model":"alpha-v3","prompt":"a","x":""}`
		return strings.Replace(body, `"x":""`, `"x":"`+strings.Repeat("x", n-len(body))+`"`, 1)
	}
	for n, status := range map[int]int{1 << 20: 200, 1<<20 + 1: 413, 1<<20 + 1000: 413} {
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
	if got := g.starts(); got != i {
		t.Errorf("%d workflows for %d submits: quotes start some", got, i)
	}
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
		"no endpoint":        {g.key, videoBody, 400, "invalid_request_error", "endpoint"},
		"null endpoint":      {g.key, `{"endpoint":null}`, 400, "invalid_request_error", "endpoint is required"},
		"empty endpoint":     {g.key, `{"endpoint":""}`, 400, "invalid_request_error", "endpoint is required"},
		"endpoint a number":  {g.key, `{"endpoint":1}`, 400, "invalid_request_error", "endpoint must be a string"},
		"unknown endpoint":   {g.key, `{"endpoint":"/v1/nothing"}`, 400, "invalid_request_error", "endpoint"},
		"no submit endpoint": {g.key, `{"endpoint":"/v1/tasks"}`, 400, "invalid_request_error", "endpoint"},
		"partial path":       {g.key, `{"endpoint":"videos/generations"}`, 400, "invalid_request_error", "endpoint"},
		"trailing slash":     {g.key, `{"endpoint":"/v1/videos/generations/"}`, 400, "invalid_request_error", "endpoint"},
		"wrong endpoint":     {g.key, `{"endpoint":"/v1/images/generations","model":"alpha-v3","prompt":"a"}`, 400, "invalid_request_error", "alpha-v3"},
		"unknown model":      {g.key, `{"endpoint":"/v1/images/generations","model":"omega-9"}`, 400, "invalid_request_error", "omega-9"},
		"not allowed":        {onlyAlpha, `{"endpoint":"/v1/images/generations","model":"theta-image-turbo","prompt":"a"}`, 403, "permission_error", "theta-image-turbo"},
		"invalid":            {g.key, `{"endpoint":"/v1/videos/generations","model":"alpha-v3"}`, 400, "invalid_request_error", "prompt"},
		"no JSON":            {g.key, `{`, 400, "invalid_request_error", "JSON"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g.send(request{method: http.MethodPost, path: "/v1/quote", key: test.key, body: test.body}).
				wantError(t, test.status, test.kind, test.message)
		})
	}
}

// A group that has all in flight that it may is told so, after the balance has
// been looked at, and takes replays all the same.
func TestGroupCapacity(t *testing.T) {
	t.Parallel()
	g := newGateway(t, func(c *api.Config) {
		c.Groups = map[string]api.Group{"default": {Capacity: 1}, "free": {}}
	})
	_, free := g.newKey(mediagate.Key{Unlimited: true, Group: "free"})
	keyed := request{method: "POST", path: videos, key: g.key, body: videoBody, header: http.Header{"Idempotency-Key": {"one"}}}
	first := g.send(keyed).taskID(t)
	a := g.post(images, imageBody)
	a.wantError(t, 429, "rate_limit_error", "capacity is saturated")
	if after := a.header.Get("Retry-After"); after != "5" {
		t.Errorf("Retry-After %q", after)
	}
	if again := g.send(keyed); again.taskID(t) != first || again.header.Get("Idempotency-Replayed") != "true" {
		t.Errorf("the replay: %s", again.body)
	}
	g.send(request{method: "POST", path: videos, key: free, body: videoBody}).taskID(t)
	_, poor := g.newKey(mediagate.Key{Quota: 1})
	g.send(request{method: "POST", path: videos, key: poor, body: videoBody}).wantError(t, 402, "payment_required", "")
	if a := g.post("/v1/quote", `{"endpoint":"`+videos+`","model":"alpha-v3","prompt":"a cat"}`); a.status != 200 {
		t.Errorf("the quote: %d %s", a.status, a.body)
	}
	g.complete(first)
	g.submit(images, imageBody)
}
