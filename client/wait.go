package client

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net/http"
	"time"
)

// SubmitAndWait has a task made, waits for its end for so long, 60 s at most, and returns
// the task as it is then. Where nobody gets the answer, because ctx ends or the process
// dies, the same request of the same key within ten minutes gets that task, unless it names
// an idempotency key of its own. An error may come with a task that has an ID: it was made.
func (c *Client) SubmitAndWait(ctx context.Context, r Request, wait time.Duration) (Task, error) {
	endpoint, err := c.endpoint(ctx, r)
	if err != nil {
		return Task{}, err
	}
	if !submits(endpoint) {
		return Task{}, errEndpoint
	}
	// Without respond-async pictures in OpenAI's form would be the answer, without the task's id.
	header := http.Header{"Prefer": {fmt.Sprintf("respond-async, wait=%d", int(wait/time.Second))}, "Idempotency-Key": {r.IdempotencyKey}}
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

// TaskAfter is a task as it is once it has ended, or after so long, 60 s at most.
func (c *Client) TaskAfter(ctx context.Context, id string, wait time.Duration) (Task, error) {
	return c.look(ctx, id, max(0, int(wait/time.Second)))
}
