package workflows_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/mock"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/activities"
	"github.com/mediagate/mediagate/activities/activitytest"
	"github.com/mediagate/mediagate/task"
	"github.com/mediagate/mediagate/task/story"
	"github.com/mediagate/mediagate/workflows"
)

// asked makes Ask return these answers, one after the other, and the last one for ever. It keeps
// the questions.
func (b *bundle) asked(answers ...activities.Answer) (questions *[]activities.Question) {
	questions = &[]activities.Question{}
	b.env.OnActivity(
		"Ask", mock.Anything, mock.Anything,
	).Return(func(_ context.Context, q activities.Question) (activities.Answer, error) {
		*questions = append(*questions, q)
		return answers[min(len(*questions), len(answers))-1], nil
	})
	return questions
}

func sleeping(d time.Duration) activities.Answer {
	step := task.Step{Kind: task.Sleep, N: 1, Why: task.SleepVendor, Until: start.Add(d)}
	return activities.Answer{
		Now: start, Explanation: story.Explanation{Status: mediagate.StatusProcessing, N: 1, Step: step}, Seen: seen,
	}
}

// seen is the memory that the answers of these tests give to runs.
var seen = task.Seen{Sending: task.Sending{N: 1}}

var done = activities.Answer{
	Explanation: story.Explanation{Status: mediagate.StatusCompleted, N: 1, Step: task.Step{Kind: task.Done}},
}

// TestSignalsByHand checks that each signal wakes a run that sleeps, and that each command is
// recorded once, for the step that the run was sleeping on.
func TestSignalsByHand(t *testing.T) {
	t.Parallel()
	b := setup(t, video)
	first := sleeping(time.Hour)
	questions := b.asked(first, first, first, first, first, done)
	b.at(time.Minute, func() {
		b.signal(mediagate.ActionReroute, "other")
		b.signal(mediagate.ActionPollNow, nil)
		b.signal(mediagate.ActionFail, nil)
		b.signal(mediagate.ActionRetry, nil)
		b.signal(mediagate.ActionRetry, nil)
		b.signal(workflows.SignalWake, nil)
	})
	b.at(2*time.Minute, func() {
		b.signal(mediagate.ActionReroute, nil)
		b.signal(mediagate.ActionReroute, 7) // not a channel
	})
	b.run()
	command := func(id, action, channel string) activities.Command {
		return activities.Command{ID: "act_/" + id, Action: action, Channel: channel, For: first.Step}
	}
	var got []activities.Command
	for _, q := range *questions {
		got = append(got, q.Commands...)
	}
	want := []activities.Command{
		command("reroute/1", "reroute", "other"), command("retry/1", "retry", ""), command("retry/2", "retry", ""),
		command("fail/1", "fail", ""),
		command("poll_now/1", "poll_now", ""), command("reroute/2", "reroute", ""),
	}
	same(t, "commands", got, want)
}

// TestCommandsOfARunThatWasReset checks the ids of commands. A run that was reset gets the
// signals again that came one by one, now all at once, together with a new one. The old ones keep
// the ids under which they are on record. The new one needs an id of its own, or it would count
// as one of the old ones.
func TestCommandsOfARunThatWasReset(t *testing.T) {
	t.Parallel()
	ids := func(script func(*bundle)) map[string]string {
		b := setup(t, video)
		script(b)
		questions, ids := b.asked(sleeping(time.Hour), sleeping(time.Hour), sleeping(time.Hour), done), map[string]string{}
		b.run()
		for _, q := range *questions {
			for _, c := range q.Commands {
				ids[c.Action] = c.ID
			}
		}
		return ids
	}
	before := ids(func(b *bundle) {
		b.signals(time.Minute, mediagate.ActionReroute, nil)
		b.signals(2*time.Minute, mediagate.ActionPollNow, nil)
	})
	after := ids(func(b *bundle) {
		b.at(time.Minute, func() {
			for _, action := range []string{mediagate.ActionReroute, mediagate.ActionPollNow, mediagate.ActionFail} {
				b.signal(action, nil)
			}
		})
	})
	if len(before) != 2 || len(after) != 3 {
		t.Fatalf("commands before %v, after %v", before, after)
	}
	for action, id := range before {
		if after[action] != id {
			t.Errorf("%s is recorded as %s and again as %s", action, id, after[action])
		}
		if after[mediagate.ActionFail] == id {
			t.Errorf("the fail is taken for the %s on record", action)
		}
	}
}

