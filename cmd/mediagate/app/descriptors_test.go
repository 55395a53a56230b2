package app

import (
	"math"
	"testing"
)

// TestConnectionsLeaveDescriptors checks that a flood of connections leaves file descriptors for
// the database.
func TestConnectionsLeaveDescriptors(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		asked       int
		descriptors uint64
		want        int
	}{
		{10_000, math.MaxUint64, 10_000}, {10_000, 1 << 20, 10_000}, {10_000, 1024, 768}, {100, 1024, 100}, {100, 2, 1},
	} {
		if got := mostConnections(test.asked, test.descriptors); got != test.want {
			t.Errorf("%d of %d descriptors: %d, want %d", test.asked, test.descriptors, got, test.want)
		}
	}
	if descriptors() == 0 {
		t.Error("the process may open nothing")
	}
}
