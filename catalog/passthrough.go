package catalog

import (
	"cmp"
	_ "embed"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/goccy/go-yaml"

	"github.com/mediagate/mediagate"
)

//go:embed base.yaml
var baseFile []byte

// Passthrough is a model that no file describes but a channel serves. It has the base contract.
type Passthrough struct {
	ID        string
	Type      mediagate.Type // TypeVideo or TypeImage
	Routes    []mediagate.Route
	OnUnknown string
	Price     string // of a video or an image; empty means free
	Where     string // for messages
}

// WithPassthrough adds models that no file describes. They are in no list, and the API decides
// which keys may use them.
func WithPassthrough(list []Passthrough) Option {
	return func(l *loader) { l.passthrough = list }
}

// Passthrough finds a model that no file describes.
func (c *Catalog) Passthrough(id string) (*Model, bool) {
	m, ok := c.passthroughs[id]
	return m, ok
}

// Passthroughs lists the ids of the models that no file describes, sorted.
func (c *Catalog) Passthroughs() []string { return slices.Sorted(maps.Keys(c.passthroughs)) }

// endpointOf is the endpoint for the base contract by type.
var endpointOf = map[mediagate.Type]string{
	mediagate.TypeVideo: "/v1/videos/generations",
	mediagate.TypeImage: "/v1/images/generations",
}

// compilePassthroughs compiles the models that no file describes.
func (l *loader) compilePassthroughs(c *Catalog) {
	var schema yaml.MapSlice
	if err := yaml.UnmarshalWithOptions(baseFile, &schema, yaml.UseOrderedMap()); err != nil {
		l.report("base.yaml", "%w", err)
		return
	}
	for _, p := range l.passthrough {
		if other, ok := c.models[p.ID]; ok {
			l.report(p.Where, "%s is a model of the catalog, of %s", p.ID, other.operations[0].file)
			continue
		}
		m, problems := l.model(namedFile{modelFile: p.file(schema), name: p.Where}, p.ID)
		for _, problem := range problems {
			l.report(p.Where, "%s", problem)
		}
		m.Category, m.Uncataloged = mediagate.CategoryUnknown, true
		for _, o := range m.operations {
			if p.Type == mediagate.TypeImage {
				o.price.quantity = names{"n"} // counts as 1 if absent
			}
			for i := range o.plan.Routes {
				o.plan.Routes[i].Passthrough = true
			}
		}
		c.passthroughs[p.ID] = m
	}
}

// file returns the model as its file would be.
func (p Passthrough) file(schema yaml.MapSlice) modelFile {
	o := operationFile{
		Endpoint: endpointOf[p.Type], Schema: schema, OnUnknown: p.OnUnknown, Timeout: 2 * time.Hour,
		Price: &priceFile{Unit: mediagate.UnitOperation, Rows: []map[string]any{{"price": cmp.Or(p.Price, "0")}}},
	}
	switch p.Type {
	case mediagate.TypeImage:
		o.Price.Unit, o.Expected, o.MaxBytes = mediagate.UnitImage, 30*time.Second, 64<<20
	default:
		o.Expected, o.MaxBytes, o.Files = 150*time.Second, 2<<30, new(maxPassthroughFiles)
	}
	for _, r := range p.Routes {
		o.Routes = append(o.Routes, routeFile{Provider: r.Provider, Upstream: r.Upstream, Operation: r.Operation})
	}
	return modelFile{
		ID: p.ID, Type: p.Type, Operations: []operationFile{o},
		Description: fmt.Sprintf("A model that is passed on as it is; all that is known of it is that it makes %ss.", p.Type),
	}
}

// maxPassthroughFiles is the maximum of n in base.yaml.
const maxPassthroughFiles = 4
