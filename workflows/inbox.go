package workflows

import (
	"iter"

	"go.temporal.io/sdk/workflow"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/activities"
)

// inbox is what reaches a run from outside: the signals of channels, of the
// API, of the reconciler and of operators, and the cancel of the run itself.
type inbox struct {
	taskID string
	outer  workflow.Context // done when the run is cancelled from outside

	upstream workflow.ReceiveChannel
	slot     workflow.ReceiveChannel
	cancel   workflow.ReceiveChannel
	wake     workflow.ReceiveChannel
	action   workflow.ReceiveChannel
	retry    workflow.ReceiveChannel
	fail     workflow.ReceiveChannel
	pollNow  workflow.ReceiveChannel

	deferred       []activities.ActionArgs // commands that came while a step ran, and are for after it
	command        string                  // an operator's retry or fail that is taken, and not carried out yet
	unseen         bool                    // that command was taken after the last step began
	woken          bool                    // by the signal that asks to look again
	cancelRecorded bool                    // the cancel from outside is in the row
}

// openInbox listens for the signals in ctx, which no cancel of the run ends.
func openInbox(ctx, outer workflow.Context, taskID string) inbox {
	return inbox{
		taskID:   taskID,
		outer:    outer,
		upstream: workflow.GetSignalChannel(ctx, SignalUpstream),
		slot:     workflow.GetSignalChannel(ctx, SignalSlot),
		cancel:   workflow.GetSignalChannel(ctx, SignalCancel),
		wake:     workflow.GetSignalChannel(ctx, SignalWake),
		action:   workflow.GetSignalChannel(ctx, SignalAction),
		retry:    workflow.GetSignalChannel(ctx, mediagate.ActionRetry),
		fail:     workflow.GetSignalChannel(ctx, mediagate.ActionFail),
		pollNow:  workflow.GetSignalChannel(ctx, mediagate.ActionPollNow),
	}
}

// runCancelled reports that the run was cancelled from outside.
func (in *inbox) runCancelled() bool { return in.outer.Err() != nil }

func (in *inbox) failOrdered() bool  { return in.command == mediagate.ActionFail }
func (in *inbox) retryOrdered() bool { return in.command == mediagate.ActionRetry }

// retried drops a retry that has been carried out, or that does not count.
func (in *inbox) retried() {
	if in.retryOrdered() {
		in.command = ""
	}
}

// onlyHere reports that only this run knows of an operator's command: no step
// has seen it yet.
func (in *inbox) onlyHere() bool {
	return in.unseen || len(in.deferred)+in.action.Len()+in.retry.Len()+in.fail.Len()+in.pollNow.Len() > 0
}

// arrivals are what came while a run waited, or while its step ran.
type arrivals struct {
	signalled    bool // to read the story anew
	cancel       bool // of the task
	wake         bool
	runCancelled bool
	commands     []activities.ActionArgs
}

// whileWaiting adds to the selector all that ends a wait. Upstream signals of
// other attempts than n are ignored (D9), slots for others than the next one,
// and so is one whose input is not what it should be.
func (in *inbox) whileWaiting(ctx workflow.Context, selector workflow.Selector, n int) *arrivals {
	came := &arrivals{commands: in.deferred}
	in.deferred = nil
	selector.AddReceive(in.upstream, func(c workflow.ReceiveChannel, _ bool) {
		var of int
		came.signalled = c.ReceiveAsync(&of) && of == n || came.signalled
	})
	selector.AddReceive(in.slot, func(c workflow.ReceiveChannel, _ bool) {
		var of int
		came.signalled = c.ReceiveAsync(&of) && of == n+1 || came.signalled
	})
	selector.AddReceive(in.cancel, func(c workflow.ReceiveChannel, _ bool) {
		c.Receive(ctx, nil)
		came.signalled = true
	})
	selector.AddReceive(in.wake, func(c workflow.ReceiveChannel, _ bool) {
		c.Receive(ctx, nil)
		came.signalled, in.woken = true, true
	})
	selector.AddReceive(in.action, func(c workflow.ReceiveChannel, _ bool) {
		var a activities.ActionArgs
		if c.ReceiveAsync(&a) {
			came.commands = append(came.commands, a)
		}
	})
	for action, channel := range in.byHand() {
		selector.AddReceive(channel, func(c workflow.ReceiveChannel, _ bool) {
			c.Receive(ctx, nil)
			came.commands = append(came.commands, activities.ActionArgs{Action: action})
		})
	}
	in.onRunCancelled(selector, came)
	return came
}

