package channel

import (
	"testing"
	"time"

	"github.com/mediagate/mediagate"
)

func testPace() *pace {
	return newPace(
		Channel{Channel: mediagate.Channel{RequestsPerSecond: 10, PollMin: 2 * time.Second, PollMax: 15 * time.Second}},
	)
}

func TestInterval(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ age, expected, want time.Duration }{
		"a new job":                            {0, 2 * time.Minute, 2 * time.Second},
		"young":                                {20 * time.Second, 2 * time.Minute, 5 * time.Second},
		"in the middle":                        {60 * time.Second, 2 * time.Minute, 15 * time.Second},
		"near the end":                         {112 * time.Second, 2 * time.Minute, 2 * time.Second},
		"a little late":                        {140 * time.Second, 2 * time.Minute, 5 * time.Second},
		"very late":                            {time.Hour, 2 * time.Minute, 15 * time.Second},
		"soon, of a job that should take long": {5 * time.Second, time.Hour, 2 * time.Second},
		"nothing is expected":                  {40 * time.Second, 0, 10 * time.Second},
		"accepted by a clock that is ahead":    {-time.Minute, 2 * time.Minute, 2 * time.Second},
	} {
		if got := testPace().interval(c.age, c.expected); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

// TestIntervalBoundsLateness checks that the end of a job is never seen later than by a quarter
// of its age, or by the longest interval, however wrong the expected time is.
func TestIntervalBoundsLateness(t *testing.T) {
	t.Parallel()
	p := testPace()
	for _, expected := range []time.Duration{0, 5 * time.Second, 2 * time.Minute, time.Hour} {
		for age := time.Duration(0); age < time.Hour; age += 7 * time.Second {
			if got := p.interval(age, expected); got > max(p.shortest, age/4) || got > p.longest || got < p.shortest {
				t.Fatalf("at %v of %v: %v", age, expected, got)
			}
		}
	}
}

func TestIncompleteSince(t *testing.T) {
	t.Parallel()
	p, began := testPace(), time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
	one, other := mediagate.Await{TaskID: "task_1", N: 1}, mediagate.Await{TaskID: "task_1", N: 2}
	p.incompleteSince(one, began)
	if got := p.incompleteSince(one, began.Add(time.Minute)); !got.Equal(began) {
		t.Errorf("asked again: since %v", got)
	}
	if got := p.incompleteSince(other, began.Add(time.Minute)); !got.Equal(began.Add(time.Minute)) {
		t.Errorf("another attempt: since %v", got)
	}
	p.incompleteSince(other, began.Add(3*time.Hour))
	if len(p.incomplete) != 1 {
		t.Errorf("%d are remembered after hours", len(p.incomplete))
	}
}

// TestEstimatedProgress checks that a job whose vendor reports no progress shows the elapsed
// share of its expected time, and never all of it.
func TestEstimatedProgress(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		elapsed, expected time.Duration
		want              int
	}{
		"half":                              {time.Minute, 2 * time.Minute, 50},
		"late":                              {time.Hour, 2 * time.Minute, 95},
		"nothing is expected":               {time.Minute, 0, 0},
		"accepted by a clock that is ahead": {-time.Minute, 2 * time.Minute, 0},
	} {
		if got := estimatedProgress(c.elapsed, c.expected); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}
