package activities_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.temporal.io/sdk/temporal"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/activities"
	"github.com/mediagate/mediagate/activities/activitytest"
	"github.com/mediagate/mediagate/providers"
	"github.com/mediagate/mediagate/task"
)

// images is a task of so many pictures, of a vendor that makes one a call.
func images(n int) func(*activitytest.World) mediagate.Task {
	return func(w *activitytest.World) mediagate.Task {
		w.Descriptions.Set(activitytest.SyncProvider, providers.Operation{Sync: true, Submit: 150 * time.Second, Parts: "n"})
		t := w.NewImage()
		t.Params = json.RawMessage(fmt.Sprintf(`{"prompt":"p","n":%d}`, n))
		t.Charges[0].Quantity, t.Hold = int64(n), mediagate.Micros(n)*20_000
		return t
	}
}

// deed is what a vendor does with one call.
type deed func(ctx context.Context, job mediagate.Job) (mediagate.Submission, error)

func draws(ctx context.Context, job mediagate.Job) (mediagate.Submission, error) {
	m, err := job.Sink.Store(ctx, 0, strings.NewReader(fmt.Sprintf("picture %d", job.Part)))
	return mediagate.Submission{
		Ref:     mediagate.JobRef{JobID: fmt.Sprintf("req-%d", job.Part)},
		Outcome: &mediagate.Outcome{Succeeded: true, Media: []mediagate.Media{m}, VendorCharge: mediagate.ChargedBy("7", "tokens")},
	}, err
}

func ends(code mediagate.FailureCode) deed {
	return func(context.Context, mediagate.Job) (mediagate.Submission, error) {
		o := activitytest.Failed(code)
		return mediagate.Submission{Outcome: &o}, nil
	}
}

// does makes the vendor answer the calls of each part in turn, the last deed again and
// again.
func does(v *activitytest.Vendor, parts ...[]deed) {
	var mu sync.Mutex
	calls := make([]int, len(parts))
	v.OnSubmit = func(ctx context.Context, job mediagate.Job) (mediagate.Submission, error) {
		mu.Lock()
		deeds := parts[job.Part]
		do := deeds[min(calls[job.Part], len(deeds)-1)]
		calls[job.Part]++
		mu.Unlock()
		return do(ctx, job)
	}
}

func once(deeds ...deed) [][]deed {
	parts := make([][]deed, len(deeds))
	for i, d := range deeds {
		parts[i] = []deed{d}
	}
	return parts
}

// partsOf are the states of the calls of the first attempt.
func partsOf(w *activitytest.World) (states []mediagate.PartState) {
	st, _ := w.Store.Peek(taskID)
	for _, p := range st.Attempts[0].Parts {
		states = append(states, p.State)
	}
	return states
}

// sentParts are the calls that were made, in order.
func sentParts(w *activitytest.World) (parts []int) {
	for _, job := range w.Sync.Submits() {
		parts = append(parts, job.Part)
	}
	slices.Sort(parts)
	return parts
}

// submitParts takes the submit of the first attempt, inside a bubble.
func (l *life) submitParts() task.State {
	l.t.Helper()
	if _, ok, err := l.take(task.Step{Kind: task.Submit, N: 1}); !ok {
		l.t.Fatal(err)
	}
	st, _ := l.Store.Peek(taskID)
	return st
}

