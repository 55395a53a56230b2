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

// CallbackFolder is where vendors tell, below public_url, that a job may have changed.
const CallbackFolder = "callbacks/"

const callbackPath = "/" + CallbackFolder + ":token"

const (
	// callbackBytes is how much of a body is read, so that its connection lives on.
	callbackBytes = 16 << 10
	// challengeBytes is how long a body may be that is looked into for a challenge.
	challengeBytes = 4 << 10
)

// HintStore makes polls due.
type HintStore interface {
	// Hint makes the next poll for the attempt due, at most once a second. It returns
	// false where that changes nothing.
	Hint(ctx context.Context, taskID string, n int) (due bool, err error)
}

// handleCallback takes a vendor's word that a job may have changed. All of it that
// counts is the token, and all that it does is to make the next poll due. The answer is
// the same whatever the token is: 204, or the challenge by which MiniMax tries an
// address.
func (s *Server) handleCallback(c *call) error {
	c.quiet = !s.hints.take(c.Param("token"))
	if challenge := c.challenge(); challenge != nil {
		s.hints.counts.challenges.Add(1)
		c.Response().Header().Set("X-Content-Type-Options", "nosniff")
		return c.ok(map[string]json.RawMessage{"challenge": challenge})
	}
	return c.NoContent(http.StatusNoContent)
}

// challenge is the one in a short body, a text or a number. Of a long body the beginning
// is read and thrown away; the connection ends if there is more.
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
	if len(body) > challengeBytes || json.Unmarshal(body, &about) != nil || !bytes.ContainsAny(about.Challenge[:min(1, len(about.Challenge))], `"-0123456789`) {
		return nil
	}
	return about.Challenge
}

const (
	hintEvery   = 25 * time.Millisecond // between two rounds of writing hints
	hintTimeout = 5 * time.Second       // of one round
	maxHints    = 4096                  // that wait to be written
)

// HintCounts are how often callbacks came, by what came of them.
type HintCounts struct {
	Due        int64 // made a poll due
	Idle       int64 // changed nothing: nobody waits for the job, or a poll is due already
	Unknown    int64 // with a token that is not ours
	Dropped    int64 // more than could be written, or the database was away
	Challenges int64 // with a challenge, whatever their token
}

// hints writes what callbacks hint at: each attempt once a round, one row a statement,
// one after the other. So a flood of callbacks costs the database one connection, and
// nothing where all are for the same few jobs. A hint that is lost costs a later poll.
type hints struct {
	open  func(token string) (taskID string, n int, ok bool) // nil: no token is ours
	store HintStore
	lost  *listener.SampledLog
	ctx   context.Context

	mu      sync.Mutex
	waiting map[hinted]struct{}
	timer   *time.Timer // of the next round

	counts struct{ due, idle, unknown, dropped, challenges atomic.Int64 }
}

type hinted struct {
	taskID string
	n      int
}

func newHints(ctx context.Context, open func(string) (string, int, bool), store HintStore, log *slog.Logger) *hints {
	return &hints{open: open, store: store, lost: listener.NewSampledLog(log, "vendors' callbacks that were lost"), ctx: ctx, waiting: map[hinted]struct{}{}}
}

// take notes the hint of a callback, unless the token is not ours. It waits for nothing.
func (h *hints) take(token string) (ours bool) {
	var at hinted
	if h.open != nil {
		at.taskID, at.n, ours = h.open(token)
	}
	if !ours {
		h.counts.unknown.Add(1)
		return false
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if _, waits := h.waiting[at]; !waits && len(h.waiting) >= maxHints || h.ctx.Err() != nil {
		h.drop(errHintsFull)
		return true
	}
	h.waiting[at] = struct{}{}
	if h.timer == nil {
		h.timer = time.AfterFunc(hintEvery, h.write)
	}
	return true
}

var errHintsFull = errors.New("too many wait to be written")

func (h *hints) drop(err error) {
	h.counts.dropped.Add(1)
	if h.ctx.Err() == nil {
		h.lost.Count(slog.Any("error", err))
	}
}

// write writes a round, and plans the next one if there is something for it.
func (h *hints) write() {
	h.mu.Lock()
	round := h.waiting
	h.waiting = map[hinted]struct{}{}
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

// Callbacks tells how often vendors' callbacks came.
func (s *Server) Callbacks() HintCounts {
	c := &s.hints.counts
	return HintCounts{Due: c.due.Load(), Idle: c.idle.Load(), Unknown: c.unknown.Load(), Dropped: c.dropped.Load(), Challenges: c.challenges.Load()}
}
