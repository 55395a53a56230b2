package workflows

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"go.temporal.io/api/serviceerror"
)

// TestRetryNamesTheReason checks that the error says why something was not done in time, even if
// the time ends within a call, whose own error does not.
func TestRetryNamesTheReason(t *testing.T) {
	t.Parallel()
	away := errors.New("the server is away")
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		err := retry(ctx, "namespace gate", func() error {
			if deadline, _ := ctx.Deadline(); time.Until(deadline) < 10*time.Second {
				<-ctx.Done()
				return serviceerror.NewDeadlineExceeded("context deadline exceeded")
			}
			return away
		})
		if !errors.Is(err, away) || !errors.Is(err, context.DeadlineExceeded) || IsFinal(err) {
			t.Errorf("%v", err)
		}
	})
}
