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
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/internal/limit"
)

var errNoTemporal = errors.New("temporal is away")

// temporal records the starts.
type temporal struct {
	does    atomic.Value // func(context.Context) error: what becomes of starts from now on
	mu      sync.Mutex
	asked   []mediagate.Task // in their order
	started int
	full    atomic.Bool // as many tasks wait as the process starts itself
}

func (p *temporal) MayStart(context.Context, string) (bool, error) { return !p.full.Load(), nil }

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
func (p *temporal) Job(context.Context, string) (status mediagate.TaskJobStatus, runID, page string, err error) {
	return status, "", "", nil
}

// count returns the number of requested and of successful starts.
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

// queue is the starts under test, on the bubble's clock.
type queue struct {
	*starts
	t        *testing.T
	temporal *temporal
	log      bytes.Buffer // complete once the starts are closed
	added    int
}

// withQueue runs a test in a bubble, with starts that take 10 ms.
func withQueue(t *testing.T, test func(*queue)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		q := &queue{t: t, temporal: &temporal{}}
		q.temporal.does.Store(taking(10 * time.Millisecond))
		q.starts = newStarts(q.temporal, q.temporal, &limit.Process{Starts: limit.New("", mostStarts), Starters: limit.New("", 2*starters)}, slog.New(slog.NewJSONHandler(&q.log, nil)))
		defer q.close()
		test(q)
		q.close()
		if held := q.limits.Starts.Figures().Held; held != 0 {
			t.Errorf("%d starts are held in the end", held)
		}
	})
}

// submit adds n tasks of the account in no time.
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

// TestAccountsShareTheStarts checks that an account may use half of the room and the next one
// half of the rest, whatever Temporal does. An account with few submits is started while others
// submit many.
func TestAccountsShareTheStarts(t *testing.T) {
	t.Parallel()
	withQueue(t, func(q *queue) {
		q.temporal.does.Store(taking(100 * time.Millisecond))
		q.submit("a", 2*mostStarts)
		if n := q.limits.Starts.Figures().Held; n != mostStarts/2 {
			q.t.Errorf("of a crowd %d wait", n)
		}
		q.submit("b", 2*mostStarts)
		if n := q.limits.Starts.Figures().Held; n != mostStarts/2+mostStarts/4 {
			q.t.Errorf("of two crowds %d wait", n)
		}
		q.submit("c", 2)
		time.Sleep(150 * time.Millisecond) // when the second start of each permit is under way
		q.temporal.mu.Lock()
		defer q.temporal.mu.Unlock()
		asked := q.temporal.asked
		if n := len(slices.DeleteFunc(slices.Clone(asked), func(t mediagate.Task) bool { return t.AccountID != "c" })); n != 2 {
			q.t.Errorf("%d of two are among the first %d starts", n, len(asked))
		}
	})
}

// TestStartsExpire checks that a start that cannot be made in time is left to the wake scan and
// that the log says so, with the reason, once in a while.
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
				time.Sleep(startPatience)
				synctest.Wait()
				_, early := q.temporal.count()
				if early > 100*int(startPatience/time.Second) {
					q.t.Errorf("%d are started once Temporal is there: some have waited for too long", early)
				}
				if held := q.limits.Starts.Figures().Held; held > 0 {
					q.t.Errorf("%d still wait", held)
				}
				if lines := strings.Count(q.log.String(), "a run was not started"); lines < 3 || lines > 4 {
					q.t.Errorf("%d lines", lines)
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

// TestStartsOfABurst checks that the starts of a burst are left to the wake scan without a log
// line.
func TestStartsOfABurst(t *testing.T) {
	t.Parallel()
	withQueue(t, func(q *queue) {
		q.temporal.full.Store(true)
		q.submit("a", 1000)
		synctest.Wait()
		if asked, _ := q.temporal.count(); asked > 0 || q.log.Len() > 0 {
			q.t.Errorf("%d are started, the log says %s", asked, q.log.String())
		}
		q.temporal.full.Store(false)
		q.submit("a", 1)
		time.Sleep(time.Second)
		if _, started := q.temporal.count(); started != 1 {
			q.t.Errorf("%d are started after the burst, want 1", started)
		}
	})
}

// TestDrain checks that a stop makes the waiting starts, ends within seconds, and starts nothing
// after it.
func TestDrain(t *testing.T) {
	t.Parallel()
	const drainTime = startPatience + time.Second/2
	for name, test := range map[string]struct {
		tasks   int
		does    func(context.Context) error
		takes   time.Duration
		started int
	}{
		"nothing waits":  {0, failing, 0, 0},
		"all in time":    {200, taking(50 * time.Millisecond), 2500 * time.Millisecond, 200},
		"too many":       {500, taking(80 * time.Millisecond), startPatience, 248},
		"Temporal away":  {200, failing, 0, 0},
		"time is up":     {200, taking(time.Hour), startPatience, 0},
		"a start panics": {4, func(context.Context) error { panic("oh") }, 0, 0},
		"a start exists": {4, func(context.Context) error { return mediagate.Errorf(mediagate.KindConflict, "it runs") }, 0, 4},
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
				asked, started := q.temporal.count()
				if started != test.started || started < test.tasks && !strings.Contains(q.log.String(), "a run was not started") {
					q.t.Errorf("%d are started, the log says %s", started, q.log.String())
				}
				q.submit("a", 1)
				time.Sleep(time.Minute)
				if again, _ := q.temporal.count(); again != asked {
					q.t.Error("starts are made after the stop")
				}
			})
		})
	}
}

// TestForStart checks that the long parts of a task are not kept while its start waits.
func TestForStart(t *testing.T) {
	t.Parallel()
	want := mediagate.Task{
		ID: "task_1", AccountID: "a", KeyID: "key_1", Model: "m", Type: mediagate.TypeArt, Status: mediagate.StatusPending, Hold: 7,
		Plan: mediagate.Plan{Action: "INPAINT", Routes: []mediagate.Route{{Provider: "p"}}, Skipped: []mediagate.SkippedRoute{{Provider: "q"}}, Inputs: []mediagate.Input{{}}},
	}
	whole := want
	whole.Params, whole.Charges, whole.Webhook = json.RawMessage(`{}`), []mediagate.Charge{{}}, mediagate.Webhook{}
	whole.Plan.Uploads, whole.Plan.Source = map[string]string{"a": "b"}, &mediagate.Source{}
	if diff := cmp.Diff(want, forStart(whole)); diff != "" {
		t.Errorf("what its start gets (-want +got):\n%s", diff)
	}
}
