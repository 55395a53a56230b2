package catalog_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"math/big"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mediagate/mediagate/internal/npmtest"
)

// beyondFile lists what refuses requests that the served schema lets through:
// model, what refuses them, and by how many cases of the suite.
const beyondFile = "testdata/beyond_schema.txt"

// TestClientsValidateAlike validates the suite against the served schemas with ajv, an
// independent validator. ajv must accept what Accept accepts. If Accept refuses more, the golden
// file names the reason: a named check, a format of the gateway (such as a public address or an
// image in base64), or a number that JavaScript cannot hold.
func TestClientsValidateAlike(t *testing.T) {
	t.Parallel()
	type judged struct {
		Model string         `json:"model"`
		Body  map[string]any `json:"body"`
		name  string
	}
	var task struct {
		Schemas map[string]json.RawMessage `json:"schemas"`
		Bodies  []judged                   `json:"bodies"`
	}
	task.Schemas = map[string]json.RawMessage{}
	suite := fieldSuite()
	for _, o := range operations(t) {
		task.Schemas[o.key] = o.Schema()
		for _, name := range slices.Sorted(maps.Keys(suite[o.cases])) {
			given := parse(t, body(t, o.key, suite[o.cases][name].fields))
			task.Bodies = append(task.Bodies, judged{o.key, withoutAbsent(t, o.Schema(), given), name})
		}
	}
	input, err := json.Marshal(task)
	if err != nil {
		t.Fatal(err)
	}
	folder := npmtest.Install(t, "ajv", filepath.Join("testdata", "ajv"))
	var verdicts []bool
	if err := json.Unmarshal(npmtest.Run(t, folder, bytes.NewReader(input), nil, "node", "judge.js"), &verdicts); err != nil {
		t.Fatal(err)
	}
	if len(verdicts) != len(task.Bodies) {
		t.Fatalf("%d verdicts of %d bodies", len(verdicts), len(task.Bodies))
	}
	beyond := map[string]int{}
	for i, c := range task.Bodies {
		o := operation(t, c.Model)
		_, err := o.Accept(c.Body)
		switch {
		case verdicts[i] == (err == nil):
		case verdicts[i]:
			reasons := o.RefusedBy(c.Body)
			if len(reasons) == 0 && !exactNumbers(c.Body) {
				reasons = []string{"number"}
			}
			if len(reasons) == 0 {
				t.Errorf("%s: %s: ajv accepts it, and no check or format refuses it: %v", c.Model, c.name, err)
			}
			for _, reason := range reasons {
				beyond[c.Model+": "+reason]++
			}
		default:
			t.Errorf("%s: %s: accepted, but ajv refuses it", c.Model, c.name)
		}
	}
	var lines strings.Builder
	for _, key := range slices.Sorted(maps.Keys(beyond)) {
		fmt.Fprintf(&lines, "%s: %d\n", key, beyond[key])
	}
	if *update {
		if err := os.WriteFile(beyondFile, []byte(lines.String()), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(beyondFile)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), lines.String()); diff != "" {
		t.Errorf("what the schema does not say (-golden +now):\n%s", diff)
	}
	for id := range suite { // each check that a schema cannot express has its line
		for _, name := range operation(t, id).Checks() {
			if beyond[id+": "+name] == 0 {
				t.Errorf("%s: ajv refuses all that the check %s does", id, name)
			}
		}
	}
}

// withoutAbsent removes fields that the contract treats as absent: at the top level null, an
// empty list, an empty text without a minimum length, and a blank required text. A client need
// not send them.
func withoutAbsent(t *testing.T, served json.RawMessage, given map[string]any) map[string]any {
	t.Helper()
	var schema struct {
		Properties map[string]struct {
			Type      any
			Ref       string `json:"$ref"`
			MinLength any
		}
		Required []string
		AnyOf    []struct{ Required []string }
	}
	if err := json.Unmarshal(served, &schema); err != nil {
		t.Fatal(err)
	}
	required := schema.Required
	for _, branch := range schema.AnyOf {
		required = append(required, branch.Required...)
	}
	var whole map[string]any
	if err := json.Unmarshal(served, &whole); err != nil {
		t.Fatal(err)
	}
	conditional := requiredIn(whole) // of texts whose rules stand in a branch
	out := maps.Clone(given)
	for name, v := range given {
		items, isList := v.([]any)
		text, isText := v.(string)
		field := schema.Properties[name]
		if v == nil || isList && len(items) == 0 && field.Type == "array" ||
			isText && text == "" && (field.Type == "string" || field.Ref != "") && field.MinLength == nil ||
			isText && strings.TrimSpace(text) == "" && (field.Type == "string" && slices.Contains(required, name) ||
				field.Type == nil && field.Ref == "" && slices.Contains(conditional, name)) {
			delete(out, name)
		}
	}
	return out
}

// requiredIn returns the fields that a schema or a branch of it requires.
func requiredIn(node any) []string {
	schema, ok := node.(map[string]any)
	if !ok {
		return nil
	}
	var names []string
	list, _ := schema["required"].([]any)
	for _, name := range list {
		names = append(names, fmt.Sprint(name))
	}
	for _, key := range []string{"then", "else"} {
		names = append(names, requiredIn(schema[key])...)
	}
	branches, _ := schema["anyOf"].([]any)
	for _, branch := range branches {
		names = append(names, requiredIn(branch)...)
	}
	return names
}

// exactNumbers reports whether JavaScript holds all numbers of a value exactly.
func exactNumbers(v any) bool {
	switch v := v.(type) {
	case json.Number:
		exact, ok := new(big.Rat).SetString(string(v))
		f, err := v.Float64()
		return ok && err == nil && math.Abs(f) < 1<<53 && exact.Cmp(new(big.Rat).SetFloat64(f)) == 0
	case []any:
		return !slices.ContainsFunc(v, func(item any) bool { return !exactNumbers(item) })
	case map[string]any:
		for _, item := range v {
			if !exactNumbers(item) {
				return false
			}
		}
	}
	return true
}
