package catalog_test

import (
	"fmt"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/mediagate/mediagate/catalog"
)

// pruned returns the part of a value that a reader keeps.
func pruned(v any, keep *catalog.FieldMask) any {
	switch v := v.(type) {
	case map[string]any:
		out := map[string]any{}
		for name, value := range v {
			if inside := keep.Field(name); inside != nil {
				out[name] = pruned(value, inside)
			}
		}
		return out
	case []any:
		out := []any{}
		for i, value := range v {
			if inside := keep.At(i); inside != nil {
				out = append(out, pruned(value, inside))
			}
		}
		return out
	default:
		return v
	}
}

// TestFieldMaskIsAllThatAcceptReads puts odd values into each field of the golden requests. The
// complete body and the part that the mask selects must give the same result.
func TestFieldMaskIsAllThatAcceptReads(t *testing.T) {
	t.Parallel()
	c := load(t)
	odd := parse(t, `{"odd":[
		null, "", " ", "x", 5, -1, true, [], {}, [[]], [{}], {"a":1}, ["x"], [5], [null],
		{"reference":"r","other":{"reference":[1]}}, {"reference":{"a":1}}, [{"index":[1],"prompt":{"a":1},"duration":{}}],
		[{"index":1,"prompt":"a","duration":5,"more":[1,2]}], [{"name":["x"],"description":{},"element_input_urls":[{},"x"]}],
		"data:image/png;base64,AAAA", [{"url":"https://a.example/1.png","more":[1]}], [{"url":{"a":1}},{"url":["x"]}],
		["https://a.example/1.png",2,3,4,5,6,7,8,9,10,11,12], [{"element_id":1},{"element_id":2},{"element_id":3},{"element_id":4},{"x":1}]
	]}`)["odd"].([]any)
	files, err := filepath.Glob(filepath.Join("testdata", "*", "*.txtar"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		archive, err := txtar.ParseFile(file)
		if err != nil {
			t.Fatal(err)
		}
		m := operationOf(t, c, filepath.Base(filepath.Dir(file)))
		masks := []*catalog.FieldMask{c.FieldMask(m.Endpoint), c.FieldMask("")}
		request := parse(t, string(archive.Files[0].Data))
		names := []string{"unknown"}
		for name := range parse(t, string(m.Schema()))["properties"].(map[string]any) {
			names = append(names, name)
		}
		for _, name := range names {
			for _, value := range append(odd, request[name]) {
				request := parse(t, string(archive.Files[0].Data))
				request[name] = value
				want, wantErr := m.Accept(request)
				for _, mask := range masks {
					body, _ := pruned(request, mask).(map[string]any)
					got, err := m.Accept(body)
					if !reflect.DeepEqual(want, got) || fmt.Sprint(err) != fmt.Sprint(wantErr) {
						t.Errorf("%s with %s = %v: %v, want %v\n%s", file, name, value, err, wantErr, cmp.Diff(want, got))
					}
				}
			}
		}
	}
	if o := c.FieldMask("/v1/nothing"); o.Field("prompt") != nil || o.Field("model") == nil {
		t.Error("an endpoint without models reads the model at most")
	}
}
