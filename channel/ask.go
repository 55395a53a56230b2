package channel

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"golang.org/x/time/rate"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/internal/failpoint"
	"github.com/mediagate/mediagate/providers"
)

// maxRows returns the most rows that one call to the channel's vendor can poll. It decides the size
// of the poller's claims.
func (c Channel) maxRows() int {
	most := 1
	if _, ok := c.Vendor.(providers.Batcher); ok {
		for _, op := range c.Adapter.Description.Operations {
			most = max(most, op.Batch)
		}
	}
	return most
}

// rowsPerCall returns how many rows like this one a call can poll. It returns one if the channel is
// not known to have the row's account: such a row goes through Asker, which checks the answer for
// that one job (D11).
func (c Channel) rowsPerCall(row mediagate.Await) int {
	if _, ok := c.Vendor.(providers.Batcher); !ok || !c.hasAccount(row.Fingerprint) {
		return 1
	}
	if chooser, ok := c.Vendor.(providers.Chooser); ok && !batches(chooser, row.Ref) {
		return 1
	}
	return max(1, c.Adapter.Description.Operations[row.Ref.Operation].Batch)
}

// batches reports whether the adapter can poll the job in one call with others. If the adapter
// panics, the job is polled alone.
func batches(c providers.Chooser, ref mediagate.JobRef) (yes bool) {
	return mediagate.Guarded(func() error { yes = c.Batches(ref); return nil }) == nil && yes
}

// groupRows divides the rows into as few calls as the vendor allows, and keeps their order: a claim
// lists the rows that are overdue the longest first.
//
// Rows of different operations never share a call. For example, if a call can poll three jobs of an
// operation, five rows of that operation make a call for three rows and a call for two.
func (p *Poller) groupRows(rows []mediagate.Await) [][]mediagate.Await {
	var calls [][]mediagate.Await
	open := make(map[string]int) // by operation: the call that still has room
	for _, row := range rows {
		most := p.channel.rowsPerCall(row)
		at, ok := open[row.Ref.Operation]
		if most == 1 || !ok || len(calls[at]) >= most {
			at = len(calls)
			calls = append(calls, nil)
			if most > 1 {
				open[row.Ref.Operation] = at
			}
		}
		calls[at] = append(calls[at], row)
	}
	return calls
}

// ask polls the rows in one call. If that call fails, and one of the jobs may be the cause, ask then
// polls the rows one after another, each in a call of its own. So only the row of that job suffers
// (D8).
func (p *Poller) ask(ctx context.Context, rows []mediagate.Await) []mediagate.PollResult {
	if len(rows) == 1 {
		return []mediagate.PollResult{p.askAlone(ctx, rows[0])}
	}
	// The time before the call. The next poll is planned from it, so a slow answer does not delay
	// that poll.
	asked := p.Now()
	answers, err := p.askTogether(ctx, rows)
	spoiled := err != nil && causedByOneJob(err)
	if spoiled {
		p.log.WarnContext(ctx, "a poll of several jobs was spoiled",
			"task", rows[0].TaskID, "rows", len(rows), "error", err)
	}
	results := make([]mediagate.PollResult, 0, len(rows))
	// When the last of the further calls may begin: the lease is claimLease, and the time that the
	// budget needs.
	latest := asked.Add(pollTimeout + p.lease() - claimLease)
	for i, row := range rows {
		switch {
		// Each further call takes its share of the budget. If ctx ends first, the row is polled
		// again later. So is a row whose call might end after its claim.
		case spoiled && (p.Now().After(latest) || p.pace.limiter.Wait(ctx) != nil):
			results = append(results, p.pollAgain(row, asked))
		case spoiled:
			results = append(results, p.askAlone(ctx, row))
		case err != nil:
			results = append(results, p.pollFailed(ctx, row, asked, err))
		case answers[i].Err != nil:
			results = append(results, p.pollFailed(ctx, row, asked, answers[i].Err))
		default:
			results = append(results, p.resultOf(ctx, row, asked, answers[i].Report))
		}
	}
	return results
}

