package storage

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/mediagate/mediagate"
)

func TestLanes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newLanes(32, lanePatience)
		enter := func(ctx context.Context, account string) func() {
			t.Helper()
			leave, err := l.enter(ctx, account)
			if err != nil {
				t.Fatal(err)
			}
			return leave
		}
		leaves := make([]func(), l.width)
		for i := range leaves {
			leaves[i] = enter(t.Context(), "busy")
		}
		enter(t.Context(), "other")() // is in nobody's way

		// One too many waits for its patience, or for its caller's.
		if _, err := l.enter(t.Context(), "busy"); !mediagate.Is(err, mediagate.KindUnavailable) {
			t.Errorf("no room for long: %v, want unavailable", err)
		}
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := l.enter(gone, "busy"); !errors.Is(err, context.Canceled) {
			t.Errorf("nobody waits any more: %v, want canceled", err)
		}

		var crowd sync.WaitGroup
		for range 64 {
			crowd.Go(func() {
				leave, err := l.enter(t.Context(), "busy")
				if err != nil {
					t.Errorf("before a lane that moves: %v", err)
					return
				}
				leave()
			})
		}
		synctest.Wait()
		if !l.used("busy") || l.used("other") {
			t.Errorf("used: busy %v, other %v", l.used("busy"), l.used("other"))
		}
		for _, leave := range leaves {
			leave()
		}
		crowd.Wait()
		for i := range 1000 {
			enter(t.Context(), fmt.Sprint("account ", i))()
		}
		if len(l.open) != 0 {
			t.Errorf("%d lanes are kept of accounts without writers", len(l.open))
		}
	})
}

func TestLaneWidth(t *testing.T) {
	t.Parallel()
	for pool, want := range map[int]int64{1: 2, 12: 2, 32: 5, 50: 8, 100: 16} {
		if got := newLanes(pool, lanePatience).width; got != want {
			t.Errorf("of %d connections a lane has %d, want %d", pool, got, want)
		}
	}
}
