package channel

import (
	"context"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/providers"
)

// unproven restricts a channel that has only the attempt's name.
func (a *Accounts) unproven(c Channel, row mediagate.Attempt) (Channel, error) {
	if c.Vendor == nil || c.Provider != row.Provider {
		return Channel{}, noChannel()
	}
	account := &unprovenAccount{Accounts: a, row: row, channel: c}
	if finder, ok := c.Vendor.(providers.Finder); ok {
		c.Vendor = &unprovenFinder{account, finder}
	} else {
		c.Vendor = account
	}
	return c, nil
}

// unprovenAccount is a vendor account that may or may not have made the attempt's job.
type unprovenAccount struct {
	*Accounts
	row     mediagate.Attempt
	channel Channel
	proven  bool
}

// Submit sends nothing: the account that made the attempt may have the job.
func (c *unprovenAccount) Submit(context.Context, mediagate.Job) (mediagate.Submission, error) {
	return mediagate.Submission{}, noChannel()
}

// Poll asks for the job by the vendor's id.
func (c *unprovenAccount) Poll(ctx context.Context, ref mediagate.JobRef) (mediagate.Report, error) {
	report, err := c.channel.Vendor.Poll(ctx, ref)
	return c.judge(ctx, report, err)
}

// unprovenFinder is one whose vendor can be asked by our own id.
type unprovenFinder struct {
	*unprovenAccount
	finder providers.Finder
}

// Ref is the vendor's own.
func (c *unprovenFinder) Ref(job mediagate.Job) (mediagate.JobRef, error) { return c.finder.Ref(job) }

// Find asks for the job by our own id.
func (c *unprovenFinder) Find(ctx context.Context, ref mediagate.JobRef) (mediagate.Report, error) {
	report, err := c.finder.Find(ctx, ref)
	return c.judge(ctx, report, err)
}

// Unwrap is the vendor behind an unproven account that has proven itself.
func Unwrap(v providers.Provider) providers.Provider {
	switch c := v.(type) {
	case *unprovenFinder:
		return Unwrap(c.unprovenAccount)
	case *unprovenAccount:
		if c.proven {
			return c.channel.Vendor
		}
	}
	return v
}

// judge believes an answer about the very job that was asked for. That this
// account does not show us the job says nothing of the one that made it. Only a
// vendor that could not answer is left as it is: the next time may tell.
func (c *unprovenAccount) judge(ctx context.Context, report mediagate.Report, err error) (mediagate.Report, error) {
	if err == nil && !report.Named {
		return mediagate.Report{}, noChannel()
	}
	if err != nil {
		switch kind := mediagate.KindOf(err); kind {
		case mediagate.KindNotFound:
			return mediagate.Report{}, noChannel()
		case mediagate.KindCredentials, mediagate.KindFunds, mediagate.KindForbidden:
			return mediagate.Report{}, &mediagate.Error{
				Kind: kind, Code: string(mediagate.ParkChannelMissing), Message: "the channel's present account cannot be asked", Err: err,
			}
		default:
			return mediagate.Report{}, err
		}
	}
	if err := c.prove(ctx); err != nil {
		return mediagate.Report{}, err
	}
	c.proven = true
	return report, nil
}

// prove records that the account is the one that made the job, and wakes the
// tasks that waited for that, or for a key that the vendor takes.
func (c *unprovenAccount) prove(ctx context.Context) error {
	fresh, err := c.Store.ProveAccount(ctx, mediagate.AccountProof{
		Made: c.row.Fingerprint, Found: c.channel.Fingerprint, Channel: c.channel.Name, TaskID: c.row.TaskID, N: c.row.N,
	})
	if err != nil || !fresh {
		return err
	}
	c.Logger.InfoContext(ctx, "a job of the channel's former credentials was found: it is the same account",
		"channel", c.channel.Name, "task", c.row.TaskID, "attempt", c.row.N)
	for _, reason := range []mediagate.ParkReason{mediagate.ParkChannelMissing, mediagate.ParkCredentials} {
		c.wakeTasks(ctx, c.row.Channel, reason)
	}
	return nil
}

// wakeTasks lets the tasks of a channel go on that are parked for the reason.
func (a *Accounts) wakeTasks(ctx context.Context, channel string, reason mediagate.ParkReason) {
	ids, err := a.Store.ParkedTasks(ctx, channel, reason, claimBatch)
	if err != nil {
		a.Logger.WarnContext(ctx, "parked tasks not woken", "channel", channel, "error", err)
		return
	}
	a.Workflows.SignalWake(ctx, channel, ids)
}
