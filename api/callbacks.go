package api

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mediagate/mediagate/api/listener"
)

// CallbackFolder is the path below public_url at which vendors report that a job may have
// changed.
const CallbackFolder = "callbacks/"

const callbackPath = "/" + CallbackFolder + ":token"

const (
	// callbackBytes is how much of a body is read to keep its connection alive.
	callbackBytes = 16 << 10
	// challengeBytes bounds the bodies that are searched for a challenge.
	challengeBytes = 4 << 10
)

// HintStore makes polls due.
type HintStore interface {
	// Hint makes the next poll for the attempt due, at most once a second. It returns false if
	// that changes nothing.
	Hint(ctx context.Context, taskID string, n int) (due bool, err error)
}

// handleCallback takes a vendor's report that a job may have changed. Its only effect is that the
// next poll of the token's job is due; the rest of the report is not believed. It answers every
// token alike: with 204, or with the challenge by which MiniMax tests an address.
func (s *Server) handleCallback(c *call) error {
	c.quiet = !s.hints.add(c.Param("token"))
	if challenge := c.challenge(); challenge != nil {
		s.hints.counts.challenges.Add(1)
		c.Response().Header().Set("X-Content-Type-Options", "nosniff")
		return c.ok(map[string]json.RawMessage{"challenge": challenge})
	}
	return c.NoContent(http.StatusNoContent)
}

// challenge returns the challenge, a string or a number, of a short body. It discards up to
// callbackBytes of a longer body. If there is more, it closes the connection.
func (c *call) challenge() json.RawMessage {
	r := c.Request()
	if r.ContentLength > callbackBytes {
		c.giveUpBody()
		return nil
	}
	c.begun = true
	c.readBy(time.Now().Add(restTime))
	body, err := io.ReadAll(io.LimitReader(r.Body, challengeBytes+1))
	if err == nil && len(body) > challengeBytes {
		_, err = io.CopyN(io.Discard, r.Body, callbackBytes-challengeBytes)
	}
	if err != nil && !errors.Is(err, io.EOF) || err == nil && len(body) > challengeBytes {
		c.giveUpBody()
		return nil
	}
	c.read = true
	var about struct {
		Challenge json.RawMessage `json:"challenge"`
	}
	if len(body) > challengeBytes || json.Unmarshal(body, &about) != nil ||
		!bytes.ContainsAny(about.Challenge[:min(1, len(about.Challenge))], `"-0123456789`) {
		return nil
	}
	return about.Challenge
}

const (
	hintEvery   = 25 * time.Millisecond // between two rounds of writes
	hintTimeout = 5 * time.Second       // for one round
	maxHints    = 4096                  // waiting to be written
)

// hints writes the hints of callbacks to the database: each attempt once a round, one row a
// statement, one statement after the other. So a flood of callbacks costs the database one
// connection, and repeated callbacks for the same jobs cost nothing more. A lost hint only delays
// a poll.
type hints struct {
	open  func(token string) (taskID string, n int, ok bool) // nil if no token is ours
	store HintStore
	lost  *listener.SampledLog
	ctx   context.Context

	mu      sync.Mutex
	waiting map[attemptRef]struct{}
	timer   *time.Timer // for the next round

	counts hintCounts
}

// hintCounts counts callbacks by their effect.
type hintCounts struct {
	due        atomic.Int64 // made a poll due
	idle       atomic.Int64 // changed nothing: the job is not polled for, or a poll is due already
	unknown    atomic.Int64 // had a token that is not ours
	dropped    atomic.Int64 // were more than could be written, or came while the database was away
	challenges atomic.Int64 // had a challenge, whatever their token
}

type attemptRef struct {
	taskID string
	n      int
}

func newHints(ctx context.Context, open func(string) (string, int, bool), store HintStore, log *slog.Logger) *hints {
	return &hints{
		open: open, store: store, lost: listener.NewSampledLog(log, "vendors' callbacks that were lost"), ctx: ctx,
		waiting: map[attemptRef]struct{}{},
	}
}

// add notes the hint of a callback. It reports whether the token is ours, and does not wait for
// the write.
func (h *hints) add(token string) (ours bool) {
	var at attemptRef
	if h.open != nil {
		at.taskID, at.n, ours = h.open(token)
	}
	if !ours {
		h.counts.unknown.Add(1)
		return false
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if _, isWaiting := h.waiting[at]; !isWaiting && len(h.waiting) >= maxHints || h.ctx.Err() != nil {
		h.drop(errHintsFull)
		return true
	}
	h.waiting[at] = struct{}{}
	if h.timer == nil {
		h.timer = time.AfterFunc(hintEvery, h.write)
	}
	return true
}

var errHintsFull = errors.New("too many hints wait to be written")

func (h *hints) drop(err error) {
	h.counts.dropped.Add(1)
	if h.ctx.Err() == nil {
		h.lost.Count(slog.Any("error", err))
	}
}

// write writes a round, and schedules the next one if new hints have come.
func (h *hints) write() {
	h.mu.Lock()
	round := h.waiting
	h.waiting = map[attemptRef]struct{}{}
	h.mu.Unlock()
	ctx, cancel := context.WithTimeout(h.ctx, hintTimeout)
	defer cancel()
	for at := range round {
		switch due, err := h.store.Hint(ctx, at.taskID, at.n); {
		case err != nil:
			h.drop(err)
		case due:
			h.counts.due.Add(1)
		default:
			h.counts.idle.Add(1)
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.timer = nil
	if len(h.waiting) > 0 && h.ctx.Err() == nil {
		h.timer = time.AfterFunc(hintEvery, h.write)
	}
}

// Callbacks returns how many callbacks of vendors have come, by their effect.
func (s *Server) Callbacks() map[string]int64 {
	c := &s.hints.counts
	return map[string]int64{
		"due": c.due.Load(), "idle": c.idle.Load(), "unknown": c.unknown.Load(), "dropped": c.dropped.Load(),
		"challenge": c.challenges.Load(),
	}
}
