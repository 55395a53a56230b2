package workflows_test

import (
	"strings"
	"testing"
	"testing/synctest"

	"pgregory.net/rapid"
)

// TestFuzzWorkflow plays random scenarios, and fails with the smallest that it
// finds to break a rule, told from its start. For each kind of vendor it plays
// a hundred, or as many as -rapid.checks says. The seed that it prints repeats
// the scenario; what begins at one moment may still come in another order.
func TestFuzzWorkflow(t *testing.T) {
	t.Parallel()
	for _, vendor := range []string{vendorFindable, vendorBlind, vendorSync} {
		t.Run(vendor, func(t *testing.T) {
			t.Parallel()
			rapid.Check(t, func(rt *rapid.T) {
				s := drawScenario(rt, vendor)
				var p *play
				synctest.Test(t, func(*testing.T) {
					p = newPlay(s)
					p.run()
				})
				if len(p.violations) > 0 {
					rt.Fatalf("%s\n\n%s\n\n%s", strings.Join(p.violations, "\n"), s, strings.Join(p.trace, "\n"))
				}
			})
		})
	}
}
