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
	links, err := view.Links{Sign: s.cfg.Signer.Sign, TTL: s.cfg.LinkTTL, Keep: s.cfg.Keep, Now: s.now}.Of(ctx, t)
	if err != nil {
		return nil, &mediagate.Error{Kind: mediagate.KindUnavailable, Message: "signing a link", Err: err}
	}
	return links, nil
}

// linked answers with what has links in it, or may have once the task has ended.
func (c *call) linked(status int, body any) error {
	header := c.Response().Header()
	header.Set("Cache-Control", "no-store")
	header.Set("X-Content-Type-Options", "nosniff")
	return c.json(status, body)
}
