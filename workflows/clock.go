package workflows

import (
	"time"

	"go.temporal.io/sdk/workflow"
)

// clockJump is by how much a reading of the clock may be too early for having
// been made a moment ago. What is beyond was another clock.
const clockJump = time.Minute

// clock is the database's, which the story's times are by. The run's own is the
// Temporal server's.
type clock struct {
	ahead    time.Duration // of the run's own
	measured bool
}

func (c *clock) now(ctx workflow.Context) time.Time { return workflow.Now(ctx).Add(c.ahead) }

// read takes a reading that may have been a while under way: what was read
// longer ago tells less. A zero reading tells nothing.
func (c *clock) read(ctx workflow.Context, at time.Time) {
	if ahead := at.Sub(workflow.Now(ctx)); !at.IsZero() && (!c.measured || ahead > c.ahead) {
		c.ahead, c.measured = ahead, true
	}
}

// readJustNow takes a reading of this moment: a clock that stood wrong when it
// was read before is put right.
func (c *clock) readJustNow(ctx workflow.Context, at time.Time) {
	if ahead := at.Sub(workflow.Now(ctx)); !at.IsZero() && c.ahead-ahead > clockJump {
		c.ahead = ahead
	}
}
