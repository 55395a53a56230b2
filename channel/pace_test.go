package channel

import (
	"container/heap"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/mediagate/mediagate"
)

// simulation is a vendor account with jobs, and its pace on a clock of its own:
// the budget's requests come one after the other and go to the row that is due
// the longest, as the poller's claims do.
type simulation struct {
	*pace
	now      time.Time
	step     time.Duration
	due      dueRows
	ends     map[string]time.Time
	last     map[string]time.Time // when the job was asked for, or accepted
	late     []time.Duration      // of ends, when they were seen
	requests int
	gap      time.Duration // the longest that a job was left alone
}

type dueRows []mediagate.Await

func (d dueRows) Len() int           { return len(d) }
func (d dueRows) Less(i, j int) bool { return d[i].NextPollAt.Before(d[j].NextPollAt) }
func (d dueRows) Swap(i, j int)      { d[i], d[j] = d[j], d[i] }
func (d *dueRows) Push(x any)        { *d = append(*d, x.(mediagate.Await)) }
func (d *dueRows) Pop() any {
	last := len(*d) - 1
	row := (*d)[last]
	*d = (*d)[:last]
	return row
}

func newSimulation(c mediagate.Channel) *simulation {
	return &simulation{
		step: 20 * time.Millisecond,
		pace: newPace(Channel{Channel: c}), now: time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC),
		ends: make(map[string]time.Time), last: make(map[string]time.Time),
	}
}

// accept begins a job that the model says takes expected, and that takes
// duration, of which elapsed has passed.
func (s *simulation) accept(expected, duration time.Duration) {
	id := fmt.Sprintf("task-%d", len(s.ends))
	s.ends[id] = s.now.Add(duration)
	s.last[id] = s.now
	heap.Push(&s.due, mediagate.Await{
		TaskID: id, N: 1, Model: "model", Expected: expected, AcceptedAt: s.now, NextPollAt: s.now.Add(Channel{Channel: mediagate.Channel{PollMin: s.shortest}}.FirstPoll(id)),
	})
}

// run lets time pass; each end that is seen is followed by what next says.
func (s *simulation) run(long time.Duration, next func()) {
	end := s.now.Add(long)
	var counted time.Time
	tokens := 0.0
	for ; s.now.Before(end); s.now = s.now.Add(s.step) {
		if s.now.Sub(counted) >= time.Second {
			counted = s.now
			s.count(s.now, "channel", len(s.due))
		}
		tokens = min(tokens+s.budget*s.step.Seconds(), s.budget)
		for tokens >= 1 {
			row, ok := s.claim()
			if !ok {
				break
			}
			row.ClaimedAt = s.now
			if later := s.see(row, 1); !later.IsZero() {
				row.NextPollAt = later
				heap.Push(&s.due, row)
				continue
			}
			tokens--
			s.requests++
			s.gap = max(s.gap, s.now.Sub(s.last[row.TaskID]))
			s.last[row.TaskID] = s.now
			if ended := s.ends[row.TaskID]; !ended.After(s.now) {
				s.late = append(s.late, s.now.Sub(ended))
				s.ended(row, s.now)
				next()
				continue
			}
			s.ran(row, s.now)
			row.NextPollAt = s.again(row, s.now)
			heap.Push(&s.due, row)
		}
	}
}

// claim takes the row that is due the longest, or the next one that was left
// alone for the shortest interval where the budget would rest.
func (s *simulation) claim() (mediagate.Await, bool) {
	var early []mediagate.Await
	defer func() {
		for _, row := range early {
			heap.Push(&s.due, row)
		}
	}()
	beyond, crowded := s.ahead(s.now)
	for len(s.due) > 0 && (crowded || !s.due[0].NextPollAt.After(s.now)) {
		row := heap.Pop(&s.due).(mediagate.Await)
		if !row.NextPollAt.After(s.now) || s.alone(row) {
			return row, true
		}
		early = append(early, row)
	}
	if !crowded {
		for i, row := range s.due {
			if row.NextPollAt.After(beyond) && s.alone(row) {
				heap.Remove(&s.due, i)
				return row, true
			}
		}
	}
	return mediagate.Await{}, false
}

// alone reports that a job was left alone for the shortest interval.
func (s *simulation) alone(row mediagate.Await) bool {
	return !s.last[row.TaskID].After(s.now.Add(-s.shortest))
}

func (s *simulation) quantile(q float64) time.Duration {
	slices.Sort(s.late)
	return s.late[min(int(q*float64(len(s.late))), len(s.late)-1)]
}

