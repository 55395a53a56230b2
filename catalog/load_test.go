package catalog_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/catalog"
)

// dir is a directory with these files.
func dir(t *testing.T, files map[string]string) string {
	t.Helper()
	d := t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(d, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return d
}

// whole is a complete model file. Its type has no contract, so its fields need
// no notes.
const whole = `id: omega
aliases: [omega-latest]
type: music
tags: [Text to Image]
description: Images of an end.
operations:
  - endpoint: /v1/images/generations
    schema:
      properties:
        prompt: {type: string, minLength: 1, maxLength: 10}
        size: {type: string, enum: [s, l], default: s}
        draft: {type: boolean, default: false}
        n: {type: integer, minimum: 1, maximum: 4, default: 1}
      required: [prompt]
    price:
      unit: image
      quantity: n
      by: [size, draft]
      rows:
        - {size: s, draft: false, price: "0.01"}
        - {size: s, draft: true, price: "0.005"}
        - {size: l, draft: false, price: "0.02"}
        - {size: l, draft: true, price: "0.01"}
    routes:
      - {provider: acme, upstream: omega-1, operation: image}
    expected: 10s
    timeout: 10m
    on_unknown: fail
    media: image
    max_bytes: 1MiB
`

// TestLargestBodies checks that only models that accept pictures in the body have large bodies.
func TestLargestBodies(t *testing.T) {
	t.Parallel()
	large := map[string]int64{"delta-02": 30 << 20, "delta-2.3": 30 << 20}
	for _, o := range operations(t) {
		want, ok := large[o.key]
		if !ok {
			want = 1 << 20
		}
		if o.MaxBody != want {
			t.Errorf("%s takes %d bytes, want %d", o.key, o.MaxBody, want)
		}
	}
}

// builtIn are the ids of all models, aliases among them.
func builtIn(t *testing.T) []string {
	t.Helper()
	var ids []string
	for _, m := range load(t).Models() {
		ids = append(ids, m.ID)
	}
	return ids
}

func TestOverlay(t *testing.T) {
	t.Parallel()
	const at = "operations:\n  - endpoint: /v1/"
	tests := map[string]struct {
		files       map[string]string
		more, fewer []string // ids
		check       func(t *testing.T, c *catalog.Catalog)
	}{
		"an empty directory":       {},
		"other files are not read": {files: map[string]string{"README.md": "x: [", "a.yaml.bak": "x: ["}},
		"a model is switched off": {
			files: map[string]string{"off.yml": "id: alpha-v3\nenabled: false\n"},
			fewer: []string{"alpha-v3"},
		},
		"a model is added, with its alias": {
			files: map[string]string{"omega.yaml": whole},
			more:  []string{"omega", "omega-latest"},
			check: func(t *testing.T, c *catalog.Catalog) {
				t.Helper()
				o := operationOf(t, c, "omega-latest")
				if o.Model.Canonical != "omega" || !strings.Contains(string(o.Schema()), `"const":"omega-latest"`) {
					t.Errorf("canonical %s, schema %s", o.Model.Canonical, o.Schema())
				}
				r, err := o.Accept(parse(t, `{"model":"omega-latest","prompt":"a","n":3,"size":"l","draft":true}`))
				if err != nil {
					t.Fatal(err)
				}
				want := []mediagate.Charge{{Item: "omega l draft", Unit: mediagate.UnitImage, Quantity: 3, UnitPrice: 10_000}}
				if diff := cmp.Diff(want, r.Charges); diff != "" {
					t.Error(diff)
				}
				_, err = o.Accept(parse(t, `{"model":"omega","prompt":"a"}`))
				refusal(t, err, "model")
			},
		},
		"a model ends, and its alias with it": {
			files: map[string]string{"end.yaml": "id: zeta-3.1-flash-image-preview\nends: 2027-03-31\nreplacement: theta-image-turbo\n"},
			check: func(t *testing.T, c *catalog.Catalog) {
				t.Helper()
				for _, id := range []string{"zeta-3.1-flash-image-preview", "zeta-2-ext"} {
					m, _ := c.Model(id)
					if m.Ends.Format(time.DateOnly) != "2027-03-31" || m.Replacement != "theta-image-turbo" {
						t.Errorf("%s ends on %s, then %q", id, m.Ends, m.Replacement)
					}
				}
			},
		},
		"a price is changed, the rest stays": {
			files: map[string]string{
				"price.yaml": "id: alpha-video-o1\n" + at + "videos/generations\n    price:\n      unit: second\n      quantity: duration\n      rows:\n        - {price: \"1.5\"}\n",
			},
			check: func(t *testing.T, c *catalog.Catalog) {
				t.Helper()
				o := operationOf(t, c, "alpha-video-o1")
				r, err := o.Accept(parse(t, `{"model":"alpha-video-o1","prompt":"a","mode":"pro"}`))
				if err != nil {
					t.Fatal(err)
				}
				want := []mediagate.Charge{{Item: "alpha-video-o1", Unit: mediagate.UnitSecond, Quantity: 5, UnitPrice: 1_500_000}}
				if diff := cmp.Diff(want, r.Charges); diff != "" {
					t.Error(diff)
				}
				_, err = o.Accept(parse(t, `{"model":"alpha-video-o1","prompt":"<<<image_2>>>"}`))
				refusal(t, err, "prompt")
				if got := o.Where(0); got != "price.yaml: operations[/v1/videos/generations].routes[0]" {
					t.Errorf("the overlay is not named: %s", got)
				}
			},
		},
		"an operation is added": {
			files: map[string]string{"more.yaml": strings.Replace(whole, "id: omega\naliases: [omega-latest]", "id: alpha-v3", 1)},
			check: func(t *testing.T, c *catalog.Catalog) {
				t.Helper()
				for endpoint, field := range map[string]string{"/v1/videos/generations": "image_urls", "/v1/images/generations": "draft"} {
					o, err := c.Find(endpoint, parse(t, `{"model":"alpha-v3"}`))
					if err != nil {
						t.Fatal(err)
					}
					if !slices.Contains(o.Fields(), field) {
						t.Errorf("%s has the fields %v", endpoint, o.Fields())
					}
				}
			},
		},
		"an operation is switched off": {
			files: map[string]string{
				"more.yaml": strings.Replace(whole, "id: omega\naliases: [omega-latest]", "id: alpha-v3", 1) +
					"  - endpoint: /v1/videos/generations\n    enabled: false\n",
			},
			check: func(t *testing.T, c *catalog.Catalog) {
				t.Helper()
				_, err := c.Find("/v1/videos/generations", parse(t, `{"model":"alpha-v3"}`))
				if got := refusal(t, err, "model"); got != `model "alpha-v3" is not served at /v1/videos/generations, but at /v1/images/generations` {
					t.Error(got)
				}
			},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, err := catalog.Load(dir(t, tt.files))
			if err != nil {
				t.Fatal(err)
			}
			var ids []string
			for _, m := range c.Models() {
				ids = append(ids, m.ID)
			}
			want := slices.DeleteFunc(append(builtIn(t), tt.more...), func(id string) bool { return slices.Contains(tt.fewer, id) })
			slices.Sort(want)
			if diff := cmp.Diff(want, ids); diff != "" {
				t.Error(diff)
			}
			if tt.check != nil {
				tt.check(t, c)
			}
		})
	}
}

