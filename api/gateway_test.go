package api_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/api"
	"github.com/mediagate/mediagate/catalog"
	"github.com/mediagate/mediagate/internal/limit"
	"github.com/mediagate/mediagate/internal/outbound"
	"github.com/mediagate/mediagate/storage/blob"
	"github.com/mediagate/mediagate/task"
)

const (
	adminKey  = "the-admin-key-of-the-tests-0123456789"
	videoBody = `{"model":"alpha-v3","prompt":"a cat"}`
	imageBody = `{"model":"theta-image-turbo","prompt":"a cat"}`
	videos    = "/v1/videos/generations"
	images    = "/v1/images/generations"
)

// testStore is the store with the changes that workers make to tasks.
type testStore interface {
	api.Store
	Change(ctx context.Context, taskID string, events ...task.Event) (task.Changed, error)
	TaskByID(ctx context.Context, id string) (mediagate.Task, error)
	DueSweeps(ctx context.Context, limit int) ([]mediagate.Sweep, error)
	SeenChannel(ctx context.Context, names []string) error
	TripBreaker(ctx context.Context, t mediagate.Trip) (state mediagate.ChannelState, tripped bool, err error)
	ClaimProbe(ctx context.Context, channel, probe string, lease time.Duration) (state mediagate.ChannelState, claimed bool, err error)
	RetireModel(
		ctx context.Context, channel, upstream string, began time.Time, shutFor time.Duration,
	) (mediagate.ChannelState, error)
	CountCalls(ctx context.Context, calls []mediagate.ChannelCalls) error
	AddLink(ctx context.Context, link mediagate.Session, life time.Duration) error
	ClaimDeliveries(ctx context.Context, endpointID string, most int, lease time.Duration) (mediagate.EndpointTurn, error)
	StoreEndpointBody(ctx context.Context, endpointID, eventID string, body []byte) ([]byte, error)
	RecordEndpointAttempt(ctx context.Context, r mediagate.EndpointResult) error
}

// clock is the time of the gateway and its database.
type clock struct {
	mu   sync.Mutex
	at   time.Time
	step time.Duration // by which each look moves it
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(c.step)
	return c.at
}

// stepBy makes the clock advance at each reading.
func (c *clock) stepBy(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.step = d
}

func (c *clock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
}

// starter records the runs that are started and signalled. Like vendors and bucket, it replaces a
// service outside this process.
type starter struct {
	mu      sync.Mutex
	started []mediagate.Task
	woken   []string // tasks whose runs were signalled
	jobs    []mediagate.TaskJob
	fail    error
	runs    [][]mediagate.UncertainTask // that Temporal lists, by pages
}

// RunsSince lists a page of runs.
func (s *starter) RunsSince(_ context.Context, since time.Time, page string) (runs []mediagate.UncertainTask, next string, err error) {
	n := len(page)
	if page != strings.Repeat("x", n) || n > 0 && n >= len(s.runs) {
		return nil, "", mediagate.Invalid("after", "no page")
	}
	if n < len(s.runs) {
		for _, r := range s.runs[n] {
			if !r.At.Before(since) {
				runs = append(runs, r)
			}
		}
	}
	if n+1 < len(s.runs) {
		next = strings.Repeat("x", n+1)
	}
	return runs, next, s.fail
}

func (s *starter) Start(_ context.Context, t mediagate.Task) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.started = append(s.started, t)
	return s.fail
}

func (s *starter) Wake(_ context.Context, taskID string) (runs bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.woken = append(s.woken, taskID)
	return s.fail == nil, s.fail
}

func (s *starter) Run(_ context.Context, taskID string) (runID, page string, err error) {
	if s.fail != nil {
		return "", "https://temporal.example.com/" + taskID, s.fail
	}
	return "run-of-" + taskID, "https://temporal.example.com/" + taskID + "/run", nil
}

func (s *starter) StartJob(_ context.Context, job mediagate.TaskJob) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.jobs = append(s.jobs, job)
	return s.fail
}

