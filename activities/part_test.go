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

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/activities"
	"github.com/mediagate/mediagate/activities/activitytest"
	"github.com/mediagate/mediagate/providers"
)

// images is a task of so many pictures, of a vendor that makes one a call.
func images(n int) func(*activitytest.World) mediagate.Task {
	return func(w *activitytest.World) mediagate.Task {
		w.Descriptions.Set(activitytest.SyncProvider, providers.Operation{Sync: true, Submit: 150 * time.Second, Parts: "n"})
		task := w.NewImage()
		task.Params = json.RawMessage(fmt.Sprintf(`{"prompt":"p","n":%d}`, n))
		task.Charges[0].Quantity, task.Hold = int64(n), mediagate.Micros(n)*20_000
		return task
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

func refuses(kind mediagate.Kind) deed {
	return func(context.Context, mediagate.Job) (mediagate.Submission, error) {
		return mediagate.Submission{}, mediagate.Errorf(kind, "no")
	}
}

func ends(code mediagate.FailureCode) deed {
	return func(context.Context, mediagate.Job) (mediagate.Submission, error) {
		o := activitytest.Failed(code)
		return mediagate.Submission{Outcome: &o}, nil
	}
}

// does makes the vendor answer the calls of each part in turn, the last deed
// again and again.
func (b *bundle) does(parts ...[]deed) {
	var mu sync.Mutex
	calls := make([]int, len(parts))
	b.Sync.OnSubmit = func(ctx context.Context, job mediagate.Job) (mediagate.Submission, error) {
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

func (b *bundle) states() (states []mediagate.PartState) {
	b.t.Helper()
	parts, err := b.Store.Parts(context.Background(), taskID, 1)
	b.ok(err)
	for _, p := range parts {
		states = append(states, p.State)
	}
	return states
}

// sent are the parts that were asked for, in order.
func (b *bundle) sent() (parts []int) {
	for _, job := range b.Sync.Submits() {
		parts = append(parts, job.Part)
	}
	slices.Sort(parts)
	return parts
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
		files  []int                 // the parts whose files are delivered
		code   mediagate.FailureCode // of a failure
		again  bool                  // the failure is retryable
	}{
		"all succeed":                    {deeds: []deed{draws, draws, draws}, states: []mediagate.PartState{d, d, d}, end: mediagate.AttemptEnded, files: []int{0, 1, 2}},
		"refused ones are left out":      {deeds: []deed{moderated, draws, blocked}, states: []mediagate.PartState{r, d, r}, end: mediagate.AttemptEnded, files: []int{1}},
		"lost ones are left out":         {deeds: []deed{draws, lost, draws}, states: []mediagate.PartState{d, u, d}, end: mediagate.AttemptEnded, files: []int{0, 2}},
		"none left":                      {deeds: []deed{ends(mediagate.CodeGenerationFailed), moderated}, states: []mediagate.PartState{r, r}, end: mediagate.AttemptRejected, code: mediagate.CodeContentPolicy},
		"none left, by its own word":     {deeds: []deed{refuses(mediagate.KindInvalid), blocked}, states: []mediagate.PartState{r, r}, end: mediagate.AttemptEnded, code: mediagate.CodeContentPolicy},
		"refused, and one is lost":       {deeds: []deed{lost, blocked}, states: []mediagate.PartState{u, r}, end: mediagate.AttemptEnded, code: mediagate.CodeContentPolicy},
		"all lost (D6)":                  {deeds: []deed{lost, lost}, states: []mediagate.PartState{u, u}, end: mediagate.AttemptUnknown},
		"all throttled":                  {deeds: []deed{throttled, throttled}, states: []mediagate.PartState{r, r}, end: mediagate.AttemptRejected, code: mediagate.CodeProviderAway, again: true},
		"none of our credentials":        {deeds: []deed{refuses(mediagate.KindCredentials), throttled}, states: []mediagate.PartState{r, r}, end: mediagate.AttemptRejected, code: mediagate.CodeProviderRefused},
		"throttled for as long, or lost": {deeds: []deed{throttled, lost}, states: []mediagate.PartState{r, u}, end: mediagate.AttemptUnknown},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				b := setup(t, images(len(c.deeds)))
				b.does(once(c.deeds...)...)
				st := b.submit(1)
				if diff := cmp.Diff(c.states, b.states()); diff != "" {
					t.Errorf("parts (-want +got):\n%s", diff)
				}
				if st.State != c.end || st.Succeeded != (len(c.files) > 0) {
					t.Fatalf("story %+v", st)
				}
				if c.code != "" && (st.Failure == nil || st.Failure.Code != c.code || st.Failure.Retryable != c.again) {
					t.Errorf("failure %+v, want %s", st.Failure, c.code)
				}
				if len(c.files) == 0 {
					return
				}
				_, err := b.mirror()
				b.ok(err)
				row := b.attempt(1)
				for i, r := range row.Results {
					if r.Key != key(1, c.files[i]) || r.Index != c.files[i] {
						t.Errorf("file %d is %s, index %d", i, r.Key, r.Index)
					}
				}
				charge := mediagate.ChargedBy(strconv.Itoa(7*len(c.files)), "tokens")
				if diff := cmp.Diff(charge, row.Outcome.VendorCharge); diff != "" || row.Ref.ExternalID != taskID {
					t.Errorf("outcome %+v of %+v", row.Outcome, row.Ref)
				}
				st = must[mediagate.Story](b, b.Activities.Settle, activities.SettleArgs{TaskID: taskID, N: 1, Status: mediagate.StatusCompleted})
				if got := b.task(); got.Cost != mediagate.Micros(len(c.files))*20_000 || len(got.Results) != len(c.files) {
					t.Errorf("%s for %d with %d files", st.Status, got.Cost, len(got.Results))
				}
			})
		})
	}
}

