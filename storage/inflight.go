package storage

import (
	"cmp"
	"context"
	"fmt"

	"github.com/mediagate/mediagate"
)

// inFlight is a table whose rows bound the tasks in flight. A row's in_flight
// goes up with each hold of a task and down with the end of one, in statements
// that write the row anyway.
type inFlight struct {
	table string
	what  string // a row, for people
	tasks string // counts those of the row
	jobs  string // counts jobs of cancelled tasks that may still run
}

const openTasks = "SELECT COUNT(*) FROM tasks AS t WHERE t.status IN ('pending', 'processing') AND t.account_id = "

var (
	keysInFlight = inFlight{
		"keys", "key",
		openTasks + "keys.account_id AND t.key_id IN " + pair,
		abandoned(abandonedJobs, "keys.account_id") + " AND lt.key_id IN " + pair + ")",
	}
	accountsInFlight = inFlight{"accounts", "account", openTasks + "accounts.id", abandoned(abandonedJobs, "accounts.id") + ")"}
)

// pair are the ids of the keys that share a row of keys.
const pair = "(SELECT o.id FROM keys AS o WHERE o.id = keys.id OR o.quota_id = keys.id)"

// room is the condition that a row can have one more, where limit is an expression that is
// null without one.
func (f inFlight) room(limit string) string {
	return "(" + limit + " IS NULL OR in_flight + " + f.jobs + " < " + limit + ")"
}

// checkInFlight refuses another task of a row that has as many as it may.
func (s *Store) checkInFlight(ctx context.Context, f inFlight, id string, byDefault *int) error {
	row, err := one[struct {
		InFlight    int
		InFlightCap *int
		Jobs        int
	}](s.on(ctx), "SELECT in_flight, in_flight_cap, "+f.jobs+" AS jobs FROM "+f.table+" WHERE id = ?", id)
	if err != nil || row == nil {
		return err
	}
	limit := cmp.Or(row.InFlightCap, byDefault)
	switch {
	case limit == nil || row.InFlight+row.Jobs < *limit:
		return nil
	case *limit == 0: // and waiting does not help
		return &mediagate.Error{
			Kind: mediagate.KindRateLimited, Code: "rate_limited",
			Message: fmt.Sprintf("the %s may have no task in flight: its in_flight is 0", f.what),
		}
	default:
		e := &mediagate.Error{
			Kind: mediagate.KindRateLimited, Code: "rate_limited", RetryAfter: saturatedRetry,
			Message: fmt.Sprintf("too many requests: the %s may have %d tasks in flight at a time", f.what, *limit),
		}
		if row.Jobs > 0 {
			e.Message += fmt.Sprintf(", and the jobs of %d cancelled ones may still run", row.Jobs)
		}
		return e
	}
}
