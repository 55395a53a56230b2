package operator

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestReportTime checks that a long check prints its progress.
func TestReportTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var said strings.Builder
		stop := reportTime(&said, checkProgress)
		time.Sleep(40 * time.Second)
		stop()
		if got := said.String(); got != "checking since 15s\nchecking since 30s\n" {
			t.Errorf("said %q", got)
		}
	})
}
