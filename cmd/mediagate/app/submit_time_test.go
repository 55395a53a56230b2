package app_test

import (
	"testing"

	"github.com/mediagate/mediagate/activities"
	"github.com/mediagate/mediagate/cmd/mediagate/app"
	"github.com/mediagate/mediagate/providers/all"
)

// TestD6SubmissionsFitTheirBounds checks D4 and D6: no call of an adapter is under way when it
// counts as over, and a stopping worker lets each synchronous call end.
func TestD6SubmissionsFitTheirBounds(t *testing.T) {
	t.Parallel()
	grace := app.Defaults().ShutdownGrace
	for _, provider := range all.Builtin().Names() {
		adapter, _ := all.Builtin().Adapter(provider)
		for name, o := range adapter.Description.Operations {
			if o.Submit > activities.LongestSubmit {
				t.Errorf("%s %s: a submission takes up to %v, of an unknown operation %v are waited for", provider, name, o.Submit, activities.LongestSubmit)
			}
			if o.Sync && o.Submit > grace {
				t.Errorf("%s %s: a submission takes up to %v, a stopping worker waits for %v", provider, name, o.Submit, grace)
			}
		}
	}
}
