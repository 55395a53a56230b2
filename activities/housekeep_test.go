package activities_test

import (
	"bytes"
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/activities/activitytest"
)

// TestHousekeepingGoesOn checks that a chore that fails, or hangs, delays no other, and that the
// log says so.
func TestHousekeepingGoesOn(t *testing.T) {
	t.Parallel()
	for _, method := range []string{
		"DueWakes", "PutOff", "AwaitChannels", "ExpireSlots", "DueSweeps", "CountVendorCharges", "RetryParked",
	} {
		inBubble(t, method, func(t *testing.T) {
			var log bytes.Buffer
			b := bubbled(t)
			b.Activities.Logger = slog.New(slog.NewTextHandler(&log, nil))
			b.submit(1)
			time.Sleep(3 * time.Hour) // the run is to be signalled
			var mu sync.Mutex
			asked := map[string]bool{}
			b.Store.Fault = func(m string) error {
				mu.Lock()
				defer mu.Unlock()
				asked[m] = true
				if m == method {
					return mediagate.Errorf(mediagate.KindUnavailable, "the database is away")
				}
				return nil
			}
			housekeep(t, b.World, time.Millisecond)
			for _, other := range []string{
				"DueWakes", "AwaitChannels", "ExpireSlots", "DueSweeps", "CountVendorCharges", "RetryParked",
			} {
				if !asked[other] {
					t.Errorf("%s was not called", other)
				}
			}
			if text := log.String(); strings.Count(text, "the database is away") != 1 {
				t.Errorf("the log:\n%s", text)
			}
			if got := slices.Contains(b.Engine.Calls(), "wake "+taskID); got != (method != "DueWakes") {
				t.Errorf("calls %v", b.Engine.Calls())
			}
		})
	}
}

// TestHousekeepingGoesOnWhileTemporalHangs checks that a Temporal that hangs delays the wakes,
// and no other chore.
func TestHousekeepingGoesOnWhileTemporalHangs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := bubbled(t)
		b.submit(1)
		time.Sleep(3 * time.Hour)
		b.Engine.OnWake = func(ctx context.Context, _ string) error {
			<-ctx.Done()
			return ctx.Err()
		}
		housekeep(t, b.World, 5*time.Minute)
		if got := b.Engine.Calls(); !slices.Contains(got, "channel "+activitytest.AsyncChannel) {
			t.Errorf("calls %v, want the channel's", got)
		}
		if w := b.Store.Wakes(taskID)[mediagate.WakeRun]; w.Tries != 0 || !w.At.After(time.Now().Add(-time.Minute)) {
			t.Errorf("the wake is %+v: what was tried in vain is put off, and does not count", w)
		}
	})
}