func TestPartsEnd(t *testing.T) {
	t.Parallel()
	const d, r, u = mediagate.PartDone, mediagate.PartRefused, mediagate.PartUnknown
	moderated, throttled, lost := refuses(mediagate.KindModerated), refuses(mediagate.KindThrottled), refuses(mediagate.KindAmbiguous)
	blocked := ends(mediagate.CodeContentPolicy)
	for name, c := range map[string]struct {
		deeds  []deed
		states []mediagate.PartState
		end    mediagate.AttemptState
		files  []int                 // the calls whose files are delivered
		code   mediagate.FailureCode // of a failure
	}{
		"all succeed":              {deeds: []deed{draws, draws, draws}, states: []mediagate.PartState{d, d, d}, end: mediagate.AttemptEnded, files: []int{0, 1, 2}},
		"refused ones are omitted": {deeds: []deed{moderated, draws, blocked}, states: []mediagate.PartState{r, d, r}, end: mediagate.AttemptEnded, files: []int{1}},
		"lost ones are omitted":    {deeds: []deed{draws, lost, draws}, states: []mediagate.PartState{d, u, d}, end: mediagate.AttemptEnded, files: []int{0, 2}},
		"none left":                {deeds: []deed{ends(mediagate.CodeGenerationFailed), moderated}, states: []mediagate.PartState{r, r}, end: mediagate.AttemptRejected, code: mediagate.CodeContentPolicy},
		"none left, by an outcome": {deeds: []deed{refuses(mediagate.KindInvalid), blocked}, states: []mediagate.PartState{r, r}, end: mediagate.AttemptEnded, code: mediagate.CodeContentPolicy},
		"refused, and one is lost": {deeds: []deed{lost, blocked}, states: []mediagate.PartState{u, r}, end: mediagate.AttemptEnded, code: mediagate.CodeContentPolicy},
		"all lost (D6)":            {deeds: []deed{lost, lost}, states: []mediagate.PartState{u, u}, end: mediagate.AttemptUnknown},
		"all throttled":            {deeds: []deed{throttled, throttled}, states: []mediagate.PartState{r, r}, end: mediagate.AttemptRejected, code: mediagate.CodeProviderAway},
		"our credentials refused":  {deeds: []deed{refuses(mediagate.KindCredentials), throttled}, states: []mediagate.PartState{r, r}, end: mediagate.AttemptRejected, code: mediagate.CodeProviderRefused},
		"no funds, and one lost":   {deeds: []deed{lost, refuses(mediagate.KindFunds)}, states: []mediagate.PartState{u, r}, end: mediagate.AttemptUnknown},
	} {
		inBubble(t, name, func(t *testing.T) {
			l := newLife(t, images(len(c.deeds)))
			does(l.Sync, once(c.deeds...)...)
			st := l.submitParts()
			same(t, "calls", partsOf(l.World), c.states)
			a := st.Last()
			if a.State != c.end {
				t.Errorf("the attempt is %s, want %s", a.State, c.end)
			}
			failure := a.Failure
			if a.Outcome != nil {
				failure = a.Outcome.Failure
			}
			if (failure == nil) != (c.code == "") || failure != nil && failure.Code != c.code {
				t.Errorf("failure %+v, want %s", failure, c.code)
			}
			if len(c.files) == 0 {
				return
			}
			for i, r := range st.Results {
				if r.Key != key(1, c.files[i]) || r.Index != c.files[i] {
					t.Errorf("file %d is %s, index %d", i, r.Key, r.Index)
				}
			}
			charge := mediagate.ChargedBy(strconv.Itoa(7*len(c.files)), "tokens")
			if diff := cmp.Diff(charge, a.Outcome.VendorCharge); diff != "" || a.Ref.ExternalID != taskID {
				t.Errorf("outcome %+v of %+v", a.Outcome, a.Ref)
			}
			if st.Status != mediagate.StatusCompleted || st.Cost != mediagate.Micros(len(c.files))*20_000 || len(st.Results) != len(c.files) {
				t.Errorf("%s for %d with %d files", st.Status, st.Cost, len(st.Results))
			}
		})
	}
}

// D3, D4: each call has its intent before it, under an id of its own, and they run beside
// each other.
func TestD3PartsHaveTheirOwnIntents(t *testing.T) {
	t.Parallel()
	b := setup(t, images(4))
	var under sync.WaitGroup
	under.Add(4)
	var ids sync.Map
	b.Sync.OnSubmit = func(ctx context.Context, job mediagate.Job) (mediagate.Submission, error) {
		intent := func(p task.Part) bool { return p.Part == job.Part && p.State == mediagate.PartIntent }
		if parts := b.last().Parts; !slices.ContainsFunc(parts, intent) {
			t.Errorf("call %d is made without an intent: %+v", job.Part, parts)
		}
		ids.Store(job.ExternalID, true)
		under.Done()
		under.Wait()
		return draws(ctx, job)
	}
	b.submit(1)
	for i := range 4 {
		if _, ok := ids.Load(fmt.Sprintf("%s.%d", taskID, i)); !ok {
			t.Errorf("no call under the id of part %d", i)
		}
	}
}

