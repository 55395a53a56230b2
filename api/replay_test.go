package api_test

import (
	"context"
	"database/sql"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/api"
)

// TestReplayWithCachedAccount checks that a repeated submit is answered in time while another
// transaction locks the account's row: it takes no money.
func TestReplayWithCachedAccount(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ capacity, writers int }{
		"the lane is full":             {0, 2},
		"one writer waits, of a group": {1000, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := newGateway(t, func(c *api.Config) {
				c.StoreTimeout = 2 * time.Second
				c.Groups["default"] = api.Group{PriceFactor: "1", Models: []string{"*"}, Capacity: test.capacity}
			})
			call := request{method: http.MethodPost, path: videos, key: g.key, body: videoBody, header: http.Header{"Idempotency-Key": {"k"}}}
			first := g.send(call).taskID(t)
			db, err := sql.Open("pgx", g.store.(*databaseStore).address)
			g.must(err)
			defer func() { _ = db.Close() }()
			tx, err := db.BeginTx(t.Context(), nil)
			g.must(err)
			defer func() { _ = tx.Rollback() }()
			_, err = tx.ExecContext(t.Context(), "SELECT 1 FROM accounts WHERE id = $1 FOR UPDATE", g.account.ID)
			g.must(err)
			var others sync.WaitGroup
			ctx, cancel := context.WithCancel(t.Context())
			for i := range test.writers {
				others.Go(func() {
					_, _, _, _ = g.store.Grant(ctx, g.account.ID, 1, fmt.Sprint("gift ", i))
				})
			}
			eventually(t, "the others wait", func() bool {
				n := 0
				g.must(db.QueryRowContext(t.Context(), "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'").Scan(&n))
				return n >= test.writers
			})
			again := g.send(call)
			cancel()
			g.must(tx.Rollback())
			others.Wait()
			if again.status != http.StatusOK || again.header.Get("Idempotency-Replayed") != "true" || again.taskID(t) != first {
				t.Errorf("the same again: %d %s", again.status, again.body)
			}
		})
	}
}

// TestConcurrentSubmitsWithAPictureBothSucceed checks that the later of two equal submits with a
// picture is not refused for the money that the first one holds.
func TestConcurrentSubmitsWithAPictureBothSucceed(t *testing.T) {
	t.Parallel()
	store := new(twin)
	g := newGateway(t, func(c *api.Config) {
		store.Store = c.Store
		c.Store = store
	})
	body := `{"model":"delta-02","prompt":"a cat","first_frame_image":"` + dataOf(aPicture) + `"}`
	task := g.row(g.submit(videos, body))
	_, key := g.newKey(mediagate.Key{Quota: task.Hold}) // for one of them
	call := request{method: http.MethodPost, path: videos, key: key, body: body, header: http.Header{"Idempotency-Key": {"k"}}}
	var first answer
	store.goes = func() { first = g.send(call) }
	second := g.send(call)
	if first.status != http.StatusOK || second.status != http.StatusOK || first.taskID(t) != second.taskID(t) {
		t.Errorf("the answers: %d %s, %d %s", first.status, first.body, second.status, second.body)
	}
}
