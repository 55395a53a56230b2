package mediagate

import (
	"math/big"
	"regexp"
	"strings"
	"time"
)

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
	KeyID     string // empty: of all keys
	Model     string // empty: of all models
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

// Total is what the account has: what is held has not been spent.
func (b Balance) Total() Micros { return b.Available + b.Held }

// Plus is the balance after a change.
func (b Balance) Plus(change Balance) Balance {
	return Balance{b.Available + change.Available, b.Held + change.Held, b.Spent + change.Spent}
}

// StatementFilter asks for what moved an account's balance from From on and
// before To, after the transfer After if it is set. Zero times are no bounds. ByTask leaves out
// holds, so that a task has one line, at its end.
type StatementFilter struct {
	AccountID string
	From, To  time.Time
	After     string
	Limit     int
	ByTask    bool
}

// Statement is what moved an account's balance, oldest first. Opening and the
// changes of all lines sum to Closing; where more follow, they begin with it. By task that is so of
// their totals and of what is spent: a hold changes neither.
type Statement struct {
	Opening, Closing Balance
	Lines            []StatementLine
	HasMore          bool
}

// StatementLine is a transfer, what it was about, by how much it changed the account's
// balance, and the total after it.
type StatementLine struct {
	Transfer
	Model  string // empty for a grant
	Change Balance
	Total  Micros
}

// SpeechState is how far the money of a speech has come.
type SpeechState string

// A speech is open until its hold is posted or voided, once.
const (
	SpeechOpen   SpeechState = "open"
	SpeechPosted SpeechState = "posted"
	SpeechVoided SpeechState = "voided"
)

// Speech is a request that is answered with sound while a vendor still speaks:
// no task, but something for its hold to hang on. It knows neither the text nor
// the sound.
type Speech struct {
	ID        string
	AccountID string
	KeyID     string
	RequestID string
	Model     string   // as the client named it
	Charges   []Charge // the chosen prices
	Hold      Micros   // what Charges add up to
}

// VendorCharge is what a vendor says that a job has cost us, in its own unit:
// credits, seconds, tokens, a currency. It is for operators alone.
type VendorCharge struct {
	Amount string `json:"amount"` // a decimal, at most 6 of its digits behind the point
	Unit   string `json:"unit"`
}

// The most that is believed of a vendor: whatever states more is broken.
const maxVendorCharge = 1_000_000_000 * MicrosPerUnit

var (
	vendorAmount = regexp.MustCompile(`^[0-9]{0,20}\.?[0-9]{0,20}$`)
	vendorUnit   = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_ -]{0,31}$`)
)

// ChargedBy is the charge of that amount, or nil where a vendor states none that
// can be one: it is never a reason for a task to fail.
func ChargedBy(amount, unit string) *VendorCharge {
	c := VendorCharge{Amount: amount, Unit: unit}
	m, ok := c.Micros()
	if !ok {
		return nil
	}
	c.Amount = m.Number().String()
	return &c
}

// Micros is the amount in millionths of the unit, rounded. ok is false for what
// can be no charge.
func (c VendorCharge) Micros() (m Micros, ok bool) {
	if !vendorAmount.MatchString(c.Amount) || strings.Trim(c.Amount, ".") == "" || !vendorUnit.MatchString(c.Unit) {
		return 0, false
	}
	amount, ok := new(big.Rat).SetString(c.Amount)
	if !ok {
		return 0, false
	}
	amount.Mul(amount, big.NewRat(int64(MicrosPerUnit), 1))
	amount.Add(amount, big.NewRat(1, 2))
	whole := new(big.Int).Quo(amount.Num(), amount.Denom())
	if !whole.IsInt64() || whole.Int64() > int64(maxVendorCharge) {
		return 0, false
	}
	return Micros(whole.Int64()), true
}

// Plus is the sum of two charges of one job, either of which may be nil. What
// has not the same unit has no sum.
func (c *VendorCharge) Plus(other *VendorCharge) *VendorCharge {
	switch {
	case c == nil:
		return other
	case other == nil:
		return c
	case c.Unit != other.Unit:
		return nil
	}
	a, aOK := c.Micros()
	b, bOK := other.Micros()
	if !aOK || !bOK {
		return nil
	}
	return ChargedBy((a + b).Number().String(), c.Unit)
}
