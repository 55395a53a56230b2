package activities_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/activities"
	"github.com/mediagate/mediagate/activities/activitytest"
	"github.com/mediagate/mediagate/task"
	"github.com/mediagate/mediagate/task/story"
)

func (b *bundle) question(q activities.Question) activities.Answer {
	b.t.Helper()
	q.TaskID = taskID
	return must[activities.Answer](b, b.Activities.Ask, q)
}

func TestAsk(t *testing.T) {
	t.Parallel()
	b := setup(t, video)
	writes := b.counts()
	fresh := b.question(activities.Question{})
	want := activities.Answer{
		Now: start, StepEnds: start.Add(2 * time.Hour), Explanation: story.Explanation{
			Step: task.Step{Kind: task.Submit, N: 1, Provider: activitytest.AsyncProvider}, Status: mediagate.StatusPending,
			Provider: activitytest.AsyncProvider, FailsAt: start.Add(2 * time.Hour), Actions: []string{
				mediagate.ActionFail, mediagate.ActionReroute,
			},
		},
	}
	if diff := cmp.Diff(want, fresh); diff != "" || writes() != "0 OpenIntent, 1 Change" {
		t.Errorf("%s, (-want +got):\n%s", writes(), diff)
	}
	b.Store.Remove(taskID)
	if answer := b.question(activities.Question{}); !answer.Missing || answer.Step != (task.Step{}) {
		t.Errorf("answer %+v, want that the row is missing", answer)
	}
}

// TestAnswerShows checks that the answer shows what operators see, in each state.
func TestAnswerShows(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		leave func(*bundle)
		want  func(*activities.Answer)
	}{
		"the vendor works": {func(*bundle) {}, func(a *activities.Answer) {
			a.Status, a.State = mediagate.StatusProcessing, mediagate.AttemptAccepted
			a.Step = task.Step{Kind: task.Sleep, N: 1, Until: start.Add(2 * time.Hour), Why: task.SleepVendor}
			a.Actions = []string{mediagate.ActionFail, mediagate.ActionRetry, mediagate.ActionReroute, mediagate.ActionPollNow}
		}},
		"parked, and the parking ends before the deadline": {func(b *bundle) {
			b.Store.EditTask(taskID, func(t *mediagate.Task) { t.Plan.ParkTimeout = time.Hour })
			b.ok(b.StorePoll(b.t.Context(), mediagate.PollResult{TaskID: taskID, N: 1, Trouble: mediagate.ParkFunds}))
		}, func(a *activities.Answer) {
			a.Status, a.State = mediagate.StatusProcessing, mediagate.AttemptAccepted
			a.ParkReason, a.ParkedAt, a.StepEnds, a.FailsAt = mediagate.ParkFunds, start, start.Add(
				time.Hour,
			), start.Add(time.Hour)
			a.Actions = []string{mediagate.ActionFail, mediagate.ActionRetry, mediagate.ActionReroute}
		}},
		"to be cancelled": {func(b *bundle) { b.change(task.CancelRequested{}) }, func(a *activities.Answer) {
			a.Status, a.State, a.Cancelled = mediagate.StatusProcessing, mediagate.AttemptAccepted, true
			a.Step = task.Step{Kind: task.CancelJob, N: 1, Provider: activitytest.AsyncProvider}
		}},
		"failed": {func(b *bundle) {
			b.change(task.VendorEnded{N: 1, Outcome: activitytest.Failed(mediagate.CodeContentPolicy)}, task.EndDue{})
		}, func(a *activities.Answer) {
			a.Status, a.State, a.Failure = mediagate.StatusFailed, mediagate.AttemptEnded, mediagate.CodeContentPolicy
			a.Step, a.Actions = task.Step{Kind: task.Done, Round: 1}, []string{mediagate.ActionRedeliver}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, video)
			b.submit(1)
			c.leave(b)
			want := activities.Answer{
				Now: start, StepEnds: start.Add(2 * time.Hour),
				Explanation: story.Explanation{N: 1, Channel: activitytest.AsyncChannel, Provider: activitytest.AsyncProvider},
			}
			c.want(&want)
			got := b.question(activities.Question{Seen: seen(1)})
			want.Seen = got.Seen // see TestSeen
			if want.ParkReason != "" {
				want.Step = got.Step // it depends on the clock and on jitter
			}
			same(t, "answer", got, want)
		})
	}
}

