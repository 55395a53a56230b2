package limit

import (
	"cmp"
	"time"
)

// The least pace of what others send us: who is slower over so long is let go.
const (
	LeastPace = 16 << 10 // bytes a second
	PaceOver  = 10 * time.Second
)

// Pace tells by when more has to have come of what should come at the least pace. The
// zero value is ready.
type Pace struct {
	Over time.Duration // 0: PaceOver
	by   time.Time
	came int64 // since the last time that was set
}

// By is when the sender counts as too slow unless more has come.
func (p *Pace) By(now time.Time) time.Time {
	if p.by.IsZero() {
		p.by = now.Add(p.over())
	}
	return p.by
}

// Pause gives the sender the time for which it had to wait for us.
func (p *Pace) Pause(d time.Duration) {
	if !p.by.IsZero() {
		p.by = p.by.Add(d)
	}
}

func (p *Pace) over() time.Duration { return cmp.Or(p.Over, PaceOver) }

// Came says that so many bytes have come.
func (p *Pace) Came(n int, now time.Time) {
	if p.came += int64(n); p.came >= LeastPace*int64(p.over())/int64(time.Second) {
		p.by, p.came = now.Add(p.over()), 0
	}
}
