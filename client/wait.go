package client

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net/http"
	"time"
)

// SubmitAndWait submits a request, waits up to wait for the end of its task, at most 60 s, and
// returns the task as it is then.
//
// The answer may get lost because ctx ends or the process dies. The same request with the same
// API key then returns the same task, within ten minutes, unless the request sets an idempotency
// key. If an error comes with a task that has an ID, the task was made.
func (c *Client) SubmitAndWait(ctx context.Context, r Request, wait time.Duration) (Task, error) {
	endpoint, err := c.endpoint(ctx, r)
	if err != nil {
		return Task{}, err
	}
	if !isSubmitPath(endpoint) {
		return Task{}, errEndpoint
	}
	// Without respond-async, a request in OpenAI's format returns pictures and no task id.
	header := http.Header{
		"Prefer":          {fmt.Sprintf("respond-async, wait=%d", wholeSeconds(wait))},
		"Idempotency-Key": {r.IdempotencyKey},
	}
	if r.IdempotencyKey == "" {
		header.Set("Idempotency-Key", rand.Text())
		header.Set("Mediagate-Adopt", "true")
	}
	text, err := c.Call(ctx, http.MethodPost, endpoint, r.body(), header)
	if err != nil {
		return Task{}, err
	}
	var ended struct{ Data Task }
	if json.Unmarshal(text, &ended) == nil && isID(ended.Data.ID) {
		return ended.Data, nil
	}
	var ack struct {
		Data []struct {
			TaskID string `json:"task_id"`
		}
	}
	if err := json.Unmarshal(text, &ack); err != nil || len(ack.Data) != 1 || !isID(ack.Data[0].TaskID) {
		return Task{}, fmt.Errorf("%s answered without a task: %.200s", endpoint, text)
	}
	t, err := c.Task(ctx, ack.Data[0].TaskID)
	t.ID = ack.Data[0].TaskID
	return t, err
}

// TaskAfter returns a task once it has ended, or as it is after wait, which is at most 60 s.
func (c *Client) TaskAfter(ctx context.Context, id string, wait time.Duration) (Task, error) {
	return c.pollTask(ctx, id, wholeSeconds(wait))
}

// wholeSeconds returns the whole seconds of a wait, 0 for a negative one.
func wholeSeconds(wait time.Duration) int { return max(0, int(wait/time.Second)) }
