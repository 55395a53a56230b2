package mediagate

import (
	"encoding/json"
	"math"
	"slices"
)

// Source is an earlier task's result that a request works on, as it was when the request came. It
// is part of the plan, and so not of any workflow history.
type Source struct {
	TaskID string `json:"task_id"`
	Index  int    `json:"index,omitempty"` // of the clip or file in its task, from 0

	// The vendor account that made it. Only that account knows the ids.
	Provider    string `json:"provider"`
	Channel     string `json:"channel"`
	Fingerprint string `json:"fingerprint"`
	Ref         JobRef `json:"ref"`                 // the job that made it
	VendorID    string `json:"vendor_id,omitempty"` // the vendor's id of the clip or voice
	Button      string `json:"button,omitempty"`    // the customId of the button to press

	Fields json.RawMessage `json:"fields,omitempty"` // the fields of the request that name it, as an object

	Key  string `json:"key,omitempty"`  // of the main file in our bucket
	Clip *Clip  `json:"clip,omitempty"` // set for a song

	// The remaining fields are set for a job, or for a question to an adapter.

	// Own is set if the channel's account made the source, so that it knows Ref and VendorID.
	Own bool `json:"-"`
	// URL is a link to the file, for vendors that accept one. It is empty if there is no file. In a
	// question to an adapter it is UploadComing.
	URL string `json:"-"`
}

// VendorAccount is one of our accounts with a vendor, for comparison with a source.
type VendorAccount struct {
	Channel      string
	Former       []string // earlier names of the channel
	Fingerprints []string
}

// MadeBy reports for each account whether it made the source. If none has its fingerprint, the
// account of the channel with its name counts, since the key may have been replaced. If that is
// wrong, the vendor refuses the unknown ids.
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

// As returns the source for a job of one account, or nil for no source. url is a link to the
// source's file.
func (s *Source) As(own bool, url string) *Source {
	if s == nil {
		return nil
	}
	job := *s
	job.Own, job.URL = own, ""
	if s.Key != "" {
		job.URL = url
	}
	return &job
}

// Made holds what a job made besides files, as far as clients see it.
type Made struct {
	Clips        []Clip   `json:"clips,omitempty"`        // songs; the files with index i belong to clip i
	Voices       []string `json:"voices,omitempty"`       // the vendor's ids of voices
	Buttons      []Button `json:"buttons,omitempty"`      // what can be done with the picture next
	Descriptions []string `json:"descriptions,omitempty"` // of a picture
	Prompt       string   `json:"prompt,omitempty"`       // as the vendor used it
}

// Empty reports whether nothing was made but files.
func (m *Made) Empty() bool {
	return m == nil || len(m.Clips) == 0 && len(m.Voices) == 0 && len(m.Buttons) == 0 && len(m.Descriptions) == 0
}

// StandsAlone reports whether this is a result even without a file.
func (m *Made) StandsAlone() bool {
	return m != nil && (len(m.Voices) > 0 || len(m.Descriptions) > 0)
}

// Clip describes a song, apart from its files. Zero values mean unknown.
type Clip struct {
	ID        string       `json:"id"` // the vendor's id, which clients see
	Title     string       `json:"title,omitempty"`
	Lyrics    string       `json:"lyrics,omitempty"`
	LyricsID  string       `json:"lyrics_id,omitempty"`
	Timing    [][2]float64 `json:"timing,omitempty"` // time marks of the lyrics, as the vendor gives them
	Tags      string       `json:"tags,omitempty"`
	CreatedAt string       `json:"created_at,omitempty"` // ISO 8601
	Seconds   float64      `json:"seconds,omitempty"`    // as the vendor states it; the file's own length takes precedence
	State     string       `json:"state,omitempty"`      // the vendor's status
}

// Button is one thing that can be done with a picture.
type Button struct {
	CustomID string `json:"customId"`
	Label    string `json:"label"`
}

// MadeKind is a kind of results that clients name by their vendor's ids.
type MadeKind string

// The kinds.
const (
	MadeClip  MadeKind = "clip"  // a song
	MadeVoice MadeKind = "voice" // for later songs
)

// SourceParam is how an adapter's refusal names the source. Clients see the field by which they
// named it.
const SourceParam = "source"

// MadeAt names a result: its task, and its index in the list of its kind.
type MadeAt struct {
	TaskID string
	Index  int
}

// archive is the media type of archives.
const archive = "application/zip"

// Song is a clip with its main file. File.Key is empty if there is none. Seconds is the length of
// the file, if that is known.
type Song struct {
	Clip
	File Result
}

// Songs returns a task's songs in order. A task without sounds among its main files, such as one
// that splits a song into stems, made none.
func (m *Made) Songs(results []Result) []Song {
	if m == nil ||
		!slices.ContainsFunc(results, func(r Result) bool { return r.Role == RoleMain && r.MimeType != archive }) {
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

// ShownSeconds rounds a time in seconds to the milliseconds that answers show.
func ShownSeconds(seconds float64) float64 { return math.Round(seconds*1000) / 1000 }

// IDs returns the vendor's ids by which later requests may name the results, by kind and in
// order. An empty id names nothing.
func (m *Made) IDs(results []Result) map[MadeKind][]string {
	if m == nil {
		return nil
	}
	ids := map[MadeKind][]string{MadeVoice: m.Voices}
	for _, song := range m.Songs(results) {
		id := song.ID
		if song.File.Key == "" {
			id = "" // later requests cannot use it
		}
		ids[MadeClip] = append(ids[MadeClip], id)
	}
	return ids
}
