package activities

import (
	"context"
	"errors"
	"slices"
	"time"

	"golang.org/x/time/rate"

	"github.com/mediagate/mediagate"
)

// Whose job it is (D11). An attempt remembers the fingerprint of the vendor
// account that made it, and the name of the channel. The fingerprint decides,
// the name helps: a channel that has the account serves the attempt, under
// whatever name. Where no channel has the fingerprint, the channel of the name,
// or the one that took the name over, may have the account all the same, with a
// new key. It may then ask for the job and do nothing else; a vendor that shows
// it that very job has proven it, which goes on record for all attempts of the
// old fingerprint. "Not found" proves nothing there.
//
// Rows are never moved to another name. Each name has one poller at a time,
// fenced by its epoch, and the pollers of a name may be workers of different
// settings: moving rows would have them move each other's back and forth.

// successor is the channel of that name, or the one that had it.
func (a *Activities) successor(name string) (BoundChannel, bool) {
	if c, ok := a.Channels.Channel(name); ok {
		return c, true
	}
	for _, c := range a.Channels.All() {
		if slices.Contains(c.Former, name) {
			return c, true
		}
	}
	return BoundChannel{}, false
}

// holds reports that one of the fingerprints is the channel's own.
func (c BoundChannel) holds(fingerprints ...string) bool {
	return c.Vendor != nil && (slices.Contains(fingerprints, c.Fingerprint) ||
		slices.ContainsFunc(c.Aka, func(f string) bool { return slices.Contains(fingerprints, f) }))
}

// standing finds the channel for attempts that were made under the name by the
// account. sure says that it has that account. Otherwise it only has the name,
// or is none.
func (a *Activities) standing(ctx context.Context, name, fingerprint string) (c BoundChannel, sure bool, err error) {
	heir, _ := a.successor(name)
	if c, ok := a.holder(heir, fingerprint); ok {
		return c, true, nil
	}
	if known, ok := a.accounts.Load(fingerprint); ok {
		if c, ok := a.holder(heir, known.([]string)...); ok {
			return c, true, nil
		}
	}
	same, err := a.Store.SameAccount(ctx, fingerprint)
	if err != nil {
		return BoundChannel{}, false, err
	}
	a.accounts.Store(fingerprint, same)
	if c, ok := a.holder(heir, same...); ok {
		return c, true, nil
	}
	return heir, false, nil
}

// holder is the channel that has the account: the heir of the name if it does,
// else the only one. Of several nobody said which is meant, and their addresses
// may differ.
func (a *Activities) holder(heir BoundChannel, fingerprints ...string) (BoundChannel, bool) {
	if heir.holds(fingerprints...) {
		return heir, true
	}
	var found []BoundChannel
	for _, c := range a.Channels.All() {
		if c.holds(fingerprints...) {
			found = append(found, c)
		}
	}
	if len(found) != 1 {
		return BoundChannel{}, false
	}
	return found[0], true
}

// channelOf is the channel that has the vendor account of an attempt. Returns
// KindUnreached with code channel_missing where no channel is known to.
func (a *Activities) channelOf(ctx context.Context, row mediagate.Attempt) (BoundChannel, error) {
	c, sure, err := a.standing(ctx, row.Channel, row.Fingerprint)
	if err == nil && !sure {
		err = noChannel()
	}
	if err != nil {
		return BoundChannel{}, err
	}
	return c, nil
}

func noChannel() error {
	return &mediagate.Error{
		Kind: mediagate.KindUnreached, Code: string(mediagate.ParkChannelMissing),
		Message: "this worker lacks the channel of the attempt, or it is of another account now",
	}
}

// asker is channelOf for lookups: a channel that has only the name gets a
// vendor that can be asked and nothing else, and proves itself by what it finds.
func (a *Activities) asker(ctx context.Context, row mediagate.Attempt) (BoundChannel, error) {
	c, sure, err := a.standing(ctx, row.Channel, row.Fingerprint)
	switch {
	case err != nil:
		return BoundChannel{}, err
	case sure:
		return c, nil
	default:
		return a.claiming(c, row)
	}
}

// claiming restricts a channel that has only the attempt's name.
func (a *Activities) claiming(c BoundChannel, row mediagate.Attempt) (BoundChannel, error) {
	if c.Vendor == nil || c.Provider != row.Provider {
		return BoundChannel{}, noChannel()
	}
	claims := &claimant{Activities: a, row: row, channel: c}
	if finder, ok := c.Vendor.(Finder); ok {
		c.Vendor = &findingClaimant{claims, finder}
	} else {
		c.Vendor = claims
	}
	return c, nil
}

