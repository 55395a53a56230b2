package e2e_test

import (
	"archive/zip"
	"bytes"
	"io"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mediagate/mediagate/sandbox/sample"
)

// What the sandbox's songs play, in seconds; the second one of a request is
// longer.
const songSeconds = 16

// lengths are what their files play: whole frames of MP3.
var lengths = map[int]string{songSeconds: "16.008", songSeconds + 1: "16.992"}

// clip is one thing that a music task made.
type clip struct {
	AudioID         string  `json:"audio_id"`
	ClipID          string  `json:"clip_id"`
	VoiceID         string  `json:"voice_id"`
	Title           string  `json:"title"`
	DurationSeconds string  `json:"duration_seconds"`
	AudioURL        string  `json:"audio_url"`
	WAVURL          string  `json:"wav_url"`
	ImageURL        string  `json:"image_url"`
	VideoURL        string  `json:"video_url"`
	URL             string  `json:"url"`
	FileURL         string  `json:"file_url"`
	MimeType        string  `json:"mime_type"`
	SizeBytes       int64   `json:"size_bytes"`
	Status          string  `json:"status"`
	LyricsID        *string `json:"lyrics_id"`
}

// clips are those of a completed task.
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

// mp3 is a song as the vendors make it.
func mp3(t *testing.T, seconds float64) []byte {
	t.Helper()
	song, err := io.ReadAll(sample.MP3(seconds))
	if err != nil {
		t.Fatal(err)
	}
	return song
}

// checkSongs compares the task's songs with the vendor's files, by how long
// they play.
func (w *world) checkSongs(t *task, seconds ...int) []clip {
	w.t.Helper()
	clips := w.clips(t, len(seconds))
	for i, c := range clips {
		what := "clip " + strconv.Itoa(i) + " of " + t.model
		if c.AudioID == "" || c.Title == "" || c.Status != "completed" || c.DurationSeconds != lengths[seconds[i]] {
			w.t.Errorf("%s is %+v, want %d seconds", what, c, seconds[i])
		}
		w.same(what, c.AudioURL, "audio/mpeg", mp3(w.t, float64(seconds[i])))
		w.same("cover of "+what, c.ImageURL, "image/png", sample.Image(512, 512))
	}
	return clips
}

// checkFilm compares a clip's film with the vendor's.
func (w *world) checkFilm(c clip, seconds int) {
	w.t.Helper()
	w.same("film", c.VideoURL, "video/mp4", sample.Video(sample.VideoSpec{Width: 512, Height: 512, Seconds: seconds, Sound: true}))
}

