package channel

import (
	"math/rand/v2"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/mediagate/mediagate"
)

// pace holds the budget for the polls that this process makes for one channel, and the bounds of the
// interval between two polls of a job. The pollers of the channel's present and former names share
// it. If the budget is too small for all intervals, a poller claims the rows that are overdue the
// longest first, so its jobs share the budget evenly.
type pace struct {
	shortest, longest time.Duration
	limiter           *rate.Limiter

	mu         sync.Mutex
	incomplete map[rowKey]time.Time // see incompleteSince
}

// rowKey identifies an await row.
type rowKey struct {
	taskID string
	n      int
}

// newPace returns the pace that the channel's settings describe.
func newPace(c Channel) *pace {
	limit := rate.Inf
	if c.RequestsPerSecond > 0 {
		limit = rate.Limit(c.RequestsPerSecond)
	}
	return &pace{
		// At most the calls of one second are made in a burst. A rate below one a second still
		// needs a burst of one.
		limiter:  rate.NewLimiter(limit, max(1, int(c.RequestsPerSecond))),
		shortest: c.PollMin, longest: max(c.PollMin, c.PollMax),
		incomplete: make(map[rowKey]time.Time),
	}
}

// FirstPoll returns the pause before the first poll for a new job: between one half and one and a
// half of the shortest interval. The pause is random. With a fixed one, jobs that begin together
// and take equally long could all be polled just before they end, and their ends would be seen
// late.
func (c Channel) FirstPoll() time.Duration {
	spread := 0.5 + rand.Float64() //nolint:gosec // spreading load needs no secret numbers
	return time.Duration(spread * float64(c.PollMin))
}

// interval returns the pause until the next poll of a job of that age. It grows with the age,
// shrinks towards the time at which the job is expected to end, and grows again after it. For a
// job that is expected to take 60 s, with bounds of 2 s and 30 s, it is 5 s at 20 s, 2 s at 55 s,
// and 15 s at 2 min.
func (p *pace) interval(age, expected time.Duration) time.Duration {
	return min(max(min(age, (expected-age).Abs())/4, p.shortest), p.longest)
}

// incompleteSince returns the time of the first poll whose answer said that the job had succeeded,
// but did not name all media. Only this process knows that time: after a restart the wait begins
// again.
func (p *pace) incompleteSince(row mediagate.Await, asked time.Time) time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	for key, since := range p.incomplete { // forget old jobs: by now they have ended
		if asked.Sub(since) > time.Hour {
			delete(p.incomplete, key)
		}
	}
	key := rowKey{row.TaskID, row.N}
	since, ok := p.incomplete[key]
	if !ok {
		since, p.incomplete[key] = asked, asked
	}
	return since
}

// estimatedProgress returns the progress of a job whose vendor gives none: the elapsed share of
// the expected time, at most 95.
func estimatedProgress(elapsed, expected time.Duration) int {
	if expected <= 0 {
		return 0
	}
	return int(min(95, max(0, 100*elapsed/expected)))
}
