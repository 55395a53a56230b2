package catalog

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/mediagate/mediagate"
)

// Model is one model as clients name it. It never changes.
type Model struct {
	ID        string // the alias, for an alias
	Canonical string // the id of the file
	Aliases   []string
	Type      mediagate.Type
	Category  string // as in the model list
	Tags      []string
	Endpoint  string // where it is submitted
	MaxBody   int64  // of a submit, in bytes

	schema    json.RawMessage
	validator *jsonschema.Schema
	shape     *shape
	ignored   []ignoredRule
	checks    []check
	rewrites  []check
	routes    []route
	price     price
	plan      mediagate.Plan // without routes
}

// route is a way to produce the model, what a request must be like for it to
// be possible, and how it is put for this vendor.
type route struct {
	mediagate.Route
	requires []check
	rewrites []check
}

// ignoredRule names fields that are as good as absent unless other fields
// have certain values.
type ignoredRule struct {
	fields []string
	unless map[string]any
}

// price is a table of unit prices.
type price struct {
	unit     mediagate.Unit
	quantity string // field; empty: one
	table    table
}

// Schema is the JSON Schema of the model's requests: the one that Accept
// validates with.
func (m *Model) Schema() json.RawMessage { return slices.Clone(m.schema) }

// Providers are those of the model's routes, each once, in order of
// preference.
func (m *Model) Providers() []string {
	var names []string
	for _, r := range m.routes {
		if !slices.Contains(names, r.Provider) {
			names = append(names, r.Provider)
		}
	}
	return names
}

// categories are the words of the model list, by type.
var categories = map[mediagate.Type]string{
	mediagate.TypeVideo: "video",
	mediagate.TypeImage: "image",
	mediagate.TypeArt:   "image",
	mediagate.TypeMusic: "audio",
}

const (
	defaultMaxBody = 1 << 20
	maxUnitPrice   = 1_000_000 * mediagate.MicrosPerUnit // far above any price: catches slips
)

// compileModel makes a model of a file, under its own id or an alias, and
// lists everything that is wrong with it.
func compileModel(f modelFile, id string, check MediaURLCheck) (*Model, []string) {
	m := &Model{
		ID: id, Canonical: f.ID, Aliases: f.Aliases, Type: f.Type, Category: f.Category, Tags: f.Tags,
		Endpoint: f.Endpoint, MaxBody: int64(f.MaxBody),
		plan: mediagate.Plan{
			Expected: f.Expected, Timeout: f.Timeout, OnUnknown: f.OnUnknown, Media: f.Media,
			MaxBytes: int64(f.MaxBytes), KeepForever: f.KeepForever != nil && *f.KeepForever,
		},
	}
	if m.MaxBody == 0 {
		m.MaxBody = defaultMaxBody
	}
	problems := m.checkHead()

	doc, err := document(id, f.ID, f.Schema)
	if err != nil {
		return m, append(problems, err.Error())
	}
	if m.schema, err = appendJSON(nil, doc); err != nil {
		return m, append(problems, fmt.Sprintf("schema: %v", err))
	}
	if m.validator, err = compileSchema(m.schema, check); err != nil {
		return m, append(problems, fmt.Sprintf("schema: %v", err))
	}
	if m.shape, err = shapeOf(doc); err != nil {
		return m, append(problems, err.Error())
	}

	problems = append(problems, m.compileIgnored(f.Ignored)...)
	var more []string
	m.checks, more = compileChecks(f.Checks, namedChecks(), m.shape)
	problems = append(problems, prefixed("checks: ", more)...)
	m.rewrites, more = compileChecks(f.Rewrites, namedRewrites(), m.shape)
	problems = append(problems, prefixed("rewrites: ", more)...)
	problems = append(problems, m.compileRoutes(f.Routes)...)
	problems = append(problems, prefixed("price: ", m.compilePrice(f.Price))...)
	if m.plan.OnUnknown == "" {
		// A synchronous vendor cannot be asked again, so waiting for a person
		// would only keep the money held; for the rest the job may be found.
		m.plan.OnUnknown = mediagate.OnUnknownPark
		if !slices.ContainsFunc(m.routes, func(r route) bool { return !r.Sync }) {
			m.plan.OnUnknown = mediagate.OnUnknownFail
		}
	}
	return m, problems
}

