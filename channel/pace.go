package channel

import (
	"math/rand/v2"
	"time"

	"github.com/mediagate/mediagate"
)

// again is a result that only sets the next time.
func (p *Poller) again(row mediagate.Await) mediagate.PollResult {
	wait := nextPoll(p.Now().Sub(row.AcceptedAt), row.Expected, p.channel.PollMin, p.channel.PollMax)
	if rps := p.channel.RequestsPerSecond; rps > 0 {
		// With more tasks than the budget can serve at that pace, all are
		// asked for less often, so that none starves.
		wait = max(wait, time.Duration(float64(p.waiting)/(0.9*rps)*float64(time.Second)))
	}
	return mediagate.PollResult{TaskID: row.TaskID, N: row.N, NextPollAt: p.Now().Add(wait)}
}

// nextPoll adapts the pace to the model's expected duration: the further the
// expected end is away, before or behind, the rarer the questions.
func nextPoll(elapsed, expected, shortest, longest time.Duration) time.Duration {
	distance := (expected - elapsed).Abs()
	return min(max(distance/4, shortest), max(longest, shortest))
}

// FirstPoll is the pause before the first question for a new job.
func (c Channel) FirstPoll(expected time.Duration) time.Duration {
	return nextPoll(0, expected, c.PollMin, c.PollMax)
}

// synthetic is the progress of a job whose vendor gives none: the share of
// the expected time, never the end.
func synthetic(elapsed, expected time.Duration) int {
	if expected <= 0 {
		return 0
	}
	return int(min(95, max(0, 100*elapsed/expected)))
}

func jitter(d time.Duration) time.Duration {
	return d + time.Duration(rand.Int64N(int64(d)/4+1)) //nolint:gosec // spreading load needs no secret numbers
}
