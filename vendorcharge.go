package mediagate

import (
	"math/big"
	"regexp"
	"strings"
)

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
