package catalog

import (
	"cmp"
	"maps"
	"slices"
)

// Outline says which parts of a body somebody looks at. A reader that keeps
// nothing else needs little memory, whatever a client puts into the rest. A
// nil Outline is that of a part nobody looks into.
type Outline struct {
	Whole  bool                // all that is below
	Fields map[string]*Outline // of an object
	Item   *Outline            // of a list
	Items  int                 // of a list, so many are looked at; 0: all
}

// Field is the outline of an object's field, nil where nobody asks for it.
func (o *Outline) Field(name string) *Outline {
	if o == nil || o.Whole {
		return o
	}
	return o.Fields[name]
}

// At is the outline of a list's item, nil where nobody asks for it.
func (o *Outline) At(i int) *Outline {
	if o == nil || o.Whole {
		return o
	}
	if o.Items > 0 && i >= o.Items {
		return nil
	}
	return o.Item
}

// Outline is all that Find and Accept look at in the bodies of the endpoint's
// operations. No endpoint is all of them.
func (c *Catalog) Outline(endpoint string) *Outline {
	all := &Outline{Fields: map[string]*Outline{"model": {}}}
	for _, m := range append(c.Models(), slices.Collect(maps.Values(c.passed))...) {
		for _, o := range m.operations {
			if endpoint == "" || o.Endpoint == endpoint {
				all = all.with(o.schema.shape.outline())
			}
		}
	}
	return all
}

// outline is what take copies of a value. What no branch of the schema knows
// to be an object or a list is not looked into.
func (s *shape) outline() *Outline {
	o := &Outline{
		Whole: s.properties == nil && s.mayBe("object") || s.items == nil && s.mayBe("array"),
	}
	if s.properties != nil {
		o.Fields = make(map[string]*Outline, len(s.properties))
		for name, field := range s.properties {
			o.Fields[name] = field.outline()
		}
	}
	if s.items != nil {
		o.Item = s.items.outline()
		switch {
		case s.first > 0:
			o.Items = s.first
		case s.maxItems > 0:
			o.Items = int(s.maxItems) + 1 // enough to see that there are too many
		}
	}
	return o
}

// mayBe reports whether a value of that kind could be accepted.
func (s *shape) mayBe(kind string) bool {
	return !s.never && len(s.kinds) == 0 && s.constant == nil && s.enum == nil || slices.Contains(s.kinds, kind)
}

// with is what is in either outline.
func (o *Outline) with(other *Outline) *Outline {
	if o == nil || other == nil {
		return cmp.Or(o, other)
	}
	sum := &Outline{Whole: o.Whole || other.Whole, Item: o.Item.with(other.Item)}
	switch {
	case o.Item == nil:
		sum.Items = other.Items
	case other.Item == nil:
		sum.Items = o.Items
	case o.Items > 0 && other.Items > 0:
		sum.Items = max(o.Items, other.Items)
	}
	for _, fields := range []map[string]*Outline{o.Fields, other.Fields} {
		for name, field := range fields {
			if sum.Fields == nil {
				sum.Fields = map[string]*Outline{}
			}
			sum.Fields[name] = sum.Fields[name].with(field)
		}
	}
	return sum
}
