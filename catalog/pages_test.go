package catalog_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestPages checks the pages of docs/models against the models' files, from which they are made.
func TestPages(t *testing.T) {
	t.Parallel()
	const folder = "../docs/models"
	pages := map[string]string{}
	var index strings.Builder
	index.WriteString("# Models\n\nA page for each: its fields, rules and prices, and a request that works. `GET /v1/models?expand=parameters` serves the same\nto programs.\n\n| model | capabilities | what it makes |\n|---|---|---|\n")
	for _, m := range load(t).Models() {
		name := m.Canonical + ".md"
		if m.ID != m.Canonical {
			fmt.Fprintf(&index, "| [%s](%s) | %s | the same as `%s` |\n", m.ID, name, strings.Join(m.Tags, ", "), m.Canonical)
			continue
		}
		page, err := m.Page()
		if err != nil {
			t.Error(err)
		}
		pages[name] = page
		fmt.Fprintf(&index, "| [%s](%s) | %s | %s |\n", m.ID, name, strings.Join(m.Tags, ", "), m.Description)
	}
	pages["README.md"] = index.String()
	if *update {
		if err := os.MkdirAll(folder, 0o750); err != nil {
			t.Fatal(err)
		}
		for name, page := range pages {
			if err := os.WriteFile(filepath.Join(folder, name), []byte(page), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, entry := range entries {
		found = append(found, entry.Name())
		text, err := os.ReadFile(filepath.Join(folder, entry.Name()))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(text), pages[entry.Name()]); diff != "" {
			t.Errorf("%s (-file +now; make generate rewrites it):\n%s", entry.Name(), diff)
		}
	}
	if diff := cmp.Diff(slices.Sorted(maps.Keys(pages)), found); diff != "" {
		t.Errorf("pages (-wanted +there):\n%s", diff)
	}
}