// askTogether polls several rows in one call. A panic of the adapter, or a wrong number of
// answers, is an error of KindInternal. Answers belong to rows by their position, so a wrong number
// of them cannot be used at all.
func (p *Poller) askTogether(ctx context.Context, rows []mediagate.Await) (answers []providers.Answer, err error) {
	ctx, cancel := context.WithTimeout(ctx, pollTimeout)
	defer cancel()
	refs := make([]mediagate.JobRef, len(rows))
	for i, row := range rows {
		refs[i] = row.Ref
	}
	p.polls.Add(1)
	err = mediagate.Guarded(func() (err error) {
		answers, err = p.channel.Vendor.(providers.Batcher).PollAll(ctx, refs)
		return err
	})
	if err == nil && len(answers) != len(rows) {
		err = mediagate.Errorf(mediagate.KindInternal, "%d answers for %d jobs", len(answers), len(rows))
	}
	return answers, err
}

// causedByOneJob reports whether one of several jobs may have caused the error of a call. Other
// errors are about the vendor or the account. For example, a vendor may answer the whole call with
// "not found" because it does not know one of twenty ids.
func causedByOneJob(err error) bool {
	switch mediagate.KindOf(err) {
	case mediagate.KindNotFound, mediagate.KindInvalid, mediagate.KindInternal:
		return true
	default:
		return false
	}
}

// askAlone polls one row in a call of its own. If the adapter panics, only this poll of the row is lost.
func (p *Poller) askAlone(ctx context.Context, row mediagate.Await) (result mediagate.PollResult) {
	asked := p.Now()
	defer func() {
		if cause := recover(); cause != nil {
			p.log.ErrorContext(ctx, "poll panicked", "task", row.TaskID, "error", mediagate.Panicked(cause))
			result = p.pollAgain(row, asked)
		}
	}()
	ctx, cancel := context.WithTimeout(ctx, pollTimeout)
	defer cancel()
	channel, err := p.askerFor(ctx, row)
	if err != nil {
		return p.unservable(ctx, row, err)
	}
	p.polls.Add(1)
	report, err := channel.Poll(ctx, row.Ref)
	if err != nil {
		return p.pollFailed(ctx, row, asked, err)
	}
	return p.resultOf(ctx, row, asked, report)
}

// incompleteTime is how long the poller goes on polling a job that has succeeded, but whose media
// the vendor does not all name yet. After that time the outcome counts as it is: with the media
// that it names, or as a failure if it names none.
const incompleteTime = 2 * time.Minute

// resultOf returns the result for a row whose state the vendor reports. It counts ends of jobs and
// unknown status words in the metrics.
func (p *Poller) resultOf(
	ctx context.Context, row mediagate.Await, asked time.Time, report mediagate.Report,
) mediagate.PollResult {
	// The vendor has answered. If several polls had failed before, tasks may be parked because the
	// vendor was away.
	if p.failures.Swap(0) >= failureLimit {
		p.answers.Store(true)
	}
	if report.Incomplete {
		if until := p.pace.incompleteSince(row, asked).Add(incompleteTime); p.Now().Before(until) {
			// Answered stays false, since the media may still come. An Answered result without an end
			// makes the task fail if the vendor was asked after the deadline (D10).
			result := p.pollAgain(row, asked)
			if until.Before(result.NextPollAt) {
				result.NextPollAt = until
			}
			return result
		}
		p.log.WarnContext(ctx, "a job succeeded, and its media did not come",
			"task", row.TaskID, "media", len(report.Outcome.Media))
		// A job without any media has failed, whatever its status says, and counts against the
		// channel.
		if !report.Outcome.Succeeded {
			err := mediagate.Errorf(mediagate.KindVendor, "a job succeeded and names no media")
			p.Breakers.Inside(p.channel.Name).Ended(ctx, err)
		}
	}
	if report.Outcome != nil {
		failpoint.Hit(failpoint.PollTerminal)
		p.meter().JobEnded(p.channel.Name, report.Outcome.Succeeded, asked.Sub(row.AcceptedAt))
		return mediagate.PollResult{TaskID: row.TaskID, N: row.N, Answered: true, Outcome: report.Outcome}
	}
	if report.State == mediagate.JobUnknown {
		p.meter().UnknownWord(p.channel.Name)
		p.log.WarnContext(ctx, "unknown status word", "task", row.TaskID, "word", report.Word)
	}
	result := p.pollAgain(row, asked)
	// The vendor has answered that the job goes on. If it was asked after the task's deadline, this
	// answer makes the task fail (D10).
	result.Answered, result.Progress = true, report.Percent
	result.Waiting = report.State == mediagate.JobWaiting
	// A negative percentage means that the vendor gives no progress.
	if report.Percent < 0 {
		result.Progress = estimatedProgress(p.Now().Sub(row.AcceptedAt), row.Expected)
	}
	return result
}