// TestD6ARetryFromBeforeTheLossIsIgnored checks that a retry is for what the operator saw: it
// does not give up an attempt that was lost since.
func TestD6ARetryFromBeforeTheLossIsIgnored(t *testing.T) {
	t.Parallel()
	b := setup(t, func(w *activitytest.World) mediagate.Task {
		t := w.NewImage()
		t.Plan.OnUnknown = mediagate.OnUnknownPark
		return t
	})
	b.Sync.OnSubmit = func(context.Context, mediagate.Job) (mediagate.Submission, error) {
		b.signal(mediagate.ActionRetry, nil)
		return mediagate.Submission{}, mediagate.Errorf(mediagate.KindAmbiguous, "the answer was lost")
	}
	b.signals(time.Hour, mediagate.ActionFail, nil)
	b.run()
	b.ended(mediagate.StatusFailed, mediagate.CodeSubmissionUnknown)
	b.submits(taskID)
}

// TestD5AStepThatRunsHears checks that a cancel stops a step that is under way. If the vendor
// answers all the same, the answer is on record before the task ends.
func TestD5AStepThatRunsHears(t *testing.T) {
	t.Parallel()
	ways := map[string]struct {
		send func(*bundle)
		want mediagate.Status
	}{
		"the client's cancel": {func(b *bundle) {
			_, err := b.Store.Change(context.Background(), taskID, task.CancelRequested{})
			b.ok(err)
			b.signal(workflows.SignalWake, nil)
		}, mediagate.StatusCancelled},
		"a cancel of the run":    {func(b *bundle) { b.env.CancelWorkflow() }, mediagate.StatusCancelled},
		"an operator's fail":     {func(b *bundle) { b.signal(mediagate.ActionFail, nil) }, mediagate.StatusFailed},
		"a wake without a cause": {func(b *bundle) { b.signal(workflows.SignalWake, nil) }, ""},
	}
	steps := map[string]func(b *bundle, meanwhile func()){
		"submitting": func(b *bundle, meanwhile func()) {
			b.Async.OnSubmit = func(_ context.Context, job mediagate.Job) (mediagate.Submission, error) {
				meanwhile()
				return b.Async.Accept(job)
			}
		},
		"copying": func(b *bundle, meanwhile func()) {
			b.succeeds(time.Minute, 1)
			b.Bucket.OnMirror = func(string) error {
				meanwhile()
				return nil
			}
		},
	}
	for step, script := range steps {
		for way, c := range ways {
			t.Run(step+", "+way, func(t *testing.T) {
				t.Parallel()
				b := setup(t, video)
				var asked atomic.Int64
				var once atomic.Bool
				heard := make(chan struct{})
				b.env.SetOnLocalActivityCompletedListener(func(*activity.Info, converter.EncodedValue, error) {
					if once.Load() && asked.Add(1) == 1 {
						close(heard)
					}
				})
				script(b, func() {
					if once.CompareAndSwap(false, true) {
						c.send(b)
						<-heard
					}
				})
				b.copied(3*time.Hour, 1)
				b.run()
				if c.want == "" {
					// the other successes come too late
					if st := b.state().Status; (st == mediagate.StatusCompleted) != (step == "copying") {
						t.Errorf("the task is %s", st)
					}
					return
				}
				st := b.state()
				if end := b.Store.End(taskID); end.Times != 1 || st.Status != c.want {
					t.Errorf("the task ended %d times, as %s; want once, as %s", end.Times, st.Status, c.want)
				}
				if step == "submitting" && len(b.Async.Cancelled()) != 1 {
					t.Errorf("%d jobs stopped, want 1", len(b.Async.Cancelled()))
				}
				b.submits(taskID)
				if len(b.Store.Wakes(taskID)) != 0 || len(b.Bucket.Objects()) != 0 {
					t.Errorf("wakes %v, files %v are left", b.Store.Wakes(taskID), b.Bucket.Objects())
				}
			})
		}
	}
}

