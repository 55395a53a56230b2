package view

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mediagate/mediagate"
)

// MusicStatus is the state of a task in the words of the music endpoint.
type MusicStatus string

// MusicTask is the task as the music endpoint shows it.
type MusicTask struct {
	Task
	Status MusicStatus `json:"status"`
}

// Music is the view for the music endpoint.
func (v Task) Music() MusicTask {
	status := MusicStatus(v.Status)
	if v.Status == mediagate.StatusPending {
		status = "submitted"
	}
	return MusicTask{Task: v, Status: status}
}

// WithoutWords returns the view without titles, lyrics and tags, since these may repeat the
// request.
func (v Task) WithoutWords() Task {
	if v.Result == nil || len(v.Result.Music) == 0 {
		return v
	}
	result := *v.Result
	result.Music = slices.Clone(result.Music)
	for i, clip := range result.Music {
		switch clip := clip.(type) {
		case Song:
			clip.Title, clip.Lyrics, clip.Tags = nil, nil, nil
			result.Music[i] = clip
		case FlowSong:
			clip.Title, clip.Lyrics = nil, nil
			result.Music[i] = clip
		}
	}
	v.Result = &result
	return v
}

// Clip is one product of a music task: a song, the tracks of a song, or a voice. Its shape depends
// on the model.
type Clip interface{ clip() }

// Song is a clip of music-a. A field that is not known is null. A song that could not be delivered
// keeps its place in the list, with a failed status.
type Song struct {
	AudioID         string  `json:"audio_id"`
	Title           *string `json:"title"`
	DurationSeconds *string `json:"duration_seconds"`
	CreateTime      string  `json:"create_time"`
	Lyrics          *string `json:"lyrics"`
	Tags            *string `json:"tags"`
	AudioURL        *string `json:"audio_url"`
	ImageURL        *string `json:"image_url"`
	VideoURL        string  `json:"video_url,omitempty"`
	Status          string  `json:"status"`
}

// FlowSong is a clip of music-b. A field that is not known is null.
type FlowSong struct {
	ClipID              string        `json:"clip_id"`
	Title               *string       `json:"title"`
	DurationSeconds     *string       `json:"duration_seconds"`
	CreateTime          string        `json:"create_time"`
	Lyrics              *string       `json:"lyrics"`
	LyricsID            *string       `json:"lyrics_id"`
	LyricsTimingMarkers *[][2]float64 `json:"lyrics_timing_markers"`
	AudioURL            *string       `json:"audio_url"`
	WAVURL              *string       `json:"wav_url"`
	ImageURL            *string       `json:"image_url"`
}

// Archive is a file that holds the tracks of a song.
type Archive struct {
	FileURL   string `json:"file_url"`
	URL       string `json:"url"`
	MimeType  string `json:"mime_type"`
	SizeBytes int64  `json:"size_bytes"`
}

// Stems are the tracks of a song of music-a.
type Stems struct {
	AudioID string `json:"audio_id"`
	Archive
}

// FlowStems are the tracks of a song of music-b.
type FlowStems struct {
	ClipID string `json:"clip_id"`
	Archive
}

// Voice is a voice that can sing songs of music-a.
type Voice struct {
	VoiceID string `json:"voice_id"`
	Status  string `json:"status"`
}

func (Song) clip()      {}
func (FlowSong) clip()  {}
func (Stems) clip()     {}
func (FlowStems) clip() {}
func (Voice) clip()     {}

// flowFamily is the prefix of the ids of models whose clips are FlowSongs.
const flowFamily = "music-b"

// clipsOf lists what a completed music task made.
func clipsOf(t *mediagate.Task, links []mediagate.Link) []Clip {
	flow := strings.HasPrefix(t.Model, flowFamily)
	var clips []Clip
	if songs := t.Made.Songs(t.Results); len(songs) > 0 {
		for i, song := range songs {
			clips = append(clips, songOf(t, flow, i, song, links))
		}
		return clips
	}
	for _, f := range filesOf(t, mediagate.RoleMain, links) {
		a := Archive{FileURL: f.link.URL, URL: f.link.URL, MimeType: f.MimeType, SizeBytes: f.Size}
		if flow {
			clips = append(clips, FlowStems{ClipID: archivedSongID(t, f.Index), Archive: a})
		} else {
			clips = append(clips, Stems{AudioID: archivedSongID(t, f.Index), Archive: a})
		}
	}
	if t.Made != nil {
		for _, id := range t.Made.Voices {
			clips = append(clips, Voice{VoiceID: id, Status: string(mediagate.StatusCompleted)})
		}
	}
	return clips
}

// archivedSongID returns the id of the song whose tracks the archive holds.
func archivedSongID(t *mediagate.Task, index int) string {
	if t.Made != nil && index < len(t.Made.Clips) && t.Made.Clips[index].ID != "" {
		return t.Made.Clips[index].ID
	}
	if t.Plan.Source != nil {
		return t.Plan.Source.VendorID
	}
	return ""
}

func songOf(t *mediagate.Task, flow bool, index int, song mediagate.Song, links []mediagate.Link) Clip {
	link := func(role mediagate.Role) *string {
		for _, f := range filesOf(t, role, links) {
			if f.Index == index {
				return known(f.link.URL)
			}
		}
		return nil
	}
	created := song.CreatedAt
	if created == "" {
		created = t.CreatedAt.UTC().Format(time.RFC3339)
	}
	status := mediagate.StatusCompleted
	if song.File == (mediagate.Result{}) {
		status = mediagate.StatusFailed
		song.Seconds = 0 // there is nothing that plays
	}
	var seconds *string
	if song.Seconds > 0 {
		seconds = known(strconv.FormatFloat(mediagate.ShownSeconds(song.Seconds), 'f', -1, 64))
	}
	if !flow {
		s := Song{
			AudioID: song.ID, Title: known(song.Title), DurationSeconds: seconds, CreateTime: created,
			Lyrics: known(song.Lyrics), Tags: known(song.Tags), AudioURL: link(mediagate.RoleMain), ImageURL: link(
				mediagate.RoleCover,
			),
			Status: string(status),
		}
		if film := link(mediagate.RoleFilm); film != nil {
			s.VideoURL = *film
		}
		return s
	}
	s := FlowSong{
		ClipID: song.ID, Title: known(song.Title), DurationSeconds: seconds, CreateTime: created,
		Lyrics: known(song.Lyrics), LyricsID: known(song.LyricsID), AudioURL: link(mediagate.RoleMain),
		WAVURL: link(mediagate.RoleWAV), ImageURL: link(mediagate.RoleCover),
	}
	if len(song.Timing) > 0 {
		markers := make([][2]float64, len(song.Timing))
		for i, pair := range song.Timing {
			markers[i] = [2]float64{mediagate.ShownSeconds(pair[0]), mediagate.ShownSeconds(pair[1])}
		}
		s.LyricsTimingMarkers = &markers
	}
	return s
}

// known returns nil for an empty text, which is then shown as null.
func known(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}
