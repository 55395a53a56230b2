package storage

import (
	"context"
	"fmt"

	"gorm.io/gorm"

	"github.com/mediagate/mediagate"
)

// inFlight is a table whose rows bound the tasks in flight. A row's in_flight
// goes up with each hold of a task and down with the end of one, in statements
// that write the row anyway. A process that knows nothing of it may leave it wrong.
// Nobody goes by it before a limit is set, and setting one counts anew, as does a
// refusal.
type inFlight struct {
	table string
	what  string // a row, for people
	tasks string // counts those of the row
}

const openTasks = "SELECT COUNT(*) FROM tasks AS t WHERE t.status IN ('pending', 'processing') AND t.account_id = "

var (
	keysInFlight = inFlight{
		"keys", "key",
		openTasks + "keys.account_id AND t.key_id IN (SELECT o.id FROM keys AS o WHERE o.id = keys.id OR o.purse_id = keys.id)",
	}
	accountsInFlight = inFlight{"accounts", "account", openTasks + "accounts.id"}
)

// recount writes how many there are. The row must be locked: what then changes
// the number comes after.
func (f inFlight) recount(tx *gorm.DB, id string) error {
	_, err := exec(tx, "UPDATE "+f.table+" SET in_flight = ("+f.tasks+") WHERE id = ?", id)
	return err
}

// checkInFlight refuses another task of a row that has as many as it may. A row
// that has counted wrong is mended.
func (s *Store) checkInFlight(ctx context.Context, f inFlight, id string) error {
	// One statement, so that both numbers are of the same moment.
	row, err := one[struct {
		InFlight    int
		InFlightCap *int
		Tasks       int
	}](s.on(ctx), "SELECT in_flight, in_flight_cap, ("+f.tasks+") AS tasks FROM "+f.table+" WHERE id = ?", id)
	switch {
	case err != nil:
		return err
	case row == nil || row.InFlightCap == nil || row.InFlight < *row.InFlightCap:
		return nil
	case row.InFlight != row.Tasks:
		return s.write(ctx, "count tasks in flight", func(tx *gorm.DB) error {
			if _, err := one[struct{ ID string }](tx, "SELECT id FROM "+f.table+" WHERE id = ?"+s.forUpdate(f.table), id); err != nil {
				return err
			}
			return f.recount(tx, id)
		})
	case *row.InFlightCap == 0: // and waiting does not help
		return &mediagate.Error{
			Kind: mediagate.KindRateLimited, Code: "rate_limited",
			Message: fmt.Sprintf("the %s may have no task in flight: its in_flight is 0", f.what),
		}
	default:
		return &mediagate.Error{
			Kind: mediagate.KindRateLimited, Code: "rate_limited", RetryAfter: saturatedRetry,
			Message: fmt.Sprintf("too many requests: the %s may have %d tasks in flight at a time", f.what, *row.InFlightCap),
		}
	}
}
