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

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/catalog"
)

// checkEvery is how often the files of settings are checked. Polling works on every file system.
// Notifications do not: a mounted config map is replaced by a link above the files, and network
// shares send none.
const checkEvery = 2 * time.Second

// reloader rereads the files of a setting when they change, or on a signal. If anything is wrong
// with them it refuses them as a whole and keeps what was in force.
type reloader[T any] struct {
	setting string               // the setting that names the files
	state   func() string        // a hash of the files; an error counts as a state, too
	load    func() (T, []string) // reads the files, or lists the problems
	use     func(T) error        // puts the files' content in force
	size    func(T) int          // the size for the log
	log     *slog.Logger

	seen string // the state when the files were last read
	last string // the state at the last check

	mu     sync.Mutex
	broken error // why the current files cannot be used
}

// filesState returns a hash of the files' contents. The error of a file that cannot be read counts as
// its content.
func filesState(names []string, read func(name string) ([]byte, error)) string {
	sum := sha256.New()
	for _, name := range names {
		text, err := read(name)
		_, _ = fmt.Fprintf(sum, "%q %v %d\n", name, err, len(text))
		_, _ = sum.Write(text)
	}
	return fmt.Sprintf("%x", sum.Sum(nil))
}

// catalogState returns a hash of the files in a folder of models.
func catalogState(dir string) string {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return "unreadable: " + err.Error()
	}
	var names []string
	for _, entry := range entries {
		if catalog.IsModelFile(entry.Name()) {
			names = append(names, entry.Name())
		}
	}
	return filesState(names, func(name string) ([]byte, error) { return catalog.ReadModelFile(os.DirFS(dir), name) })
}

// first reads the files at the start.
func (r *reloader[T]) first() (T, []string) {
	r.seen = r.state()
	r.last = r.seen
	return r.load()
}

// run checks the files regularly until ctx ends, and rereads them at once on a signal.
func (r *reloader[T]) run(ctx context.Context, every time.Duration, hangups <-chan os.Signal) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-hangups:
			r.read(ctx, r.state())
		case <-tick.C:
			r.checkFiles(ctx)
		}
	}
}

// checkFiles rereads the files if their state has changed and was the same in two checks, since
// writing files takes a moment.
func (r *reloader[T]) checkFiles(ctx context.Context) {
	now := r.state()
	settled := now == r.last
	r.last = now
	if settled && now != r.seen {
		r.read(ctx, now)
	}
}

// read reads the files and puts them in force, if nothing is wrong with them.
func (r *reloader[T]) read(ctx context.Context, state string) {
	r.seen = state
	var fresh T
	err := mediagate.Guarded(func() (err error) {
		var problems []string
		if fresh, problems = r.load(); len(problems) == 0 {
			return r.use(fresh)
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
		r.log.ErrorContext(ctx, "files cannot be used: the earlier ones stay in force", "setting", r.setting, "error", err)
		return
	}
	r.log.InfoContext(ctx, "files were read anew", "setting", r.setting, "size", r.size(fresh))
}

// check returns why the current files are not in force. Without files, r is nil and all is well.
func (r *reloader[T]) check(context.Context) error {
	if r == nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.broken
}

// follows reports whether any files are reread while the process runs.
func (g *Gateway) follows() bool {
	return g.Config.CatalogDir != "" || g.lists != nil || g.operators != nil
}

// followFiles rereads files while the API runs. If no file can be reread, it is not called, and
// SIGHUP keeps its default effect. A process with only a worker ignores SIGHUP, since it reads no
// models, lists or operators after its start.
func (g *Gateway) followFiles(ctx context.Context, api bool) {
	if !api {
		hangups, stop := hangups()
		defer stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-hangups:
				g.log.InfoContext(ctx, "SIGHUP: only the API reads files anew")
			}
		}
	}
	var following sync.WaitGroup
	defer following.Wait()
	follow := func(run func(ctx context.Context, every time.Duration, hangups <-chan os.Signal)) {
		hangups, stop := hangups()
		following.Go(func() {
			defer stop()
			run(ctx, checkEvery, hangups)
		})
	}
	if g.Config.CatalogDir != "" {
		follow(g.reloader.run)
	}
	if g.lists != nil {
		follow(g.lists.run)
	}
	if g.operators != nil {
		follow(g.operators.run)
	}
}

// hangups returns the SIGHUPs of the process from now on.
func hangups() (signals <-chan os.Signal, stop func()) {
	c := make(chan os.Signal, 1)
	signal.Notify(c, syscall.SIGHUP)
	return c, func() { signal.Stop(c) }
}
