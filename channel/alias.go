package channel

import (
	"context"
	"errors"
	"time"

	"github.com/mediagate/mediagate"
)

// aliasIdle is how long an alias channel has no row to ask for before its poller ends.
const aliasIdle = 30 * time.Second

// aliasFor finds the alias channel of a name that this worker has no channel of: one
// that has the account of rows that wait under the name, or the one that had the name
// before, while rows wait or another worker may add some.
func (a *Accounts) aliasFor(ctx context.Context, name string) (Channel, bool, error) {
	accounts, err := a.Store.AwaitAccounts(ctx, name)
	if err != nil {
		return Channel{}, false, err
	}
	for _, fingerprint := range accounts {
		c, _, err := a.channelFor(ctx, name, fingerprint)
		if err != nil || c.Vendor != nil {
			return c, err == nil, err
		}
	}
	c, ok := a.successor(name)
	if !ok {
		return Channel{}, false, nil
	}
	queued, err := a.Store.QueuedTasks(ctx, name, 1)
	if err != nil || len(queued) > 0 {
		return c, err == nil, err
	}
	seen, err := a.Breakers.LastSeen(ctx, name)
	return c, err == nil && a.Now().Sub(seen) < a.Grace, err
}

// aliasDone reports that an alias channel has asked for nothing for a while, and no task
// waits for a slot. Rows that are left may be for a worker whose channel has the name.
func (p *Poller) aliasDone() bool {
	if polls := p.polls.Load(); polls != p.polled || p.idleSince.IsZero() || p.queued.Load() > 0 {
		p.polled, p.idleSince = polls, p.Now()
	}
	return p.name != p.channel.Name && p.Now().Sub(p.idleSince) >= aliasIdle
}

// askerFor is Asker for an await row.
func (p *Poller) askerFor(ctx context.Context, row mediagate.Await) (Channel, error) {
	c, sure, err := p.channelFor(ctx, row.Channel, row.Fingerprint)
	if err != nil || sure {
		return c, err
	}
	attempt, err := p.Store.Attempt(ctx, row.TaskID, row.N)
	if err != nil {
		return Channel{}, err
	}
	return p.unverified(c, attempt)
}

// unservable is the result for a row that no channel here may ask for. It is trouble at
// once where a channel has the name, or had it. An alias channel that polls for other
// rows leaves the row to a worker that has the channel, or to the end of the grace time.
func (p *Poller) unservable(ctx context.Context, row mediagate.Await, err error) mediagate.PollResult {
	result := p.again(row, p.Now())
	_, named := p.successor(p.name)
	switch {
	case errors.Is(ctx.Err(), context.Canceled): // the worker stops
		result.NextPollAt = p.Now()
	case mediagate.TroubleOf(err) == "": // the database is away
	case named:
		result.Trouble = mediagate.ParkChannelMissing
	default:
		result.NextPollAt = p.Now().Add(time.Minute)
	}
	return result
}
