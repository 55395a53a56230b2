package activities

import (
	"context"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/channel"
)

// A vendor that makes one file a call is called as often as files are wanted.
// All calls are of one attempt; each has an intent of its own, stored before it,
// so that after a crash it is known of each whether it was made. What was not
// sent may be sent by whoever takes over, what was sent is not sent again, and
// the attempt ends with the files of the calls that succeeded.

const (
	partWidth = 4 // calls of one attempt under way at once
	partTries = 3 // times that a call is made which the vendor refuses for now
)

// partPause is before a call is repeated, times how often it was made.
const partPause = 2 * time.Second

// sendParts makes those calls of an attempt that nobody has made, and ends it.
func (a *Activities) sendParts(ctx context.Context, task mediagate.Task, c claimed) error {
	row := c.row
	before, err := a.Store.Parts(ctx, task.ID, row.N)
	if err != nil {
		return err
	}
	width := partWidth
	if c.channel.Concurrency > 0 {
		width = 1 // the attempt has one slot
	}
	looking, cancel := context.WithTimeout(ctx, look)
	defer cancel()
	lost, err := a.takeOver(ctx, looking, task, row, before)
	if err != nil {
		return err
	}
	for round := 0; ; round++ {
		parts, err := a.Store.Parts(ctx, task.ID, row.N)
		if err != nil {
			return err
		}
		due := duePart(row.Route.Parts, parts)
		if len(due) == 0 {
			break
		}
		if !wait(ctx, time.Duration(round)*partPause) {
			return nil // cancelled, or another worker goes on
		}
		var group errgroup.Group
		group.SetLimit(width)
		for _, p := range due {
			group.Go(func() error { return a.sendPart(ctx, task, c, p) })
		}
		err = group.Wait()
		if mediagate.Is(err, mediagate.KindConflict) {
			break // ended, cancelled, late or overtaken: nothing more is sent
		}
		if err != nil {
			return err
		}
	}
	return a.persist(ctx, func(ctx context.Context) error {
		ended, underWay, err := a.endParts(ctx, task, row, c.channel, lost, false)
		if err != nil || ended {
			return err
		}
		detail := "calls were lost"
		if underWay {
			detail = mediagate.SenderLost
		}
		return a.Store.MarkUnknown(ctx, task.ID, row.N, row.SendBefore, detail)
	})
}

// wait tells false when ctx ends first.
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

// duePart lists the calls to be made now, by number and by how often each was
// made: those that never were, and those that the vendor refuses for now. When
// it refuses all for now the attempt is refused as a whole, and the workflow
// paces what follows.
func duePart(n int, parts []mediagate.Part) []mediagate.Part {
	var due []mediagate.Part
	waiting := 0
	for i := range n {
		at := slices.IndexFunc(parts, func(p mediagate.Part) bool { return p.Part == i })
		switch {
		case at < 0:
			due = append(due, mediagate.Part{Part: i})
		case forNow(parts[at]):
			waiting++
			if parts[at].Sends < partTries {
				due = append(due, mediagate.Part{Part: i, Sends: parts[at].Sends})
			}
		}
	}
	if waiting == n {
		return nil
	}
	return due
}

// forNow reports that the same call may succeed later.
func forNow(p mediagate.Part) bool {
	return p.State == mediagate.PartRefused && p.Submission == nil && p.Failure != nil && p.Failure.Retryable
}

// sendPart stores the intent to make one call, makes it, and stores what came
// of it. One that somebody else makes is left to them.
func (a *Activities) sendPart(ctx context.Context, task mediagate.Task, c claimed, p mediagate.Part) error {
	row := c.row
	if ctx.Err() != nil {
		return nil
	}
	p.TaskID, p.N, p.SendBefore = task.ID, row.N, a.sendBefore(task, row.Route, a.Now())
	opened, err := a.Store.OpenPart(ctx, p)
	if err != nil && ctx.Err() != nil {
		return nil
	}
	if err != nil || !opened {
		return err
	}
	row.SendBefore, row.ExternalID = p.SendBefore, fmt.Sprintf("%s.%d", row.ExternalID, p.Part)
	got := a.callPart(ctx, task, row, p.Part, c.channel)
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
	return a.persist(ctx, func(ctx context.Context) error { return a.Store.EndPart(ctx, p) })
}

// callPart is call for one of several, which run in goroutines of their own: a
// panic of the adapter is that call's, and must not end the process.
func (a *Activities) callPart(ctx context.Context, task mediagate.Task, row mediagate.Attempt, part int, channel channel.Channel) (got answer) {
	defer func() {
		if p := recover(); p != nil {
			a.Logger.ErrorContext(ctx, "a call panicked", "task", task.ID, "attempt", row.N, "part", part, "error", mediagate.Panicked(p))
			got = answer{err: mediagate.Errorf(mediagate.KindInternal, "the call panicked")}
		}
	}()
	return a.call(ctx, task, row, part, channel)
}