func (s *starter) Job(_ context.Context, id string) (status mediagate.TaskJobStatus, runID, page string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	page = "https://temporal.example.com/actions%2F" + id
	if !slices.ContainsFunc(s.jobs, func(j mediagate.TaskJob) bool { return j.ID == id }) {
		return status, "", page, mediagate.Errorf(mediagate.KindNotFound, "no such job")
	}
	return mediagate.TaskJobStatus{State: mediagate.TaskJobRunning, Count: &mediagate.TaskJobCount{Done: 2, Skipped: 1}}, "run-of-" + id, page, s.fail
}

// started waits for all starts and returns the tasks whose workflows were started. No submit may run
// at the same time, since started waits for the group that a submit adds to.
func (g *gateway) started() []mediagate.Task {
	api.AwaitStarts(g.server)
	g.starter.mu.Lock()
	defer g.starter.mu.Unlock()
	return slices.Clone(g.starter.started)
}

func (g *gateway) starts() int { return len(g.started()) }

// awaitStart waits for the next start after the first n and returns its task. Unlike started, it may
// be called during a submit.
func (g *gateway) awaitStart(after int) (t mediagate.Task) {
	g.t.Helper()
	eventually(g.t, "a task is started", func() bool {
		g.starter.mu.Lock()
		defer g.starter.mu.Unlock()
		if len(g.starter.started) <= after {
			return false
		}
		t = g.starter.started[after]
		return true
	})
	return t
}

// vendors supports the requests that a test names, or all, and records its calls.
type vendors struct {
	mu    sync.Mutex
	says  func(model string, route mediagate.Route, params json.RawMessage) api.Support
	asked []string
	job   mediagate.Job // that was asked about last
}

func (v *vendors) Supports(model string, route mediagate.Route, job mediagate.Job) api.Support {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.asked, v.job = append(v.asked, route.Upstream), job
	if v.says == nil {
		return api.Support{Sync: route.Provider == "dashscope"}
	}
	return v.says(model, route, job.Params)
}

// bucket keeps stored files in memory.
type bucket struct {
	mu    sync.Mutex
	files map[string][]byte
	fail  error
}

func (b *bucket) PutUpload(_ context.Context, accountID, id string, picture io.Reader) (string, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.fail != nil {
		return "", b.fail
	}
	file, err := io.ReadAll(picture)
	if err != nil {
		return "", err
	}
	if b.files == nil {
		b.files = map[string][]byte{}
	}
	key := "uploads/" + accountID + "/" + id
	b.files[key] = file
	return key, nil
}

// put stores a file as a worker would.
func (b *bucket) put(key, content string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.files == nil {
		b.files = map[string][]byte{}
	}
	b.files[key] = []byte(content)
}

// Remove removes the files of a task.
func (b *bucket) Remove(_ context.Context, folder string, objects ...string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.fail != nil {
		return b.fail
	}
	maps.DeleteFunc(b.files, func(key string, _ []byte) bool {
		return strings.HasPrefix(key, folder) || slices.Contains(objects, key)
	})
	return nil
}

// gateway is an API over a real database, with an account of 100 USD and an
// unlimited key.
type gateway struct {
	t       *testing.T
	server  *api.Server
	store   testStore
	starter *starter
	vendors *vendors
	bucket  *bucket
	speaker *speaker
	clock   *clock
	log     *syncBuffer
	limits  *limit.Process
	account mediagate.Account
	keyRow  mediagate.Key
	key     string
}

type syncBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

