package catalog

import (
	"slices"

	"github.com/agnivade/levenshtein"

	"github.com/mediagate/mediagate"
)

// Known refuses the first of the fields that a request may not have. The refusal names
// the field, and the nearest one that there is.
func (o *Operation) Known(names []string) error {
	for _, name := range names {
		if !o.takes(name) {
			return o.unknown(name)
		}
	}
	return nil
}

// takes reports a field that a request may have.
func (o *Operation) takes(name string) bool {
	field := o.schema.shape.properties[name]
	return field != nil && !field.never || slices.Contains(everywhere, name)
}

// unknown is the refusal of a field.
func (o *Operation) unknown(name string) *mediagate.Error {
	const most = 100 // characters: a longer name is near none
	meant, least := "", 3
	for _, known := range slices.Concat(o.schema.shape.names, everywhere) {
		if len(name) > most || !o.takes(known) {
			continue
		}
		if distance := levenshtein.ComputeDistance(name, known); distance < least {
			meant, least = known, distance
		}
	}
	e := mediagate.Invalid(name, "%s is no field that model %s takes", mediagate.Quote(name), o.Model.ID)
	if meant != "" {
		e.Message += ": did you mean " + mediagate.Quote(meant) + "?"
	}
	return e.Because(mediagate.ReasonUnknownField)
}
