package storagefault

import (
	"context"
	"database/sql"
	"errors"
	"sync"
	"time"

	"github.com/mediagate/mediagate/storage"
	"github.com/mediagate/mediagate/storage/sqlite"
)

// Store is a store whose calls may fail.
type Store struct {
	*storage.Store
	// Fault may fail a call of a method before it does anything. It must not be changed
	// while a call is under way.
	Fault func(method string) error
	// Lost may lose the answer of a method that took effect: the caller gets the error of Lost
	// instead.
	Lost func(ctx context.Context, method string) error

	// Steady is the same database, without faults.
	Steady *storage.Store

	memory *memory
	db     *sql.DB
	now    func() time.Time

	mu   sync.Mutex
	past []moment // nil: nothing is kept
}

// moment is what the database held at a time.
type moment struct {
	at    time.Time
	image []byte
}

// Open opens a new database that has the tables and no rows. now is the clock of the store.
func Open(ctx context.Context, now func() time.Time) (*Store, error) {
	image, err := empty()
	if err != nil {
		return nil, err
	}
	m := &memory{image: image}
	s := &Store{now: now, memory: m, db: m.open()}
	config := storage.Config{Dialector: sqlite.Over(s.db), EncryptionKeys: [][]byte{make([]byte, 32)}, Now: now}
	if s.Steady, err = storage.Open(ctx, config); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	config.Dialector = faulty{config.Dialector, s}
	if s.Store, err = storage.Open(ctx, config); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// empty returns the image of a database that has the tables and no rows. It makes it once.
var empty = sync.OnceValues(func() ([]byte, error) {
	ctx := context.Background()
	db := (&memory{}).open()
	defer func() { _ = db.Close() }()
	store, err := storage.Open(ctx, storage.Config{Dialector: sqlite.Over(db)})
	if err != nil {
		return nil, err
	}
	if err := store.Migrate(ctx); err != nil {
		return nil, err
	}
	return imageOf(db)
})

// Close closes the database.
func (s *Store) Close() error { return s.db.Close() }

// DB returns the database itself, so that tests can bypass the stores.
func (s *Store) DB() *sql.DB { return s.db }

func (s *Store) fault(method string) error {
	if s.Fault == nil {
		return nil
	}
	return s.Fault(method)
}

// wrote is called after a method took effect. It returns the error that the caller gets instead of
// the answer, or nil.
func (s *Store) wrote(ctx context.Context, method string) error {
	if err := s.keep(); err != nil {
		return err
	}
	if s.Lost == nil {
		return nil
	}
	return s.Lost(ctx, method)
}

// pastLasts is how far back Lapse reaches.
const pastLasts = time.Minute

// KeepPast makes the store keep its content after each change, for Lapse.
func (s *Store) KeepPast() error {
	image, err := imageOf(s.db)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.past = []moment{{s.now(), image}}
	return err
}

func (s *Store) keep() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.past == nil {
		return nil
	}
	for now := s.now(); len(s.past) > 1 && s.past[1].at.Before(now.Add(-pastLasts)); {
		s.past = s.past[1:]
	}
	image, err := imageOf(s.db)
	s.past = append(s.past, moment{s.now(), image})
	return err
}

// Lapse takes the database back to its content of that time ago, as a failover to a replica that
// lagged does.
func (s *Store) Lapse(back time.Duration) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	then := s.now().Add(-back)
	for len(s.past) > 1 && s.past[len(s.past)-1].at.After(then) {
		s.past = s.past[:len(s.past)-1]
	}
	return s.memory.become(s.db, s.past[len(s.past)-1].image)
}