func newGateway(t *testing.T, changes ...func(*api.Config)) *gateway {
	t.Helper()
	g := &gateway{
		t: t, starter: &starter{}, vendors: &vendors{}, bucket: &bucket{}, speaker: &speaker{}, log: &syncBuffer{},
		clock: &clock{at: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)},
	}
	g.store = newStore(t, g.clock.now)
	models := api.BuiltIn(t)
	signer, err := blob.Open(t.Context(), blob.Config{
		Endpoint: "https://s3.example.com", Region: "eu-1", Bucket: "media", AccessKeyID: "id", SecretAccessKey: "secret",
		PathStyle: true, Now: g.clock.now,
	})
	g.must(err)
	cfg := api.Config{
		Store: g.store, Catalog: models, Routes: g.vendors, Uploads: g.bucket, Files: g.bucket, FileURL: fileURL, Starter: g.starter, Runs: g.starter, Signer: signer, Remover: g.bucket, Speaker: g.speaker, Operators: admins(adminKey),
		CheckWebhookURL: func(raw string) error {
			_, err := outbound.Rules{}.CheckWebhookURL(raw)
			return err
		},
		Deliverer: &receiver{result: mediagate.DeliveryResult{Outcome: mediagate.DeliveryDone, Status: 204}},
		Groups: map[string]api.Group{
			"default": {PriceFactor: "1", Models: []string{"*"}},
			"half":    {PriceFactor: "0.5"},
			"images":  {Models: []string{"theta-*"}},
		},
		Channels: []api.Channel{
			{Name: "kling-b", Provider: "kling", Models: []string{"alpha-v3"}, Priority: 1, Weight: 2, Concurrency: 50, Serves: servesOf("kling", "alpha-v3")},
			{Name: "kling-a", Provider: "kling", Weight: 1, Serves: servesOf("kling")},
		},
		Limits:  &limit.Process{Bodies: limit.New("", 1<<40), Uploads: limit.New("", 1<<40)},
		Version: "1.2.3", Now: g.clock.now, Logger: slog.New(slog.NewJSONHandler(g.log, nil)),
	}
	for _, change := range changes {
		change(&cfg)
	}
	g.limits = cfg.Limits
	g.server, err = api.New(cfg)
	g.must(err)
	t.Cleanup(g.server.Close)
	checkAnswers(t, g.server)
	g.account, err = g.store.CreateAccount(t.Context(), mediagate.Account{Name: "test", Group: "default"})
	g.must(err)
	g.grant("100")
	g.keyRow, g.key = g.newKey(mediagate.Key{Unlimited: true})
	return g
}

// held returns the number of bytes that bodies and uploads hold.
func (g *gateway) held() int64 {
	return g.limits.Bodies.Figures().Held + g.limits.Uploads.Figures().Held
}

// bounds changes limits of the process.
func bounds(make func(*limit.Process)) func(*api.Config) {
	p := &limit.Process{}
	make(p)
	return func(c *api.Config) { c.Limits = p }
}

// servesOf returns the routes that a channel of a provider serves, only for the named models if there
// are any.
func servesOf(provider string, models ...string) func(string, mediagate.Route) bool {
	return mediagate.Channel{Provider: provider, Models: models}.Serves
}

// smallBodies is a catalog of models that take no files within a request, so
// that the smaller bound of bodies is the one in force.
func smallBodies(t *testing.T) func(*api.Config) {
	t.Helper()
	dir := t.TempDir()
	for _, id := range []string{"delta-02", "delta-2.3"} {
		must(t, os.WriteFile(filepath.Join(dir, id+".yaml"), []byte("id: "+id+"\nenabled: false\n"), 0o600))
	}
	models, err := catalog.Load(dir)
	must(t, err)
	return func(c *api.Config) { c.Catalog = models }
}

// must ends the test with an error.
func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (g *gateway) must(err error) {
	g.t.Helper()
	must(g.t, err)
}

func (g *gateway) grant(amount string) {
	g.t.Helper()
	m, err := mediagate.ParseMicros(amount)
	g.must(err)
	_, _, _, err = g.store.Grant(g.t.Context(), g.account.ID, m, "grant of "+amount)
	g.must(err)
}

// newKey makes a key of the gateway's account.
func (g *gateway) newKey(k mediagate.Key) (mediagate.Key, string) {
	g.t.Helper()
	secret, stored := api.NewKey()
	k.Prefix, k.LastFour = stored.Prefix, stored.LastFour
	if k.AccountID == "" {
		k.AccountID = g.account.ID
	}
	if k.Name == "" {
		k.Name = "test"
	}
	row, err := g.store.CreateKey(g.t.Context(), k, stored.Hash)
	g.must(err)
	return row, secret
}

