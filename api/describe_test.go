package api

import (
	"errors"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/google/go-cmp/cmp"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/api/openapitest"
)

// TestRoutesAreDescribed checks that each public route is in one document, each admin route in
// the other, and that the documents have no other routes.
func TestRoutesAreDescribed(t *testing.T) {
	t.Parallel()
	public, operators := map[string]bool{}, map[string]bool{}
	for _, r := range routes() {
		page := r.path == consolePath || r.path == consoleFiles || strings.HasPrefix(r.path, docsPath) || r.path == llmsPath || r.path == mcpPath || r.envelope == envelopePage // for people, and of another protocol
		name := r.method + " " + regexp.MustCompile(`:(\w+)`).ReplaceAllString(r.path, "{$1}")
		switch {
		case r.access == accessAdmin:
			operators[name] = true
		case r.access != accessVendors && !page:
			public[name] = true
		}
	}
	admin, err := AdminDocument()
	must(t, err)
	compare := func(file string, routed map[string]bool, document []byte) {
		t.Helper()
		contract, err := openapitest.Parse(document)
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		if diff := cmp.Diff(slices.Sorted(maps.Keys(routed)), contract.Operations()); diff != "" {
			t.Errorf("%s lacks the operations that begin with -, and has those with + although no route is there:\n%s", file, diff)
		}
	}
	compare("api/openapi.yaml", public, described(t))
	compare("api/openapi_admin.yaml", operators, admin)
}

func described(t *testing.T) []byte {
	t.Helper()
	models := BuiltIn(t)
	text, err := describe(models, "", "")
	must(t, err)
	return text
}

// TestComponentsAreDescribed checks that each component and each of its properties has a
// description.
func TestComponentsAreDescribed(t *testing.T) {
	t.Parallel()
	for file, text := range map[string][]byte{"openapi.yaml": openAPIFile, "openapi_admin.yaml": adminOpenAPIFile} {
		var doc struct {
			Components struct {
				Schemas map[string]struct {
					Description string
					Properties  map[string]map[string]any
				}
			}
		}
		if err := yaml.Unmarshal(text, &doc); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		for name, schema := range doc.Components.Schemas {
			if schema.Description == "" {
				t.Errorf("%s: %s has no description", file, name)
			}
			for property, keywords := range schema.Properties {
				if keywords["description"] == nil && keywords["const"] == nil && keywords["$ref"] == nil {
					t.Errorf("%s: %s.%s has no description", file, name, property)
				}
			}
		}
	}
}

// TestListsAreDescribed checks that the enums of the document are those of the domain.
func TestListsAreDescribed(t *testing.T) {
	t.Parallel()
	type document struct {
		Components struct {
			Schemas map[string]struct {
				Enum       []string
				Properties map[string]struct{ Enum []string }
			}
		}
	}
	var doc, admin document
	must(t, errors.Join(yaml.Unmarshal(openAPIFile, &doc), yaml.Unmarshal(adminOpenAPIFile, &admin)))
	list := func(schema, property string, want []string) {
		t.Helper()
		if diff := cmp.Diff(want, doc.Components.Schemas[schema].Properties[property].Enum); diff != "" {
			t.Errorf("%s.%s (-code +document):\n%s", schema, property, diff)
		}
	}
	if diff := cmp.Diff(operatorActions, admin.Components.Schemas["CommandName"].Enum); diff != "" {
		t.Errorf("commands (-code +api/openapi_admin.yaml):\n%s", diff)
	}
	filters := slices.Sorted(maps.Keys(admin.Components.Schemas["TaskSelection"].Properties))
	if diff := cmp.Diff(slices.Sorted(slices.Values(operatorFilters)), filters); diff != "" {
		t.Errorf("filters (-code +api/openapi_admin.yaml):\n%s", diff)
	}
	list("ErrorA", "reason", reasons())
	list("Failure", "code", words(mediagate.FailureCodes()))
	list("Task", "status", words(mediagate.Statuses()))
	list("Task", "type", words(mediagate.TaskTypes()))
	list("Webhook", "state", words(mediagate.WebhookStates()))
}