// TestStepsThatFail checks what the run reports about a step that failed, by the error of its
// activity.
func TestStepsThatFail(t *testing.T) {
	t.Parallel()
	step := task.Step{Kind: task.Settle, N: 3}
	failed := func(kind mediagate.Kind, code, reason string) *task.StepEnded {
		return &task.StepEnded{Step: task.Settle, N: 3, Failed: true, Kind: kind, Code: code, Reason: reason}
	}
	for name, c := range map[string]struct {
		err  error
		want *task.StepEnded
	}{
		"for a client to read": {
			temporal.NewNonRetryableApplicationError("no video", mediagate.KindInvalid.String(), nil, "code"),
			failed(mediagate.KindInvalid, "code", "no video"),
		},
		"a file too large, for a client to read": {
			temporal.NewNonRetryableApplicationError("no video", mediagate.KindTooLarge.String(), nil, "code"),
			failed(mediagate.KindTooLarge, "code", "no video"),
		},
		"for operators": {
			temporal.NewNonRetryableApplicationError("the key is wrong", mediagate.KindCredentials.String(), nil, "code"),
			failed(mediagate.KindCredentials, "code", ""),
		},
		"by its time": {
			temporal.NewTimeoutError(enumspb.TIMEOUT_TYPE_START_TO_CLOSE, nil), failed(mediagate.KindTransient, "", ""),
		},
		"before it was started": {temporal.NewTimeoutError(enumspb.TIMEOUT_TYPE_SCHEDULE_TO_START, nil), nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, video)
			questions := b.asked(activities.Answer{Explanation: story.Explanation{Step: step}}, done)
			b.env.OnActivity("Settle", mock.Anything, mock.Anything).Return(activities.Answer{}, c.err)
			b.run()
			if got := *questions; len(got) != 2 || !cmp.Equal(got[1].Ended, c.want) {
				t.Errorf("questions %+v, want the second with %+v", got, c.want)
			}
		})
	}
}

// TestD5AStepThatWasStoppedParksNothing checks that a step that was stopped has not failed: the
// row knows why it was stopped.
func TestD5AStepThatWasStoppedParksNothing(t *testing.T) {
	t.Parallel()
	b := setup(t, video)
	step := task.Step{Kind: task.Submit, N: 2, Provider: "p"}
	stop := activities.Answer{Explanation: story.Explanation{Step: task.Step{Kind: task.Settle}}, Stop: true}
	questions := b.asked(
		activities.Answer{
			Explanation: story.Explanation{Step: step, N: 1}, Now: start, StepEnds: start.Add(time.Hour), Seen: seen,
		},
		stop, done,
	)
	over := make(chan struct{}) // the suite does not wait for a step that is cancelled
	b.env.OnActivity(
		"SubmitJob", mock.Anything, mock.Anything,
	).Return(func(context.Context, activities.StepArgs) (activities.Answer, error) {
		b.signal(mediagate.ActionFail, nil)
		<-over
		return activities.Answer{}, nil
	})
	b.run()
	close(over)
	want := []activities.Question{
		{TaskID: taskID},
		{
			TaskID: taskID, Seen: seen, Running: &step,
			Commands: []activities.Command{{ID: "act_/fail/1", Action: "fail", For: step}},
		},
		{TaskID: taskID, Seen: seen},
	}
	same(t, "questions", *questions, want)
}

