package activities_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/activities"
	"github.com/mediagate/mediagate/activities/activitytest"
	"github.com/mediagate/mediagate/task"
)

// slippery is a store that may fail calls before they take effect, or lose their answers
// afterwards.
type slippery struct {
	activities.Store
	before, after func(method string) error // nil if no call fails
}

func slip[T any](s slippery, method string, do func() (T, error)) (none T, err error) {
	if s.before != nil {
		if err := s.before(method); err != nil {
			return none, err
		}
	}
	got, err := do()
	if err == nil && s.after != nil {
		if err := s.after(method); err != nil {
			return none, err
		}
	}
	return got, err
}

func (s slippery) Change(ctx context.Context, id string, events ...task.Event) (task.Changed, error) {
	return slip(s, "Change", func() (task.Changed, error) { return s.Store.Change(ctx, id, events...) })
}

func (s slippery) OpenIntent(
	ctx context.Context, id string, slots mediagate.Slots, intent task.IntentStored,
) (task.Changed, error) {
	return slip(s, "OpenIntent", func() (task.Changed, error) { return s.Store.OpenIntent(ctx, id, slots, intent) })
}

func (s slippery) Command(ctx context.Context, a mediagate.Action, events ...task.Event) (task.Changed, error) {
	return slip(s, "Command", func() (task.Changed, error) { return s.Store.Command(ctx, a, events...) })
}

func (s slippery) Attempt(ctx context.Context, id string, n int) (task.Attempt, error) {
	return slip(s, "Attempt", func() (task.Attempt, error) { return s.Store.Attempt(ctx, id, n) })
}

func (s slippery) TaskByID(ctx context.Context, id string) (mediagate.Task, error) {
	return slip(s, "TaskByID", func() (mediagate.Task, error) { return s.Store.TaskByID(ctx, id) })
}

func (s slippery) State(ctx context.Context, id string, n int) (task.State, error) {
	return slip(s, "State", func() (task.State, error) { return s.Store.State(ctx, id, n) })
}

// counts counts the transactions of the bundle's activities from now on.
func (b *bundle) counts() (writes func() string) {
	var mu sync.Mutex
	times := map[string]int{}
	b.Activities.Store = slippery{Store: b.Store, before: func(method string) error {
		mu.Lock()
		defer mu.Unlock()
		times[method]++
		return nil
	}}
	return func() string {
		mu.Lock()
		defer mu.Unlock()
		return fmt.Sprintf("%d OpenIntent, %d Change", times["OpenIntent"], times["Change"])
	}
}

// onceOf fails the first call that f would fail.
func onceOf(f func(method string) error) func(method string) error {
	var mu sync.Mutex
	var done bool
	return func(method string) error {
		mu.Lock()
		defer mu.Unlock()
		if done {
			return nil
		}
		err := f(method)
		done = err != nil
		return err
	}
}

// fails fails calls of the method with an error of that kind.
func fails(method string, kind mediagate.Kind) func(string) error {
	return failsWith(method, mediagate.Errorf(kind, "a fault of the test"))
}

// failsWith fails calls of the method with the error.
func failsWith(method string, err error) func(string) error {
	return func(m string) error {
		if m == method {
			return err
		}
		return nil
	}
}

// life is a small run of the task, inside a bubble: it asks, takes the step as Temporal does,
// sleeps, and asks again. Its vendor's poller reports each job as ended.
type life struct {
	*activitytest.World
	t     *testing.T
	knows task.Seen // what the run has seen
	steps []string  // the steps that were taken
	last  task.Step
	at    time.Time               // when the last step began
	seen  func(activities.Answer) // is called with each answer; may be nil
	quiet bool                    // only the run changes the task, so the wakes are the run's
}

// live runs the task to its end, within so many steps.
func (l *life) live(most int) mediagate.Task {
	l.t.Helper()
	q := activities.Question{TaskID: taskID}
	var (
		ok  bool
		err error
	)
	answer := l.ask(q)
	for ; most > 0; most-- {
		if l.seen != nil {
			l.seen(answer)
		}
		l.knows = answer.Seen
		step := answer.Step
		if step.Kind == task.Done || answer.Missing {
			t, err := l.Store.TaskByID(l.t.Context(), taskID)
			if err != nil {
				l.t.Fatal(err)
			}
			return t
		}
		if step.Kind == l.last.Kind && step.N == l.last.N && !l.at.Before(time.Now()) {
			l.t.Fatalf("the step %+v comes twice at once, after %v", step, l.steps)
		}
		l.steps, l.last, l.at = append(l.steps, fmt.Sprintf("%s%s %d", step.Kind, step.Why, step.N)), step, time.Now()
		if step.Kind == task.Sleep {
			l.sleep(answer)
			answer = l.ask(q)
			continue
		}
		if answer, ok, err = l.take(step); !ok {
			e := activities.FromTemporal(err)
			answer = l.ask(activities.Question{TaskID: taskID, Ended: &task.StepEnded{
				Step: step.Kind, N: step.N, Failed: true, Kind: e.Kind, Code: e.Code, Reason: e.Message,
			}})
		}
	}
	l.t.Fatalf("no end after the steps %v", l.steps)
	return mediagate.Task{}
}