// An account that refuses all calls for a reason of its own leaves them to the next one.
func TestPartsAreSentElsewhere(t *testing.T) {
	t.Parallel()
	b := setup(t, images(2))
	other := b.SyncBound()
	other.Name, other.Fingerprint, other.Priority = "sync-b", "account-b", 1
	b.Channels.Set(b.SyncBound(), other)
	does(b.Sync, once(refuses(mediagate.KindFunds), refuses(mediagate.KindFunds))...)
	if next := b.submit(1).Step; next.Kind != task.Submit || next.N != 2 {
		t.Errorf("the next step is %+v, want attempt 2 at once", next)
	}
}

// One picture is one call, without parts.
func TestOnePartIsNone(t *testing.T) {
	t.Parallel()
	b := setup(t, images(1))
	does(b.Sync, []deed{draws})
	if answer := b.submit(1); answer.Status != mediagate.StatusCompleted || len(partsOf(b.World)) != 0 {
		t.Errorf("answer %+v, parts %v", answer, partsOf(b.World))
	}
	b.submitted(taskID)
}

// What is refused for now while others succeed is asked for again, a few times.
func TestPartsAreTriedAgain(t *testing.T) {
	t.Parallel()
	throttled := refuses(mediagate.KindThrottled)
	for name, c := range map[string]struct {
		second []deed
		want   mediagate.PartState
		sent   []int
	}{
		"at last it passes": {[]deed{throttled, throttled, draws}, mediagate.PartDone, []int{0, 1, 1, 1}},
		"never":             {[]deed{throttled}, mediagate.PartRefused, []int{0, 1, 1, 1}},
		"then lost":         {[]deed{throttled, refuses(mediagate.KindAmbiguous)}, mediagate.PartUnknown, []int{0, 1, 1}},
	} {
		inBubble(t, name, func(t *testing.T) {
			l := newLife(t, images(2))
			does(l.Sync, []deed{draws}, c.second)
			if st := l.submitParts(); st.Status != mediagate.StatusCompleted {
				t.Errorf("the task is %s", st.Status)
			}
			if got := partsOf(l.World); got[1] != c.want || !slices.Equal(sentParts(l.World), c.sent) {
				t.Errorf("part 1 is %s after calls of %v; want %s, %v", got[1], sentParts(l.World), c.want, c.sent)
			}
		})
	}
}

// D3, D6: after a crash what was done stays, what was never sent is sent, what was
// stored is found, and what is lost is omitted, once its call must be over.
func TestD6PartsAfterACrash(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newLife(t, images(4))
		// The sender dies with part 0 done, part 1 stored and not on record, part 2 under
		// way, and part 3 not begun.
		does(l.Sync, once(draws, draws, draws, draws)...)
		before := l.Store.Fault
		l.Store.Fault = func(method string) error {
			if method == "Change" && len(l.Sync.Submits()) == 4 && l.dead() {
				return mediagate.Errorf(mediagate.KindInternal, "dead")
			}
			return nil
		}
		if _, err := newEnv(l.World).ExecuteActivity(l.Activities.SubmitJob, stepOf(taskID, task.Submit, 1)); err == nil {
			t.Fatal("the sender lives")
		}
		l.Store.Fault = before
		l.Store.Exec("UPDATE attempt_parts SET state = 'intent', submission = NULL WHERE part IN (1, 2)")
		l.Store.Exec("DELETE FROM attempt_parts WHERE part = 3")
		if _, err := l.Bucket.DeletePrefix(t.Context(), "results/", key(1, 0), key(1, 1), manifest("part-1.json")); err != nil {
			t.Fatal(err)
		}
		st := l.submitParts()
		if got := l.Sync.Submits()[4:]; len(got) != 1 || got[0].Part != 3 {
			t.Errorf("sent after the crash: %d calls, want one of part 3", len(got))
		}
		const done, unknown = mediagate.PartDone, mediagate.PartUnknown
		same(t, "calls", partsOf(l.World), []mediagate.PartState{done, done, unknown, done})
		if a := st.Last(); a.State != mediagate.AttemptUnknown || !a.SenderLost { // part 2 may be under way in a process that lives
			t.Fatalf("the attempt is %s, sender lost: %v", a.State, a.SenderLost)
		}
		ended := l.live(10)
		var keys []string
		for _, r := range ended.Results {
			keys = append(keys, r.Key)
		}
		if diff := cmp.Diff([]string{key(1, 0), key(1, 1), key(1, 3)}, keys); diff != "" || ended.Status != mediagate.StatusCompleted {
			t.Errorf("the task is %s, after %s; files (-want +got):\n%s", ended.Status, l.took(), diff)
		}
	})
}

