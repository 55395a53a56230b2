// Package npmtest runs Node programs with npm packages, for tests that check our output with
// independent implementations.
//
// The folder workspace pins the packages: it is an npm workspace with a package.json for each test
// and one lock file. The packages of a part are installed once for each state of the workspace and
// kept in the user's cache folder, as Go keeps compiled packages. Each test has its own temporary
// folder, so that tests may run in parallel. To change a version, edit the package.json and run
// "npm install --package-lock-only" in workspace.
//
// npmtest imports nothing of ours.
package npmtest

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
)

// Only these files are named, since a developer's workspace may hold a node_modules.
//
//go:embed workspace/package.json workspace/package-lock.json workspace/*/package.json
var workspace embed.FS

// systemCAs is Debian's file of the certificate authorities that the machine trusts. Node has its
// own list and reads another only from NODE_EXTRA_CA_CERTS.
const systemCAs = "/etc/ssl/certs/ca-certificates.crt"

// Install copies the workspace to a temporary folder and returns the path of the named part. The
// part has links to the packages that it needs, and to no others; a test must not change them. If
// files is not empty, Install copies the content of that folder into the part too. Node and npx find
// the packages from there; their programs are in ../node_modules/.bin.
//
// Without npm the test is skipped, but not in continuous integration, where CI is set.
func Install(tb testing.TB, name, files string) string {
	tb.Helper()
	skipWithoutNPM(tb)
	root, err := fs.Sub(workspace, "workspace")
	if err != nil {
		tb.Fatal(err)
	}
	packages := installed(tb, root, name)
	copied := tb.TempDir()
	if err := os.CopyFS(copied, root); err != nil {
		tb.Fatal(err)
	}
	part := filepath.Join(copied, name)
	if files != "" {
		if err := os.CopyFS(part, os.DirFS(files)); err != nil {
			tb.Fatal(err)
		}
	}
	// A package of which parts need several versions is below the part.
	for _, folder := range []string{"node_modules", filepath.Join(name, "node_modules")} {
		if err := os.Symlink(filepath.Join(packages, folder), filepath.Join(copied, folder)); err != nil {
			tb.Fatal(err)
		}
	}
	return part
}

// installed returns the folder in the user's cache with the packages of the part. It installs them,
// unless the cache has them for the same lock file. If another process installs them at the same
// time, the first to finish keeps its folder. A folder gets its name only when it is complete.
func installed(tb testing.TB, root fs.FS, name string) string {
	tb.Helper()
	must := func(err error) {
		tb.Helper()
		if err != nil {
			tb.Fatal(err)
		}
	}
	lock, err := fs.ReadFile(root, "package-lock.json")
	must(err)
	own, err := fs.ReadFile(root, name+"/package.json")
	must(err)
	cache, err := os.UserCacheDir()
	must(err)
	cache = filepath.Join(cache, "mediagate-npm")
	folder := filepath.Join(cache, fmt.Sprintf("%s-%.8x", name, sha256.Sum256(slices.Concat(lock, own))))
	if _, err := os.Stat(folder); err == nil {
		return folder
	}
	must(os.MkdirAll(cache, 0o700))
	made, err := os.MkdirTemp(cache, "new-") //nolint:usetesting // it is renamed within the cache
	must(err)
	tb.Cleanup(func() { _ = os.RemoveAll(made) }) // unless it was kept
	must(os.CopyFS(made, root))
	install(tb, made, "--workspace="+name)
	must(os.MkdirAll(filepath.Join(made, name, "node_modules"), 0o700))
	if err := os.Rename(made, folder); !errors.Is(err, fs.ErrExist) {
		must(err)
	}
	return folder
}

// InstallPackage copies a folder with its own lock file to a temporary folder, installs the pinned
// packages there, and returns its path. Without npm the test is skipped, as in Install.
func InstallPackage(tb testing.TB, folder string) string {
	tb.Helper()
	skipWithoutNPM(tb)
	copied := tb.TempDir()
	if err := os.CopyFS(copied, os.DirFS(folder)); err != nil {
		tb.Fatal(err)
	}
	install(tb, copied)
	return copied
}

func skipWithoutNPM(tb testing.TB) {
	tb.Helper()
	if _, err := exec.LookPath("npm"); err != nil && os.Getenv("CI") == "" {
		tb.Skip("npm is missing: what depends on it is not tested")
	}
}

func install(tb testing.TB, folder string, args ...string) {
	tb.Helper()
	args = append([]string{"ci", "--ignore-scripts", "--no-audit", "--no-fund"}, args...)
	Run(tb, folder, nil, nil, "npm", args...)
}

// Run runs a program in the folder and returns its output. The environment is that of the process
// plus env. The test fails if the program fails.
func Run(tb testing.TB, folder string, stdin io.Reader, env []string, name string, args ...string) []byte {
	tb.Helper()
	cmd := exec.CommandContext(tb.Context(), name, args...) //nolint:gosec // the tests say what runs
	cmd.Dir, cmd.Stdin = folder, stdin
	cmd.Env = append(
		append(os.Environ(), "NODE_EXTRA_CA_CERTS="+cmp.Or(os.Getenv("NODE_EXTRA_CA_CERTS"), systemCAs)), env...,
	)
	var out, problems bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &problems
	if err := cmd.Run(); err != nil {
		tb.Fatalf("%s %v: %v\n%s%s", name, args, err, out.Bytes(), problems.Bytes())
	}
	return out.Bytes()
}
