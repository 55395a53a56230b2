package catalog_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mediagate/mediagate/catalog"
)

// TestPages compares two pages with golden files: one with nested fields and prices by two fields,
// and one with bounds of files and holds. The index lists each model, and each
// operation has an example.
func TestPages(t *testing.T) {
	t.Parallel()
	c := load(t)
	pages, err := c.Pages(catalog.Readers{Currency: "USD"})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"alpha-v3", "gamma2.6"} {
		file := "testdata/" + name + "/page.md"
		page := pages["models/"+name+".md"]
		if *update {
			if err := os.WriteFile(file, page, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), string(page)); diff != "" {
			t.Errorf("%s (-file +now):\n%s", file, diff)
		}
	}
	for _, m := range c.Models() {
		if !bytes.Contains(pages["models/README.md"], []byte("| ["+m.ID+"]("+m.Canonical+".md) |")) {
			t.Errorf("the index does not list %s", m.ID)
		}
		for _, o := range m.Operations() {
			if o.Example() == nil {
				t.Errorf("%s at %s has no example", m.ID, o.Endpoint)
			}
		}
	}
}

// TestExample checks that an example has the required fields of a model, and that there is none if
// they make no valid request.
func TestExample(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ schema, want string }{
		"prompt": {`
        prompt: {title: P, description: P., type: string, examples: [a lighthouse, a boat]}
      required: [prompt]`, `{"model":"toy","prompt":"a lighthouse"}`},
		"a prompt that is not required": {`
        prompt: {title: P, description: P., type: string, examples: [a lighthouse]}
        size: {title: S, description: S., type: string, enum: [small, large]}
      anyOf: [{required: [prompt]}, {required: [size]}]`, `{"model":"toy","prompt":"a lighthouse"}`},
		"other values": {`
        size: {title: S, description: S., type: string, enum: [small, large]}
        loop: {title: L, description: L., type: boolean, default: true}
        tags: {title: T, description: T., type: array, items: {type: string}, examples: [[a, b]]}
      required: [size, loop, tags]`, `{"model":"toy","size":"small","loop":true,"tags":["a","b"]}`},
		"a value that the schema does not give": {`
        loop: {title: L, description: L., type: boolean}
      required: [loop]`, ""},
		"one of several besides": {`
        prompt: {title: P, description: P., type: string, examples: [a lighthouse]}
        size: {title: S, description: S., type: string, enum: [small, large]}
      required: [prompt]
      anyOf: [{required: [size]}]`, `{"model":"toy","prompt":"a lighthouse","size":"small"}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			file := `id: toy
type: video
description: A toy.
operations:
  - endpoint: /v1/videos/generations
    schema:
      properties:` + test.schema + `
    price: {unit: song, rows: [{price: "1"}]}
    routes: [{provider: p, upstream: u, operation: o}]
    expected: 1s
    timeout: 1m
    on_unknown: park
    max_bytes: 1MiB
`
			if err := os.WriteFile(filepath.Join(dir, "toy.yaml"), []byte(file), 0o600); err != nil {
				t.Fatal(err)
			}
			models, err := catalog.LoadAlone(dir)
			if err != nil {
				t.Fatal(err)
			}
			m, _ := models.Model("toy")
			if got := string(m.Operations()[0].Example()); got != test.want {
				t.Errorf("%s, want %s", got, test.want)
			}
		})
	}
}

// TestPageCells checks that no text of a file breaks a table: prices and defaults stay in their columns.
func TestPageCells(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := `id: toy
type: video
description: "A toy.\nTwo lines."
operations:
  - endpoint: /v1/videos/generations
    schema:
      properties:
        mode: {title: M, description: "One.\nTwo | three.", type: string, enum: ["a|b", c], default: "a|b"}
        tags: {title: T, description: T., type: array, items: {type: string}, default: [a, b], examples: [[a]]}
    price: {unit: song, by: [mode], rows: [{mode: "a|b", price: "1"}, {mode: c, price: "2"}]}
    routes: [{provider: p, upstream: u, operation: o}]
    expected: 1s
    timeout: 1m
    on_unknown: park
    max_bytes: 1MiB
`
	if err := os.WriteFile(filepath.Join(dir, "toy.yaml"), []byte(file), 0o600); err != nil {
		t.Fatal(err)
	}
	models, err := catalog.LoadAlone(dir)
	if err != nil {
		t.Fatal(err)
	}
	pages, err := models.Pages(catalog.Readers{Currency: "USD"})
	if err != nil {
		t.Fatal(err)
	}
	for page, lines := range map[string][]string{
		"models/README.md": {"| [toy](toy.md) |  | A toy. Two lines. |\n"},
		"models/toy.md": {
			"| `mode` | a\\|b or c | `a\\|b` | **M.** One. Two \\| three. |\n",
			"| `tags` | an array, each a string | `[\"a\",\"b\"]` | **T.** T. |\n",
			"| `a\\|b` | 1.00 |\n| `c` | 2.00 |\n",
		},
	} {
		for _, line := range lines {
			if !bytes.Contains(pages[page], []byte(line)) {
				t.Errorf("%s lacks %s:\n%s", page, line, pages[page])
			}
		}
	}
}
