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

// Accounts finds the account that serves a job, among the vendor accounts that this process can
// ask. It also makes their pollers. The fields are set before the first use.
type Accounts struct {
	Channels  Channels
	Store     Store
	Breakers  *Breakers
	Workflows Workflows
	Grace     time.Duration // a channel that no worker has had for this time is gone (D11)
	Now       func() time.Time
	Logger    *slog.Logger
	NewID     func(prefix string) string
	Meter     Meter // may be nil

	paces sync.Map // channel → *pace; the pollers of its present and former names share it
}

// Meter counts what pollers see.
type Meter interface {
	// Polled notes a call that polls. late is the time from when its first row was due until the
	// call.
	Polled(channel string, late time.Duration)
	// JobEnded notes the end of a job. took is the time from the job's acceptance until the poll
	// that saw the end.
	JobEnded(channel string, succeeded bool, took time.Duration)
	// UnknownWord notes an answer whose status word the adapter does not know.
	UnknownWord(channel string)
}

// unmetered counts nothing.
type unmetered struct{}

func (unmetered) Polled(string, time.Duration)         {}
func (unmetered) JobEnded(string, bool, time.Duration) {}
func (unmetered) UnknownWord(string)                   {}

// meter returns the meter, or one that counts nothing.
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
	// RetryParked makes up to limit parked tasks try again now, those with the earliest next try
	// first, and returns how many. It does to each what the event BreakerClosed does to one task, and
	// sets its wake. It leaves out tasks whose next try is due already, and tasks that are parked
	// because it is unknown whether the vendor has their job.
	RetryParked(ctx context.Context, p mediagate.Parked, limit int) (retried int, err error)
	PollStore
	GrantStore
}

// PollStore keeps the rows that channels poll for.
type PollStore interface {
	// BeginEpoch makes the caller the poller of the channel. It returns a number higher than those
	// of all earlier pollers. From now on the earlier pollers can claim nothing.
	BeginEpoch(ctx context.Context, channel string) (int64, error)
	// ClaimDue claims up to limit due rows until the lease ends. It returns KindConflict if a
	// newer epoch has begun.
	ClaimDue(
		ctx context.Context, channel string, epoch int64, claim string, lease time.Duration, limit int,
	) ([]mediagate.Await, error)
	// AwaitStats counts the rows that wait, and returns when the next one is due.
	AwaitStats(ctx context.Context, channel string) (waiting int, nextDue time.Time, err error)
	// StorePolls stores quiet answers for the rows that the claim still holds, and ends the claim
	// of these rows. It returns the results that the caller has to apply by Change: those with
	// Outcome, Trouble or Waiting, and the Answered ones of tasks that are parked or past their
	// deadline.
	StorePolls(
		ctx context.Context, channel, claim string, results []mediagate.PollResult,
	) (left []mediagate.PollResult, err error)
}

// GrantStore grants slots to queued tasks.
type GrantStore interface {
	// QueuedTasks lists up to limit tasks that are queued under the name, including those that
	// were granted a slot.
	QueuedTasks(ctx context.Context, channel string, limit int) ([]mediagate.Queued, error)
	// GrantSlots takes back grants that were not used in time, and grants free slots to queued
	// tasks.
	GrantSlots(ctx context.Context, g mediagate.Granting) (mediagate.Granted, error)
}

// Workflows signals the runs of tasks. A signal only saves time: each change of a task also sets the
// task's wake, which starts the next step even if the signal is lost (D2).
type Workflows interface {
	// StepsChanged signals the runs of tasks whose next step a poll has changed. If a change has a
	// Release, StepsChanged copies the task's files and calls Release before it signals the run.
	// The signals of other tasks do not wait for that copy.
	StepsChanged(ctx context.Context, channel string, woken []StepChange)
	// RoomToCopy takes room for one copy of a provider's result, until release is called. It
	// returns nil if there is no room now.
	RoomToCopy(provider string) (release func())
	// Wake signals the runs of tasks.
	Wake(ctx context.Context, channel string, taskIDs []string)
}

// StepChange says that a poll for attempt N changed the next step of a task. Release gives back
// the room for the copy of the task's files. If Release is nil, the poller copies nothing, and
// the run copies the files if there are any.
type StepChange struct {
	N       int
	Changed task.Changed
	Release func()
}

