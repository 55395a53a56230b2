package view

import (
	"strconv"
	"time"

	"github.com/mediagate/mediagate"
)

// Video is a task that makes a video, as clients of OpenAI read it
// (https://platform.openai.com/docs/api-reference/videos/object).
type Video struct {
	ID          string      `json:"id"`
	Object      string      `json:"object"` // video
	Model       string      `json:"model"`
	Status      VideoStatus `json:"status"`
	Progress    int         `json:"progress"`
	CreatedAt   int64       `json:"created_at"`
	CompletedAt *int64      `json:"completed_at"` // set for a completed video
	ExpiresAt   *int64      `json:"expires_at"`   // when its file is deleted, if ever
	Seconds     string      `json:"seconds"`      // as requested, else as delivered; empty if neither is known
	Size        string      `json:"size"`         // likewise, as WIDTHxHEIGHT
	Error       *VideoError `json:"error"`
}

// VideoStatus is the state of a video in OpenAI's words.
type VideoStatus string

// The states. OpenAI has none for a cancelled task, which therefore shows as failed.
const (
	VideoQueued     VideoStatus = "queued"
	VideoInProgress VideoStatus = "in_progress"
	VideoCompleted  VideoStatus = "completed"
	VideoFailed     VideoStatus = "failed"
)

// VideoError says why a video failed.
type VideoError struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

// VideoOf returns a task as OpenAI's clients read it. seconds and size are those of the request.
// until is when its files are deleted, or zero if they are kept.
func VideoOf(t *mediagate.Task, seconds, size string, until time.Time) Video {
	v := Video{
		ID: t.ID, Object: "video", Model: t.Model, Status: VideoQueued, Progress: t.Progress,
		CreatedAt: t.CreatedAt.Unix(), Seconds: seconds, Size: size,
	}
	switch t.Status {
	case mediagate.StatusPending:
	case mediagate.StatusProcessing:
		v.Status = VideoInProgress
	case mediagate.StatusCompleted:
		v.Status = VideoCompleted
		v.delivered(t, until)
	case mediagate.StatusCancelled:
		v.Status, v.Error = VideoFailed, &VideoError{Code: "cancelled", Message: "the task was cancelled"}
	case mediagate.StatusFailed:
		v.Status = VideoFailed
		if f := failureOf(t); f != nil {
			v.Error = &VideoError{Code: string(f.Code), Message: f.Message}
		}
	}
	return v
}

// delivered adds what a completed task made.
func (v *Video) delivered(t *mediagate.Task, until time.Time) {
	at := t.EndedAt.Unix()
	v.CompletedAt = &at
	if !until.IsZero() {
		end := until.Unix()
		v.ExpiresAt = &end
	}
	file, ok := t.File(1)
	if !ok {
		return
	}
	if v.Seconds == "" && file.Duration > 0 {
		v.Seconds = strconv.FormatFloat(mediagate.ShownSeconds(file.Duration), 'f', -1, 64)
	}
	if v.Size == "" && file.Width > 0 {
		v.Size = strconv.Itoa(file.Width) + "x" + strconv.Itoa(file.Height)
	}
}

// Cover returns the picture that stands for the n-th file of a completed task. n counts from 1.
func Cover(t *mediagate.Task, n int) (r mediagate.Result, ok bool) {
	of, ok := t.File(n)
	if !ok {
		return mediagate.Result{}, false
	}
	for _, cover := range filesOf(t, mediagate.RoleCover, nil) {
		if cover.Index == of.Index {
			return cover.Result, true
		}
	}
	return mediagate.Result{}, false
}
