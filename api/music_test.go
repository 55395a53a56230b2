package api_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/api"
)

const (
	music     = "/v1/music/generations"
	songBody  = `{"model":"Music-A","prompt":"[Verse] A boat","tags":"folk"}`
	flowBody  = `{"model":"MUSIC-B","sound_prompt":"folk"}`
	clipOne   = "dae4ae5d-2b51-4af1-b286-1a4473ef4dba"
	clipTwo   = "c4f3f3b8-1f1e-4f0b-9d42-0b7c1b0f1a11"
	fullWords = `"start_s":1,"end_s":2`
)

// made completes the task with the given outcome of its attempt.
func (g *gateway) made(id string, made *mediagate.Made, results ...mediagate.Result) {
	g.t.Helper()
	g.make(id, mediagate.Outcome{Made: made}, results...)
}

// song makes a task with two clips, of 12.5 and of 20 seconds.
func (g *gateway) song(body string) string {
	g.t.Helper()
	id := g.submit(music, body)
	g.made(id, &mediagate.Made{Clips: []mediagate.Clip{
		{ID: clipOne + id, Title: "Quiet lake", Lyrics: "A boat", LyricsID: "l-1", Tags: "folk", CreatedAt: "2026-03-01T12:01:12Z", Seconds: 11, State: "succeeded", Timing: [][2]float64{{0, 1.5}}},
		{ID: clipTwo + id, Seconds: 20},
	}},
		mediagate.Result{Key: "s/0", MimeType: "audio/mpeg", Size: 10, Duration: 12.5},
		mediagate.Result{Key: "s/1", Index: 1, MimeType: "audio/mpeg", Size: 11},
		mediagate.Result{Key: "s/w", Role: mediagate.RoleWAV, MimeType: "audio/wav", Size: 12},
		mediagate.Result{Key: "s/c", Role: mediagate.RoleCover, Index: 1, MimeType: "image/jpeg", Size: 13},
		mediagate.Result{Key: "s/f", Role: mediagate.RoleFilm, MimeType: "video/mp4", Size: 14})
	return id
}

// wantErrorB checks an error of form B; param "" is null.
func (a answer) wantErrorB(t *testing.T, status int, kind, code, param, message string) {
	t.Helper()
	var field any
	if param != "" {
		field = param
	}
	got, _ := a.at("error").(map[string]any)
	text, _ := got["message"].(string)
	want := map[string]any{"type": kind, "code": code, "param": field, "message": text, "request_id": a.header.Get("X-Request-Id")}
	if diff := cmp.Diff(want, got); a.status != status || diff != "" || !strings.Contains(text, message) {
		t.Errorf("%d %s, want %d %q", a.status, a.body, status, message)
	}
}

// TestMusicClips checks the songs of a task, by both polls and in the list. docs/results.md has
// the songs of each model with all their fields.
func TestMusicClips(t *testing.T) {
	t.Parallel()
	g := newGateway(t)
	url := func(key string) string { return "https://s3.example.com/media/" + key }
	plain := func(v any) any { // links without their signatures
		clip, _ := v.(map[string]any)
		for name, value := range clip {
			if text, ok := value.(string); ok && strings.HasSuffix(name, "url") {
				clip[name], _, _ = strings.Cut(text, "?")
			}
		}
		return clip
	}
	id := g.song(songBody)
	want := []any{
		map[string]any{
			"audio_id": clipOne + id, "title": "Quiet lake", "duration_seconds": "12.5", "create_time": "2026-03-01T12:01:12Z",
			"lyrics": "A boat", "tags": "folk", "audio_url": url("s/0"), "image_url": nil, "video_url": url("s/f"), "status": "completed",
		},
		map[string]any{
			"audio_id": clipTwo + id, "title": nil, "duration_seconds": "20", "create_time": "2026-03-01T12:00:00Z",
			"lyrics": nil, "tags": nil, "audio_url": url("s/1"), "image_url": url("s/c"), "status": "completed",
		},
	}
	for _, path := range []string{"/v1/music/tasks/", "/v1/tasks/"} {
		a := g.get(path + id)
		clips, _ := a.at("data", "result", "music").([]any)
		for i := range clips {
			clips[i] = plain(clips[i])
		}
		if diff := cmp.Diff(want, clips); diff != "" {
			t.Errorf("%s (-want +got):\n%s", path, diff)
		}
		if a.at("data", "status") != "completed" || a.at("data", "type") != "music" || len(texts(a.at("data", "result", "audios", 1, "url"))) != 1 {
			t.Errorf("%s: %s", path, a.body)
		}
	}
	flow := g.song(flowBody)
	wantFlow := map[string]any{
		"clip_id": clipTwo + flow, "title": nil, "duration_seconds": "20", "create_time": "2026-03-01T12:00:00Z",
		"lyrics": nil, "lyrics_id": nil, "lyrics_timing_markers": nil,
		"audio_url": url("s/1"), "wav_url": nil, "image_url": url("s/c"),
	}
	second := plain(g.get("/v1/music/tasks/"+flow).at("data", "result", "music", 1))
	if diff := cmp.Diff(any(wantFlow), second); diff != "" {
		t.Errorf("of music-b (-want +got):\n%s", diff)
	}
	if a := g.get("/v1/tasks?type=music&limit=1"); a.at("data", 0, "result", "music", 1) == nil {
		t.Errorf("the list: %s", a.body)
	}
}

