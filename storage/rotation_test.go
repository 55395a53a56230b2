package storage_test

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/storage"
	"github.com/mediagate/mediagate/storage/pgtest"
)

// Two that change a key and the one that it was rotated into wait for each other in
// a row, not in a circle, also where a clock that went back gave the later key the
// smaller id.
func TestChangesOfRotatedKeysTakeTurns(t *testing.T) {
	t.Parallel()
	var made atomic.Int64
	url := pgtest.New(t)
	s := openPostgres(t, url+noVictims, storage.Config{NewID: func(prefix string) string { return fmt.Sprintf("%s%09d", prefix, 999_999_999-made.Add(1)) }})
	first := newTenant(t, s, "one").key
	second, err := s.RotateKey(t.Context(), first, mediagate.KeySecret{Hash: sha256.Sum256([]byte("two"))}, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("pgx", url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	var group sync.WaitGroup
	started := false
	_, err = s.UpdateKey(t.Context(), first, func(k *mediagate.Key) error {
		if !started {
			started = true
			group.Go(func() {
				if _, err := s.UpdateKey(t.Context(), second.ID, func(*mediagate.Key) error { return nil }); err != nil {
					t.Errorf("change the later key: %v", err)
				}
			})
			eventually(t, "the other one waits", func(ctx context.Context) error {
				var waiting int
				err := db.QueryRowContext(ctx, "SELECT COUNT(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'").Scan(&waiting)
				if err == nil && waiting == 0 {
					err = errors.New("not yet")
				}
				return err
			})
		}
		k.InFlight = new(3)
		return nil
	})
	group.Wait()
	if err != nil {
		t.Errorf("change the first key: %v", err)
	}
}
