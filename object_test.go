package mediagate_test

import (
	"testing"
	"time"

	"github.com/mediagate/mediagate"
)

// A wish to cancel shows as long as it may still be granted.
func TestObjectCancelRequested(t *testing.T) {
	t.Parallel()
	for status, want := range map[mediagate.Status]bool{
		mediagate.StatusPending: true, mediagate.StatusProcessing: true,
		mediagate.StatusCompleted: false, mediagate.StatusFailed: false, mediagate.StatusCancelled: false,
	} {
		t.Run(string(status), func(t *testing.T) {
			t.Parallel()
			task := mediagate.Task{Status: status}
			if task.Object(1000, nil).CancelRequested {
				t.Error("shown without a wish")
			}
			task.CancelRequestedAt = time.Unix(1, 0)
			if got := task.Object(1000, nil).CancelRequested; got != want {
				t.Errorf("shown: %t, want %t", got, want)
			}
		})
	}
}
