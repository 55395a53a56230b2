package catalog

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/mediagate/mediagate"
)

// Operation is one model at one endpoint, which is what clients submit to. It is immutable.
type Operation struct {
	Model    *Model
	Endpoint string // the path of its submits
	MaxBody  int64  // for the body of a submit, in bytes

	file    string // for messages
	version string // of the schema
	exact   bool   // the body must name the model's id exactly
	schema  *schema
	inputs  []string // the model's inputs within metadata
	infer   []inferFile
	ignored []ignoredFile
	fold    *fold       // nil for none
	source  *SourceRule // nil for none
	checks  []namedCheck
	price   priceList
	openai  *openAIFile // nil for none
	plan    mediagate.Plan
	makes   []map[string]any // what each route always makes, by route
}

const (
	defaultMaxBody = 1 << 20
	maxFiles       = 100 // far above what any vendor makes
)

// Schema is the JSON Schema that Accept validates requests with. It is self-contained.
func (o *Operation) Schema() json.RawMessage { return slices.Clone(o.schema.served) }

// Routes lists the operation's routes in order of preference.
func (o *Operation) Routes() []mediagate.Route { return slices.Clone(o.plan.Routes) }

// Fields lists the fields that a canonical request may have, in the order of the schema.
func (o *Operation) Fields() []string {
	var names []string
	if o.schema == nil { // the schema was refused
		return nil
	}
	for _, name := range o.schema.shape.names {
		folded := o.fold != nil && name == o.fold.from
		taken := slices.Contains(o.source.sourceFields(), name)
		if !slices.Contains(everywhere, name) && !o.schema.shape.properties[name].never && !folded && !taken {
			names = append(names, name)
		}
	}
	if len(o.inputs) > 0 {
		names = append(names, metadataField)
	}
	return names
}

// Media is the class of the result files.
func (o *Operation) Media() string { return o.plan.Media }

// Where names the file and key of a route, for messages.
func (o *Operation) Where(route int) string {
	return fmt.Sprintf("%s: %s.routes[%d]", o.file, o.key(), route)
}

// operation makes an operation from a file and lists all problems.
func (c compiler) operation(m *Model, f operationFile) (*Operation, []string) {
	facts, _ := m.Type.Facts()
	o := &Operation{
		Model: m, Endpoint: f.Endpoint, MaxBody: int64(f.MaxBody),
		plan: mediagate.Plan{
			Expected: f.Expected, Timeout: f.Timeout, OnUnknown: f.OnUnknown, Media: f.Media,
			Action: f.Action, MaxBytes: int64(f.MaxBytes), KeepForever: f.KeepForever != nil && *f.KeepForever,
			Files: f.Files,
		},
	}
	if o.MaxBody == 0 {
		o.MaxBody = defaultMaxBody
	}
	if o.plan.Media == "" {
		o.plan.Media = facts.Media
	}
	row, problems := c.row(f.Endpoint)
	o.exact = row.exact()
	if day, err := dayOf(f.SchemaVersion); err != nil {
		problems = append(problems, "schema_version "+err.Error())
	} else {
		o.version = day.Format(time.DateOnly)
	}
	problems = append(problems, o.checkLimits()...)
	if (m.Type == mediagate.TypeArt) != (f.Action != "") {
		problems = append(problems, "action must be the word of the operation for art, and nothing for other types")
	}
	problems = append(problems, o.addRoutes(f.Routes)...)

	var err error
	if o.schema, err = newSchema(m, row, f.Schema, c.shared, c.check); err != nil {
		return o, append(problems, err.Error())
	}
	if facts.Operation != "" { // its schema is shown to clients
		problems = append(problems, o.schema.checkAnnotations()...)
	}
	if metadata := o.schema.shape.properties[metadataField]; metadata != nil {
		for _, name := range metadata.names {
			if name != referenceField {
				o.inputs = append(o.inputs, name)
			}
		}
	}
	problems = append(problems, o.addMakes(f.Routes)...)
	var more []string
	o.infer, more = compileInfer(f.Infer, o.schema.shape)
	problems = append(problems, prefixed("infer: ", more)...)
	problems = append(problems, o.addIgnored(f.Ignored)...)
	o.fold, more = compileFold(f.Fold, o.schema.shape)
	problems = append(problems, prefixed("fold: ", more)...)
	o.source = f.Source
	problems = append(problems, prefixed("source: ", o.source.problems(o.schema.shape))...)
	o.checks, more = compileChecks(f.Checks, o.schema.shape, c.checkText)
	problems = append(problems, prefixed("checks: ", more)...)
	o.openai = f.OpenAI
	problems = append(problems, prefixed("openai: ", o.openai.problems(o.schema.shape))...)
	o.price, more = compilePrice(f.Price, o.schema.shape)
	problems = append(problems, prefixed("price: ", more)...)
	for _, name := range o.source.sourceFields() {
		if slices.Contains(o.price.quantity, name) || slices.Contains(o.price.table.by, name) {
			problems = append(problems, fmt.Sprintf("price: %q names a source: no price can depend on it", name))
		}
	}
	for _, rule := range o.ignored {
		for _, name := range rule.Fields {
			if slices.Contains(o.price.quantity, name) || slices.Contains(o.price.table.by, name) {
				problems = append(problems, fmt.Sprintf("price: %q may be ignored: no price can depend on it", name))
			}
		}
	}
	return o, problems
}

