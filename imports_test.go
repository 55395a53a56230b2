package mediagate_test

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/mediagate/mediagate"

// mayImport says which packages of ours each part may import directly, itself
// included; a name covers what is below it, "." is the root package.
func mayImport() map[string][]string {
	return map[string][]string{
		".":          nil,
		"client":     nil,
		"console":    nil,
		"docs":       nil,
		"failpoint":  nil,
		"freeport":   nil,
		"hint":       nil,
		"limit":      nil,
		"media":      {".", "limit"},
		"mcp":        {"catalog", "client"},
		"npmtest":    nil,
		"tracing":    nil,
		"billing":    {"."},
		"outbound":   {"."},
		"task":       {".", "billing"},
		"view":       {"."},
		"catalog":    {".", "billing", "media", "outbound"},
		"channel":    {".", "failpoint", "providers", "task"},
		"activities": {".", "billing", "channel", "failpoint", "limit", "media", "outbound", "providers", "task", "tracing", "view"},
		"workflows":  {".", "activities", "task", "tracing"},
		"worker":     {"workflows", "activities", "limit"},
		"providers":  {"."},
		"webhook":    {".", "outbound"},
		"metrics":    {".", "limit"},
		"moderation": {".", "outbound"},
		"storage":    {".", "freeport", "limit", "media", "task"}, // freeport in pgtest
		"sandbox":    nil,
		"api":        {".", "billing", "catalog", "client", "docs", "failpoint", "limit", "mcp", "media", "task", "tracing", "view"},
		"examples":   nil,
	}
}

func goList(t *testing.T, args ...string) []string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", append([]string{"list"}, args...)...).Output()
	if err != nil {
		t.Fatalf("go list %v: %v", args, err)
	}
	return strings.Split(strings.TrimSpace(string(out)), "\n")
}

// part is the first element of a package's path within the module.
func part(path string) string {
	rest := strings.TrimPrefix(strings.TrimPrefix(path, module), "/")
	if rest == "" {
		return "."
	}
	first, _, _ := strings.Cut(rest, "/")
	return first
}

func TestImports(t *testing.T) {
	t.Parallel()
	rules := mayImport()
	used := map[string]bool{}
	for _, line := range goList(t, "-f", `{{.ImportPath}} {{join .Imports " "}}`, module+"/...") {
		imports := strings.Fields(line)
		pkg := part(imports[0])
		allowed, ruled := rules[pkg]
		if !ruled {
			if pkg != "cmd" {
				t.Errorf("%s has no row in the table of import rules", imports[0])
			}
			continue
		}
		for _, imported := range imports[1:] {
			if imported != module && !strings.HasPrefix(imported, module+"/") {
				continue
			}
			to := part(imported)
			used[pkg+" "+to] = true
			if to != pkg && !slices.Contains(allowed, to) {
				t.Errorf("%s imports %s", imports[0], imported)
			}
		}
	}
	for pkg, allowed := range rules {
		for _, to := range allowed {
			if !used[pkg+" "+to] {
				t.Errorf("%s may import %s and does not", pkg, to)
			}
		}
	}
}

func TestRootUsesTheStandardLibraryOnly(t *testing.T) {
	t.Parallel()
	for _, dep := range goList(t, "-deps", "-f", "{{if not .Standard}}{{.ImportPath}}{{end}}", module) {
		if dep != "" && dep != module {
			t.Errorf("the root package depends on %s", dep)
		}
	}
}

// The production program holds no embedded server and no second database.
func TestProductionProgramIsLean(t *testing.T) {
	t.Parallel()
	for _, dep := range goList(t, "-deps", module+"/cmd/mediagate") {
		for _, heavy := range []string{"go.temporal.io/server", "versitygw", "ui-server", "sqlite", module + "/sandbox"} {
			if strings.Contains(dep, heavy) {
				t.Errorf("the production program depends on %s", dep)
			}
		}
	}
}

// Adapters know neither the web framework nor Temporal.
func TestAdaptersAreFreeOfFrameworks(t *testing.T) {
	t.Parallel()
	for _, dep := range goList(t, "-deps", module+"/providers/...") {
		for _, framework := range []string{"labstack/echo", "go.temporal.io", "gorm.io"} {
			if strings.Contains(dep, framework) {
				t.Errorf("the adapters depend on %s", dep)
			}
		}
	}
}
