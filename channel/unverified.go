package channel

import (
	"context"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/providers"
)

// unverified returns a channel that has only the attempt's name, restricted to lookups.
func (a *Accounts) unverified(c Channel, row mediagate.Attempt) (Channel, error) {
	if c.Vendor == nil || c.Provider != row.Provider {
		return Channel{}, noChannel()
	}
	account := &unverifiedAccount{Accounts: a, row: row, channel: c}
	if finder, ok := c.Vendor.(providers.Finder); ok {
		c.Vendor = &unverifiedFinder{account, finder}
	} else {
		c.Vendor = account
	}
	return c, nil
}

// unverifiedAccount is a vendor account that may or may not have made the attempt's job.
type unverifiedAccount struct {
	*Accounts
	row     mediagate.Attempt
	channel Channel
	proven  bool
}

// Submit sends nothing: the account that made the attempt may have the job.
func (c *unverifiedAccount) Submit(context.Context, mediagate.Job) (mediagate.Submission, error) {
	return mediagate.Submission{}, noChannel()
}

// Poll asks for the job by the vendor's id.
func (c *unverifiedAccount) Poll(ctx context.Context, ref mediagate.JobRef) (mediagate.Report, error) {
	report, err := c.channel.Vendor.Poll(ctx, ref)
	return c.check(ctx, report, err)
}

// unverifiedFinder is an unverifiedAccount whose vendor can be asked by our own id.
type unverifiedFinder struct {
	*unverifiedAccount
	finder providers.Finder
}

// Ref is the vendor's own.
func (c *unverifiedFinder) Ref(job mediagate.Job) (mediagate.JobRef, error) { return c.finder.Ref(job) }

// Find asks for the job by our own id.
func (c *unverifiedFinder) Find(ctx context.Context, ref mediagate.JobRef) (mediagate.Report, error) {
	report, err := c.finder.Find(ctx, ref)
	return c.check(ctx, report, err)
}

// Unwrap returns the vendor of an account that was unverified, and is verified by now.
func Unwrap(v providers.Provider) providers.Provider {
	switch c := v.(type) {
	case *unverifiedFinder:
		return Unwrap(c.unverifiedAccount)
	case *unverifiedAccount:
		if c.proven {
			return c.channel.Vendor
		}
	}
	return v
}

// check accepts an answer about the very job that was asked for, which verifies the
// account. That the account does not show the job proves nothing. A vendor that could
// not answer is asked again later.
func (c *unverifiedAccount) check(ctx context.Context, report mediagate.Report, err error) (mediagate.Report, error) {
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

// prove records that the account is the one that made the job. Tasks that were parked
// for that, or for a key that the vendor refused, try again.
func (c *unverifiedAccount) prove(ctx context.Context) error {
	fresh, err := c.Store.ProveAccount(ctx, mediagate.AccountProof{
		Made: c.row.Fingerprint, Found: c.channel.Fingerprint, Channel: c.channel.Name, TaskID: c.row.TaskID, N: c.row.N,
	})
	if err != nil || !fresh {
		return err
	}
	c.Logger.InfoContext(ctx, "a job of the channel's former credentials was found: it is the same account",
		"channel", c.channel.Name, "task", c.row.TaskID, "attempt", c.row.N)
	c.retryParked(ctx, mediagate.Parked{
		Reasons: []mediagate.ParkReason{mediagate.ParkChannelMissing, mediagate.ParkCredentials}, Channel: c.row.Channel,
	}, claimBatch)
	return nil
}
