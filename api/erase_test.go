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

// erased erases a task that must be erasable.
func (g *gateway) erased(id string) {
	g.t.Helper()
	if a := g.erase(id); a.status != http.StatusNoContent || a.body != "" {
		g.t.Fatalf("erasure: %d %s", a.status, a.body)
	}
}

// voiceTask makes a task that made a voice.
func (g *gateway) voiceTask(id string) string {
	g.t.Helper()
	task := g.submit(music+"/createVoice", `{"audio_url":"https://media.example.com/voice.mp3"}`)
	g.made(task, &mediagate.Made{Voices: []string{id}})
	return task
}

// An erased task cannot be told from one that never was, wherever an id of a task
// or of what it made may stand.
func TestErasedTaskIsUnknown(t *testing.T) {
	t.Parallel()
	g := newGateway(t)
	video := g.submit(videos, videoBody)
	g.accept(video)
	g.complete(video, mediagate.Result{Key: "results/" + video + "/1/0", MimeType: "video/mp4", Size: 7})
	song := g.song(songBody)
	voice := g.voiceTask("voice-" + song)
	picture := g.submit(art, artBody)
	g.finishArt(picture, mediagate.Made{Buttons: artButtons})
	failed, cancelled := g.submit(images, imageBody), g.submit(videos, videoBody)
	g.fail(failed, mediagate.Failure{Code: mediagate.CodeInternal, Message: "x"})
	g.cancel(cancelled)
	spent := g.get("/v1/user/balance").body

	type ask struct {
		method, path, body string
	}
	asks := func(id, clip, voice string) []ask {
		return []ask{
			{"GET", "/v1/tasks/" + id, ""},
			{"GET", "/v1/tasks/" + id + "?wait=1&language=ja", ""},
			{"GET", "/v1/tasks/" + id + "/events", ""},
			{"GET", "/v1/tasks?after=" + id, ""},
			{"GET", images + "/" + id, ""},
			{"GET", "/v1/music/tasks/" + id, ""},
			{"GET", "/v1/artgen/" + id, ""},
			{"POST", "/v1/tasks/" + id + "/cancel", ""},
			{"DELETE", "/v1/tasks/" + id, ""},
			{"POST", music + "/remaster", `{"task_id":"` + id + `","audio_index":1}`},
			{"POST", music + "/stemsMusicB", `{"model":"music-b","clip_id":"` + clip + `"}`},
			{"POST", music, `{"model":"music-a","prompt":"a","voice_id":"` + voice + `"}`},
			{"POST", art + "/upscale", `{"task_id":"` + id + `","index":1}`},
			{"POST", art + "/modal", `{"task_id":"` + id + `","prompt":"a"}`},
		}
	}
	tell := func(a ask, id, clip, voice string) string {
		got := g.send(request{method: a.method, path: a.path, key: g.key, body: a.body})
		text := strings.NewReplacer(got.header.Get("X-Request-Id"), "", id, "ID", clip, "CLIP", voice, "VOICE").Replace(got.body)
		return http.StatusText(got.status) + " " + text
	}
	for _, id := range []string{voice, song, video, picture, failed, cancelled} {
		g.erased(id)
	}
	never := asks(noTask, "clip-never", "voice-never")
	for name, id := range map[string]string{"video": video, "song": song, "voice": voice, "art": picture, "failed": failed, "cancelled": cancelled} {
		for i, a := range asks(id, clipOne+song, "voice-"+song) {
			want, got := tell(never[i], noTask, "clip-never", "voice-never"), tell(a, id, clipOne+song, "voice-"+song)
			if got != want || strings.HasPrefix(got, "OK") {
				t.Errorf("%s: %s %s: %s\nof a task that never was: %s", name, a.method, a.path, got, want)
			}
		}
	}
	for _, path := range []string{"/v1/tasks", "/v1/tasks?status=completed", "/v1/tasks?type=art", "/v1/tasks?model=alpha-v3"} {
		if a := g.get(path); a.status != 200 || len(a.at("data").([]any)) != 0 || a.at("has_more") != false {
			t.Errorf("%s: %s", path, a.body)
		}
	}
	if got := g.get("/v1/user/balance").body; got != spent {
		t.Errorf("the balance was %s, and is %s", spent, got)
	}
	if report, err := g.store.CheckLedger(t.Context()); err != nil || !report.OK {
		t.Errorf("the ledger: %v %v", report.Problems, err)
	}
}

