package storage

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/mediagate/mediagate"
)

// period is a span of time with a cap on what a key spends: a day, a week or a month in UTC. It has
// three columns in the row of a key: <name>_start is the beginning of the period that was counted
// last, <name>_used the amount held and charged in it, and cap_<name> the cap. A hold's transfer
// names the day to which it was counted; its week and month follow from the day, since all three
// are counted together.
type period struct {
	name string
	days int // the most days that it has
	// begin returns the beginning of the period that contains t, a time in UTC.
	begin func(t time.Time) time.Time
}

// periods are the periods with a cap. The shortest is the first: statements of a submit use
// periods[0] for the day to which a hold is counted.
var periods = [...]period{
	{"day", 1, func(t time.Time) time.Time { return time.Date(t.Year(), t.Month(), t.Day(), 0, 0, 0, 0, time.UTC) }},
	{"week", 7, func(t time.Time) time.Time {
		// Weeks begin on Mondays, and time.Weekday on Sundays.
		sinceMonday := (int(t.Weekday()) + 6) % 7
		return time.Date(t.Year(), t.Month(), t.Day()-sinceMonday, 0, 0, 0, 0, time.UTC)
	}},
	{"month", 31, func(t time.Time) time.Time { return time.Date(t.Year(), t.Month(), 1, 0, 0, 0, 0, time.UTC) }},
}

// start returns the beginning of the period that contains t.
func (p period) start(t time.Time) stamp { return at(p.begin(t.UTC())) }

// current is the expression of the amount that a key has used in the present period. Its parameter
// is the beginning of that period. If the row still counts an earlier period, the amount is 0, and
// the next hold begins the present period.
func (p period) current() string {
	return "CASE WHEN " + p.name + "_start >= ? THEN " + p.name + "_used ELSE 0 END"
}

// end returns the end of the period that counts for a key: the present one, or a later one that was
// counted before the clock was set back.
func (p period) end(r keyRow, now time.Time) time.Time {
	start := p.start(now)
	if counted, _ := r.counted(p); counted.After(start.Time) {
		start = counted
	}
	// The start plus the most days of a period lies in the next period, and p.begin goes back to
	// the first moment of that one. Example: 1 February plus 31 days is 4 March (3 March in a leap
	// year), and that month began on 1 March.
	return p.begin(start.AddDate(0, 0, p.days))
}

// used returns the amount that a key has used in the present period. When the clock is set
// back, the period that was counted last stays the present one, so that no key gets its cap
// twice.
//
// Example: a key has used its cap of 2 May when the clock goes back to 23:59 of 1 May. The row
// counts 2 May, which is not before 1 May. So its amount still counts, and the key gets nothing
// more.
func (p period) used(r keyRow, now time.Time) mediagate.Micros {
	start, used := r.counted(p)
	if start.Before(p.start(now).Time) {
		return 0
	}
	return used
}

// counted returns the columns of a period: when the period that was counted last began, zero if
// none was, and what was used in it.
func (r keyRow) counted(p period) (start stamp, used mediagate.Micros) {
	switch p.name {
	case "day":
		return r.DayStart, r.DayUsed
	case "week":
		return r.WeekStart, r.WeekUsed
	default:
		return r.MonthStart, r.MonthUsed
	}
}

// limit returns the cap of a period; nil: no cap.
func (r keyRow) limit(p period) *mediagate.Micros {
	switch p.name {
	case "day":
		return r.CapDay
	case "week":
		return r.CapWeek
	default:
		return r.CapMonth
	}
}

// capsUsed returns the used amount of each cap.
func (r keyRow) capsUsed(now time.Time) (used mediagate.Caps) {
	for i, amount := range [...]**mediagate.Micros{&used.Day, &used.Week, &used.Month} {
		if p := periods[i]; r.limit(p) != nil {
			*amount = new(p.used(r, now))
		}
	}
	return used
}

// checkLimits returns KindInvalid for a quota or a cap below the amount that is used already.
// The error names the field. The caller holds the lock of the row, so the used amounts are
// exact.
func (r keyRow) checkLimits(now time.Time) error {
	if used := r.Held + r.Spent; !r.Unlimited && r.Quota < used {
		return mediagate.Invalid("quota", "quota must be at least %s, which is held and spent already", used)
	}
	for _, p := range periods {
		limit, used := r.limit(p), p.used(r, now)
		if limit != nil && *limit < used {
			param := "caps." + p.name
			return mediagate.Invalid(param, "%s must be at least %s, which is held and spent in this %s already",
				param, used, p.name)
		}
	}
	return nil
}

// inFlight is a table whose rows bound the number of tasks in flight. Each hold of a task
// raises the row's in_flight, and each end of a task lowers it, in statements that write the
// row anyway. Abandoned jobs of cancelled tasks count too, but have no counter: jobs counts
// them when a limit is checked. Otherwise a client could submit and cancel without end at a
// vendor that cannot stop jobs.
type inFlight struct {
	table string
	what  string // the name of a row for people
	tasks string // the query that counts the row's open tasks
	jobs  string // the query that counts jobs of cancelled tasks that may still run
}

// openTasks counts the open tasks of an account, for the check of the counters. An expression
// for the account's id follows.
const openTasks = "SELECT COUNT(*) FROM tasks AS t WHERE t.status IN ('pending', 'processing') AND t.account_id = "

var (
	// The tasks of all keys that share a quota count together.
	keysInFlight = inFlight{
		"keys", "key",
		openTasks + "keys.account_id AND t.key_id IN " + pair,
		abandoned(abandonedJobs, "keys.account_id") + " AND lt.key_id IN " + pair + ")",
	}
	accountsInFlight = inFlight{
		"accounts", "account", openTasks + "accounts.id", abandoned(abandonedJobs, "accounts.id") + ")",
	}
)

// pair selects the ids of the keys that share the quota of a row of keys.
const pair = "(SELECT o.id FROM keys AS o WHERE o.id = keys.id OR o.quota_id = keys.id)"

// room is the condition that a row may have one more task in flight. limit is an expression
// that is NULL where there is no limit. The statement that takes a hold contains the condition,
// and is thus exact for the counter: PostgreSQL reads it under the lock of the row.
func (f inFlight) room(limit string) string {
	return "(" + limit + " IS NULL OR " + f.table + ".in_flight + " + f.jobs + " < " + limit + ")"
}

// checkInFlight returns KindRateLimited if a row has as many tasks in flight as its limit
// allows. It explains a refused hold. byDefault is the limit of rows that set none; nil: no
// limit. If the row has room by now, checkInFlight returns nil, and the caller tries the hold
// again.
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
	if limit == nil || row.InFlight+row.Jobs < *limit {
		return nil
	}
	e := &mediagate.Error{Kind: mediagate.KindRateLimited, Code: "rate_limited"}
	if *limit == 0 { // waiting does not help
		e.Message = fmt.Sprintf("the %s may have no task in flight: its in_flight is 0", f.what)
		return e
	}
	e.RetryAfter = saturatedRetry
	e.Message = fmt.Sprintf("too many requests: the %s may have %d tasks in flight at a time", f.what, *limit)
	if row.Jobs > 0 {
		e.Message += fmt.Sprintf(", and the jobs of %d cancelled ones may still run", row.Jobs)
	}
	return e
}
