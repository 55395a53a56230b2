package channel

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/task"
)

// Accounts are the vendor accounts that this process can ask, and what is known
// of whose job is whose. Its fields are set before it is used.
type Accounts struct {
	Channels  Channels
	Store     Store
	Breakers  *Breakers
	Workflows Workflows
	Grace     time.Duration // a channel may be gone so long (D11)
	Now       func() time.Time
	Logger    *slog.Logger
	NewID     func(prefix string) string
	Meter     Meter // nil: nobody counts

	known sync.Map // fingerprint → []string: those of the same account, as last read
	paces sync.Map // channel → *pace: of its polls, under whatever name
}

// Meter counts what pollers see.
type Meter interface {
	// Polled is called with each poll, and how long after its time it is made.
	Polled(channel string, late time.Duration)
	// JobEnded is called with the end of a job, and how long after its acceptance that was seen.
	JobEnded(channel string, succeeded bool, took time.Duration)
	// UnknownWord is called with an answer whose status word the adapter does not know.
	UnknownWord(channel string)
}

// unmetered counts nothing.
type unmetered struct{}

func (unmetered) Polled(string, time.Duration)         {}
func (unmetered) JobEnded(string, bool, time.Duration) {}
func (unmetered) UnknownWord(string)                   {}

func (a *Accounts) meter() Meter {
	if a.Meter == nil {
		return unmetered{}
	}
	return a.Meter
}

// Store is the database as the accounts and their pollers see it.
type Store interface {
	// Change applies events to a task, all or none, in one transaction.
	Change(ctx context.Context, taskID string, events ...task.Event) (task.Changed, error)
	Attempt(ctx context.Context, taskID string, n int) (mediagate.Attempt, error)
	// RetryParked has parked tasks try again now, up to limit, those first that would have
	// tried again first: BreakerClosed for many. It sets their wakes. Tasks whose next try
	// is due, and those that are parked for an unknown submission, are left out. It
	// returns how many it found.
	RetryParked(ctx context.Context, p mediagate.Parked, limit int) (retried int, err error)
	AccountStore
	PollStore
	GrantStore
}

// AccountStore knows which fingerprints are of one vendor account (D11).
type AccountStore interface {
	AwaitAccounts(ctx context.Context, channel string) (fingerprints []string, err error)
	SameAccount(ctx context.Context, fingerprint string) (fingerprints []string, err error)
	ProveAccount(ctx context.Context, p mediagate.AccountProof) (fresh bool, err error)
}

// PollStore keeps what channels poll for.
type PollStore interface {
	BeginEpoch(ctx context.Context, channel string) (int64, error)
	ClaimDue(ctx context.Context, channel string, epoch int64, claim string, lease time.Duration, limit int) ([]mediagate.Await, error)
	AwaitStats(ctx context.Context, channel string) (waiting int, nextDue time.Time, err error)
	// StorePolls stores quiet answers, for rows that the claim still holds, and gives the
	// rows back. It returns the results that it leaves to Change: those with Outcome,
	// Trouble or Waiting, and the Answered ones whose tasks are parked.
	StorePolls(ctx context.Context, channel, claim string, results []mediagate.PollResult) (left []mediagate.PollResult, err error)
}

// GrantStore grants slots to those who are queued for one.
type GrantStore interface {
	QueuedTasks(ctx context.Context, channel string, limit int) ([]mediagate.Queued, error)
	GrantSlots(ctx context.Context, g mediagate.Granting) (mediagate.Granted, error)
}

// Workflows signals the runs of tasks. That is the fast path: each change of a task
// sets the time of its wake as well (D2).
type Workflows interface {
	// StepsChanged signals the runs of tasks whose next step a poll has changed.
	StepsChanged(ctx context.Context, channel string, woken []StepChange)
	Wake(ctx context.Context, channel string, taskIDs []string)
}

// StepChange is a change of a task by a poll of attempt N that gave it another next step.
type StepChange struct {
	N       int
	Changed task.Changed
}

// Which channel serves an attempt (D11). An attempt has the fingerprint of the vendor
// account that made it, and the name of the channel. The fingerprint decides: a channel
// that has the account serves the attempt, under any name. Where no channel has the
// fingerprint, the channel of the name, or the one that had the name before, may have
// the account with a new key. Such an unverified account is only asked for the job. A
// vendor that shows it that very job verifies the account, which is recorded for all
// attempts of the old fingerprint. "Not found" proves nothing there.
//
// Rows are never moved to another name. Each name has one poller at a time, fenced by
// its epoch, and the pollers of a name may be workers with different settings: they
// would move each other's rows back and forth.

