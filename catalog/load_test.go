package catalog_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

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

// whole is a complete model file.
const whole = `id: omega
aliases: [omega-latest]
type: image
category: image
tags: [Text to Image]
endpoint: /v1/images/generations
schema:
  properties:
    prompt: {type: string, minLength: 1, maxLength: 10}
    size: {type: string, enum: [s, l], default: s}
    draft: {type: boolean, default: false}
    n: {type: integer, minimum: 1, maximum: 4, default: 1}
  required: [prompt]
routes:
  - provider: acme
    upstream: omega-1
    operation: image
    sync: true
expected: 10s
timeout: 10m
media: image
max_bytes: 1MiB
price:
  unit: image
  quantity: n
  by: [size, draft]
  rows:
    - {size: s, draft: false, price: "0.01"}
    - {size: s, draft: true, price: "0.005"}
    - {size: l, draft: false, price: "0.02"}
    - {size: l, draft: true, price: "0.01"}
`

func TestBuiltInModels(t *testing.T) {
	t.Parallel()
	type head struct {
		Type      mediagate.Type
		Category  string
		Tags      []string
		Endpoint  string
		MaxBody   int64
		Providers []string
	}
	got := map[string]head{}
	for _, m := range load(t).Models() {
		got[m.ID] = head{m.Type, m.Category, m.Tags, m.Endpoint, m.MaxBody, m.Providers()}
	}
	want := map[string]head{
		"alpha-v3":          {"video", "video", []string{"Text to Video", "Image to Video"}, "/v1/videos/generations", 1 << 20, []string{"kling"}},
		"alpha-video-o1":    {"video", "video", []string{"Text to Video", "Image to Video", "Video to Video"}, "/v1/videos/generations", 1 << 20, []string{"kling"}},
		"theta-image-turbo": {"image", "image", []string{"Text to Image"}, "/v1/images/generations", 1 << 20, []string{"dashscope"}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestModelIsExact(t *testing.T) {
	t.Parallel()
	c := load(t)
	for _, id := range []string{"", "Alpha-v3", "alpha-v3 ", "alpha", "alpha-v3\x00"} {
		if m, ok := c.Model(id); ok {
			t.Errorf("%q found %s", id, m.ID)
		}
	}
}

func TestOverlay(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		files map[string]string
		ids   []string
		check func(t *testing.T, c *catalog.Catalog)
	}{
		"an empty directory": {nil, []string{"alpha-v3", "alpha-video-o1", "theta-image-turbo"}, nil},
		"other files are not read": {
			map[string]string{"README.md": "x: [", "a.yaml.bak": "x: ["},
			[]string{"alpha-v3", "alpha-video-o1", "theta-image-turbo"},
			nil,
		},
		"a model is switched off": {
			map[string]string{"off.yml": "id: alpha-v3\nenabled: false\n"},
			[]string{"alpha-video-o1", "theta-image-turbo"},
			nil,
		},
		"a model is added, with its alias": {
			map[string]string{"omega.yaml": whole},
			[]string{"alpha-v3", "alpha-video-o1", "omega", "omega-latest", "theta-image-turbo"},
			func(t *testing.T, c *catalog.Catalog) {
				t.Helper()
				m, _ := c.Model("omega-latest")
				if m.Canonical != "omega" || !strings.Contains(string(m.Schema()), `"const":"omega-latest"`) {
					t.Errorf("canonical %s, schema %s", m.Canonical, m.Schema())
				}
				r, err := m.Accept(parse(t, `{"model":"omega-latest","prompt":"a","n":3,"size":"l","draft":true}`))
				if err != nil {
					t.Fatal(err)
				}
				want := []mediagate.Charge{{Item: "omega l draft", Unit: mediagate.UnitImage, Quantity: 3, UnitPrice: 10_000}}
				if diff := cmp.Diff(want, r.Charges); diff != "" {
					t.Error(diff)
				}
				// Nothing says on_unknown, and its only vendor is synchronous.
				if r.Plan.OnUnknown != mediagate.OnUnknownFail {
					t.Errorf("on_unknown %q", r.Plan.OnUnknown)
				}
				_, err = m.Accept(parse(t, `{"model":"omega","prompt":"a"}`))
				refusal(t, err, "model")
			},
		},
		"a price is changed, the rest stays": {
			map[string]string{"price.yaml": "id: alpha-video-o1\nprice:\n  unit: second\n  quantity: duration\n  rows:\n    - {price: \"1.5\"}\n"},
			[]string{"alpha-v3", "alpha-video-o1", "theta-image-turbo"},
			func(t *testing.T, c *catalog.Catalog) {
				t.Helper()
				m, _ := c.Model("alpha-video-o1")
				r, err := m.Accept(parse(t, `{"model":"alpha-video-o1","prompt":"a","mode":"pro"}`))
				if err != nil {
					t.Fatal(err)
				}
				want := []mediagate.Charge{{Item: "alpha-video-o1", Unit: mediagate.UnitSecond, Quantity: 5, UnitPrice: 1_500_000}}
				if diff := cmp.Diff(want, r.Charges); diff != "" {
					t.Error(diff)
				}
				_, err = m.Accept(parse(t, `{"model":"alpha-video-o1","prompt":"<<<image_2>>>"}`))
				refusal(t, err, "prompt")
			},
		},
		"an asynchronous model parks": {
			map[string]string{"omega.yaml": strings.Replace(whole, "sync: true", "sync: false", 1)},
			[]string{"alpha-v3", "alpha-video-o1", "omega", "omega-latest", "theta-image-turbo"},
			func(t *testing.T, c *catalog.Catalog) {
				t.Helper()
				m, _ := c.Model("omega")
				r, err := m.Accept(parse(t, `{"model":"omega","prompt":"a"}`))
				if err != nil {
					t.Fatal(err)
				}
				if r.Plan.OnUnknown != mediagate.OnUnknownPark {
					t.Errorf("on_unknown %q", r.Plan.OnUnknown)
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
			if diff := cmp.Diff(tt.ids, ids); diff != "" {
				t.Error(diff)
			}
			if tt.check != nil {
				tt.check(t, c)
			}
		})
	}
}

// TestNearestRoute: without a possible route the client is told what stood in
// the way of the one that came nearest, the preferred one among equals.
func TestNearestRoute(t *testing.T) {
	t.Parallel()
	const first = "  - provider: acme\n    upstream: first\n    operation: image\n    requires:\n"
	const second = "  - provider: acme\n    upstream: second\n    operation: image\n    requires:\n"
	tests := map[string]struct{ routes, param string }{
		"equals": {
			first + "      - without: {field: draft, value: true, rule: is refused}\n" +
				second + "      - without: {field: size, value: l, rule: is refused}\n", "draft",
		},
		"the second is nearer": {
			first + "      - without: {field: draft, value: true, rule: is refused}\n" +
				second + "      - given: {field: prompt}\n      - without: {field: size, value: l, rule: is refused}\n", "size",
		},
		"the first is nearer": {
			first + "      - given: {field: prompt}\n      - without: {field: draft, value: true, rule: is refused}\n" +
				second + "      - without: {field: size, value: l, rule: is refused}\n", "draft",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			before, after, _ := strings.Cut(whole, "  - provider: acme\n")
			_, after, _ = strings.Cut(after, "expected:")
			c, err := catalog.Load(dir(t, map[string]string{"omega.yaml": before + tt.routes + "expected:" + after}))
			if err != nil {
				t.Fatal(err)
			}
			m, _ := c.Model("omega")
			_, err = m.Accept(parse(t, `{"model":"omega","prompt":"a","draft":true,"size":"l"}`))
			refusal(t, err, tt.param)
			// One route is enough.
			if _, err := m.Accept(parse(t, `{"model":"omega","prompt":"a","draft":true}`)); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestRewritesOfRoutes: a request is stored as the first possible route wants
// it, and only for those that want the same.
func TestRewritesOfRoutes(t *testing.T) {
	t.Parallel()
	route := func(name, rewrites string) string {
		return "  - {provider: acme, upstream: " + name + ", operation: image, rewrites: [" + rewrites + "]}\n"
	}
	const avoid = "{avoid: {field: not, text: prompt}}"
	tests := map[string]struct {
		routes, not string
		prompt      string
		upstreams   []string // none: refused
	}{
		"all the same":          {route("a", avoid) + route("b", avoid), "b", "a\nAvoid: b", []string{"a", "b"}},
		"as the first wants it": {route("a", avoid) + route("b", "") + route("c", avoid), "b", "a\nAvoid: b", []string{"a", "c"}},
		"left alone by both":    {route("a", "") + route("b", ""), "b", "a", []string{"a", "b"}},
		"nothing to rewrite":    {route("a", avoid) + route("b", ""), "", "a", []string{"a", "b"}},
		"the first has no room": {route("a", avoid) + route("b", ""), "bb", "a", []string{"b"}},
		"none has room":         {route("a", avoid) + route("b", avoid), "bb", "", nil},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			before, after, _ := strings.Cut(whole, "  - provider: acme\n")
			_, after, _ = strings.Cut(after, "expected:")
			text := strings.Replace(before+tt.routes+"expected:"+after, "    size:", "    not: {type: string, maxLength: 10}\n    size:", 1)
			c, err := catalog.Load(dir(t, map[string]string{"omega.yaml": text}))
			if err != nil {
				t.Fatal(err)
			}
			m, _ := c.Model("omega")
			given := `{"model":"omega","prompt":"a"}`
			if tt.not != "" {
				given = `{"model":"omega","prompt":"a","not":"` + tt.not + `"}`
			}
			r, err := m.Accept(parse(t, given))
			if tt.upstreams == nil {
				refusal(t, err, "prompt")
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			var upstreams []string
			for _, r := range r.Plan.Routes {
				upstreams = append(upstreams, r.Upstream)
			}
			if diff := cmp.Diff(tt.upstreams, upstreams); diff != "" {
				t.Error(diff)
			}
			if got := parse(t, string(r.Params))["prompt"]; got != tt.prompt {
				t.Errorf("prompt %q, want %q", got, tt.prompt)
			}
		})
	}
}

// TestRewritesShareNothing: what one route's rewrites did to the shots is not
// seen by the next.
func TestRewritesShareNothing(t *testing.T) {
	t.Parallel()
	const route = "  - provider: kling\n    upstream: kling-v3-omni\n    operation: omni\n    rewrites: [{avoid: {field: negative_prompt, text: prompt, shots: multi_prompt}}]\n"
	c, err := catalog.Load(dir(t, map[string]string{"alpha.yaml": "id: alpha-v3\nroutes:\n" + route + route}))
	if err != nil {
		t.Fatal(err)
	}
	m, _ := c.Model("alpha-v3")
	r, err := m.Accept(parse(t, body(t, "alpha-v3", `"negative_prompt":"fog","multi_shot":true,"shot_type":"customize",`+shots(5))))
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Plan.Routes) != 2 {
		t.Errorf("%d routes, want both: they want the same", len(r.Plan.Routes))
	}
}

// TestSubjectsRefused is for the arguments of show_subjects.
func TestSubjectsRefused(t *testing.T) {
	t.Parallel()
	const (
		fields = "    cast: {type: array, items: {type: object, properties: {a: {type: string}}}}\n    size:"
		args   = "list: cast, name: a, description: a, pictures: a, images: cast, word: image, text: prompt, max: 7"
	)
	for name, tt := range map[string]struct{ old, new, want string }{
		"complete":           {"", "", ""},
		"no such list":       {"list: cast", "list: x", `"x" is no field of the schema`},
		"no such name":       {"name: a", "name: x", `"x" is no field of the items of cast`},
		"no such pictures":   {"pictures: a", "pictures: x", `"x" is no field of the items of cast`},
		"no such shots":      {"max: 7", "max: 7, shots: x", `"x" is no field of the schema`},
		"shots without text": {"max: 7", "max: 7, shots: cast", "cast has no items with a prompt and its maxLength"},
		"text without bound": {"text: prompt", "text: size", "size has no maxLength"},
		"no max":             {", max: 7", "", "max must be"},
		"with, no max_with":  {"max: 7", "max: 7, with: size", "max_with"},
		"max_with, no with":  {"max: 7", "max: 7, max_with: 4", "max_with"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text := strings.Replace(whole, "    size:", fields, 1)
			text = strings.Replace(text, "routes:", "rewrites: [{show_subjects: {"+strings.Replace(args, tt.old, tt.new, 1)+"}}]\nroutes:", 1)
			_, err := catalog.Load(dir(t, map[string]string{"omega.yaml": text}))
			if (tt.want == "") != (err == nil) || (err != nil && !strings.Contains(err.Error(), tt.want)) {
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
		"a key twice":               {"media: image\n", "media: image\nmedia: image\n", "media"},
		"no YAML":                   {"id: omega", "id: [", "omega.yaml"},
		"an unknown type":           {"type: image", "type: picture", "type must be"},
		"another category":          {"category: image", "category: video", "category"},
		"no endpoint":               {"endpoint: /v1/images/generations\n", "", "endpoint"},
		"no media class":            {"media: image\n", "", "media must be"},
		"a wrong on_unknown":        {"media:", "on_unknown: wait\nmedia:", "on_unknown"},
		"no expected duration":      {"expected: 10s\n", "", "expected must be"},
		"a timeout below expected":  {"timeout: 10m", "timeout: 9s", "timeout must be"},
		"no max_bytes":              {"max_bytes: 1MiB\n", "", "max_bytes is missing"},
		"a size without sense":      {"max_bytes: 1MiB", "max_bytes: 1TB", "is no size"},
		"an alias taken":            {"omega-latest", "alpha-v3", "alpha-v3 is taken"},
		"an alias of itself":        {"omega-latest", "omega", "omega is taken"},
		"a broken schema":           {"minLength: 1,", "minLength: x,", "schema"},
		"an unknown schema type":    {"prompt: {type: string", "prompt: {type: text", "schema"},
		"a common field":            {"    prompt: {", "    webhook: {type: string}\n    prompt: {", "every model has the field webhook"},
		"a reference to nothing":    {"prompt: {type: string", `prompt: {$ref: "#/$defs/x", type: string`, "schema"},
		"a schema of itself":        {"prompt: {type: string", `prompt: {$ref: "#/properties/prompt", type: string`, "schema"},
		"an unknown check":          {"routes:", "checks: [{shot: {}}]\nroutes:", `no check is named "shot"`},
		"a check of no field":       {"routes:", "checks: [{given: {field: x}}]\nroutes:", `"x" is no field`},
		"a check with unknown keys": {"routes:", "checks: [{given: {field: n, why: x}}]\nroutes:", "why"},
		"a check of two names":      {"routes:", "checks: [{given: {field: n}, needs: {field: n, with: n}}]\nroutes:", "one name"},
		"a rule without words":      {"routes:", "checks: [{without: {field: n}}]\nroutes:", "rule is missing"},
		"a rewrite that is none":    {"routes:", "rewrites: [{given: {field: n}}]\nroutes:", `no check is named "given"`},
		"no such field of items":    {"routes:", "checks: [{distinct: {list: n, item: x}}]\nroutes:", `"x" is no field of the items of n`},
		"none to be given":          {"routes:", "checks: [{given: {field: n, item: x}}]\nroutes:", `"x" is no field of the items of n`},
		"a rewrite of a route":      {"    sync: true", "    rewrites: [{avoid: {field: x, text: prompt}}]", `routes[0]: rewrites: avoid: "x" is no field`},
		"a route without upstream":  {"    upstream: omega-1\n", "", "upstream"},
		"an unknown route key":      {"sync: true", "async: true", "async"},
		"a row too many":            {"{size: l, draft: true", "{size: xl, draft: true", "size=xl draft=true, which the schema does not allow"},
		"a row twice":               {"{size: l, draft: true", "{size: s, draft: true", "repeats size=s draft=true"},
		"a row of another shape":    {"{size: l, draft: true, price", "{sizes: l, draft: true, price", "must have size, draft and price"},
		"a table by a free text":    {"by: [size, draft]", "by: [prompt]", "nothing can depend on it"},
		"a price is missing":        {"    - {size: l, draft: true, price: \"0.01\"}\n", "", "no row for size=l draft=true"},
		"a price without value":     {"draft: true, price: \"0.005\"", "draft: true", "price"},
		"a price that is none":      {`"0.005"`, `"free"`, "is no price"},
		"a price below zero":        {`"0.005"`, `"-1"`, "is no price"},
		"a price beyond sense":      {`"0.005"`, `"1000001"`, "is no price"},
		"an unknown unit":           {"unit: image", "unit: pixel", "unit must be"},
		"a quantity of texts":       {"quantity: n", "quantity: size", "quantity"},
		"a quantity without bound":  {"maximum: 4, ", "", "quantity"},
		"no default to price by":    {"enum: [s, l], default: s", "enum: [s, l]", "needs a default"},
		"ignored without field":     {"routes:", "ignored: [{fields: [x], unless: {draft: true}}]\nroutes:", `"x" is no field`},
		"ignored unless impossible": {"routes:", "ignored: [{fields: [n], unless: {size: xl}}]\nroutes:", "can never be"},
		"ignored without condition": {"routes:", "ignored: [{fields: [n]}]\nroutes:", "needs fields and unless"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text := strings.Replace(whole, tt.old, tt.new, 1)
			if text == whole {
				t.Fatal("nothing was replaced")
			}
			_, err := catalog.Load(dir(t, map[string]string{"omega.yaml": text}))
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
		"a.yaml": "id: alpha-v3\nmedia: film\nendpoint: /x\n",
		"b.yaml": "id: omega\nsurprise: 1\n",
		"c.yaml": "id: theta-image-turbo\nprice: {unit: image, by: [resolution], rows: [{resolution: 1K, price: \"1\"}]}\n",
		"d.yaml": "id: theta-image-turbo\nenabled: false\n",
	})
	var first string
	for range 5 {
		_, err := catalog.Load(d)
		if err == nil {
			t.Fatal("it was loaded")
		}
		for _, want := range []string{"media must be", "endpoint must be", "surprise", "no row for resolution=2K", "already defined by c.yaml"} {
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
	m := model(t, "alpha-v3")
	b := m.Schema()
	want := slices.Clone(b)
	clear(b)
	if !slices.Equal(want, m.Schema()) {
		t.Error("a caller can change the schema")
	}
}
