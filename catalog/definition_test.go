package catalog_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mediagate/mediagate/catalog"
)

// TestOwnDefinitions checks that a file's own definitions exist next to the shared ones and may
// refer to them. A schema has only the shared definitions that it uses.
func TestOwnDefinitions(t *testing.T) {
	t.Parallel()
	text := strings.Replace(whole, "      required: [prompt]\n", `        seen: {type: array, items: {$ref: "#/$defs/sight"}}
      required: [prompt]
      $defs:
        sight: {type: object, properties: {at: {$ref: "#/$defs/mediaURL"}}}
`, 1)
	c, err := catalog.LoadAlone(dir(t, map[string]string{"omega.yaml": text}))
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
