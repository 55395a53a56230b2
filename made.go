package mediagate

import (
	"math"
	"slices"
)

// MadeKind is a kind of things that clients name by their vendor's ids.
type MadeKind string

// The kinds.
const (
	MadeClip  MadeKind = "clip"  // a song
	MadeVoice MadeKind = "voice" // for later songs
)

// SourceParam is how an adapter's refusal names the source of a job. Clients
// read the field by which they named it.
const SourceParam = "source"

// MadeAt is where a thing was made: the task, and the thing's index in the list
// of its kind.
type MadeAt struct {
	TaskID string
	Index  int
}

// archive is the media type of files that hold other files.
const archive = "application/zip"

// Song is a clip with its main file, whose key is empty where there is none.
// The length of the clip is that of the file, where that is known.
type Song struct {
	Clip
	File Result
}

// Songs are the clips among what a task made, in their order. A task whose
// main files are no sounds, such as one that takes a song apart, made none.
func (m *Made) Songs(results []Result) []Song {
	if m == nil || !slices.ContainsFunc(results, func(r Result) bool { return r.Role == RoleMain && r.MimeType != archive }) {
		return nil
	}
	songs := make([]Song, len(m.Clips))
	for i, clip := range m.Clips {
		songs[i].Clip = clip
		at := slices.IndexFunc(results, func(r Result) bool { return r.Role == RoleMain && r.Index == i })
		if at < 0 {
			continue
		}
		songs[i].File = results[at]
		if results[at].Duration > 0 {
			songs[i].Seconds = results[at].Duration
		}
	}
	return songs
}

// ShownSeconds rounds a time of a file, in seconds, to the milliseconds that
// answers show.
func ShownSeconds(seconds float64) float64 { return math.Round(seconds*1000) / 1000 }

// IDs are the vendor's ids by which later requests may name what was made, in
// the order of the lists; an empty one names nothing.
func (m *Made) IDs(results []Result) map[MadeKind][]string {
	if m == nil {
		return nil
	}
	ids := map[MadeKind][]string{MadeVoice: m.Voices}
	for _, song := range m.Songs(results) {
		id := song.ID
		if song.File.Key == "" {
			id = "" // nothing can be made of it
		}
		ids[MadeClip] = append(ids[MadeClip], id)
	}
	return ids
}
