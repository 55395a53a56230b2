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
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/catalog"
	"github.com/mediagate/mediagate/catalog/price"
	"github.com/mediagate/mediagate/task/view"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// TestGolden accepts the request of each testdata/MODEL/*.txtar and compares the result: the
// parameters, the plan and the charges, or the error.
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
	again(t, m, r)
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

// again checks that an accepted request, in the form that clients read back, makes the same
// request. That form omits media that came in the body, so again adds them.
func again(t *testing.T, o *catalog.Operation, r catalog.Request) {
	t.Helper()
	asked := mediagate.Task{Model: o.Model.ID, Params: r.Params}
	if r.Source != nil {
		fields, err := json.Marshal(r.Source.Fields)
		if err != nil {
			t.Fatal(err)
		}
		asked.Plan.Source = &mediagate.Source{Fields: fields}
	}
	body, err := view.Request(&asked)
	if err != nil {
		t.Fatal(err)
	}
	for field, media := range r.Uploads {
		body[field] = media
	}
	if err := o.RefuseUnknown(slices.Collect(maps.Keys(body))); err != nil {
		t.Errorf("a strict key may not send the body: %v", err)
	}
	second, err := o.Accept(body)
	if err != nil {
		t.Errorf("the request as a body is refused: %v", err)
		return
	}
	r.Webhook, r.Reference, r.Folded = "", "", second.Folded // no part of what is made
	if diff := cmp.Diff(r, second, cmpopts.IgnoreUnexported(catalog.Source{})); diff != "" {
		t.Errorf("the request as a body makes another one: %s", diff)
	}
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
