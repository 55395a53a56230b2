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
	b := succeeded(t, activitytest.Success())
	stops := func(running *task.Step) bool {
		return b.question(activities.Question{Seen: seen(1), Running: running}).Stop
	}
	copying := &task.Step{Kind: task.Mirror, N: 1}
	if stops(copying) {
		t.Error("a copy is stopped that the task needs")
	}
	b.change(task.Mirrored{N: 1, Keep: true})
	if !stops(copying) || stops(nil) {
		t.Error("a copy goes on whose files are stored already, or a run without a step is told to stop")
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
