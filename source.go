package mediagate

import (
	"encoding/json"
	"math"
	"slices"
)

// Source is what an earlier task made and a request works on, as it was when
// the request came. It is part of a plan, and so of no history.
type Source struct {
	TaskID string `json:"task_id"`
	Index  int    `json:"index,omitempty"` // of the clip or file among those of the task, from 0

	// Who made it. Only its account can be asked for what its ids name.
	Provider    string `json:"provider"`
	Channel     string `json:"channel"`
	Fingerprint string `json:"fingerprint"`
	Ref         JobRef `json:"ref"`                 // the job that made it
	VendorID    string `json:"vendor_id,omitempty"` // the vendor's id of the clip or the voice
	Button      string `json:"button,omitempty"`    // that is pressed: its customId

	Fields json.RawMessage `json:"fields,omitempty"` // of the request that name it, an object

	Key  string `json:"key,omitempty"`  // of its main file in our bucket
	Clip *Clip  `json:"clip,omitempty"` // what is known of it, of a song

	// Of a job, or of the question whether one can be made:

	// Own: the channel's account made it, so that Ref and VendorID mean
	// something there.
	Own bool `json:"-"`
	// URL is a link to the file, for vendors that can take it by that; empty when
	// there is no file. An adapter that is only asked gets UploadComing.
	URL string `json:"-"`
}

// VendorAccount is one of our accounts with a vendor, as a source may know it.
type VendorAccount struct {
	Channel      string
	Former       []string // names that the channel had
	Fingerprints []string
}

// MadeBy says of each account whether it made the source. Where none has its
// fingerprint, the account under the name of the channel counts as the one, with
// a new key: a vendor that does not know the ids there refuses them.
func (s *Source) MadeBy(accounts []VendorAccount) []bool {
	made := make([]bool, len(accounts))
	found := false
	for i, a := range accounts {
		made[i] = slices.Contains(a.Fingerprints, s.Fingerprint)
		found = found || made[i]
	}
	for i, a := range accounts {
		if !found && (a.Channel == s.Channel || slices.Contains(a.Former, s.Channel)) {
			made[i] = true
		}
	}
	return made
}

// As is the source as a job of one account is told of it; nil for none. url is
// a link to its file.
func (s *Source) As(own bool, url string) *Source {
	if s == nil {
		return nil
	}
	told := *s
	told.Own, told.URL = own, ""
	if s.Key != "" {
		told.URL = url
	}
	return &told
}

// Made is what a job made beside its files, as far as clients get to see it.
type Made struct {
	Clips        []Clip   `json:"clips,omitempty"`        // songs; the files of index i are those of clip i
	Voices       []string `json:"voices,omitempty"`       // the vendor's ids of voices
	Buttons      []Button `json:"buttons,omitempty"`      // what can be done with it next
	Descriptions []string `json:"descriptions,omitempty"` // of a picture, in words
	Prompt       string   `json:"prompt,omitempty"`       // as the vendor worked with it
}

// Empty reports that nothing was made beside files.
func (m *Made) Empty() bool {
	return m == nil || len(m.Clips) == 0 && len(m.Voices) == 0 && len(m.Buttons) == 0 && len(m.Descriptions) == 0
}

// StandsAlone reports that what was made is a result without any file.
func (m *Made) StandsAlone() bool {
	return m != nil && (len(m.Voices) > 0 || len(m.Descriptions) > 0)
}

// Clip is what is known of a song beside its files. Zero values mean unknown.
type Clip struct {
	ID        string       `json:"id"` // the vendor's own, which clients see
	Title     string       `json:"title,omitempty"`
	Lyrics    string       `json:"lyrics,omitempty"`
	LyricsID  string       `json:"lyrics_id,omitempty"`
	Timing    [][2]float64 `json:"timing,omitempty"` // marks of the lyrics, as the vendor gives them
	Tags      string       `json:"tags,omitempty"`
	CreatedAt string       `json:"created_at,omitempty"` // ISO 8601
	Seconds   float64      `json:"seconds,omitempty"`    // as the vendor states it; the file's own length wins
	State     string       `json:"state,omitempty"`      // the vendor's word
}

// Button is one thing that can be done with a picture.
type Button struct {
	CustomID string `json:"customId"`
	Label    string `json:"label"`
}

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