// TestOldShape checks that the error about a file with the old shape says how to change it.
func TestOldShape(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ text, want string }{
		"a whole file": {"id: omega\ntype: image\nendpoint: /v1/images/generations\nschema: {}\nmax_bytes: 1MiB\n", "endpoint, schema and max_bytes: of an operation"},
		"a price":      {"id: alpha-v3\nprice: {unit: second}\n", "price: of an operation, not of the model: move to operations"},
		"both":         {"id: alpha-v3\nmedia: video\noperations: []\n", "media: of an operation"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := catalog.LoadAlone(dir(t, map[string]string{"old.yaml": tt.text}))
			if err == nil || !strings.Contains(err.Error(), "old.yaml: "+tt.want) || !strings.Contains(err.Error(), "docs/adding-a-model.md") {
				t.Errorf("%v, want %q", err, tt.want)
			}
		})
	}
}

func TestLoadRefuses(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		old, new string // replaced in the whole file
		want     string
	}{
		"no id":                     {"id: omega\n", "", "id is missing"},
		"an unknown key":            {"expected:", "expcted:", "expcted"},
		"a key twice":               {"    expected: 10s\n", "    expected: 10s\n    expected: 10s\n", "expected"},
		"no YAML":                   {"id: omega", "id: [", "omega.yaml"},
		"an unknown type":           {"type: music", "type: picture", "type must be"},
		"a category":                {"type: music", "type: music\ncategory: image", "category"},
		"no endpoint":               {"endpoint: /v1/images/generations", "max_body: 1MiB", "operations[0]: endpoint is missing"},
		"an unknown endpoint":       {"images/generations", "films/generations", "endpoint must be /v1/videos/generations, /v1/images/generations, "},
		"an endpoint twice":         {"on_unknown:", "enabled: true\n  - endpoint: /v1/images/generations\n    on_unknown:", "operations[1]: there is one for /v1/images/generations already"},
		"no operation":              {"- endpoint:", "- enabled: false\n    endpoint:", "operations: there are none"},
		"a wrong media class":       {"media: image", "media: film", "media must be video, image or audio"},
		"a wrong on_unknown":        {"on_unknown: fail", "on_unknown: wait", "on_unknown must be"},
		"no on_unknown":             {"    on_unknown: fail\n", "", "on_unknown must be"},
		"no expected duration":      {"    expected: 10s\n", "", "expected must be"},
		"a timeout below expected":  {"timeout: 10m", "timeout: 9s", "timeout must be"},
		"no max_bytes":              {"    max_bytes: 1MiB\n", "", "max_bytes is missing"},
		"a size without sense":      {"max_bytes: 1MiB", "max_bytes: 1TB", "is no size"},
		"an alias of itself":        {"omega-latest", "omega", "omega is taken"},
		"a broken schema":           {"minLength: 1,", "minLength: x,", "schema"},
		"an unknown schema type":    {"prompt: {type: string", "prompt: {type: text", "schema"},
		"a common field":            {"        prompt: {", "        webhook: {type: string}\n        prompt: {", "every model has the field webhook"},
		"an unknown definition":     {"prompt: {type: string", `prompt: {$ref: "#/$defs/mediaURI", type: string`, "schema"},
		"a shared definition":       {"required: [prompt]", "required: [prompt]\n      $defs: {frame: {type: string}}", "every schema has frame"},
		"a value of no field":       {"size: {type: string", "who: {x-value: name, properties: {id: {type: string}}}\n        size: {type: string", `"name" is no field of the object`},
		"a reference to nothing":    {"prompt: {type: string", `prompt: {$ref: "#/$defs/x", type: string`, "schema"},
		"a date that is none":       {"type: music", "type: music\ncreated: tomorrow", "created must be a date"},
		"an end that is no date":    {"type: music", "type: music\nends: soon", "[4:7] ends must be a date"},
		"an end of no text":         {"type: music", "type: music\nends: [2027-03-31]", "[4:7] a text is needed"},
		"a replacement alone":       {"type: music", "type: music\nreplacement: alpha-v3", "[4:14] replacement stands only beside ends"},
		"an unknown replacement":    {"type: music", "type: music\nends: 2027-03-31\nreplacement: psi", "[5:14] replacement: there is no model psi"},
		"a replacement by itself":   {"type: music", "type: music\nends: 2027-03-31\nreplacement: omega-latest", "[5:14] replacement must be another model"},
		"a version that is no date": {"expected:", "schema_version: v2\n    expected:", "schema_version must be a date"},
		"a schema of itself":        {"prompt: {type: string", `prompt: {$ref: "#/properties/prompt", type: string`, "schema"},
		"an unknown check":          {"routes:", "checks: [{shot: {}}]\n    routes:", `no check is named "shot"; there are addresses, among, ascending, between, distinct, excludes, needs, plain, references, shots and together`},
		"a check of no field":       {"routes:", "checks: [{needs: {field: x, with: n}}]\n    routes:", `"x" is no field`},
		"a check beside no field":   {"routes:", "checks: [{needs: {field: n, with: [n, x]}}]\n    routes:", `"x" is no field`},
		"a check beside nothing":    {"routes:", "checks: [{needs: {field: n}}]\n    routes:", "with is missing"},
		"a check with unknown keys": {"routes:", "checks: [{needs: {field: n, with: n, why: x}}]\n    routes:", "why"},
		"a check of two names":      {"routes:", "checks: [{distinct: {list: n}, needs: {field: n, with: n}}]\n    routes:", "one name"},
		"nothing excluded":          {"routes:", "checks: [{excludes: {with: n}}]\n    routes:", "fields and with are needed"},
		"excluded by no field":      {"routes:", "checks: [{excludes: {fields: n, with: x}}]\n    routes:", `"x" is no field`},
		"no such field of items":    {"routes:", "checks: [{distinct: {list: n, item: x}}]\n    routes:", `"x" is no field of the items of n`},
		"no route":                  {"      - {provider: acme, upstream: omega-1, operation: image}\n", "      []\n", "routes: there are none"},
		"a route without upstream":  {"upstream: omega-1, ", "", "routes[0]: provider, upstream and operation"},
		"an unknown route key":      {"operation: image}", "operation: image, sync: true}", "sync"},
		"a table by a free text":    {"by: [size, draft]", "by: [prompt]", "nothing can depend on it"},
		"a row of another shape":    {"{size: l, draft: true, price", "{sizes: l, draft: true, price", "must have size, draft and price"},
		"a row twice":               {"{size: l, draft: true", "{size: s, draft: true", "repeats size=s draft=true"},
		"a row too many":            {"{size: l, draft: true", "{size: xl, draft: true", "size=xl draft=true, which the schema does not allow"},
		"a price is missing":        {"        - {size: l, draft: true, price: \"0.01\"}\n", "", "no row for size=l draft=true"},
		"a price without value":     {"draft: true, price: \"0.005\"", "draft: true", "price"},
		"a price that is none":      {`"0.005"`, `"free"`, "is no price"},
		"a price below zero":        {`"0.005"`, `"-1"`, "is no price"},
		"a price beyond sense":      {`"0.005"`, `"1000001"`, "is no price"},
		"an unknown unit":           {"unit: image", "unit: pixel", "unit must be second, image, song, operation or character"},
		"a quantity of texts":       {"quantity: n", "quantity: size", "quantity"},
		"a quantity without bound":  {"maximum: 4, ", "", "quantity"},
		"a quantity of no field":    {"quantity: n", "quantity: [n, m]", `quantity "m" must be an integer field`},
		"a quantity twice":          {"quantity: n", "quantity: [n, n]", `quantity "n" is named twice`},
		"characters of two":         {"unit: image\n      quantity: n", "unit: character\n      quantity: [prompt, size]", "must be a required text"},
		"characters of a number":    {"unit: image", "unit: character", `quantity "n" must be a required text`},
		"characters without end":    {"unit: image\n      quantity: n", "unit: character\n      quantity: size", `quantity "size" must be a required text`},
		"no default to price by":    {"enum: [s, l], default: s", "enum: [s, l]", "needs a default"},
		"ignored without field":     {"routes:", "ignored: [{fields: [x], unless: {draft: true}}]\n    routes:", `"x" is no field`},
		"ignored unless impossible": {"routes:", "ignored: [{fields: [n], unless: {size: xl}}]\n    routes:", "can never be"},
		"ignored without condition": {"routes:", "ignored: [{fields: [n]}]\n    routes:", "needs fields and unless"},
		"ignored and counted":       {"routes:", "ignored: [{fields: [n], unless: {draft: true}}]\n    routes:", `price: "n" may be ignored`},
		"ignored and priced by":     {"routes:", "ignored: [{fields: [draft], with: [prompt]}]\n    routes:", `price: "draft" may be ignored`},
		"metadata of another kind":  {"        prompt: {", "        metadata: {type: string}\n        prompt: {", "metadata takes properties and nothing else"},
		"metadata of nothing":       {"        prompt: {", "        metadata: {properties: {}}\n        prompt: {", "metadata takes properties"},
		"a reference of one's own":  {"        prompt: {", "        metadata: {properties: {reference: {type: string}}}\n        prompt: {", "every model has reference"},
		"items with prefixItems":    {"required: [prompt]", "$defs: {x: {prefixItems: [{type: string}], items: {type: string}}}\n      allOf: [{$ref: '#/$defs/x'}]\n      required: [prompt]", "both prefixItems and items"},
		"a zero that cannot be":     {"quantity: n", "quantity: n\n      zero: 4", `zero must be a number of units, where quantity may be 0: it is 4 for "n"`},
		"holds of no list":          {"quantity: n", "quantity: n\n      holds: [{given: n, more: 1}]", `holds: given: "n" is no list of the request`},
		"a zero below zero":         {"quantity: n", "quantity: n\n      zero: -1", "zero must be"},
		"a zero of nothing":         {"quantity: n", "zero: 4", "zero must be"},
		"between of a text":         {"routes:", "checks: [{between: {field: size, min: 1, max: 2}}]\n    routes:", "must be an integer"},
		"between of nothing":        {"routes:", "checks: [{between: {field: n, min: 3, max: 2}}]\n    routes:", "min not above max"},
		"among of a number":         {"routes:", "checks: [{among: {field: n, values: [a]}}]\n    routes:", "must be a text"},
		"ascending texts":           {"routes:", "checks: [{ascending: {fields: [size, n]}}]\n    routes:", "must be two or more numbers"},
		"ascending alone":           {"routes:", "checks: [{ascending: {fields: [n]}}]\n    routes:", "must be two or more numbers"},
		"inferred from nothing":     {"routes:", "infer: [{field: size, value: s}]\n    routes:", "with is missing"},
		"inferred from no field":    {"routes:", "infer: [{field: size, value: s, with: x}]\n    routes:", `"x" is no field`},
		"inferred what cannot be":   {"routes:", "infer: [{field: size, value: xxl, with: n}]\n    routes:", `"size" can never be xxl`},
		"inferred of no field":      {"routes:", "infer: [{field: x, value: s, with: n}]\n    routes:", `"x" can never be s`},
		"among of nothing":          {"routes:", "checks: [{among: {field: prompt, values: []}}]\n    routes:", "values not empty"},
		"a fold of no messages":     {"routes:", "fold: {from: n, into: {text: prompt}}\n    routes:", `fold: "n" is no list of messages`},
		"a fold of no field":        {"routes:", "fold: {from: x, into: {text: prompt}}\n    routes:", `fold: "x" is no list of messages`},
		"an unknown key of a fold":  {"routes:", "fold: {from: x, to: {text: prompt}}\n    routes:", "to"},
		"ignored with no field":     {"routes:", "ignored: [{fields: [n], with: [x]}]\n    routes:", `"x" is no field`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text := strings.Replace(whole, tt.old, tt.new, 1)
			if text == whole {
				t.Fatal("nothing was replaced")
			}
			_, err := catalog.LoadAlone(dir(t, map[string]string{"omega.yaml": text}))
			if err == nil {
				t.Fatal("it was loaded")
			}
			if !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), "omega.yaml") {
				t.Errorf("error lacks %q or the file's name:\n%v", tt.want, err)
			}
		})
	}
}