// D3, D4: each call has its intent before it, under an id of its own, and they
// run beside each other.
func TestD3PartsHaveTheirOwnIntents(t *testing.T) {
	t.Parallel()
	b := setup(t, images(4))
	var under sync.WaitGroup
	under.Add(4)
	var ids sync.Map
	b.Sync.OnSubmit = func(ctx context.Context, job mediagate.Job) (mediagate.Submission, error) {
		parts, err := b.Store.Parts(ctx, taskID, 1)
		b.ok(err)
		if !slices.ContainsFunc(parts, func(p mediagate.Part) bool { return p.Part == job.Part && p.State == mediagate.PartIntent }) {
			t.Errorf("part %d is sent without an intent: %+v", job.Part, parts)
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

// One picture is one call, without parts.
func TestOnePartIsNone(t *testing.T) {
	t.Parallel()
	b := setup(t, images(1))
	b.does([]deed{draws})
	if st := b.submit(1); !st.Succeeded || len(b.states()) != 0 {
		t.Errorf("story %+v, parts %v", st, b.states())
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
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				b := setup(t, images(2))
				b.does([]deed{draws}, c.second)
				if st := b.submit(1); !st.Succeeded {
					t.Errorf("story %+v", st)
				}
				if got := b.states(); got[1] != c.want || !slices.Equal(b.sent(), c.sent) {
					t.Errorf("part 1 is %s after calls of %v; want %s, %v", got[1], b.sent(), c.want, c.sent)
				}
			})
		})
	}
}

// D3, D6: after a crash what was done stays, what was never sent is sent, what
// was stored is found, and what is lost is left out, once it can be no more.
func TestD6PartsAfterACrash(t *testing.T) {
	t.Parallel()
	b := setup(t, images(4))
	// The sender dies with part 0 done, part 1 stored and not on record, part
	// 2 under way, and part 3 not begun.
	dead := true
	b.Store.Fault = func(method string) error {
		if dead && method == "AcceptAttempt" {
			return mediagate.Errorf(mediagate.KindInternal, "dead")
		}
		return nil
	}
	b.does(once(draws, draws, draws, draws)...)
	_, err := call[mediagate.Story](b, b.Activities.SubmitJob, first())
	if err == nil {
		t.Fatal("the sender lives")
	}
	dead = false
	b.Store.EditParts(taskID, 1, func(parts []mediagate.Part) []mediagate.Part {
		for i := 1; i <= 2; i++ {
			parts[i].State, parts[i].Submission = mediagate.PartIntent, nil
		}
		return parts[:3]
	})
	_, err = b.Bucket.DeletePrefix(t.Context(), "results/", key(1, 0), key(1, 1), manifest("part-1.json"))
	b.ok(err)
	before := len(b.sent())

	st := b.submit(1)
	if got := b.sent()[before:]; len(b.Sync.Submits()) != before+1 || !slices.Contains(got, 3) {
		t.Errorf("sent after the crash: %d calls, want one of part 3", len(b.Sync.Submits())-before)
	}
	if diff := cmp.Diff([]mediagate.PartState{mediagate.PartDone, mediagate.PartDone, mediagate.PartUnknown, mediagate.PartDone}, b.states()); diff != "" {
		t.Errorf("parts (-want +got):\n%s", diff)
	}
	if st.State != mediagate.AttemptUnknown { // part 2 may be under way in a process that lives
		t.Fatalf("story %+v", st)
	}
	st = must[mediagate.Story](b, b.Activities.Settle, activities.SettleArgs{
		TaskID: taskID, N: 1, Status: mediagate.StatusFailed, WithoutOutcome: true, Failure: &mediagate.Failure{Code: mediagate.CodeSubmissionUnknown},
	})
	if !st.Succeeded || st.Status.Terminal() {
		t.Fatalf("story %+v", st)
	}
	_, err = b.mirror()
	b.ok(err)
	var keys []string
	for _, r := range b.attempt(1).Results {
		keys = append(keys, r.Key)
	}
	if diff := cmp.Diff([]string{key(1, 0), key(1, 1), key(1, 3)}, keys); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}

	// D13: what the lost call stores after all goes, and nothing else.
	must[mediagate.Story](b, b.Activities.Settle, activities.SettleArgs{TaskID: taskID, N: 1, Status: mediagate.StatusCompleted})
	b.Bucket.Write(key(1, 2), "late")
	b.advance(2*mediagate.CopyLimit + time.Second)
	due, err := b.Store.DueSweeps(t.Context(), 10)
	b.ok(err)
	if len(due) != 1 || due[0].TaskID != taskID || !due[0].Again.IsZero() {
		t.Errorf("to be swept: %v", due)
	}
	_, err = call[any](b, b.Activities.SweepResults, activities.TaskArgs{TaskID: taskID})
	b.ok(err)
	b.objects(key(1, 0), key(1, 1), key(1, 3))
}

