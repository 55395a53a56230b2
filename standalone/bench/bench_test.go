package main

import (
	"os"
	"testing"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "-temporal" { // the bench starts this binary again for Temporal
		main()
		return
	}
	os.Exit(m.Run())
}

// TestMeasuring checks that a question still runs, on all servers. It ignores the figures.
func TestMeasuring(t *testing.T) {
	if testing.Short() {
		t.Skip("starts all servers")
	}
	t.Parallel()
	if err := run(t.Context(), true, "full", t.Output()); err != nil {
		t.Fatal(err)
	}
}