func TestLoadReportsEverything(t *testing.T) {
	t.Parallel()
	d := dir(t, map[string]string{
		"a.yaml": "id: alpha-v3\noperations:\n  - {endpoint: /v1/videos/generations, media: film}\n  - {endpoint: /x}\n",
		"b.yaml": "id: omega\nsurprise: 1\n",
		"e.yaml": strings.NewReplacer("id: omega\n", "id: psi\n", "omega-latest", "alpha-v3").Replace(whole),
		"c.yaml": "id: theta-image-turbo\noperations: [{endpoint: /v1/images/generations, price: {unit: image, by: [resolution], rows: [{resolution: 1K, price: \"1\"}]}}]\n",
		"d.yaml": "id: theta-image-turbo\nenabled: false\n",
	})
	var first string
	for range 5 {
		_, err := catalog.Load(d)
		if err == nil {
			t.Fatal("it was loaded")
		}
		for _, want := range []string{
			"media must be", "endpoint must be", "surprise",
			"no row for resolution=2K", "already defined by c.yaml", "alpha-v3 is taken",
		} {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("report lacks %q:\n%v", want, err)
			}
		}
		if first == "" {
			first = err.Error()
		}
		if err.Error() != first {
			t.Fatalf("two loads, two reports:\n%s\n\n%s", first, err)
		}
	}
}

func TestLoadOfNoDirectory(t *testing.T) {
	t.Parallel()
	if _, err := catalog.Load(filepath.Join(t.TempDir(), "none")); err == nil {
		t.Error("a directory that does not exist was taken for an empty one")
	}
}

func TestSchemaIsACopy(t *testing.T) {
	t.Parallel()
	m := operation(t, "alpha-v3")
	b := m.Schema()
	want := slices.Clone(b)
	clear(b)
	if !slices.Equal(want, m.Schema()) {
		t.Error("a caller can change the schema")
	}
}
