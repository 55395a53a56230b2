package kernel

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/mediagate/mediagate/sandbox/sample"
)

// These are the times that a job takes without a directive.
const (
	videoTakes = 2 * time.Second
	imageTakes = 200 * time.Millisecond
)

// State is a job's state in the words of the control endpoint. Vendors use words of their own.
type State string

// The states.
const (
	StateWaiting   State = "waiting" // for its customer
	StateQueued    State = "queued"
	StateRunning   State = "running"
	StateSucceeded State = "succeeded"
	StateFailed    State = "failed"
	StateCancelled State = "cancelled"
)

// Job is one accepted submission. Its state follows from the clock, unless the customer
// cancelled it. A change applies to a fresh copy from the journal, so a Job that a handler holds
// stays as it is.
type Job struct {
	Number     uint64    `json:"number"` // in the order of creation
	ID         string    `json:"id"`
	Provider   string    `json:"provider"`
	Account    string    `json:"account"`
	Endpoint   string    `json:"endpoint"` // its ids are valid only there
	Model      string    `json:"model"`
	ExternalID string    `json:"external_id,omitempty"`
	Prompt     string    `json:"prompt"`
	Directive  Directive `json:"directive"`
	Created    time.Time `json:"created"`
	Media      Media     `json:"media"`

	Detail    map[string]string `json:"detail,omitempty"`    // values that its vendor shows later
	Cancelled *time.Time        `json:"cancelled,omitempty"` // when the customer cancelled it
	Removed   bool              `json:"removed,omitempty"`   // hidden from the customer
	Waits     bool              `json:"waits,omitempty"`     // for input of the customer
	Billed    int               `json:"billed,omitempty"`    // number of jobs charged; 0: one
	Begun     *time.Time        `json:"begun,omitempty"`     // when a waiting job was resumed; nil: at its creation
	Calls     counters          `json:"calls"`

	CallbackURL string `json:"-"` // where callbacks go; set on new jobs only
}

// Media describes the files that a job makes.
type Media struct {
	Kind         string `json:"kind"` // "video", "image", "audio" or MediaSpeech
	Width        int    `json:"width"`
	Height       int    `json:"height"`
	Seconds      int    `json:"seconds,omitempty"`
	Sound        bool   `json:"sound,omitempty"`
	Watermark    bool   `json:"watermark,omitempty"` // a marked copy exists beside the clean one
	Grid         bool   `json:"grid,omitempty"`      // four images in one
	Quarter      int    `json:"quarter,omitempty"`   // which of such four images, from 1
	Songs        int    `json:"songs,omitempty"`     // number of sound files
	SecondLonger bool   `json:"pair,omitempty"`      // the second of two songs plays a second longer
}

// MediaSpeech is the kind of a sound that is generated while it is sent. Such a job has no file.
const MediaSpeech = "speech"

// These are the names of a job's files.
const (
	FileVideo  = "video.mp4"
	FileMarked = "video-watermark.mp4"
	FileImage  = "image.png"
	FileCover  = "cover.png" // a picture of a video
	FileDraft  = "draft.png" // an image before it is finished
)

// songSide is the side of a song's cover and film, in pixels.
const songSide = 512

// Length returns how many seconds a song plays. Songs are numbered from 0.
func (m Media) Length(song int) float64 {
	if m.SecondLonger {
		return float64(m.Seconds + song)
	}
	return float64(m.Seconds)
}

// Duration returns how long the vendor works on the job.
func (j *Job) Duration() time.Duration {
	switch {
	case j.Directive.Duration != nil:
		return *j.Directive.Duration
	case j.Media.Kind == "image":
		return imageTakes
	case j.Media.Kind == MediaSpeech:
		return 0
	default:
		return videoTakes
	}
}

// State returns the job's state at the time now. A job is queued for the first tenth of its
// time, and then running.
func (j *Job) State(now time.Time) State {
	passed, takes := now.Sub(j.begun()), j.Duration()
	switch endless := j.Directive.Fails(AtPoll) && j.Directive.Fail == FailTimeout; {
	case j.Cancelled != nil:
		return StateCancelled
	case j.Waits:
		return StateWaiting
	case passed < takes/10:
		return StateQueued
	case passed < takes || endless:
		return StateRunning
	case j.Directive.Fails(AtPoll) && j.Directive.Fail != FailInternal:
		return StateFailed
	default:
		return StateSucceeded
	}
}