// D5: a call that reports though its attempt was taken over counts as long as
// nothing was decided.
func TestD5PartsReportLate(t *testing.T) {
	t.Parallel()
	b := setup(t, images(2))
	var calls atomic.Int64
	b.Sync.OnSubmit = func(ctx context.Context, job mediagate.Job) (mediagate.Submission, error) {
		if calls.Add(1) == 2 { // both are under way; the same activity begins once more
			if st := b.submit(1); st.State != mediagate.AttemptUnknown {
				t.Errorf("the second copy finds the attempt %s, want unknown", st.State)
			}
		}
		return draws(ctx, job)
	}
	if st := b.submit(1); st.State != mediagate.AttemptEnded || !st.Succeeded {
		t.Errorf("story %+v", st)
	}
	if got := b.sent(); !slices.Equal(got, []int{0, 1}) {
		t.Errorf("sent %v", got)
	}
}

// D5: after a cancel nothing more is sent.
func TestD5PartsAreCancelled(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setup(t, images(2))
		other := make(chan struct{})
		b.does([]deed{func(ctx context.Context, job mediagate.Job) (mediagate.Submission, error) {
			<-other
			_, err := b.Store.RequestCancel(ctx, "acc_1", taskID)
			b.ok(err)
			return draws(ctx, job)
		}}, []deed{func(ctx context.Context, job mediagate.Job) (mediagate.Submission, error) {
			close(other) // a second call would panic
			return refuses(mediagate.KindThrottled)(ctx, job)
		}})
		b.submit(1)
		if got := b.sent(); !slices.Equal(got, []int{0, 1}) {
			t.Errorf("sent %v: after the cancel as well", got)
		}
		if got := b.states(); got[0] != mediagate.PartDone || got[1] != mediagate.PartRefused {
			t.Errorf("parts %v", got)
		}
	})
}

// D3: where no call could be sent in time the attempt has made no job.
func TestD3NoPartIsSent(t *testing.T) {
	t.Parallel()
	b := setup(t, images(2))
	b.Store.Fault = func(method string) error {
		if method == "OpenPart" {
			return mediagate.Errorf(mediagate.KindConflict, "to be cancelled")
		}
		return nil
	}
	if st := b.submit(1); st.State != mediagate.AttemptRejected || !st.Failure.Retryable {
		t.Errorf("story %+v", st)
	}
	b.submitted()
}

// A database that is away while the calls begin leaves the rest to the next try.
func TestPartsWithoutADatabase(t *testing.T) {
	t.Parallel()
	b := setup(t, images(2))
	b.does(once(draws, draws)...)
	away := true
	b.Store.Fault = func(method string) error {
		if away && method == "OpenPart" {
			return mediagate.Errorf(mediagate.KindUnavailable, "the database is away")
		}
		return nil
	}
	_, err := call[mediagate.Story](b, b.Activities.SubmitJob, first())
	kind(t, err, mediagate.KindUnavailable, "", true)
	away = false
	if st := b.submit(1); !st.Succeeded {
		t.Errorf("story %+v", st)
	}
	if got := b.sent(); !slices.Equal(got, []int{0, 1}) {
		t.Errorf("sent %v", got)
	}
}

// D18: an adapter that panics loses one call, and not the worker with all that
// it does for others.
func TestD18PartPanics(t *testing.T) {
	t.Parallel()
	b := setup(t, images(2))
	b.does(once(draws, func(context.Context, mediagate.Job) (mediagate.Submission, error) { panic("no such field") })...)
	if st := b.submit(1); st.State != mediagate.AttemptEnded || !st.Succeeded {
		t.Errorf("story %+v", st)
	}
	if diff := cmp.Diff([]mediagate.PartState{mediagate.PartDone, mediagate.PartUnknown}, b.states()); diff != "" {
		t.Errorf("parts (-want +got):\n%s", diff)
	}
}