// D5: a database that loses calls of an attempt, or the attempt, has none of them made again.
func TestD5LostPartsAreNotMadeAgain(t *testing.T) {
	t.Parallel()
	for name, lose := range map[string]func(*activitytest.Store){
		"a call":      func(s *activitytest.Store) { s.Exec("DELETE FROM attempt_parts WHERE part = 0") },
		"the attempt": func(s *activitytest.Store) { s.Unsend(taskID) },
	} {
		inBubble(t, name, func(t *testing.T) {
			l := newLife(t, images(2))
			does(l.Sync, once(draws, draws)...)
			states := 0
			l.Activities.Store = slippery{Store: l.Store, before: func(method string) error {
				if method != "State" || len(l.Sync.Submits()) < 2 {
					return nil
				}
				if states++; states == 1 {
					lose(l.Store)
				}
				return nil
			}}
			if _, err := newEnv(l.World).ExecuteActivity(l.Activities.SubmitJob, stepOf(taskID, task.Submit, 1)); err != nil {
				t.Fatal(err)
			}
			if calls := len(l.Sync.Submits()); calls != 2 {
				t.Errorf("%d calls were made, want 2", calls)
			}
			if a := l.Store.Attempts(taskID); len(a) != 1 || a[0].State != mediagate.AttemptUnknown || a[0].Channel == "" {
				t.Errorf("attempts %+v", a)
			}
		})
	}
}

// dead reports that all calls of the first attempt are on record.
func (l *life) dead() bool {
	st, _ := l.Store.Peek(taskID)
	return len(st.Attempts) > 0 && !slices.ContainsFunc(st.Last().Parts, func(p task.Part) bool { return p.State == mediagate.PartIntent })
}

// D5: a call that reports though its attempt was taken over counts as long as nothing
// was decided.
func TestD5PartsReportLate(t *testing.T) {
	t.Parallel()
	b := setup(t, images(2))
	var calls atomic.Int64
	b.Sync.OnSubmit = func(ctx context.Context, job mediagate.Job) (mediagate.Submission, error) {
		if calls.Add(1) == 2 { // both are under way; the same activity begins once more
			if answer := b.submit(1); answer.State != mediagate.AttemptUnknown {
				t.Errorf("the second copy finds the attempt %s, want unknown", answer.State)
			}
		}
		return draws(ctx, job)
	}
	if answer := b.submit(1); answer.State != mediagate.AttemptEnded || answer.Status != mediagate.StatusCompleted {
		t.Errorf("answer %+v", answer)
	}
	if got := sentParts(b.World); !slices.Equal(got, []int{0, 1}) {
		t.Errorf("sent %v", got)
	}
}