// The acknowledgement of an erased task is repeated as long as it would have been.
func TestErasedTaskIsAcknowledgedAgain(t *testing.T) {
	t.Parallel()
	g := newGateway(t)
	submit := request{method: http.MethodPost, path: videos, key: g.key, body: videoBody, header: http.Header{"Idempotency-Key": {"once"}}}
	first := g.send(submit)
	id, _ := first.at("data", 0, "task_id").(string)
	g.cancel(id)
	g.erased(id)
	if again := g.send(submit); again.body != first.body || again.header.Get("Idempotency-Replayed") != "true" {
		t.Errorf("%d %s, replayed %q", again.status, again.body, again.header.Get("Idempotency-Replayed"))
	}
	g.clock.advance(24*time.Hour + time.Second)
	if later := g.send(submit); later.at("data", 0, "task_id") == id || later.status != 200 {
		t.Errorf("a day later: %d %s", later.status, later.body)
	}
}

func TestErasureOfTasksInUse(t *testing.T) {
	t.Parallel()
	g := newGateway(t)
	open := g.submit(videos, videoBody)
	g.erase(open).wantError(t, 409, "invalid_request_error", "the task has not ended: pending")
	g.accept(open)
	g.erase(open).wantError(t, 409, "invalid_request_error", "the task has not ended: processing")
	g.post("/v1/tasks/"+open+"/cancel", "")
	g.erase(open).wantError(t, 409, "invalid_request_error", "the task has not ended: processing")

	song := g.song(songBody)
	follow := g.submit(music+"/remaster", `{"task_id":"`+song+`","audio_index":1}`)
	g.erase(song).wantError(t, 409, "invalid_request_error", "the task is the source of "+follow)
	if a := g.get("/v1/music/tasks/" + song); a.status != 200 {
		t.Errorf("the refused erasure left %s", a.body)
	}
	g.cancel(follow)
	_, sibling := g.newKey(mediagate.Key{Quota: 1})
	if a := g.send(request{method: http.MethodDelete, path: "/v1/tasks/" + song, key: sibling}); a.status != 204 {
		t.Errorf("by another key of the account: %d %s", a.status, a.body)
	}
	if a := g.get("/v1/tasks/" + follow); a.status != 200 {
		t.Errorf("the task that worked on it: %s", a.body)
	}
}

// The files are gone with the answer. Where the bucket is away they are left to
// the workers: nobody asks a client to come again.
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

// An account whose inputs are erased reads no prompt of a task that has ended,
// and of a failure what its code says.
func TestErasedInputsAreNotShown(t *testing.T) {
	t.Parallel()
	g := newGateway(t)
	_, err := g.store.UpdateAccount(t.Context(), g.account.ID, func(a *mediagate.Account) error {
		a.EraseInputs = true
		return nil
	})
	g.must(err)
	id, bad := g.submit(art, artBody), g.submit(videos, videoBody)
	if a := g.get("/v1/artgen/" + id); a.at("prompt") != "a cat" {
		t.Errorf("before the end: %s", a.body)
	}
	g.finishArt(id, mediagate.Made{Buttons: artButtons, Prompt: "a cat --v 7"})
	if a := g.get("/v1/artgen/" + id); a.at("prompt") != "" || a.at("status") != "SUCCESS" || len(a.at("buttons").([]any)) != len(artButtons) {
		t.Errorf("after it: %s", a.body)
	}
	if a := g.post(art+"/upscale", `{"task_id":"`+id+`","index":1}`); a.status != 200 {
		t.Errorf("it can be worked on: %s", a.body)
	}
	g.fail(bad, mediagate.Failure{
		Code: mediagate.CodeContentPolicy, Message: `"a cat" shows a logo`,
	})
	const says = "the content did not pass the safety review"
	if a := g.get("/v1/tasks/" + bad); a.at("data", "error", "message") != says || a.at("data", "error", "code") != "content_policy_violation" {
		t.Errorf("failed: %s", a.body)
	}
	if a := g.get(images + "/" + bad); a.at("fail_reason") != says {
		t.Errorf("failed, legacy: %s", a.body)
	}
	if a := g.get("/v1/tasks/" + bad + "?language=ko"); a.at("data", "error", "message") != "콘텐츠가 안전 정책을 위반했습니다" {
		t.Errorf("failed, in Korean: %s", a.body)
	}
}
