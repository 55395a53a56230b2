package api

import (
	"context"
	"strings"

	"github.com/mediagate/mediagate"
)

// object is the public view of a task, with links signed now.
func (s *Server) object(ctx context.Context, t *mediagate.Task, language string) (mediagate.Object, error) {
	links, err := s.links(ctx, t)
	if err != nil {
		return mediagate.Object{}, err
	}
	o := t.Object(s.cfg.CreditsPerUnit, links)
	if o.Error != nil {
		localized := *o.Error
		localized.Message = localizedMessage(localized, language)
		o.Error = &localized
	}
	return o, nil
}

func (s *Server) links(ctx context.Context, t *mediagate.Task) ([]mediagate.Link, error) {
	if t.Status != mediagate.StatusCompleted {
		return nil, nil
	}
	links := make([]mediagate.Link, 0, len(t.Results))
	for _, r := range t.Results {
		link, err := s.cfg.Signer.Sign(ctx, r, s.cfg.LinkTTL)
		if err != nil {
			return nil, &mediagate.Error{Kind: mediagate.KindUnavailable, Message: "signing a link", Err: err}
		}
		links = append(links, link)
	}
	return links, nil
}

// legacyTask is the answer of the older image poll.
type legacyTask struct {
	TaskID     string             `json:"task_id"`
	Status     string             `json:"status"`
	URL        string             `json:"url"`
	Format     string             `json:"format"`
	Metadata   *legacyMetadata    `json:"metadata"`
	Error      *mediagate.Failure `json:"error"`
	FailReason string             `json:"fail_reason"`
}

type legacyMetadata struct {
	MimeType  string  `json:"mime_type,omitempty"`
	Width     int     `json:"width,omitempty"`
	Height    int     `json:"height,omitempty"`
	Duration  float64 `json:"duration,omitempty"`
	SizeBytes int64   `json:"size_bytes,omitempty"`
	ExpiresAt int64   `json:"expires_at,omitempty"`
}

// The words of the older poll. It has none for a cancelled task: that one
// failed, for a reason.
var legacyStatuses = map[mediagate.Status]string{
	mediagate.StatusPending:    "queued",
	mediagate.StatusProcessing: "in_progress",
	mediagate.StatusCompleted:  "completed",
	mediagate.StatusFailed:     "failed",
	mediagate.StatusCancelled:  "failed",
}

func (s *Server) legacy(ctx context.Context, t *mediagate.Task) (legacyTask, error) {
	links, err := s.links(ctx, t)
	if err != nil {
		return legacyTask{}, err
	}
	view := legacyTask{TaskID: t.ID, Status: legacyStatuses[t.Status]}
	switch t.Status {
	case mediagate.StatusFailed:
		if view.Error = t.Failure; t.Failure != nil {
			view.FailReason = t.Failure.Message
		}
	case mediagate.StatusCancelled:
		view.FailReason = "cancelled"
	default: // nothing to explain
	}
	if len(links) > 0 {
		r := t.Results[0]
		view.URL = links[0].URL
		view.Format = formatOf(r.MimeType)
		view.Metadata = &legacyMetadata{
			MimeType: r.MimeType, Width: r.Width, Height: r.Height, Duration: r.Duration, SizeBytes: r.Size,
			ExpiresAt: links[0].ExpiresAt.Unix(),
		}
	}
	return view, nil
}

// formatOf is the short name of a media type: png, jpeg, mp4.
func formatOf(mimeType string) string {
	_, sub, _ := strings.Cut(mimeType, "/")
	sub, _, _ = strings.Cut(sub, ";")
	return sub
}
