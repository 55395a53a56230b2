//go:build !race

package workflows_test

// mayTerminate says that a play may terminate runs.
const mayTerminate = true
