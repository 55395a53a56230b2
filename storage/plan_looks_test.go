package storage_test

import (
	"crypto/rand"
	"database/sql"
	"testing"
	"time"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/storage"
	"github.com/mediagate/mediagate/storage/pgtest"
	"github.com/mediagate/mediagate/task"
)

// fillAttempts gives each task an attempt that has ended, and opens a few tasks again,
// of which half are polled for.
func fillAttempts(t *testing.T, url string) {
	t.Helper()
	db := openRaw(t, url)
	defer db.Close() // see rowsRead
	execute(t, db,
		`INSERT INTO attempts (task_id, n, account_id, channel, provider, fingerprint, job_id, state, succeeded, document, created_at, accepted_at, ended_at)
			SELECT id, 1, account_id, 'kling-a', 'kling', 'fp', 'job', 'ended', true, '{}', created_at, created_at, ended_at FROM tasks`,
		`UPDATE attempts SET state = 'abandoned', ended_at = NULL, slot_until = created_at + interval '1 year'
			FROM (SELECT id FROM tasks ORDER BY id DESC LIMIT 1) AS t WHERE task_id = t.id`,
		`UPDATE tasks SET status = 'cancelled', progress = 0 FROM attempts a WHERE a.task_id = tasks.id AND a.state = 'abandoned'`,
		`UPDATE tasks SET status = 'processing', progress = 50, ended_at = NULL
			WHERE id IN (SELECT id FROM tasks WHERE account_id = 'acc_many' ORDER BY id LIMIT 20)`,
		`INSERT INTO awaits (task_id, n, channel, ref, accepted_at, next_poll_at)
			SELECT id, 1, 'kling-a', '{}', created_at, created_at FROM tasks WHERE account_id = 'acc_many' ORDER BY id LIMIT 10`,
		`INSERT INTO wakes (task_id, kind, account_id, wake_at) SELECT id, 'run', account_id, created_at FROM tasks WHERE status = 'processing'`,
		`VACUUM ANALYZE tasks, attempts, awaits, wakes`)
}

// limitedKey makes an account with all limits, and a key, and returns a task of them.
func limitedKey(t *testing.T, url string) mediagate.Task {
	t.Helper()
	s := openPostgres(t, url, storage.Config{})
	defer func() { _ = s.Close() }()
	b := benchOf(t, s)
	defer b.ends()
	account := mediagate.Account{Name: "a"}
	account.InFlight, account.Unpaid = new(1000), new(mediagate.Micros(0))
	account = must(s.CreateAccount(t.Context(), account))
	key := must(s.CreateKey(t.Context(), mediagate.Key{AccountID: account.ID, Unlimited: true, InFlight: new(1000)}, [32]byte{1}))
	return mediagate.Task{
		AccountID: account.ID, KeyID: key.ID, Model: "m", Type: mediagate.TypeVideo, Params: []byte("{}"), DeadlineAt: time.Now(),
	}
}

// rowsRead counts the rows that were read of tasks and of what belongs to them, and
// the entries of their indexes, by all who have left the database.
func rowsRead(t *testing.T, db *sql.DB) (rows int64) {
	t.Helper()
	for others := 1; others > 0; { // PostgreSQL counts a connection's reads at the latest when it ends
		query := "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND backend_type = 'client backend' AND pid <> pg_backend_pid()"
		if err := db.QueryRowContext(t.Context(), query).Scan(&others); err != nil {
			t.Fatal(err)
		}
	}
	query := `SELECT sum(seq_tup_read + coalesce(idx_tup_fetch, 0)) + (SELECT sum(idx_tup_read) FROM pg_stat_user_indexes WHERE relname IN ('tasks', 'attempts', 'awaits', 'wakes', 'deliveries', 'idempotency'))
		FROM pg_stat_user_tables WHERE relname IN ('tasks', 'attempts', 'awaits', 'wakes', 'deliveries', 'idempotency')`
	if err := db.QueryRowContext(t.Context(), query).Scan(&rows); err != nil {
		t.Fatal(err)
	}
	return rows
}

// However many tasks have ended, scans for what is due read none of them.
func TestLooksReadNoPast(t *testing.T) {
	t.Parallel()
	const (
		looks = 12  // the planner tries five times before it may keep a plan
		most  = 300 // rows and entries a look: some for each task that is open, or was a moment ago
	)
	now := time.Now().UTC().Truncate(time.Microsecond)
	url := pgtest.New(t)
	fillHistory(t, url, now)
	fillAttempts(t, url)
	db := openRaw(t, url) // of which one connection is used, for nothing but counting
	db.SetMaxOpenConns(1)

	limited := limitedKey(t, url)
	ctx := t.Context()
	retry := func(p mediagate.Parked) func(s *storage.Store) error {
		p.Reasons = []mediagate.ParkReason{mediagate.ParkCredentials}
		return func(s *storage.Store) error { return errOf(s.RetryParked(ctx, p, 10)) }
	}
	for name, look := range map[string]func(s *storage.Store) error{
		"a submit and a cancel": func(s *storage.Store) error {
			n := limited
			n.ID = "task_" + rand.Text()
			if _, _, err := s.Submit(ctx, mediagate.NewTask{Task: n}); err != nil {
				return err
			}
			return errOf(s.Change(ctx, n.ID, task.CancelRequested{}, task.EndDue{}))
		},
		"due polls": func(s *storage.Store) error {
			epoch, err := s.BeginEpoch(ctx, "kling-a")
			if err != nil {
				return err
			}
			return errOf(s.ClaimDue(ctx, "kling-a", epoch, "claim", time.Minute, 10))
		},
		"abandoned jobs of an account": func(s *storage.Store) error { return errOf(s.Abandoned(ctx, "acc_many")) },
		"due wakes":                    func(s *storage.Store) error { return errOf(s.DueWakes(ctx, 10)) },
		"new tasks":                    func(s *storage.Store) error { return errOf(s.MayStart(ctx, "task_unknown")) },
		"the oldest open task":         func(s *storage.Store) error { return errOf(s.OldestOpen(ctx)) },
		"figures":                      func(s *storage.Store) error { return errOf(s.Figures(ctx)) },
		"abandoned attempts":           func(s *storage.Store) error { return s.ExpireSlots(ctx) },
		"channels that are awaited":    func(s *storage.Store) error { return errOf(s.AwaitChannels(ctx)) },
		"due sweeps":                   func(s *storage.Store) error { return errOf(s.DueSweeps(ctx, 10)) },
		"polls to come":                func(s *storage.Store) error { return errOf(s.AwaitStats(ctx, "kling-a")) },
		"the load of a channel":        func(s *storage.Store) error { return errOf(s.ChannelLoad(ctx, "kling-a")) },
		"queued tasks":                 func(s *storage.Store) error { return errOf(s.QueuedTasks(ctx, "kling-a", 10)) },
		"uncounted charges":            func(s *storage.Store) error { return errOf(s.CountVendorCharges(ctx, 10)) },
		"parked tasks":                 retry(mediagate.Parked{}),
		"parked tasks of a channel":    retry(mediagate.Parked{Channel: "kling-a"}),
		"parked tasks of a provider":   retry(mediagate.Parked{Provider: "kling"}),
	} {
		t.Run(name, func(t *testing.T) {
			before := rowsRead(t, db)
			s := openPostgres(t, url, storage.Config{})
			for range looks {
				if err := look(s); err != nil {
					t.Fatal(err)
				}
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			if read := rowsRead(t, db) - before; read > looks*most {
				t.Errorf("%d rows and entries read in %d looks", read, looks)
			}
		})
	}
}