// StateSince returns when the job entered the state that it has at the time now.
func (j *Job) StateSince(now time.Time) time.Time {
	switch j.State(now) {
	case StateQueued, StateWaiting:
		return j.begun()
	case StateRunning:
		return j.begun().Add(j.Duration() / 10)
	case StateCancelled:
		return *j.Cancelled
	default:
		return j.begun().Add(j.Duration())
	}
}

func (j *Job) begun() time.Time {
	if j.Begun != nil {
		return *j.Begun
	}
	return j.Created
}

// Percent returns how much of the work is done, or the progress that the directive sets.
func (j *Job) Percent(now time.Time) int {
	if j.Directive.Progress != nil {
		return *j.Directive.Progress
	}
	if j.Duration() <= 0 {
		return 100
	}
	return int(min(100, max(0, 100*now.Sub(j.begun())/j.Duration())))
}

// picture returns the image that the job makes.
func (m Media) picture() []byte {
	switch {
	case m.Grid:
		return sample.PNGGrid(m.Width, m.Height)
	case m.Quarter > 0:
		return sample.Quarter(m.Quarter, m.Width, m.Height)
	default:
		return sample.Image(m.Width, m.Height)
	}
}

// isAvailable reports whether a file can be fetched: a draft while the job runs, any other file once
// the job has succeeded.
func (j *Job) isAvailable(name string, now time.Time) bool {
	if name == FileDraft {
		return j.State(now) == StateRunning
	}
	return j.State(now) == StateSucceeded
}

// File makes one of the job's files and returns its content and MIME type. If the directive sets
// result_bytes, the result is padded to that length.
func (j *Job) File(name string) (content *io.SectionReader, mimeType string, ok bool) {
	m := j.Media
	switch {
	case m.Kind == "image" && name == FileImage:
		return sample.Padded(m.picture(), j.Directive.ResultBytes), "image/png", true
	case m.Kind == "image" && name == FileDraft:
		return sample.Padded(sample.Image(m.Width, m.Height), 0), "image/png", true
	case m.Kind == "video" && name == FileCover:
		return sample.Padded(sample.Image(m.Width, m.Height), 0), "image/png", true
	case m.Kind == "video" && (name == FileVideo || name == FileMarked && m.Watermark):
		video := sample.Video(sample.VideoSpec{
			Width: m.Width, Height: m.Height, Seconds: m.Seconds, Sound: m.Sound, Watermark: name == FileMarked,
		})
		return sample.Padded(video, j.Directive.ResultBytes), "video/mp4", true
	case m.Kind == "audio":
		return j.songFile(name)
	default:
		return nil, "", false
	}
}

// songFile makes a file of one of the job's songs, such as cover-1.png.
func (j *Job) songFile(name string) (content *io.SectionReader, mimeType string, ok bool) {
	stem, kind, _ := strings.Cut(name, ".")
	what, number, _ := strings.Cut(stem, "-")
	i, err := strconv.Atoi(number)
	if err != nil || i < 0 || i >= j.Media.Songs {
		return nil, "", false
	}
	seconds := j.Media.Length(i)
	switch what + "." + kind {
	case "song.mp3":
		return sample.Extended(sample.MP3(seconds), j.Directive.ResultBytes), "audio/mpeg", true
	case "song.wav":
		return sample.WAV(seconds), "audio/wav", true
	case "cover.png":
		return sample.Padded(sample.Image(songSide, songSide), 0), "image/png", true
	case "film.mp4":
		film := sample.Video(sample.VideoSpec{Width: songSide, Height: songSide, Seconds: int(seconds), Sound: true})
		return sample.Padded(film, 0), "video/mp4", true
	default:
		return nil, "", false
	}
}

// Link returns the path of one of the job's files.
func (j *Job) Link(name string) string { return fmt.Sprintf("/media/%s/%s", j.ID, name) }

// LinkUntil returns a path of one of the job's files that is refused from end on, to the second.
func (j *Job) LinkUntil(name string, end time.Time) string {
	return fmt.Sprintf("%s?expires=%d", j.Link(name), end.Unix())
}
