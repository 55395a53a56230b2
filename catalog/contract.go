package catalog

import (
	"cmp"
	"errors"
	"maps"
	"time"

	"github.com/mediagate/mediagate"
)

// firstDate is the date of models and schemas whose file has none.
const firstDate = "2026-11-22"

// dayOf parses a date in a file.
func dayOf(text string) (time.Time, error) {
	day, err := time.Parse(time.DateOnly, cmp.Or(text, firstDate))
	if err != nil {
		return day, errors.New("must be a date such as " + firstDate)
	}
	return day, nil
}

// SchemaVersion is the date of the schema. Later versions only add fields.
func (o *Operation) SchemaVersion() string { return o.version }

// Expected is how long a task usually takes.
func (o *Operation) Expected() time.Duration { return o.plan.Expected }

// Pricing is what the operation costs, as Accept computes it.
type Pricing struct {
	Unit mediagate.Unit
	// Quantity lists the fields whose product, or whose characters, are the number of units. Empty
	// means 1.
	Quantity []string
	Zero     int64 // what a quantity of 0 counts as; 0 means nothing
	Holds    []Hold
	Rows     []PriceRow
}

// PriceRow is the price of one unit if certain fields have certain values.
type PriceRow struct {
	When   map[string]any
	Charge mediagate.Charge // of one unit
}

// Pricing lists the operation's prices, one row for each combination of the values that they
// depend on.
func (o *Operation) Pricing() (Pricing, error) {
	p := Pricing{Unit: o.price.unit, Quantity: o.price.quantity, Zero: o.price.zero, Holds: o.price.holds}
	whens := []map[string]any{{}}
	for _, field := range o.price.table.by {
		var next []map[string]any
		for _, when := range whens {
			for _, value := range valuesOf(o.schema.shape.properties[field]) {
				next = append(next, with(when, field, value))
			}
		}
		whens = next
	}
	for _, when := range whens {
		charges, err := o.quote(when)
		if err != nil {
			return p, err
		}
		for _, charge := range charges {
			charge.Quantity = 1
			p.Rows = append(p.Rows, PriceRow{When: when, Charge: charge})
		}
	}
	return p, nil
}

// PriceSpan is the range of an operation's unit prices.
type PriceSpan struct {
	Endpoint string
	Unit     mediagate.Unit
	From, To mediagate.Micros
}

// PriceSpans lists the price ranges of the model's operations, in the order of the file. It leaves
// out the modal call, which makes no task: it continues one whose price is already held.
func (m *Model) PriceSpans() ([]PriceSpan, error) {
	var spans []PriceSpan
	for _, o := range m.operations {
		if o.Endpoint == ModalEndpoint {
			continue
		}
		prices, err := o.Pricing()
		if err != nil {
			return nil, err
		}
		span := PriceSpan{Endpoint: o.Endpoint, Unit: prices.Unit}
		for i, row := range prices.Rows {
			if each := row.Charge.UnitPrice; i == 0 {
				span.From, span.To = each, each
			} else {
				span.From, span.To = min(span.From, each), max(span.To, each)
			}
		}
		spans = append(spans, span)
	}
	return spans, nil
}

func with(values map[string]any, name string, value any) map[string]any {
	sum := map[string]any{name: value}
	maps.Copy(sum, values)
	return sum
}
