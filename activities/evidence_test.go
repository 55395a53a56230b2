package activities_test

import (
	"bytes"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/activities"
	"github.com/mediagate/mediagate/task"
)

// tails counts evidence by its kind.
type tails struct {
	mu     sync.Mutex
	counts map[mediagate.Evidence]int
}

func (c *tails) LostTail(kind mediagate.Evidence) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.counts[kind]++
}

// TestACompletedRunOfAnOpenTaskIsEvidence checks that a completed run of an open task is evidence
// that the database has lost commits. Each one counts, and one a minute is logged.
func TestACompletedRunOfAnOpenTaskIsEvidence(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		run    activities.RunState
		ends   bool
		counts int
		lines  int
	}{
		"it has completed":              {run: activities.RunCompleted, counts: 6, lines: 3}, // after 10, 11 and 13 minutes
		"it is gone":                    {run: activities.RunNone},
		"it completed, as did the task": {run: activities.RunCompleted, ends: true},
	} {
		inBubble(t, name, func(t *testing.T) {
			s, counted, log := wakes(t, c.run), &tails{counts: map[mediagate.Evidence]int{}}, &bytes.Buffer{}
			s.Activities.Evidence, s.Activities.Logger = counted, slog.New(slog.NewTextHandler(log, nil))
			s.backlog("acc_2", 1) // evidence of two tasks at once is logged once
			other := "task-acc_2-0000"
			s.Engine.SetRun(other, c.run)
			for _, id := range []string{taskID, other} {
				events := []task.Event{task.Asked{}}
				if c.ends {
					events = append(events, task.CancelRequested{}, task.EndDue{})
				}
				_, err := s.Store.Change(t.Context(), id, events...)
				s.ok(err)
			}
			time.Sleep(quiet)
			s.spend(4 * time.Minute)
			if got := counted.counts[mediagate.EvidenceCompleted]; got != c.counts || len(counted.counts) > 1 {
				t.Errorf("counted %v, want %d", counted.counts, c.counts)
			}
			if got := strings.Count(log.String(), "the database has lost commits"); got != c.lines {
				t.Errorf("%d lines, want %d:\n%s", got, c.lines, log)
			}
		})
	}
}
