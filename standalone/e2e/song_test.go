package e2e_test

import (
	"archive/zip"
	"bytes"
	"io"
	"maps"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mediagate/mediagate/sandbox/sample"
)

// songSeconds is how long the sandbox's songs play. The second song of a request is longer.
const songSeconds = 16

// clip is one result of a music task.
type clip struct {
	AudioID         string `json:"audio_id"`
	ClipID          string `json:"clip_id"`
	Title           string `json:"title"`
	DurationSeconds string `json:"duration_seconds"`
	AudioURL        string `json:"audio_url"`
	ImageURL        string `json:"image_url"`
	VideoURL        string `json:"video_url"`
	URL             string `json:"url"`
	FileURL         string `json:"file_url"`
	MimeType        string `json:"mime_type"`
	SizeBytes       int64  `json:"size_bytes"`
	Status          string `json:"status"`
}

// clips returns the clips of a completed task.
func (w *world) clips(t *task, want int) []clip {
	w.t.Helper()
	var wrapped struct {
		Data struct {
			Status, Type string
			Result       struct {
				Music  []clip
				Audios []item
			}
		}
	}
	err := w.get("/v1/music/tasks/"+t.id, w.key, &wrapped)
	if d := wrapped.Data; err != nil || d.Status != "completed" || d.Type != "music" || len(d.Result.Music) != want {
		w.t.Fatalf("%s %s is %+v (%v), want %d clips", t.model, t.id, d, err, want)
	}
	return wrapped.Data.Result.Music
}

// mp3 returns a song as the vendors make it.
func mp3(t *testing.T, seconds float64) []byte {
	t.Helper()
	song, err := io.ReadAll(sample.MP3(seconds))
	if err != nil {
		t.Fatal(err)
	}
	return song
}

// checkStems reads an archive of tracks and compares them with the vendor's files. tracks holds
// how long each plays.
func (w *world) checkStems(t *task, of string, tracks map[string]float64) {
	w.t.Helper()
	c := w.clips(t, 1)[0]
	file, err := w.file(c.URL)
	if err != nil {
		w.t.Fatalf("stems of %s: %v", t.id, err)
	}
	if c.URL != c.FileURL || c.MimeType != "application/zip" || c.SizeBytes != int64(len(file.body)) || c.AudioID+c.ClipID != of {
		w.t.Errorf("the archive is %+v, want %d bytes of the tracks of %s", c, len(file.body), of)
	}
	archive, err := zip.NewReader(bytes.NewReader(file.body), int64(len(file.body)))
	if err != nil {
		w.t.Fatalf("stems of %s: %v", t.id, err)
	}
	got, want := map[string]int{}, map[string]int{}
	for name, seconds := range tracks {
		want[name] = len(mp3(w.t, seconds))
	}
	for _, entry := range archive.File {
		r, err := entry.Open()
		if err != nil {
			w.t.Fatal(err)
		}
		track, err := io.ReadAll(r)
		if err != nil || !bytes.Equal(track, mp3(w.t, tracks[entry.Name])) {
			w.t.Errorf("track %s has %d bytes (%v), not those of the vendor", entry.Name, len(track), err)
		}
		got[entry.Name] = len(track)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		w.t.Errorf("tracks by size (-want +got):\n%s", diff)
	}
}

// fourTracks returns the tracks of a song of music-a and how long they play.
func fourTracks(seconds float64) map[string]float64 {
	return map[string]float64{"vocals.mp3": seconds, "backing-vocals.mp3": seconds, "drums.mp3": seconds, "bass.mp3": seconds}
}

var (
	songStep = step{path: songs, price: "0.1", files: 2, objects: 5, body: map[string]any{
		"model": "music-a", "prompt": "[Verse]\nA boat on a quiet lake", "title": "Quiet lake", "tags": "folk",
	}}
	flowStep = step{path: songs, price: "0.1", objects: 3, body: map[string]any{"model": "Music-B", "sound_prompt": "slow jazz", "title": "Late"}}
)

// after returns a step that works on a task's clip.
func after(t *task, index int, s step) step {
	body := map[string]any{"task_id": t.id, "audio_index": index}
	maps.Copy(body, s.body)
	s.body = body
	return s
}
