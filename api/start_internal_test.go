package api

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mediagate/mediagate"
)

var errNoTemporal = errors.New("temporal is away")

// temporal is what starts are made at, and the database that knows their leases.
type temporal struct {
	mu      sync.Mutex
	does    func(ctx context.Context, id string) error // nil: takes 10 ms
	asked   []mediagate.Task                           // in their order
	started map[string]time.Time
	leased  map[string]time.Time // the last time
	away    bool                 // the database
}

func (p *temporal) Start(ctx context.Context, t mediagate.Task) error {
	p.mu.Lock()
	p.asked = append(p.asked, t)
	does := p.does
	p.mu.Unlock()
	if does == nil {
		does = taking(10 * time.Millisecond)
	}
	if err := does(ctx, t.ID); err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.started[t.ID] = time.Now()
	return nil
}

func (p *temporal) Cancel(context.Context, string) error { return nil }

func (p *temporal) SignalAction(context.Context, mediagate.Action) error { return nil }

func (p *temporal) MarkChecked(_ context.Context, ids []string, seen bool) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.away || seen {
		return errors.New("no lease")
	}
	for _, id := range ids {
		p.leased[id] = time.Now()
	}
	return nil
}

// will says what becomes of starts from now on.
func (p *temporal) will(do func(ctx context.Context, id string) error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.does = do
}

func (p *temporal) count() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.started)
}

func taking(d time.Duration) func(context.Context, string) error {
	return func(ctx context.Context, _ string) error {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(d):
			return nil
		}
	}
}

func failing(context.Context, string) error { return errNoTemporal }

// queue is starts under test, on the bubble's clock.
type queue struct {
	*starts
	t        *testing.T
	temporal *temporal
	lines    *lockedBuffer
	added    int
}

type lockedBuffer struct {
	mu sync.Mutex
	bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.Buffer.Write(p)
}

// take returns what was written since it was called last.
func (b *lockedBuffer) take() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	defer b.Reset()
	return b.String()
}

// withQueue runs a test in a bubble. In the end no task may be unaccounted for.
func withQueue(t *testing.T, test func(*queue)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		q := &queue{t: t, temporal: &temporal{started: map[string]time.Time{}, leased: map[string]time.Time{}}, lines: &lockedBuffer{}}
		q.starts = newStarts(q.temporal, q.temporal, slog.New(slog.NewJSONHandler(q.lines, nil)))
		test(q)
		q.close()
		synctest.Wait()
		if left, _ := q.told(); left+q.temporal.count() < q.added {
			t.Errorf("of %d tasks %d were started and %d left to the reconciler", q.added, q.temporal.count(), left)
		}
	})
}

// submit adds a task of the account, and returns how long that took.
func (q *queue) submit(account string) time.Duration {
	q.added++
	began := time.Now()
	q.add(mediagate.Task{ID: fmt.Sprintf("%s-%d", account, q.added), AccountID: account}, began)
	return time.Since(began)
}

// fill takes all the room that the account has.
func (q *queue) fill(account string) {
	q.t.Helper()
	for {
		q.mu.Lock()
		room := q.roomFor(account)
		q.mu.Unlock()
		if !room {
			return
		}
		if took := q.submit(account); took != 0 {
			q.t.Fatalf("with room a submit takes %s", took)
		}
	}
}

// told is how many tasks the log says are left to the reconciler, in how many lines.
func (q *queue) told() (tasks, lines int) {
	q.t.Helper()
	q.lines.mu.Lock()
	defer q.lines.mu.Unlock()
	for line := range strings.Lines(q.lines.String()) {
		var entry struct {
			Level, Msg string
			Tasks      int
		}
		if err := json.Unmarshal([]byte(line), &entry); err != nil {
			q.t.Fatal(err)
		}
		if entry.Msg == "workflows not started, the reconciler will" {
			if entry.Level != "WARN" {
				q.t.Errorf("the line has the level %s", entry.Level)
			}
			tasks += entry.Tasks
			lines++
		}
	}
	return tasks, lines
}

// counts is how much waits, and how much is left to the reconciler that the log
// does not tell of yet.
func (q *queue) counts() (waiting, left int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.waiting, q.left
}

// open is how much waits or is under way.
func (q *queue) open() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.waiting + q.underway
}

