package datadir_test

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mediagate/mediagate/standalone/datadir"
)

func open(t *testing.T, path string) *datadir.Dir {
	t.Helper()
	dir, err := datadir.Open(path)
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	t.Cleanup(func() { _ = dir.Close() })
	return dir
}

// TestOpenIsExclusive checks that a second process is refused, and that it leaves the first one's
// announcement alone.
func TestOpenIsExclusive(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "data")
	first := open(t, path)
	if err := first.Announce(map[string]int{"pid": 1}); err != nil {
		t.Fatal(err)
	}
	if _, err := datadir.Open(path); !errors.Is(err, datadir.ErrLocked) {
		t.Fatalf("second open = %v, want ErrLocked", err)
	}
	if _, err := os.Stat(first.Path("standalone.json")); err != nil {
		t.Errorf("the refused process removed standalone.json: %v", err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	open(t, path)
}

// TestOpenShutsOthersOut checks that Open removes the rights of other users from an existing
// folder and its entries, as in a new folder.
func TestOpenShutsOthersOut(t *testing.T) {
	t.Parallel()
	path := t.TempDir()
	elsewhere := filepath.Join(t.TempDir(), "elsewhere")
	for _, file := range []string{filepath.Join(path, "secrets.json"), filepath.Join(path, "mediagate.db"), elsewhere} {
		if err := os.WriteFile(file, []byte("{}"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(
		os.Mkdir(filepath.Join(path, "s3"), 0o700), os.Symlink(elsewhere, filepath.Join(path, "link")),
		os.Chmod(path, 0o755), os.Chmod(filepath.Join(path, "s3"), 0o775), os.Chmod(filepath.Join(path, "secrets.json"), 0o644),
		os.Chmod(filepath.Join(path, "mediagate.db"), 0o666), os.Chmod(elsewhere, 0o644),
	); err != nil {
		t.Fatal(err)
	}
	open(t, path)
	for file, want := range map[string]fs.FileMode{
		".": 0o700, "lock": 0o600, "secrets.json": 0o600, "mediagate.db": 0o600, "s3": 0o700, "link": 0o644,
	} {
		about, err := os.Stat(filepath.Join(path, file))
		if err != nil {
			t.Fatal(err)
		}
		if got := about.Mode().Perm(); got != want {
			t.Errorf("%s has mode %o, want %o", file, got, want)
		}
	}
}

// TestSharedFolderIsRefused checks that Open refuses a folder shared by many users, and does not
// change it.
func TestSharedFolderIsRefused(t *testing.T) {
	t.Parallel()
	path := t.TempDir()
	if err := os.Chmod(path, 0o777|fs.ModeSticky); err != nil {
		t.Fatal(err)
	}
	if dir, err := datadir.Open(path); err == nil {
		t.Errorf("%v is taken", dir)
	}
	about, err := os.Stat(path)
	if err != nil || about.Mode().Perm() != 0o777 {
		t.Errorf("mode %v, %v", about.Mode(), err)
	}
}

// TestFolderOfOthersIsRefused checks that Open refuses a folder with other files, which an
// operator may have named by mistake, and does not change it. Open accepts a folder that is
// empty, ours or from a backup.
func TestFolderOfOthersIsRefused(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		files   []string
		refused bool
	}{
		"empty":                  {},
		"a new volume":           {files: []string{"lost+found"}},
		"a backup":               {files: []string{"secrets.json", "mediagate.db", "notes"}},
		"a start that broke off": {files: []string{"lock", "notes"}},
		"a system":               {files: []string{"passwd", "shadow"}, refused: true},
		"a home":                 {files: []string{".profile"}, refused: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := t.TempDir()
			for _, file := range test.files {
				if err := os.WriteFile(filepath.Join(path, file), []byte("{}"), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if err := os.Chmod(path, 0o755); err != nil {
				t.Fatal(err)
			}
			dir, err := datadir.Open(path)
			if err == nil {
				t.Cleanup(func() { _ = dir.Close() })
			}
			about, statErr := os.Stat(path)
			if (err != nil) != test.refused || statErr != nil || (about.Mode().Perm() == 0o755) != test.refused {
				t.Errorf("%v; mode %v, %v", err, about.Mode(), statErr)
			}
			if entries, err := os.ReadDir(path); test.refused && (err != nil || len(entries) != len(test.files)) {
				t.Errorf("%v, %v", entries, err)
			}
		})
	}
}

func TestOpenRemovesAStaleAnnouncement(t *testing.T) {
	t.Parallel()
	path := t.TempDir()
	stale := filepath.Join(path, "standalone.json")
	if err := os.WriteFile(stale, []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	open(t, path)
	if _, err := os.Stat(stale); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("standalone.json of the process before is still there (stat: %v)", err)
	}
}

func TestAnnounce(t *testing.T) {
	t.Parallel()
	dir := open(t, t.TempDir())
	want := map[string]string{"api": "http://127.0.0.1:8080"}
	if err := dir.Announce(want); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(dir.Path("standalone.json"))
	if err != nil {
		t.Fatal(err)
	}
	if got := info.Mode().Perm(); got != 0o600 {
		t.Errorf("mode = %o, want 600", got)
	}
	data, err := os.ReadFile(dir.Path("standalone.json"))
	if err != nil {
		t.Fatal(err)
	}
	var got map[string]string
	if err := json.Unmarshal(data, &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("standalone.json (-want +got):\n%s", diff)
	}
	for i := range 2 { // the second call has nothing to remove
		if err := dir.Retract(); err != nil {
			t.Errorf("retract, call %d: %v", i+1, err)
		}
	}
	left, err := filepath.Glob(dir.Path(".standalone*"))
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %v %v", left, err)
	}
}

func TestSecretsStay(t *testing.T) {
	t.Parallel()
	path := t.TempDir()
	dir := open(t, path)
	made, err := dir.Secrets()
	if err != nil {
		t.Fatal(err)
	}
	if key, err := base64.StdEncoding.DecodeString(made.EncryptionKey); err != nil || len(key) != 32 {
		t.Errorf("encryption key of %d bytes (%v), want 32", len(key), err)
	}
	if len(made.AdminKey) < 32 {
		t.Errorf("admin key of %d characters, want at least 32", len(made.AdminKey))
	}
	info, err := os.Stat(dir.Path("secrets.json"))
	if err != nil {
		t.Fatal(err)
	}
	if got := info.Mode().Perm(); got != 0o600 {
		t.Errorf("mode = %o, want 600", got)
	}
	if err := dir.SetKey("the-key"); err != nil {
		t.Fatal(err)
	}
	if err := dir.Close(); err != nil {
		t.Fatal(err)
	}
	kept, err := open(t, path).Secrets()
	if err != nil {
		t.Fatal(err)
	}
	made.Key = "the-key"
	if diff := cmp.Diff(made, kept); diff != "" {
		t.Errorf("after a restart (-made +kept):\n%s", diff)
	}
}

func TestSecretsDiffer(t *testing.T) {
	t.Parallel()
	one, err := open(t, t.TempDir()).Secrets()
	if err != nil {
		t.Fatal(err)
	}
	other, err := open(t, t.TempDir()).Secrets()
	if err != nil {
		t.Fatal(err)
	}
	if one.AdminKey == other.AdminKey || one.EncryptionKey == other.EncryptionKey || one.S3SecretAccessKey == other.S3SecretAccessKey {
		t.Error("two folders share a secret")
	}
}

// TestDamagedSecretsAreKept checks that a damaged file is not replaced, because data encrypted
// with its key would be lost.
func TestDamagedSecretsAreKept(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"empty":     "",
		"truncated": `{"admin_key": "abc`,
		"lacking":   `{"admin_key": "abc"}`,
		"unknown":   `{"admin":"abc"}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := open(t, t.TempDir())
			if err := os.WriteFile(dir.Path("secrets.json"), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			if got, err := dir.Secrets(); err == nil {
				t.Errorf("secrets = %v, want an error", got)
			}
			after, err := os.ReadFile(dir.Path("secrets.json"))
			if err != nil || string(after) != text {
				t.Errorf("the file was changed to %q (%v)", after, err)
			}
		})
	}
}