// TestCommandsByHand checks that a manual command is recorded once, although the question is
// repeated, and then acts.
func TestCommandsByHand(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		command activities.Command
		want    task.Kind
		row     bool
	}{
		"fail":     {activities.Command{ID: "act_1", Action: mediagate.ActionFail}, task.CancelJob, true},
		"reroute":  {activities.Command{ID: "act_1", Action: mediagate.ActionReroute, Channel: "b"}, task.CancelJob, true},
		"poll now": {activities.Command{ID: "act_1", Action: mediagate.ActionPollNow}, task.Sleep, true},
		"cancel":   {activities.Command{ID: "act_1", Action: activities.ActionCancel}, task.CancelJob, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, video)
			b.submit(1)
			b.advance(time.Second)
			b.Activities.Store = slippery{Store: b.Store, after: onceOf(fails("Change", mediagate.KindUnavailable))}
			q := activities.Question{TaskID: taskID, Commands: []activities.Command{c.command}}
			_, err := call[activities.Answer](b, b.Activities.Ask, q)
			kind(t, err, mediagate.KindUnavailable, "", true)
			if answer := b.question(q); answer.Step.Kind != c.want {
				t.Errorf("the next step is %+v, want %s", answer.Step, c.want)
			}
			rows := b.Store.Actions()
			if got := len(rows) == 1; got != c.row ||
				c.row && (rows[0].Action != c.command.Action || rows[0].Channel != c.command.Channel || rows[0].By == "") {
				t.Errorf("commands on record: %+v", rows)
			}
			st := b.state()
			if name == "reroute" && st.RerouteTo != "b" || name == "poll now" && !st.Last().Await.NextPollAt.Equal(b.Now()) {
				t.Errorf("the command did nothing: %+v", st)
			}
			if name == "cancel" && st.CancelRequestedAt.IsZero() || name == "fail" && st.FailRequestedAt.IsZero() {
				t.Errorf("the command is not noted: %+v", st)
			}
		})
	}
}

// TestRetryIsForItsStep checks that a retry is only for the step that the run was sleeping on
// when it was given.
func TestRetryIsForItsStep(t *testing.T) {
	t.Parallel()
	b := setup(t, image)
	b.Store.EditTask(taskID, func(t *mediagate.Task) { t.Plan.OnUnknown = mediagate.OnUnknownPark })
	b.Sync.OnSubmit = refuses(mediagate.KindAmbiguous)
	slept := b.submit(1).Step
	if slept.Why != task.SleepUnknown {
		t.Fatalf("the step is %+v", slept)
	}
	stale, retry := slept, activities.Command{ID: "act_1", Action: mediagate.ActionRetry}
	stale.Why = task.SleepLookup
	retry.For = stale
	if answer := b.question(activities.Question{Commands: []activities.Command{retry}}); answer.Step.Kind != task.Sleep {
		t.Errorf("a retry of another step led to %+v", answer.Step)
	}
	retry.ID, retry.For = "act_2", slept
	if answer := b.question(
		activities.Question{Commands: []activities.Command{retry}},
	); answer.Step.Kind != task.Submit || answer.Step.N != 2 {
		t.Errorf("the retry led to %+v", answer.Step)
	}
}

// TestCommandsThatDoNotApply checks that a command that does not apply does not stop the run.
func TestCommandsThatDoNotApply(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		command  activities.Command
		recorded string // the recorded reason why it had no effect
	}{
		"no such action":           {activities.Command{ID: "act_1", Action: "restart"}, ""},
		"an action of ended tasks": {activities.Command{ID: "act_1", Action: mediagate.ActionRedeliver}, ""},
		"not of this state": {
			activities.Command{ID: "act_1", Action: mediagate.ActionPollNow},
			"poll_now does not apply to this task now: what does is fail, reroute",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, video)
			answer := b.question(activities.Question{Commands: []activities.Command{test.command}})
			why := ""
			for _, a := range b.Store.Actions() {
				why += a.Reason
			}
			if answer.Step.Kind != task.Submit || why != test.recorded {
				t.Errorf("answer %+v, on record is %q", answer, why)
			}
		})
	}
	t.Run("again after a reset", func(t *testing.T) {
		t.Parallel()
		b := setup(t, video)
		reroute := activities.Command{ID: "act_1", Action: mediagate.ActionReroute}
		b.Async.OnSubmit = func(context.Context, mediagate.Job) (mediagate.Submission, error) {
			b.question(activities.Question{Commands: []activities.Command{reroute}})
			return mediagate.Submission{Ref: mediagate.JobRef{JobID: "job"}}, nil
		}
		b.submit(1)
		if answer := b.question(
			activities.Question{Commands: []activities.Command{reroute}},
		); answer.Step.Kind != task.Sleep {
			t.Errorf("a reroute that was refused led to %+v", answer.Step)
		}
	})
	t.Run("of an ended task", func(t *testing.T) {
		t.Parallel()
		b := setup(t, video)
		b.change(task.CancelRequested{}, task.EndDue{})
		for _, action := range []string{
			activities.ActionCancel, mediagate.ActionFail, mediagate.ActionRetry, mediagate.ActionReroute,
		} {
			if answer := b.question(
				activities.Question{Commands: []activities.Command{{ID: "act_" + action, Action: action}}},
			); answer.Step.Kind != task.Done {
				t.Errorf("after %s the next step is %+v", action, answer.Step)
			}
		}
	})
	t.Run("of a task without a row", func(t *testing.T) {
		t.Parallel()
		b := setup(t, video)
		b.Store.Remove(taskID)
		if answer := b.question(
			activities.Question{Commands: []activities.Command{{ID: "act_1", Action: activities.ActionCancel}}},
		); !answer.Missing {
			t.Errorf("answer %+v", answer)
		}
	})
}

