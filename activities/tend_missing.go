package activities

import (
	"context"
	"time"

	"github.com/mediagate/mediagate"
)

// tendMissing stands in on a worker that lacks the channel: another worker
// should have it. Once no worker had it for the grace time, the tasks that
// wait for it are in trouble (D11).
func (a *Activities) tendMissing(ctx context.Context, name string) error {
	seen, err := a.Store.ChannelLastSeen(ctx, name)
	if err != nil && mediagate.KindOf(err) != mediagate.KindNotFound {
		return a.fail(ctx, err)
	}
	missing := a.fail(ctx, &mediagate.Error{
		Kind: mediagate.KindUnreached, Code: mediagate.ParkChannelMissing, Message: "this worker lacks the channel",
		RetryAfter: 5 * time.Second,
	})
	if seen.Before(a.StartedAt) {
		seen = a.StartedAt // nobody could see it while no worker ran
	}
	if a.Now().Sub(seen) < a.Settings.ChannelGrace {
		return missing
	}
	epoch, err := a.Store.BeginEpoch(ctx, name)
	if err != nil {
		return a.fail(ctx, err)
	}
	t := &tender{Activities: a, channel: BoundChannel{Channel: mediagate.Channel{Name: name}}, epoch: epoch, log: a.Logger}
	rows, err := a.Store.ClaimDue(ctx, name, epoch, t.claim(), claimLease, claimBatch)
	if err != nil || len(rows) == 0 {
		return missing
	}
	results := make([]mediagate.PollResult, 0, len(rows))
	owed := make([]mediagate.Await, 0)
	for _, row := range rows {
		if row.Ended {
			owed = append(owed, row)
			continue
		}
		results = append(results, mediagate.PollResult{
			TaskID: row.TaskID, N: row.N, NextPollAt: a.Now().Add(time.Minute), Trouble: mediagate.ParkChannelMissing,
		})
	}
	ended, err := a.Store.StorePolls(ctx, name, rows[0].Claim, results)
	if err != nil {
		return a.fail(ctx, err)
	}
	t.signal(ctx, append(owed, ended...))
	return missing
}
