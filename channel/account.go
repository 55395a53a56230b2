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
	Attempt(ctx context.Context, taskID string, n int) (task.Attempt, error)
	// RetryParked has parked tasks try again now, up to limit, those first that would have
	// tried again first: BreakerClosed for many. It sets their wakes. Tasks whose next try
	// is due, and those that are parked for an unknown submission, are left out. It
	// returns how many it found.
	RetryParked(ctx context.Context, p mediagate.Parked, limit int) (retried int, err error)
	PollStore
	GrantStore
}

// PollStore keeps what channels poll for.
type PollStore interface {
	BeginEpoch(ctx context.Context, channel string) (int64, error)
	ClaimDue(
		ctx context.Context, channel string, epoch int64, claim string, lease time.Duration, limit int,
	) ([]mediagate.Await, error)
	AwaitStats(ctx context.Context, channel string) (waiting int, nextDue time.Time, err error)
	// StorePolls stores quiet answers, for rows that the claim still holds, and gives the
	// rows back. It returns the results that it leaves to Change: those with Outcome,
	// Trouble or Waiting, and the Answered ones whose tasks are parked or past their deadline.
	StorePolls(
		ctx context.Context, channel, claim string, results []mediagate.PollResult,
	) (left []mediagate.PollResult, err error)
}

// GrantStore grants slots to those who are queued for one.
type GrantStore interface {
	QueuedTasks(ctx context.Context, channel string, limit int) ([]mediagate.Queued, error)
	GrantSlots(ctx context.Context, g mediagate.Granting) (mediagate.Granted, error)
}

// Workflows signals the runs of tasks. That is the fast path: each change of a task
// sets the time of its wake as well (D2).
type Workflows interface {
	// StepsChanged signals the runs of tasks whose next step a poll has changed. Where a
	// change has room for a copy, it copies the task's files first, beside all others.
	StepsChanged(ctx context.Context, channel string, woken []StepChange)
	// RoomToCopy takes room for one copy of a provider's result, until release is called.
	// It returns nil where there is none now.
	RoomToCopy(provider string) (release func())
	Wake(ctx context.Context, channel string, taskIDs []string)
}

// StepChange is a change of a task by a poll of attempt N that gave it another next step.
// Release gives back the room for the copy of its files; nil: the run copies them.
type StepChange struct {
	N       int
	Changed task.Changed
	Release func()
}

// Which channel serves an attempt (D11). An attempt has the name of the channel that made
// it, and the fingerprint of its vendor account. A channel serves the attempts of its own
// name and of the names in its `former`. If the fingerprints differ, the channel may have
// another account, or the same one with a new key. The vendor is then asked for the job.
// An answer that names the job counts; "not found" proves nothing, and the task parks. A
// job that the account has shown gets its modal parameters there, is copied and stopped.
// Nothing else is done there: no job is made.
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

// holds reports that the channel has the account.
func (c Channel) holds(fingerprint string) bool {
	return c.Fingerprint == fingerprint || slices.Contains(c.Aka, fingerprint)
}

func noChannel() error {
	return &mediagate.Error{
		Kind: mediagate.KindUnreached, Code: string(mediagate.ParkChannelMissing),
		Message: "this worker lacks the channel of the attempt, or it is of another account now",
	}
}

// Of is the channel that has the vendor account of an attempt. Returns
// KindUnreached with code channel_missing where there is none.
func (a *Accounts) Of(row task.Attempt) (Channel, error) {
	c, err := a.Asker(row)
	if err == nil && !c.sure {
		err = noChannel()
	}
	return c.Channel, err
}

// Asker is the channel that can be asked for an attempt's job. Returns KindUnreached
// with code channel_missing where there is none.
func (a *Accounts) Asker(row task.Attempt) (Asker, error) {
	c, ok := a.successor(row.Channel)
	if !ok || c.Vendor == nil || c.Provider != row.Provider {
		return Asker{}, noChannel()
	}
	return Asker{Channel: c, sure: c.holds(row.Fingerprint)}, nil
}

