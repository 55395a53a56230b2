package mediagate

import "time"

// UsageBy is what usage is told apart by.
type UsageBy string

// The ways to tell usage apart.
const (
	ByDay      UsageBy = "day" // in UTC
	ByModel    UsageBy = "model"
	ByKey      UsageBy = "key"
	ByAccount  UsageBy = "account"
	ByProvider UsageBy = "provider"
)

// UsageFilter asks for what was used from From on and before To. Zero times are
// no bounds.
type UsageFilter struct {
	AccountID string // empty: of all accounts
	From, To  time.Time
	By        []UsageBy // empty: all in one row
	Limit     int       // of rows
}

// Usage is a row of what was used. Fields that nobody asked to tell apart are
// zero.
//
// A task, or a speech, is in one row, once: while it is open by its submit, then
// by its end, with what was charged.
type Usage struct {
	Day       time.Time
	AccountID string
	KeyID     string
	Model     string
	Provider  string
	Cost      Micros
	Tasks     UsageTasks

	VendorCharges []VendorCharge // by unit; only of rows that tell providers apart
}

// UsageTasks are numbers of tasks by their states.
type UsageTasks struct {
	Pending, Processing          int64
	Completed, Failed, Cancelled int64
}

// Balance is an account's money at a moment.
type Balance struct {
	Available Micros
	Held      Micros
	Spent     Micros
}

// Plus is the balance after a change.
func (b Balance) Plus(change Balance) Balance {
	return Balance{b.Available + change.Available, b.Held + change.Held, b.Spent + change.Spent}
}

// StatementFilter asks for what moved an account's balance from From on and
// before To, after the transfer After if it is set. Zero times are no bounds.
type StatementFilter struct {
	AccountID string
	From, To  time.Time
	After     string
	Limit     int
}

// Statement is what moved an account's balance, oldest first. Opening and the
// changes of all lines sum to Closing; where more follow, they begin with it.
type Statement struct {
	Opening, Closing Balance
	Lines            []StatementLine
	HasMore          bool
}

// StatementLine is a transfer, what it was about, and by how much it changed the
// account's balance.
type StatementLine struct {
	Transfer
	Model  string // empty for a grant
	Change Balance
}
