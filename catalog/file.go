package catalog

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"

	"github.com/mediagate/mediagate"
)

// modelFile is a model file. In an overlay all keys but the id may be missing. Those that are
// present replace the built-in ones, key by key.
type modelFile struct {
	ID          string          `yaml:"id"`
	Enabled     *bool           `yaml:"enabled"` // false: the model is switched off
	Aliases     []string        `yaml:"aliases"`
	Type        mediagate.Type  `yaml:"type"`
	Tags        []string        `yaml:"tags"`
	Description string          `yaml:"description"`
	Created     string          `yaml:"created"` // a date; the default is firstDate
	Ends        placed          `yaml:"ends"`    // a date: the last day on which the vendor serves the model
	Replacement placed          `yaml:"replacement"`
	Operations  []operationFile `yaml:"operations"`
}

// operationFile is an operation in a model file. In an overlay its endpoint says which operation
// is meant, and all other keys may be missing.
type operationFile struct {
	Endpoint      string        `yaml:"endpoint"`
	Enabled       *bool         `yaml:"enabled"` // false: the operation is switched off
	MaxBody       byteSize      `yaml:"max_body"`
	SchemaVersion string        `yaml:"schema_version"` // the date of the last change; the default is firstDate
	Action        string        `yaml:"action"`         // the action of an art operation
	Schema        yaml.MapSlice `yaml:"schema"`
	Infer         []inferFile   `yaml:"infer"`
	Ignored       []ignoredFile `yaml:"ignored"`
	Fold          *foldFile     `yaml:"fold"`
	Source        *SourceRule   `yaml:"source"`
	Checks        []checkFile   `yaml:"checks"`
	Price         *priceFile    `yaml:"price"`
	OpenAI        *openAIFile   `yaml:"openai"`
	Routes        []routeFile   `yaml:"routes"`
	Expected      time.Duration `yaml:"expected"`
	Timeout       time.Duration `yaml:"timeout"`
	OnUnknown     string        `yaml:"on_unknown"`
	Media         string        `yaml:"media"`
	MaxBytes      byteSize      `yaml:"max_bytes"`
	KeepForever   *bool         `yaml:"keep_forever"`
	Files         *int          `yaml:"files"` // the most result files that other tasks can take; the default is as many as are charged
}

// ignoredFile names fields that are ignored and not validated, if a field in Unless has another
// value than the one given there, or if a field in With is present.
type ignoredFile struct {
	Fields []string       `yaml:"fields"`
	Unless map[string]any `yaml:"unless"`
	With   []string       `yaml:"with"`
}

// foldFile names a list of messages, and the fields for the parts of their content, by type of
// part.
type foldFile struct {
	From string            `yaml:"from"`
	Into map[string]string `yaml:"into"`
}

// checkFile is a named check with its arguments, as a map with one entry.
type checkFile struct {
	name string
	args []byte
}

// UnmarshalYAML reads `name: {arguments}`.
func (n *checkFile) UnmarshalYAML(b []byte) error {
	var entries map[string]yaml.RawMessage
	if err := yaml.Unmarshal(b, &entries); err != nil {
		return err
	}
	if len(entries) != 1 {
		return fmt.Errorf("a check is one name with its arguments, found %d", len(entries))
	}
	for name, args := range entries {
		n.name, n.args = name, args
	}
	return nil
}

type routeFile struct {
	Provider  string `yaml:"provider"`
	Upstream  string `yaml:"upstream"`
	Operation string `yaml:"operation"` // of the provider's adapter
	// Makes are the values that the route always makes, whatever the request says. If that is not
	// what the request asks for, the route is used only if no other route is left, at the price of
	// what it makes.
	Makes map[string]any `yaml:"makes"`
}

type priceFile struct {
	Unit     mediagate.Unit   `yaml:"unit"`
	Quantity names            `yaml:"quantity"` // counts the units: fields that are multiplied, or one whose characters count; empty means 1
	By       []string         `yaml:"by"`
	Zero     int64            `yaml:"zero"` // what a quantity of 0 counts as, if 0 is no number of units; 0 means nothing
	Holds    []Hold           `yaml:"holds"`
	Rows     []map[string]any `yaml:"rows"`
}

// placed is a text with its place in the file, as messages begin with it: "[4:7] ".
type placed struct{ text, place string }