// TestD13AnAnswerThatKnowsLess checks that a run keeps what it has seen of a cancel (D13) or a
// job (D5) if the answer to a step says less. That happens if the database lost it while the step
// was under way, or if the step failed. The run asks at once, so that the row adopts it.
func TestD13AnAnswerThatKnowsLess(t *testing.T) {
	t.Parallel()
	sent := task.Sending{N: 1, Channel: "a", SendBefore: start}
	more := task.Seen{Sending: sent, Ref: mediagate.JobRef{JobID: "job"}, Cancelled: true, Failed: true}
	for name, c := range map[string]struct {
		heard, answered task.Seen
		err             error
	}{
		"its row lost the commands":    {more, task.Seen{Sending: sent, Ref: more.Ref}, nil},
		"its row lost the job as well": {more, task.Seen{Sending: sent}, nil},
		"its row lost the attempt":     {more, task.Seen{}, nil},
		"it failed, before the attempt": {
			task.Seen{Cancelled: true, Failed: true},
			task.Seen{},
			temporal.NewNonRetryableApplicationError("no", "internal", nil),
		},
		"it failed, of the first attempt": {
			more, task.Seen{}, temporal.NewNonRetryableApplicationError("no", "internal", nil),
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, video)
			first := activities.Answer{
				Now: start, StepEnds: start.Add(time.Hour),
				Explanation: story.Explanation{Step: task.Step{Kind: task.CancelJob, N: 1, Provider: "p"}},
			}
			meanwhile := activities.Answer{Seen: c.heard}
			questions := b.asked(first, meanwhile, done)
			asked, heard := 0, make(chan struct{})
			b.env.SetOnLocalActivityCompletedListener(func(*activity.Info, converter.EncodedValue, error) {
				if asked++; asked == 2 {
					close(heard)
				}
			})
			b.env.OnActivity(
				"CancelJob", mock.Anything, mock.Anything,
			).Return(func(context.Context, activities.StepArgs) (activities.Answer, error) {
				b.signal(workflows.SignalWake, nil)
				<-heard
				return activities.Answer{Now: start, Explanation: sleeping(time.Hour).Explanation, Seen: c.answered}, c.err
			})
			b.run()
			got := *questions
			if len(got) != 3 {
				t.Fatalf("%d questions, want 3", len(got))
			}
			same(t, "the run knows", got[2].Seen, c.heard)
			if took := b.env.Now().Sub(start); took > time.Minute {
				t.Errorf("the run asked after %v", took)
			}
		})
	}
}

// TestTheCancelOfARunIsRecorded checks that the cancel of a run is recorded, once, and does not
// end the run.
func TestTheCancelOfARunIsRecorded(t *testing.T) {
	t.Parallel()
	b := setup(t, video)
	questions := b.asked(sleeping(time.Hour), sleeping(time.Hour), done)
	b.at(time.Minute, b.env.CancelWorkflow)
	b.run()
	if got := *questions; len(got) != 3 || len(got[1].Commands) != 1 ||
		got[1].Commands[0].Action != activities.ActionCancel || len(got[2].Commands) != 0 {
		t.Errorf("questions %+v", got)
	}
	if got := b.env.Now().Sub(start); got != time.Hour+time.Minute {
		t.Errorf("the second sleep ended after %v", got)
	}
}

// TestARunEndsWithNothingPending checks that a command that comes with the end of the task is
// recorded before the run ends.
func TestARunEndsWithNothingPending(t *testing.T) {
	t.Parallel()
	b := setup(t, video)
	ending := done
	ending.Step.Round = 1
	questions := b.asked(ending)
	var once atomic.Bool
	b.env.OnWorkflow("DeliverWebhook", mock.Anything, mock.Anything).Return(nil)
	b.env.SetOnChildWorkflowStartedListener(func(*workflow.Info, workflow.Context, converter.EncodedValues) {
		if once.CompareAndSwap(false, true) {
			b.signal(mediagate.ActionFail, nil)
		}
	})
	b.run()
	if got := *questions; len(got) != 2 || len(got[1].Commands) != 1 {
		t.Errorf("questions %+v, want the second with the command", got)
	}
}