// ask tries again and again, as a local activity does.
func (l *life) ask(q activities.Question) activities.Answer {
	l.t.Helper()
	q.Seen = l.knows
	for range 10 {
		value, err := newEnv(l.World).ExecuteLocalActivity(l.Activities.Ask, q)
		if err == nil {
			var answer activities.Answer
			if err := value.Get(&answer); err != nil {
				l.t.Fatal(err)
			}
			return answer
		}
		time.Sleep(time.Second)
	}
	l.t.Fatal("the question is not answered")
	return activities.Answer{}
}

// take takes the step, and repeats it as Temporal does.
func (l *life) take(step task.Step) (answer activities.Answer, ok bool, err error) {
	l.t.Helper()
	for range 5 {
		value, failed := newEnv(l.World).ExecuteActivity(
			activityOf(l.World, step.Kind), activities.StepArgs{TaskID: taskID, Step: step, Seen: l.knows},
		)
		if failed == nil {
			if err := value.Get(&answer); err != nil {
				l.t.Fatal(err)
			}
			l.leased(answer)
			return answer, true, nil
		}
		err = failed
		if e := activities.FromTemporal(
			failed,
		); e.Kind == mediagate.KindShutOut || e.Kind == mediagate.KindNotFound || e.Kind == mediagate.KindConflict {
			break
		}
		time.Sleep(time.Second)
	}
	return activities.Answer{}, false, err
}

// leased checks that the answer came with a lease of the run (D2).
func (l *life) leased(answer activities.Answer) {
	l.t.Helper()
	if !l.quiet {
		return
	}
	w, ok := l.Store.Wakes(taskID)[mediagate.WakeRun]
	least := time.Now()
	switch answer.Step.Kind {
	case task.Done:
		if ok {
			l.t.Errorf("a run that is done has a wake at %v", w.At)
		}
		return
	case task.Sleep:
		least = answer.Step.Until
	default:
		least = least.Add(10 * time.Second)
	}
	if !w.Asked || w.Tries > 0 || w.At.Before(least) {
		l.t.Errorf("after %s, and the answer %+v, the run's wake is %+v", l.took(), answer.Step, w)
	}
}

// sleep lets the time pass that the task sleeps, or the time that its job takes.
func (l *life) sleep(answer activities.Answer) {
	step := answer.Step
	until := step.Until.Sub(answer.Now)
	if until <= 0 {
		l.t.Fatalf("a sleep of %v: %+v", until, step)
	}
	if step.Why != task.SleepVendor || until < time.Minute {
		time.Sleep(until)
		return
	}
	time.Sleep(time.Minute)
	outcome := activitytest.Success()
	if err := l.StorePoll(l.t.Context(), mediagate.PollResult{TaskID: taskID, N: step.N, Outcome: &outcome}); err != nil {
		l.t.Fatal(err)
	}
}

// newLife sets the scene, inside a bubble.
func newLife(t *testing.T, submitted func(*activitytest.World) mediagate.Task) *life {
	t.Helper()
	l := &life{World: activitytest.New(t, time.Now), t: t}
	l.Store.Add(submitted(l.World))
	return l
}

// took returns the kinds of the steps that were taken, in order.
func (l *life) took() string { return strings.Join(l.steps, ", ") }

// submitWithin takes the submit of the first attempt in a context of its own. Only what is stored
// counts.
func submitWithin(ctx context.Context, w *activitytest.World) {
	env := newEnv(w)
	env.SetWorkerOptions(workerOptions(ctx))
	_, _ = env.ExecuteActivity(w.Activities.SubmitJob, stepOf(taskID, task.Submit, 1))
}

// answers makes a synchronous vendor answer with a file.
func answers(v *activitytest.Vendor) {
	v.OnSubmit = func(_ context.Context, job mediagate.Job) (mediagate.Submission, error) {
		s, err := v.Accept(job)
		outcome := activitytest.Success()
		outcome.Media[0].MimeType = "image/png"
		s.Outcome = &outcome
		return s, err
	}
}

// last returns the newest attempt.
func (b *bundle) last() *task.Attempt {
	b.t.Helper()
	st := b.state()
	return st.Last()
}