func (m *Model) checkHead() []string {
	var problems []string
	demand := func(ok bool, problem string) {
		if !ok {
			problems = append(problems, problem)
		}
	}
	demand(strings.TrimSpace(m.ID) == m.ID && m.ID != "", "an id or alias is empty or has blanks around it")
	demand(categories[m.Type] != "", "type must be video, image, music or art")
	demand(m.Category == categories[m.Type], fmt.Sprintf("category of a model of type %q must be %q", m.Type, categories[m.Type]))
	demand(strings.HasPrefix(m.Endpoint, "/v1/"), "endpoint must be a path below /v1/")
	demand(slices.Contains([]string{"video", "image", "audio"}, m.plan.Media), "media must be video, image or audio")
	demand(slices.Contains([]string{"", mediagate.OnUnknownFail, mediagate.OnUnknownPark}, m.plan.OnUnknown), "on_unknown must be fail or park")
	demand(m.plan.Expected > 0 && m.plan.Expected <= 24*time.Hour, "expected must be a duration up to 24h")
	demand(m.plan.Timeout >= m.plan.Expected && m.plan.Timeout <= 7*24*time.Hour, "timeout must be a duration from expected up to 168h")
	demand(m.plan.MaxBytes > 0, "max_bytes is missing")
	return problems
}

func (m *Model) compileIgnored(files []ignoredFile) []string {
	var problems []string
	for i, f := range files {
		rule := ignoredRule{fields: f.Fields, unless: map[string]any{}}
		for _, name := range f.Fields {
			if m.shape.properties[name] == nil {
				problems = append(problems, fmt.Sprintf("ignored: rule %d: %q is no field of the schema", i+1, name))
			}
		}
		if len(f.Unless) == 0 || len(f.Fields) == 0 {
			problems = append(problems, fmt.Sprintf("ignored: rule %d needs fields and unless", i+1))
		}
		for name, v := range f.Unless {
			if values := valuesOf(m.shape.properties[name]); !slices.Contains(values, jsonValue(v)) {
				problems = append(problems, fmt.Sprintf("ignored: rule %d: %s can never be %v", i+1, name, v))
			}
			rule.unless[name] = jsonValue(v)
		}
		m.ignored = append(m.ignored, rule)
	}
	return problems
}

func (m *Model) compileRoutes(files []routeFile) []string {
	var problems []string
	if len(files) == 0 {
		problems = append(problems, "routes: there are none")
	}
	for i, f := range files {
		prefix := fmt.Sprintf("routes[%d]: ", i)
		if f.Provider == "" || f.Upstream == "" || f.Operation == "" {
			problems = append(problems, prefix+"provider, upstream and operation are required")
		}
		r := route{
			Route: mediagate.Route{Provider: f.Provider, Upstream: f.Upstream, Operation: f.Operation, Sync: f.Sync},
		}
		var more []string
		r.requires, more = compileChecks(f.Requires, namedChecks(), m.shape)
		problems = append(problems, prefixed(prefix+"requires: ", more)...)
		r.rewrites, more = compileChecks(f.Rewrites, namedRewrites(), m.shape)
		problems = append(problems, prefixed(prefix+"rewrites: ", more)...)
		m.routes = append(m.routes, r)
	}
	return problems
}

func (m *Model) compilePrice(f *priceFile) []string {
	if f == nil {
		return []string{"is missing"}
	}
	m.price = price{unit: f.Unit, quantity: f.Quantity}
	var problems []string
	if f.Unit != mediagate.UnitSecond && f.Unit != mediagate.UnitImage {
		problems = append(problems, "unit must be second or image")
	}
	if s := m.shape.properties[f.Quantity]; f.Quantity != "" && (s == nil || !countable(s) || (!s.hasFallback && !m.shape.required[f.Quantity])) {
		problems = append(problems, fmt.Sprintf("quantity %q must be an integer field with a default, an upper bound and none below 0", f.Quantity))
	}
	var more []string
	m.price.table, more = compileTable(f.By, f.Rows, "price", m.shape)
	problems = append(problems, more...)
	for key, text := range m.price.table.rows {
		if amount, err := mediagate.ParseMicros(text); err != nil || amount < 0 || amount > maxUnitPrice {
			problems = append(problems, fmt.Sprintf("%q for%s is no price: write a decimal text such as \"0.084\"", text, key))
		}
	}
	return problems
}

// countable reports an integer field that cannot be negative or boundless.
func countable(s *shape) bool {
	if len(s.enum) > 0 {
		return !slices.ContainsFunc(s.enum, func(v any) bool { n, ok := int64Of(v); return !ok || n < 0 || n > 1_000_000 })
	}
	low, okLow := int64Of(s.minimum)
	high, okHigh := int64Of(s.maximum)
	return s.is("integer") && okLow && okHigh && low >= 0 && high <= 1_000_000
}

func prefixed(prefix string, texts []string) []string {
	out := make([]string, len(texts))
	for i, text := range texts {
		out[i] = prefix + text
	}
	return out
}
