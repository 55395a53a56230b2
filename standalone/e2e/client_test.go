package e2e_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"time"
)

// task is an acknowledged task and its expected end.
type task struct {
	id    string
	ref   string // reference in its prompt, by which the sandbox finds the job; empty: no prompt of its own
	model string
	hook  bool

	source *task // the task whose file is its input

	wantStatus  string // status; empty: completed; either: completed or failed
	wantCode    string // of the failure
	minJobs     int    // at the vendor
	maxJobs     int
	resubmitted bool // submitted a second time, because the first submit provably created no job

	files           int    // number of its results; 0: one; negative: none
	objects         int    // number of its objects in the bucket; 0: same as files
	objectsIfFailed int    // number of objects if it did not complete, until housekeeping
	price           string // when completed; empty: the model's lowest price
}

// object is a task as the API returns it.
type object struct {
	ID              string      `json:"id"`
	Status          string      `json:"status"`
	Progress        int         `json:"progress"`
	Cost            json.Number `json:"cost"`
	CancelRequested bool        `json:"cancel_requested"`
	Result          *struct {
		Images []item `json:"images"`
		Videos []item `json:"videos"`
		Audios []item `json:"audios"`
	} `json:"result"`
	Error *struct {
		Code    string `json:"code"`
		Message string `json:"message"`
	} `json:"error"`
	Webhook *struct {
		State  string `json:"state"`
		Reason string `json:"reason"`
	} `json:"webhook"`
}

type item struct {
	URL       []string `json:"url"`
	SizeBytes int64    `json:"size_bytes"`
	MimeType  string   `json:"mime_type"`
}

func (o object) terminal() bool {
	return o.Status == "completed" || o.Status == "failed" || o.Status == "cancelled"
}

func (o object) items() []item {
	if o.Result == nil {
		return nil
	}
	return slices.Concat(o.Result.Videos, o.Result.Images, o.Result.Audios)
}

// answer is the answer to a call.
type answer struct {
	status int
	header http.Header
	body   []byte
}

func (a answer) decode(v any) error {
	if a.status/100 != 2 {
		return fmt.Errorf("status %d: %s", a.status, a.body)
	}
	return json.Unmarshal(a.body, v)
}

// request is one call of the API.
type request struct {
	method, url, key string
	body             any
	header           map[string]string
}

