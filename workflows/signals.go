package workflows

import (
	"fmt"

	"go.temporal.io/sdk/workflow"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/activities"
	"github.com/mediagate/mediagate/task"
)

// manualSignals are the signals that an operator sends from Temporal's UI, in the order in which
// they are recorded.
var manualSignals = []string{
	mediagate.ActionRetry, mediagate.ActionFail, mediagate.ActionPollNow, mediagate.ActionReroute,
}

// signals is everything that reaches a run from outside: its signals, and its cancel. Only the
// run's own coroutine uses it.
type signals struct {
	cancelled workflow.Context // ends when the run is cancelled
	wake      workflow.ReceiveChannel
	commands  []workflow.ReceiveChannel // one for each of manualSignals
	seen      []int                     // how many of each came so far
	run       string
	recorded  bool // the cancel was recorded
}

// listen returns the signals of the run. It receives them in ctx, which stays open when the run is
// cancelled.
func listen(ctx, cancelled workflow.Context) signals {
	// A run that was reset gets its signals again, and must record them under the same ids. The
	// second time, signals of different kinds may arrive in another order. So the number in an id
	// counts the signals of one kind only.
	s := signals{
		cancelled: cancelled, wake: workflow.GetSignalChannel(ctx, SignalWake),
		run: workflow.GetInfo(ctx).OriginalRunID, seen: make([]int, len(manualSignals)),
	}
	for _, action := range manualSignals {
		s.commands = append(s.commands, workflow.GetSignalChannel(ctx, action))
	}
	return s
}

// pending reports whether something has come since the last question.
func (s *signals) pending() bool {
	if s.wake.Len() > 0 || s.cancelled.Err() != nil && !s.recorded {
		return true
	}
	for _, c := range s.commands {
		if c.Len() > 0 {
			return true
		}
	}
	return false
}

// drain takes everything that has come, and returns it as commands for at, the step that the run
// was at. Wakes carry no data, so any number of them is one question.
//
// Each command carries the step that the operator saw. A retry or a reroute changes nothing if the
// task sleeps on another step by the time at which the command is applied.
func (s *signals) drain(at task.Step) []activities.Command {
	for s.wake.ReceiveAsync(nil) {
	}
	var commands []activities.Command
	if s.cancelled.Err() != nil && !s.recorded {
		// The context stays cancelled for the rest of the run, so remember that this was recorded.
		s.recorded = true
		commands = append(commands, activities.Command{Action: activities.ActionCancel})
	}
	for i, c := range s.commands {
		for {
			var channel string
			if c.Len() == 0 || !c.ReceiveAsync(signalInput(manualSignals[i], &channel)) {
				break
			}
			s.seen[i]++
			commands = append(commands, activities.Command{
				ID:     fmt.Sprintf("act_%s/%s/%d", s.run, manualSignals[i], s.seen[i]),
				Action: manualSignals[i], Channel: channel, For: at,
			})
		}
	}
	return commands
}

// signalInput returns where the input of a signal goes. Only reroute has an input, the channel.
func signalInput(action string, channel *string) any {
	if action == mediagate.ActionReroute {
		return channel
	}
	return nil
}
