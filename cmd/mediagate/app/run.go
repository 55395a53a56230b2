package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/mediagate/mediagate/internal/failpoint"
)

// Roles say which parts of the gateway a process runs.
type Roles struct {
	API    net.Listener // nil for none
	Admin  net.Listener // of the admin API only; nil if the API's listener serves it
	Ops    net.Listener // nil: none
	Worker bool
}

// Listen opens the listeners in the settings.
func (c Config) Listen(ctx context.Context, apiToo, workerToo bool) (r Roles, err error) {
	var lc net.ListenConfig
	if apiToo {
		if r.API, err = lc.Listen(ctx, "tcp", c.APIListen); err != nil {
			return r, fmt.Errorf("api_listen: %w", err)
		}
	}
	if apiToo && c.AdminListen != "" {
		if r.Admin, err = lc.Listen(ctx, "tcp", c.AdminListen); err != nil {
			return r, errors.Join(fmt.Errorf("admin_listen: %w", err), r.close())
		}
	}
	if r.Worker = workerToo; apiToo || workerToo {
		if r.Ops, err = lc.Listen(ctx, "tcp", c.OpsListen); err != nil {
			return r, errors.Join(fmt.Errorf("ops_listen: %w", err), r.close())
		}
	}
	return r, nil
}

// announce logs where the process listens, since with port 0 the system chooses.
func (r Roles) announce(ctx context.Context, log *slog.Logger) {
	for _, part := range []struct {
		name string
		l    net.Listener
	}{{"api", r.API}, {"admin", r.Admin}, {"ops", r.Ops}} {
		if part.l != nil {
			log.InfoContext(ctx, "listening", "listener", part.name, "address", part.l.Addr().String())
		}
	}
}

func (r Roles) close() error {
	var err error
	for _, l := range []net.Listener{r.API, r.Admin, r.Ops} {
		if l != nil {
			err = errors.Join(err, l.Close())
		}
	}
	return err
}

// Run runs the roles until ctx ends or one of them fails, and returns once all have stopped. The
// ops server stops last: health answers until the worker has drained.
func (g *Gateway) Run(ctx context.Context, r Roles) error {
	r.announce(ctx, g.log)
	g.warnOfRisks(ctx, failpoint.Armed())
	if err := g.openSite(r.API); err != nil {
		return errors.Join(err, r.close())
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		g.checkSeals(ctx)
		return nil
	})
	if r.API != nil {
		group.Go(func() error {
			g.checkTemporal(ctx)
			return nil
		})
		group.Go(func() error {
			g.allowPages(ctx)
			return nil
		})
		server, err := g.API(r.Admin)
		if err != nil {
			return errors.Join(err, r.close())
		}
		group.Go(func() error {
			defer g.countCalls(ctx)() // the API makes the calls of speeches
			return server.Serve(ctx, r.API)
		})
	}
	if g.follows() {
		group.Go(func() error {
			g.followFiles(ctx, r.API != nil)
			return nil
		})
	}
	opsCtx, stopOps := context.WithCancel(context.WithoutCancel(ctx))
	var working sync.WaitGroup
	if r.Worker {
		working.Add(1)
		group.Go(func() error {
			defer working.Done()
			if err := g.RunWorker(ctx); err != nil && !errors.Is(err, context.Canceled) {
				return err
			}
			return nil
		})
	}
	if r.Ops != nil {
		group.Go(func() error { return g.ServeOps(opsCtx, r.Ops, r.Worker) })
	}
	group.Go(func() error {
		<-ctx.Done()
		working.Wait()
		stopOps()
		return nil
	})
	return group.Wait()
}
