package limit

import (
	"cmp"
	"time"
)

// The least pace at which clients must send. A client that sends less than that in PaceOver is cut
// off.
const (
	LeastPace = 16 << 10 // bytes a second
	PaceOver  = 10 * time.Second
)

// Pace computes the deadline by which a sender must have sent more. The zero value is ready for
// use.
type Pace struct {
	Over time.Duration // 0 means PaceOver
	by   time.Time
	came int64 // bytes since the deadline was set
}

// By returns when the sender counts as too slow unless more has come.
func (p *Pace) By(now time.Time) time.Time {
	if p.by.IsZero() {
		p.by = now.Add(p.over())
	}
	return p.by
}

// Pause extends the deadline by the time that the sender had to wait for us.
func (p *Pace) Pause(d time.Duration) {
	if !p.by.IsZero() {
		p.by = p.by.Add(d)
	}
}

func (p *Pace) over() time.Duration { return cmp.Or(p.Over, PaceOver) }

// Came counts bytes that have come.
func (p *Pace) Came(n int, now time.Time) {
	if p.came += int64(n); p.came >= LeastPace*int64(p.over())/int64(time.Second) {
		p.by, p.came = now.Add(p.over()), 0
	}
}
