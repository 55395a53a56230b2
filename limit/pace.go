package limit

import "time"

// The least pace of what others send us: who is slower over so long is let go.
const (
	LeastPace = 16 << 10 // bytes a second
	PaceOver  = 10 * time.Second
)

// Pace tells by when more has to have come of what should come at the least pace. The
// zero value is ready.
type Pace struct {
	by   time.Time
	came int64 // since the last time that was set
}

// By is when the sender counts as too slow unless more has come.
func (p *Pace) By(now time.Time) time.Time {
	if p.by.IsZero() {
		p.by = now.Add(PaceOver)
	}
	return p.by
}

// Came says that so many bytes have come.
func (p *Pace) Came(n int, now time.Time) {
	if p.came += int64(n); p.came >= LeastPace*int64(PaceOver/time.Second) {
		p.by, p.came = now.Add(PaceOver), 0
	}
}
