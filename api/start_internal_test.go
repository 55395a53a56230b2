package api

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/limit"
)

var errNoTemporal = errors.New("temporal is away")

// temporal is where starts are made.
type temporal struct {
	does    atomic.Value // func(context.Context) error: what becomes of starts from now on
	mu      sync.Mutex
	asked   []mediagate.Task // in their order
	started int
}

func (p *temporal) Start(ctx context.Context, t mediagate.Task) error {
	p.mu.Lock()
	p.asked = append(p.asked, t)
	p.mu.Unlock()
	err := p.does.Load().(func(context.Context) error)(ctx)
	p.mu.Lock()
	defer p.mu.Unlock()
	if err == nil || mediagate.Is(err, mediagate.KindConflict) {
		p.started++
	}
	return err
}

func (p *temporal) Wake(context.Context, string) (bool, error) { return false, nil }

func (p *temporal) StartJob(context.Context, mediagate.TaskJob) error { return nil }

// count is how many starts were asked for, and how many of them went well.
func (p *temporal) count() (asked, started int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.asked), p.started
}

func taking(d time.Duration) func(context.Context) error {
	return func(ctx context.Context) error {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(d):
			return nil
		}
	}
}

func (*temporal) Run(context.Context, string) (runID, page string, err error) { return "", "", nil }

func failing(context.Context) error { return errNoTemporal }

const (
	mostStarts = 4096
	starters   = 4 // of an account that is alone
)

// queue is starts under test, on the bubble's clock.
type queue struct {
	*starts
	t        *testing.T
	temporal *temporal
	log      bytes.Buffer // complete once the starts are closed
	added    int
}

// withQueue runs a test in a bubble, with starts that take 10 ms. In the end each
// task was started or is left to the wake scan, which the log says.
func withQueue(t *testing.T, test func(*queue)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		q := &queue{t: t, temporal: &temporal{}}
		q.temporal.does.Store(taking(10 * time.Millisecond))
		q.starts = newStarts(q.temporal, &limit.Process{Starts: limit.New("", mostStarts), Starters: limit.New("", 2*starters)}, slog.New(slog.NewJSONHandler(&q.log, nil)))
		defer q.close()
		test(q)
		q.close()
		_, started := q.temporal.count()
		if left, _ := q.reports(); left+started != q.added {
			t.Errorf("of %d tasks %d were started and %d left to the wake scan", q.added, started, left)
		}
	})
}

// submit adds so many tasks of the account, which takes no time.
func (q *queue) submit(account string, n int) {
	q.t.Helper()
	began := time.Now()
	for range n {
		q.added++
		q.add(mediagate.Task{ID: fmt.Sprintf("%s-%d", account, q.added), AccountID: account}, began)
	}
	if took := time.Since(began); took != 0 {
		q.t.Errorf("%d submits wait for %s", n, took)
	}
}

// reports is how many tasks the log says are left to the wake scan, in how many lines.
func (q *queue) reports() (tasks, lines int) {
	q.t.Helper()
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, found := range regexp.MustCompile(`"runs not started.*"tasks":(\d+)`).FindAllStringSubmatch(q.log.String(), -1) {
		n, err := strconv.Atoi(found[1])
		if err != nil {
			q.t.Fatal(err)
		}
		tasks, lines = tasks+n, lines+1
	}
	return tasks, lines
}

func (q *queue) queued(account string) int {
	q.mu.Lock()
	defer q.mu.Unlock()
	n := 0
	for id := range q.waiting {
		if strings.HasPrefix(id, account+"-") {
			n++
		}
	}
	return n
}

// An account may have half of the room, the next one half of the rest, whatever
// Temporal does; and one that submits a little is started beside those that crowd.
func TestAccountsShareTheStarts(t *testing.T) {
	t.Parallel()
	withQueue(t, func(q *queue) {
		q.temporal.does.Store(taking(100 * time.Millisecond))
		for _, account := range []string{"a", "b"} {
			q.submit(account, 2*mostStarts)
		}
		const working = starters // of each at most
		if a, b := q.queued("a"), q.queued("b"); a < mostStarts/2-working || a > mostStarts/2 || b < mostStarts/4-working || b > mostStarts/4 {
			q.t.Errorf("two crowds have %d and %d starts waiting", a, b)
		}
		q.submit("c", 2)
		time.Sleep(time.Second)
		q.temporal.mu.Lock()
		defer q.temporal.mu.Unlock()
		first := q.temporal.asked[:3*starters]
		if n := len(slices.DeleteFunc(slices.Clone(first), func(t mediagate.Task) bool { return t.AccountID != "c" })); n != 2 {
			q.t.Errorf("%d of two are among the first %d starts", n, len(first))
		}
	})
}

