package api

import (
	"context"
	"crypto/sha256"
	"strings"
	"sync"
	"time"

	"github.com/mediagate/mediagate"
)

// A request that waits for its task may end without its client having the answer. The next
// request of the same key with the same path and body adopts that task then, instead of
// making another one that is paid again. Requests side by side are tasks side by side.
//
// readOrder and its kin say with order.adoptable which requests these are. Any submit is
// one with Mediagate-Adopt: true, as package mcp sends it.

const (
	adoptHeader = "Mediagate-Adopt"
	// adoptMargin is what a request may take beside its wait until its answer is noted.
	adoptMargin = 30 * time.Second
	// noteTime is how long an answer waits until it is noted.
	noteTime = 2 * time.Second
)

// adoptable is how long the call may wait for its task, if a later one may adopt that, and
// 0 for other calls.
func (c *call) adoptable(o order) time.Duration {
	if strings.EqualFold(c.Request().Header.Get(adoptHeader), yes) {
		return max(o.adoptable, preferredWait(c.Request().Header)+adoptMargin)
	}
	return o.adoptable
}

// adoptableFor is the time for which a call in OpenAI's form that waits so long may keep its
// task from a later one; 0 for one with an idempotency key, which says itself what is the
// same.
func (c *call) adoptableFor(wait time.Duration) time.Duration {
	if wait == 0 || c.Request().Header.Get(idempotencyHeader) != "" {
		return 0
	}
	return wait + adoptMargin
}

// adopt makes the call a waiter for its task, and returns the task that it adopts, if there
// is one. Where its idempotency key names a task already, that is the only one.
func (s *Server) adopt(c *call, sub submit, wait time.Duration, known string) (taskID string, err error) {
	same := sha256.New()
	for _, part := range []string{c.caller.key.ID, sub.path, string(sub.digest[:])} {
		_, _ = same.Write([]byte(part + "\n"))
	}
	c.waiter = &mediagate.Waiter{
		ID: c.requestID, Request: [sha256.Size]byte(same.Sum(nil)), Wait: wait,
		TaskID: known, Key: sub.key, Path: sub.path, BodySHA256: sub.digest,
	}
	taskID, found, err := s.cfg.Store.Adopt(c.ctx, c.caller.key.AccountID, *c.waiter)
	if found {
		s.watchClient(c)
	}
	return taskID, err
}

// watchClient opens the call's task for adoption as soon as the client leaves, until the
// answer begins.
func (s *Server) watchClient(c *call) {
	accountID := c.caller.key.AccountID
	c.stays = sync.OnceValue(context.AfterFunc(c.Request().Context(), func() { s.noteEnd(c, accountID, s.cfg.Store.Unanswered) }))
	c.Response().Before(func() { c.stays() })
}

// endWait notes whether the client of a waiter has its answer. A fault is none, nor is that
// the task goes on beyond the wait, nor an answer that was cut off.
func (s *Server) endWait(c *call, err error) {
	if c.stays == nil || !c.stays() {
		return
	}
	note := s.cfg.Store.Answered
	isFault := faulty(err) && !mediagate.Is(err, mediagate.KindFailed) // that the task failed is an answer
	if err != nil && (isFault || c.Response().Committed) {
		note = s.cfg.Store.Unanswered
	}
	s.noteEnd(c, c.caller.key.AccountID, note)
}

func (s *Server) noteEnd(c *call, accountID string, note func(ctx context.Context, accountID, waiterID string) error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(c.Request().Context()), noteTime)
	defer cancel()
	if err := note(ctx, accountID, c.waiter.ID); err != nil {
		s.log.WarnContext(ctx, "the end of a wait is not noted: the same request adopts its task after the time of the wait",
			"request", c.requestID, "error", err)
	}
}
