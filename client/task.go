package client

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Task is a task as the gateway returns it.
type Task struct {
	ID            string      `json:"id"`
	Model         string      `json:"model"`
	Type          string      `json:"type"`     // video, image, music or art
	Status        string      `json:"status"`   // pending, processing, completed, failed or cancelled
	Progress      int         `json:"progress"` // 0 to 100
	Cost          json.Number `json:"cost"`     // amount charged, in the gateway's currency
	EstimatedCost json.Number `json:"estimated_cost"`
	Reference     string      `json:"reference"`
	Created       int64       `json:"created"`   // Unix seconds
	Completed     int64       `json:"completed"` // Unix seconds, for every kind of end
	Failure       *Failure    `json:"error"`     // of a failed task
	Sources       []Source    `json:"sources"`   // the inputs that are files of other tasks

	Files []File          `json:"-"` // of a completed task
	Raw   json.RawMessage `json:"-"` // the whole task as received
}

// Failure is the reason why a task failed.
type Failure struct {
	Code      string `json:"code"`
	Message   string `json:"message"`
	Retryable bool   `json:"retryable"`
}

// File is a file that a task made.
type File struct {
	N         int    // number from 1, as in FileOf
	URL       string // a link that needs no key
	MediaType string
	Size      int64     // in bytes; 0: unknown
	ExpiresAt time.Time // when the link expires
}

// Ended reports whether the task is completed, failed or cancelled.
func (t *Task) Ended() bool {
	return slices.Contains([]string{"completed", "failed", "cancelled"}, t.Status)
}

// UnmarshalJSON parses a task from the API or from a webhook.
func (t *Task) UnmarshalJSON(text []byte) error {
	type plain Task
	var read struct {
		plain
		Result struct {
			Images, Videos, Audios []struct {
				URL       []string
				MimeType  string `json:"mime_type"`
				SizeBytes int64  `json:"size_bytes"`
				ExpiresAt int64  `json:"expires_at"`
			}
		}
	}
	if err := json.Unmarshal(text, &read); err != nil {
		return err
	}
	*t = Task(read.plain)
	t.Raw = slices.Clone(text)
	for _, item := range slices.Concat(read.Result.Images, read.Result.Videos, read.Result.Audios) {
		for _, link := range item.URL {
			t.Files = append(t.Files, File{len(t.Files) + 1, link, item.MimeType, item.SizeBytes, time.Unix(item.ExpiresAt, 0)})
		}
	}
	return nil
}

// Request is a request to a model.
type Request struct {
	Model  string
	Fields map[string]any // of the body, except model; see the model's schema
	// Endpoint is the path for the submit. If it is empty, the model's contract names the path.
	// Music has no contract, so it needs /v1/music/generations or a path below it.
	Endpoint string
	// IdempotencyKey makes repeated submits of the request return the same task, for 24 hours.
	// If it is empty, each submit gets a new key.
	IdempotencyKey string
}

// body returns the body of the request's submit.
func (r Request) body() map[string]any {
	body := map[string]any{}
	maps.Copy(body, r.Fields)
	body["model"] = r.Model
	return body
}

// endpoint returns the path of the request's submit.
func (c *Client) endpoint(ctx context.Context, r Request) (string, error) {
	if r.Endpoint != "" {
		return r.Endpoint, nil
	}
	text, err := c.Schema(ctx, r.Model)
	if err != nil {
		return "", err
	}
	var contract struct{ Endpoint string }
	if err := json.Unmarshal(text, &contract); err != nil || contract.Endpoint == "" {
		return "", fmt.Errorf("the answer is no contract of %s: %.200q", r.Model, text)
	}
	return contract.Endpoint, nil
}

// Submit submits a request and returns the id of its task. Exactly one task is made, even if
// answers are lost.
func (c *Client) Submit(ctx context.Context, r Request) (taskID string, err error) {
	endpoint, err := c.endpoint(ctx, r)
	if err != nil {
		return "", err
	}
	if !isSubmitPath(endpoint) { // a speech would be charged, but makes no task
		return "", errEndpoint
	}
	if r.IdempotencyKey == "" {
		r.IdempotencyKey = rand.Text()
	}
	text, err := c.post(ctx, endpoint, r.body(), http.Header{
		"Idempotency-Key": {r.IdempotencyKey},
		// Without respond-async, a request in OpenAI's format returns pictures and no task id.
		"Prefer": {"respond-async"},
	})
	if err == nil {
		taskID, err = parseAck(text)
	}
	if refused, ok := errors.AsType[*Error](err); err != nil && (!ok || refused.Temporary()) {
		err = fmt.Errorf("%w; whether the task was made is unknown: repeat the request with the idempotency key %s",
			err, r.IdempotencyKey)
	}
	return taskID, err
}

// parseAck returns the task id in the answer to a submit.
func parseAck(answer []byte) (taskID string, err error) {
	var ack struct {
		Data []struct {
			TaskID string `json:"task_id"`
		}
	}
	if err := json.Unmarshal(answer, &ack); err != nil || len(ack.Data) != 1 || !isID(ack.Data[0].TaskID) {
		return "", fmt.Errorf("the answer names no task: %.200q", answer)
	}
	return ack.Data[0].TaskID, nil
}

