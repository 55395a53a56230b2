package channel

import (
	"context"
	"errors"
	"runtime/debug"
	"time"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/failpoint"
)

// pollRow asks for one row. A panic of an adapter costs that row one poll.
func (p *Poller) pollRow(ctx context.Context, row mediagate.Await) (result mediagate.PollResult) {
	defer func() {
		if cause := recover(); cause != nil {
			p.log.ErrorContext(ctx, "poll panicked", "task", row.TaskID, "panic", cause, "stack", string(debug.Stack()))
			result = p.again(row)
		}
	}()
	ctx, cancel := context.WithTimeout(ctx, pollTimeout)
	defer cancel()
	channel, err := p.askerFor(ctx, row)
	if err != nil {
		return p.nobody(ctx, row, err)
	}
	p.polls.Add(1)
	report, err := channel.Vendor.Poll(ctx, row.Ref)
	if err != nil {
		return p.pollFailed(ctx, row, err)
	}
	if p.failures.Swap(0) >= failureLimit {
		p.wake.Store(true)
	}
	result = p.again(row)
	result.Heard = true
	if report.Outcome != nil {
		failpoint.Hit(failpoint.PollTerminal)
		result.Outcome = report.Outcome
		return result
	}
	if report.State == mediagate.JobUnknown {
		p.log.WarnContext(ctx, "unknown status word", "task", row.TaskID, "word", report.Word)
	}
	result.Progress = report.Percent
	if report.Percent < 0 {
		result.Progress = synthetic(p.Now().Sub(row.AcceptedAt), row.Expected)
	}
	return result
}

// pollFailed keeps the row waiting; only an id that the vendor repeatedly
// does not know is trouble.
func (p *Poller) pollFailed(ctx context.Context, row mediagate.Await, err error) mediagate.PollResult {
	result := p.again(row)
	if errors.Is(ctx.Err(), context.Canceled) { // the worker stops, which says nothing of the vendor
		result.NextPollAt = p.Now()
		return result
	}
	kind := mediagate.KindOf(err)
	text := kind.String()
	p.lastErr.Store(&text)
	p.log.WarnContext(ctx, "poll failed", "task", row.TaskID, "kind", text, "error", err)
	switch kind {
	case mediagate.KindNotFound:
		result.Missing = row.Missing + 1
		if result.Missing >= lostAfter {
			result.Trouble = mediagate.ParkJobLost
		}
	case mediagate.KindCredentials, mediagate.KindFunds, mediagate.KindForbidden:
		// The job goes on at the vendor; only we cannot see it. Ask rarely,
		// and let a person know: the time until it is mended does not count.
		result.NextPollAt = p.Now().Add(jitter(max(p.channel.PollMax, 30*time.Second)))
		result.Missing = row.Missing + 1
		if result.Missing >= lostAfter {
			result.Trouble = mediagate.TroubleOf(err)
		}
	case mediagate.KindUnreached:
		result.Trouble = mediagate.TroubleOf(err) // not the account that made the job
	default:
		p.failures.Add(1)
		if e, ok := errors.AsType[*mediagate.Error](err); ok {
			result.NextPollAt = later(result.NextPollAt, p.Now().Add(e.RetryAfter))
		}
	}
	return result
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
