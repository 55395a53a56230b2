package view

import (
	"strings"

	"github.com/mediagate/mediagate"
)

// Legacy is the answer of the older image poll. It can show one file only.
type Legacy struct {
	TaskID     string             `json:"task_id"`
	Status     string             `json:"status"`
	URL        string             `json:"url"`
	Format     string             `json:"format"`
	Metadata   *LegacyMetadata    `json:"metadata"`
	Error      *mediagate.Failure `json:"error"`
	FailReason string             `json:"fail_reason"`
}

// LegacyMetadata is what the older image poll shows of its file.
type LegacyMetadata struct {
	MimeType  string  `json:"mime_type,omitempty"`
	Width     int     `json:"width,omitempty"`
	Height    int     `json:"height,omitempty"`
	Duration  float64 `json:"duration,omitempty"`
	SizeBytes int64   `json:"size_bytes,omitempty"`
	ExpiresAt int64   `json:"expires_at,omitempty"`
}

// The status words of the older poll. It has no word for a cancelled task, which therefore shows
// as failed, with the reason "cancelled".
var legacyStatuses = map[mediagate.Status]string{
	mediagate.StatusPending:    "queued",
	mediagate.StatusProcessing: "in_progress",
	mediagate.StatusCompleted:  "completed",
	mediagate.StatusFailed:     "failed",
	mediagate.StatusCancelled:  "failed",
}

// LegacyOf returns a task as the older image poll shows it. links are those of t.Results, in their
// order.
func LegacyOf(t *mediagate.Task, links []mediagate.Link) Legacy {
	v := Legacy{TaskID: t.ID, Status: legacyStatuses[t.Status]}
	switch t.Status {
	case mediagate.StatusFailed:
		if v.Error = failureOf(t); v.Error != nil {
			v.FailReason = v.Error.Message
		}
	case mediagate.StatusCancelled:
		v.FailReason = "cancelled"
	default: // nothing to explain
	}
	files := deliveredOf(t, links)
	if len(files) == 0 || files[0].link.URL == "" {
		return v
	}
	first := files[0]
	v.URL, v.Format = first.link.URL, formatOf(first.MimeType)
	v.Metadata = &LegacyMetadata{
		MimeType: first.MimeType, Width: first.Width, Height: first.Height, Duration: mediagate.ShownSeconds(first.Duration),
		SizeBytes: first.Size, ExpiresAt: first.link.ExpiresAt.Unix(),
	}
	return v
}

// formatOf is the short name of a media type: png, jpeg, mp4.
func formatOf(mimeType string) string {
	_, sub, _ := strings.Cut(mimeType, "/")
	sub, _, _ = strings.Cut(sub, ";")
	return sub
}