// A submit waits for a start only where there is no room and Temporal keeps pace.
func TestWhoWaitsForStarts(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		before, then   func(context.Context, string) error // what starts do while the queue fills, and from then on
		settle         time.Duration                       // until the submits
		first, further time.Duration                       // how long these wait
		left           bool                                // the last one is left to the reconciler
	}{
		"in pace":          {taking(400 * time.Millisecond), taking(400 * time.Millisecond), 0, 400 * time.Millisecond, 400 * time.Millisecond, false},
		"fails":            {taking(time.Millisecond), failing, 20 * time.Millisecond, 0, 0, true},
		"hangs all along":  {taking(time.Hour), taking(time.Hour), lateStart, 0, 0, true},
		"begins to hang":   {taking(400 * time.Millisecond), taking(time.Hour), 0, lateStart, 0, true},
		"is slow":          {taking(time.Second), taking(time.Second), lateStart, 0, 0, true},
		"is in pace again": {failing, taking(10 * time.Millisecond), 2 * time.Second, 10 * time.Millisecond, 10 * time.Millisecond, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			withQueue(t, func(q *queue) {
				q.temporal.will(test.before)
				q.fill("a")
				synctest.Wait() // the starters have theirs
				q.fill("a")
				q.temporal.will(test.then)
				time.Sleep(test.settle)
				q.fill("a")
				if took := q.submit("a"); took != test.first {
					q.t.Errorf("the first submit without room takes %s, want %s", took, test.first)
				}
				q.fill("a")
				before, _ := q.counts()
				if took := q.submit("a"); took != test.further {
					q.t.Errorf("a further one takes %s, want %s", took, test.further)
				}
				if after, left := q.counts(); (after <= before && left > 0) != test.left {
					q.t.Errorf("%d wait after %d, and %d are left to the reconciler", after, before, left)
				}
			})
		})
	}
}

// The queue never has more than its bound, whoever submits, and everything is
// started.
func TestStartsAreBounded(t *testing.T) {
	t.Parallel()
	withQueue(t, func(q *queue) {
		var clients sync.WaitGroup
		const accounts, each = 40, 200
		for a := range accounts {
			clients.Go(func() {
				for i := range each {
					q.add(mediagate.Task{ID: fmt.Sprintf("%d-%d", a, i), AccountID: fmt.Sprint(a)}, time.Now())
					q.mu.Lock()
					if q.waiting > mostStarts {
						q.t.Errorf("%d wait", q.waiting)
					}
					q.mu.Unlock()
				}
			})
		}
		clients.Wait()
		q.added = accounts * each
		q.drain(q.t.Context())
		if got := q.temporal.count(); got != q.added {
			q.t.Errorf("%d of %d are started", got, q.added)
		}
	})
}

// An account that has filled what it may leaves room, and turns, to others.
func TestStartsTakeTurns(t *testing.T) {
	t.Parallel()
	withQueue(t, func(q *queue) {
		q.temporal.will(taking(100 * time.Millisecond))
		q.fill("crowd")
		for _, account := range []string{"b", "c", "c"} {
			if took := q.submit(account); took != 0 {
				q.t.Errorf("a submit of another account takes %s", took)
			}
		}
		time.Sleep(time.Second)
		q.temporal.mu.Lock()
		var order []string
		for _, task := range q.temporal.asked[:starters+6] {
			order = append(order, task.AccountID)
		}
		q.temporal.mu.Unlock()
		for account, latest := range map[string]int{"b": starters + 3, "c": starters + 3} {
			if at := slices.Index(order, account); at < 0 || at >= latest {
				q.t.Errorf("%s starts beside a crowd in the order %v", account, order)
			}
		}
		if n := len(order) - len(slices.DeleteFunc(slices.Clone(order), func(a string) bool { return a == "c" })); n != 2 {
			q.t.Errorf("%d of two are started: %v", n, order)
		}
		q.temporal.will(taking(0))
		q.drain(q.t.Context())
	})
}

