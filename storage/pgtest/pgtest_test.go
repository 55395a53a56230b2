package pgtest_test

import (
	"database/sql"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mediagate/mediagate/storage/pgtest"
)

// helperEnv makes this binary run only TestHelper, in that way.
const helperEnv = "PGTEST_HELPER"

func TestMain(m *testing.M) { os.Exit(pgtest.Main(m)) }

func TestDatabasesAreApart(t *testing.T) {
	t.Parallel()
	one, two := connect(t, pgtest.New(t)), connect(t, pgtest.New(t))
	if _, err := one.ExecContext(t.Context(), "INSERT INTO accounts (id, name, created_at) VALUES ('acc_1', 'x', now())"); err != nil {
		t.Fatal(err)
	}
	var n int
	if err := two.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM accounts").Scan(&n); err != nil || n != 0 {
		t.Errorf("%d accounts of another test (error %v)", n, err)
	}
}

func TestClusterStartsAndStops(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(openTempDir(t), "cluster")
	c, err := pgtest.Start(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Stop() })
	url := c.URL("postgres")
	var one int
	if err := connect(t, url).QueryRowContext(t.Context(), "SELECT 1").Scan(&one); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := c.Stop(); err != nil {
			t.Fatal(err)
		}
	}
	if serves(url) {
		t.Error("the server still serves")
	}
}

// TestHelper is run by TestNothingIsLeft in another process.
func TestHelper(t *testing.T) {
	mode := os.Getenv(helperEnv)
	if mode == "" {
		return
	}
	url := pgtest.New(t)
	if err := os.WriteFile(filepath.Join(os.TempDir(), "url"), []byte(url), 0o600); err != nil {
		t.Fatal(err)
	}
	switch mode {
	case "fail":
		t.Fatal("as asked")
	case "panic":
		panic("as asked")
	case "exit":
		os.Exit(3)
	}
}

func TestNothingIsLeft(t *testing.T) {
	t.Parallel()
	if os.Getenv(helperEnv) != "" {
		return
	}
	for _, mode := range []string{"pass", "fail", "panic", "exit"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			dir := openTempDir(t)
			self, err := os.Executable()
			if err != nil {
				t.Fatal(err)
			}
			cmd := exec.CommandContext(t.Context(), self, "-test.run=^TestHelper$")
			cmd.Env = append(os.Environ(), helperEnv+"="+mode, "TMPDIR="+dir, "MEDIAGATE_TEST_POSTGRES=")
			out, err := cmd.CombinedOutput()
			if (err == nil) != (mode == "pass") {
				t.Fatalf("the helper ended with %v:\n%s", err, out)
			}
			url, err := os.ReadFile(filepath.Join(dir, "url"))
			if err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			deadline := time.Now().Add(30 * time.Second)
			for {
				left, err := filepath.Glob(filepath.Join(dir, "mediagate-pg-*"))
				if err != nil {
					t.Fatal(err)
				}
				if len(left) == 0 && !serves(string(url)) {
					return
				}
				if time.Now().After(deadline) {
					t.Fatalf("left behind: %v, serving: %v", left, serves(string(url)))
				}
				time.Sleep(50 * time.Millisecond) // another process cleans up: there is nothing to wait on
			}
		})
	}
}

// openTempDir is a temporary folder that the server's account may enter.
func openTempDir(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, d := range []string{filepath.Dir(dir), dir} {
		if err := os.Chmod(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func connect(t *testing.T, url string) *sql.DB {
	t.Helper()
	db, err := sql.Open("pgx", url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// serves reports whether something listens at the URL's address.
func serves(url string) bool {
	_, rest, _ := strings.Cut(url, "@")
	address, _, _ := strings.Cut(rest, "/")
	conn, err := net.DialTimeout("tcp", address, time.Second)
	if err != nil {
		return false
	}
	_ = conn.Close()
	return true
}
