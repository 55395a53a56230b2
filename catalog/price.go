package catalog

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/mediagate/mediagate"
)

// priceList is a table of unit prices, with what counts the units.
type priceList struct {
	unit     mediagate.Unit
	quantity names // fields that are multiplied; empty means 1
	zero     int64 // what a quantity of 0 counts as; 0 means nothing
	holds    []Hold
	table    table
}

// Hold says how many units are held beyond what a request asks for, if the request has the list
// Given. The vendor may then count more: at least Least units of the first quantity, or More units
// more. What is not delivered is not charged.
type Hold struct {
	Given string         `yaml:"given"` // a list of the request
	Where map[string]any `yaml:"where"` // what an item of the list must have; empty for any item
	Least int64          `yaml:"least"`
	More  int64          `yaml:"more"`
}

// problems lists what is wrong with the hold.
func (h Hold) problems(s *shape, p priceList) []string {
	var problems []string
	field := s.properties[h.Given]
	if field == nil || !field.is("array") {
		return []string{fmt.Sprintf("holds: given: %q is no list of the request", h.Given)}
	}
	for name, v := range h.Where {
		if of := s.at([]any{h.Given, 0, name}); of == nil ||
			!slices.ContainsFunc(valuesOf(of), func(one any) bool { return one == jsonValue(v) }) {
			problems = append(problems, fmt.Sprintf("holds: where: no item of %s can have %v as %s", h.Given, v, name))
		}
	}
	if (h.Least > 0) == (h.More > 0) || h.Least < 0 || h.More < 0 || h.Least+h.More > maxQuantity {
		problems = append(problems, "holds: least or more must be a number of units")
	}
	if p.unit != mediagate.UnitSecond || len(p.quantity) == 0 {
		problems = append(problems, "holds is for seconds that quantity counts: no others are charged as they are delivered")
	}
	return problems
}

// of returns the units to hold for a request of this many units.
func (h Hold) of(units int64, params map[string]any) int64 {
	items, _ := params[h.Given].([]any)
	if !slices.ContainsFunc(items, func(item any) bool {
		fields, _ := item.(map[string]any)
		for name, v := range h.Where {
			if fields[name] != jsonValue(v) {
				return false
			}
		}
		return true
	}) {
		return units
	}
	return max(units, h.Least) + h.More
}

// units lists what prices can count.
var units = []mediagate.Unit{
	mediagate.UnitSecond, mediagate.UnitImage, mediagate.UnitSong, mediagate.UnitOperation, mediagate.UnitCharacter,
}

const (
	maxUnitPrice = 1_000_000 * mediagate.MicrosPerUnit // far above any price, to catch mistakes
	maxQuantity  = 1_000_000
)

func compilePrice(f *priceFile, s *shape) (priceList, []string) {
	if f == nil {
		return priceList{}, []string{"is missing"}
	}
	p := priceList{unit: f.Unit, quantity: f.Quantity, zero: f.Zero, holds: f.Holds}
	var problems []string
	if !slices.Contains(units, f.Unit) {
		words := make([]string, len(units))
		for i, unit := range units {
			words[i] = string(unit)
		}
		problems = append(problems, "unit must be "+list(words, "or"))
	}
	problems = append(problems, p.quantityProblems(s)...)
	if f.Zero < 0 || f.Zero > maxQuantity || f.Zero > 0 && !slices.ContainsFunc(p.quantity, s.mayBeZero) {
		problems = append(problems, fmt.Sprintf(
			"zero must be a number of units, where quantity may be 0: it is %d for %q", f.Zero, strings.Join(p.quantity, ", "),
		))
	}
	for _, hold := range p.holds {
		problems = append(problems, hold.problems(s, p)...)
	}
	var more []string
	p.table, more = compileTable(f.By, f.Rows, s)
	problems = append(problems, more...)
	for key, text := range p.table.rows {
		if amount, err := mediagate.ParseMicros(text); err != nil || amount < 0 || amount > maxUnitPrice {
			problems = append(problems, fmt.Sprintf("%q for%s is no price: write a decimal text such as \"0.084\"", text, key))
		}
	}
	return p, problems
}

