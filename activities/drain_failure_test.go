package activities_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/activities/activitytest"
)

// A task that Temporal refuses does not keep those behind it: the drain goes on for
// as long as others can be started, and ends when none can.
func TestDrainGoesOnBehindAFailure(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		refused func(id string) bool
		want    int // started
		most    int // tries
	}{
		"one task":  {func(id string) bool { return strings.HasSuffix(id, "-00000") }, 2999, 3001},
		"all tasks": {func(string) bool { return true }, 0, 100},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := activitytest.New(time.Now)
				backlog(w, "acc_1", 3000)
				time.Sleep(time.Minute)
				tries := make(chan string, 10_000)
				w.Engine.OnEnsure = func(_ context.Context, id string) error {
					tries <- id
					if c.refused(id) {
						return mediagate.Errorf(mediagate.KindInvalid, "Temporal refuses the start")
					}
					return nil
				}
				reconcile(t, w, time.Millisecond)
				if got := len(started(w)); got != c.want {
					t.Errorf("%d started, want %d", got, c.want)
				}
				if len(tries) > c.most {
					t.Errorf("%d tries, want at most %d", len(tries), c.most)
				}
			})
		})
	}
}
