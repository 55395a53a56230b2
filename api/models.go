package api

import (
	"sync"

	"github.com/mediagate/mediagate/catalog"
)

// models is what clients can ask for: a catalog, the routes to vendors that go
// with it, and all that follows from the two. It never changes; a new catalog
// makes a new one, and a call uses one from its beginning to its end.
type models struct {
	catalog   *catalog.Catalog
	routes    Routes
	endpoints map[string]bool             // that take submits
	outlines  map[string]*catalog.Outline // of their bodies, and of the quote's
	bounds    map[string]int64            // of the same
	list      []listed                    // by id

	document func() (*published, error) // their OpenAPI document, made when it is first asked for
}

// newModels prepares a catalog.
func (s *Server) newModels(c *catalog.Catalog, routes Routes) (*models, error) {
	m := &models{
		catalog: c, routes: routes,
		endpoints: map[string]bool{}, outlines: map[string]*catalog.Outline{}, bounds: map[string]int64{},
	}
	for _, endpoint := range c.Endpoints() {
		m.endpoints[endpoint.Path] = true
		m.outlines[endpoint.Path] = c.Outline(endpoint.Path)
		m.bounds[endpoint.Path] = largestBody(c, endpoint.Path)
	}
	m.outlines[quotePath] = c.Outline("")
	m.outlines[quotePath].Fields["endpoint"] = &catalog.Outline{}
	m.bounds[quotePath] = largestBody(c, "") + endpointRoom
	m.document = sync.OnceValues(func() (*published, error) { return s.publishedDocument(c) })
	var err error
	m.list, err = listModels(c)
	return m, err
}

// Replace puts a new catalog in the place of the present one, and with it the
// routes that ask the adapters for its models. Calls under way go on with what
// they began with.
func (s *Server) Replace(c *catalog.Catalog, routes Routes) error {
	m, err := s.newModels(c, routes)
	if err != nil {
		return err
	}
	s.models.Store(m)
	return nil
}

// endpointRoom is enough for what the body of a quote has beside the submit's:
// its endpoint.
const endpointRoom = 256

// largestBody is that of the models of an endpoint, without one of all models.
func largestBody(c *catalog.Catalog, endpoint string) int64 {
	var most int64
	for _, m := range c.Models() {
		for _, o := range m.Operations() {
			if endpoint == "" || o.Endpoint == endpoint {
				most = max(most, o.MaxBody)
			}
		}
	}
	if most == 0 {
		most = bodyLimit
	}
	return most
}

// canonical is the model's id where the name is an alias of it. One that is
// switched off by now has the name that it had.
func (m *models) canonical(name string) string {
	if known, ok := m.catalog.Model(name); ok {
		return known.Canonical
	}
	return name
}
