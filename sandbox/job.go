package sandbox

import (
	"fmt"
	"time"

	"github.com/mediagate/mediagate/sandbox/sample"
)

// How long a vendor takes for a job without a directive.
const (
	videoTakes = 2 * time.Second
	imageTakes = 200 * time.Millisecond
)

// jobState is a job's state in the words of the control endpoint; vendors
// have their own.
type jobState string

const (
	stateQueued    jobState = "queued"
	stateRunning   jobState = "running"
	stateSucceeded jobState = "succeeded"
	stateFailed    jobState = "failed"
)

// job is one accepted submission. It never changes: its state follows from
// the clock.
type job struct {
	ID         string    `json:"id"`
	Provider   string    `json:"provider"`
	Account    string    `json:"account"`
	Endpoint   string    `json:"endpoint"` // ids are known there only
	Model      string    `json:"model"`
	ExternalID string    `json:"external_id,omitempty"`
	Prompt     string    `json:"prompt"`
	Directive  directive `json:"directive"`
	Created    time.Time `json:"created"`
	Media      media     `json:"media"`
}

// media is the file that a job makes.
type media struct {
	Kind      string `json:"kind"` // "video" or "image"
	Width     int    `json:"width"`
	Height    int    `json:"height"`
	Seconds   int    `json:"seconds,omitempty"`
	Sound     bool   `json:"sound,omitempty"`
	Watermark bool   `json:"watermark,omitempty"` // a marked copy is offered beside the clean one
}

// The names under which a job's files are offered.
const (
	fileVideo  = "video.mp4"
	fileMarked = "video-watermark.mp4"
	fileImage  = "image.png"
)

// takes is how long the vendor works on it.
func (j *job) takes() time.Duration {
	switch {
	case j.Directive.Duration != nil:
		return *j.Directive.Duration
	case j.Media.Kind == "image":
		return imageTakes
	default:
		return videoTakes
	}
}

// state is queued for the first tenth of the time, running after it.
func (j *job) state(now time.Time) jobState {
	passed, takes := now.Sub(j.Created), j.takes()
	switch endless := j.Directive.fails(atPoll) && j.Directive.Fail == failTimeout; {
	case passed < takes/10:
		return stateQueued
	case passed < takes || endless:
		return stateRunning
	case j.Directive.fails(atPoll) && j.Directive.Fail != failInternal:
		return stateFailed
	default:
		return stateSucceeded
	}
}

// changed is when the state was entered.
func (j *job) changed(now time.Time) time.Time {
	switch j.state(now) {
	case stateQueued:
		return j.Created
	case stateRunning:
		return j.Created.Add(j.takes() / 10)
	default:
		return j.Created.Add(j.takes())
	}
}

// file makes the content of one of the job's files, with its type.
func (j *job) file(name string) (content []byte, mimeType string, ok bool) {
	m := j.Media
	switch {
	case m.Kind == "image" && name == fileImage:
		return sample.Image(m.Width, m.Height), "image/png", true
	case m.Kind == "video" && (name == fileVideo || name == fileMarked && m.Watermark):
		return sample.Video(sample.VideoSpec{
			Width: m.Width, Height: m.Height, Seconds: m.Seconds, Sound: m.Sound, Watermark: name == fileMarked,
		}), "video/mp4", true
	default:
		return nil, "", false
	}
}

// link is the path of one of the job's files.
func (j *job) link(name string) string { return fmt.Sprintf("/media/%s/%s", j.ID, name) }
