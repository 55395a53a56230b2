//go:build !race

package workflows_test

// mayTerminate says whether a play may terminate runs.
const mayTerminate = true