// TestCommandsInTheirOrder checks that several commands are recorded in their order before the
// answer gives the step.
func TestCommandsInTheirOrder(t *testing.T) {
	t.Parallel()
	b := setup(t, video)
	b.submit(1)
	answer := b.question(activities.Question{Commands: []activities.Command{
		{ID: "act_1", Action: mediagate.ActionReroute, Channel: "b"},
		{ID: "act_2", Action: mediagate.ActionFail},
		{ID: "act_3", Action: mediagate.ActionRetry}, // no longer applies
	}})
	if rows := b.Store.Actions(); len(rows) != 3 || rows[0].ID != "act_1" || rows[1].ID != "act_2" ||
		rows[2].Reason == "" || len(answer.Actions) != 0 {
		t.Errorf("commands on record: %+v, and %v apply", rows, answer.Actions)
	}
}

// TestStop checks that a step that is under way is stopped once it is no longer needed.
func TestStop(t *testing.T) {
	t.Parallel()
	running := func(kind task.Kind, n int) *task.Step { return &task.Step{Kind: kind, N: n} }
	for name, c := range map[string]struct {
		running *task.Step
		leave   func(*bundle)
		want    bool
	}{
		"a copy": {running(task.Mirror, 1), func(*bundle) {}, false},
		"a copy of a task to be cancelled": {
			running(task.Mirror, 1), func(b *bundle) { b.change(task.CancelRequested{}) }, true,
		},
		"a copy that is stored elsewhere": {
			running(task.Mirror, 1), func(b *bundle) { b.change(task.Mirrored{N: 1, Keep: true}) }, true,
		},
		"a lookup of a task to be cancelled": {
			running(task.Lookup, 1), func(b *bundle) { b.change(task.CancelRequested{}) }, true,
		},
		"a stop of a task to be cancelled": {
			running(task.CancelJob, 1), func(b *bundle) { b.change(task.CancelRequested{}) }, false,
		},
		"a call of an ended task": {
			running(task.Submit, 2), func(b *bundle) { b.change(task.FailRequested{}, task.EndDue{}) }, true,
		},
		"none": {nil, func(b *bundle) { b.change(task.CancelRequested{}) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := succeeded(t, activitytest.Success())
			c.leave(b)
			if answer := b.question(activities.Question{Seen: seen(1), Running: c.running}); answer.Stop != c.want {
				t.Errorf("stop: %v, want %v", answer.Stop, c.want)
			}
		})
	}
}

// TestD17ARowThatLostItsTail checks that nothing is sent if a row knows fewer attempts than the
// run: the database has lost commits.
func TestD17ARowThatLostItsTail(t *testing.T) {
	t.Parallel()
	b := setup(t, video)
	if answer := b.question(
		activities.Question{Seen: seen(2)},
	); answer.N != 2 || answer.State != mediagate.AttemptUnknown || answer.Step.Kind != task.Lookup {
		t.Errorf("answer %+v", answer)
	}
}

// TestAskAfterAFailedStep checks that the report of a failed step comes with the question, and
// counts once.
func TestAskAfterAFailedStep(t *testing.T) {
	t.Parallel()
	b := setup(t, video)
	q := activities.Question{
		Ended: &task.StepEnded{
			Step: task.Submit, N: 1, Failed: true, Kind: mediagate.KindShutOut, Code: string(mediagate.ParkFunds),
		},
	}
	first := b.question(q)
	if first.ParkReason != mediagate.ParkFunds || first.Step.Why != task.SleepParked {
		t.Errorf("answer %+v", first)
	}
	b.advance(time.Minute)
	if again := b.question(q); again.Step != first.Step {
		t.Errorf("the repeated question led to %+v, the first to %+v", again.Step, first.Step)
	}
}

// TestNoSecretInAnswers checks that an answer, which becomes part of a history, holds no prompt,
// no link, no key, and no words of a vendor.
func TestNoSecretInAnswers(t *testing.T) {
	t.Parallel()
	refused := func(w *activitytest.World) mediagate.Task {
		w.Async.OnSubmit = func(context.Context, mediagate.Job) (mediagate.Submission, error) {
			return mediagate.Submission{}, mediagate.Errorf(mediagate.KindModerated, "not %s", activitytest.Secret)
		}
		return w.NewVideo()
	}
	for name, submitted := range map[string]func(*activitytest.World) mediagate.Task{
		"asynchronous": video, "synchronous": image, "refused": refused,
	} {
		inBubble(t, name, func(t *testing.T) {
			l := newLife(t, submitted)
			answers(l.Sync)
			seen := 0
			l.seen = func(answer activities.Answer) {
				seen++
				if text, err := json.Marshal(answer); err != nil || strings.Contains(string(text), activitytest.Secret) {
					t.Errorf("%v: %s", err, text)
				}
			}
			if got := l.live(10); !got.Status.Terminal() || seen < 2 {
				t.Errorf("the task is %s after %d answers", got.Status, seen)
			}
		})
	}
}