// TestMusicForOperators checks that operators see no words of songs, which may be those of the request.
func TestMusicForOperators(t *testing.T) {
	t.Parallel()
	g := newGateway(t)
	for _, id := range []string{g.song(songBody), g.song(flowBody)} {
		for _, path := range []string{"/tasks/" + id, "/tasks?type=music"} {
			a := g.operate(http.MethodGet, path, "")
			if !strings.Contains(a.body, clipOne+id) {
				t.Errorf("%s has no song: %d %s", path, a.status, a.body)
			}
			for _, words := range []string{"Quiet lake", "A boat", "folk"} {
				if strings.Contains(a.body, words) {
					t.Errorf("%s says %q: %s", path, words, a.body)
				}
			}
		}
	}
}

// TestMusicWithoutOneSong checks that a song that could not be delivered keeps its index and
// cannot be a source.
func TestMusicWithoutOneSong(t *testing.T) {
	t.Parallel()
	g := newGateway(t)
	id := g.submit(music, songBody)
	g.made(id, &mediagate.Made{Clips: []mediagate.Clip{{ID: clipOne + id, Title: "Quiet lake", Seconds: 11}, {ID: clipTwo + id, Seconds: 20}}},
		mediagate.Result{Key: "s/1", Index: 1, MimeType: "audio/mpeg", Size: 11})
	a := g.get("/v1/music/tasks/" + id)
	lost, other := a.at("data", "result", "music", 0, "status"), a.at("data", "result", "music", 1, "audio_id")
	if a.at("data", "status") != "completed" || lost != "failed" || other != clipTwo+id {
		t.Errorf("the songs: %s", a.body)
	}
	remaster := func(index int) answer {
		return g.post(music+"/remaster", fmt.Sprintf(`{"task_id":%q,"audio_index":%d}`, id, index))
	}
	remaster(1).wantErrorB(t, 400, "invalid_request", "invalid_request", "audio_index", "could not be delivered")
	remaster(2).wantStatus(t, 200, "a remaster of the other song")
}

func TestMusicArchivesAndVoices(t *testing.T) {
	t.Parallel()
	g := newGateway(t)
	zip := mediagate.Result{Key: "s/z", MimeType: "application/zip", Size: 20971520}
	song, flow := g.song(songBody), g.song(flowBody)
	stems := g.submit(music+"/stemsAll", `{"task_id":"`+song+`"}`)
	g.made(stems, &mediagate.Made{Clips: []mediagate.Clip{{ID: clipOne + song}}}, zip)
	flowStems := g.submit(music+"/stemsMusicB", `{"model":"Music-B","clip_id":"`+clipTwo+flow+`"}`)
	g.made(flowStems, nil, zip)
	for id, of := range map[string][2]string{stems: {"audio_id", clipOne + song}, flowStems: {"clip_id", clipTwo + flow}} {
		clip, _ := g.get("/v1/music/tasks/"+id).at("data", "result", "music", 0).(map[string]any)
		if len(clip) != 5 || clip[of[0]] != of[1] || clip["mime_type"] != "application/zip" || clip["size_bytes"] != 20971520.0 || clip["url"] != clip["file_url"] {
			t.Errorf("the archive is %v", clip)
		}
	}
	voice := g.submit(music+"/createVoice", `{"audio_url":"https://media.example.com/voice.mp3"}`)
	g.made(voice, &mediagate.Made{Voices: []string{"voice-1"}})
	if diff := cmp.Diff([]any{map[string]any{"voice_id": "voice-1", "status": "completed"}}, g.get("/v1/music/tasks/"+voice).at("data", "result", "music")); diff != "" {
		t.Errorf("the voice (-want +got):\n%s", diff)
	}
	for _, path := range []string{"/v1/music/tasks/", "/v1/tasks/"} { // which has no file
		if a := g.get(path + voice); cmp.Diff([]any{}, a.at("data", "result", "audios")) != "" {
			t.Errorf("%s of the voice: %s", path, a.body)
		}
	}
	id := g.submit(music, `{"model":"music-a","prompt":"a","voice_id":"voice-1"}`)
	if s := g.row(id).Plan.Source; s == nil || s.TaskID != voice || s.VendorID != "voice-1" || s.Provider != "kling" || s.Ref.JobID != "job" {
		t.Errorf("the source is %+v", s)
	}
	// What is no song is none to work on.
	for _, id := range []string{stems, voice} {
		g.post(music+"/remaster", `{"task_id":"`+id+`"}`).wantErrorB(t, 400, "invalid_request", "invalid_request", "task_id", "must be of a task that made songs")
	}
}

