package task_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/task"
)

// TestSeenWith checks which of two memories counts: the later sending, and for the same sending
// the memory that has the job. What the run has seen of the task itself stays.
func TestSeenWith(t *testing.T) {
	t.Parallel()
	knows := func(n int, sent time.Duration, job string) task.Seen {
		return task.Seen{
			Sending: task.Sending{N: n, Channel: "a", SendBefore: noon.Add(sent)}, Ref: mediagate.JobRef{JobID: job},
		}
	}
	number := task.Seen{Sending: task.Sending{N: 1}}
	for name, c := range map[string]struct{ run, sender, want task.Seen }{
		"nothing and a job":              {knows(1, 0, "job"), task.Seen{}, knows(1, 0, "job")},
		"a job and nothing":              {task.Seen{}, knows(1, 0, "job"), knows(1, 0, "job")},
		"the next attempt, in its call":  {knows(1, 0, "job"), knows(2, time.Minute, ""), knows(2, time.Minute, "")},
		"an earlier attempt":             {knows(2, time.Minute, ""), knows(1, 0, "job"), knows(2, time.Minute, "")},
		"the same sending, with its job": {knows(1, 0, ""), knows(1, 0, "job"), knows(1, 0, "job")},
		"the same sending, as it began":  {knows(1, 0, "job"), knows(1, 0, ""), knows(1, 0, "job")},
		"the same attempt, sent again":   {knows(1, 0, ""), knows(1, time.Minute, ""), knows(1, time.Minute, "")},
		"the same attempt, sent before":  {knows(1, time.Minute, ""), knows(1, 0, ""), knows(1, time.Minute, "")},
		"an attempt known by its number": {number, knows(1, 0, ""), knows(1, 0, "")},
		"a number and a known attempt":   {knows(1, 0, ""), number, knows(1, 0, "")},
	} {
		c.run.Cancelled, c.want.Cancelled = true, true
		if diff := cmp.Diff(c.want, c.run.With(c.sender)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// TestSeenUpdated checks that a run keeps what an answer lacks. If the row has another attempt of
// the same number, the row's attempt counts.
func TestSeenUpdated(t *testing.T) {
	t.Parallel()
	at := func(channel string, sent time.Duration, job string) task.Seen {
		return task.Seen{
			Sending: task.Sending{N: 1, Channel: channel, SendBefore: noon.Add(sent)}, Ref: mediagate.JobRef{JobID: job},
		}
	}
	for name, c := range map[string]struct{ run, answer, want task.Seen }{
		"a row without attempts":                 {at("a", 0, "job"), task.Seen{}, at("a", 0, "job")},
		"a row without the job":                  {at("a", 0, "job"), at("a", 0, ""), at("a", 0, "job")},
		"a row without the sending":              {at("a", time.Minute, ""), at("a", 0, ""), at("a", time.Minute, "")},
		"a row that knows more":                  {at("a", 0, ""), at("a", 0, "job"), at("a", 0, "job")},
		"a row with another job":                 {at("a", 0, "job"), at("a", 0, "job2"), at("a", 0, "job2")},
		"a row with an attempt elsewhere":        {at("a", time.Minute, "job"), at("b", 0, ""), at("b", 0, "")},
		"a row of whose attempt little is known": {at("a", 0, "job"), at("", 0, ""), at("a", 0, "job")},
	} {
		c.run.Cancelled, c.run.Failed, c.answer.Status = true, true, mediagate.StatusProcessing
		c.want.Cancelled, c.want.Failed, c.want.Status = true, true, mediagate.StatusProcessing
		if diff := cmp.Diff(c.want, c.run.Updated(c.answer)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