// D6: beside a lost call no refusal may lead to another attempt by itself: that
// would send the lost one's job a second time.
func TestD6NothingIsSentAgainBesideALostPart(t *testing.T) {
	t.Parallel()
	for _, k := range []mediagate.Kind{mediagate.KindFunds, mediagate.KindCredentials, mediagate.KindForbidden, mediagate.KindUnreached} {
		t.Run(k.String(), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				b := setup(t, images(2))
				b.does(once(refuses(mediagate.KindAmbiguous), refuses(k))...)
				if st := b.submit(1); st.State != mediagate.AttemptUnknown {
					t.Errorf("the attempt is %s for %+v: the next one pays a second time", st.State, st.Failure)
				}
			})
		})
	}
}

// D5: a lost sender's call may have begun long after the attempt: one that was
// refused for now, and asked for again. Its answer counts as long as any.
func TestD5CallEndsWithItsLastPart(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setup(t, images(2))
		var begun time.Time
		var again mediagate.Story
		b.does([]deed{draws}, []deed{
			func(context.Context, mediagate.Job) (mediagate.Submission, error) {
				b.advance(140 * time.Second) // of the 150 that a call may take
				return mediagate.Submission{}, mediagate.Errorf(mediagate.KindThrottled, "later")
			},
			func(ctx context.Context, job mediagate.Job) (mediagate.Submission, error) {
				begun, again = b.Now(), b.submit(1) // its worker is taken for dead
				return draws(ctx, job)
			},
		})
		b.submit(1)
		if again.State != mediagate.AttemptUnknown || again.CallEnds.Before(begun.Add(150*time.Second)) {
			t.Errorf("the attempt is %s, and its calls end %s after the last began; want 2m30s or more", again.State, again.CallEnds.Sub(begun))
		}
	})
}

// D5: of two workers at once, the one that comes to an end first leaves the
// other's call its time.
func TestD5APartOfAnotherWorkerIsUnderWay(t *testing.T) {
	t.Parallel()
	b := setup(t, images(2))
	b.Sync.OnSubmit = func(ctx context.Context, job mediagate.Job) (mediagate.Submission, error) {
		if job.Part == 1 {
			return mediagate.Submission{}, mediagate.Errorf(mediagate.KindAmbiguous, "lost")
		}
		// Another worker opens what this one has not come to, and still calls.
		return draws(ctx, job)
	}
	opened := false
	b.Store.Fault = func(method string) error {
		if method == "OpenPart" && !opened {
			opened = true
			b.Store.EditParts(taskID, 1, func(parts []mediagate.Part) []mediagate.Part {
				return append(parts, mediagate.Part{TaskID: taskID, N: 1, State: mediagate.PartIntent, Sends: 1, SendBefore: b.Now().Add(time.Minute)})
			})
		}
		return nil
	}
	if st := b.submit(1); st.State != mediagate.AttemptUnknown || !st.SenderLost || st.CallEnds.Before(b.Now().Add(time.Minute+150*time.Second)) {
		t.Errorf("the attempt is %s, sender lost: %v, calls end after %s", st.State, st.SenderLost, st.CallEnds.Sub(b.Now()))
	}
}

// What the client can mend is said though a call was lost beside it: D6 decides
// only where nothing but lost calls is left.
func TestTheReasonOutlivesALostPart(t *testing.T) {
	t.Parallel()
	for name, refused := range map[string]deed{"proven": refuses(mediagate.KindModerated), "by its own word": ends(mediagate.CodeContentPolicy)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, images(2))
			b.does(once(refused, refuses(mediagate.KindAmbiguous))...)
			b.dies("AcceptAttempt", "RejectAttempt")
			b.Store.EditParts(taskID, 1, func(parts []mediagate.Part) []mediagate.Part {
				parts[1].State = mediagate.PartIntent
				return parts
			})
			if st := b.submit(1); st.State != mediagate.AttemptUnknown || !st.SenderLost {
				t.Fatalf("story %+v", st)
			}
			st := must[mediagate.Story](b, b.Activities.Settle, activities.SettleArgs{
				TaskID: taskID, N: 1, Status: mediagate.StatusFailed, WithoutOutcome: true,
				Failure: &mediagate.Failure{Code: mediagate.CodeSubmissionUnknown, Retryable: true},
			})
			if st.Status.Terminal() || st.Failure == nil || st.Failure.Code != mediagate.CodeContentPolicy {
				t.Errorf("the task is %s for %+v, %+v", st.Status, st.Failure, b.task().Failure)
			}
		})
	}
}