func TestPaceGoals(t *testing.T) {
	t.Parallel()
	account := mediagate.Channel{RequestsPerSecond: 10, PollMin: 2 * time.Second, PollMax: 15 * time.Second}
	about := func(r *rand.Rand, middle time.Duration, spread float64) time.Duration {
		return time.Duration(float64(middle) * (1 - spread + 2*spread*r.Float64()))
	}
	const unbounded = time.Hour
	for name, c := range map[string]struct {
		jobs               int
		expected, duration time.Duration
		spread             float64
		together           bool // they begin at once, and no other follows
		long               time.Duration
		p50, p95           time.Duration
	}{
		"20 of 5 s":                    {20, 5 * time.Second, 5 * time.Second, .2, false, 10 * time.Minute, 1500 * time.Millisecond, 3 * time.Second},
		"20 of 300 s":                  {20, 300 * time.Second, 300 * time.Second, .2, false, time.Hour, 1500 * time.Millisecond, 3 * time.Second},
		"20 of 300 s, 5 s expected":    {20, 5 * time.Second, 300 * time.Second, .2, false, time.Hour, 1500 * time.Millisecond, 3 * time.Second},
		"20 of 5 s, 300 s expected":    {20, 300 * time.Second, 5 * time.Second, .2, false, time.Hour, 1500 * time.Millisecond, 3 * time.Second},
		"1 of 5 s, 300 s expected":     {1, 300 * time.Second, 5 * time.Second, .2, false, time.Hour, 1500 * time.Millisecond, 3 * time.Second},
		"100 of 120 s":                 {100, 120 * time.Second, 120 * time.Second, .2, false, time.Hour, 3 * time.Second, unbounded},
		"100 of 120 s, together":       {100, 120 * time.Second, 120 * time.Second, .2, true, 10 * time.Minute, 3 * time.Second, unbounded},
		"100 of 120 s, 10 s expected":  {100, 10 * time.Second, 120 * time.Second, .2, false, time.Hour, 3 * time.Second, unbounded},
		"100 of 120 s, 900 s expected": {100, 900 * time.Second, 120 * time.Second, .2, false, time.Hour, 3 * time.Second, unbounded},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := rand.New(rand.NewPCG(1, 2))
			s := newSimulation(account)
			started := 0
			next := func() {
				if !c.together || started < c.jobs {
					started++
					s.accept(c.expected, about(r, c.duration, c.spread))
				}
			}
			for range c.jobs {
				next()
				if !c.together {
					s.run(c.duration/time.Duration(c.jobs), next)
				}
			}
			s.late, s.requests, s.gap = nil, 0, 0
			s.run(c.long, next)
			p50, p95 := s.quantile(.5), s.quantile(.95)
			t.Logf("%d ends, p50 %v, p95 %v, longest alone %v, %.2f requests/s", len(s.late), p50, p95, s.gap, float64(s.requests)/c.long.Seconds())
			if p50 > c.p50 || p95 > c.p95 {
				t.Errorf("p50 %v, p95 %v, want at most %v and %v", p50, p95, c.p50, c.p95)
			}
		})
	}
}

func TestPaceOfManyRows(t *testing.T) {
	t.Parallel()
	for name, steady := range map[string]bool{"ten thousand at once": false, "ten thousand all the time": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const jobs = 10_000
			r := rand.New(rand.NewPCG(1, 2))
			s := newSimulation(mediagate.Channel{RequestsPerSecond: 10, PollMin: 2 * time.Second, PollMax: 15 * time.Second})
			s.step = 100 * time.Millisecond
			next := func() {
				long := 2 * time.Hour
				if steady {
					long = time.Duration((0.2 + r.Float64()) * float64(time.Hour))
				}
				s.accept(time.Hour, long)
			}
			for range jobs {
				next()
			}
			s.run(2500*time.Second, next)
			s.requests = 0
			s.run(2500*time.Second, next)
			spent := float64(s.requests) / 25_000
			t.Logf("%.3f of the budget, longest alone %v, %d ends", spent, s.gap, len(s.late))
			if fair := jobs / 10 * time.Second; spent < 0.9 || s.gap > 2*fair {
				t.Errorf("%.3f of the budget spent, a job was left alone for %v, twice the fair interval is %v", spent, s.gap, 2*fair)
			}
		})
	}
}

// The rows that were put off when ten thousand waited are asked for when few
// are left.
func TestPaceAfterACrowd(t *testing.T) {
	t.Parallel()
	s := newSimulation(mediagate.Channel{RequestsPerSecond: 10, PollMin: 2 * time.Second, PollMax: 15 * time.Second})
	s.step = 100 * time.Millisecond
	for range 2000 {
		s.accept(5*time.Minute, time.Hour)
	}
	s.run(5*time.Minute, func() {})
	s.due = s.due[:20] // the others were cancelled
	heap.Init(&s.due)
	for _, row := range s.due {
		s.last[row.TaskID] = s.now
	}
	s.gap = 0
	s.run(30*time.Second, func() {})
	if s.gap > 3*time.Second {
		t.Errorf("a job was left alone for %v", s.gap)
	}
}

