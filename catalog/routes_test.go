package catalog_test

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/catalog"
)

// exchange is a golden file of an adapter: a job, what is sent to the vendor for
// it, its answers and what they mean.
type exchange struct {
	route     mediagate.Route
	params    []byte
	succeeded bool // in the end
}

// TestEachRouteHasItsExchange joins the golden files of this package, from a request to the
// stored task, with those of the adapters, from the task to the vendor and back. Each route of
// each operation needs one that submits and succeeds, with parameters that Accept makes of a
// request for that model.
func TestEachRouteHasItsExchange(t *testing.T) {
	t.Parallel()
	exchanges := readExchanges(t)
	for _, m := range load(t).Models() {
		for _, o := range m.Operations() {
			for _, route := range o.Routes() {
				found, whole := 0, 0
				for _, x := range exchanges {
					if x.route.Provider != route.Provider || x.route.Upstream != route.Upstream || x.route.Operation != route.Operation {
						continue
					}
					found++
					if x.succeeded && isCanonical(t, o, x.params) {
						whole++
					}
				}
				if whole == 0 {
					t.Errorf("%s %s: of %d exchanges of %s %s below providers/%s/testdata none succeeds with parameters that a request leads to",
						m.ID, o.Endpoint, found, route.Upstream, route.Operation, route.Provider)
				}
			}
		}
	}
}

// isCanonical reports parameters that Accept leaves as they are.
func isCanonical(t *testing.T, o *catalog.Operation, params []byte) bool {
	t.Helper()
	given := parse(t, string(params))
	given["model"] = o.Model.ID
	if rule := o.SourceRule(); rule != nil { // which a job has beside its parameters
		for _, field := range []string{rule.Task, rule.Clip, rule.Button} {
			given[field] = "source"
		}
	}
	r, err := o.Accept(given)
	return err == nil && cmp.Equal(parse(t, string(params)), parse(t, string(r.Params)))
}

func readExchanges(t *testing.T) []exchange {
	t.Helper()
	var found []exchange
	root := filepath.Join("..", "providers")
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(path) != ".txtar" {
			return err
		}
		archive, err := txtar.ParseFile(path)
		if err != nil {
			return err
		}
		below, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		var x exchange
		x.route.Provider, _, _ = strings.Cut(filepath.ToSlash(below), "/")
		submitted := false
		for _, file := range archive.Files {
			switch file.Name {
			case "job.json":
				var job struct{ Upstream, Operation string }
				if err := json.Unmarshal(file.Data, &job); err != nil {
					return err
				}
				x.route.Upstream, x.route.Operation = job.Upstream, job.Operation
			case "params.json":
				x.params = file.Data
			case "request-0":
				submitted = true
			}
			x.succeeded = x.succeeded || strings.HasPrefix(file.Name, "result-") && bytes.Contains(file.Data, []byte(`"succeeded": true`))
		}
		if submitted && x.params != nil {
			found = append(found, x)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(root); err != nil || len(found) < 20 {
		t.Fatalf("%d exchanges below %s: %v", len(found), root, err)
	}
	return found
}