// successor is the channel of that name, or the one that had it before.
func (a *Accounts) successor(name string) (Channel, bool) {
	if c, ok := a.Channels.Channel(name); ok {
		return c, true
	}
	for _, c := range a.Channels.All() {
		if slices.Contains(c.Former, name) {
			return c, true
		}
	}
	return Channel{}, false
}

// holds reports that one of the fingerprints is the channel's own.
func (c Channel) holds(fingerprints ...string) bool {
	return c.Vendor != nil && (slices.Contains(fingerprints, c.Fingerprint) ||
		slices.ContainsFunc(c.Aka, func(f string) bool { return slices.Contains(fingerprints, f) }))
}

// channelFor finds the channel for attempts that were made under the name by the
// account. sure says that it has that account. Otherwise it only has the name, or is
// the zero Channel.
func (a *Accounts) channelFor(ctx context.Context, name, fingerprint string) (c Channel, sure bool, err error) {
	named, _ := a.successor(name)
	if c, ok := a.holder(named, fingerprint); ok {
		return c, true, nil
	}
	if known, ok := a.known.Load(fingerprint); ok {
		if c, ok := a.holder(named, known.([]string)...); ok {
			return c, true, nil
		}
	}
	same, err := a.Store.SameAccount(ctx, fingerprint)
	if err != nil {
		return Channel{}, false, err
	}
	a.known.Store(fingerprint, same)
	if c, ok := a.holder(named, same...); ok {
		return c, true, nil
	}
	return named, false, nil
}

// holder is the channel that has the account: the named one if it does, else the only
// one. Of several none is chosen, since their addresses may differ.
func (a *Accounts) holder(named Channel, fingerprints ...string) (Channel, bool) {
	if named.holds(fingerprints...) {
		return named, true
	}
	var found []Channel
	for _, c := range a.Channels.All() {
		if c.holds(fingerprints...) {
			found = append(found, c)
		}
	}
	if len(found) != 1 {
		return Channel{}, false
	}
	return found[0], true
}

// Of is the channel that has the vendor account of an attempt. Returns
// KindUnreached with code channel_missing where no channel is known to.
func (a *Accounts) Of(ctx context.Context, row mediagate.Attempt) (Channel, error) {
	c, sure, err := a.channelFor(ctx, row.Channel, row.Fingerprint)
	if err == nil && !sure {
		err = noChannel()
	}
	if err != nil {
		return Channel{}, err
	}
	return c, nil
}

func noChannel() error {
	return &mediagate.Error{
		Kind: mediagate.KindUnreached, Code: string(mediagate.ParkChannelMissing),
		Message: "this worker lacks the channel of the attempt, or it is of another account now",
	}
}

// Asker is Of for lookups: a channel that has only the name gets a vendor that can be
// asked and nothing else. It is verified by what it finds.
func (a *Accounts) Asker(ctx context.Context, row mediagate.Attempt) (Channel, error) {
	c, sure, err := a.channelFor(ctx, row.Channel, row.Fingerprint)
	switch {
	case err != nil:
		return Channel{}, err
	case sure:
		return c, nil
	default:
		return a.unverified(c, row)
	}
}

// Proven is Of, after a lookup where the account is not verified yet.
func (a *Accounts) Proven(ctx context.Context, row mediagate.Attempt) (Channel, error) {
	c, err := a.Of(ctx, row)
	if err == nil || mediagate.TroubleOf(err) == "" || row.Ref.JobID == "" {
		return c, err
	}
	asked, err := a.Asker(ctx, row)
	if err != nil {
		return Channel{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, pollTimeout)
	defer cancel()
	if _, err := asked.Vendor.Poll(ctx, row.Ref); err != nil {
		return Channel{}, noChannel()
	}
	return a.Of(ctx, row)
}

// pace returns the pace of a channel's polls. The pollers of its present and former
// names share it.
func (a *Accounts) pace(c Channel) *pace {
	shared, ok := a.paces.Load(c.Name)
	if !ok {
		shared, _ = a.paces.LoadOrStore(c.Name, newPace(c))
	}
	return shared.(*pace)
}