// row finds the endpoint in the table.
func (c compiler) row(path string) (Endpoint, []string) {
	row, ok := endpointAt(c.endpoints, path)
	if !ok {
		var paths []string
		for _, e := range c.endpoints {
			paths = append(paths, e.Path)
		}
		return row, []string{"endpoint must be " + list(paths, "or")}
	}
	return row, nil
}

func (o *Operation) checkLimits() []string {
	var problems []string
	demand := func(ok bool, problem string) {
		if !ok {
			problems = append(problems, problem)
		}
	}
	var classes []string
	for _, facts := range mediagate.Types() {
		if !slices.Contains(classes, facts.Media) {
			classes = append(classes, facts.Media)
		}
	}
	demand(o.plan.Media == "" || slices.Contains(classes, o.plan.Media), "media must be "+list(classes, "or"))
	// The file must say it: some vendors can look up the job of a lost call, others cannot.
	demand(
		slices.Contains([]string{mediagate.OnUnknownFail, mediagate.OnUnknownPark}, o.plan.OnUnknown),
		"on_unknown must be fail or park",
	)
	demand(o.plan.Expected > 0 && o.plan.Expected <= 24*time.Hour, "expected must be a duration up to 24h")
	demand(
		o.plan.Timeout >= o.plan.Expected && o.plan.Timeout <= 7*24*time.Hour,
		"timeout must be a duration from expected up to 168h",
	)
	demand(o.plan.MaxBytes > 0, "max_bytes is missing")
	demand(
		o.plan.Files == nil || *o.plan.Files >= 0 && *o.plan.Files <= maxFiles,
		fmt.Sprintf("files must be from 0 to %d", maxFiles),
	)
	return problems
}

func (o *Operation) addRoutes(files []routeFile) []string {
	var problems []string
	if len(files) == 0 {
		problems = append(problems, "routes: there are none")
	}
	for i, f := range files {
		if f.Provider == "" || f.Upstream == "" || f.Operation == "" {
			problems = append(problems, fmt.Sprintf("routes[%d]: provider, upstream and operation are required", i))
		}
		o.plan.Routes = append(
			o.plan.Routes, mediagate.Route{Provider: f.Provider, Upstream: f.Upstream, Operation: f.Operation},
		)
	}
	return problems
}

// addMakes reads what routes always make.
func (o *Operation) addMakes(files []routeFile) []string {
	var problems []string
	for i, f := range files {
		makes := map[string]any{}
		for name, v := range f.Makes {
			makes[name] = jsonValue(v)
			if !slices.Contains(valuesOf(o.schema.shape.properties[name]), makes[name]) {
				problems = append(problems, fmt.Sprintf("routes[%d]: makes: %s can never be %v", i, name, v))
			}
		}
		o.makes = append(o.makes, makes)
	}
	return problems
}

func (o *Operation) addIgnored(files []ignoredFile) []string {
	var problems []string
	fields := o.schema.shape.properties
	for i, f := range files {
		rule := ignoredFile{Fields: f.Fields, Unless: map[string]any{}, With: f.With}
		for _, name := range slices.Concat(f.Fields, f.With) {
			if fields[name] == nil {
				problems = append(problems, fmt.Sprintf("ignored: rule %d: %q is no field of the schema", i+1, name))
			}
		}
		if len(f.Unless) == 0 && len(f.With) == 0 || len(f.Fields) == 0 {
			problems = append(problems, fmt.Sprintf("ignored: rule %d needs fields and unless or with", i+1))
		}
		for name, v := range f.Unless {
			if values := valuesOf(fields[name]); !slices.Contains(values, jsonValue(v)) {
				problems = append(problems, fmt.Sprintf("ignored: rule %d: %s can never be %v", i+1, name, v))
			}
			rule.Unless[name] = jsonValue(v)
		}
		o.ignored = append(o.ignored, rule)
	}
	return problems
}
