package mediagate

import (
	"math/big"
	"regexp"
	"strings"
	"time"
)

// UsageBy is a column by which usage is grouped.
type UsageBy string

// The columns by which usage can be grouped.
const (
	ByDay      UsageBy = "day" // in UTC
	ByModel    UsageBy = "model"
	ByKey      UsageBy = "key"
	ByAccount  UsageBy = "account"
	ByProvider UsageBy = "provider"
)

// UsageFilter selects usage from From on and before To. Zero times mean no bound.
type UsageFilter struct {
	AccountID string // empty for all accounts
	KeyID     string // empty for all keys
	Model     string // empty for all models
	From, To  time.Time
	By        []UsageBy // empty for a single row
	Limit     int       // maximum number of rows
}

// Usage is one row of usage. Columns that the query does not group by are zero.
//
// A task or a speech is counted in one row only. While it is open, the time of its submit decides
// which. After that the time of its end decides, and Cost includes what it was charged.
type Usage struct {
	Day       time.Time
	AccountID string
	KeyID     string
	Model     string
	Provider  string
	Cost      Micros
	Tasks     UsageTasks

	VendorCharges []VendorCharge // by unit; only in rows grouped by provider
}

// UsageTasks counts tasks by state.
type UsageTasks struct {
	Pending, Processing          int64
	Completed, Failed, Cancelled int64
}

// Balance is an account's money at one moment.
type Balance struct {
	Available Micros
	Held      Micros
	Spent     Micros
}

// Total returns what the account has. A hold is not yet spent.
func (b Balance) Total() Micros { return b.Available + b.Held }

// Plus returns the balance after a change.
func (b Balance) Plus(change Balance) Balance {
	return Balance{b.Available + change.Available, b.Held + change.Held, b.Spent + change.Spent}
}

// StatementFilter selects the entries that changed an account's balance from From on and before
// To, after the transfer After if it is set. Zero times mean no bound. ByTask leaves holds out,
// so that a task has one line, at its end.
type StatementFilter struct {
	AccountID string
	From, To  time.Time
	After     string
	Limit     int
	ByTask    bool
}

// Statement lists what changed an account's balance, oldest first. Opening and the changes of all
// lines sum to Closing. If more lines follow, Closing is the balance at which they begin. By task,
// only the totals and the spent amounts sum up: a hold changes neither.
type Statement struct {
	Opening, Closing Balance
	Lines            []StatementLine
	HasMore          bool
}

// StatementLine is a transfer with its model, the change of the account's balance, and the total
// after it.
type StatementLine struct {
	Transfer
	Model  string // empty for a grant
	Change Balance
	Total  Micros
}

// SpeechState is the state of the money of a speech.
type SpeechState string

// The states of a speech. It is open until its hold is posted or voided, once.
const (
	SpeechOpen   SpeechState = "open"
	SpeechPosted SpeechState = "posted"
	SpeechVoided SpeechState = "voided"
)

// Speech is a request that is answered with sound while a vendor still speaks. It is no task,
// only the record that its hold belongs to. It contains neither the text nor the sound.
type Speech struct {
	ID        string
	AccountID string
	KeyID     string
	RequestID string
	Model     string   // as the client named it
	Charges   []Charge // the prices
	Hold      Micros   // the sum of Charges
}

// VendorCharge is what a vendor says that a job has cost us, in its own unit: credits, seconds,
// tokens or a currency. Only operators see it.
type VendorCharge struct {
	Amount string `json:"amount"` // a decimal with at most 6 decimals
	Unit   string `json:"unit"`
}

// maxVendorCharge bounds what a vendor may state. A larger amount is an error of the vendor.
const maxVendorCharge = 1_000_000_000 * MicrosPerUnit

var (
	vendorAmount = regexp.MustCompile(`^[0-9]{0,20}\.?[0-9]{0,20}$`)
	vendorUnit   = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_ -]{0,31}$`)
)

// ChargedBy returns the charge of this amount, or nil if the vendor's statement is no valid
// charge. That is never a reason for a task to fail.
func ChargedBy(amount, unit string) *VendorCharge {
	c := VendorCharge{Amount: amount, Unit: unit}
	m, ok := c.Micros()
	if !ok {
		return nil
	}
	c.Amount = m.Number().String()
	return &c
}

// Micros returns the amount in millionths of the unit, rounded. ok is false for an invalid
// charge.
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

// Plus returns the sum of two charges of one job, either of which may be nil. Charges in
// different units have no sum.
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