// While Temporal keeps pace no lease ends of what waits, however long.
func TestLeasesAreProlonged(t *testing.T) {
	t.Parallel()
	withQueue(t, func(q *queue) {
		q.temporal.will(taking(300 * time.Millisecond))
		began := time.Now()
		for range 400 {
			q.submit("a")
		}
		q.drain(q.t.Context())
		if took := time.Since(began); took < 4*mediagate.StartLease {
			q.t.Fatalf("all are started after %s: too soon to prove anything", took)
		}
		for id, at := range q.temporal.started {
			leased, ok := q.temporal.leased[id]
			if !ok {
				leased = began
			}
			if at.Sub(leased) > mediagate.StartLease {
				q.t.Errorf("%s was started %s after its lease began", id, at.Sub(leased))
			}
		}
		if q.temporal.leased["a-1"] != (time.Time{}) {
			q.t.Error("the lease of a task that hardly waited was prolonged")
		}
	})
}

// What cannot be started is the reconciler's as soon as its lease is over: it is
// neither leased nor started here any more.
func TestLeasesEnd(t *testing.T) {
	t.Parallel()
	for name, does := range map[string]func(context.Context, string) error{"away": failing, "hangs": taking(time.Hour)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			withQueue(t, func(q *queue) {
				q.temporal.will(does)
				for range 300 {
					q.submit("a")
				}
				time.Sleep(mediagate.StartLease + 3*time.Second)
				if n := q.open(); n > starters {
					q.t.Errorf("%d still wait", n)
				}
				if n := len(q.temporal.leased); n > 0 {
					q.t.Errorf("%d are leased", n)
				}
				q.temporal.will(nil)
				time.Sleep(time.Minute)
				if n := q.temporal.count(); n != 0 {
					q.t.Errorf("%d are started later all the same", n)
				}
				if left, lines := q.told(); left != 300 || lines > 3 {
					q.t.Errorf("%d are told of in %d lines", left, lines)
				}
				if took := q.submit("a"); took != 0 {
					q.t.Errorf("a submit takes %s", took)
				}
				time.Sleep(time.Second)
				if n := q.temporal.count(); n != 1 {
					q.t.Error("a submit after that is not started")
				}
			})
		})
	}
}

// Without the database's answer what waits is started all the same.
func TestLeaseNotProlonged(t *testing.T) {
	t.Parallel()
	withQueue(t, func(q *queue) {
		q.temporal.away = true
		q.temporal.will(taking(300 * time.Millisecond))
		for range 200 {
			q.submit("a")
		}
		q.drain(q.t.Context())
		if got := q.temporal.count(); got != q.added {
			q.t.Errorf("%d of %d are started", got, q.added)
		}
		if !strings.Contains(q.lines.String(), "the reconciler may start what waits here") {
			q.t.Error("the log says nothing")
		}
	})
}

// A long outage is a line now and then, which counts.
func TestLeftInOneLine(t *testing.T) {
	t.Parallel()
	withQueue(t, func(q *queue) {
		q.temporal.will(failing)
		for range 60 {
			for range 50 {
				q.submit("a")
			}
			time.Sleep(time.Second)
		}
		time.Sleep(time.Minute)
		left, lines := q.told()
		if left != q.added || lines == 0 || lines > 10 {
			q.t.Errorf("%d of %d are told of in %d lines", left, q.added, lines)
		}
		if !strings.Contains(q.lines.String(), errNoTemporal.Error()) {
			q.t.Error("no line says why")
		}
	})
}

// stalling is a Temporal that answers nothing that is asked in that time from now on.
func stalling(d time.Duration) func(context.Context, string) error {
	from := sync.OnceValue(time.Now) // by the clock of the bubble that asks
	return func(ctx context.Context, id string) error {
		if time.Since(from()) < d {
			return taking(time.Hour)(ctx, id)
		}
		return taking(10*time.Millisecond)(ctx, id)
	}
}

// refusing is a Temporal that takes all but one.
func refusing(refused string) func(context.Context, string) error {
	return func(ctx context.Context, id string) error {
		if id == refused {
			return errNoTemporal
		}
		return taking(10*time.Millisecond)(ctx, id)
	}
}