// isID reports whether id looks like an id of a gateway, which file names and shells take as it
// is.
func isID(id string) bool {
	return id != "" && strings.Trim(id, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") == ""
}

var errEndpoint = &Error{
	Status: http.StatusBadRequest, Param: "endpoint",
	Message: "endpoint must be the path of a submit of video, images, music or art",
}

// isSubmitPath reports whether endpoint is the path of a submit that makes a task.
func isSubmitPath(endpoint string) bool {
	return submitPath.MatchString(endpoint)
}

// submitPath matches the paths of submits. It allows no escapes, because a proxy may read %2e%2e
// as the parent path.
var submitPath = regexp.MustCompile(`^/v1/(videos|images|music|artgen)/generations(/[A-Za-z0-9_-]+)*$`)

// Task returns a task as it is now.
func (c *Client) Task(ctx context.Context, id string) (Task, error) {
	return c.task(ctx, id, request{method: http.MethodGet})
}

// pollTask reads a task. The gateway holds back its answer until the task ends or the seconds, 60
// at most, have passed.
func (c *Client) pollTask(ctx context.Context, id string, seconds int) (Task, error) {
	r := request{method: http.MethodGet, held: time.Duration(seconds) * time.Second, whole: true}
	if seconds > 0 {
		r.path = fmt.Sprintf("?wait=%d", seconds)
	}
	return c.task(ctx, id, r)
}

// task makes a call whose answer is the task. r.path is the part of the path after the task's
// own. Any other answer counts as lost, such as a proxy's page or another task.
func (c *Client) task(ctx context.Context, id string, r request) (Task, error) {
	var answer struct{ Data Task }
	r.path = "/v1/tasks/" + url.PathEscape(id) + r.path
	r.check = func(text []byte) error {
		answer.Data = Task{}
		if err := json.Unmarshal(text, &answer); err != nil || answer.Data.ID != id || answer.Data.Status == "" {
			return fmt.Errorf("the answer is not the task %s: %.200q", id, text)
		}
		return nil
	}
	call := c.repeat
	if r.method != http.MethodGet {
		call = c.once
	}
	if _, err := call(ctx, r); err != nil {
		return Task{}, err
	}
	return answer.Data, nil
}

const (
	// pollSeconds is how long a poll waits for a task's end, and so how often Wait reports
	// progress.
	pollSeconds = 5
	// lookPause is the pause after a poll that the gateway answers at once.
	lookPause = time.Second
	// patience is how long Wait tolerates a gateway that does not answer with the task.
	patience = 10 * time.Minute
)

// Wait waits for the end of a task and returns the task as it is then, whether it succeeded or
// not. It calls progress after each poll, unless progress is nil. If the gateway is unavailable
// or silent, or answers with something else, Wait tries again for ten minutes. If the gateway
// refuses the poll for good, Wait returns at once. The end of ctx ends the wait, but not the
// task.
func (c *Client) Wait(ctx context.Context, id string, progress func(Task)) (Task, error) {
	heard := time.Now()
	for seconds := 0; ; seconds = pollSeconds {
		asked := time.Now()
		t, err := c.pollTask(ctx, id, seconds)
		refused, isRefusal := errors.AsType[*Error](err)
		switch {
		case err == nil && t.Ended(), err != nil && ctx.Err() != nil, isRefusal && !refused.Temporary():
			return t, err
		case err != nil && time.Since(heard) > patience:
			return t, err
		case err == nil:
			heard = time.Now()
			if progress != nil {
				progress(t)
			}
		}
		if err != nil || seconds > 0 && time.Since(asked) < lookPause { // the gateway did not wait
			select {
			case <-ctx.Done():
			case <-time.After(lookPause):
			}
		}
	}
}

// TaskError is the error for a task that did not complete.
type TaskError struct{ Task Task }

// Error returns the reason why the task did not complete.
func (e *TaskError) Error() string {
	if f := e.Task.Failure; f != nil {
		return fmt.Sprintf("task %s failed: %s (%s)", e.Task.ID, f.Message, f.Code)
	}
	return fmt.Sprintf("task %s is %s", e.Task.ID, e.Task.Status)
}

// Run submits a request and waits for the end of its task. If the task does not complete, the
// error is a *TaskError.
func (c *Client) Run(ctx context.Context, r Request, progress func(Task)) (Task, error) {
	id, err := c.Submit(ctx, r)
	if err != nil {
		return Task{}, err
	}
	t, err := c.Wait(ctx, id, progress)
	if err != nil {
		return Task{ID: id}, fmt.Errorf("task %s continues: %w", id, err)
	}
	if t.Status != "completed" {
		return t, &TaskError{t}
	}
	return t, nil
}

// Cancel asks the gateway to cancel a task. If the task has already ended, the error is an
// *Error with status 409.
func (c *Client) Cancel(ctx context.Context, id string) error {
	_, err := c.task(ctx, id, request{method: http.MethodPost, path: "/cancel"})
	return err
}
