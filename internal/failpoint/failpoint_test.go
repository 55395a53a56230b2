package failpoint_test

import (
	"errors"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"github.com/mediagate/mediagate/internal/failpoint"
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
		if got := failpoint.Armed(); got != failpoint.Mirrored {
			t.Errorf("armed is %q", got)
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

// TestHitStops runs itself as a child that stops at the point, once, and goes
// on when it is told to.
func TestHitStops(t *testing.T) {
	t.Parallel()
	if dir := os.Getenv("FAILPOINT_TEST_STOP_DIR"); dir != "" {
		if err := failpoint.Arm(failpoint.Mirrored+failpoint.StopSuffix, dir); err != nil {
			t.Fatal(err)
		}
		failpoint.Hit(failpoint.Mirrored)
		failpoint.Hit(failpoint.Mirrored)
		return
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run", "^TestHitStops$")
	cmd.Env = append(os.Environ(), "FAILPOINT_TEST_STOP_DIR="+t.TempDir())
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var status syscall.WaitStatus
	if _, err := syscall.Wait4(cmd.Process.Pid, &status, syscall.WUNTRACED, nil); err != nil {
		t.Fatal(err)
	}
	if !status.Stopped() || status.StopSignal() != syscall.SIGSTOP {
		t.Fatalf("the child's status is %v, want stopped", status)
	}
	if err := cmd.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("the child that continues ends with %v", err)
	}
}