// The functions below decide which channel serves an attempt (D11). An attempt names the channel
// that made it, and has the fingerprint of its vendor account. A channel serves the attempts of its
// own name and of the names in its `former`.
//
// If the fingerprints differ, the channel may have another account, or the same account with a new
// key. Then we ask the vendor for the job. An answer that names the job counts. "Not found" proves
// nothing, and the task parks. Once the account has shown the job, we may send the job's modal
// parameters there, copy the job's files from there, and stop the job there. For this attempt we use
// that account for nothing else; in particular we do not send the attempt again there.
//
// Rows are never moved to another name. While settings are rolled out, workers with old and with
// new settings run side by side, and would move rows back and forth. Instead each name, present or
// former, has one poller at a time: once a new poller has begun, older ones can claim nothing.

// successor returns the channel of that name, or else the channel that had the name before.
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

// hasAccount reports whether the channel has the vendor account with that fingerprint.
func (c Channel) hasAccount(fingerprint string) bool {
	return c.Fingerprint == fingerprint || slices.Contains(c.Aka, fingerprint)
}

// noChannel returns the error for an attempt that no channel of this worker serves.
func noChannel() error {
	return &mediagate.Error{
		Kind: mediagate.KindUnreached, Code: string(mediagate.ParkChannelMissing),
		Message: "this worker lacks the channel of the attempt, or it is of another account now",
	}
}

// Owner returns the channel that has the vendor account of an attempt. It returns KindUnreached
// with code channel_missing if there is none.
func (a *Accounts) Owner(row task.Attempt) (Channel, error) {
	c, err := a.Asker(row)
	if err == nil && !c.sure {
		err = noChannel()
	}
	return c.Channel, err
}

// Asker returns the channel that can be asked for an attempt's job. It returns KindUnreached with
// code channel_missing if there is none.
func (a *Accounts) Asker(row task.Attempt) (Asker, error) {
	c, ok := a.successor(row.Channel)
	// The settings may have given the name to a channel of another provider. That channel cannot be
	// asked for the job.
	if !ok || c.Vendor == nil || c.Provider != row.Provider {
		return Asker{}, noChannel()
	}
	return Asker{Channel: c, sure: c.hasAccount(row.Fingerprint)}, nil
}

