package task_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/task"
)

// Of two memories the later sending counts, and of one sending the memory that has the job.
// What the run has seen of the task itself stays.
func TestSeenWith(t *testing.T) {
	t.Parallel()
	knows := func(n int, sent time.Duration, job string) task.Seen {
		return task.Seen{Sending: task.Sending{N: n, Channel: "a", SendBefore: noon.Add(sent)}, Ref: mediagate.JobRef{JobID: job}}
	}
	number := task.Seen{Sending: task.Sending{N: 1}}
	for name, c := range map[string]struct{ run, sender, want task.Seen }{
		"nothing beside a job":           {knows(1, 0, "job"), task.Seen{}, knows(1, 0, "job")},
		"a job beside nothing":           {task.Seen{}, knows(1, 0, "job"), knows(1, 0, "job")},
		"the next attempt, in its call":  {knows(1, 0, "job"), knows(2, time.Minute, ""), knows(2, time.Minute, "")},
		"an attempt before":              {knows(2, time.Minute, ""), knows(1, 0, "job"), knows(2, time.Minute, "")},
		"the same sending, with its job": {knows(1, 0, ""), knows(1, 0, "job"), knows(1, 0, "job")},
		"the same sending, as it began":  {knows(1, 0, "job"), knows(1, 0, ""), knows(1, 0, "job")},
		"the same attempt, sent again":   {knows(1, 0, ""), knows(1, time.Minute, ""), knows(1, time.Minute, "")},
		"the same attempt, sent before":  {knows(1, time.Minute, ""), knows(1, 0, ""), knows(1, time.Minute, "")},
		"an attempt known by its number": {number, knows(1, 0, ""), knows(1, 0, "")},
		"a number beside what is known":  {knows(1, 0, ""), number, knows(1, 0, "")},
	} {
		c.run.Cancelled, c.want.Cancelled = true, true
		if diff := cmp.Diff(c.want, c.run.With(c.sender)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
