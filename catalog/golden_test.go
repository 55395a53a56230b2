package catalog_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/mediagate/mediagate/catalog"
	"github.com/mediagate/mediagate/catalog/price"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// TestGolden runs the request of each testdata/MODEL/*.txtar and compares
// what becomes of it: the parameters, the plan and the charges, or the error. The parameters
// are a request again, which makes the same parameters.
func TestGolden(t *testing.T) {
	t.Parallel()
	c := load(t)
	files, err := filepath.Glob(filepath.Join("testdata", "*", "*.txtar"))
	if err != nil {
		t.Fatal(err)
	}
	below, err := filepath.Glob(filepath.Join("testdata", "*", "*", "*.txtar"))
	if err != nil {
		t.Fatal(err)
	}
	covered := map[string]bool{}
	for _, file := range append(files, below...) {
		id := goldenKey(t, c, filepath.Dir(file))
		covered[id] = true
		t.Run(id+"/"+strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			t.Parallel()
			archive, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if len(archive.Files) == 0 || archive.Files[0].Name != "request.json" {
				t.Fatalf("%s: no request.json at the start", file)
			}
			m := operationOf(t, c, id)
			got := &txtar.Archive{Comment: archive.Comment, Files: append(archive.Files[:1:1], outcome(t, m, string(archive.Files[0].Data))...)}
			if *update {
				if err := os.WriteFile(file, txtar.Format(got), 0o600); err != nil {
					t.Fatal(err)
				}
				return
			}
			if diff := cmp.Diff(string(txtar.Format(archive)), string(txtar.Format(got))); diff != "" {
				t.Error(diff)
			}
		})
	}
	for _, o := range operations(t) {
		if !covered[o.cases] {
			t.Errorf("%s has no golden file", o.key)
		}
	}
}

// goldenKey is the key of the operation whose files are in the folder: one of
// the model's name, or below it of the last part of the endpoint's.
func goldenKey(t *testing.T, c *catalog.Catalog, folder string) string {
	t.Helper()
	name := filepath.Base(folder)
	if m, ok := c.Model(name); ok && len(m.Operations()) == 1 {
		return name
	}
	m, ok := c.Model(filepath.Base(filepath.Dir(folder)))
	if !ok {
		t.Fatalf("%s: no such model", folder)
	}
	for _, o := range m.Operations() {
		if path.Base(o.Endpoint) == name {
			return keyOf(o, m.ID)
		}
	}
	t.Fatalf("%s: no such operation", folder)
	return ""
}

func outcome(t *testing.T, m *catalog.Operation, request string) []txtar.File {
	t.Helper()
	r, err := m.Accept(parse(t, request))
	if err != nil {
		return []txtar.File{{Name: "error.txt", Data: []byte(err.Error() + "\n")}}
	}
	whole := r.Source == nil && len(r.Uploads) == 0 // else a part of the request is beside the parameters
	again := parse(t, string(r.Params))
	again["model"] = m.Model.ID
	if again["resize_mode"] != nil && again["first_frame_image"] == nil {
		whole = false // a default that a request may not have without a frame
	}
	if whole {
		if second, err := m.Accept(again); err != nil || !bytes.Equal(second.Params, r.Params) {
			t.Errorf("the parameters as a request make %s, %v", second.Params, err)
		}
	}
	plan, err := json.Marshal(r.Plan)
	if err != nil {
		t.Fatal(err)
	}
	var charges bytes.Buffer
	for _, charge := range r.Charges {
		fmt.Fprintf(&charges, "%s: %d × %s a %s = %s\n", charge.Item, charge.Quantity, charge.UnitPrice, charge.Unit, charge.Amount())
	}
	fmt.Fprintf(&charges, "hold %s\n", price.Total(r.Charges))
	files := []txtar.File{{Name: "params.json", Data: indent(t, r.Params)}}
	for _, field := range slices.Sorted(maps.Keys(r.Uploads)) {
		files = append(files, txtar.File{Name: "upload " + field, Data: []byte(r.Uploads[field] + "\n")})
	}
	return append(files, []txtar.File{
		{Name: "plan.json", Data: indent(t, plan)},
		{Name: "charges.txt", Data: charges.Bytes()},
	}...)
}

func indent(t *testing.T, b []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	if err := json.Indent(&out, b, "", "  "); err != nil {
		t.Fatal(err)
	}
	out.WriteByte('\n')
	return out.Bytes()
}
