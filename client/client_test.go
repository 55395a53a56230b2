package client_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mediagate/mediagate/client"
)

// A task keeps its cost as the API wrote it, and has its files and sources.
func TestTask(t *testing.T) {
	t.Parallel()
	var task client.Task
	if err := json.Unmarshal([]byte(`{"id":"task_2","status":"completed","cost":0.56,
		"sources":[{"task_id":"task_1","file":2,"field":"image_urls[0]","status":"completed"}],
		"result":{"videos":[{"url":["https://s3/a"],"mime_type":"video/mp4","size_bytes":3,"expires_at":1}]}}`),
		&task); err != nil {
		t.Fatal(err)
	}
	task.Raw = nil
	want := client.Task{
		ID: "task_2", Status: "completed", Cost: "0.56",
		Sources: []client.Source{{TaskID: "task_1", File: 2, Field: "image_urls[0]", Status: "completed"}},
		Files:   []client.File{{N: 1, URL: "https://s3/a", MediaType: "video/mp4", Size: 3, ExpiresAt: time.Unix(1, 0)}},
	}
	if diff := cmp.Diff(want, task); diff != "" {
		t.Error(diff)
	}
}

// The id becomes part of a file name, so Save refuses an invalid id.
func TestSaveOfNoTask(t *testing.T) {
	t.Parallel()
	for _, id := range []string{"", "..", "a/../b", "task_\x1b[2J", "a\nb", "$(id)", "a b"} {
		c := client.Client{URL: "http://gateway", HTTP: &http.Client{Transport: &gateway{}}}
		task := client.Task{ID: id, Files: []client.File{{N: 1, URL: "http://s3/a"}}}
		if paths, err := c.Save(t.Context(), task, t.TempDir()); err == nil {
			t.Errorf("saved as %q", paths)
		}
	}
}

// A negative wait counts as none, as with TaskAfter.
func TestSubmitAndWaitNegative(t *testing.T) {
	t.Parallel()
	ended := answer{Status: http.StatusOK, JSON: json.RawMessage(`{"data":{"id":"task_1","status":"completed"}}`)}
	g := &gateway{answers: []answer{ended}}
	c := client.Client{URL: origin, HTTP: &http.Client{Transport: g}}
	r := client.Request{Model: "m", Endpoint: "/v1/videos/generations"}
	task, err := c.SubmitAndWait(t.Context(), r, -3*time.Second)
	if err != nil || task.ID != "task_1" {
		t.Fatalf("%+v, %v", task, err)
	}
	if got := g.calls[0].header.Get("Prefer"); got != "respond-async, wait=0" {
		t.Errorf("Prefer is %q", got)
	}
}

// Submit refuses an endpoint that makes no task, with an error like the gateway's.
func TestSubmitOfNoTask(t *testing.T) {
	t.Parallel()
	_, err := (&client.Client{}).Submit(t.Context(), client.Request{Model: "eta", Endpoint: "/v1/audio/speech"})
	if refused, ok := errors.AsType[*client.Error](err); !ok || refused.Param != "endpoint" {
		t.Error(err)
	}
}
