package catalog_test

import (
	"encoding/json"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/catalog"
	"github.com/mediagate/mediagate/media"
	"github.com/mediagate/mediagate/task/view"
)

var wholeURL = regexp.MustCompile(`"https?://[^" ]+"`)

// TestTaskFiles checks that a media field accepts the path of a task's file, and that the path is
// in Media and is not moderated as text.
func TestTaskFiles(t *testing.T) {
	t.Parallel()
	const file = "/v1/tasks/task_01KAJ5XW4M9Q7T2C8N6BVRE3HD/files/1"
	c, err := catalog.Load("", catalog.WithMediaURLCheck(func(string) error { return nil }))
	if err != nil {
		t.Fatal(err)
	}
	for _, pattern := range []string{"testdata/*/*.txtar", "testdata/*/*/*.txtar"} {
		names, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			archive, err := txtar.ParseFile(name)
			if err != nil {
				t.Fatal(err)
			}
			o := operationOf(t, c, goldenKey(t, c, filepath.Dir(name)))
			r, err := o.Accept(parse(t, string(archive.Files[0].Data)))
			if err != nil || r.Source != nil || !wholeURL.Match(r.Params) {
				continue
			}
			params := wholeURL.ReplaceAll(r.Params, []byte(`"`+file+`"`))
			body, err := view.Request(&mediagate.Task{Model: o.Model.ID, Params: params})
			if err != nil {
				t.Fatal(err)
			}
			for field, data := range r.Uploads {
				body[field] = data
			}
			r, err = o.Accept(body)
			if err != nil {
				t.Errorf("%s: %v", name, err)
				continue
			}
			var taken any
			if err := json.Unmarshal(r.Params, &taken); err != nil {
				t.Fatal(err)
			}
			named := 0
			for _, in := range r.Media {
				if media.FieldAt(taken, in.Field) == file {
					named++
				}
			}
			if all := len(regexp.MustCompile(file).FindAll(r.Params, -1)); named != all {
				t.Errorf("%s: %d of %d paths are media of %s", name, named, all, r.Params)
			}
			if slices.Contains(r.Prose, file) {
				t.Errorf("%s: the path is prose", name)
			}
		}
	}
}
