package api

import (
	"context"
	"crypto/sha256"
	"strings"
	"sync"
	"time"

	"github.com/mediagate/mediagate"
)

// A client may lose the connection while its request waits for the task. It then usually sends the
// request again. Adoption prevents a second task: the next request of the same key, with the same
// path and body, gets the first request's task. Two equal requests that wait at the same time make
// two tasks.
//
// A submit takes part if submitRequest.adoptionWait is set, or if the request has the header
// Mediagate-Adopt: true, which package mcp sends.

const (
	adoptHeader = "Mediagate-Adopt"
	// adoptMargin is the time that a request has after its wait to note whether its client got the
	// answer. If it has noted nothing by then, an equal request adopts the task.
	adoptMargin = 30 * time.Second
	// noteTime bounds the write that notes whether a client got its answer.
	noteTime = 2 * time.Second
)

// adoptionWait returns how long the call may wait for its task. It returns 0 if no later call may
// adopt the task.
func (c *call) adoptionWait(o submitRequest) time.Duration {
	if strings.EqualFold(c.Request().Header.Get(adoptHeader), yes) {
		return max(o.adoptionWait, preferredWait(c.Request().Header)+adoptMargin)
	}
	return o.adoptionWait
}

// adoptionWaitFor returns the adoption wait of a call in OpenAI's form that waits this long for its
// task. The result is 0 for a call with an idempotency key, since the key already says which calls
// are the same.
func (c *call) adoptionWaitFor(wait time.Duration) time.Duration {
	if wait == 0 || c.Request().Header.Get(idempotencyHeader) != "" {
		return 0
	}
	return wait + adoptMargin
}

// adopt records that the call waits for its task, and returns the id of the task that it adopts,
// if any. known is the task that the call's idempotency key names already, or empty. If it is set,
// the call can adopt only that task.
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

// watchClient offers the call's task for adoption as soon as the client leaves. It watches until
// the answer begins.
func (s *Server) watchClient(c *call) {
	accountID := c.caller.key.AccountID
	c.stopWatching = sync.OnceValue(
		context.AfterFunc(c.Request().Context(), func() { s.noteEnd(c, accountID, s.cfg.Store.Unanswered) }),
	)
	c.Response().Before(func() { c.stopWatching() })
}

// noteAnswer records whether the client of a waiting call got its answer. A server fault, a timeout
// of the wait and an answer that was cut off do not count as answers.
func (s *Server) noteAnswer(c *call, err error) {
	if c.stopWatching == nil || !c.stopWatching() {
		return
	}
	note := s.cfg.Store.Answered
	isFault := isServerFault(err) && !mediagate.Is(err, mediagate.KindFailed) // "the task failed" is an answer
	if err != nil && (isFault || c.Response().Committed) {
		note = s.cfg.Store.Unanswered
	}
	s.noteEnd(c, c.caller.key.AccountID, note)
}

func (s *Server) noteEnd(c *call, accountID string, note func(ctx context.Context, accountID, waiterID string) error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(c.Request().Context()), noteTime)
	defer cancel()
	if err := note(ctx, accountID, c.waiter.ID); err != nil {
		s.log.WarnContext(
			ctx, "the end of a wait was not noted: an equal request adopts the task only after the time of the wait",
			"request", c.requestID, "error", err,
		)
	}
}
