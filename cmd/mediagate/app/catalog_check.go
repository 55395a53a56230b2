package app

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/catalog"
	"github.com/mediagate/mediagate/providers/all"
)

// offer is what the catalog offers to clients in one operation, as far as adapters are concerned.
type offer struct {
	fields []string // of the canonical request
	media  string   // class of the results
	routes []mediagate.Route
	where  func(route int) string // names file and key of a route
}

// offers returns the offers of a catalog, without aliases, which would only repeat them.
func offers(c *catalog.Catalog) []offer {
	var list []offer
	for _, m := range c.Models() {
		if m.ID != m.Canonical {
			continue
		}
		for _, o := range m.Operations() {
			list = append(list, offer{fields: o.Fields(), media: o.Media(), routes: o.Routes(), where: o.Where})
		}
	}
	return list
}

// checkOffers compares the catalog's offers with what adapters support, and lists the differences
// with file and key: an unknown provider or operation, results of another class, or a field that
// clients may send and no route takes.
func checkOffers(offers []offer, vendors all.Vendors) []string {
	var problems []string
	for _, o := range offers {
		taken := map[string]bool{}
		known := len(o.routes) > 0 // all routes are known, and so are the fields that they take
		for i, r := range o.routes {
			wrong := func(key, format string, args ...any) {
				problems = append(problems, o.where(i)+"."+key+": "+fmt.Sprintf(format, args...))
			}
			a, ok := vendors.Adapter(r.Provider)
			if !ok {
				known = false
				wrong("provider", "%q is unknown; known: %s", r.Provider, strings.Join(vendors.Names(), ", "))
				continue
			}
			operation, ok := a.Description.Operations[r.Operation]
			if !ok {
				known = false
				wrong("operation", "%s has no %q; it has: %s", r.Provider, r.Operation,
					strings.Join(slices.Sorted(maps.Keys(a.Description.Operations)), ", "))
				continue
			}
			if operation.Media != o.media {
				wrong("operation", "%s of %s makes %s, the model is %s", r.Operation, r.Provider, operation.Media, o.media)
			}
			for _, field := range operation.Fields {
				taken[field] = true
			}
		}
		for _, field := range o.fields {
			if known && !taken[field] {
				problems = append(
					problems, strings.TrimSuffix(o.where(0), "routes[0]")+"schema.properties."+field+": no route takes it",
				)
			}
		}
	}
	return problems
}
