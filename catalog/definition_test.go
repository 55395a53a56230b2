package catalog_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mediagate/mediagate/catalog"
)

// TestDefinitionsAsNeeded: a schema has the shared definitions that it uses,
// and those that they use, and no other.
func TestDefinitionsAsNeeded(t *testing.T) {
	t.Parallel()
	for id, want := range map[string][]string{
		"alpha-v3":          {"element", "mediaURL"},
		"alpha-video-o1":    {"element", "mediaURL"},
		"beta-q3":           {"mediaURL"},
		"beta-q3-mix":       {"mediaURL"},
		"delta-02":          {"frame", "mediaURL"},
		"delta-2.3":         {"frame", "mediaURL"},
		"delta-H3":          {"mediaURL"},
		"zeta-2-ext":        {"mediaItem", "mediaURL"},
		"theta-image-turbo": nil,
	} {
		schema := string(operation(t, id).Schema())
		defs, _ := parse(t, schema)["$defs"].(map[string]any)
		if diff := cmp.Diff(want, slices.Sorted(maps.Keys(defs))); diff != "" {
			t.Errorf("%s: %s", id, diff)
		}
		if strings.Count(schema, `"$ref"`) != strings.Count(schema, `"$ref":"#/$defs/`) {
			t.Errorf("%s refers to something outside: %s", id, schema)
		}
	}
}

// TestOwnDefinitions: a file's own stand beside the shared ones, and may refer
// to them.
func TestOwnDefinitions(t *testing.T) {
	t.Parallel()
	text := strings.Replace(whole, "      required: [prompt]\n", `        seen: {type: array, items: {$ref: "#/$defs/sight"}}
      required: [prompt]
      $defs:
        sight: {type: object, properties: {at: {$ref: "#/$defs/mediaURL"}}}
`, 1)
	c, err := catalog.Load(dir(t, map[string]string{"omega.yaml": text}))
	if err != nil {
		t.Fatal(err)
	}
	o := operationOf(t, c, "omega")
	_, err = o.Accept(parse(t, body(t, "omega", `"seen":[{"at":"http://10.0.0.1"}]`)))
	refusal(t, err, "seen[0].at")
	defs := parse(t, string(o.Schema()))["$defs"].(map[string]any)
	if diff := cmp.Diff([]string{"mediaURL", "sight"}, slices.Sorted(maps.Keys(defs))); diff != "" {
		t.Error(diff)
	}
}