// other is a second account with a key.
func (g *gateway) other() string {
	g.t.Helper()
	a, err := g.store.CreateAccount(g.t.Context(), mediagate.Account{Name: "other", Group: "default"})
	g.must(err)
	_, _, _, err = g.store.Grant(g.t.Context(), a.ID, 100*mediagate.MicrosPerUnit, "start")
	g.must(err)
	_, secret := g.newKey(mediagate.Key{AccountID: a.ID, Unlimited: true})
	return secret
}

// answer is the answer to a call.
type answer struct {
	status int
	header http.Header
	body   string
	data   map[string]any // the body, when it is an object
}

// request makes a call. An empty key sends no Authorization.
type request struct {
	method, path, key, body string
	header                  http.Header
	remote                  string
}

func (g *gateway) send(r request) answer {
	g.t.Helper()
	var body io.Reader
	if r.body != "" {
		body = strings.NewReader(r.body)
	}
	if r.method == "" {
		r.method = http.MethodGet
	}
	req := httptest.NewRequestWithContext(g.t.Context(), r.method, r.path, body)
	maps.Copy(req.Header, r.header)
	if r.key != "" {
		req.Header.Set("Authorization", "Bearer "+r.key)
	}
	if r.remote != "" {
		req.RemoteAddr = r.remote
	}
	w := httptest.NewRecorder()
	g.server.ServeHTTP(w, req)
	a := answer{status: w.Code, header: w.Header(), body: w.Body.String()}
	_ = json.Unmarshal(w.Body.Bytes(), &a.data)
	if id := a.header.Get("X-Request-Id"); !strings.HasPrefix(id, "req_") || len(id) != 30 {
		g.t.Errorf("%s %s: X-Request-Id is %q", r.method, r.path, id)
	}
	return a
}

func (g *gateway) get(path string) answer {
	g.t.Helper()
	return g.send(request{path: path, key: g.key})
}

func (g *gateway) post(path, body string) answer {
	g.t.Helper()
	return g.send(request{method: http.MethodPost, path: path, key: g.key, body: body})
}

// admins returns one operator with the key and all rights, or none without a key.
func admins(key string) []api.Operator {
	if key == "" {
		return nil
	}
	return []api.Operator{{Name: mediagate.AdminOperator, KeyHash: api.HashKey(key), Role: mediagate.RoleAdmin}}
}

// operate calls the admin API.
func (g *gateway) operate(method, path, body string) answer {
	g.t.Helper()
	return g.send(request{method: method, path: "/admin/v1" + path, key: adminKey, body: body})
}

// submit submits a task and returns its id.
func (g *gateway) submit(path, body string) string {
	g.t.Helper()
	a := g.post(path, body)
	if a.status != http.StatusOK {
		g.t.Fatalf("submit: %d %s", a.status, a.body)
	}
	return a.taskID(g.t)
}

func (a answer) taskID(t *testing.T) string {
	t.Helper()
	var ack struct {
		Code int
		Data []struct {
			Status string
			TaskID string `json:"task_id"`
		}
	}
	if err := json.Unmarshal([]byte(a.body), &ack); err != nil || ack.Code != 200 || len(ack.Data) != 1 || ack.Data[0].Status != "submitted" {
		t.Fatalf("no acknowledgement: %s", a.body)
	}
	return ack.Data[0].TaskID
}

// at returns the value at a path of the answer's JSON.
func (a answer) at(path ...any) any {
	var v any = a.data
	for _, step := range path {
		switch step := step.(type) {
		case string:
			m, _ := v.(map[string]any)
			v = m[step]
		case int:
			l, _ := v.([]any)
			if step >= len(l) {
				return nil
			}
			v = l[step]
		}
	}
	return v
}

// row returns the stored task.
func (g *gateway) row(id string) mediagate.Task {
	g.t.Helper()
	row, err := g.store.TaskByID(g.t.Context(), id)
	g.must(err)
	return row
}

// change applies an event to the task.
func (g *gateway) change(id string, events ...task.Event) task.State {
	g.t.Helper()
	changed, err := g.store.Change(g.t.Context(), id, events...)
	g.must(err)
	return changed.State
}