// Shown is Of, or a channel that may have another account, once that account has shown
// the attempt's job.
func (a *Accounts) Shown(ctx context.Context, row task.Attempt) (Channel, error) {
	c, err := a.Asker(row)
	if err != nil || c.sure {
		return c.Channel, err
	}
	if row.Ref.JobID == "" {
		return Channel{}, noChannel()
	}
	ctx, cancel := context.WithTimeout(ctx, pollTimeout)
	defer cancel()
	if _, err := c.Poll(ctx, row.Ref); err != nil {
		return Channel{}, noChannel()
	}
	return c.Channel, nil
}

// Asker asks the vendor of a channel for the job of one attempt. If the channel may have
// another account, an answer that does not name the job is KindUnreached with code
// channel_missing, and so is "not found"; refused credentials have that code.
type Asker struct {
	Channel
	sure bool // the channel has the attempt's account
}

// Poll asks by the vendor's id.
func (c Asker) Poll(ctx context.Context, ref mediagate.JobRef) (mediagate.Report, error) {
	report, err := c.Vendor.Poll(ctx, ref)
	return c.check(report, err)
}

// Find asks by our own id, where the vendor can be asked so.
func (c Asker) Find(ctx context.Context, finder providers.Finder, ref mediagate.JobRef) (mediagate.Report, error) {
	report, err := finder.Find(ctx, ref)
	return c.check(report, err)
}

func (c Asker) check(report mediagate.Report, err error) (mediagate.Report, error) {
	switch kind := mediagate.KindOf(err); {
	case c.sure, err == nil && report.Named:
		return report, err
	case err == nil, kind == mediagate.KindNotFound:
		err = noChannel()
	case kind == mediagate.KindCredentials, kind == mediagate.KindFunds, kind == mediagate.KindForbidden:
		err = &mediagate.Error{
			Kind: kind, Code: string(mediagate.ParkChannelMissing), Err: err,
			Message: "the channel's present account cannot be asked",
		}
	}
	return mediagate.Report{}, err
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

// formerIdle is how long nothing waits under a former name before its poller ends.
const formerIdle = 30 * time.Second

// pollsFor returns the channel that polls for the rows of a name: the one of that name,
// or the one that had it before, while tasks wait under the name for a job or a slot.
func (a *Accounts) pollsFor(ctx context.Context, name string) (c Channel, ok bool, err error) {
	if c, ok = a.successor(name); !ok || c.Name == name {
		return c, ok, nil
	}
	queued, err := a.Store.QueuedTasks(ctx, name, 1)
	if err != nil || len(queued) > 0 {
		return c, true, err
	}
	waiting, _, err := a.Store.AwaitStats(ctx, name)
	if err != nil || waiting > 0 {
		return c, true, err
	}
	seen, err := a.Breakers.LastSeen(ctx, name) // another worker may add rows
	return c, a.Now().Sub(seen) < a.Grace, err
}

// formerDone reports that nothing has waited under a former name for a while.
func (p *Poller) formerDone() bool {
	if p.waiting > 0 || p.idleSince.IsZero() || p.queued.Load() > 0 {
		p.idleSince = p.Now()
	}
	return p.name != p.channel.Name && p.Now().Sub(p.idleSince) >= formerIdle
}

// askerFor is Asker for an await row.
func (p *Poller) askerFor(ctx context.Context, row mediagate.Await) (Asker, error) {
	if p.channel.holds(row.Fingerprint) {
		return Asker{Channel: p.channel, sure: true}, nil
	}
	attempt, err := p.Store.Attempt(ctx, row.TaskID, row.N)
	if err != nil {
		return Asker{}, err
	}
	return p.Asker(attempt)
}

// unservable is the result for a row that the channel may not ask for.
func (p *Poller) unservable(ctx context.Context, row mediagate.Await, err error) mediagate.PollResult {
	result := p.again(row, p.Now())
	switch {
	case errors.Is(ctx.Err(), context.Canceled): // the worker stops
		result.NextPollAt = p.Now()
	case mediagate.TroubleOf(err) == "": // the database is away
	default:
		result.Trouble = mediagate.ParkChannelMissing
	}
	return result
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
		results[i] = mediagate.PollResult{
			TaskID: row.TaskID, N: row.N, NextPollAt: p.Now().Add(time.Minute), Trouble: mediagate.ParkChannelMissing,
		}
	}
	p.Workflows.StepsChanged(ctx, p.name, p.change(ctx, rows[0].Claim, results))
	return waiting, nil
}