// What cannot be started in time is left to the wake scan, and not started here.
func TestStartsExpire(t *testing.T) {
	t.Parallel()
	for name, does := range map[string]func(context.Context) error{"away": failing, "hangs": taking(time.Hour)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			withQueue(t, func(q *queue) {
				q.temporal.does.Store(does)
				for range 30 {
					q.submit("a", 100)
					time.Sleep(time.Second)
				}
				q.temporal.does.Store(taking(0))
				time.Sleep(startDeadline + 2*startPause) // each starter has been through its last failure
				if n := q.queued("a"); n > 0 {
					q.t.Errorf("%d still wait", n)
				}
				_, early := q.temporal.count()
				if early > 100*int(startPatience/time.Second) {
					q.t.Errorf("%d are started once Temporal is there: some have waited for too long", early)
				}
				time.Sleep(time.Minute)
				if left, lines := q.reports(); left != q.added-early || lines < 3 || lines > 4 {
					q.t.Errorf("of %d, %d are reported in %d lines", q.added-early, left, lines)
				}
				if name == "away" && !strings.Contains(q.log.String(), errNoTemporal.Error()) {
					q.t.Error("no line says why")
				}
				q.submit("a", 1)
				synctest.Wait()
				if _, started := q.temporal.count(); started != early+1 {
					q.t.Error("a later submit is not started")
				}
			})
		})
	}
}

// A stop starts what waits, and ends within seconds. Nothing is started after it.
func TestDrain(t *testing.T) {
	t.Parallel()
	const drainTime = startPatience + time.Second/2
	for name, test := range map[string]struct {
		tasks int
		does  func(context.Context) error
		takes time.Duration
		left  int
	}{
		"nothing waits":  {0, failing, 0, 0},
		"all in time":    {200, taking(50 * time.Millisecond), 2500 * time.Millisecond, 0},
		"too many":       {500, taking(70 * time.Millisecond), 5040 * time.Millisecond, 212},
		"Temporal away":  {200, failing, startPatience, 200},
		"time is up":     {200, taking(time.Hour), drainTime, 200},
		"a start panics": {4, func(context.Context) error { panic("oh") }, startPause, 4},
		"a start exists": {4, func(context.Context) error { return mediagate.Errorf(mediagate.KindConflict, "it runs") }, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			withQueue(t, func(q *queue) {
				q.temporal.does.Store(test.does)
				q.submit("a", test.tasks)
				grace, cancel := context.WithTimeout(q.t.Context(), drainTime)
				defer cancel()
				began := time.Now()
				q.drain(grace)
				if took := time.Since(began); took != test.takes {
					q.t.Errorf("the drain takes %s, want %s", took, test.takes)
				}
				q.close()
				if left, lines := q.reports(); left != test.left || lines > 1 {
					q.t.Errorf("%d are reported in %d lines, want %d", left, lines, test.left)
				}
				asked, _ := q.temporal.count()
				q.submit("a", 1)
				time.Sleep(time.Minute)
				if again, _ := q.temporal.count(); again != asked {
					q.t.Error("starts are made after the stop")
				}
			})
		})
	}
}

// Beside many submits the starters rest; when those are over they do not.
func TestSubmitsGoFirst(t *testing.T) {
	t.Parallel()
	withQueue(t, func(q *queue) {
		pace := func(answers int64) int { // starts in a second, with so many submits answered during each
			_, before := q.temporal.count()
			for range 100 {
				time.Sleep(5 * time.Millisecond)
				q.answered.Add(answers)
				time.Sleep(5 * time.Millisecond)
			}
			synctest.Wait()
			_, after := q.temporal.count()
			return after - before
		}
		q.submit("a", 1000)
		if n := pace(manySubmits); n < 98*starters || n > 100*starters {
			q.t.Errorf("%d starts a second beside a few submits", n)
		}
		if n := pace(manySubmits + 1); n > 5*starters {
			q.t.Errorf("%d starts a second beside many submits", n)
		}
		if n := pace(0); n < 90*starters {
			q.t.Errorf("%d starts in the second after them", n)
		}
		q.drain(q.t.Context())
	})
}

// Of a task's parts that may be long none is kept while its start waits, which holds
// tells.
func TestStartThatWaits(t *testing.T) {
	t.Parallel()
	withQueue(t, func(q *queue) {
		q.submit("a", starters)
		synctest.Wait() // they are under way
		want := mediagate.Task{
			ID: "task_1", AccountID: "a", KeyID: "key_1", Model: "m", Type: mediagate.TypeArt, Status: mediagate.StatusPending, Hold: 7,
			Plan: mediagate.Plan{Action: "INPAINT", Routes: []mediagate.Route{{Provider: "p"}}, Skipped: []mediagate.SkippedRoute{{Provider: "q"}}},
		}
		whole := want
		whole.Params, whole.Charges, whole.Webhook = json.RawMessage(`{}`), []mediagate.Charge{{}}, &mediagate.Webhook{}
		whole.Plan.Uploads, whole.Plan.Inputs, whole.Plan.Source = map[string]string{"a": "b"}, []mediagate.Input{{}}, &mediagate.Source{}
		q.added++
		q.add(whole, time.Now())
		synctest.Wait()
		if !q.holds("task_1") || q.holds("a-1") {
			q.t.Error("what waits is held, and nothing else")
		}
		q.drain(q.t.Context())
		if q.holds("task_1") {
			q.t.Error("a task is held that was started")
		}
		if diff := cmp.Diff(want, q.temporal.asked[starters]); diff != "" {
			q.t.Errorf("what its start gets (-want +got):\n%s", diff)
		}
	})
}
