package catalog

import (
	"cmp"
	"maps"
	"slices"
)

// FieldMask says which parts of a body to keep while parsing. A parser that drops the rest needs
// little memory, whatever a client sends. A nil FieldMask keeps nothing.
type FieldMask struct {
	Whole  bool                  // keeps the whole value
	Fields map[string]*FieldMask // masks of an object's fields
	Item   *FieldMask            // mask of a list's items
	Items  int                   // how many items of a list to keep; 0 for all
}

// Field returns the mask of an object's field, or nil if it is not kept.
func (o *FieldMask) Field(name string) *FieldMask {
	if o == nil || o.Whole {
		return o
	}
	return o.Fields[name]
}

// At returns the mask of a list's item, or nil if it is not kept.
func (o *FieldMask) At(i int) *FieldMask {
	if o == nil || o.Whole {
		return o
	}
	if o.Items > 0 && i >= o.Items {
		return nil
	}
	return o.Item
}

// FieldMask returns the mask of everything that Find and Accept read in the bodies of the
// endpoint's operations, or of all operations if endpoint is empty.
func (c *Catalog) FieldMask(endpoint string) *FieldMask {
	all := &FieldMask{Fields: map[string]*FieldMask{"model": {}}}
	for _, m := range append(c.Models(), slices.Collect(maps.Values(c.passthroughs))...) {
		for _, o := range m.operations {
			if endpoint == "" || o.Endpoint == endpoint {
				all = all.with(o.schema.shape.fieldMask())
			}
		}
	}
	return all
}

// fieldMask returns the mask of what copyKnown copies. A value that no branch of the schema knows
// as an object or a list is not kept in detail.
func (s *shape) fieldMask() *FieldMask {
	o := &FieldMask{
		Whole: s.properties == nil && s.mayBe("object") || s.items == nil && s.mayBe("array"),
	}
	if s.properties != nil {
		o.Fields = make(map[string]*FieldMask, len(s.properties))
		for name, field := range s.properties {
			o.Fields[name] = field.fieldMask()
		}
	}
	if s.items != nil {
		o.Item = s.items.fieldMask()
		switch {
		case s.first > 0:
			o.Items = s.first
		case s.maxItems > 0:
			o.Items = int(s.maxItems) + 1 // one more, to see that there are too many
		}
	}
	return o
}

// mayBe reports whether a value of this type could be accepted.
func (s *shape) mayBe(kind string) bool {
	return !s.never && len(s.kinds) == 0 && s.constant == nil && s.enum == nil || slices.Contains(s.kinds, kind)
}

// with returns a mask that keeps what either mask keeps.
func (o *FieldMask) with(other *FieldMask) *FieldMask {
	if o == nil || other == nil {
		return cmp.Or(o, other)
	}
	sum := &FieldMask{Whole: o.Whole || other.Whole, Item: o.Item.with(other.Item)}
	switch {
	case o.Item == nil:
		sum.Items = other.Items
	case other.Item == nil:
		sum.Items = o.Items
	case o.Items > 0 && other.Items > 0:
		sum.Items = max(o.Items, other.Items)
	}
	for _, fields := range []map[string]*FieldMask{o.Fields, other.Fields} {
		for name, field := range fields {
			if sum.Fields == nil {
				sum.Fields = map[string]*FieldMask{}
			}
			sum.Fields[name] = sum.Fields[name].with(field)
		}
	}
	return sum
}