// UnmarshalYAML reads a scalar.
func (p *placed) UnmarshalYAML(node ast.Node) error {
	at := node.GetToken().Position
	p.place = fmt.Sprintf("[%d:%d] ", at.Line, at.Column)
	switch n := node.(type) {
	case *ast.NullNode:
	case ast.ScalarNode:
		p.text = fmt.Sprint(n.GetValue())
	default:
		return fmt.Errorf("%sa text is needed", p.place)
	}
	return nil
}

// byteSize is a number of bytes, written as a number or as "512MiB".
type byteSize int64

// UnmarshalYAML reads an integer with an optional unit.
func (s *byteSize) UnmarshalYAML(b []byte) error {
	text := strings.Trim(strings.TrimSpace(string(b)), `"'`)
	number, shift := text, 0
	for unit, n := range map[string]int{"KiB": 10, "MiB": 20, "GiB": 30} {
		if before, ok := strings.CutSuffix(text, unit); ok {
			number, shift = strings.TrimSpace(before), n
		}
	}
	n, err := strconv.ParseInt(number, 10, 64)
	if err != nil || n <= 0 || n > 1<<60>>shift {
		return fmt.Errorf("%q is no size: write bytes, or KiB, MiB, GiB", text)
	}
	*s = byteSize(n << shift)
	return nil
}

// decodeModel decodes a file strictly: an unknown key is an error, since a misspelt rule would be
// no rule.
func decodeModel(b []byte) (modelFile, error) {
	if err := checkPlaces(b); err != nil {
		return modelFile{}, err
	}
	var f modelFile
	if err := yaml.UnmarshalWithOptions(b, &f, yaml.Strict(), yaml.UseOrderedMap()); err != nil {
		return modelFile{}, fmt.Errorf("%s", strings.TrimSpace(yaml.FormatError(err, false, false)))
	}
	if f.ID == "" {
		return modelFile{}, fmt.Errorf("id is missing")
	}
	var seen []string
	for i, o := range f.Operations {
		switch {
		case o.Endpoint == "":
			return modelFile{}, fmt.Errorf("operations[%d]: endpoint is missing", i)
		case slices.Contains(seen, o.Endpoint):
			return modelFile{}, fmt.Errorf("operations[%d]: there is one for %s already", i, o.Endpoint)
		}
		seen = append(seen, o.Endpoint)
	}
	return f, nil
}

// checkPlaces reports keys of an operation that stand at the top level of the file, and says where
// they belong.
func checkPlaces(b []byte) error {
	var entries yaml.MapSlice
	if yaml.UnmarshalWithOptions(b, &entries, yaml.UseOrderedMap()) != nil {
		return nil // decodeModel reports it better
	}
	known, own := keysOf(reflect.TypeFor[operationFile]()), keysOf(reflect.TypeFor[modelFile]())
	var misplaced []string
	for _, entry := range entries {
		if key := fmt.Sprint(entry.Key); slices.Contains(known, key) && !slices.Contains(own, key) {
			misplaced = append(misplaced, key)
		}
	}
	if len(misplaced) == 0 {
		return nil
	}
	return fmt.Errorf("%s: of an operation, not of the model: "+
		"move to operations, a list with an entry for each endpoint (docs/adding-a-model.md)",
		list(misplaced, "and"))
}

func keysOf(t reflect.Type) []string {
	keys := make([]string, t.NumField())
	for i := range keys {
		keys[i] = t.Field(i).Tag.Get("yaml")
	}
	return keys
}

// overlayModel replaces the keys of base that over has. It merges operations with the same
// endpoint in the same way, and adds those that base lacks.
func overlayModel(base, over modelFile) modelFile {
	operations := slices.Clone(base.Operations)
	for _, o := range over.Operations {
		i := slices.IndexFunc(operations, func(b operationFile) bool { return b.Endpoint == o.Endpoint })
		if i < 0 {
			operations = append(operations, o)
			continue
		}
		operations[i] = overlay(operations[i], o)
	}
	sum := overlay(base, over)
	sum.Operations = operations
	return sum
}

// overlay replaces the keys of base that over has. It replaces whole keys: half of one price
// table with half of another is never intended.
func overlay[T any](base, over T) T {
	dst, src := reflect.ValueOf(&base).Elem(), reflect.ValueOf(over)
	for i := range src.NumField() {
		if !src.Field(i).IsZero() {
			dst.Field(i).Set(src.Field(i))
		}
	}
	return base
}

func enabled(switched *bool) bool { return switched == nil || *switched }