// takeOver settles the calls of senders before: their files count where they
// are whole, as far as looking goes. It returns those whose fate stays open.
func (a *Activities) takeOver(ctx, looking context.Context, task mediagate.Task, row mediagate.Attempt, parts []mediagate.Part) (lost []int, err error) {
	for _, p := range parts {
		if p.State != mediagate.PartIntent && p.State != mediagate.PartUnknown {
			continue
		}
		if s := a.handedOver(looking, task.ID, row, p.Part); s != nil {
			p.State, p.Submission, p.Error = mediagate.PartDone, s, ""
		} else {
			lost = append(lost, p.Part)
			if p.State == mediagate.PartUnknown {
				continue
			}
			p.State, p.Error = mediagate.PartUnknown, mediagate.SenderLost
		}
		if err := a.Store.EndPart(ctx, p); err != nil {
			return nil, err
		}
	}
	return lost, nil
}

// endParts ends an attempt by what is known of its calls, and tells whether
// that is enough. A lost call may still report, unless it is over: one of
// another process may be under way.
func (a *Activities) endParts(ctx context.Context, task mediagate.Task, row mediagate.Attempt, channel channel.Channel, lost []int, over bool) (ended, underWay bool, err error) {
	parts, err := a.Store.Parts(ctx, task.ID, row.N)
	if err != nil {
		return false, false, err
	}
	var done, refused, open []mediagate.Part
	for _, p := range parts {
		switch p.State {
		case mediagate.PartDone:
			done = append(done, p)
		case mediagate.PartRefused:
			refused = append(refused, p)
		default:
			open = append(open, p)
			if !over && (p.State == mediagate.PartIntent || slices.Contains(lost, p.Part)) && a.Now().Before(a.settled(p.SendBefore, row.Route)) {
				return false, true, nil
			}
		}
	}
	switch why := mostTelling(refused); {
	case len(done) > 0:
		return true, false, a.accept(ctx, task, row, channel, joined(row, done))
	case len(parts) == 0:
		return true, false, a.Store.RejectAttempt(ctx, task.ID, row.N, row.SendBefore, mediagate.Failure{
			Code: mediagate.CodeProviderAway, Message: "the provider is not available", Retryable: true,
		}, "nothing was sent")
	case why == nil, len(open) > 0 && leadsOn(*why):
		return false, false, nil
	case why.Submission == nil:
		return true, false, a.Store.RejectAttempt(ctx, task.ID, row.N, row.SendBefore, why.Refusal(), why.Error)
	default:
		return true, false, a.accept(ctx, task, row, channel, *why.Submission)
	}
}

// leadsOn reports a refusal that another attempt follows, at once or after a
// parking. Beside a lost call it must not count: that one's job would be made
// twice (D6).
func leadsOn(p mediagate.Part) bool {
	code := p.Refusal().Code
	return forNow(p) || p.Submission == nil && (code == mediagate.CodeProviderRefused || code == mediagate.CodeFunds)
}

// callEnds is when nothing of an attempt's calls can be under way any more. Its
// parts may have begun long after it.
func (a *Activities) callEnds(ctx context.Context, row mediagate.Attempt) (time.Time, error) {
	last := row.SendBefore
	if row.Route.Parts > 1 {
		parts, err := a.Store.Parts(ctx, row.TaskID, row.N)
		if err != nil {
			return time.Time{}, err
		}
		for _, p := range parts {
			if (p.State == mediagate.PartIntent || p.State == mediagate.PartUnknown) && p.SendBefore.After(last) {
				last = p.SendBefore
			}
		}
	}
	return a.settled(last, row.Route), nil
}

// joined is the outcome of the calls that succeeded: their files, by the numbers of
// the calls. The
// vendor's names for the others stay with their rows.
func joined(row mediagate.Attempt, done []mediagate.Part) mediagate.Submission {
	all := mediagate.Outcome{Succeeded: true}
	for _, p := range done {
		one := p.Submission.Outcome
		for _, m := range one.Media {
			m.Index = p.Part
			all.Media = append(all.Media, m)
		}
		all.Seconds += one.Seconds
		all.VendorCharge = all.VendorCharge.Plus(one.VendorCharge)
	}
	ref := done[0].Submission.Ref
	ref.ExternalID = row.ExternalID
	return mediagate.Submission{Ref: ref, Outcome: &all}
}

// telling orders the reasons of refused calls: what the client can mend comes
// first, then what the vendor failed at, then what is between it and us.
var telling = []mediagate.FailureCode{
	mediagate.CodeContentPolicy, mediagate.CodeInvalidParameters, mediagate.CodeImageProcessing, mediagate.CodeGenerationFailed,
	mediagate.CodeResultUnavailable, mediagate.CodeProviderRefused, mediagate.CodeFunds,
}

// mostTelling is the refused call whose reason says most; nil without any.
func mostTelling(refused []mediagate.Part) *mediagate.Part {
	if len(refused) == 0 {
		return nil
	}
	rank := func(p mediagate.Part) int {
		if at := slices.Index(telling, p.Refusal().Code); at >= 0 {
			return at
		}
		return len(telling)
	}
	best := slices.MinFunc(refused, func(x, y mediagate.Part) int {
		if forNow(x) != forNow(y) { // what may pass says least
			if forNow(x) {
				return 1
			}
			return -1
		}
		return rank(x) - rank(y)
	})
	return &best
}
