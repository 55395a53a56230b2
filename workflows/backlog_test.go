package workflows_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/mock"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/temporal"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/activities"
	"github.com/mediagate/mediagate/activities/activitytest"
)

// Answers of a submit: that it is made, and that the client cancels meanwhile.
const (
	made    = "made"
	cancels = "cancels"
)

// full makes the first submits find no channel that takes another call, and
// tells which they would wait behind; an answer of "" is that nobody serves its
// backlog. Later ones are made.
func (b *bundle) full(answers ...string) (behind *[]string) {
	behind = &[]string{}
	b.env.OnActivity(b.Activities.SubmitJob, mock.Anything, mock.Anything).Return(
		func(ctx context.Context, in activities.AttemptArgs) (mediagate.Story, error) {
			call := len(*behind)
			*behind = append(*behind, in.Behind)
			switch {
			case call >= len(answers), answers[call] == made:
				return b.Activities.SubmitJob(ctx, in)
			case answers[call] == "":
				return mediagate.Story{}, temporal.NewTimeoutError(enumspb.TIMEOUT_TYPE_SCHEDULE_TO_START, nil)
			}
			if answers[call] == cancels {
				_, err := b.Store.RequestCancel(ctx, "acc_1", taskID)
				b.ok(err)
			}
			st, err := b.Activities.LoadTask(ctx, activities.LoadArgs{TaskID: in.TaskID})
			st.Behind = answers[call]
			return st, err
		})
	return behind
}

// queues are those that steps of that name were put into.
func (b *bundle) queues(name string) []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	var queues []string
	for _, info := range b.infos {
		if info.ActivityType.Name == name && !slices.Contains(queues, info.TaskQueue) {
			queues = append(queues, info.TaskQueue)
		}
	}
	return queues
}

// D18: an attempt that finds no channel with room waits in the backlog of one,
// which costs no attempt and parks nobody, and looks for another from there
// when that is not served.
func TestD18WaitsInTheBacklog(t *testing.T) {
	t.Parallel()
	const call, channel = "call/" + activitytest.AsyncProvider, activitytest.AsyncChannel
	for name, test := range map[string]struct {
		answers, behind, queues []string
	}{
		"room at once":            {nil, []string{""}, []string{call}},
		"room later":              {[]string{channel}, []string{"", channel}, []string{call, "backlog/" + channel}},
		"behind another":          {[]string{channel, "other"}, []string{"", channel, "other"}, []string{call, "backlog/" + channel, "backlog/other"}},
		"behind one that is gone": {[]string{"gone", ""}, []string{"", "gone", ""}, []string{call, "backlog/gone"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, video)
			behind := b.full(test.answers...)
			b.succeeds(time.Minute, 1)
			b.run()
			b.ended(mediagate.StatusCompleted)
			b.submits(taskID)
			if diff := cmp.Diff(test.behind, *behind); diff != "" {
				t.Errorf("the attempt waits behind (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(test.queues, b.queues("SubmitJob")); diff != "" {
				t.Errorf("in the queues (-want +got):\n%s", diff)
			}
			if n := b.count("ParkTask"); n != 0 {
				t.Errorf("the task was parked %d times", n)
			}
		})
	}
}

// Who waits in a backlog after a refusal is refused no more often for it.
func TestD18BacklogIsNoRefusal(t *testing.T) {
	t.Parallel()
	b := setup(t, video)
	refuse(b.Async, 1, mediagate.KindCapacity)
	answers := []string{made}
	for range 10 {
		answers = append(answers, activitytest.AsyncChannel)
	}
	b.full(answers...)
	b.succeeds(time.Minute, 2)
	b.run()
	b.ended(mediagate.StatusCompleted)
	b.submits(taskID, taskID+"-2")
	if n := b.count("ParkTask"); n != 0 {
		t.Errorf("the task was parked %d times", n)
	}
}

// A client's cancel is heard in a backlog.
func TestD18CancelledInTheBacklog(t *testing.T) {
	t.Parallel()
	b := setup(t, video)
	behind := b.full(activitytest.AsyncChannel, activitytest.AsyncChannel, cancels)
	b.run()
	b.ended(mediagate.StatusCancelled)
	b.submits()
	if got := len(*behind); got != 3 {
		t.Errorf("%d steps, want 3", got)
	}
}
