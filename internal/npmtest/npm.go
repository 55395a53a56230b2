// Package npmtest runs programs of Node with packages of npm, in tests that ask
// somebody else's code for its judgement.
//
// Packages are pinned: the caller keeps a folder with package.json and its lock
// file. It imports nothing of ours.
package npmtest

import (
	"bytes"
	"cmp"
	"io"
	"os"
	"os/exec"
	"testing"
)

// systemCAs is where Debian keeps the authorities that the machine trusts. Node
// brings a list of its own and looks at no other unless told to.
const systemCAs = "/etc/ssl/certs/ca-certificates.crt"

// Install copies the folder to a temporary one, installs there what its lock
// file pins, and returns its path. Without npm the test is skipped, but not in
// continuous integration, where CI is set.
func Install(tb testing.TB, folder string) string {
	tb.Helper()
	if _, err := exec.LookPath("npm"); err != nil && os.Getenv("CI") == "" {
		tb.Skip("npm is missing: what depends on " + folder + " is not tested")
	}
	installed := tb.TempDir()
	if err := os.CopyFS(installed, os.DirFS(folder)); err != nil {
		tb.Fatal(err)
	}
	Run(tb, installed, nil, nil, "npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund")
	return installed
}

// Run runs a program in the folder, with variables beside those of the process,
// and returns what it prints. A program that fails fails the test.
func Run(tb testing.TB, folder string, stdin io.Reader, env []string, name string, args ...string) []byte {
	tb.Helper()
	cmd := exec.CommandContext(tb.Context(), name, args...) //nolint:gosec // the tests say what runs
	cmd.Dir, cmd.Stdin = folder, stdin
	cmd.Env = append(append(os.Environ(), "NODE_EXTRA_CA_CERTS="+cmp.Or(os.Getenv("NODE_EXTRA_CA_CERTS"), systemCAs)), env...)
	var out, problems bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &problems
	if err := cmd.Run(); err != nil {
		tb.Fatalf("%s %v: %v\n%s%s", name, args, err, out.Bytes(), problems.Bytes())
	}
	return out.Bytes()
}
