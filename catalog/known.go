package catalog

import (
	"slices"

	"github.com/agnivade/levenshtein"

	"github.com/mediagate/mediagate"
)

// RefuseUnknown returns an error for the first of the fields that a request must not have. It
// suggests the most similar field.
func (o *Operation) RefuseUnknown(names []string) error {
	for _, name := range names {
		if !o.hasField(name) {
			return o.errUnknownField(name)
		}
	}
	return nil
}

// hasField reports whether a request may have the field.
func (o *Operation) hasField(name string) bool {
	field := o.schema.shape.properties[name]
	return field != nil && !field.never || slices.Contains(everywhere, name)
}

// errUnknownField is the refusal of a field.
func (o *Operation) errUnknownField(name string) *mediagate.Error {
	const most = 100 // characters; a longer name is similar to none
	meant, least := "", 3
	for _, known := range slices.Concat(o.schema.shape.names, everywhere) {
		if len(name) > most || !o.hasField(known) {
			continue
		}
		if distance := levenshtein.ComputeDistance(name, known); distance < least {
			meant, least = known, distance
		}
	}
	e := mediagate.Invalid(name, "%s is not a field of model %s", mediagate.Quote(name), o.Model.ID)
	if meant != "" {
		e.Message += ": did you mean " + mediagate.Quote(meant) + "?"
	}
	return e.Because(mediagate.ReasonUnknownField)
}
