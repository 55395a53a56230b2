package channel

import (
	"hash/fnv"
	"math"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/mediagate/mediagate"
)

// How often a job is asked for. Each request of the budget should go where it
// most likely finds an end that nobody has seen. A job that is asked for every
// τ seconds is seen τ/2 late, so with hazards h (the chance to end within the
// next second) the whole lateness is Σ hτ/2 and the spending is Σ 1/τ. The least
// lateness for a given spending has 1/τ proportional to √h. So each job has a
// density of questions,
//
//	density = pressure × √hazard, within 1/longest and 1/shortest,
//
// and is asked for again when its density has added up to one question. The
// pressure is the same for all and such that all densities together spend the
// budget, or a little more: what is due and must wait waits equally long for
// all, the longest due first, and a budget with somebody waiting never rests.
// Where the budget is enough to ask for all jobs at the shortest interval, it
// is that; nobody has to know how long jobs take.
const (
	// overbooked is how much more of the budget the densities spend than there
	// is.
	overbooked = 1.04
	// longestShare bounds the interval of a job that will hardly end by the
	// interval that an even share of the budget would give it. What is due waits
	// when more jobs come to their time than was foreseen; with that a job is
	// still left alone for less than twice an even share.
	longestShare = 1.4
	// unboundedLikelihood is how likely a job has ended when it is asked for
	// again, where no budget bounds the questions.
	unboundedLikelihood = 0.01
	// solvesPerRound is how often the pressure is worked out while all rows are
	// asked for once.
	solvesPerRound = 50
	// A job is looked at for the first time after so many of the shortest
	// intervals; for the second, later than firstLatest.
	firstEarliest, firstLatest = 0.5, 1.49
	// forgottenAfter is how long a row may be overdue before it counts as gone.
	forgottenAfter = time.Minute
)

// FirstPoll is the pause before a channel looks at a new job, about the
// shortest interval. The look may end with the decision to ask later. It
// differs from task to task, so that jobs which all take equally long are not
// all seen equally late.
func (c Channel) FirstPoll(taskID string) time.Duration {
	return time.Duration((firstEarliest + (firstLatest-firstEarliest)*phase(taskID)) * float64(c.PollMin))
}

// pace is the pace of all polls of one account, under whatever name the jobs
// wait.
type pace struct {
	shortest, most time.Duration
	budget         float64 // requests a second; 0: no bound
	limiter        *rate.Limiter

	mu       sync.Mutex
	waiting  map[string]int // rows, by the name under which they wait
	rows     map[rowKey]*tracked
	models   map[string]*durations
	pressure float64
	longest  time.Duration
	fair     time.Duration // the interval that an even share of the budget gives
	solvedAt time.Time
	solved   int // for how many rows
	known    int // of which so many were tracked
}

type rowKey struct {
	taskID string
	n      int
}

// tracked is a row as it was last seen.
type tracked struct {
	model    *durations
	accepted time.Time
	asked    time.Time // the last time that it was seen to run; zero: not by us
	due      time.Time
	lacking  time.Time // since when its answers lack media; zero: they do not
	cost     float64   // in requests: less than one where a call asks for several
}

func newPace(c Channel) *pace {
	limit := rate.Inf
	if c.RequestsPerSecond > 0 {
		limit = rate.Limit(c.RequestsPerSecond)
	}
	p := &pace{
		limiter:  rate.NewLimiter(limit, max(1, int(c.RequestsPerSecond))),
		shortest: max(c.PollMin, time.Millisecond), most: max(c.PollMax, c.PollMin, time.Millisecond), budget: c.RequestsPerSecond,
		waiting: make(map[string]int), rows: make(map[rowKey]*tracked), models: make(map[string]*durations),
	}
	p.pressure, p.longest = math.Inf(1), p.most
	return p
}

// count notes how many rows wait under a name, and works out the pressure.
func (p *pace) count(now time.Time, name string, waiting int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.waiting[name] = waiting
	total := 0
	for _, n := range p.waiting {
		total += n
	}
	if !differs(total, p.solved) && !differs(len(p.rows), p.known) && now.Sub(p.solvedAt) < p.fair/solvesPerRound {
		return
	}
	p.solvedAt, p.solved, p.known = now, total, len(p.rows)
	for key, row := range p.rows {
		if now.Sub(row.due) > forgottenAfter+2*p.fair {
			delete(p.rows, key) // it ended without us
		}
	}
	if p.budget <= 0 {
		return
	}
	groups, cost := p.groups(now, total)
	p.fair = time.Duration(cost / p.budget * float64(time.Second))
	p.longest = max(p.most, time.Duration(longestShare*float64(p.fair)))
	p.pressure = p.solve(groups)
}

// differs reports that a is not b, give or take a tenth.
func differs(a, b int) bool { return 10*max(a-b, b-a) > b }

// group is a part of the rows that are equally likely to end.
type group struct {
	root float64 // of the hazard
	cost float64 // of asking for all of them once
}

// groups are the rows that wait, and what asking for all of them costs. Those
// that we have not seen yet are taken to be like those that we have.
func (p *pace) groups(now time.Time, total int) ([]group, float64) {
	type like struct {
		model *durations
		bin   int
	}
	costs := make(map[like]float64)
	for _, row := range p.rows {
		costs[like{row.model, binOf(now.Sub(row.accepted))}] += row.cost
	}
	if len(costs) == 0 {
		return []group{{root: 1, cost: float64(total)}}, float64(total)
	}
	scale := float64(total) / float64(len(p.rows))
	groups, all := make([]group, 0, len(costs)), 0.0
	for k, cost := range costs {
		groups = append(groups, group{root: k.model.root[k.bin], cost: cost * scale})
		all += cost * scale
	}
	return groups, all
}

