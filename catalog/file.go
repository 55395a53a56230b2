package catalog

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml"

	"github.com/mediagate/mediagate"
)

// modelFile is a model as it stands in its file. In an overlay every key but
// the id may be missing: what is there replaces the built-in's, key by key.
type modelFile struct {
	ID          string         `yaml:"id"`
	Enabled     *bool          `yaml:"enabled"` // false: the model is switched off
	Aliases     []string       `yaml:"aliases"`
	Type        mediagate.Type `yaml:"type"`
	Category    string         `yaml:"category"`
	Tags        []string       `yaml:"tags"`
	Endpoint    string         `yaml:"endpoint"`
	MaxBody     byteSize       `yaml:"max_body"`
	Schema      yaml.MapSlice  `yaml:"schema"`
	Ignored     []ignoredFile  `yaml:"ignored"`
	Checks      []namedFile    `yaml:"checks"`
	Rewrites    []namedFile    `yaml:"rewrites"`
	Routes      []routeFile    `yaml:"routes"`
	Expected    time.Duration  `yaml:"expected"`
	Timeout     time.Duration  `yaml:"timeout"`
	OnUnknown   string         `yaml:"on_unknown"`
	Media       string         `yaml:"media"`
	MaxBytes    byteSize       `yaml:"max_bytes"`
	KeepForever *bool          `yaml:"keep_forever"`
	Price       *priceFile     `yaml:"price"`
}

// ignoredFile names fields that count, and are looked at, only while others
// have certain values.
type ignoredFile struct {
	Fields []string       `yaml:"fields"`
	Unless map[string]any `yaml:"unless"`
}

// namedFile is one check or rewrite: a name of the registry and its
// arguments, as a map of one entry.
type namedFile struct {
	name string
	args []byte
}

// UnmarshalYAML reads `name: {arguments}`.
func (n *namedFile) UnmarshalYAML(b []byte) error {
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
	Provider  string      `yaml:"provider"`
	Upstream  string      `yaml:"upstream"`
	Operation string      `yaml:"operation"`
	Sync      bool        `yaml:"sync"`
	Requires  []namedFile `yaml:"requires"`
	Rewrites  []namedFile `yaml:"rewrites"`
}

type priceFile struct {
	Unit     mediagate.Unit   `yaml:"unit"`
	Quantity string           `yaml:"quantity"` // the field that counts units; empty: one
	By       []string         `yaml:"by"`
	Rows     []map[string]any `yaml:"rows"`
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
	var f modelFile
	if err := yaml.UnmarshalWithOptions(b, &f, yaml.Strict(), yaml.UseOrderedMap()); err != nil {
		return modelFile{}, fmt.Errorf("%s", strings.TrimSpace(yaml.FormatError(err, false, false)))
	}
	if f.ID == "" {
		return modelFile{}, fmt.Errorf("id is missing")
	}
	return f, nil
}

// overlay replaces the keys of base that over has. Whole keys, not parts of
// them: half of a price table with half of another is nobody's intention.
func overlay(base, over modelFile) modelFile {
	dst, src := reflect.ValueOf(&base).Elem(), reflect.ValueOf(over)
	for i := range src.NumField() {
		if !src.Field(i).IsZero() {
			dst.Field(i).Set(src.Field(i))
		}
	}
	return base
}

func (f modelFile) enabled() bool { return f.Enabled == nil || *f.Enabled }