// Without a budget the settings' interval decides: short around the time at
// which jobs end, long elsewhere.
func TestPaceWithoutABudget(t *testing.T) {
	t.Parallel()
	p := newPace(Channel{Channel: mediagate.Channel{PollMin: 2 * time.Second, PollMax: 15 * time.Second}})
	began := time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
	row := mediagate.Await{TaskID: "task", N: 1, Model: "model", Expected: 10 * time.Second, AcceptedAt: began, NextPollAt: began}
	for i := range 100 {
		seen := began.Add(100*time.Second + time.Duration(i%40)*time.Second)
		p.ran(row, seen.Add(-2*time.Second))
		p.ended(row, seen)
	}
	for age, want := range map[time.Duration][2]time.Duration{
		40 * time.Second:  {10 * time.Second, 15 * time.Second},
		120 * time.Second: {2 * time.Second, 3 * time.Second},
		600 * time.Second: {10 * time.Second, 15 * time.Second},
	} {
		asked := began.Add(age)
		if got := p.again(row, asked).Sub(asked); got < want[0] || got > want[1] {
			t.Errorf("at the age of %v a job is asked for after %v, want %v", age, got, want)
		}
	}
}

// All names under which jobs wait for an account share its budget.
func TestPaceCountsAllNames(t *testing.T) {
	t.Parallel()
	p := newPace(Channel{Channel: mediagate.Channel{RequestsPerSecond: 10, PollMin: 2 * time.Second, PollMax: 15 * time.Second}})
	began := time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
	row := mediagate.Await{TaskID: "task", N: 1, Model: "model", Expected: time.Minute, AcceptedAt: began, NextPollAt: began}
	p.count(began, "channel", 20)
	if got := p.again(row, began).Sub(began); got != 2*time.Second {
		t.Errorf("one of 20 rows is asked for after %v", got)
	}
	p.count(began, "former", 980)
	if got := p.again(row, began).Sub(began); got < 80*time.Second || got > 120*time.Second {
		t.Errorf("one of 1000 rows is asked for after %v, want about 100 s", got)
	}
	p.count(began, "former", 0)
	if got := p.again(row, began).Sub(began); got != 2*time.Second {
		t.Errorf("one of 20 rows is asked for after %v", got)
	}
}

// Of rows that come at once each is asked for at a moment of its own, and a
// hint is no time to wait.
func TestPaceOfNewRows(t *testing.T) {
	t.Parallel()
	p := newPace(Channel{Channel: mediagate.Channel{RequestsPerSecond: 10, PollMin: 2 * time.Second, PollMax: 15 * time.Second}})
	began := time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
	var rows []mediagate.Await
	for i := range 1000 {
		rows = append(rows, mediagate.Await{
			TaskID: fmt.Sprintf("task-%d", i), N: 1, Model: "model", Expected: time.Hour,
			AcceptedAt: began, NextPollAt: began.Add(2 * time.Second), ClaimedAt: began.Add(2 * time.Second),
		})
		if at := p.see(rows[i], 1); !at.IsZero() {
			t.Fatalf("a row is asked for only after %v, without any other", at.Sub(began))
		}
	}
	p.count(began, "channel", 1000)
	var later []time.Duration
	for _, row := range rows {
		if at := p.see(row, 1); !at.IsZero() {
			later = append(later, at.Sub(began))
		}
		row.Hinted = true
		if at := p.see(row, 1); !at.IsZero() {
			t.Fatalf("a hinted row is asked for only after %v", at.Sub(began))
		}
	}
	slices.Sort(later)
	if len(later) < 900 || later[len(later)/2] < 35*time.Second || later[len(later)/2] > 100*time.Second || later[len(later)-1] > 200*time.Second {
		t.Errorf("%d rows wait, half of them %v, the last %v: want nearly all, spread over less than twice the fair interval of 100 s",
			len(later), later[len(later)/2], later[len(later)-1])
	}
}

func TestDurationBins(t *testing.T) {
	t.Parallel()
	for _, d := range []time.Duration{0, time.Millisecond, binFirst, time.Second, 5 * time.Second, time.Minute, time.Hour, 23 * time.Hour} {
		if bin := binOf(d); d < binStart(bin) || d > binEnd(bin) {
			t.Errorf("%v is in the bin from %v to %v", d, binStart(bin), binEnd(bin))
		}
	}
	if got := binOf(1000 * time.Hour); got != binCount-1 {
		t.Errorf("a thousand hours are in bin %d", got)
	}
}
