package api

import (
	"encoding/hex"
	"log/slog"
	"time"

	"github.com/mediagate/mediagate"
)

// ModerationTime is how long the check of a submit's content may take. A Moderator that takes
// longer has failed.
const ModerationTime = 5 * time.Second

// errContent names neither the refused text nor the rule, so that trial and error reveals as
// little as possible about the rules.
var errContent = &mediagate.Error{Kind: mediagate.KindModerated, Message: "the content was refused"}

// checkHold refuses a submit that cannot be paid for, so that the moderation endpoint is not
// called for it. It first asks the cached account and key, which may be a second old. If these
// cannot pay, the database decides.
func (s *Server) checkHold(c *call, v validated) error {
	key, hold := c.caller.key, v.hold()
	if c.caller.account.Available >= hold && (key.Unlimited || key.Remaining() >= hold) {
		return nil
	}
	return s.cfg.Store.CheckHold(c.ctx, key.AccountID, key.ID, hold)
}

// moderate checks what the client wrote for the vendor. It runs before money is held or anything is
// stored, so a refused request leaves only a log line.
func (s *Server) moderate(c *call, v validated) error {
	if s.cfg.Moderator == nil || len(v.Prose) == 0 {
		return nil
	}
	if s.cfg.ModeratorCalls {
		if err := s.checkHold(c, v); err != nil {
			return err
		}
	}
	var verdict mediagate.Verdict
	var err error
	c.withoutTimeout(func() {
		ctx, cancel := c.detachedContext(ModerationTime)
		defer cancel()
		if s.cfg.ModeratorCalls {
			permit, acquireErr := s.cfg.Limits.Moderation.Acquire(ctx, c.tenant(), 1)
			if acquireErr != nil {
				err = c.errNoRoom(s.cfg.Limits.Moderation, "content checks in progress")
				return
			}
			defer permit.Release()
		}
		verdict, err = s.cfg.Moderator.Check(ctx, v.Prose)
	})
	if err != nil {
		return err
	}
	attrs := []slog.Attr{
		slog.String("request", c.requestID), slog.String("route", c.Path()), slog.String("model", v.model),
		slog.String("account", c.caller.key.AccountID), slog.String("key", c.caller.key.Prefix),
	}
	switch {
	case verdict.Refused:
		attrs = append(attrs, slog.String("rule", verdict.Rule), slog.String("sha256", hex.EncodeToString(verdict.Digest[:])))
		s.log.LogAttrs(c.ctx, slog.LevelInfo, "content refused", attrs...)
		return errContent
	case verdict.Unchecked != nil:
		s.log.LogAttrs(
			c.ctx, slog.LevelWarn, "content not judged, it passes", append(attrs, slog.Any("error", verdict.Unchecked))...,
		)
	}
	return nil
}