// ConfirmedOwner returns the channel that has the vendor account of an attempt, as Owner does. If
// the channel may have another account, ConfirmedOwner first asks the channel's account for the
// attempt's job. It returns the channel only if that account shows the job, and otherwise
// KindUnreached with code channel_missing.
func (a *Accounts) ConfirmedOwner(ctx context.Context, row task.Attempt) (Channel, error) {
	c, err := a.Asker(row)
	if err != nil || c.sure {
		return c.Channel, err
	}
	// Without the vendor's id there is nothing to poll for, so the account can prove nothing.
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

// Asker asks a channel's vendor for the job of one attempt. If the channel may have another
// account, only an answer that names the job counts. An answer that names no job, and "not found",
// become KindUnreached with code channel_missing. If the vendor refuses our account, the error keeps
// its kind, and gets that code. All other errors stay as they are.
type Asker struct {
	Channel
	sure bool // the channel has the attempt's account
}

// Poll asks by the vendor's id.
func (c Asker) Poll(ctx context.Context, ref mediagate.JobRef) (mediagate.Report, error) {
	report, err := c.Vendor.Poll(ctx, ref)
	return c.check(report, err)
}

// Find asks by our own id, if the vendor can be asked by it.
func (c Asker) Find(ctx context.Context, finder providers.Finder, ref mediagate.JobRef) (mediagate.Report, error) {
	report, err := finder.Find(ctx, ref)
	return c.check(report, err)
}

// check turns an answer that proves nothing about the job into an error.
func (c Asker) check(report mediagate.Report, err error) (mediagate.Report, error) {
	switch kind := mediagate.KindOf(err); {
	// The channel has the attempt's account, or the answer proves that it has. Return the answer or
	// the error as it is.
	case c.sure, err == nil && report.Named:
		return report, err
	// The account that was asked may not be the attempt's, so its answer proves nothing.
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

// pace returns the pace of a channel's polls. The pollers of its present and former names share it if
// they run in the same process.
func (a *Accounts) pace(c Channel) *pace {
	shared, ok := a.paces.Load(c.Name)
	if !ok {
		shared, _ = a.paces.LoadOrStore(c.Name, newPace(c))
	}
	return shared.(*pace)
}

// formerIdle is how long the poller of a former name goes on when no task waits under that name.
const formerIdle = 30 * time.Second

// channelFor returns the channel that polls for the rows of a name. This is the channel of that
// name. If there is none, it is the channel that had the name before. That channel polls under the
// name only while tasks wait there for a job or a slot, or while a worker may still add such tasks.
func (a *Accounts) channelFor(ctx context.Context, name string) (c Channel, ok bool, err error) {
	if c, ok = a.successor(name); !ok || c.Name == name {
		return c, ok, nil
	}
	// The name is a former one. Poll under it while anything waits there.
	queued, err := a.Store.QueuedTasks(ctx, name, 1)
	if err != nil || len(queued) > 0 {
		return c, true, err
	}
	waiting, _, err := a.Store.AwaitStats(ctx, name)
	if err != nil || waiting > 0 {
		return c, true, err
	}
	seen, err := a.Breakers.LastSeen(ctx, name) // another worker may still add rows
	return c, a.Now().Sub(seen) < a.Grace, err
}

// formerDone reports whether no task has waited under a former name for formerIdle. The poller of a
// present name never ends this way.
func (p *Poller) formerDone() bool {
	if p.waiting > 0 || p.idleSince.IsZero() || p.queued.Load() > 0 {
		p.idleSince = p.Now()
	}
	return p.name != p.channel.Name && p.Now().Sub(p.idleSince) >= formerIdle
}

// askerFor is Asker for an await row.
func (p *Poller) askerFor(ctx context.Context, row mediagate.Await) (Asker, error) {
	if p.channel.hasAccount(row.Fingerprint) {
		return Asker{Channel: p.channel, sure: true}, nil
	}
	// The row's fingerprint is not one of the channel's account. Asker reads from the attempt
	// whether the channel may be asked all the same.
	attempt, err := p.Store.Attempt(ctx, row.TaskID, row.N)
	if err != nil {
		return Asker{}, err
	}
	return p.Asker(attempt)
}

// unservable returns the result for a row that the channel may not ask for, or whose attempt could not
// be read.
func (p *Poller) unservable(ctx context.Context, row mediagate.Await, err error) mediagate.PollResult {
	result := p.pollAgain(row, p.Now())
	switch {
	case errors.Is(ctx.Err(), context.Canceled): // the worker stops
		result.NextPollAt = p.Now()
	case mediagate.TroubleOf(err) == "": // the database is away
	default:
		result.Trouble = mediagate.ParkChannelMissing
	}
	return result
}

// Orphaned returns a poller for a name whose channel no worker has had for the grace time. It can
// release the tasks that wait under the name, and do nothing else.
func (a *Accounts) Orphaned(name string) *Poller {
	return &Poller{Accounts: a, name: name, log: a.Logger.With("channel", name)}
}

// ReleaseTasks releases tasks that wait under the name (D11), up to claimBatch of each kind. It parks
// tasks that wait for a job. It makes tasks that are queued for a slot look for another channel. left
// is 0 if no task waited under the name. Otherwise the caller calls ReleaseTasks again. It returns
// KindConflict if another poller has taken over the name.
func (p *Poller) ReleaseTasks(ctx context.Context) (left int, err error) {
	queued, err := p.releaseQueued(ctx)
	if err != nil {
		return 0, err
	}
	waiting, err := p.parkWaiting(ctx)
	return queued + waiting, err
}

// releaseQueued makes the queued tasks look for another channel now.
func (p *Poller) releaseQueued(ctx context.Context) (queued int, err error) {
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

// parkWaiting parks the tasks that wait for a job.
func (p *Poller) parkWaiting(ctx context.Context) (waiting int, err error) {
	if waiting, _, err = p.stats(ctx); err != nil || waiting == 0 {
		return waiting, err
	}
	// A claim needs an epoch. The new epoch also shuts out the poller of a worker that still has the
	// channel.
	if p.epoch == 0 {
		if p.epoch, err = p.Store.BeginEpoch(ctx, p.name); err != nil {
			return waiting, err
		}
	}
	// The event Troubled, which parks a task, counts only under a claim (D8).
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
	p.Workflows.StepsChanged(ctx, p.name, p.applyResults(ctx, rows[0].Claim, results))
	return waiting, nil
}