// A stop starts what waits, within its time, and gives up where Temporal takes nothing
// for a while. What it took too long for once is tried again.
func TestDrain(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		does  func(context.Context, string) error
		takes time.Duration
		left  int
	}{
		"all in time":    {taking(100 * time.Millisecond), 5 * time.Second, 0},
		"time is up":     {taking(450 * time.Millisecond), 10 * time.Second, 112}, // those under way among them
		"Temporal away":  {failing, drainPatience, 200},
		"Temporal hangs": {taking(time.Hour), drainPatience, 200},
		"it hung":        {stalling(4 * time.Second), 6500 * time.Millisecond, 0}, // asked at 0, 3 and 6 s
		"one is refused": {refusing("a-7"), 500*time.Millisecond + drainPatience, 1},
		"a start panics": {func(context.Context, string) error { panic("oh") }, drainPatience, 200},
		"nothing waits":  {nil, 0, 0},
		"at once":        {taking(0), 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			withQueue(t, func(q *queue) {
				q.temporal.will(test.does)
				if test.does != nil {
					for range 200 {
						q.submit("a")
					}
				}
				grace, cancel := context.WithTimeout(q.t.Context(), 10*time.Second)
				defer cancel()
				began := time.Now()
				q.drain(grace)
				if took := time.Since(began); took != test.takes {
					q.t.Errorf("the drain takes %s, want %s", took, test.takes)
				}
				q.close()
				q.close() // a second time says nothing new
				synctest.Wait()
				if left, lines := q.told(); left != test.left || lines > 2 { // one may have come before the stop
					q.t.Errorf("%d are told of in %d lines, want %d", left, lines, test.left)
				}
				asked := len(q.temporal.asked)
				time.Sleep(time.Minute)
				if len(q.temporal.asked) != asked {
					q.t.Error("starts are made after the stop")
				}
				if q.submit("a"); q.open() != 0 {
					q.t.Error("a submit after the stop waits")
				}
			})
		})
	}
}

// A panic costs one start.
func TestStarterPanics(t *testing.T) {
	t.Parallel()
	withQueue(t, func(q *queue) {
		q.temporal.will(func(_ context.Context, id string) error {
			if id == "a-7" {
				panic("oh")
			}
			return nil
		})
		for range 100 {
			q.submit("a")
		}
		time.Sleep(2 * reportEvery)
		if left, _ := q.told(); left != 1 || q.temporal.count() != 99 {
			q.t.Errorf("%d left, %d started", left, q.temporal.count())
		}
		if !strings.Contains(q.lines.String(), "a start panicked") {
			q.t.Error("the log says nothing")
		}
	})
}

// What waits is small: of a task's parts that may be long none is kept.
func TestStartKeepsLittle(t *testing.T) {
	t.Parallel()
	withQueue(t, func(q *queue) {
		whole := mediagate.Task{
			ID: "task_1", AccountID: "a", KeyID: "key_1", Model: "m", Type: mediagate.TypeArt, Status: mediagate.StatusPending, Hold: 7,
			Params: json.RawMessage(`{}`), Charges: []mediagate.Charge{{}}, Webhook: &mediagate.Webhook{},
			Plan: mediagate.Plan{
				Action: "INPAINT", Routes: []mediagate.Route{{Provider: "p"}}, Skipped: []mediagate.SkippedRoute{{Provider: "q"}},
				Uploads: map[string]string{"a": "b"}, Inputs: []mediagate.Input{{}}, Source: &mediagate.Source{},
			},
		}
		q.added++
		q.add(whole, time.Now())
		q.drain(q.t.Context())
		got := q.temporal.asked[0]
		if got.Params != nil || got.Charges != nil || got.Webhook != nil || got.Plan.Uploads != nil || got.Plan.Inputs != nil || got.Plan.Source != nil {
			q.t.Errorf("kept: %+v", got)
		}
		if got.ID != whole.ID || got.KeyID != whole.KeyID || got.Model != whole.Model || got.Type != whole.Type || got.Status != whole.Status ||
			got.Hold != whole.Hold || got.Plan.Action != whole.Plan.Action || len(got.Plan.Routes) != 1 || len(got.Plan.Skipped) != 1 {
			q.t.Errorf("lost: %+v", got)
		}
	})
}

// Whose start waits needs no signal.
func TestStartsHeld(t *testing.T) {
	t.Parallel()
	withQueue(t, func(q *queue) {
		for range starters + 2 {
			q.submit("a")
		}
		synctest.Wait()
		last := fmt.Sprintf("a-%d", starters+2)
		for _, test := range []struct {
			account, id string
			want        bool
		}{{"a", last, true}, {"a", "a-1", false}, {"b", last, false}, {"a", "a-99", false}} {
			if got := q.holds(test.account, test.id); got != test.want {
				q.t.Errorf("%s of %s: %t", test.id, test.account, got)
			}
		}
		q.drain(q.t.Context())
		if q.holds("a", last) {
			q.t.Error("a task is held that was started")
		}
	})
}

