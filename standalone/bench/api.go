package main

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/labstack/echo/v4"
	"github.com/oklog/ulid/v2"
	"gorm.io/driver/postgres"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/client"
	"github.com/mediagate/mediagate/workflows"
)

// measureSubmits measures bursts of submits while no worker runs, against bare transactions with
// the same rows. It measures elapsed time, because the API starts the workflows after it has
// answered.
func measureSubmits(b *bench) {
	g := b.install(time.Second)
	id, err := g.client.Submit(b.ctx, video)
	b.check(err)
	pattern, err := g.Store.TaskByID(b.ctx, id)
	b.check(err)
	g.measureBurst(8, pattern)
	g.measureBurst(32, pattern)
}

// measureBurst compares submits with transactions that store copies of pattern. It compares the
// slowest answers with a transaction followed by the start of a workflow, which is what a submit
// would take if it waited for Temporal.
func (g *gateway) measureBurst(clients int, pattern mediagate.Task) {
	store := func(then func(context.Context, mediagate.Task) error) func(context.Context) error {
		return func(ctx context.Context) error {
			n := mediagate.NewTask{Task: pattern, Path: video.Endpoint}
			n.Task.ID = "task_" + ulid.Make().String()
			n.Task.CreatedAt = time.Now().UTC()
			n.Task.DeadlineAt = n.Task.CreatedAt.Add(pattern.Plan.Timeout)
			n.IdempotencyKey = n.Task.ID
			if _, _, err := g.Store.Submit(ctx, n); err != nil {
				return err
			}
			return then(ctx, n.Task)
		}
	}
	done := func(context.Context, mediagate.Task) error { return nil }
	burst := func(do func(context.Context) error) slice {
		return func() []time.Duration { return g.b.times(clients, g.b.size(2000, 500), do) }
	}
	base, found := g.b.compare(g.b.size(3, 2), burst(store(done)), burst(submit(g.client, video)))
	slow := burst(store(workflows.Client{Temporal: g.Temporal}.Start))()
	g.b.settle()
	g.b.ratio(fmt.Sprintf("a submit, %d clients", clients), "the bare transaction",
		found.wallPerItem(), base.wallPerItem(), 1.67)
	g.b.ratio("the same, p99", "a transaction and a start", quantile(found.took, 0.99), quantile(slow, 0.99), 1)
}

// measureReads compares reads of a task through the API with the cost of Echo and GORM alone: a
// handler that selects the row and renders it as it is. It measures CPU time. The worker that
// made the tasks has stopped by then.
func measureReads(b *bench) {
	g := b.install(100 * time.Millisecond)
	stop := b.serve(g.RunWorker)
	b.vendor.reset(func() time.Duration { return 0 }, false)
	completed, err := g.client.Run(b.ctx, video, nil)
	b.check(err)
	b.vendor.reset(func() time.Duration { return never }, false)
	waiting, err := g.client.Submit(b.ctx, video)
	b.check(err)
	b.until("the vendor has the task", 100*time.Millisecond, func() bool { return b.vendor.accepted() > 0 })
	stop()

	floor := g.serveBare()
	read := func(c *client.Client, path string) slice {
		return func() []time.Duration {
			return b.times(16, 1000, func(ctx context.Context) error {
				_, err := c.Call(ctx, http.MethodGet, path, nil, nil)
				return err
			})
		}
	}
	measure := func(what, id string, aim float64) {
		base, found := b.compare(b.size(12, 4), read(floor, "/"+id), read(g.client, "/v1/tasks/"+id))
		b.ratio(what+", 16 clients", "Echo, GORM, the same row", found.cpuPerItem(), base.cpuPerItem(), aim)
	}
	measure("a waiting task", waiting, 1.05)
	measure("a completed task", completed.ID, 1.25)
}

// serveBare serves the floor with a connection pool like the gateway's.
func (g *gateway) serveBare() *client.Client {
	db, err := gorm.Open(postgres.Open(g.Config.DatabaseURL), &gorm.Config{Logger: logger.Discard})
	g.b.check(err)
	pool, err := db.DB()
	g.b.check(err)
	g.b.Cleanup(func() { _ = pool.Close() })
	pool.SetMaxOpenConns(50)
	pool.SetMaxIdleConns(50)
	e := echo.New()
	e.GET("/:id", func(c echo.Context) error {
		row := map[string]any{}
		err := db.WithContext(c.Request().Context()).Raw("SELECT * FROM tasks WHERE id = ?", c.Param("id")).Scan(&row).Error
		if err != nil {
			return err
		}
		return c.JSON(http.StatusOK, row)
	})
	server := httptest.NewServer(e)
	g.b.Cleanup(server.Close)
	return &client.Client{URL: server.URL, HTTP: connections}
}
