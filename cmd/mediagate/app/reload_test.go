package app

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mediagate/mediagate/catalog"
)

// reloading is a reloader over a folder, and what it hands on.
type reloading struct {
	*reloader[*catalog.Catalog]
	t   *testing.T
	dir string
	log bytes.Buffer

	mu    sync.Mutex
	taken []*catalog.Catalog
}

func newReloading(t *testing.T, c Config) *reloading {
	t.Helper()
	c.CatalogDir = t.TempDir()
	r := &reloading{t: t, dir: c.CatalogDir}
	r.reloader = &reloader[*catalog.Catalog]{
		setting: "catalog_dir", state: func() string { return catalogState(c.CatalogDir) }, size: modelsIn, log: slog.New(slog.NewTextHandler(&r.log, nil)),
		load: func() (*catalog.Catalog, []string) { return loadCatalog(c) },
		use: func(models *catalog.Catalog) error {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.taken = append(r.taken, models)
			return nil
		},
	}
	if _, problems := r.first(); len(problems) > 0 {
		t.Fatal(problems)
	}
	return r
}

func (r *reloading) write(name, text string) {
	r.t.Helper()
	must(r.t, os.WriteFile(filepath.Join(r.dir, name), []byte(text), 0o600))
}

// want looks twice, and checks how many catalogs were taken by now.
func (r *reloading) want(taken int, broken string) {
	r.t.Helper()
	r.checkFiles(r.t.Context())
	r.checkFiles(r.t.Context())
	if len(r.taken) != taken {
		r.t.Fatalf("%d catalogs taken, want %d", len(r.taken), taken)
	}
	switch err := r.check(r.t.Context()); {
	case broken == "" && err != nil:
		r.t.Fatalf("broken: %v", err)
	case broken != "" && (err == nil || !strings.Contains(err.Error(), broken)):
		r.t.Fatalf("broken: %v, want %s", err, broken)
	}
}

const (
	dearer = "id: theta-image-turbo\noperations:\n  - endpoint: /v1/images/generations\n    price:\n      unit: image\n      by: [resolution, prompt_extend]\n      rows:\n" +
		"        - {resolution: 1K, prompt_extend: false, price: \"1\"}\n        - {resolution: 1K, prompt_extend: true, price: \"1\"}\n" +
		"        - {resolution: 2K, prompt_extend: false, price: \"1\"}\n        - {resolution: 2K, prompt_extend: true, price: \"1\"}\n"
	astray = "id: alpha-v3\noperations:\n  - endpoint: /v1/videos/generations\n    routes: [{provider: klinge, upstream: x, operation: video}]\n"
)

// TestReloadWhatIsNoFile checks that a model file that is no regular file counts as broken: the
// reloader neither waits for it nor reads it into memory.
func TestReloadWhatIsNoFile(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		put  func(path string) error
		want string
	}{
		"a pipe":           {func(path string) error { return syscall.Mkfifo(path, 0o600) }, "a.yaml: is not a regular file"},
		"a device":         {func(path string) error { return os.Symlink("/dev/zero", path) }, "a.yaml: is not a regular file"},
		"a link to itself": {func(path string) error { return os.Symlink(path, path) }, "a.yaml: "},
		"a large file": {func(path string) error {
			return errors.Join(os.WriteFile(path, []byte("id: large\n"), 0o600), os.Truncate(path, 100<<20))
		}, "a.yaml: is larger than 1048576 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newReloading(t, Config{})
			path := filepath.Join(r.dir, "a.yaml")
			must(t, c.put(path))
			r.want(0, c.want)
			must(t, os.Remove(path))
			r.want(1, "")
		})
	}
}

