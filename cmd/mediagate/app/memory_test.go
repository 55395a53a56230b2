package app

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/KimMachineGun/automemlimit/memlimit"
)

// TestLimitMemory runs this program as a process with its own environment: the container's limit
// counts, and an explicit limit takes precedence.
func TestLimitMemory(t *testing.T) {
	const child = "MEDIAGATE_TEST_MEMORY"
	if os.Getenv(child) != "" {
		var log bytes.Buffer
		limitMemory(t.Context(), slog.New(slog.NewTextHandler(&log, nil)), memlimit.Limit(100<<20))
		t.Logf("limit %d, bodies %d, %s", debug.SetMemoryLimit(-1), bodyBudget(), &log)
		return
	}
	t.Parallel()
	for name, test := range map[string]struct {
		variable string
		limit    int64
	}{
		"of the container": {limit: 90 << 20},
		"explicit":         {"GOMEMLIMIT=1GiB", 1 << 30},
		"explicitly none":  {"GOMEMLIMIT=off", 1<<63 - 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestLimitMemory$", "-test.v")
			for _, pair := range os.Environ() {
				if !strings.HasPrefix(pair, "GOMEMLIMIT=") && !strings.HasPrefix(pair, "AUTOMEMLIMIT=") {
					cmd.Env = append(cmd.Env, pair)
				}
			}
			cmd.Env = append(cmd.Env, child+"=1")
			if test.variable != "" {
				cmd.Env = append(cmd.Env, test.variable)
			}
			out, err := cmd.CombinedOutput()
			if want := fmt.Sprintf("limit %d, bodies %d, ", test.limit, min(test.limit/8, 186<<20)); err != nil || !strings.Contains(string(out), want) {
				t.Errorf("want %q: %v\n%s", want, err, out)
			}
		})
	}
}
