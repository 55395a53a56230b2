package api

import (
	"slices"
	"strings"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/billing"
	"github.com/mediagate/mediagate/catalog"
)

// order is a request that the caller may make, at the prices of its group.
type order struct {
	catalog.Request
	model    string // its id, or the alias by which it was named
	kind     mediagate.Type
	pictures []picture // that came within it
	group    string    // on whose terms it is
	capacity int       // of the group
}

// hold is what the order costs at most.
func (o order) hold() mediagate.Micros { return billing.Total(o.Charges) }

// order checks a body in the contract's sequence: model known, model allowed,
// validation, of which the last part is that a vendor can be asked for it.
func (s *Server) order(c *call, body map[string]any, size int, endpoint string) (order, error) {
	operation, err := c.models.catalog.Find(endpoint, body)
	if err != nil {
		return order{}, err
	}
	model := operation.Model
	if model.Uncataloged && !slices.Contains(c.caller.key.Models, model.ID) {
		return order{}, catalog.UnknownModel(model.ID)
	}
	if limit := operation.MaxBody; int64(size) > limit {
		return order{}, errTooLarge(limit)
	}
	rights := s.rightsOf(c)
	if !rights.allow(model.ID, model.Canonical) {
		return order{}, mediagate.Errorf(mediagate.KindForbidden, "this API key may not use model %s", mediagate.Quote(model.ID))
	}
	request, err := operation.Accept(body)
	if err != nil {
		return order{}, err
	}
	// The room is for media: what else a large body brings would be parsed and
	// written anew for each route, and stay in the task's row.
	if operation.MaxBody > bodyLimit && len(request.Params) > bodyLimit {
		return order{}, mediagate.Errorf(mediagate.KindTooLarge, "the body must be at most %d bytes beside the media in it", bodyLimit)
	}
	o := order{Request: request.WithFactor(rights.factor), model: model.ID, kind: model.Type, group: rights.group, capacity: rights.capacity}
	if o.pictures, err = pictures(request.Uploads); err != nil {
		return order{}, err
	}
	if endpoint == catalog.ModalEndpoint {
		o.Params, err = s.resumed(c, request)
		return o, err
	}
	if o.Plan.Source, err = s.source(c, request.Source); err != nil {
		return order{}, err
	}
	turn, err := s.cfg.Limits.Quotes.Acquire(c.ctx, c.tenant(), 1)
	if err != nil {
		return order{}, c.noRoom(s.cfg.Limits.Quotes, "the requests that are judged")
	}
	defer turn.Release()
	if o.Plan, o.Charges, err = s.express(c.ctx, c.models.routes, model.ID, o.Request); err != nil {
		return order{}, err
	}
	return o, nil
}

// rights are what a call may use, and at which prices.
type rights struct {
	group    string
	factor   billing.Factor
	capacity int        // of the group
	lists    [][]string // of patterns: the group's and the key's
}

// rightsOf are those of the caller's key and group. A group that is no setting
// gives none.
func (s *Server) rightsOf(c *call) rights {
	name := c.caller.group()
	g, ok := s.groups[name]
	if !ok {
		return rights{}
	}
	return rights{group: name, factor: g.factor, capacity: g.capacity, lists: [][]string{g.models, c.caller.key.Models}}
}

// allow reports whether a model may be used that has one of the names.
func (r rights) allow(names ...string) bool {
	for _, patterns := range r.lists {
		if !matchesAny(patterns, names...) {
			return false
		}
	}
	return r.lists != nil
}

// matchesAny reports whether one of the patterns matches one of the names; no
// pattern at all matches everything.
func matchesAny(patterns []string, names ...string) bool {
	if len(patterns) == 0 {
		return true
	}
	for _, pattern := range patterns {
		for _, name := range names {
			if matches(pattern, name) {
				return true
			}
		}
	}
	return false
}

// matches reports whether the pattern, in which * stands for any text,
// matches the whole name.
func matches(pattern, name string) bool {
	begin, rest, some := strings.Cut(pattern, "*")
	if !some {
		return pattern == name
	}
	// Clients write patterns, and each call compares all of its key's with all
	// models: what cannot fit is known without a look at its pieces.
	if len(pattern)-strings.Count(pattern, "*") > len(name) {
		return false
	}
	name, ok := strings.CutPrefix(name, begin)
	if !ok {
		return false
	}
	for {
		part, after, more := strings.Cut(strings.TrimLeft(rest, "*"), "*")
		if !more {
			return strings.HasSuffix(name, part)
		}
		_, left, found := strings.Cut(name, part)
		if !found {
			return false
		}
		name, rest = left, after
	}
}
