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
