package fal

import (
	"net/http"
	"testing"

	"github.com/mediagate/mediagate/sandbox/kernel"
)

// TestRefuseWithoutError checks that refuse answers every fault for which the kernel has no error.
func TestRefuseWithoutError(t *testing.T) {
	t.Parallel()
	for fault := kernel.NoKey; fault <= kernel.InUse; fault++ {
		if rep := refuse(kernel.CallSubmit, fault, nil); rep.Status < http.StatusBadRequest || rep.Body == nil {
			t.Errorf("fault %d: %+v", fault, rep)
		}
	}
}
