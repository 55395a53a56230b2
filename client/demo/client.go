package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	"image/png"
	"io"
	"mime/multipart"
	"net/http"
	"slices"
)

// client is what a client of the API needs: an address and a key.
type client struct{ base, key string }

// task is what the demo reads of a task.
type task struct {
	ID       string      `json:"id"`
	Model    string      `json:"model"`
	Status   string      `json:"status"`
	Progress int         `json:"progress"`
	Cost     json.Number `json:"cost"`
	Result   struct {
		Images []item `json:"images"`
		Videos []item `json:"videos"`
		Audios []item `json:"audios"`
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
	Duration float64  `json:"duration"`
	MimeType string   `json:"mime_type"`
}

// items are what came of the task, as far as there is a link to it.
func (t task) items() []item {
	all := slices.Concat(t.Result.Videos, t.Result.Images, t.Result.Audios)
	return slices.DeleteFunc(all, func(i item) bool { return len(i.URL) == 0 })
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
	resp, err := c.send(ctx, method, path, "application/json", reader)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	return json.NewDecoder(resp.Body).Decode(answer)
}

// send sends a request. What is no success is an error.
func (c client) send(ctx context.Context, method, path, kind string, body io.Reader) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, c.base+path, body)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Authorization", "Bearer "+c.key)
	req.Header.Set("Content-Type", kind)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode/100 != 2 {
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		return nil, errors.Join(fmt.Errorf("%s %s: %s: %s", method, path, resp.Status, text), err)
	}
	return resp, nil
}

// upload gives a picture a link that requests can name.
func (c client) upload(ctx context.Context, name string, picture image.Image) (string, error) {
	var form bytes.Buffer
	w := multipart.NewWriter(&form)
	part, err := w.CreateFormFile("file", name)
	if err == nil {
		err = errors.Join(png.Encode(part, picture), w.Close())
	}
	if err != nil {
		return "", err
	}
	resp, err := c.send(ctx, http.MethodPost, "/v1/uploads/images", w.FormDataContentType(), &form)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	var answer struct {
		URL string `json:"url"`
	}
	err = json.NewDecoder(resp.Body).Decode(&answer)
	return answer.URL, err
}

// speak stores a text as it is spoken.
func (c client) speak(ctx context.Context, text, name string) (int64, error) {
	body, err := json.Marshal(map[string]string{"model": "eta-4o-mini-tts", "voice": "coral", "input": text})
	if err != nil {
		return 0, err
	}
	resp, err := c.send(ctx, http.MethodPost, "/v1/audio/speech", "application/json", bytes.NewReader(body))
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	return store(name, resp.Body)
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
