package app

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/mediagate/mediagate/catalog"
)

// lookEvery is how often the files of catalog_dir are looked at. Looking works
// on every file system, where being told of changes does not: a mounted config
// map is exchanged by a link above the files, and a network share tells nothing.
const lookEvery = 2 * time.Second

// reloader reads catalog_dir anew when its files change, or when it is told to.
// A catalog with any fault is refused as a whole, and the one before stays.
type reloader struct {
	dir  string
	load func() (*catalog.Catalog, []string)
	use  func(*catalog.Catalog) error
	log  *slog.Logger

	seen string // what the files were when they were read last
	last string // and at the last look

	mu     sync.Mutex
	broken error // why the files as they are cannot be used
}

// state is what the files hold, in short. What cannot be read is a state too.
func (r *reloader) state() string {
	sum := sha256.New()
	entries, err := os.ReadDir(r.dir)
	if err != nil {
		return "unreadable: " + err.Error()
	}
	for _, entry := range entries {
		name := entry.Name()
		if !catalog.IsModelFile(name) {
			continue
		}
		text, err := catalog.ReadModelFile(os.DirFS(r.dir), name)
		_, _ = fmt.Fprintf(sum, "%q %v %d\n", name, err, len(text))
		_, _ = sum.Write(text)
	}
	return fmt.Sprintf("%x", sum.Sum(nil))
}

// first reads the catalog of the start.
func (r *reloader) first() (*catalog.Catalog, []string) {
	if r.dir != "" {
		r.seen = r.state()
		r.last = r.seen
	}
	return r.load()
}

// run looks at the files until ctx ends. A signal has them read at once.
func (r *reloader) run(ctx context.Context, every time.Duration, hangups <-chan os.Signal) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-hangups:
			r.read(ctx, r.state())
		case <-tick.C:
			r.look(ctx)
		}
	}
}

// look reads the files once two looks in a row have found the same, other than
// what is in use: who writes files takes a moment.
func (r *reloader) look(ctx context.Context) {
	now := r.state()
	settled := now == r.last
	r.last = now
	if settled && now != r.seen {
		r.read(ctx, now)
	}
}

// read takes the files as they are, if nothing is wrong with them.
func (r *reloader) read(ctx context.Context, state string) {
	r.seen = state
	var models *catalog.Catalog
	err := guarded(func() (err error) {
		var problems []string
		if models, problems = r.load(); len(problems) == 0 {
			return r.use(models)
		}
		for _, problem := range problems {
			err = errors.Join(err, errors.New(problem))
		}
		return err
	})
	r.mu.Lock()
	r.broken = err
	r.mu.Unlock()
	if err != nil {
		r.log.ErrorContext(ctx, "catalog_dir cannot be used, the catalog before stays in force", "error", err)
		return
	}
	r.log.InfoContext(ctx, "catalog_dir was read anew", "models", len(models.Models()))
}

// check says why the files as they are are not in use.
func (r *reloader) check(context.Context) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.broken
}

// followCatalog reads catalog_dir anew while the API runs. A process without
// one leaves SIGHUP to its meaning elsewhere; one with a worker alone lives
// through it, as it reads no model after its start.
func (g *Gateway) followCatalog(ctx context.Context, api bool) {
	hangups := make(chan os.Signal, 1)
	signal.Notify(hangups, syscall.SIGHUP)
	defer signal.Stop(hangups)
	if api {
		g.reloader.run(ctx, lookEvery, hangups)
		return
	}
	for {
		select {
		case <-ctx.Done():
			return
		case <-hangups:
			g.log.InfoContext(ctx, "SIGHUP: only the API reads catalog_dir anew")
		}
	}
}
