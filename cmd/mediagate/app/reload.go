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

// lookEvery is how often files that settings name are looked at. Looking works
// on every file system, where being told of changes does not: a mounted config
// map is exchanged by a link above the files, and a network share tells nothing.
const lookEvery = 2 * time.Second

// reloader reads files that a setting names anew when they change, or when it is
// told to. What has any fault is refused as a whole, and what was before stays.
type reloader[T any] struct {
	setting string               // that names the files
	state   func() string        // what they hold, in short; what cannot be read is a state too
	load    func() (T, []string) // reads them, or says what is wrong
	use     func(T) error        // puts what was read in force
	size    func(T) int          // for the log
	log     *slog.Logger

	seen string // what the files were when they were read last
	last string // and at the last look

	mu     sync.Mutex
	broken error // why the files as they are cannot be used
}

// catalogState is what the files of a folder of models hold, in short.
func catalogState(dir string) string {
	sum := sha256.New()
	entries, err := os.ReadDir(dir)
	if err != nil {
		return "unreadable: " + err.Error()
	}
	for _, entry := range entries {
		name := entry.Name()
		if !catalog.IsModelFile(name) {
			continue
		}
		text, err := catalog.ReadModelFile(os.DirFS(dir), name)
		_, _ = fmt.Fprintf(sum, "%q %v %d\n", name, err, len(text))
		_, _ = sum.Write(text)
	}
	return fmt.Sprintf("%x", sum.Sum(nil))
}

// first reads the files of the start.
func (r *reloader[T]) first() (T, []string) {
	r.seen = r.state()
	r.last = r.seen
	return r.load()
}

// run looks at the files until ctx ends. A signal has them read at once.
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
			r.look(ctx)
		}
	}
}

// look reads the files once two looks in a row have found the same, other than
// what is in use: who writes files takes a moment.
func (r *reloader[T]) look(ctx context.Context) {
	now := r.state()
	settled := now == r.last
	r.last = now
	if settled && now != r.seen {
		r.read(ctx, now)
	}
}

// read takes the files as they are, if nothing is wrong with them.
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
		r.log.ErrorContext(ctx, "files cannot be used, what was before stays in force", "setting", r.setting, "error", err)
		return
	}
	r.log.InfoContext(ctx, "files were read anew", "setting", r.setting, "size", r.size(fresh))
}

// check says why the files as they are are not in use.
func (r *reloader[T]) check(context.Context) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.broken
}

// follows reports whether files that settings name are read anew while the
// process runs.
func (g *Gateway) follows() bool {
	return g.Config.CatalogDir != "" || g.lists != nil || g.operators != nil
}

// followFiles reads them anew while the API runs. A process without any leaves
// SIGHUP to its meaning elsewhere; one with a worker alone lives through it, as
// it reads no model, judges no prompt and knows no operator after its start.
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
			run(ctx, lookEvery, hangups)
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

// hangups are the process's SIGHUP from now on.
func hangups() (signals <-chan os.Signal, stop func()) {
	c := make(chan os.Signal, 1)
	signal.Notify(c, syscall.SIGHUP)
	return c, func() { signal.Stop(c) }
}
