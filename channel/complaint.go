package channel

import (
	"sync"
	"time"
)

const (
	complainEvery = time.Minute
	complainMost  = 5 // lines of a kind in that time
)

// complaints bound what a poller logs of polls that failed: while a vendor is
// away each of them does, as many a second as the budget allows, for hours.
type complaints struct {
	mu     sync.Mutex
	byKind map[string]*complaint
}

type complaint struct {
	since    time.Time
	said     int
	withheld int // since the last one that was said
}

// say reports that one of the kind may be logged, and how many before it were
// not.
func (c *complaints) say(kind string, now time.Time) (withheld int, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.byKind == nil {
		c.byKind = make(map[string]*complaint)
	}
	k := c.byKind[kind]
	if k == nil {
		k = &complaint{since: now}
		c.byKind[kind] = k
	}
	if now.Sub(k.since) >= complainEvery {
		k.since, k.said = now, 0
	}
	if k.said >= complainMost {
		k.withheld++
		return 0, false
	}
	withheld, k.said, k.withheld = k.withheld, k.said+1, 0
	return withheld, true
}