// TestContinueAsNew checks that a long history continues as new, with nothing pending, and with
// what the run has seen.
func TestContinueAsNew(t *testing.T) {
	t.Parallel()
	b := setup(t, video)
	b.env.SetContinueAsNewSuggested(true)
	questions := b.asked(sleeping(time.Hour))
	b.signals(0, mediagate.ActionFail, nil)
	b.env.ExecuteWorkflow(workflows.Generate, workflows.Input{TaskID: taskID})
	next, ok := errors.AsType[*workflow.ContinueAsNewError](b.env.GetWorkflowError())
	if !ok {
		t.Fatalf("the run ended with %v", b.env.GetWorkflowError())
	}
	var in workflows.Input
	b.ok(converter.GetDefaultDataConverter().FromPayloads(next.Input, &in))
	if in != (workflows.Input{TaskID: taskID, Seen: seen}) {
		t.Errorf("it continues with %+v", in)
	}
	commands := 0
	for _, q := range *questions {
		commands += len(q.Commands)
	}
	if commands != 1 {
		t.Errorf("questions %+v, want the command in one", *questions)
	}
	b = setup(t, video)
	b.env.SetContinueAsNewSuggested(true)
	b.asked(done)
	b.run()
}

func TestD1AMissingRowFails(t *testing.T) {
	t.Parallel()
	b := setup(t, video)
	b.Store.Remove(taskID)
	b.env.ExecuteWorkflow(workflows.Generate, workflows.Input{TaskID: taskID})
	if app, ok := errors.AsType[*temporal.ApplicationError](
		b.env.GetWorkflowError(),
	); !ok || app.Type() != "row_missing" || !app.NonRetryable() {
		t.Errorf("the run ended with %v, want row_missing", b.env.GetWorkflowError())
	}
	b.submits()
}

// TestAnUnknownStepFailsTheWorkflowTask checks that a step of a newer build is left to that
// build: the workflow task fails, and is tried again.
func TestAnUnknownStepFailsTheWorkflowTask(t *testing.T) {
	t.Parallel()
	b := setup(t, video)
	b.asked(activities.Answer{Explanation: story.Explanation{Step: task.Step{Kind: "fly"}}})
	b.env.ExecuteWorkflow(workflows.Generate, workflows.Input{TaskID: taskID})
	if err := b.env.GetWorkflowError(); err == nil || !strings.Contains(err.Error(), `does not know the step "fly"`) {
		t.Errorf("the run ended with %v", err)
	}
}

// TestTimesAreByTheDatabasesClock checks that the times of a step are by the database's clock,
// whatever the run's clock says.
func TestTimesAreByTheDatabasesClock(t *testing.T) {
	t.Parallel()
	b := setup(t, video)
	ahead := start.Add(24 * time.Hour)
	b.asked(
		activities.Answer{
			Now: ahead, StepEnds: ahead.Add(7 * time.Minute),
			Explanation: story.Explanation{Step: task.Step{Kind: task.Submit, N: 1, Provider: "p"}},
		},
		activities.Answer{
			Now: ahead, StepEnds: ahead.Add(-time.Minute),
			Explanation: story.Explanation{Step: task.Step{Kind: task.CheckInputs}},
		},
		activities.Answer{
			Now: ahead, StepEnds: ahead.Add(time.Minute),
			Explanation: story.Explanation{Step: task.Step{Kind: task.Mirror, N: 1}},
		},
		activities.Answer{
			Now: ahead,
			Explanation: story.Explanation{
				Step: task.Step{Kind: task.Sleep, Why: task.SleepPause, Until: ahead.Add(time.Minute)},
			},
		}, done,
	)
	for _, name := range []string{"SubmitJob", "CheckInputs", "MirrorResult"} {
		b.env.OnActivity(name, mock.Anything, mock.Anything).Return(
			activities.Answer{}, temporal.NewNonRetryableApplicationError("no", "internal", nil),
		)
	}
	b.run()
	if got := b.env.Now().Sub(start); got != time.Minute {
		t.Errorf("the run slept for %v, want 1m", got)
	}
	want := []time.Duration{7 * time.Minute, time.Second, time.Hour}
	var got []time.Duration
	for _, info := range b.infos {
		got = append(got, info.ScheduleToCloseTimeout)
	}
	same(t, "steps may take", got, want)
}
