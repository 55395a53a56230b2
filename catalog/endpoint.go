package catalog

import (
	"slices"
	"strings"

	"github.com/mediagate/mediagate"
)

// Endpoint is a path that takes submits, and how it finds the model.
type Endpoint struct {
	Path string
	// Model is the default for a body that names none. Without a default the body must name one.
	Model string
	// Fixed is set if the path alone determines the model, and the body's model is ignored.
	Fixed bool
	// AnyCase is set if the letter case of the name does not matter.
	AnyCase bool
}

// endpoints is the table of endpoints. Each submit goes to one of these paths, and each operation
// of a model file belongs to one of them.
var endpoints = []Endpoint{
	{Path: "/v1/videos/generations"},
	{Path: "/v1/images/generations"},
	{Path: "/v1/audio/speech"},

	{Path: "/v1/music/generations", AnyCase: true},
	{Path: "/v1/music/generations/remaster", Model: "music-a", AnyCase: true},
	{Path: "/v1/music/generations/stemsAll", Model: "music-a", AnyCase: true},
	{Path: "/v1/music/generations/createVoice", Model: "music-a", AnyCase: true},
	{Path: "/v1/music/generations/replaceMusic", Model: "music-a", AnyCase: true},
	{Path: "/v1/music/generations/sample", Model: "music-a", AnyCase: true},
	{Path: "/v1/music/generations/stemsMusicB", AnyCase: true},
	{Path: "/v1/music/generations/replaceMusicB", AnyCase: true},

	{Path: "/v1/artgen/generations", Model: "art", Fixed: true},
	{Path: "/v1/artgen/generations/imagine", Model: "art", Fixed: true},
	{Path: "/v1/artgen/generations/upscale", Model: "art", Fixed: true},
	{Path: "/v1/artgen/generations/variation", Model: "art", Fixed: true},
	{Path: "/v1/artgen/generations/high-variation", Model: "art", Fixed: true},
	{Path: "/v1/artgen/generations/low-variation", Model: "art", Fixed: true},
	{Path: "/v1/artgen/generations/inpaint", Model: "art", Fixed: true},
	{Path: "/v1/artgen/generations/reroll", Model: "art", Fixed: true},
	{Path: "/v1/artgen/generations/pan", Model: "art", Fixed: true},
	{Path: "/v1/artgen/generations/zoom", Model: "art", Fixed: true},
	{Path: "/v1/artgen/generations/describe", Model: "art", Fixed: true},
	{Path: "/v1/artgen/generations/blend", Model: "art", Fixed: true},
	{Path: ModalEndpoint, Model: "art", Fixed: true},
}

// ModalEndpoint is the endpoint whose requests make no task, but continue one that waits for
// them.
const ModalEndpoint = "/v1/artgen/generations/modal"

// Endpoints lists the paths that take submits, even those that no model serves at present.
func Endpoints() []Endpoint { return slices.Clone(endpoints) }

func endpointAt(rows []Endpoint, path string) (Endpoint, bool) {
	i := slices.IndexFunc(rows, func(e Endpoint) bool { return e.Path == path })
	if i < 0 {
		return Endpoint{}, false
	}
	return rows[i], true
}

// Find returns the operation that a submit to the endpoint asks for. Its
// errors are of KindInvalid and name the field.
func (c *Catalog) Find(endpoint string, body map[string]any) (*Operation, error) {
	row, ok := endpointAt(c.endpoints, endpoint)
	if !ok {
		return nil, mediagate.Invalid("endpoint", "unknown endpoint %s", mediagate.Quote(endpoint))
	}
	name, err := row.modelName(body)
	if err != nil {
		return nil, err
	}
	m, ok := c.models[name]
	if !ok && row.AnyCase {
		m, ok = c.folded[strings.ToLower(name)]
	}
	if !ok {
		m, ok = c.passthroughs[name]
	}
	if !ok {
		return nil, UnknownModel(name)
	}
	if o, ok := m.Operation(endpoint); ok {
		return o, nil
	}
	var paths []string
	for _, o := range m.operations {
		paths = append(paths, o.Endpoint)
	}
	return nil, mediagate.Invalid(
		"model", "model %s is not served at %s, but at %s", mediagate.Quote(name), endpoint, list(paths, "and"),
	)
}

// UnknownModel is the refusal of a model that does not exist, or that the caller may not know.
func UnknownModel(name string) error {
	return mediagate.Invalid("model", "unknown model %s", mediagate.Quote(name)).Because(mediagate.ReasonUnknownModel)
}

// modelName returns the model that the body or the path names.
func (e Endpoint) modelName(body map[string]any) (string, error) {
	if e.Fixed {
		return e.Model, nil
	}
	value := body["model"]
	name, isText := value.(string)
	switch {
	case value == nil, isText && strings.TrimSpace(name) == "":
		if e.Model != "" {
			return e.Model, nil
		}
		return "", mediagate.Invalid("model", "model is required").Because(mediagate.ReasonRequired)
	case !isText:
		return "", mediagate.Invalid("model", "model must be a string").Because(mediagate.ReasonWrongType)
	default:
		return name, nil
	}
}

// exact reports whether a body must name the model, in its exact letter case.
func (e Endpoint) exact() bool { return e.Model == "" && !e.AnyCase }