// accept makes a vendor accept the task.
func (g *gateway) accept(id string) {
	g.t.Helper()
	now := g.clock.now()
	sent := task.Sending{
		N: 1, Channel: "one", Provider: "kling", Fingerprint: "f", Route: mediagate.Route{Provider: "kling"}, ExternalID: id,
		SendBefore: now.Add(10 * time.Second), CallEnds: now.Add(time.Minute),
	}
	g.change(id, task.IntentStored{Sending: sent}, task.Accepted{Sending: sent, Submission: mediagate.Submission{Ref: mediagate.JobRef{JobID: "job"}}, FirstPollAt: now})
}

// askMore makes the vendor wait for modal parameters.
func (g *gateway) askMore(id string) {
	g.t.Helper()
	state := g.change(id, task.Claimed{N: 1, Claim: "c"}, task.VendorWaits{N: 1, Claim: "c"})
	if state.Modal.State != mediagate.ModalWaiting {
		g.t.Fatalf("the task does not wait for its client: %q", state.Modal.State)
	}
}

// complete completes the task with the files, or with one file at its full price.
func (g *gateway) complete(id string, results ...mediagate.Result) {
	g.t.Helper()
	if len(results) == 0 {
		results = []mediagate.Result{{Key: "results/" + id, MimeType: "image/png", Size: 1, Duration: 3600}}
	}
	g.make(id, mediagate.Outcome{}, results...)
}

// make completes the task with the vendor's outcome.
func (g *gateway) make(id string, o mediagate.Outcome, results ...mediagate.Result) {
	g.t.Helper()
	if row, err := g.store.TaskByID(g.t.Context(), id); err != nil || row.Status == mediagate.StatusPending {
		g.must(err)
		g.accept(id)
	}
	o.Succeeded = true
	g.ended(mediagate.StatusCompleted, g.change(id, task.VendorEnded{N: 1, Outcome: o}, task.Mirrored{N: 1, Results: results}))
}

// cancel cancels the task for its client.
func (g *gateway) cancel(id string) {
	g.t.Helper()
	g.ended(mediagate.StatusCancelled, g.change(id, task.CancelRequested{}, task.EndDue{}))
}

// fail ends the task, before it has an attempt or by its vendor.
func (g *gateway) fail(id string, f mediagate.Failure) {
	g.t.Helper()
	g.ended(mediagate.StatusFailed, g.change(id,
		task.InputsChecked{Check: mediagate.InputCheck{Over: true, Failure: &f}},
		task.VendorEnded{N: 1, Outcome: mediagate.Outcome{Failure: &f}}, task.EndDue{}))
}

func (g *gateway) ended(want mediagate.Status, state task.State) {
	g.t.Helper()
	if state.Status != want {
		g.t.Fatalf("the task is %s, want %s", state.Status, want)
	}
}

// wantError checks an error of form A.
func (a answer) wantError(t *testing.T, status int, kind, message string) {
	t.Helper()
	if a.status != status {
		t.Fatalf("status %d, want %d: %s", a.status, status, a.body)
	}
	if got := a.at("error", "code"); got != float64(status) {
		t.Errorf("code = %v, want %d", got, status)
	}
	if got := a.at("error", "type"); got != kind {
		t.Errorf("type = %v, want %s", got, kind)
	}
	if got, _ := a.at("error", "message").(string); !strings.Contains(got, message) || got == "" {
		t.Errorf("message = %q, want %q in it", got, message)
	}
	if got := a.at("error", "request_id"); got != a.header.Get("X-Request-Id") {
		t.Errorf("request_id = %v, header %s", got, a.header.Get("X-Request-Id"))
	}
	if got := a.header.Get("Content-Type"); got != "application/json" {
		t.Errorf("Content-Type = %q", got)
	}
}

// wantStatus checks the status. What names the answer if its line in the test does not.
func (a answer) wantStatus(t *testing.T, status int, what ...string) {
	t.Helper()
	if a.status != status {
		t.Errorf("%q: status %d, want %d: %s", what, a.status, status, a.body)
	}
}

var errAway = errors.New("away")
