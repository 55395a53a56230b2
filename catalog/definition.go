package catalog

import (
	_ "embed"
	"fmt"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
)

//go:embed definitions.yaml
var definitionsFile []byte

// definitions returns the definitions that schemas share.
func definitions() (yaml.MapSlice, error) {
	var defs yaml.MapSlice
	if err := yaml.UnmarshalWithOptions(definitionsFile, &defs, yaml.UseOrderedMap()); err != nil {
		return nil, fmt.Errorf("definitions.yaml: %w", err)
	}
	return defs, nil
}

const defsPrefix = "#/$defs/"

// withShared adds the shared definitions that a schema refers to, directly or through other
// definitions, so that it is self-contained.
func withShared(own, shared yaml.MapSlice) (yaml.MapSlice, error) {
	var defs yaml.MapSlice
	if i := indexOf(own, "$defs"); i >= 0 {
		var ok bool
		if defs, ok = own[i].Value.(yaml.MapSlice); !ok {
			return nil, fmt.Errorf("schema: $defs must be a map")
		}
		own = slices.Delete(slices.Clone(own), i, i+1)
	}
	for _, entry := range defs {
		if name := fmt.Sprint(entry.Key); indexOf(shared, name) >= 0 {
			return nil, fmt.Errorf("schema: $defs: every schema has %s, leave it out", name)
		}
	}
	wanted := map[string]bool{}
	referred(own, wanted)
	referred(defs, wanted)
	for before := -1; len(wanted) != before; { // definitions refer to others
		before = len(wanted)
		for _, entry := range shared {
			if wanted[fmt.Sprint(entry.Key)] {
				referred(entry.Value, wanted)
			}
		}
	}
	defs = slices.Clone(defs)
	for _, entry := range shared {
		if wanted[fmt.Sprint(entry.Key)] {
			defs = append(defs, entry)
		}
	}
	if len(defs) > 0 {
		own = append(slices.Clone(own), yaml.MapItem{Key: "$defs", Value: defs})
	}
	return own, nil
}

// referred collects the names of the definitions that a part refers to.
func referred(v any, names map[string]bool) {
	switch v := v.(type) {
	case yaml.MapSlice:
		for _, entry := range v {
			if name, ok := strings.CutPrefix(fmt.Sprint(entry.Value), defsPrefix); ok && fmt.Sprint(entry.Key) == "$ref" {
				names[name] = true
			}
			referred(entry.Value, names)
		}
	case []any:
		for _, item := range v {
			referred(item, names)
		}
	}
}

// indexOf returns the index of a key, or -1.
func indexOf(node yaml.MapSlice, key string) int {
	return slices.IndexFunc(node, func(e yaml.MapItem) bool { return fmt.Sprint(e.Key) == key })
}