// whileWorking adds to the selector what may stop a step. All else is for after
// it. With onlyCancels that is all but a cancel.
func (in *inbox) whileWorking(ctx workflow.Context, selector workflow.Selector, onlyCancels bool) *arrivals {
	came := &arrivals{}
	selector.AddReceive(in.cancel, func(c workflow.ReceiveChannel, _ bool) {
		c.Receive(ctx, nil)
		came.cancel = true
	})
	if !onlyCancels {
		selector.AddReceive(in.wake, func(c workflow.ReceiveChannel, _ bool) {
			c.Receive(ctx, nil)
			came.wake = true
		})
		selector.AddReceive(in.fail, func(c workflow.ReceiveChannel, _ bool) {
			c.Receive(ctx, nil)
			came.commands = append(came.commands, activities.ActionArgs{Action: mediagate.ActionFail})
		})
		selector.AddReceive(in.action, func(c workflow.ReceiveChannel, _ bool) {
			var a activities.ActionArgs
			switch ok := c.ReceiveAsync(&a); {
			case ok && a.Action == mediagate.ActionFail:
				came.commands = append(came.commands, a)
			case ok:
				in.deferred = append(in.deferred, a)
			}
		})
	}
	in.onRunCancelled(selector, came)
	return came
}

// onRunCancelled adds the cancel of the run, unless that is on record already.
func (in *inbox) onRunCancelled(selector workflow.Selector, came *arrivals) {
	if in.cancelRecorded || in.outer.Done() == nil {
		return
	}
	called := false
	selector.AddReceive(in.outer.Done(), func(c workflow.ReceiveChannel, _ bool) {
		c.Receive(in.outer, nil)
		came.runCancelled = came.runCancelled || !called
		called = true
	})
}

// byHand are the signals that an operator may send without input, in a fixed
// order.
func (in *inbox) byHand() iter.Seq2[string, workflow.ReceiveChannel] {
	return func(yield func(string, workflow.ReceiveChannel) bool) {
		_ = yield(mediagate.ActionRetry, in.retry) &&
			yield(mediagate.ActionFail, in.fail) &&
			yield(mediagate.ActionPollNow, in.pollNow)
	}
}

// untaken are the commands with a row that no wait has come to.
func (in *inbox) untaken() []activities.ActionArgs {
	commands := in.deferred
	in.deferred = nil
	for {
		var command activities.ActionArgs
		if !in.action.ReceiveAsync(&command) {
			return commands
		}
		commands = append(commands, command)
	}
}

// untakenRetries are the retries that were signalled by hand, without a row.
func (in *inbox) untakenRetries() []activities.ActionArgs {
	var commands []activities.ActionArgs
	for in.retry.ReceiveAsync(nil) {
		commands = append(commands, activities.ActionArgs{Action: mediagate.ActionRetry})
	}
	return commands
}

// take takes a command, an operator's or the client's modal parameters, whose row says whether it was taken before.
func (in *inbox) take(ctx workflow.Context, command activities.ActionArgs) error {
	command.TaskID = in.taskID
	whose := "record the operator's "
	if command.Action == mediagate.ActionModal {
		whose = "record the client's "
	}
	actCtx := workflow.WithActivityOptions(ctx, database(whose+command.Action))
	var taken bool
	if err := workflow.ExecuteActivity(actCtx, acts.TakeAction, command).Get(ctx, &taken); err != nil || !taken {
		return err
	}
	switch command.Action {
	case mediagate.ActionRetry, mediagate.ActionFail:
		in.command, in.unseen = command.Action, true
	case mediagate.ActionPollNow:
		actCtx := workflow.WithActivityOptions(ctx, database("poll now"))
		return workflow.ExecuteActivity(actCtx, acts.HintPoll, activities.TaskArgs{TaskID: in.taskID}).Get(ctx, nil)
	}
	return nil
}

// takeAll takes commands in their order.
func (in *inbox) takeAll(ctx workflow.Context, commands []activities.ActionArgs) error {
	for _, command := range commands {
		if err := in.take(ctx, command); err != nil {
			return err
		}
	}
	return nil
}
