package api_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/api"
	"github.com/mediagate/mediagate/catalog"
	"github.com/mediagate/mediagate/internal/outbound"
	"github.com/mediagate/mediagate/task"
)

// takesTaskFiles makes the gateway accept paths of tasks' files. The program's own tests check how
// addresses are read.
func takesTaskFiles(t *testing.T) func(*api.Config) {
	t.Helper()
	models, err := catalog.Load("", catalog.WithMediaURLCheck(func(raw string) error {
		if _, _, ok := mediagate.ParseTaskFile(raw); ok {
			return nil
		}
		return outbound.Rules{}.CheckMediaURL(raw)
	}))
	must(t, err)
	return func(c *api.Config) { c.Catalog, c.TaskFileOf = models, mediagate.ParseTaskFile }
}

// filmOf returns a request for a video of a picture.
func filmOf(address string) string {
	return `{"model":"beta-q3","prompt":"it moves","image_urls":["https://x.example.com/1.png","` + address + `"]}`
}

func fileOf(id string, n int) string { return fmt.Sprintf("/v1/tasks/%s/files/%d", id, n) }

var pictureFile = mediagate.Result{Key: "results/picture", MimeType: "image/png", Size: 1000, Width: 512, Height: 512}

// TestInvalidSources checks that an invalid source gives a 400 for its field, in a quote and in a
// submit.
func TestInvalidSources(t *testing.T) {
	t.Parallel()
	g := newGateway(t, takesTaskFiles(t))
	stranger := g.other()
	foreign := g.send(request{method: http.MethodPost, path: images, key: stranger, body: imageBody}).taskID(t)
	running, film := g.submit(images, imageBody), g.submit(videos, videoBody)
	failed, cancelled, erased := g.submit(images, imageBody), g.submit(images, imageBody), g.submit(images, imageBody)
	g.fail(failed, mediagate.Failure{Code: mediagate.CodeGenerationFailed})
	g.cancel(cancelled)
	g.complete(erased, pictureFile)
	g.erased(erased)
	small, large, gone, text := g.submit(images, imageBody), g.submit(images, imageBody), g.submit(images, imageBody), g.submit(images, imageBody)
	narrow, heavy := pictureFile, pictureFile
	narrow.Width, heavy.Size = 100, 51<<20
	g.complete(small, narrow)
	g.complete(large, heavy)
	g.complete(gone, mediagate.Result{Key: "", MimeType: "image/png"})
	g.complete(text, mediagate.Result{Key: "results/zip", MimeType: "application/zip"})
	for address, want := range map[string]string{
		fileOf(foreign, 1):                           "names a task that is unknown",
		fileOf("task_01JZZZZZZZZZZZZZZZZZZZZZZZ", 1): "names a task that is unknown",
		fileOf("task_x", 1):                          "names a task that is unknown",
		fileOf(erased, 1):                            "names a task that is unknown",
		fileOf(failed, 1):                            "names a task that is failed",
		fileOf(cancelled, 1):                         "names a task that is cancelled",
		fileOf(running, 2):                           "names a file that its task does not have",
		fileOf(running, 99):                          "names a file that its task does not have",
		fileOf(small, 2):                             "names a file that its task does not have",
		fileOf(film, 1):                              "must name image, and its task makes video",
		fileOf(small, 1):                             "is 100 × 512 pixels, at least 128 × 128 are required",
		fileOf(large, 1):                             "has more than 52428800 bytes",
		fileOf(gone, 1):                              "names a file that is no longer kept",
		fileOf(text, 1):                              "is application/zip, not an image",
		fileOf(running, 0):                           "is refused",
		fileOf(running, 1) + "?x=1":                  "is refused",
		"/v1/tasks/../tasks/" + running + "/files/1": "is refused",
		"/v1/nothing":                                "is refused",
	} {
		submitted := g.send(request{method: http.MethodPost, path: videos, key: g.key, body: filmOf(address)})
		quoted := g.quote(videos, filmOf(address))
		for what, a := range map[string]answer{"submit": submitted, "quote": quoted} {
			if a.status != 400 || !strings.Contains(a.body, "image_urls") || !strings.Contains(a.body, want) {
				t.Errorf("%s of %s: %d %s, want %q", what, address, a.status, a.body, want)
			}
		}
	}
	if got := g.starts(); got != 10 {
		t.Errorf("%d tasks were started, want the ten sources", got)
	}
}

// TestSourceThatRuns checks that a file of a running task can be an input.
func TestSourceThatRuns(t *testing.T) {
	t.Parallel()
	g := newGateway(t, takesTaskFiles(t))
	source := g.submit(images, imageBody)
	id := g.submit(videos, filmOf(fileOf(source, 1)))
	g.vendors.mu.Lock()
	asked := string(g.vendors.job.Params)
	g.vendors.mu.Unlock()
	if !strings.Contains(asked, mediagate.UploadComing) || strings.Contains(asked, source) {
		t.Errorf("the adapter is asked about %s", asked)
	}
	sources := func(status string) []any {
		return []any{map[string]any{"task_id": source, "file": 1.0, "field": "image_urls[1]", "status": status}}
	}
	shown := g.get("/v1/tasks/" + id)
	if diff := cmp.Diff(sources("pending"), shown.at("data", "sources")); diff != "" || shown.at("data", "status") != "pending" {
		t.Errorf("sources (-want +got):\n%s", diff)
	}
	if sent := g.get("/v1/tasks/"+id+"?request=true").at("data", "request", "image_urls", 1); sent != fileOf(source, 1) {
		t.Errorf("the request has %v", sent)
	}
	story := g.story(id)
	if diff := cmp.Diff([]any{"source", []any{source}, []any{"fail"}}, []any{story.at("waits_for", "kind"), story.at("waits_for", "sources"), story.at("actions")}); diff != "" {
		t.Errorf("what it waits for (-want +got):\n%s", diff)
	}
	g.erase(source).wantError(t, 409, "invalid_request_error", "the task has not ended: pending")
	g.complete(source, pictureFile)
	g.ask("/v1/tasks/"+id, shown.header.Get("Etag")).wantStatus(t, http.StatusOK, "after the end of its source")
	g.erase(source).wantError(t, 409, "invalid_request_error", "the task is the source of "+id)
	state := g.change(id, task.Asked{})
	if step := state.Advance(g.clock.now()); step.Kind != task.CheckInputs {
		t.Errorf("the next step is %+v", step)
	}
	if got := g.get("/v1/tasks?source="+source).at("data", 0, "id"); got != id {
		t.Errorf("the source is used by %v", got)
	}
	for query, want := range map[string]int{"source=" + id: 200, "source=task_01JZZZZZZZZZZZZZZZZZZZZZZZ": 200, "source=x": 400} {
		if a := g.get("/v1/tasks?" + query); a.status != want || want == 200 && len(a.at("data").([]any)) != 0 {
			t.Errorf("%s: %d %s", query, a.status, a.body)
		}
	}
	g.cancel(id)
	g.erased(source)
	if diff := cmp.Diff(sources("erased"), g.get("/v1/tasks/"+id).at("data", "sources")); diff != "" {
		t.Errorf("sources (-want +got):\n%s", diff)
	}
}