// solve finds the pressure at which the densities spend the budget.
func (p *pace) solve(groups []group) float64 {
	spent := func(pressure float64) float64 {
		var sum float64
		for _, g := range groups {
			sum += g.cost * p.bounded(pressure*g.root)
		}
		return sum
	}
	budget := p.budget * overbooked
	if spent(math.Inf(1)) <= budget {
		return math.Inf(1)
	}
	low, high := 0.0, 1.0
	for spent(high) < budget {
		low, high = high, high*4
	}
	for range 40 {
		if middle := (low + high) / 2; spent(middle) < budget {
			low = middle
		} else {
			high = middle
		}
	}
	return high
}

func (p *pace) bounded(density float64) float64 {
	return min(max(density, 1/p.longest.Seconds()), 1/p.shortest.Seconds())
}

// density is how many questions a second a job of that age is worth.
func (p *pace) density(d *durations, bin int) float64 {
	if p.budget <= 0 {
		return p.bounded(d.hazard[bin] / unboundedLikelihood)
	}
	return p.bounded(p.pressure * d.root[bin])
}

// until is how long it takes from the age of elapsed on until the density of a
// job has added up to so many questions.
func (p *pace) until(d *durations, elapsed time.Duration, questions float64) time.Duration {
	at := max(elapsed, 0)
	for bin := binOf(at); ; bin++ {
		density := p.density(d, min(bin, binCount-1))
		need := time.Duration(questions / density * float64(time.Second))
		if end := binEnd(bin); bin < binCount-1 && at+need > end {
			questions -= max(0, (end-at).Seconds()) * density
			at = max(at, end)
			continue
		}
		return at + need - max(elapsed, 0)
	}
}

// see takes a row in that was claimed. It returns when to ask for a job that
// was never asked for, and is not worth it yet; zero: now. Of jobs that came
// together each has its own moment then.
func (p *pace) see(row mediagate.Await, batch int) (later time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	t := p.track(row, batch)
	if row.Hinted || !p.unasked(row) || p.budget <= 0 || math.IsInf(p.pressure, 1) {
		return time.Time{}
	}
	at := row.AcceptedAt.Add(p.until(t.model, 0, phase(row.TaskID)))
	if at.Sub(row.ClaimedAt) < p.shortest/2 {
		return time.Time{}
	}
	t.asked, t.due = row.AcceptedAt, at
	return at
}

func (p *pace) track(row mediagate.Await, batch int) *tracked {
	key := rowKey{row.TaskID, row.N}
	t := p.rows[key]
	if t == nil {
		t = &tracked{accepted: row.AcceptedAt, model: p.model(row), due: row.NextPollAt, cost: 1 / float64(max(batch, 1))}
		if p.unasked(row) {
			t.asked = row.AcceptedAt
		}
		p.rows[key] = t
	}
	return t
}

// unasked reports that the row has the time that it was given at first.
func (p *pace) unasked(row mediagate.Await) bool {
	return row.NextPollAt.Sub(row.AcceptedAt) < p.shortest*3/2
}

func (p *pace) model(row mediagate.Await) *durations {
	d := p.models[row.Model]
	if d == nil {
		d = newDurations(row.Expected)
		p.models[row.Model] = d
	}
	return d
}

// phase is a number within 0 and 1, always the same for a task.
func phase(taskID string) float64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(taskID))
	x := h.Sum64() // whose upper bits differ little for ids that differ little
	x ^= x >> 33
	x *= 0xff51afd7ed558ccd
	x ^= x >> 33
	return (float64(x>>11) + 1) / (1 << 53)
}

// again is when to ask for a row that was asked for at that moment and runs.
func (p *pace) again(row mediagate.Await, asked time.Time) time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	t := p.track(row, 1)
	t.due = asked.Add(max(p.until(t.model, asked.Sub(row.AcceptedAt), 1), p.shortest))
	return t.due
}

// ran notes that a job was seen to run.
func (p *pace) ran(row mediagate.Await, asked time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.track(row, 1).asked = asked
}

// incomplete is since when the answers about a job lack media.
func (p *pace) incomplete(row mediagate.Await, asked time.Time) time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	t := p.track(row, 1)
	if t.lacking.IsZero() {
		t.lacking = asked
	}
	return t.lacking
}

// ended learns from an end that was seen.
func (p *pace) ended(row mediagate.Await, seen time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	t := p.track(row, 1)
	delete(p.rows, rowKey{row.TaskID, row.N})
	if !t.asked.IsZero() && seen.After(t.asked) {
		t.model.learn(t.asked.Sub(row.AcceptedAt), seen.Sub(row.AcceptedAt))
	}
}

// ahead returns which rows to ask for when the budget has room and no row is due: those
// that are due after beyond, the next ones first. crowded says that more rows wait than
// the budget can ask for at the shortest interval. Then beyond is now; otherwise only
// rows count whose times were set when more waited.
func (p *pace) ahead(now time.Time) (beyond time.Time, crowded bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if math.IsInf(p.pressure, 1) {
		return now.Add(p.shortest), false
	}
	return now, true
}

// synthetic is the progress of a job whose vendor gives none: the share of
// the expected time, never the end.
func synthetic(elapsed, expected time.Duration) int {
	if expected <= 0 {
		return 0
	}
	return int(min(95, max(0, 100*elapsed/expected)))
}