// provenChannel is channelOf after a lookup, where that is what it takes.
func (a *Activities) provenChannel(ctx context.Context, row mediagate.Attempt) (BoundChannel, error) {
	c, err := a.channelOf(ctx, row)
	if err == nil || TroubleOf(asError(err)) == "" || row.Ref.JobID == "" {
		return c, err
	}
	asked, err := a.asker(ctx, row)
	if err != nil {
		return BoundChannel{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, pollTimeout)
	defer cancel()
	if _, err := asked.Vendor.Poll(ctx, row.Ref); err != nil {
		return BoundChannel{}, noChannel()
	}
	return a.channelOf(ctx, row)
}

// claimant is a vendor account that may or may not have made the attempt's job.
type claimant struct {
	*Activities
	row     mediagate.Attempt
	channel BoundChannel
	proven  bool
}

// Submit sends nothing: the account that made the attempt may have the job.
func (c *claimant) Submit(context.Context, mediagate.Job) (mediagate.Submission, error) {
	return mediagate.Submission{}, noChannel()
}

// Poll asks for the job by the vendor's id.
func (c *claimant) Poll(ctx context.Context, ref mediagate.JobRef) (mediagate.Report, error) {
	report, err := c.channel.Vendor.Poll(ctx, ref)
	return c.judge(ctx, report, err)
}

// findingClaimant is one whose vendor can be asked by our own id.
type findingClaimant struct {
	*claimant
	finder Finder
}

// Ref is the vendor's own.
func (c *findingClaimant) Ref(job mediagate.Job) (mediagate.JobRef, error) { return c.finder.Ref(job) }

// Find asks for the job by our own id.
func (c *findingClaimant) Find(ctx context.Context, ref mediagate.JobRef) (mediagate.Report, error) {
	report, err := c.finder.Find(ctx, ref)
	return c.judge(ctx, report, err)
}

// unclaimed is the vendor behind a claimant that has proven itself.
func unclaimed(v Vendor) Vendor {
	switch c := v.(type) {
	case *findingClaimant:
		return unclaimed(c.claimant)
	case *claimant:
		if c.proven {
			return c.channel.Vendor
		}
	}
	return v
}

// judge believes an answer about the very job that was asked for. That this
// account does not show us the job says nothing of the one that made it. Only a
// vendor that could not answer is left as it is: the next time may tell.
func (c *claimant) judge(ctx context.Context, report mediagate.Report, err error) (mediagate.Report, error) {
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
func (c *claimant) prove(ctx context.Context) error {
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
func (a *Activities) wakeTasks(ctx context.Context, channel string, reason mediagate.ParkReason) {
	ids, err := a.Store.ParkedTasks(ctx, channel, reason, claimBatch)
	if err != nil {
		a.Logger.WarnContext(ctx, "parked tasks not woken", "channel", channel, "error", err)
		return
	}
	_ = each(ctx, ids, signalWidth, func(id string) error {
		err := a.Engine.SignalWake(ctx, id)
		if err != nil {
			a.Logger.WarnContext(ctx, "parked task not woken", "channel", channel, "task", id, "error", err)
		}
		return err
	})
}

// canCancel reports that the provider's adapter can stop jobs.
func (a *Activities) canCancel(provider string) bool {
	return slices.ContainsFunc(a.Channels.All(), func(c BoundChannel) bool {
		_, ok := c.Vendor.(Canceller)
		return ok && c.Provider == provider
	})
}

// limiter is the polling budget of a channel, which those have in common that
// poll with it under its present and its former names.
func (a *Activities) limiter(c BoundChannel) *rate.Limiter {
	made := rate.NewLimiter(pollRate(c), max(1, int(c.RequestsPerSecond)))
	shared, _ := a.limiters.LoadOrStore(c.Name, made)
	return shared.(*rate.Limiter)
}

// standInIdle is how long a stand-in has nothing to ask before it hands the
// name back.
const standInIdle = 30 * time.Second

// standIn finds a channel to poll with under a name that this worker has no
// channel of: the one that took the name over, as long as rows wait there or
// another worker may still add some, or one that has the account of such rows.
func (a *Activities) standIn(ctx context.Context, name string) (BoundChannel, bool, error) {
	accounts, err := a.Store.AwaitAccounts(ctx, name)
	if err != nil {
		return BoundChannel{}, false, err
	}
	for _, fingerprint := range accounts {
		c, _, err := a.standing(ctx, name, fingerprint)
		if err != nil || c.Vendor != nil {
			return c, err == nil, err
		}
	}
	heir, ok := a.successor(name)
	if !ok {
		return BoundChannel{}, false, nil
	}
	seen, err := a.Store.ChannelLastSeen(ctx, name)
	if err != nil && !mediagate.Is(err, mediagate.KindNotFound) {
		return BoundChannel{}, false, err
	}
	return heir, a.Now().Sub(seen) < a.Settings.ChannelGrace, nil
}

// relieved reports that a stand-in has asked for nothing for a while. What is
// left may be for another worker, whose channel has the name.
func (t *tender) relieved() bool {
	if polls := t.polls.Load(); polls != t.polled || t.idleSince.IsZero() {
		t.polled, t.idleSince = polls, t.Now()
	}
	return t.name != t.channel.Name && t.Now().Sub(t.idleSince) >= standInIdle
}

// askerFor is asker for an await row.
func (t *tender) askerFor(ctx context.Context, row mediagate.Await) (BoundChannel, error) {
	c, sure, err := t.standing(ctx, row.Channel, row.Fingerprint)
	if err != nil || sure {
		return c, err
	}
	attempt, err := t.Store.Attempt(ctx, row.TaskID, row.N)
	if err != nil {
		return BoundChannel{}, err
	}
	return t.claiming(c, attempt)
}

// nobody is the result for a row that no channel here may ask for. Where the
// name is a channel's, or was, that is trouble at once. Who stands in for the
// sake of other rows leaves it to a worker that has the channel, and to the end
// of the grace time.
func (t *tender) nobody(ctx context.Context, row mediagate.Await, err error) mediagate.PollResult {
	result := t.again(row)
	_, named := t.successor(t.name)
	switch {
	case errors.Is(ctx.Err(), context.Canceled): // the worker stops
		result.NextPollAt = t.Now()
	case TroubleOf(asError(err)) == "": // the database is away
	case named:
		result.Trouble = mediagate.ParkChannelMissing
	default:
		result.NextPollAt = t.Now().Add(time.Minute)
	}
	return result
}
