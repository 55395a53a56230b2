package catalog

import (
	"errors"
	"os"
	"slices"

	"github.com/goccy/go-yaml"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"

	"github.com/mediagate/mediagate/internal/outbound"
)

// WithEndpoints replaces the table of endpoints.
func WithEndpoints(rows ...Endpoint) Option {
	return func(l *loader) { l.endpoints = rows }
}

// LoadAlone reads the files of a folder as Load does, without the built-in models, which take
// nearly all of its time.
func LoadAlone(dir string, options ...Option) (*Catalog, error) {
	l := &loader{compiler: compiler{endpoints: endpoints, check: outbound.Rules{}.CheckMediaURL}}
	for _, option := range options {
		option(l)
	}
	var err error
	if l.shared, err = definitions(); err != nil {
		return nil, err
	}
	c := l.compile(l.read(os.DirFS(dir)))
	return c, errors.Join(l.problems...)
}

// SchemaDocument is the schema with the order of its keys. It is not to be
// changed.
func (o *Operation) SchemaDocument() yaml.MapSlice { return o.schema.doc }

// WithSchema is the operation with another schema.
func (o *Operation) WithSchema(doc yaml.MapSlice) (*Operation, error) {
	s := &schema{doc: doc}
	var err error
	if s.served, err = appendJSON(nil, doc); err != nil {
		return nil, err
	}
	if s.compile, err = compilerOf(s.served, outbound.Rules{}.CheckMediaURL); err != nil {
		return nil, err
	}
	if s.validator, err = s.compile(""); err != nil {
		return nil, err
	}
	if s.shape, err = shapeOf(doc); err != nil {
		return nil, err
	}
	other := *o
	other.schema = s
	return &other, nil
}

// SourceRule says how requests name an earlier result. It is nil if they name none.
func (o *Operation) SourceRule() *SourceRule { return o.source }

// Checks are the names of the operation's checks.
func (o *Operation) Checks() []string {
	names := make([]string, len(o.checks))
	for i, check := range o.checks {
		names[i] = check.name
	}
	return names
}

// WithoutCheck is the operation without one of its checks.
func (o *Operation) WithoutCheck(i int) *Operation {
	other := *o
	other.checks = slices.Delete(slices.Clone(o.checks), i, i+1)
	return &other
}

// IgnoredRules is how many rules say that fields do not count.
func (o *Operation) IgnoredRules() int { return len(o.ignored) }

// WithoutIgnored is the operation without one of these rules.
func (o *Operation) WithoutIgnored(i int) *Operation {
	other := *o
	other.ignored = slices.Delete(slices.Clone(o.ignored), i, i+1)
	return &other
}

// RefusedBy names what refuses a body beyond the keywords of its schema: the
// formats that it breaks, if it breaks nothing else, or else the fold or the
// named check. It is empty where keywords refuse the body, or nothing does.
func (o *Operation) RefusedBy(body map[string]any) []string {
	given, _ := o.withoutAbsent(body)
	params, _ := o.schema.shape.copyKnown(given).(map[string]any)
	if verdict := (*jsonschema.ValidationError)(nil); errors.As(o.schema.validator.Validate(params), &verdict) {
		return formatsOf(verdict)
	}
	judge := *o
	judge.price = priceList{table: table{rows: map[string]string{"": "0"}}} // a check may guard the prices
	judge.checks = nil
	if _, err := judge.Accept(body); err != nil {
		return []string{"fold"}
	}
	for _, check := range o.checks {
		judge.checks = []namedCheck{check}
		if _, err := judge.Accept(body); err != nil {
			return []string{check.name}
		}
	}
	return nil
}

// formatsOf are the formats of a verdict that has nothing else.
func formatsOf(verdict *jsonschema.ValidationError) []string {
	if len(verdict.Causes) == 0 {
		if k, ok := verdict.ErrorKind.(*kind.Format); ok {
			return []string{"format " + k.Want}
		}
		return nil
	}
	var all []string
	for _, cause := range verdict.Causes {
		formats := formatsOf(cause)
		if formats == nil {
			return nil
		}
		all = append(all, formats...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// Texts are the fields of a request, and of objects in it, that take an empty text.
func (o *Operation) Texts() []string {
	var names []string
	for _, name := range o.schema.shape.names {
		field := o.schema.shape.properties[name]
		if field.isAbsent("") {
			names = append(names, name)
		}
		for _, inner := range field.names {
			if !field.is("array") && field.properties[inner].isAbsent("") {
				names = append(names, name+"."+inner)
			}
		}
	}
	return names
}
