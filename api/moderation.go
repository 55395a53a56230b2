package api

import (
	"encoding/hex"
	"log/slog"
	"time"

	"github.com/mediagate/mediagate"
)

// ModerationTime is what a submit may take to be judged for its content: a
// Moderator has failed by then.
const ModerationTime = 5 * time.Second

// errContent tells neither what was refused nor by which rule: who tries words
// out learns as little as can be.
var errContent = &mediagate.Error{Kind: mediagate.KindModerated, Message: "the content was refused"}

// affords refuses what cannot be paid for before anybody is asked about it. What was read
// of account and key within the last second may be out of date: where it says no, the
// database is asked.
func (s *Server) affords(c *call, o validated) error {
	key, hold := c.caller.key, o.hold()
	if c.caller.account.Available >= hold && (key.Unlimited || key.Quota-key.Held-key.Spent >= hold) {
		return nil
	}
	return s.cfg.Store.CheckHold(c.ctx, key.AccountID, key.ID, hold)
}

// moderate judges what the client wrote for the vendor. Nothing is held or
// stored by then, and of what is refused nothing stays but the line of the log.
func (s *Server) moderate(c *call, o validated) error {
	if s.cfg.Moderator == nil || len(o.Prose) == 0 {
		return nil
	}
	if s.cfg.ModeratorAsks {
		if err := s.affords(c, o); err != nil {
			return err
		}
	}
	var verdict mediagate.Verdict
	var err error
	c.uncounted(func() {
		ctx, cancel := c.lasting(ModerationTime)
		defer cancel()
		if s.cfg.ModeratorAsks {
			lease, waited := s.cfg.Limits.Moderation.Acquire(ctx, c.tenant(), 1)
			if waited != nil {
				err = c.noRoom(s.cfg.Limits.Moderation, "the texts that are judged")
				return
			}
			defer lease.Release()
		}
		verdict, err = s.cfg.Moderator.Judge(ctx, o.Prose)
	})
	if err != nil {
		return err
	}
	attrs := []slog.Attr{
		slog.String("request", c.requestID), slog.String("route", c.Path()), slog.String("model", o.model),
		slog.String("account", c.caller.key.AccountID), slog.String("key", c.caller.key.Prefix),
	}
	switch {
	case verdict.Refused:
		attrs = append(attrs, slog.String("rule", verdict.Rule), slog.String("sha256", hex.EncodeToString(verdict.Digest[:])))
		s.log.LogAttrs(c.ctx, slog.LevelInfo, "content refused", attrs...)
		return errContent
	case verdict.Unjudged != nil:
		s.log.LogAttrs(c.ctx, slog.LevelWarn, "content not judged, it passes", append(attrs, slog.Any("error", verdict.Unjudged))...)
	}
	return nil
}
