package app

import (
	"context"
	"testing"

	"github.com/mediagate/mediagate/internal/limit"
)

// TestLargestBodyBesideTwoAccounts checks that a third account can send the largest body, whose
// buffer doubles, while two accounts hold their full shares.
func TestLargestBodyBesideTwoAccounts(t *testing.T) {
	t.Parallel()
	bodies := limit.For(limit.Sizes{BodyMemory: mostBodies, LargestBody: largestBody}).Bodies
	for _, hog := range []string{"one", "two"} {
		for more := true; more; {
			_, more = bodies.TryAcquire(hog, 1<<20)
		}
	}
	ctx, end := context.WithCancel(t.Context())
	end() // what is free it has even so
	permit, err := bodies.Acquire(ctx, "third", 32<<10)
	for err == nil && permit.Held() < largestBody {
		err = permit.Grow(ctx, min(permit.Held(), largestBody-permit.Held()))
	}
	if err != nil {
		t.Errorf("refused at %d bytes, of %d: %v", permit.Held(), largestBody, err)
	}
}
