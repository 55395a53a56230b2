package api_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mediagate/mediagate"
)

func (g *gateway) erase(id string) answer {
	g.t.Helper()
	return g.send(request{method: http.MethodDelete, path: "/v1/tasks/" + id, key: g.key})
}

// erased erases a task and expects that it may be erased.
func (g *gateway) erased(id string) {
	g.t.Helper()
	if a := g.erase(id); a.status != http.StatusNoContent || a.body != "" {
		g.t.Fatalf("erasure: %d %s", a.status, a.body)
	}
}

func TestErasureOfTasksInUse(t *testing.T) {
	t.Parallel()
	g := newGateway(t)
	open := g.submit(videos, videoBody)
	g.erase(open).wantError(t, 409, "invalid_request_error", "the task has not ended: pending")
	song := g.song(songBody)
	follow := g.submit(music+"/remaster", `{"task_id":"`+song+`","audio_index":1}`)
	g.erase(song).wantError(t, 409, "invalid_request_error", "the task is the source of "+follow)
	g.cancel(follow)
	_, sibling := g.newKey(mediagate.Key{Quota: 1})
	if a := g.send(request{method: http.MethodDelete, path: "/v1/tasks/" + song, key: sibling}); a.status != 204 {
		t.Errorf("by another key of the account: %d %s", a.status, a.body)
	}
}

// TestErasureOfFiles checks that the files are removed before the answer. If the bucket is away,
// the workers remove them later and the client need not repeat the call.
func TestErasureOfFiles(t *testing.T) {
	t.Parallel()
	g := newGateway(t)
	ended := func() (id string, files map[string]bool) {
		id = g.submit(videos, `{"model":"delta-02","prompt":"a","first_frame_image":"`+dataOf(aPicture)+`"}`)
		g.cancel(id)
		g.bucket.mu.Lock()
		defer g.bucket.mu.Unlock()
		g.bucket.files["results/"+id+"/1/0"], g.bucket.files["results/"+id+"0/1/0"] = nil, nil
		return id, map[string]bool{"results/" + id + "0/1/0": true}
	}
	stored := func() map[string]bool {
		g.bucket.mu.Lock()
		defer g.bucket.mu.Unlock()
		keys := map[string]bool{}
		for key := range g.bucket.files {
			keys[key] = true
		}
		return keys
	}
	id, left := ended()
	g.erased(id)
	if diff := cmp.Diff(left, stored()); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}

	other, _ := ended()
	g.bucket.mu.Lock()
	g.bucket.fail = mediagate.Errorf(mediagate.KindUnavailable, "the bucket is away")
	g.bucket.mu.Unlock()
	g.erased(other)
	g.get("/v1/tasks/"+other).wantError(t, 400, "invalid_request_error", "invalid task id")
	if !strings.Contains(g.log.String(), "files of an erased task not removed yet") {
		t.Errorf("the log says nothing:\n%s", g.log)
	}
	g.clock.advance(time.Second)
	due, err := g.store.DueSweeps(t.Context(), 10)
	g.must(err)
	if len(due) != 2 || due[1].TaskID != other {
		t.Errorf("to be swept: %+v", due)
	}
}

// TestErasedInputsAreNotShown checks that an account with erase_inputs reads no prompt of an
// ended task. The tests of the views check the messages of failures.
func TestErasedInputsAreNotShown(t *testing.T) {
	t.Parallel()
	g := newGateway(t)
	_, err := g.store.UpdateAccount(t.Context(), g.account.ID, func(a *mediagate.Account) error {
		a.EraseInputs = true
		return nil
	})
	g.must(err)
	id := g.submit(art, artBody)
	if a := g.get("/v1/artgen/" + id); a.at("prompt") != "a cat" {
		t.Errorf("before the end: %s", a.body)
	}
	if a := g.get("/v1/tasks/" + id + "?request=true"); a.at("data", "request", "prompt") != "a cat" {
		t.Errorf("the request before the end: %s", a.body)
	}
	g.finishArt(id, mediagate.Made{Buttons: artButtons, Prompt: "a cat --v 7"})
	if a := g.get("/v1/artgen/" + id); a.at("prompt") != "" || a.at("status") != "SUCCESS" || len(a.at("buttons").([]any)) != len(artButtons) {
		t.Errorf("after it: %s", a.body)
	}
	if a := g.get("/v1/tasks/" + id + "?request=true"); a.status != 200 || a.at("data", "request") != nil {
		t.Errorf("the request after it: %s", a.body)
	}
	if a := g.post(art+"/upscale", `{"task_id":"`+id+`","index":1}`); a.status != 200 {
		t.Errorf("it can be worked on: %s", a.body)
	}
}
