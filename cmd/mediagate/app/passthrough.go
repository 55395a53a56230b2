package app

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/catalog"
	"github.com/mediagate/mediagate/providers"
	"github.com/mediagate/mediagate/providers/all"
)

// passedType returns the type for an operation in the setting.
func passedType(operation string) (mediagate.Type, bool) {
	switch operation {
	case mediagate.OperationVideo:
		return mediagate.TypeVideo, true
	case mediagate.OperationImage:
		return mediagate.TypeImage, true
	default:
		return "", false
	}
}

// baseOperation returns the provider's operation that takes requests of the base contract.
func baseOperation(
	vendors all.Vendors, provider string, t mediagate.Type,
) (name string, o providers.Operation, ok bool) {
	facts, _ := t.Facts()
	adapter, _ := vendors.Adapter(provider)
	operations := adapter.Description.Operations
	for _, name := range slices.Sorted(maps.Keys(operations)) {
		if o := operations[name]; o.Base && o.Media == facts.Media {
			return name, o, true
		}
	}
	return "", providers.Operation{}, false
}

// passthrough lists the uncataloged models that channels name, in the channels' order of
// preference. It leaves out models that cannot be served, which Validate reports.
func passthrough(vendors all.Vendors, channels []Channel) []catalog.Passthrough {
	byPriority := slices.Clone(channels)
	slices.SortStableFunc(byPriority, func(a, b Channel) int { return cmp.Compare(a.Priority, b.Priority) })
	found := map[string]*catalog.Passthrough{}
	for _, ch := range byPriority {
		for _, id := range slices.Sorted(maps.Keys(ch.Passthrough)) {
			setting := ch.Passthrough[id]
			kind, known := passedType(setting.Operation)
			operation, about, ok := baseOperation(vendors, ch.Provider, kind)
			if !known || !ok {
				continue
			}
			p := found[id]
			if p == nil {
				p = &catalog.Passthrough{
					ID: id, Type: kind, Price: setting.Price, OnUnknown: mediagate.OnUnknownPark,
					Where: fmt.Sprintf("channel %s: %s", ch.Name, below("passthrough", id)),
				}
				found[id] = p
			}
			// A synchronous vendor's lost answer was the result, and cannot be looked up. A
			// vendor's file may also ask for failure.
			if about.Sync || about.FailUnknown {
				p.OnUnknown = mediagate.OnUnknownFail
			}
			route := mediagate.Route{Provider: ch.Provider, Upstream: setting.Upstream, Operation: operation}
			if !slices.Contains(p.Routes, route) {
				p.Routes = append(p.Routes, route)
			}
		}
	}
	var list []catalog.Passthrough
	for _, id := range slices.Sorted(maps.Keys(found)) {
		list = append(list, *found[id])
	}
	return list
}

// passthrough validates the uncataloged models that channels name. A model has one operation and
// one price, whichever channel serves it.
func (v *validator) passthrough(vendors all.Vendors, channels []Channel) {
	first := map[string]Passed{}
	for i, ch := range channels {
		for _, id := range slices.Sorted(maps.Keys(ch.Passthrough)) {
			setting, path := ch.Passthrough[id], below(fmt.Sprintf("channels[%d].passthrough", i), id)
			v.check(
				id != "" && strings.TrimSpace(id) == id && !strings.Contains(id, "*"), path,
				"is not a model id: it must have no blanks around it, and no *",
			)
			v.check(setting.Upstream != "", path+".upstream", "must not be empty")
			kind, known := passedType(setting.Operation)
			v.check(known, path+".operation", "must be %s or %s", mediagate.OperationVideo, mediagate.OperationImage)
			if _, ok := vendors.Adapter(ch.Provider); known && ok {
				_, _, ok := baseOperation(vendors, ch.Provider, kind)
				v.check(ok, path+".operation", "%s has no %s for models of no catalog", ch.Provider, setting.Operation)
			}
			if setting.Price != "" {
				amount, err := mediagate.ParseMicros(setting.Price)
				v.check(err == nil && amount >= 0, path+".price", "%q is no price: write a decimal such as \"0.25\"", setting.Price)
			}
			if other, twice := first[id]; twice {
				v.check(other.Operation == setting.Operation, path+".operation", "is %s on another channel", other.Operation)
				v.check(other.Price == setting.Price, path+".price", "is %q on another channel", other.Price)
			} else {
				first[id] = setting
			}
		}
	}
}