// checkStems reads an archive of tracks with two programs, and compares the
// tracks with the vendor's files, by how long they play.
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
	name := filepath.Join(w.t.TempDir(), "stems.zip")
	if err := os.WriteFile(name, file.body, 0o600); err != nil {
		w.t.Fatal(err)
	}
	if unzip, err := exec.LookPath("unzip"); err == nil {
		if out, err := exec.CommandContext(w.t.Context(), unzip, "-t", name).CombinedOutput(); err != nil {
			w.t.Errorf("unzip -t: %v\n%s", err, out)
		}
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

// fourTracks are those of a song of music-a.
func fourTracks(seconds float64) map[string]float64 {
	return map[string]float64{"vocals.mp3": seconds, "backing-vocals.mp3": seconds, "drums.mp3": seconds, "bass.mp3": seconds}
}

var (
	songStep = step{path: songs, price: "0.1", files: 2, objects: 5, body: map[string]any{
		"model": "music-a", "prompt": "[Verse]\nA boat on a quiet lake", "title": "Quiet lake", "tags": "folk",
	}}
	flowStep = step{path: songs, price: "0.1", objects: 3, body: map[string]any{"model": "Music-B", "sound_prompt": "slow jazz", "title": "Late"}}
)

// after is a step that works on a task's clip.
func after(t *task, index int, s step) step {
	body := map[string]any{"task_id": t.id, "audio_index": index}
	maps.Copy(body, s.body)
	s.body = body
	return s
}

// A song is remastered, taken apart, sung again by another voice, changed in
// its middle and sampled.
func chainSongs(c *chain) {
	song := c.run(songStep)
	clips := c.checkSongs(song, songSeconds, songSeconds+1)
	c.checkFilm(clips[0], songSeconds)
	if clips[1].VideoURL != "" {
		c.t.Errorf("the second song has a film: %s", clips[1].VideoURL)
	}

	remaster := c.order(after(song, 2, step{path: songs + "/remaster", price: "0.1", objects: 3, body: map[string]any{"version": "v4.5"}}))
	replaced := c.order(after(song, 1, step{path: songs + "/replaceMusic", price: "0.1", objects: 3, body: map[string]any{
		"start_s": 2, "end_s": 10, "infill_lyrics": "A storm on a quiet lake",
	}}))
	sampled := c.order(after(song, 1, step{path: songs + "/sample", price: "0.12", files: 2, objects: 5, body: map[string]any{
		"start_s": 1.5, "end_s": 9, "custom": false, "gpt_description": "the same, faster", "vocal_gender": "f",
	}}))
	voice := c.order(step{path: songs + "/createVoice", price: "0.02", files: -1, body: map[string]any{"audio_url": clips[0].AudioURL}})

	c.done(remaster)
	c.checkSongs(remaster, songSeconds+1)
	stems := c.order(after(remaster, 1, step{path: songs + "/stemsAll", price: "0.25", body: map[string]any{"version": "anything"}}))
	c.done(voice)
	v := c.clips(voice, 1)[0]
	if v.VoiceID == "" || v.Status != "completed" {
		c.t.Errorf("the voice is %+v", v)
	}
	sung := songStep
	sung.body = map[string]any{"model": "MUSIC-A", "gpt_description": "a shanty", "voice_id": v.VoiceID}
	again := c.order(sung)
	for _, t := range []*task{replaced, sampled, stems, again} {
		c.done(t)
	}
	c.checkSongs(replaced, songSeconds)
	c.checkFilm(c.checkSongs(sampled, songSeconds, songSeconds+1)[0], songSeconds)
	c.checkSongs(again, songSeconds, songSeconds+1)
	c.checkStems(stems, c.clips(remaster, 1)[0].AudioID, fourTracks(songSeconds+1))

	c.refused(songs+"/remaster", map[string]any{"task_id": song.id, "audio_index": 3}, `"param":"audio_index"`)
	c.refused(songs+"/remaster", map[string]any{"task_id": stems.id}, `"param":"task_id"`)
	c.refused(songs+"/replaceMusic", map[string]any{"task_id": song.id, "start_s": 2, "end_s": 16.5}, `"param":"end_s"`)
	c.refused(songs+"/sample", map[string]any{"task_id": song.id, "custom": false}, `"param":"gpt_description"`)
}

// songElsewhere is a user whose song was made by the second vendor, as the first
// took nothing.
func (w *world) songElsewhere() *chain {
	w.t.Helper()
	c := w.user(w.t)
	switched := func(name string, on bool) {
		w.admin(http.MethodPatch, "/channels/"+name, map[string]any{"enabled": on}, &struct{}{})
		time.Sleep(3 * time.Second) // all know within one, as is promised; no view tells when the last has heard
	}
	switched("sandbox-acedata", false)
	s := songStep
	s.objects = 4 // no film
	c.run(s)
	switched("sandbox-acedata", true)
	return c
}

// A song of the second vendor is worked on there where it can be, and at the
// first by its link where only that one can.
func chainElsewhere(c *chain, before *chain) {
	song := before.tasks[0]
	c.checkSongs(song, songSeconds, songSeconds+1)
	there := c.order(after(song, 2, step{path: songs + "/stemsAll", price: "0.25"}))
	kept := c.order(after(song, 1, step{path: songs + "/replaceMusic", price: "0.1", objects: 2, body: map[string]any{
		"start_s": 2, "end_s": 8.5, "infill_lyrics": "A calm",
	}}))
	here := c.order(after(song, 1, step{path: songs + "/replaceMusic", price: "0.1", objects: 3, body: map[string]any{
		"start_s": 2, "end_s": 4, "infill_lyrics": "A storm", // too short for the second
	}}))
	c.done(there)
	c.done(kept)
	c.done(here)
	c.checkStems(there, c.clips(song, 2)[1].AudioID, fourTracks(songSeconds+1))
	c.checkSongs(kept, songSeconds)
	c.checkSongs(here, songSeconds)
}

// A song of the other family is changed and taken apart, by the ids of its
// clips.
func chainFlow(c *chain) {
	song := c.run(flowStep)
	first := c.checkFlow(song)
	replaced := c.run(step{path: songs + "/replaceMusicB", price: "0.1", objects: 3, body: map[string]any{
		"model": "music-b", "clip_id": first.ClipID, "start_s": 1, "end_s": 5, "instruction": "a solo of the flute",
	}})
	second := c.checkFlow(replaced)
	if first.ClipID == second.ClipID {
		c.t.Errorf("the changed song is %s, as the one before", second.ClipID)
	}
	stems := c.run(step{path: songs + "/stemsMusicB", price: "0.1", body: map[string]any{"model": "MUSIC-B", "clip_id": second.ClipID}})
	c.checkStems(stems, second.ClipID, map[string]float64{"vocals.mp3": songSeconds, "instrumental.mp3": songSeconds})
	c.refused(songs+"/stemsMusicB", map[string]any{"model": "music-b", "clip_id": "another"}, `"param":"clip_id"`)
	c.refused(songs+"/replaceMusicB", map[string]any{
		"model": "music-b", "clip_id": first.ClipID, "start_s": 5, "end_s": 5, "instruction": "louder",
	}, `"param":"end_s"`)
	c.refused(songs+"/remaster", map[string]any{"task_id": song.id}, `"param":"task_id"`)
}

// checkFlow compares the files of the task's one song with the vendor's.
func (w *world) checkFlow(t *task) clip {
	w.t.Helper()
	c := w.clips(t, 1)[0]
	wav, err := io.ReadAll(sample.WAV(songSeconds))
	if err != nil {
		w.t.Fatal(err)
	}
	if c.ClipID == "" || c.LyricsID == nil || c.DurationSeconds != lengths[songSeconds] {
		w.t.Errorf("the clip of %s is %+v", t.model, c)
	}
	w.same("song of music-b", c.AudioURL, "audio/mpeg", mp3(w.t, songSeconds))
	w.same("its WAV", c.WAVURL, "audio/wav", wav)
	w.same("its cover", c.ImageURL, "image/png", sample.Image(512, 512))
	return c
}
