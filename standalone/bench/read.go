package main

import (
	"context"
	"errors"
	"net"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"
	"gorm.io/driver/postgres"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"
)

const readClients = 16

// measureReads compares reads of a task through the API with what Echo and
// GORM cost alone: a handler that does the same SELECT and renders the row as
// it is. Clients ask for waiting tasks all the time, for ended ones once.
func measureReads(ctx context.Context, m *machine, o options) (_ []row, err error) {
	g, err := m.install(ctx, "read", m.channels(time.Second, 1000))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, g.close()) }()
	s, err := newStage(g)
	if err != nil {
		return nil, err
	}
	waiting, err := s.waiting(ctx, time.Hour)
	if err != nil {
		return nil, err
	}
	completed, err := s.completed(ctx)
	if err != nil {
		return nil, err
	}
	bare, err := serveBare(ctx, g)
	if err != nil {
		return nil, err
	}
	rounds, length := 12, 300*time.Millisecond
	if o.quick {
		rounds = 4
	}
	var rows []row
	for _, part := range []struct{ what, id string }{{"reads of a waiting task", waiting}, {"reads of a completed task", completed}} {
		through := func(ctx context.Context) error {
			_, err := g.get(ctx, "/v1/tasks/"+part.id)
			return err
		}
		floor := func(ctx context.Context) error {
			req, err := http.NewRequestWithContext(ctx, http.MethodGet, bare+"/"+g.key.AccountID+"/"+part.id, http.NoBody)
			if err != nil {
				return err
			}
			_, err = exchange(g.http, req)
			return err
		}
		slice := func(do func(context.Context) error) slice {
			return func(ctx context.Context) (float64, error) { return repeat(ctx, readClients, length, do) }
		}
		for _, do := range []func(context.Context) error{through, floor} {
			if _, err := repeat(ctx, readClients, length, do); err != nil {
				return nil, err
			}
		}
		c, err := compare(ctx, rounds, o, part.what, slice(floor), slice(through))
		if err != nil {
			return nil, err
		}
		rows = append(rows, ratioRow(part.what, "Echo, GORM, same SELECT", c, 0.8))
	}
	return rows, nil
}

// bareTask is the columns that a read of a task selects.
type bareTask struct {
	ID                string
	AccountID         string
	KeyID             string
	Model             string
	Type              string
	Status            string
	Progress          int
	Version           int64
	Params            string
	Reference         string
	RequestID         string
	Plan              string
	Charges           string
	Hold              int64
	Cost              int64
	CreatedAt         time.Time
	StartedAt         *time.Time
	EndedAt           *time.Time
	DeadlineAt        time.Time
	CancelRequestedAt *time.Time
	ParkedAt          *time.Time
	ParkReason        string
	Results           *string
	Failure           *string
	WebhookURL        string
	WebhookState      string
	WebhookReason     string
	WebhookRound      int
}

const bareSelect = `SELECT id, account_id, key_id, model, type, status, progress, version, params, reference, request_id, plan, charges,
	hold, cost, created_at, started_at, ended_at, deadline_at, cancel_requested_at, parked_at, park_reason, results, failure,
	webhook_url, webhook_state, webhook_reason, webhook_round FROM tasks WHERE id = ? AND account_id = ?`

// serveBare serves the floor over a pool like the gateway's own and returns
// its URL.
func serveBare(ctx context.Context, g *gateway) (string, error) {
	db, err := gorm.Open(postgres.Open(g.Config.DatabaseURL), &gorm.Config{Logger: logger.Discard, SkipDefaultTransaction: true})
	if err != nil {
		return "", err
	}
	pool, err := db.DB()
	if err != nil {
		return "", err
	}
	pool.SetMaxOpenConns(50)
	pool.SetMaxIdleConns(50)
	g.closers = append(g.closers, pool.Close)
	e := echo.New()
	e.GET("/:account/:id", func(c echo.Context) error {
		var t bareTask
		if err := db.WithContext(c.Request().Context()).Raw(bareSelect, c.Param("id"), c.Param("account")).Scan(&t).Error; err != nil {
			return err
		}
		return c.JSON(http.StatusOK, t)
	})
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	server := &http.Server{Handler: e, ReadHeaderTimeout: 10 * time.Second}
	g.run(ctx, func(ctx context.Context) error {
		stop := context.AfterFunc(ctx, func() { _ = server.Close() })
		defer stop()
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			return err
		}
		return nil
	})
	return "http://" + listener.Addr().String(), nil
}
