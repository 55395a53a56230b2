package workflows

import (
	"fmt"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/activities"
)

// lastCallPatience is how long a vendor that is out of reach is asked again
// at the deadline (D10).
const lastCallPatience = 10 * time.Minute

// await waits until the channel signals the end of the attempt, the deadline
// passes, or somebody intervenes. No activity runs meanwhile.
func (g *generate) await(ctx workflow.Context) error {
	if g.story.ParkReason != "" {
		// The run before this one died between a success and its unparking.
		return g.did(ctx, g.story)
	}
	left := g.story.DeadlineAt.Sub(g.now(ctx))
	g.show(ctx, fmt.Sprintf("waiting for %s (attempt %d), until %s at the latest",
		g.story.Provider, g.story.N, g.story.DeadlineAt.UTC().Format(time.RFC3339)))
	if left > 0 {
		due, err := g.wait(ctx, "deadline", left)
		if err != nil || !due {
			return err
		}
	}
	return g.lastCall(ctx)
}

// lastCall asks the vendor once more when the deadline has passed, and fails
// the task when the job has not ended. A job that we are not let see may have
// ended well: a person can find out.
func (g *generate) lastCall(ctx workflow.Context) error {
	// Buffered signals need no draining: the step reads the outcome itself.
	g.show(ctx, "deadline: asking the vendor a last time")
	var st mediagate.Story
	err := g.interruptibly(ctx, ask(g.provider(), "last question at the deadline", lastCallPatience), acts.PollJob, g.attempt(), &st)
	switch {
	case temporal.IsCanceledError(err):
		return g.reload(ctx)
	case activities.FromTemporal(err).Kind == mediagate.KindUnavailable:
		return g.reload(ctx) // nobody was asked: once our own database is back, somebody is
	case err != nil:
		if trouble := activities.TroubleOf(activities.FromTemporal(err)); trouble != "" {
			return g.database(ctx, "trouble: "+string(trouble), acts.NoteTrouble,
				activities.TroubleArgs{TaskID: g.in.TaskID, N: g.story.N, Trouble: trouble})
		}
		g.log.Warn("vendor out of reach at the deadline", "error", err)
		if err := g.reload(ctx); err != nil {
			return err
		}
		st = g.story
	}
	g.story = st
	if st.Status.Terminal() || st.CancelRequested || st.Succeeded || st.Failure != nil || st.Trouble != "" || g.outer.Err() != nil || g.ordered == mediagate.ActionFail {
		return nil
	}
	return g.expire(ctx, providerTooLate)
}

// expire fails a task whose time is up. A command that came while its last step
// ran is obeyed before: a retry gives it more time (D10). So does a database
// that says, as it was read last, that there is some left.
func (g *generate) expire(ctx workflow.Context, message string) error {
	commands := g.untaken()
	for g.retry.ReceiveAsync(nil) {
		commands = append(commands, activities.ActionArgs{Action: mediagate.ActionRetry})
	}
	for _, command := range commands {
		if err := g.obey(ctx, command); err != nil {
			return err
		}
		if g.ordered == mediagate.ActionFail {
			return nil
		}
	}
	if len(commands) > 0 {
		if err := g.reload(ctx); err != nil {
			return err
		}
		if g.moot() || known(g.story) || !g.late(ctx) {
			return nil
		}
	}
	if st := g.story; !st.ReadAt.IsZero() {
		if early := mediagate.WaitsUntil(st.DeadlineAt, st.ParkedAt, st.ReadAt).Sub(st.ReadAt); early > 0 {
			_, err := g.pause(ctx, "the clocks disagree", min(max(early, time.Second), clockJump))
			return err
		}
	}
	return g.lapse(ctx, &mediagate.Failure{Code: mediagate.CodeGenerationTimeout, Message: message, Retryable: true})
}

// untaken are the commands with a row that no wait has come to.
func (g *generate) untaken() []activities.ActionArgs {
	commands := g.held
	g.held = nil
	for {
		var command activities.ActionArgs
		if !g.action.ReceiveAsync(&command) {
			return commands
		}
		commands = append(commands, command)
	}
}

