package main

import (
	"context"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/labstack/echo/v4"
	"gorm.io/driver/postgres"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"
)

// measureReads compares reads of a task through the API with what Echo and
// GORM cost alone: a handler that does the same SELECT and renders the row as
// it is. Clients ask for waiting tasks all the time, for ended ones once.
func measureReads(ctx context.Context, m *machine) ([]row, error) {
	g, err := m.install(ctx, "read", m.channels(time.Second))
	if err != nil {
		return nil, err
	}
	s, err := newStage(g)
	if err != nil {
		return nil, err
	}
	waiting, err := s.accepted(ctx, time.Hour)
	if err != nil {
		return nil, err
	}
	completed, err := s.completed(ctx)
	if err != nil {
		return nil, err
	}
	bare, err := g.serveBare()
	if err != nil {
		return nil, err
	}
	const clients, length = 16, 300 * time.Millisecond
	var rows []row
	for _, part := range []struct{ what, id string }{{"a waiting task, 16 clients", waiting.ID}, {"a completed task, 16 clients", completed.ID}} {
		floor := repeat(clients, length, func(ctx context.Context) error {
			_, err := bare.get(ctx, "/"+g.key.AccountID+"/"+part.id)
			return err
		})
		subject := repeat(clients, length, func(ctx context.Context) error {
			_, err := g.get(ctx, "/v1/tasks/"+part.id)
			return err
		})
		c, err := compare(ctx, m.size(12, 4), breathe, floor, subject)
		if err != nil {
			return nil, err
		}
		rows = append(rows, rateRow(part.what, "Echo, GORM, same SELECT", c, 0.8))
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

// serveBare serves the floor over a pool like the gateway's own.
func (g *gateway) serveBare() (*gateway, error) {
	db, err := gorm.Open(postgres.Open(g.Config.DatabaseURL), &gorm.Config{Logger: logger.Discard, SkipDefaultTransaction: true})
	if err != nil {
		return nil, err
	}
	pool, err := db.DB()
	if err != nil {
		return nil, err
	}
	pool.SetMaxOpenConns(50)
	pool.SetMaxIdleConns(50)
	g.m.closers = append(g.m.closers, pool.Close)
	e := echo.New()
	e.GET("/:account/:id", func(c echo.Context) error {
		var t bareTask
		if err := db.WithContext(c.Request().Context()).Raw(bareSelect, c.Param("id"), c.Param("account")).Scan(&t).Error; err != nil {
			return err
		}
		return c.JSON(http.StatusOK, t)
	})
	server := httptest.NewServer(e)
	g.m.later(server.Close)
	return &gateway{url: server.URL, http: g.http}, nil
}