// D5: after a cancel nothing more is sent, and the attempt is closed at once: its task
// does not wait for calls that are over. That holds whether the cancel reached the
// database alone or the activity as well, in a call or in the pause before the next.
func TestD5PartsAreCancelled(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		reaches, pause bool
		first          deed
		want           mediagate.PartState
	}{
		"in the database":       {first: draws, want: mediagate.PartDone},
		"in a call":             {reaches: true, first: refuses(mediagate.KindAmbiguous), want: mediagate.PartUnknown},
		"in the pause":          {reaches: true, pause: true, first: draws, want: mediagate.PartDone},
		"in a call that is cut": {reaches: true, first: cut, want: mediagate.PartUnknown},
	} {
		inBubble(t, name, func(t *testing.T) {
			l := newLife(t, images(2))
			ctx, cancel := context.WithCancelCause(context.Background())
			stop := func() {
				if _, err := l.Store.Change(context.Background(), taskID, task.CancelRequested{}); err != nil {
					t.Error(err)
				}
				if c.reaches {
					cancel(temporal.NewCanceledError())
				}
			}
			refused := make(chan struct{})
			does(l.Sync, []deed{func(ctx context.Context, job mediagate.Job) (mediagate.Submission, error) {
				<-refused
				if c.pause {
					time.AfterFunc(time.Second, stop)
				} else {
					stop()
				}
				return c.first(ctx, job)
			}}, []deed{func(ctx context.Context, job mediagate.Job) (mediagate.Submission, error) {
				close(refused) // a second call would panic
				return refuses(mediagate.KindThrottled)(ctx, job)
			}})
			submitWithin(ctx, l.World)
			same(t, "calls", partsOf(l.World), []mediagate.PartState{c.want, mediagate.PartRefused})
			if next := l.ask(activities.Question{TaskID: taskID}).Step; next.Kind != task.Settle {
				t.Errorf("the next step is %+v, want the end", next)
			}
		})
	}
}

// cut is a call that ends with its connection.
func cut(ctx context.Context, _ mediagate.Job) (mediagate.Submission, error) {
	<-ctx.Done()
	return mediagate.Submission{}, mediagate.Errorf(mediagate.KindAmbiguous, "cut: %w", ctx.Err())
}

// A worker that stops in the pause leaves the rest to the next one.
func TestPartsGoOnElsewhere(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newLife(t, images(2))
		ctx, stop := context.WithCancel(context.Background())
		env := newEnv(l.World)
		env.SetWorkerOptions(workerOptions(ctx))
		does(l.Sync, []deed{draws}, []deed{refuses(mediagate.KindThrottled), draws})
		time.AfterFunc(time.Second, stop)
		_, err := env.ExecuteActivity(l.Activities.SubmitJob, stepOf(taskID, task.Submit, 1))
		if err == nil {
			t.Error("a worker that stops says that the step is done")
		}
		if st := l.submitParts(); st.Status != mediagate.StatusCompleted || len(st.Results) != 2 {
			t.Errorf("the task is %s with %d files", st.Status, len(st.Results))
		}
	})
}

// D18: an adapter that panics loses one call, and not the worker with all that it does
// for others.
func TestD18PartPanics(t *testing.T) {
	t.Parallel()
	b := setup(t, images(2))
	does(b.Sync, once(draws, func(context.Context, mediagate.Job) (mediagate.Submission, error) { panic("no such field") })...)
	if answer := b.submit(1); answer.Status != mediagate.StatusCompleted {
		t.Errorf("answer %+v", answer)
	}
	same(t, "calls", partsOf(b.World), []mediagate.PartState{mediagate.PartDone, mediagate.PartUnknown})
}

// D5: of two workers at once, the one that comes to an end first leaves the other's call
// its time.
func TestD5APartOfAnotherWorkerIsUnderWay(t *testing.T) {
	t.Parallel()
	b := setup(t, images(2))
	does(b.Sync, once(draws, refuses(mediagate.KindAmbiguous))...)
	var opened atomic.Bool
	ends := b.Now().Add(3 * time.Minute)
	b.Activities.Store = slippery{Store: b.Store, before: func(method string) error {
		if method == "Change" && opened.CompareAndSwap(false, true) { // as this one stores its first intent
			b.Store.Exec(`INSERT INTO attempt_parts (task_id, n, part, state, send_before, call_ends, created_at)
				VALUES (?, 1, 0, 'intent', ?, ?, ?)`, taskID, b.Now().Add(time.Minute), ends, b.Now())
		}
		return nil
	}}
	if answer := b.submit(1); answer.State != mediagate.AttemptUnknown || !b.last().SenderLost || !answer.Step.Until.Equal(ends) {
		t.Errorf("the attempt is %s, sender lost: %v, and the step %+v; want to wait for the other call", answer.State, b.last().SenderLost, answer.Step)
	}
}
