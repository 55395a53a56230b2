package activities_test

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(envFailpointDir); dir != "" {
		os.Exit(mirrorUntilKilled(dir))
	}
	goleak.VerifyTestMain(m)
}
