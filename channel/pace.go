package channel

import (
	"math/rand/v2"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/mediagate/mediagate"
)

// pace is the budget of all polls of one account, under whatever name the jobs wait,
// and the interval between two polls of a job. A budget that is too small for all
// intervals is shared evenly: claims take what is due the longest.
type pace struct {
	shortest, longest time.Duration
	limiter           *rate.Limiter

	mu         sync.Mutex
	incomplete map[rowKey]time.Time // since when a job's answers lack media
}

type rowKey struct {
	taskID string
	n      int
}

func newPace(c Channel) *pace {
	limit := rate.Inf
	if c.RequestsPerSecond > 0 {
		limit = rate.Limit(c.RequestsPerSecond)
	}
	return &pace{
		limiter:  rate.NewLimiter(limit, max(1, int(c.RequestsPerSecond))),
		shortest: c.PollMin, longest: max(c.PollMin, c.PollMax),
		incomplete: make(map[rowKey]time.Time),
	}
}

// FirstPoll is the pause before a channel looks at a new job, about the shortest
// interval. It differs from job to job, so that jobs which begin together and take
// equally long are not all seen equally late.
func (c Channel) FirstPoll() time.Duration {
	spread := 0.5 + rand.Float64() //nolint:gosec // spreading load needs no secret numbers
	return time.Duration(spread * float64(c.PollMin))
}

// interval is the pause until the next poll of a job that is so old. It grows with the
// age, shrinks towards the time at which the job is expected to end, and grows again
// after it.
func (p *pace) interval(age, expected time.Duration) time.Duration {
	return min(max(min(age, (expected-age).Abs())/4, p.shortest), p.longest)
}

// incompleteSince is since when the answers about a job lack media.
func (p *pace) incompleteSince(row mediagate.Await, asked time.Time) time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	for key, since := range p.incomplete { // of jobs that ended meanwhile
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

// synthetic is the progress of a job whose vendor gives none: the share of
// the expected time, never the end.
func synthetic(elapsed, expected time.Duration) int {
	if expected <= 0 {
		return 0
	}
	return int(min(95, max(0, 100*elapsed/expected)))
}
