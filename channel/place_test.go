package channel_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mediagate/mediagate/channel"
)

func TestD18PlacesAreTheChannelsOwn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var places channel.Places
		try := func(name string, want bool) *channel.Place {
			t.Helper()
			p, ok := places.Try(name, 2)
			if ok != want {
				t.Fatalf("a place at %s: %v, want %v", name, ok, want)
			}
			return p
		}
		first := try("a", true)
		second := try("a", true)
		try("a", false)
		try("b", true)
		first.Leave()
		first.Leave() // which gives back no other's
		third := try("a", true)
		try("a", false).Leave() // none

		if _, ok := places.Await(t.Context(), "a", 2, time.Minute); ok {
			t.Error("a third place")
		}
		cancelled, cancel := context.WithCancel(t.Context())
		cancel()
		if _, ok := places.Await(cancelled, "a", 2, time.Minute); ok {
			t.Error("a place for somebody who is gone")
		}

		// Who waits goes before who tries.
		got := make(chan bool)
		go func() {
			_, ok := places.Await(t.Context(), "a", 2, time.Minute)
			got <- ok
		}()
		synctest.Wait()
		second.Leave()
		try("a", false)
		if !<-got {
			t.Error("who waited has no place")
		}
		third.Leave()
		try("a", true)
	})
}
