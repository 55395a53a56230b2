package channel

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/providers"
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

// Orphaned returns a poller for a name of which no worker has had a channel for the
// grace time. It can give up the tasks that wait under the name, and nothing else.
func (a *Accounts) Orphaned(name string) *Poller {
	return &Poller{Accounts: a, name: name, log: a.Logger.With("channel", name)}
}

// GiveUp parks the tasks that wait for a job of the channel, and has those that are
// queued for a slot of it look for another channel (D11). It returns how many of both
// are left. Returns KindConflict when another run polls under the name.
func (p *Poller) GiveUp(ctx context.Context) (left int, err error) {
	queued, err := p.leaveQueue(ctx)
	if err != nil {
		return 0, err
	}
	waiting, err := p.giveUp(ctx)
	return queued + waiting, err
}

// leaveQueue has queued tasks look for another channel now.
func (p *Poller) leaveQueue(ctx context.Context) (queued int, err error) {
	rows, err := p.Store.QueuedTasks(ctx, p.name, claimBatch)
	if err != nil {
		return 0, err
	}
	var ids []string
	for _, row := range rows {
		changed, err := p.changeTask(ctx, row.TaskID, task.ChannelGone{Channel: p.name})
		switch {
		case err != nil && !mediagate.Is(err, mediagate.KindNotFound):
			return 0, err
		case changed.Effects.Wake:
			ids = append(ids, row.TaskID)
		}
	}
	p.Workflows.Wake(ctx, p.name, ids)
	return len(rows), nil
}

func (p *Poller) giveUp(ctx context.Context) (waiting int, err error) {
	if waiting, _, err = p.stats(ctx, p.name); err != nil || waiting == 0 {
		return waiting, err
	}
	if p.epoch == 0 {
		if p.epoch, err = p.Store.BeginEpoch(ctx, p.name); err != nil {
			return waiting, err
		}
	}
	rows, err := p.claimDue(ctx, claimBatch)
	if err != nil || len(rows) == 0 {
		return waiting, err
	}
	results := make([]mediagate.PollResult, len(rows))
	for i, row := range rows {
		results[i] = mediagate.PollResult{TaskID: row.TaskID, N: row.N, NextPollAt: p.Now().Add(time.Minute), Trouble: mediagate.ParkChannelMissing}
	}
	p.Workflows.StepsChanged(ctx, p.name, p.change(ctx, rows[0].Claim, results))
	return waiting, nil
}
