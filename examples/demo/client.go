package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
)

// client is what a client of the API needs: an address and a key.
type client struct{ base, key string }

// task is what the demo reads of a task.
type task struct {
	ID       string      `json:"id"`
	Status   string      `json:"status"`
	Progress int         `json:"progress"`
	Cost     json.Number `json:"cost"`
	Result   struct {
		Images []item `json:"images"`
		Videos []item `json:"videos"`
	} `json:"result"`
	Error struct {
		Code    string `json:"code"`
		Message string `json:"message"`
	} `json:"error"`
}

type item struct {
	URL      []string `json:"url"`
	Width    int      `json:"width"`
	Height   int      `json:"height"`
	MimeType string   `json:"mime_type"`
}

func (t task) first() (item, bool) {
	for _, i := range append(t.Result.Videos, t.Result.Images...) {
		if len(i.URL) > 0 {
			return i, true
		}
	}
	return item{}, false
}

// call sends a request and decodes the answer.
func (c client) call(ctx context.Context, method, path string, body, answer any) error {
	var reader io.Reader
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return err
		}
		reader = bytes.NewReader(text)
	}
	req, err := http.NewRequestWithContext(ctx, method, c.base+path, reader)
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+c.key)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	if resp.StatusCode/100 != 2 {
		return fmt.Errorf("%s %s: %s: %s", method, path, resp.Status, text)
	}
	return json.Unmarshal(text, answer)
}

func (c client) submit(ctx context.Context, j job) (string, error) {
	var ack struct {
		Data []struct {
			TaskID string `json:"task_id"`
		} `json:"data"`
	}
	if err := c.call(ctx, http.MethodPost, j.endpoint, j.body, &ack); err != nil {
		return "", err
	}
	if len(ack.Data) != 1 {
		return "", fmt.Errorf("%s: the acknowledgement names no task", j.endpoint)
	}
	return ack.Data[0].TaskID, nil
}

// follow shows the task's progress until it has ended.
func (c client) follow(ctx context.Context, id string, out io.Writer) (task, error) {
	shown := ""
	for {
		var answer struct {
			Data task `json:"data"`
		}
		if err := c.call(ctx, http.MethodGet, "/v1/tasks/"+id+"?wait=1", nil, &answer); err != nil {
			return task{}, err
		}
		t := answer.Data
		if line := fmt.Sprintf("  %-9s %d%%", t.Status, t.Progress); line != shown {
			_, _ = fmt.Fprintln(out, line)
			shown = line
		}
		switch t.Status {
		case "completed":
			return t, nil
		case "failed", "cancelled":
			return t, fmt.Errorf("task %s %s: %s %s", id, t.Status, t.Error.Code, t.Error.Message)
		}
	}
}

func (c client) balance(ctx context.Context) (float64, error) {
	var b struct {
		Remain float64 `json:"remain_balance"`
	}
	return b.Remain, c.call(ctx, http.MethodGet, "/v1/user/balance", nil, &b)
}

func (c client) secret(ctx context.Context) (string, error) {
	var s struct {
		Secret string `json:"secret"`
	}
	return s.Secret, c.call(ctx, http.MethodGet, "/v1/webhooks/secret", nil, &s)
}
