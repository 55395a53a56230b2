package activities_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/activities"
	"github.com/mediagate/mediagate/activities/activitytest"
)

// A vendor's refusal may repeat the prompt. Its words reach the client, and no
// story, which becomes part of a history.
func TestStoryHoldsNoWordsOfAVendor(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]func() (mediagate.Submission, error){
		"refused": func() (mediagate.Submission, error) {
			return mediagate.Submission{}, mediagate.Invalid("", `bad value "a prompt, %s"`, activitytest.Secret)
		},
		"failed": func() (mediagate.Submission, error) {
			return mediagate.Submission{Outcome: &mediagate.Outcome{Failure: &mediagate.Failure{
				Code: mediagate.CodeGenerationFailed, Message: "bad value " + activitytest.Secret,
			}}}, nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, image)
			b.Sync.OnSubmit = func(context.Context, mediagate.Job) (mediagate.Submission, error) { return answer() }
			st := b.submit(1)
			text, err := json.Marshal(st)
			b.ok(err)
			if strings.Contains(string(text), activitytest.Secret) {
				t.Errorf("the story holds the prompt: %s", text)
			}
			must[mediagate.Story](b, b.Activities.Settle, activities.SettleArgs{TaskID: taskID, N: 1, Status: mediagate.StatusFailed, Failure: st.Failure})
			if f := b.task().Failure; f == nil || !strings.Contains(f.Message, "bad value") {
				t.Errorf("the client is told %+v", f)
			}
		})
	}
}

// A failure is never without words, also where the attempt that it rests on is
// not the newest any more.
func TestFailureHasWords(t *testing.T) {
	t.Parallel()
	b := setup(t, image)
	must[mediagate.Story](b, b.Activities.Settle, activities.SettleArgs{
		TaskID: taskID, N: 1, Status: mediagate.StatusFailed, Failure: &mediagate.Failure{Code: mediagate.CodeGenerationFailed},
	})
	if f := b.task().Failure; f == nil || f.Message == "" {
		t.Errorf("the client is told %+v", f)
	}
}
