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

// parallelWorlds is how many tests run at once unless -parallel says
// otherwise. They mostly wait for timeouts to pass, so the number of CPUs is
// no measure.
const parallelWorlds = "5"

// suite is what the tests of this run share. TestMain makes it; testing has no
// other place to hand it on.
var suite struct {
	bin     string // folder of the programs
	verify  bool   // run what takes long, too
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

// programs returns the folder of the programs to test, brought up to date.
// make knows whether something has changed, and builds with the flags that
// it has always used, so that nothing is linked twice.
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
		case "CGO_ENABLED", "MAKEFLAGS", "MAKELEVEL", "MFLAGS": // of the make that may have started us
		default:
			build.Env = append(build.Env, pair)
		}
	}
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("make build: %w\n%s", err, out)
	}
	return filepath.Join(root, "bin"), nil
}

// freeAddr returns an address for a process that restarts: others keep the address
// meanwhile. A process that does not restart listens on port 0, and tells where.
func freeAddr(t *testing.T) string {
	t.Helper()
	port, err := freeport.Take("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return port.Addr()
}

// anyAddr leaves the port to the process, which tells it.
const anyAddr = "127.0.0.1:0"

// eventually asks until check returns nil, and fails the test with its last
// answer when that takes longer than limit.
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

// stopError says that asking again is of no use.
type stopError struct{ reason string }

func (e *stopError) Error() string { return e.reason }
