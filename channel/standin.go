package channel

import (
	"context"
	"errors"
	"time"

	"github.com/mediagate/mediagate"
)

// standInIdle is how long a stand-in has nothing to ask before it hands the
// name back.
const standInIdle = 30 * time.Second

// standIn finds a channel to poll with under a name that this worker has no
// channel of: the one that took the name over, as long as rows wait there or
// another worker may still add some, or one that has the account of such rows.
func (a *Accounts) standIn(ctx context.Context, name string) (Channel, bool, error) {
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
	heir, ok := a.successor(name)
	if !ok {
		return Channel{}, false, nil
	}
	queued, err := a.Store.QueuedTasks(ctx, name, 1)
	if err != nil || len(queued) > 0 {
		return heir, err == nil, err
	}
	seen, err := a.Store.ChannelLastSeen(ctx, name)
	if err != nil && !mediagate.Is(err, mediagate.KindNotFound) {
		return Channel{}, false, err
	}
	return heir, a.Now().Sub(seen) < a.Grace, nil
}

// standInDone reports that a stand-in has asked for nothing for a while, and
// nobody waits for a slot. What is
// left may be for another worker, whose channel has the name.
func (p *Poller) standInDone() bool {
	if polls := p.polls.Load(); polls != p.polled || p.idleSince.IsZero() || p.inQueue.Load() > 0 {
		p.polled, p.idleSince = polls, p.Now()
	}
	return p.name != p.channel.Name && p.Now().Sub(p.idleSince) >= standInIdle
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
	return p.unproven(c, attempt)
}

// unservable is the result for a row that no channel here may ask for. Where the
// name is a channel's, or was, that is trouble at once. Who stands in for the
// sake of other rows leaves it to a worker that has the channel, and to the end
// of the grace time.
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
