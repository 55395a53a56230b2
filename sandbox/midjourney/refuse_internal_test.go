package midjourney

import (
	"testing"

	"github.com/mediagate/mediagate/sandbox/kernel"
)

// TestRefuseWithoutError checks that refuse answers every fault for which the kernel has no error.
func TestRefuseWithoutError(t *testing.T) {
	t.Parallel()
	for fault := kernel.NoKey; fault <= kernel.InUse; fault++ {
		rep := refuse(kernel.CallSubmit, fault, nil)
		if body, _ := rep.Body.(map[string]any); fault != kernel.NoPath && (body["code"] == codeAccepted || body["description"] == "") {
			t.Errorf("fault %d: %+v", fault, rep)
		}
	}
}
