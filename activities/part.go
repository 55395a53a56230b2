package activities

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/channel"
	"github.com/mediagate/mediagate/task"
)

// A vendor that makes one file a call is called as often as files are wanted.
// All calls are of one attempt; each has an intent of its own, stored before it,
// so that after a crash it is known of each whether it was made. What was not
// sent may be sent by whoever takes over, what was sent is not sent again, and
// the attempt ends with the files of the calls that succeeded.

// partWidth is how many calls of one attempt are under way at once.
const partWidth = 4

// partPause is before a call is repeated, times how often it was made.
const partPause = 2 * time.Second

// sendParts makes those calls of an attempt that nobody has made. The event that it
// returns closes the attempt.
func (a *Activities) sendParts(ctx context.Context, t mediagate.Task, c prepared) ([]task.Event, error) {
	width := partWidth
	if c.channel.Concurrency > 0 {
		width = 1 // the attempt has one slot
	}
	searching, cancel := context.WithTimeout(ctx, searchTimeout)
	defer cancel()
	events, lost, err := a.searchParts(searching, t, c.row)
	if err != nil {
		return nil, err
	}
	if len(events) > 0 {
		if _, err := a.change(ctx, t.ID, events...); err != nil {
			return nil, err
		}
	}
	err = a.sendDue(ctx, t, c, width)
	if errors.Is(err, errCallsLost) {
		return []task.Event{task.SubmitUnknown{Sending: sendingOf(c.row), Detail: err.Error()}}, nil
	}
	if err != nil && !isCancelled(ctx) { // or another worker goes on
		return nil, err
	}
	return []task.Event{task.PartsOver{N: c.row.N, SendersLost: lost, Elsewhere: a.elsewhere(ctx, t, c.row), FirstPollAt: a.Now()}}, nil
}

// errCallsLost says that the database has lost calls that were made.
var errCallsLost = errors.New("the database lost calls of the attempt")

// sendDue makes calls, so many at once, until none is due. It makes no further call once
// the task has ended, is to end, is late, or has another attempt. Returns errCallsLost where
// the row lacks a call that it has made: it would make that again.
func (a *Activities) sendDue(ctx context.Context, t mediagate.Task, c prepared, width int) error {
	made := map[int]int{} // how often, by part
	for round := 0; ; round++ {
		st, err := a.Store.State(ctx, t.ID, c.row.N)
		if err != nil {
			return err
		}
		attempt := st.Attempt(c.row.N)
		if attempt == nil {
			return errCallsLost
		}
		due := attempt.DueParts()
		if slices.ContainsFunc(due, func(p task.Part) bool { return p.Sends < made[p.Part] }) {
			return errCallsLost
		}
		if len(due) == 0 {
			return nil
		}
		if !wait(ctx, time.Duration(round)*partPause) {
			return ctx.Err()
		}
		var group errgroup.Group
		group.SetLimit(width)
		for _, p := range due {
			made[p.Part] = p.Sends + 1
			group.Go(func() error { return a.sendPart(ctx, t, c, p) })
		}
		err = group.Wait()
		if mediagate.Is(err, mediagate.KindConflict) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// wait returns false when ctx ends first.
func wait(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}

// sendPart stores the intent to make one call, makes it, and stores what came
// of it. One that somebody else makes is left to them.
func (a *Activities) sendPart(ctx context.Context, t mediagate.Task, c prepared, p task.Part) error {
	row := c.row
	if ctx.Err() != nil {
		return nil
	}
	now := a.Now()
	p.SendBefore = a.sendBefore(t, row.Route, now)
	_, err := a.change(ctx, t.ID, task.PartIntent{
		N: row.N, Part: p.Part, Sends: p.Sends, SendBefore: p.SendBefore, CallEnds: a.callEnds(t, row.Route, p.SendBefore, now),
	})
	if err != nil && ctx.Err() != nil {
		return nil
	}
	if err != nil {
		return err
	}
	row.SendBefore, row.ExternalID = p.SendBefore, fmt.Sprintf("%s.%d", row.ExternalID, p.Part)
	got := a.callPart(ctx, t, row, p.Part, c.channel)
	defer got.tell(ctx, c.entry)
	p.Submission, p.State = got.submission, mediagate.PartUnknown
	switch {
	case got.submission != nil && got.submission.Outcome != nil && got.submission.Outcome.Succeeded:
		p.State = mediagate.PartDone
	case got.submission != nil:
		p.State = mediagate.PartRefused
	case got.refusal != nil:
		p.State, p.Failure = mediagate.PartRefused, got.refusal
	}
	if got.err != nil {
		p.Error = got.detail()
	}
	_, err = a.persist(ctx, t.ID, task.PartEnded{N: row.N, Part: p})
	return err
}

// callPart is call for one of several, which run in goroutines of their own: a
// panic of the adapter is that call's, and must not end the process.
func (a *Activities) callPart(ctx context.Context, t mediagate.Task, row mediagate.Attempt, part int, channel channel.Channel) (got answer) {
	defer func() {
		if p := recover(); p != nil {
			a.Logger.ErrorContext(ctx, "a call panicked", "task", t.ID, "attempt", row.N, "part", part, "error", mediagate.Panicked(p))
			got = answer{err: mediagate.Errorf(mediagate.KindInternal, "the call panicked")}
		}
	}()
	return a.call(ctx, t, row, part, channel)
}

// searchParts is searchBucket for an attempt of several calls. The calls whose fate stays
// open are lost.
func (a *Activities) searchParts(ctx context.Context, t mediagate.Task, row mediagate.Attempt) (events []task.Event, lost []int, err error) {
	st, err := a.Store.State(ctx, t.ID, row.N)
	if err != nil {
		return nil, nil, err
	}
	attempt := st.Attempt(row.N)
	if attempt == nil {
		return nil, nil, nil
	}
	for _, p := range attempt.Parts {
		if p.State != mediagate.PartIntent && p.State != mediagate.PartUnknown {
			continue
		}
		s, err := a.readManifest(ctx, t.ID, row, p.Part)
		switch {
		case err != nil:
			return nil, nil, err
		case s != nil:
			p.State, p.Submission, p.Error = mediagate.PartDone, s, ""
		default:
			lost = append(lost, p.Part)
			if p.State == mediagate.PartUnknown {
				continue
			}
			p.State, p.Error = mediagate.PartUnknown, mediagate.SenderLost
		}
		events = append(events, task.PartEnded{N: row.N, Part: p})
	}
	return events, lost, nil
}
