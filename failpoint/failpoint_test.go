package failpoint_test

import (
	"errors"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"github.com/mediagate/mediagate/failpoint"
)

func TestArmRefuses(t *testing.T) {
	t.Parallel()
	if err := failpoint.Arm("no-such-point", t.TempDir()); err == nil {
		t.Error("an unknown name is taken")
	}
	if err := failpoint.Arm(failpoint.Mirrored, ""); err == nil {
		t.Error("no folder is taken")
	}
}

// TestHit runs itself as a child that passes the point and dies there, once.
func TestHit(t *testing.T) {
	t.Parallel()
	if dir := os.Getenv("FAILPOINT_TEST_DIR"); dir != "" {
		if err := failpoint.Arm(failpoint.Mirrored, dir); err != nil {
			t.Fatal(err)
		}
		failpoint.Hit(failpoint.IntentStored) // not armed
		failpoint.Hit(failpoint.Mirrored)
		return
	}
	dir := t.TempDir()
	run := func() error {
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run", "^TestHit$")
		cmd.Env = append(os.Environ(), "FAILPOINT_TEST_DIR="+dir)
		return cmd.Run()
	}
	exit, ok := errors.AsType[*exec.ExitError](run())
	if !ok || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		t.Fatalf("the first pass ends with %v, want SIGKILL", exit)
	}
	if err := run(); err != nil {
		t.Errorf("the second pass ends with %v", err)
	}
}
