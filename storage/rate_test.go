package storage_test

import (
	"database/sql"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/storage"
	"github.com/mediagate/mediagate/storage/pgtest"
)

// Two processes count as one, by the database's clock, whatever their own says.
func TestRatesOfTwoProcesses(t *testing.T) {
	t.Parallel()
	url := pgtest.New(t)
	var ahead atomic.Int64
	stores := []*storage.Store{
		openPostgres(t, url, storage.Config{}),
		openPostgres(t, url, storage.Config{LocalNow: func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }}),
	}
	ahead.Store(int64(time.Hour)) // after the process has found out about its clock
	key, account := mediagate.RateLimit{Of: "key_a", PerMinute: 40}, mediagate.RateLimit{Of: "acc_a", PerMinute: 25}
	take := func(i int, limits ...mediagate.RateLimit) bool {
		_, admitted, err := stores[i%2].TakeRates(t.Context(), limits)
		if err != nil {
			t.Error(err)
		}
		return admitted
	}
	var group sync.WaitGroup
	var admitted atomic.Int64
	start, began := make(chan struct{}), time.Now()
	for i := range 64 {
		group.Go(func() {
			<-start
			if take(i, key, account) {
				admitted.Add(1)
			}
		})
	}
	close(start)
	group.Wait()
	n := admitted.Load()
	// While a busy machine was at it, there may have come more.
	if most := 25 + int64(time.Since(began)*25/time.Minute); n < 25 || n > most {
		t.Errorf("%d admitted of 64 at once, want 25, and %d at most", n, most)
	}

	once := mediagate.RateLimit{Of: "key_b", PerMinute: 1}
	if !take(1, once) {
		t.Error("the first was refused")
	}
	for i := range 4 {
		if take(i, once) {
			t.Errorf("store %d admits a second one", i%2)
		}
	}
}

// A crash of the server empties the table: nobody is locked out.
func TestRatesAreUnlogged(t *testing.T) {
	t.Parallel()
	url := pgtest.New(t)
	s := openPostgres(t, url, storage.Config{})
	if _, admitted, err := s.TakeRates(t.Context(), []mediagate.RateLimit{{Of: "key_a", PerMinute: 1}}); err != nil || !admitted {
		t.Fatalf("%t, %v", admitted, err)
	}
	db := openRaw(t, url)
	var kind string
	if err := db.QueryRowContext(t.Context(), "SELECT relpersistence FROM pg_class WHERE relname = 'rates'").Scan(&kind); err != nil || kind != "u" {
		t.Errorf("the table is of the kind %q (%v), want u", kind, err)
	}
}

// One transaction that holds a row keeps those who need it waiting, and nobody
// else; the sweep goes round it.
func TestRatesWhileARowIsHeld(t *testing.T) {
	t.Parallel()
	url := pgtest.New(t)
	s := openPostgres(t, url, storage.Config{})
	held := []mediagate.RateLimit{{Of: "key_a", PerMinute: 9}}
	if _, _, err := s.TakeRates(t.Context(), held); err != nil {
		t.Fatal(err)
	}
	db := openRaw(t, url)
	if _, err := db.ExecContext(t.Context(), "UPDATE rates SET tat = 0"); err != nil {
		t.Fatal(err)
	}
	tx, err := db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.ExecContext(t.Context(), "SELECT 1 FROM rates WHERE id = 'key_a' FOR UPDATE"); err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"key_b", "key_c"} {
		if _, admitted, err := s.TakeRates(t.Context(), []mediagate.RateLimit{{Of: id, PerMinute: 1}}); err != nil || !admitted {
			t.Errorf("%s: %t, %v", id, admitted, err)
		}
	}
	took := make(chan error, 1)
	go func() {
		_, admitted, err := s.TakeRates(t.Context(), held)
		if err == nil && !admitted {
			err = mediagate.Errorf(mediagate.KindRateLimited, "refused")
		}
		took <- err
	}()
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	if err := <-took; err != nil {
		t.Error(err)
	}
}

// openRaw is a connection past the store.
func openRaw(t *testing.T, url string) *sql.DB {
	t.Helper()
	db, err := sql.Open("pgx", url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}
