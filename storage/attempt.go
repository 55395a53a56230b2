package storage

import (
	"context"

	"gorm.io/gorm"

	"github.com/mediagate/mediagate"
)

type attemptRow struct {
	TaskID      string `gorm:"primaryKey"`
	N           int    `gorm:"primaryKey"`
	Channel     string
	Provider    string
	Fingerprint string
	Route       document
	ExternalID  string
	SendBefore  stamp
	Ref         document
	State       mediagate.AttemptState
	Outcome     document
	Failure     document
	Results     document
	Trouble     mediagate.ParkReason
	Error       string
	AbsentAt    stamp
	AgainAt     stamp `gorm:"column:absent_again_at"`
	Sends       int
	Refusal     document
	CreatedAt   stamp
	AcceptedAt  stamp
	EndedAt     stamp
	SlotUntil   stamp

	CallEnds     stamp
	CanStop      bool
	Lost         bool
	UnknownSince stamp
	Lookups      int
	LookedAt     stamp
	Elsewhere    bool
	GivenUpAt    stamp
	LastAskedAt  stamp
	StopTried    bool
	Unusable     document

	VendorAmount      *mediagate.Micros
	VendorUnit        string
	VendorUncountedAt stamp

	AccountID *string // null: of a process that did not write it
}

// TableName tells GORM.
func (attemptRow) TableName() string { return "attempts" }

func (r attemptRow) attempt() (mediagate.Attempt, error) {
	a := mediagate.Attempt{
		TaskID: r.TaskID, N: r.N, Channel: r.Channel, Provider: r.Provider, Fingerprint: r.Fingerprint,
		ExternalID: r.ExternalID, SendBefore: r.SendBefore.Time, State: r.State, Trouble: r.Trouble, Error: r.Error,
		AbsentAt: r.AbsentAt.Time, AgainAt: r.AgainAt.Time, Sends: r.Sends, CreatedAt: r.CreatedAt.Time, AcceptedAt: r.AcceptedAt.Time, EndedAt: r.EndedAt.Time,
	}
	for _, column := range []struct {
		name string
		text document
		to   any
	}{
		{"attempts.route", r.Route, &a.Route},
		{"attempts.ref", r.Ref, &a.Ref},
		{"attempts.outcome", r.Outcome, &a.Outcome},
		{"attempts.results", r.Results, &a.Results},
		{"attempts.refusal", r.Refusal, &a.Refusal},
	} {
		if err := fromJSON(column.name, column.text, column.to); err != nil {
			return mediagate.Attempt{}, err
		}
	}
	return a, nil
}

// Attempts reads all attempts of a task, the first one first.
func (s *Store) Attempts(ctx context.Context, taskID string) ([]mediagate.Attempt, error) {
	var rows []attemptRow
	if err := read(s.on(ctx), &rows, "SELECT "+columnsOf[attemptRow]().text+" FROM attempts WHERE task_id = ? ORDER BY n", taskID); err != nil {
		return nil, dbError(err, "read attempts")
	}
	return convertAll(rows, attemptRow.attempt)
}

// Attempt reads one attempt. Returns KindNotFound.
func (s *Store) Attempt(ctx context.Context, taskID string, n int) (mediagate.Attempt, error) {
	row, err := readAttempt(s.on(ctx), taskID, n)
	if err != nil {
		return mediagate.Attempt{}, dbError(err, "read attempt")
	}
	return row.attempt()
}

// aSuccess is how the stored outcome of a job that has files begins.
const aSuccess = `{"succeeded":true%`

// Producer reads the attempt that made what a completed task shows. Returns
// KindNotFound where there is none.
func (s *Store) Producer(ctx context.Context, taskID string) (mediagate.Attempt, error) {
	row, err := one[attemptRow](s.on(ctx), "SELECT "+columnsOf[attemptRow]().of("a")+` FROM attempts a JOIN tasks t ON t.id = a.task_id
		WHERE a.task_id = ? AND t.status = 'completed' AND a.outcome LIKE ? AND a.results IS NOT NULL ORDER BY a.n DESC LIMIT 1`, taskID, aSuccess)
	if err != nil {
		return mediagate.Attempt{}, dbError(err, "read attempt")
	}
	if row == nil {
		return mediagate.Attempt{}, notFound("attempt", taskID)
	}
	return row.attempt()
}

// Refusals counts the attempts of a task that were rejected, by channel.
func (s *Store) Refusals(ctx context.Context, taskID string) (byChannel map[string]int, err error) {
	var rows []struct {
		Channel string
		N       int
	}
	if err := read(s.on(ctx), &rows, "SELECT channel, COUNT(*) AS n FROM attempts WHERE task_id = ? AND state = 'rejected' GROUP BY channel", taskID); err != nil {
		return nil, dbError(err, "count refusals")
	}
	byChannel = make(map[string]int, len(rows))
	for _, r := range rows {
		byChannel[r.Channel] = r.N
	}
	return byChannel, nil
}

func readAttempt(db *gorm.DB, taskID string, n int) (attemptRow, error) {
	row, err := one[attemptRow](db, "SELECT "+columnsOf[attemptRow]().text+" FROM attempts WHERE task_id = ? AND n = ?", taskID, n)
	if err != nil {
		return attemptRow{}, err
	}
	if row == nil {
		return attemptRow{}, mediagate.Errorf(mediagate.KindNotFound, "no attempt %d of task %q", n, taskID)
	}
	return *row, nil
}
