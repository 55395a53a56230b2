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

// modelFile is a model as it stands in its file. In an overlay every key but
// the id may be missing: what is there replaces the built-in's, key by key.
type modelFile struct {
	ID          string          `yaml:"id"`
	Enabled     *bool           `yaml:"enabled"` // false: the model is switched off
	Aliases     []string        `yaml:"aliases"`
	Type        mediagate.Type  `yaml:"type"`
	Tags        []string        `yaml:"tags"`
	Description string          `yaml:"description"`
	Created     string          `yaml:"created"` // a date; firstDate if not given
	Ends        placed          `yaml:"ends"`    // a date: the last day on which the vendor serves it
	Replacement placed          `yaml:"replacement"`
	Operations  []operationFile `yaml:"operations"`
}

// operationFile is what clients can ask of a model at one endpoint. In an
// overlay the one with the same endpoint is meant, and every other key may be
// missing.
type operationFile struct {
	Endpoint      string        `yaml:"endpoint"`
	Enabled       *bool         `yaml:"enabled"` // false: the operation is switched off
	MaxBody       byteSize      `yaml:"max_body"`
	SchemaVersion string        `yaml:"schema_version"` // the date of its last change; firstDate if not given
	Action        string        `yaml:"action"`         // its word on the art endpoint
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
	Files         *int          `yaml:"files"` // that it makes at most, and that other tasks can take; as many as are charged if not given
}

// ignoredFile names fields that do not count, and are not looked at, unless
// others have certain values, or while one of others is given.
type ignoredFile struct {
	Fields []string       `yaml:"fields"`
	Unless map[string]any `yaml:"unless"`
	With   []string       `yaml:"with"`
}

// foldFile names a list of messages, and the fields that take the parts of
// their content, by the type of the part.
type foldFile struct {
	From string            `yaml:"from"`
	Into map[string]string `yaml:"into"`
}

// checkFile is one check: a name of the registry and its arguments, as a map
// of one entry.
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
	// Makes is what the route makes whatever the request says of it: it stands in
	// for routes that can do as asked, at the price of what it makes.
	Makes map[string]any `yaml:"makes"`
}

type priceFile struct {
	Unit     mediagate.Unit   `yaml:"unit"`
	Quantity names            `yaml:"quantity"` // what counts units: fields that are multiplied, or one whose characters count; none: one
	By       []string         `yaml:"by"`
	Zero     int64            `yaml:"zero"` // what a quantity of zero counts, where zero is no number of units; 0: nothing
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

// byteSize is a number of bytes, written as one or as "512MiB".
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

// decodeModel reads one file strictly: an unknown key is an error, since a
// misspelt rule would otherwise be no rule.
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

// checkPlaces finds keys of an operation that stand beside the model's, as
// they did when a model had one endpoint.
func checkPlaces(b []byte) error {
	var entries yaml.MapSlice
	if yaml.UnmarshalWithOptions(b, &entries, yaml.UseOrderedMap()) != nil {
		return nil // decodeModel has better words for it
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
	return fmt.Errorf("%s: of an operation, not of the model: move to operations, a list with an entry for each endpoint (docs/adding-a-model.md)",
		list(misplaced, "and"))
}

func keysOf(t reflect.Type) []string {
	keys := make([]string, t.NumField())
	for i := range keys {
		keys[i] = t.Field(i).Tag.Get("yaml")
	}
	return keys
}

// overlayModel replaces the keys of base that over has. Operations are told
// apart by their endpoints; of one that both have, over replaces the keys that
// it has; one that base lacks is added.
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

// overlay replaces the keys of base that over has. Whole keys, not parts of
// them: half of a price table with half of another is nobody's intention.
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
