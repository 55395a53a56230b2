package api

import (
	"context"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/view"
)

// view is the public view of a task, with links signed now.
func (s *Server) view(ctx context.Context, t *mediagate.Task) (view.Task, error) {
	links, err := s.links(ctx, t)
	if err != nil {
		return view.Task{}, err
	}
	return view.Of(t, s.cfg.CreditsPerUnit, links), nil
}

// links are those of the task's files, in their order.
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
