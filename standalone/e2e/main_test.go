package e2e_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mediagate/mediagate/internal/freeport"
)

// parallelWorlds is how many tests run at once without -parallel. Tests mostly wait for
// timeouts, so the number does not depend on the number of CPUs.
const parallelWorlds = "5"

// suite holds what the tests of this run share. TestMain fills it, because package testing has
// no other way to pass values to tests.
var suite struct {
	bin     string // folder of the programs
	verify  bool   // also run the long scenarios
	janitor *janitor
	shared  *sharedInfra
}

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) (code int) {
	flag.Parse()
	given := map[string]bool{}
	flag.Visit(func(f *flag.Flag) { given[f.Name] = true })
	if !given["test.parallel"] {
		if err := flag.Set("test.parallel", parallelWorlds); err != nil {
			fmt.Fprintln(os.Stderr, "e2e:", err)
			return 1
		}
	}
	suite.verify = os.Getenv("MEDIAGATE_VERIFY") != ""
	var err error
	if suite.bin, err = programs(); err != nil {
		fmt.Fprintln(os.Stderr, "e2e:", err)
		return 1
	}
	if suite.janitor, err = hireJanitor(); err != nil {
		fmt.Fprintln(os.Stderr, "e2e:", err)
		return 1
	}
	defer suite.janitor.dismiss()
	suite.shared = &sharedInfra{}
	code = m.Run()
	if err := suite.shared.stop(); err != nil {
		fmt.Fprintln(os.Stderr, "e2e:", err)
		code = max(code, 1)
	}
	return code
}

// programs returns the folder of the programs to test. It calls make, which builds the programs
// if something has changed, always with the same flags, so that nothing is linked twice.
func programs() (string, error) {
	if given := os.Getenv("MEDIAGATE_TEST_BIN"); given != "" {
		return filepath.Abs(given)
	}
	root, err := filepath.Abs("../..")
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 9*time.Minute)
	defer cancel()
	build := exec.CommandContext(ctx, "make", "--no-print-directory", "build")
	build.Dir = root
	for _, pair := range os.Environ() {
		switch name, _, _ := strings.Cut(pair, "="); name {
		case "CGO_ENABLED", "MAKEFLAGS", "MAKELEVEL", "MFLAGS": // set by the make that may have started the tests
		default:
			build.Env = append(build.Env, pair)
		}
	}
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("make build: %w\n%s", err, out)
	}
	return filepath.Join(root, "bin"), nil
}

// freeAddr returns a free address for a process that restarts. Other processes keep using the
// address, so it must stay the same. A process that does not restart listens on port 0 and
// reports its port.
func freeAddr(t *testing.T) string {
	t.Helper()
	port, err := freeport.Take("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return port.Addr()
}

// anyAddr lets the process choose its port and report it.
const anyAddr = "127.0.0.1:0"

// eventually calls check until it returns nil. After limit, it fails the test with check's last
// error.
func eventually(t *testing.T, limit time.Duration, what string, check func() error) {
	t.Helper()
	if err := until(t.Context(), limit, check); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}

// until is eventually without a test. A stopError ends it early.
func until(ctx context.Context, limit time.Duration, check func() error) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		err := check()
		var stop *stopError
		switch {
		case err == nil:
			return nil
		case errors.As(err, &stop):
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("not within %s: %w", limit, err)
		case <-tick.C:
		}
	}
}

// stopError is an error that makes further calls useless.
type stopError struct{ reason string }

func (e *stopError) Error() string { return e.reason }