const providerTooLate = "the provider did not finish in time"

// pause waits without a purpose of its own: any signal but an upstream one
// ends it, and the story is read anew. It reports whether the time ran out.
func (g *generate) pause(ctx workflow.Context, summary string, d time.Duration) (due bool, err error) {
	due, err = g.wait(ctx, summary, d)
	if due && err == nil {
		err = g.reload(ctx)
	}
	return due, err
}

// wait waits for d, or for a signal, after which the story is as it then
// stands. It reports whether the time ran out. Signals of other attempts are
// ignored (D9), and so is one whose input is not what it should be.
func (g *generate) wait(ctx workflow.Context, summary string, d time.Duration) (due bool, err error) {
	timerCtx, stopTimer := workflow.WithCancel(ctx)
	defer stopTimer()
	timer := workflow.NewTimerWithOptions(timerCtx, d, workflow.TimerOptions{Summary: summary})
	var (
		reload, record bool
		commands       = g.held
	)
	g.held = nil
	selector := workflow.NewSelector(ctx)
	selector.AddFuture(timer, func(workflow.Future) { due = true })
	selector.AddReceive(g.upstream, func(c workflow.ReceiveChannel, _ bool) {
		var n int
		reload = c.ReceiveAsync(&n) && n == g.story.N || reload
	})
	selector.AddReceive(g.cancel, func(c workflow.ReceiveChannel, _ bool) { c.Receive(ctx, nil); reload = true })
	selector.AddReceive(g.wake, func(c workflow.ReceiveChannel, _ bool) { c.Receive(ctx, nil); reload, g.woken = true, true })
	selector.AddReceive(g.action, func(c workflow.ReceiveChannel, _ bool) {
		var a activities.ActionArgs
		if c.ReceiveAsync(&a) {
			commands = append(commands, a)
		}
	})
	for action, channel := range g.byHand() {
		selector.AddReceive(channel, func(c workflow.ReceiveChannel, _ bool) {
			c.Receive(ctx, nil)
			commands = append(commands, activities.ActionArgs{Action: action})
		})
	}
	g.onCancelled(selector, func() { record = true })
	for !due && !reload && !record && len(commands) == 0 {
		selector.Select(ctx)
	}
	if record {
		return false, g.recordCancel(ctx)
	}
	for _, command := range commands {
		if err := g.obey(ctx, command); err != nil {
			return false, err
		}
	}
	if reload || len(commands) > 0 {
		return false, g.reload(ctx)
	}
	return due, nil
}

// onCancelled calls f when the run is cancelled from outside, unless that is
// on record already.
func (g *generate) onCancelled(selector workflow.Selector, f func()) {
	if g.obeyed || g.outer.Done() == nil {
		return
	}
	called := false
	selector.AddReceive(g.outer.Done(), func(c workflow.ReceiveChannel, _ bool) {
		c.Receive(g.outer, nil)
		if !called {
			called = true
			f()
		}
	})
}

// obey carries out an operator's command. Its row says whether it was
// obeyed before.
func (g *generate) obey(ctx workflow.Context, command activities.ActionArgs) error {
	command.TaskID = g.in.TaskID
	actCtx := workflow.WithActivityOptions(ctx, database("record the operator's "+command.Action))
	var taken bool
	if err := workflow.ExecuteActivity(actCtx, acts.TakeAction, command).Get(ctx, &taken); err != nil || !taken {
		return err
	}
	switch command.Action {
	case mediagate.ActionRetry, mediagate.ActionFail:
		g.ordered, g.fresh = command.Action, true
	case mediagate.ActionPollNow:
		actCtx := workflow.WithActivityOptions(ctx, database("poll now"))
		return workflow.ExecuteActivity(actCtx, acts.HintPoll, activities.TaskArgs{TaskID: g.in.TaskID}).Get(ctx, nil)
	}
	return nil
}