// TestReload checks that a change is applied once it has settled, completely or not at all. A
// broken change is logged once, stays visible, and disappears after its correction.
func TestReload(t *testing.T) {
	t.Parallel()
	r := newReloading(t, Config{})
	r.want(0, "")
	r.write("notes.txt", "not a model")
	r.want(0, "")
	r.write("a.yaml", dearer)
	r.checkFiles(t.Context())
	if len(r.taken) != 0 {
		t.Fatal("taken at first sight: somebody may be writing")
	}
	r.want(1, "")
	if m, _ := r.taken[0].Model("theta-image-turbo"); m == nil {
		t.Fatal("no theta-image-turbo")
	}
	r.want(1, "") // nothing new

	r.write("b.yaml", "id: [\n")
	r.want(1, "b.yaml")
	r.want(1, "b.yaml")
	if n := strings.Count(r.log.String(), "level=ERROR"); n != 1 || !strings.Contains(r.log.String(), "b.yaml") {
		t.Errorf("told %d times: %s", n, r.log.String())
	}
	r.write("b.yaml", astray) // right in itself, but no adapter has it
	r.want(1, `b.yaml: operations[/v1/videos/generations].routes[0].provider: "klinge" is unknown`)
	r.write("b.yaml", "id: alpha-v3\nenabled: false\n")
	r.want(2, "")
	if _, ok := r.taken[1].Model("alpha-v3"); ok {
		t.Error("alpha-v3 is still there")
	}
	r.write("b.yaml", "id: [\n")
	r.want(2, "b.yaml")
	must(t, os.Remove(filepath.Join(r.dir, "b.yaml")))
	r.want(3, "") // mended by going back
	if _, ok := r.taken[2].Model("alpha-v3"); !ok {
		t.Error("alpha-v3 is not back")
	}
	must(t, os.RemoveAll(r.dir))
	r.want(3, "no such file")
}

// TestReloadThroughLinks checks a config map, which is replaced by a link above its files: the
// old path then leads to another folder.
func TestReloadThroughLinks(t *testing.T) {
	t.Parallel()
	r := newReloading(t, Config{})
	link := func(generation, text string) {
		t.Helper()
		dir := filepath.Join(r.dir, generation)
		must(t, os.Mkdir(dir, 0o700))
		must(t, os.WriteFile(filepath.Join(dir, "a.yaml"), []byte(text), 0o600))
		next := filepath.Join(r.dir, "next")
		must(t, os.Symlink(generation, next))
		must(t, os.Rename(next, filepath.Join(r.dir, "..data")))
	}
	link("..1", dearer)
	must(t, os.Symlink("..data/a.yaml", filepath.Join(r.dir, "a.yaml")))
	r.want(1, "")
	link("..2", "id: theta-image-turbo\nenabled: false\n")
	r.want(2, "")
	if _, ok := r.taken[1].Model("theta-image-turbo"); ok {
		t.Error("the file behind the new link was not read")
	}
}

// TestReloadKeepsPassthroughApart checks that a passthrough model of a channel cannot enter the
// catalog, since its name would be ambiguous.
func TestReloadKeepsPassthroughApart(t *testing.T) {
	t.Parallel()
	r := newReloading(t, Config{Channels: []Channel{
		passing("one", "minimax", 0, map[string]Passed{"theta-2": {Upstream: "film-1", Operation: "video_generation"}}),
	}})
	r.write("a.yaml", "id: theta-image-turbo\naliases: [theta-2]\n")
	r.want(0, "channel one: passthrough.theta-2: theta-2 is a model of the catalog")
}

// TestReloadSurvivesAPanic checks that a catalog whose reading panics counts as broken.
func TestReloadSurvivesAPanic(t *testing.T) {
	t.Parallel()
	r := newReloading(t, Config{})
	r.load = func() (*catalog.Catalog, []string) { panic("of the reader") }
	r.write("a.yaml", dearer)
	r.want(0, "panic: with a string")
}

// TestReloadOnHangup checks that SIGHUP reads the files at once, unchanged ones too.
func TestReloadOnHangup(t *testing.T) {
	t.Parallel()
	r := newReloading(t, Config{})
	r.load = func() (*catalog.Catalog, []string) { return &catalog.Catalog{}, nil }
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		hangups := make(chan os.Signal, 1)
		go r.run(ctx, time.Hour, hangups)
		taken := func() int {
			synctest.Wait()
			r.mu.Lock()
			defer r.mu.Unlock()
			return len(r.taken)
		}
		for n := range 3 {
			hangups <- syscall.SIGHUP
			if got := taken(); got != n+1 {
				t.Errorf("%d catalogs after %d signals", got, n+1)
			}
		}
		r.write("a.yaml", dearer)
		time.Sleep(time.Hour + time.Second) // of the bubble's clock: one look
		if got := taken(); got != 3 {
			t.Errorf("%d catalogs after one look", got)
		}
		time.Sleep(time.Hour)
		if got := taken(); got != 4 {
			t.Errorf("%d catalogs after two looks", got)
		}
	})
}