func TestMusicSources(t *testing.T) {
	t.Parallel()
	g := newGateway(t)
	song, flow := g.song(songBody), g.song(flowBody)
	film, open, failed := g.submit(videos, videoBody), g.submit(music, songBody), g.submit(music, songBody)
	g.complete(film, mediagate.Result{Key: "f", MimeType: "video/mp4", Size: 1})
	g.fail(failed, mediagate.Failure{Code: mediagate.CodeInternal})
	nobody := "task_01JZZZZZZZZZZZZZZZZZZZZZZZ"

	id := g.submit(music+"/replaceMusic", `{"model":"MUSIC-A","task_id":"`+song+`","audio_index":2,"start_s":0,"end_s":20}`)
	want := &mediagate.Source{
		TaskID: song, Index: 1, Provider: "kling", Channel: "one", Fingerprint: "f",
		Ref: mediagate.JobRef{JobID: "job"}, VendorID: clipTwo + song, Key: "s/1", Clip: &mediagate.Clip{ID: clipTwo + song, Seconds: 20},
		Fields: json.RawMessage(`{"audio_index":2,"task_id":"` + song + `"}`),
	}
	if diff := cmp.Diff(want, g.row(id).Plan.Source); diff != "" {
		t.Errorf("the source (-want +got):\n%s", diff)
	}
	task := g.row(id)
	if string(task.Params) != `{"end_s":20,"start_s":0}` {
		t.Errorf("the canonical request is %s", task.Params)
	}

	before := g.starts()
	task1 := func(id, more string) string { return `{"task_id":"` + id + `"` + more + `}` }
	clip := func(id, more string) string { return `{"model":"music-b","clip_id":"` + id + `"` + more + `}` }
	for name, tt := range map[string]struct{ path, body, param, message string }{
		"nothing":        {"/remaster", `{}`, "task_id", "task_id is required"},
		"malformed":      {"/remaster", task1("x", ""), "task_id", "task_id is unknown"},
		"unknown":        {"/remaster", task1(nobody, ""), "task_id", "task_id is unknown"},
		"a video":        {"/remaster", task1(film, ""), "task_id", "must be of music-a"},
		"other family":   {"/remaster", task1(flow, ""), "task_id", "must be of music-a"},
		"not ended":      {"/stemsAll", task1(open, ""), "task_id", "must be of a completed task, and the task is pending"},
		"failed":         {"/stemsAll", task1(failed, ""), "task_id", "must be of a completed task, and the task is failed"},
		"index 3 of 2":   {"/remaster", task1(song, `,"audio_index":3`), "audio_index", "between 1 and 2, the number of clips of the task"},
		"beyond the end": {"/replaceMusic", task1(song, `,"start_s":1,"end_s":12.51`), "end_s", "within the clip, which is 12.5 seconds long"},
		"of the second":  {"/replaceMusic", task1(song, `,"audio_index":2,"start_s":1,"end_s":20.001`), "end_s", "which is 20 seconds long"},
		"unknown clip":   {"/stemsMusicB", clip("x", ""), "clip_id", "clip_id is unknown"},
		"other's clip":   {"/stemsMusicB", clip(clipOne+song, ""), "clip_id", "must be of music-b"},
		"B beyond":       {"/replaceMusicB", clip(clipOne+flow, `,"start_s":1,"end_s":12.6,"instruction":"i"`), "end_s", "which is 12.5 seconds long"},
		"unknown voice":  {"", `{"model":"music-a","prompt":"a","voice_id":"x"}`, "voice_id", "voice_id is unknown"},
		"voice of zeros": {"", `{"model":"music-a","prompt":"a","voice_id":"` + strings.Repeat("0", 5000) + `"}`, "voice_id", "voice_id is unknown"},
		"NaN":            {"/replaceMusic", task1(song, `,"start_s":NaN,"end_s":2`), "", ""},
	} {
		a := g.post(music+tt.path, tt.body)
		t.Run(name, func(t *testing.T) {
			a.wantErrorB(t, 400, "invalid_request", "invalid_request", tt.param, tt.message)
		})
	}
	if got := g.starts(); got != before {
		t.Errorf("%d tasks were started", got-before)
	}
}

