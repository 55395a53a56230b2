package storage

import (
	"context"

	"gorm.io/gorm"

	"github.com/mediagate/mediagate"
)

// Setting is what a connection of the store has in force.
func (s *Store) Setting(ctx context.Context, name string) (string, error) {
	got, err := s.texts(ctx, "read a setting", "SELECT current_setting(?)", name)
	if err != nil || len(got) == 0 {
		return "", err
	}
	return got[0], nil
}

// Pausing is a transaction in which pause runs between two statements.
func (s *Store) Pausing(ctx context.Context, pause func()) error {
	return s.write(ctx, "pause", func(tx *gorm.DB) error {
		for range 2 {
			if _, err := one[struct{ N int }](tx, "SELECT 1 AS n"); err != nil {
				return err
			}
			pause()
		}
		return nil
	})
}

// Warm uses n connections at once.
func (s *Store) Warm(ctx context.Context, n int) error {
	for range n {
		conn, err := s.sql.Conn(ctx)
		if err != nil {
			return err
		}
		defer func() { _ = conn.Close() }()
		if err := conn.PingContext(ctx); err != nil {
			return err
		}
	}
	return nil
}

// RowColumns are the columns that the rows' structs tell, by table.
func RowColumns() map[string][]string {
	return map[string][]string{
		"tasks":                      columnsOf[wholeTask]().names, // whose parts are several structs
		accountRow{}.TableName():     columnsOf[accountRow]().names,
		sessionRow{}.TableName():     columnsOf[sessionRow]().names,
		actionRow{}.TableName():      columnsOf[actionRow]().names,
		attemptRow{}.TableName():     columnsOf[attemptRow]().names,
		assetRow{}.TableName():       columnsOf[assetRow]().names,
		"wakes":                      columnsOf[wakeRow]().names,
		awaitRow{}.TableName():       columnsOf[awaitRow]().names,
		channelRow{}.TableName():     columnsOf[channelRow]().names,
		"channel_minutes":            {"channel", "minute", "submits", "failures"},
		"restores":                   {"restored_to", "noted_at"},
		"queue":                      {"task_id", "channel", "n", "account_id", "since", "granted_at"},
		turnRow{}.TableName():        columnsOf[turnRow]().names,
		deliveryRow{}.TableName():    columnsOf[deliveryRow]().names,
		entryRow{}.TableName():       columnsOf[entryRow]().names,
		idempotencyRow{}.TableName(): columnsOf[idempotencyRow]().names,
		keyRow{}.TableName():         columnsOf[keyRow]().names,
		secretRow{}.TableName():      columnsOf[secretRow]().names,
		speechRow{}.TableName():      columnsOf[speechRow]().names,
		"ledger_transfers":           columnsOf[endRow]().names, // the kind with most
		auditRow{}.TableName():       columnsOf[auditRow]().names,
		"retention":                  columnsOf[removalRow]().names,
		"rates":                      {"id", "tat"},
		"usage_sums":                 columnsOf[usageSumRow]().names,
		"vendor_sums":                columnsOf[vendorSumRow]().names,
	}
}

// Writers counts those, at work or waiting for it.
func (s *Store) Writers() int {
	f := s.writers.Figures()
	return f.Waiting + int(f.Held)
}

// Listing is the statement of a list, with a question mark for each of its values.
type Listing struct {
	Text string
	Args []any
}

func exported(list *statement) Listing {
	l := Listing{Text: list.text.String(), Args: list.args}
	for i, arg := range l.Args {
		if at, ok := arg.(stamp); ok {
			l.Args[i] = at.Time
		}
		if text, ok := arg.(document); ok {
			l.Args[i] = string(text)
		}
	}
	return l
}

// Listing is the statement of Tasks.
func (s *Store) Listing(ctx context.Context, f mediagate.TaskFilter) (Listing, error) {
	f.Limit = defaultLimit
	list, err := s.listing(ctx, f)
	if err != nil {
		return Listing{}, err
	}
	return exported(list), nil
}

// KindsListing is the statement that a list with filters begins with.
func KindsListing(accountID string) Listing { return exported(kindsOfTasks(accountID)) }

// LedgerListing is the statement of Ledger.
func LedgerListing(accountID, taskID string, last *mediagate.Transfer, limit int) Listing {
	if last == nil {
		return exported(ledgerListing(accountID, taskID, nil, limit))
	}
	row := newTransferRow(*last)
	return exported(ledgerListing(accountID, taskID, &row, limit))
}

// Pooled tells whether the store takes its connections for those of a pooler.
func (s *Store) Pooled() bool {
	_, is := s.db.ConnPool.(pooled)
	return is
}