// Submits that are being answered get the cores: one starter is at work meanwhile,
// all when they are over, and when a start has to wait for too long.
func TestSubmitsGoFirst(t *testing.T) {
	t.Parallel()
	working := func(q *queue) int {
		synctest.Wait()
		q.mu.Lock()
		defer q.mu.Unlock()
		return q.underway
	}
	t.Run("until they are answered", func(t *testing.T) {
		t.Parallel()
		withQueue(t, func(q *queue) {
			first, second := q.answering(), q.answering()
			for range 50 {
				q.submit("a")
			}
			for range 20 {
				if n := working(q); n != busyStarters {
					q.t.Fatalf("%d starts under way beside submits, want %d", n, busyStarters)
				}
				time.Sleep(10 * time.Millisecond)
			}
			first()
			if n := working(q); n != busyStarters {
				q.t.Errorf("%d starts under way beside a submit, want %d", n, busyStarters)
			}
			second()
			if n := working(q); n != starters {
				q.t.Errorf("%d starts under way, want %d", n, starters)
			}
			defer q.answering()()
			time.Sleep(10 * time.Millisecond)
			if n := working(q); n != busyStarters {
				q.t.Errorf("%d starts under way beside a later submit, want %d", n, busyStarters)
			}
			q.drain(q.t.Context())
		})
	})
	t.Run("with rests beside many", func(t *testing.T) {
		t.Parallel()
		withQueue(t, func(q *queue) {
			pace := func(answers int) int { // of starts of 10 ms, in a second in which so many submits are answered during each
				synctest.Wait()
				before := q.temporal.count()
				for range 100 {
					time.Sleep(5 * time.Millisecond)
					for range answers {
						q.answering()()
					}
					time.Sleep(5 * time.Millisecond)
				}
				synctest.Wait()
				return q.temporal.count() - before
			}
			for range 50 { // wait for something, which is nothing to the starter
				defer q.answering()()
			}
			for range 400 {
				q.submit("a")
			}
			if n := pace(manySubmits); n < 98 {
				q.t.Errorf("%d starts a second beside a few submits, want 100", n)
			}
			if n := pace(manySubmits + 1); n < 8 || n > 11 {
				q.t.Errorf("%d starts a second beside many submits, want 9", n)
			}
			if n := pace(manySubmits + 1); n < 180 { // by now they have waited for too long
				q.t.Errorf("%d starts a second of what has waited for too long, want the rest of them", n)
			}
			q.drain(q.t.Context())
		})
	})
	t.Run("for a while", func(t *testing.T) {
		t.Parallel()
		withQueue(t, func(q *queue) {
			defer q.answering()()
			q.temporal.will(taking(100 * time.Millisecond))
			for range 100 {
				q.submit("a")
			}
			time.Sleep(starterWait + 200*time.Millisecond)
			if n := working(q); n != starters {
				q.t.Errorf("%d starts under way though one waits for %s, want %d", n, starterWait, starters)
			}
			q.drain(q.t.Context())
		})
	})
}

// Beside a crowd of submits one starter works, "for as long as no start waits longer"
// than starterWait: also where the start that waits is not of the account whose turn
// is next. Here others bring one task each, fewer than even the resting starter starts.
func TestLongWaitIsSeenBehindOthersTurns(t *testing.T) {
	t.Parallel()
	withQueue(t, func(q *queue) {
		defer q.answering()()
		const crowd = 200 // half a second's work of the four starters
		began := time.Now()
		for range crowd {
			q.submit("a")
		}
		oldest := func() (age time.Duration) {
			q.mu.Lock()
			defer q.mu.Unlock()
			for _, line := range q.turns {
				age = max(age, time.Since(line.tasks[0].made))
			}
			return age
		}
		longest := time.Duration(0)
		for i := 0; time.Since(began) < 30*time.Second; i++ {
			time.Sleep(time.Second / 18)
			for range 10 * manySubmits { // what is answered meanwhile makes the starter rest
				q.answering()()
			}
			q.submit(fmt.Sprint("other-", i))
			longest = max(longest, oldest())
		}
		if longest > 2*starterWait {
			q.t.Errorf("a start waits for %s, %d of %d are made after 30 s", longest, q.temporal.count(), q.added)
		}
		q.temporal.will(taking(0))
		q.drain(q.t.Context())
	})
}