// pollAgain returns a result that only sets the time of the next poll. Such a result says nothing
// about the job. If the caller adds nothing to it, storing it ends the row's claim and sets the
// row's count Missing to zero.
func (p *Poller) pollAgain(row mediagate.Await, asked time.Time) mediagate.PollResult {
	next := asked.Add(p.pace.interval(asked.Sub(row.AcceptedAt), row.Expected))
	return mediagate.PollResult{TaskID: row.TaskID, N: row.N, NextPollAt: next}
}

// missingPause bounds the pause, before jitter, between an answer that does not show the job and the
// next poll. After its deadline a task waits ten minutes for the vendor's last answer (D10). The
// pause is so short that lostAfter polls fit into that time.
const missingPause = 2 * time.Minute

// pollFailed returns the result of a poll that failed. The row keeps waiting. The job is in
// trouble only if the vendor repeatedly does not know it, if the vendor repeatedly refuses our
// account, or if another account made the job.
//
// Missing counts how often in a row the vendor did not know the job or refused our account. The
// await row keeps the count between polls, so the next poller continues it. For example, if "not
// found" comes at 12:00, 12:02 and 12:04, the task parks as vendor_job_lost at 12:04. Any other
// result before the third one sets the count to zero.
func (p *Poller) pollFailed(ctx context.Context, row mediagate.Await, asked time.Time, err error) mediagate.PollResult {
	result := p.pollAgain(row, asked)
	if errors.Is(ctx.Err(), context.Canceled) { // the worker stops: that says nothing about the vendor
		result.NextPollAt = p.Now()
		return result
	}
	kind := mediagate.KindOf(err)
	// Heartbeats and operators see only the kind. The vendor's own words may repeat the prompt.
	text := kind.String()
	p.lastErr.Store(&text)
	p.Breakers.NoteError(p.channel.Name, "poll", err)
	if p.shouldLog(text) {
		p.log.WarnContext(ctx, "poll failed", "task", row.TaskID, "kind", text, "error", err)
	}
	switch kind {
	case mediagate.KindNotFound:
		if soon := p.Now().Add(missingPause); soon.Before(result.NextPollAt) {
			result.NextPollAt = soon
		}
		result.Missing = row.Missing + 1
		if result.Missing >= lostAfter {
			result.Trouble = mediagate.ParkJobLost
		}
	case mediagate.KindCredentials, mediagate.KindFunds, mediagate.KindForbidden:
		// The job goes on at the vendor, but we cannot see it. Ask rarely. After lostAfter refusals
		// park the task, so that a person mends the account. The time for which the task is parked
		// does not count against its deadline.
		result.NextPollAt = p.Now().Add(jitter(min(max(p.channel.PollMax, 30*time.Second), missingPause)))
		result.Missing = row.Missing + 1
		if result.Missing >= lostAfter {
			result.Trouble = mediagate.TroubleOf(err)
		}
	case mediagate.KindUnreached:
		result.Trouble = mediagate.TroubleOf(err) // this is not the account that made the job
	default:
		// The vendor is away or busy, or its answer makes no sense. failures counts such polls, across
		// all jobs of the name, until the vendor reports the state of a job. If failures has reached
		// failureLimit by then, the poller retries the tasks that are parked because the vendor was
		// away.
		p.failures.Add(1)
		if e, ok := errors.AsType[*mediagate.Error](err); ok && e.RetryAfter > 0 {
			if again := p.Now().Add(e.RetryAfter); again.After(result.NextPollAt) {
				result.NextPollAt = again
			}
		}
	}
	return result
}

// shouldLog reports whether to log a failed poll: the first five of each kind, and then one every
// 12 seconds. Without that limit, a vendor that is away for hours would fill the log.
func (p *Poller) shouldLog(kind string) bool {
	limiter, _ := p.logLimits.LoadOrStore(kind, rate.NewLimiter(rate.Every(12*time.Second), 5))
	return limiter.(*rate.Limiter).AllowN(p.Now(), 1)
}

// jitter lengthens a pause by up to a quarter.
func jitter(d time.Duration) time.Duration {
	return d + time.Duration(rand.Int64N(int64(d)/4+1)) //nolint:gosec // spreading load needs no secret numbers
}