// do sends the request. An error means that the answer is missing or incomplete.
func (r request) do(ctx context.Context) (answer, error) {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	var body io.Reader
	if r.body != nil {
		text, err := json.Marshal(r.body)
		if err != nil {
			return answer{}, err
		}
		body = bytes.NewReader(text)
	}
	req, err := http.NewRequestWithContext(ctx, r.method, r.url, body)
	if err != nil {
		return answer{}, err
	}
	if r.key != "" {
		req.Header.Set("Authorization", "Bearer "+r.key)
	}
	for name, value := range r.header {
		req.Header.Set(name, value)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return answer{}, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	a := answer{resp.StatusCode, resp.Header, text}
	if err == nil {
		checkAnswer(r, a)
	}
	return a, err
}

func (w *world) get(path, key string, v any) error {
	a, err := request{method: http.MethodGet, url: w.apiURLs[0] + path, key: key}.do(w.t.Context())
	if err != nil {
		return err
	}
	return a.decode(v)
}

func (w *world) admin(method, path string, body, v any) {
	w.t.Helper()
	a, err := request{method: method, url: w.apiURLs[0] + "/admin/v1" + path, key: w.adminKey, body: body}.do(w.t.Context())
	if err == nil {
		err = a.decode(v)
	}
	if err != nil {
		w.t.Fatalf("%s %s: %v", method, path, err)
	}
}

// granted is the balance given to the world's account, in the currency.
const granted = "1000"

// openAccount creates the account that pays for the tests' tasks.
func (w *world) openAccount() {
	w.t.Helper()
	var account struct {
		ID string `json:"id"`
	}
	w.admin(http.MethodPost, "/accounts", map[string]any{"name": "e2e"}, &account)
	w.account = account.ID
	w.admin(http.MethodPost, "/accounts/"+account.ID+"/grants", map[string]any{"amount": granted, "reference": "start"}, &struct{}{})
	var key struct {
		Key string `json:"key"`
	}
	w.admin(http.MethodPost, "/accounts/"+account.ID+"/keys", map[string]any{"name": "e2e", "quota": granted}, &key)
	w.key = key.Key
	var secret struct {
		Secret string `json:"secret"`
	}
	if err := w.get("/v1/webhooks/secret", w.key, &secret); err != nil {
		w.t.Fatal(err)
	}
	w.hooks.setSecret(w.t, secret.Secret)
}

const (
	alpha = "alpha-v3"
	beta  = "beta-q3-mix"
	delta = "delta-02"
	gamma = "gamma2.6"
	theta = "theta-image-turbo"
	zeta  = "zeta-2-ext"

	epsilonFast = "epsilon3.1-fast-official"

	flux = "flux-schnell" // this model and the next are from examples/models
	ltx  = "ltx-2.3"
)

// images holds the models whose vendors make images synchronously.
var images = map[string]bool{theta: true, zeta: true}

// needed returns the fields that a model requires besides a prompt.
func (w *world) needed(model string) map[string]any {
	if model == beta {
		return map[string]any{"image_urls": []string{w.media.url(goodImage)}}
	}
	return nil
}

// job is a client's request for a task.
type job struct {
	model     string
	directive string // such as "duration=3s"
	fields    map[string]any
	noHook    bool
	idemKey   string
	header    map[string]string
	api       int // index of the API process
}

// request returns the call for a job and the task that it will create.
func (w *world) request(j job) (request, *task) {
	t := &task{ref: "ref" + randomText(20), model: j.model, hook: !j.noHook, minJobs: 1, maxJobs: 1}
	prompt := "a lighthouse at dawn " + t.ref
	if j.directive != "" {
		prompt += " [[sandbox: " + j.directive + "]]"
	}
	path, body := "/v1/videos/generations", map[string]any{"model": j.model, "prompt": prompt, "metadata": map[string]any{"reference": t.ref}}
	maps.Copy(body, w.needed(j.model))
	maps.Copy(body, j.fields)
	if images[j.model] || j.model == flux {
		path = "/v1/images/generations"
	}
	if t.hook {
		body["webhook"] = w.hooks.url
	}
	r := request{method: http.MethodPost, url: w.apiURLs[j.api] + path, key: w.key, body: body}
	r.header = maps.Clone(j.header)
	if j.idemKey != "" {
		r.header = map[string]string{"Idempotency-Key": j.idemKey}
		maps.Copy(r.header, j.header)
	}
	return r, t
}

// taskID returns the task id in an acknowledgement.
func taskID(a answer) (string, error) {
	var ack struct {
		Data []struct {
			Status string `json:"status"`
			TaskID string `json:"task_id"`
		} `json:"data"`
	}
	if err := a.decode(&ack); err != nil {
		return "", err
	}
	if a.status != http.StatusOK || len(ack.Data) != 1 || ack.Data[0].Status != "submitted" || ack.Data[0].TaskID == "" {
		return "", fmt.Errorf("no acknowledgement: %d %s", a.status, a.body)
	}
	return ack.Data[0].TaskID, nil
}

// submit submits a job and records the task.
func (w *world) submit(j job) *task {
	w.t.Helper()
	r, t := w.request(j)
	a, err := r.do(w.t.Context())
	if err == nil {
		t.id, err = taskID(a)
	}
	if err != nil {
		w.t.Fatalf("submit: %v", err)
	}
	w.tasks = append(w.tasks, t)
	return t
}

// read reads a task once.
func (w *world) read(id string) (object, error) {
	var wrapped struct {
		Data object `json:"data"`
	}
	err := w.get("/v1/tasks/"+id, w.key, &wrapped)
	if err == nil && wrapped.Data.ID != id {
		err = fmt.Errorf("the answer is of task %q", wrapped.Data.ID)
	}
	return wrapped.Data, err
}

// await polls the task until ok returns true.
func (w *world) await(t *task, limit time.Duration, what string, ok func(object) bool) object {
	w.t.Helper()
	var last object
	eventually(w.t, limit, t.id+" "+what, func() error {
		o, err := w.read(t.id)
		if err != nil {
			return err
		}
		last = o
		switch {
		case ok(o):
			return nil
		case o.terminal():
			return &stopError{fmt.Sprintf("it has ended as %s %+v", o.Status, o.Error)}
		default:
			return fmt.Errorf("it is %s", o.Status)
		}
	})
	return last
}

// awaitProcessing waits until the vendor has the job.
func (w *world) awaitProcessing(t *task) {
	w.t.Helper()
	w.await(t, 60*time.Second, "is processing", func(o object) bool { return o.Status == "processing" })
}

// cancel cancels the task.
func (w *world) cancel(t *task) {
	w.t.Helper()
	a, err := request{method: http.MethodPost, url: w.apiURLs[0] + "/v1/tasks/" + t.id + "/cancel", key: w.key}.do(w.t.Context())
	if err == nil && a.status != http.StatusAccepted {
		err = errors.New(string(a.body))
	}
	if err != nil {
		w.t.Fatalf("cancel: %v", err)
	}
}

// vendorJob is a job as the sandbox shows it.
type vendorJob struct {
	ID         string `json:"id"`
	Provider   string `json:"provider"`
	ExternalID string `json:"external_id"`
	State      string `json:"state"`
	Calls      struct {
		Submit   int `json:"submit"`
		Poll     int `json:"poll"`
		Download int `json:"download"`
		Cancel   int `json:"cancel"`
	} `json:"calls"`
}

// jobs returns the vendor's jobs for the task.
func (w *world) jobs(t *task) ([]vendorJob, error) {
	a, err := request{method: http.MethodGet, url: w.sandbox + "/_sandbox/jobs?reference=" + t.ref}.do(w.t.Context())
	if err != nil {
		return nil, err
	}
	var list struct {
		Jobs []vendorJob `json:"jobs"`
	}
	return list.Jobs, a.decode(&list)
}

// awaitJob waits until the vendor has the task's job.
func (w *world) awaitJob(t *task) {
	w.t.Helper()
	eventually(w.t, recoverTime, "the vendor has the job of "+t.id, func() error {
		jobs, err := w.jobs(t)
		if err == nil && len(jobs) != 1 {
			err = fmt.Errorf("%d jobs", len(jobs))
		}
		return err
	})
}

// awaitDownload waits until the gateway has requested the vendor's file.
func (w *world) awaitDownload(t *task) {
	w.t.Helper()
	eventually(w.t, 60*time.Second, t.id+" is being copied", func() error {
		jobs, err := w.jobs(t)
		if err == nil && (len(jobs) != 1 || jobs[0].Calls.Download == 0) {
			err = fmt.Errorf("the vendor's jobs: %+v", jobs)
		}
		return err
	})
}
