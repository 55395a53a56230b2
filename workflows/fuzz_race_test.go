//go:build race

package workflows_test

// mayTerminate is false under the race detector: the suite's own goroutines race when it closes a
// workflow that something is still on its way to.
const mayTerminate = false