// TestMusicSourceThatNoRouteTakes checks that an operation that needs the vendor account of the
// source is refused with the client's field.
func TestMusicSourceThatNoRouteTakes(t *testing.T) {
	t.Parallel()
	g := newGateway(t)
	song := g.song(songBody)
	g.vendors.says = func(string, mediagate.Route, json.RawMessage) api.Support {
		return api.Support{Err: mediagate.Invalid(mediagate.SourceParam, "the source was made elsewhere")}
	}
	g.post(music+"/remaster", `{"task_id":"`+song+`"}`).
		wantErrorB(t, 400, "invalid_request", "invalid_request", "task_id", "task_id: the source was made elsewhere")
	if s := g.vendors.job.Source; s == nil || s.VendorID != clipOne+song {
		t.Errorf("the routes were asked about %+v", s)
	}
}

func TestMusicMoney(t *testing.T) {
	t.Parallel()
	g := newGateway(t)
	song, flow := g.song(songBody), g.song(flowBody)
	_, g.key = g.newKey(mediagate.Key{Quota: 1})
	for path, body := range map[string]string{
		"": songBody, "/remaster": `{"task_id":"` + song + `"}`, "/stemsAll": `{"task_id":"` + song + `"}`,
		"/createVoice":   `{"audio_url":"https://media.example.com/voice.mp3"}`,
		"/replaceMusic":  `{"task_id":"` + song + `",` + fullWords + `}`,
		"/stemsMusicB":   `{"model":"music-b","clip_id":"` + clipOne + flow + `"}`,
		"/replaceMusicB": `{"model":"music-b","instruction":"i","clip_id":"` + clipOne + flow + `",` + fullWords + `}`,
	} {
		a := g.post(music+path, body)
		if strings.HasPrefix(path, "/replace") {
			a.wantErrorB(t, 403, "permission_error", "quota_not_enough", "", "")
		} else {
			a.wantErrorB(t, 402, "payment_required", "quota_not_enough", "", "")
		}
		quoted := strings.Replace(body, "{", fmt.Sprintf(`{"endpoint":%q,`, music+path), 1)
		if a := g.post("/v1/quote", quoted); a.status != 200 || a.at("breakdown", 0, "quantity") != 1.0 {
			t.Errorf("the quote of %s: %d %s", path, a.status, a.body)
		}
	}
}

func TestMusicEnvelopes(t *testing.T) {
	t.Parallel()
	g := newGateway(t)
	nobody := "task_01JZZZZZZZZZZZZZZZZZZZZZZZ"
	film := g.submit(videos, videoBody)
	for _, id := range []string{nobody, "x", film} {
		g.get("/v1/music/tasks/"+id).wantErrorB(t, 400, "invalid_request", "invalid_request", "task_id", "invalid task id")
	}
	g.send(request{method: http.MethodPut, path: music}).wantErrorB(t, 405, "invalid_request", "invalid_request", "", "method not allowed")
	g.post(music, `{"model":"music-c"}`).wantErrorB(t, 400, "invalid_request", "invalid_request", "model", `unknown model "music-c"`)
	g.post(music, `{`).wantErrorB(t, 400, "invalid_request", "invalid_request", "", "")
	g.post(music, `{"model":"music-a","prompt":"`+strings.Repeat("x", 1<<20)+`"}`).wantErrorB(t, 413, "invalid_request_error", "invalid_request", "", "")

	id := g.submit(music, songBody)
	if a := g.get("/v1/music/tasks/" + id); a.at("code") != 200.0 || a.at("data", "status") != "submitted" || a.at("data", "progress") != 0.0 {
		t.Errorf("submitted: %s", a.body)
	}
	if a := g.get("/v1/tasks/" + id); a.at("data", "status") != "pending" {
		t.Errorf("the unified state: %s", a.body)
	}
	g.accept(id)
	if a := g.get("/v1/music/tasks/" + id); a.at("data", "status") != "processing" {
		t.Errorf("processing: %s", a.body)
	}
	_, g.key = g.newKey(mediagate.Key{Unlimited: true, Models: []string{"alpha-v3"}})
	g.post(music, songBody).wantErrorB(t, 403, "permission_error", "permission_denied", "", "may not use model")
}
