package api_test

import (
	"crypto/sha256"
	"os"
	"testing"
	"time"

	"github.com/mediagate/mediagate/storage"
	"github.com/mediagate/mediagate/storage/pgtest"
)

func TestMain(m *testing.M) { os.Exit(pgtest.Main(m)) }

// databaseStore is the real store, and where its database is.
type databaseStore struct {
	*storage.Store
	address string
}

// newStore opens the real store on a PostgreSQL database of the test's own.
func newStore(t *testing.T, now func() time.Time) testStore {
	t.Helper()
	return openStore(t, pgtest.New(t), now)
}

func openStore(t *testing.T, address string, now func() time.Time) *databaseStore {
	t.Helper()
	key := sha256.Sum256([]byte("of this test"))
	s, err := storage.OpenPostgres(t.Context(), address, storage.Config{
		EncryptionKeys: [][]byte{key[:]}, Now: now, MaxOpenConns: 8,
	})
	must(t, err)
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return &databaseStore{s, address}
}