// quantityProblems lists what is wrong with the fields that count units.
func (p priceList) quantityProblems(s *shape) []string {
	if p.unit == mediagate.UnitCharacter {
		name := ""
		if len(p.quantity) == 1 {
			name = p.quantity[0]
		}
		field := s.properties[name]
		if field == nil || !field.is("string") || field.maxLength == 0 || field.maxLength > maxQuantity || !s.demanded[name] {
			return []string{fmt.Sprintf(
				"quantity %q must be a required text with an upper bound: its characters are counted",
				strings.Join(p.quantity, ", "),
			)}
		}
		return nil
	}
	var problems []string
	for i, name := range p.quantity {
		field := s.properties[name]
		switch {
		case slices.Contains(p.quantity[:i], name):
			problems = append(problems, fmt.Sprintf("quantity %q is named twice", name))
		case field == nil || !countable(field) || (!field.hasFallback && !s.demanded[name]):
			problems = append(
				problems, fmt.Sprintf("quantity %q must be an integer field with a default, an upper bound and none below 0", name),
			)
		}
	}
	return problems
}

// countable reports whether the field is an integer that is bounded and never negative.
func countable(s *shape) bool {
	if len(s.enum) > 0 {
		return !slices.ContainsFunc(s.enum, func(v any) bool { n, ok := int64Of(v); return !ok || n < 0 || n > maxQuantity })
	}
	low, okLow := int64Of(s.minimum)
	high, okHigh := int64Of(s.maximum)
	return s.is("integer") && okLow && okHigh && low >= 0 && high <= maxQuantity
}

// mayBeZero reports whether the field is an integer that may be 0.
func (s *shape) mayBeZero(name string) bool {
	s = s.properties[name]
	if s == nil {
		return false
	}
	if len(s.enum) > 0 {
		return slices.ContainsFunc(s.enum, func(v any) bool { n, ok := int64Of(v); return ok && n == 0 })
	}
	low, ok := int64Of(s.minimum)
	return s.is("integer") && ok && low == 0
}

// quote prices a request.
func (o *Operation) quote(params map[string]any) ([]mediagate.Charge, error) {
	text, ok := o.price.table.find(params)
	if !ok {
		return nil, missingPrice(o)
	}
	unitPrice, err := mediagate.ParseMicros(text)
	if err != nil {
		return nil, missingPrice(o)
	}
	charge := mediagate.Charge{Item: o.item(params), Unit: o.price.unit, Quantity: 1, UnitPrice: unitPrice}
	for i, name := range o.price.quantity {
		n := quantityOf(params[name])
		if n == 0 {
			n = o.price.zero
		}
		if i == 0 {
			for _, hold := range o.price.holds {
				n = hold.of(n, params)
			}
		}
		charge.Quantity *= n
		if i > 0 && n > 1 {
			charge.Files = max(charge.Files, 1) * n
		}
	}
	return []mediagate.Charge{charge}, nil
}

// quantityOf returns a number, or the number of a text's code points.
func quantityOf(v any) int64 {
	switch v := v.(type) {
	case json.Number:
		n, _ := int64Of(v)
		return n
	case string:
		return int64(utf8.RuneCountInString(v))
	default:
		return 1
	}
}

// item describes what is charged, such as "alpha-v3 pro audio": the model and the values that its
// price depends on.
func (o *Operation) item(params map[string]any) string {
	words := []string{o.Model.Canonical}
	for _, name := range o.price.table.by {
		switch v := params[name].(type) {
		case bool:
			if v {
				words = append(words, strings.ReplaceAll(name, "_", " "))
			}
		default:
			words = append(words, fmt.Sprint(v))
		}
	}
	return strings.Join(words, " ")
}

// missingPrice cannot happen in a loaded catalog, since Load requires complete tables.
func missingPrice(o *Operation) *mediagate.Error {
	return mediagate.Errorf(mediagate.KindInternal, "%s has no price for the request", o.Model.ID)
}
