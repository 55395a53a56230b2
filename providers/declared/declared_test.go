package declared_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/mediagate/mediagate/providers/declared"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// The built-in files have no faults, and their examples pass.
func TestBuiltin(t *testing.T) {
	t.Parallel()
	for _, v := range declared.Builtin() {
		t.Run(v.Name, func(t *testing.T) {
			t.Parallel()
			if err := v.Test(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}
