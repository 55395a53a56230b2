package mediagate_test

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/mediagate/mediagate"

// rule is a row of the table of packages: what a package, or every package
// below a folder, may import of the module.
type rule struct {
	name  string // "." or a path; with /* all packages below it
	allow []string
}

func (r rule) covers(path string) bool { return matches(r.name, path) }

func (r rule) allows(path string) bool {
	return slices.ContainsFunc(r.allow, func(pattern string) bool { return pattern == "*" || matches(pattern, path) })
}

// matches compares a path below the module with a pattern.
func matches(pattern, path string) bool {
	if folder, below := strings.CutSuffix(pattern, "/*"); below {
		return strings.HasPrefix(path, folder+"/")
	}
	return pattern == path
}

func rules(t *testing.T) []rule {
	t.Helper()
	page, err := os.ReadFile("docs/architecture.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, found := strings.Cut(string(page), "\n| package | owns | may import |\n|---|---|---|\n")
	if !found {
		t.Fatal("docs/architecture.md has no table of packages")
	}
	table, _, _ = strings.Cut(table, "\n\n")
	var list []rule
	row, word := regexp.MustCompile("^\\| `([^`]+)` \\|.*\\| ([^|]*) \\|$"), regexp.MustCompile("`([^`]+)`")
	for line := range strings.Lines(table) {
		match := row.FindStringSubmatch(strings.TrimSpace(line))
		if match == nil {
			t.Fatalf("not readable: %s", line)
		}
		r := rule{name: match[1]}
		for _, m := range word.FindAllStringSubmatch(match[2], -1) {
			r.allow = append(r.allow, m[1])
		}
		if strings.Contains(match[2], "root") {
			r.allow = append(r.allow, ".")
		}
		if match[2] == "everything" {
			r.allow = []string{"*"}
		}
		if len(r.allow) == 0 && match[2] != "nothing" {
			t.Fatalf("not readable: %s", line)
		}
		list = append(list, r)
	}
	return list
}

// local is the path of a package below the module; "." is its root.
func local(path string) (string, bool) {
	if path == module {
		return ".", true
	}
	return strings.CutPrefix(path, module+"/")
}

// The table of packages is what the code does: every package has its row, and
// imports nothing that the row lacks.
func TestImportsAreThoseOfTheTable(t *testing.T) {
	t.Parallel()
	list := rules(t)
	cmd := exec.CommandContext(t.Context(), "go", "list", "-json=ImportPath,Imports", "./...")
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	used := map[string][]string{} // the packages of ours that a row imports, by its name
	for decoder := json.NewDecoder(strings.NewReader(string(out))); ; {
		var pkg struct {
			ImportPath string
			Imports    []string
		}
		if err := decoder.Decode(&pkg); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		name, _ := local(pkg.ImportPath)
		at := slices.IndexFunc(list, func(r rule) bool { return r.covers(name) })
		if at < 0 {
			t.Errorf("%s has no row in docs/architecture.md", name)
			continue
		}
		row := list[at]
		used[row.name] = append(used[row.name], name)
		for _, path := range pkg.Imports {
			path, ours := local(path)
			if !ours {
				continue
			}
			used[row.name] = append(used[row.name], path)
			if !row.allows(path) {
				t.Errorf("%s imports %s, which its row lacks", name, path)
			}
		}
	}
	for _, r := range list {
		if len(used[r.name]) == 0 {
			t.Errorf("the row %s has no package", r.name)
			continue
		}
		for _, pattern := range r.allow {
			imported := func(path string) bool { return pattern == "*" || matches(pattern, path) }
			if !slices.ContainsFunc(used[r.name], imported) {
				t.Errorf("%s may import %s and does not", r.name, pattern)
			}
		}
	}
}

// The table is of direct imports; these hold through any number of steps.
func TestWhatMustNotBeReached(t *testing.T) {
	t.Parallel()
	const echo, temporal, gorm, standalone = "github.com/labstack/echo", "go.temporal.io", "gorm.io", module + "/standalone"
	for name, tc := range map[string]struct {
		packages []string
		never    []string
	}{
		"adapters":   {[]string{"./providers/..."}, []string{echo, temporal, gorm}},
		"pure":       {[]string{"./task", "./catalog", "./internal/outbound", "./internal/webhook"}, []string{echo, temporal, gorm}},
		"channel":    {[]string{"./channel"}, []string{echo, temporal, gorm}},
		"workflows":  {[]string{"./workflows", "./activities", "./worker"}, []string{echo, gorm}},
		"api":        {[]string{"./api"}, []string{gorm}},
		"storage":    {[]string{"./storage", "./storage/blob"}, []string{echo, temporal}},
		"sandbox":    {[]string{"./sandbox/..."}, []string{echo, temporal, gorm}},
		"production": {[]string{"./cmd/..."}, []string{"go.temporal.io/server", "github.com/temporalio/ui-server", "github.com/versity", "modernc.org/sqlite", "gorm.io/driver/sqlite", "k8s.io", "sigs.k8s.io", module + "/storage/sqlite", standalone}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cmd := exec.CommandContext(t.Context(), "go", append([]string{"list", "-deps"}, tc.packages...)...)
			out, err := cmd.Output()
			if err != nil {
				t.Fatal(err)
			}
			for path := range strings.FieldsSeq(string(out)) {
				for _, never := range tc.never {
					if path == never || strings.HasPrefix(path, never+"/") {
						t.Errorf("reaches %s", path)
					}
				}
			}
		})
	}
}

func TestRootUsesTheStandardLibraryOnly(t *testing.T) {
	t.Parallel()
	out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", "-f", "{{if not .Standard}}{{.ImportPath}}{{end}}", ".").Output()
	if err != nil {
		t.Fatal(err)
	}
	if deps := strings.Fields(string(out)); len(deps) != 1 || deps[0] != module {
		t.Errorf("the root package depends on %v", deps)
	}
}
