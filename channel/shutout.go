package channel

import (
	"context"
	"time"
)

// probeWakes is the pause between two tasks that are woken to be the probe: one
// may have another way to go by now.
const probeWakes = 10 * time.Second

// shutOut is how far a poller is with the tasks that no channel took.
type shutOut struct {
	changedAt time.Time // of the breaker's state that all were woken for
	waking    bool
	after     string // the last one woken
	probedAt  time.Time
	probed    string // the last one woken to be the probe
}

// wakeShutOut lets the tasks go on that are parked since no channel took them
// (D12): all of them once the channel's breaker has closed or an operator has
// enabled it, a batch each time; and one of them when the breaker lets a probe
// through, since nobody else may come. A poller that begins makes good for one
// that died before it was done.
func (p *Poller) wakeShutOut(ctx context.Context) {
	if p.name != p.channel.Name {
		return // a stand-in; the channel has a poller of its own
	}
	w, now := &p.shutOut, p.Now()
	switch s := p.Breakers.State(p.channel.Name); {
	case !s.TakesJobs(now):
	case s.Open:
		if now.Sub(w.probedAt) >= probeWakes {
			w.probedAt = now
			var more bool
			if w.probed, more = p.wakeOnRoute(ctx, w.probed, 1); !more {
				w.probed, _ = p.wakeOnRoute(ctx, "", 1) // from the first on again
			}
		}
	case !s.ChangedAt.Equal(w.changedAt):
		w.changedAt, w.waking, w.after = s.ChangedAt, true, ""
		fallthrough
	case w.waking:
		w.after, w.waking = p.wakeOnRoute(ctx, w.after, claimBatch)
	}
}

// wakeOnRoute wakes tasks that could go to the channel, and returns the last, and
// whether there may be more: while the database is away nobody knows.
func (p *Poller) wakeOnRoute(ctx context.Context, after string, limit int) (last string, more bool) {
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	p.steps.Add(1)
	ids, err := p.Store.ParkedOnRoute(ctx, p.channel.Provider, after, limit)
	if err != nil {
		p.log.WarnContext(ctx, "parked tasks not woken", "error", err)
		return after, true
	}
	if len(ids) == 0 {
		return "", false
	}
	p.Workflows.SignalWake(ctx, p.channel.Name, ids)
	return ids[len(ids)-1], true
}
