package workflows_test

import (
	"testing"

	"go.uber.org/goleak"
)

// A run may end while one of its activities waits for its next try. The SDK's test environment
// then never ends that wait.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction(
		"go.temporal.io/sdk/internal.(*testWorkflowEnvironmentImpl).executeActivityWithRetryForTest"))
}
