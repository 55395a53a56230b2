package readme_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/catalog"
	"github.com/mediagate/mediagate/cmd/mediagate/app"
	"github.com/mediagate/mediagate/internal/failpoint"
	"github.com/mediagate/mediagate/providers/all"
	"github.com/mediagate/mediagate/sandbox"
)

// documents are the names of all documents, from the root.
func documents(t *testing.T) []string {
	t.Helper()
	names := []string{"README.md", "CHANGELOG.md", "client/README.md"}
	for _, pattern := range []string{"docs/*.md", "docs/*/*.md"} {
		found, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range found {
			name, err := filepath.Rel(root, path)
			if err != nil {
				t.Fatal(err)
			}
			names = append(names, name)
		}
	}
	if len(names) < 10 {
		t.Fatalf("only %v: is this the project?", names)
	}
	return names
}

var (
	fence  = regexp.MustCompile("(?ms)^```.*?^```$")
	inline = regexp.MustCompile("`[^`]+`")
	link   = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	head   = regexp.MustCompile(`(?m)^#+ (.*)$`)
	other  = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
)

// code is what a document shows as code, a piece a line.
func code(text string) string {
	pieces := append(fence.FindAllString(text, -1), inline.FindAllString(fence.ReplaceAllString(text, ""), -1)...)
	return strings.Join(pieces, "\n")
}

// anchors are the ids that a document's headings get when it is rendered.
func anchors(text string) []string {
	var ids []string
	for _, match := range head.FindAllStringSubmatch(fence.ReplaceAllString(text, ""), -1) {
		id := other.ReplaceAllString(strings.ToLower(match[1]), "")
		ids = append(ids, strings.ReplaceAll(id, " ", "-"))
	}
	return ids
}

func TestLinksLeadSomewhere(t *testing.T) {
	t.Parallel()
	for _, name := range documents(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, match := range link.FindAllStringSubmatch(fence.ReplaceAllString(document(t, name), ""), -1) {
				if strings.Contains(match[1], "://") || strings.HasPrefix(match[1], "pictures/") { // made by make pictures
					continue
				}
				path, anchor, _ := strings.Cut(match[1], "#")
				target := name
				if path != "" {
					target = filepath.Join(filepath.Dir(name), path)
				}
				if _, err := os.Stat(filepath.Join(root, target)); err != nil {
					t.Errorf("%s: %v", match[1], err)
				} else if anchor != "" && !slices.Contains(anchors(document(t, target)), anchor) {
					t.Errorf("%s: no such heading among %q", match[1], anchors(document(t, target)))
				}
			}
		})
	}
}

func TestMakeTargetsExist(t *testing.T) {
	t.Parallel()
	makefile := document(t, "Makefile")
	for _, name := range documents(t) {
		for _, match := range regexp.MustCompile("(?m)(?:`|^)make ([a-z/]+)").FindAllStringSubmatch(code(document(t, name)), -1) {
			if !regexp.MustCompile(`(?m)^([a-z/]+ )*` + regexp.QuoteMeta(match[1]) + `( [a-z/]+)*:`).MatchString(makefile) {
				t.Errorf("%s names make %s", name, match[1])
			}
		}
	}
}

// Two versions of one row are what merges of texts leave behind.
func TestTablesSayEachThingOnce(t *testing.T) {
	t.Parallel()
	for _, name := range documents(t) {
		if filepath.Dir(name) == filepath.Join("docs", "models") {
			continue // made by a program, with a line for each combination
		}
		seen := map[string]bool{}
		for line := range strings.Lines(document(t, name)) {
			cells := strings.Split(line, "|")
			if !strings.HasPrefix(line, "|") || len(cells) < 3 {
				clear(seen)
				continue
			}
			if first := strings.TrimSpace(cells[1]); first != "" {
				if seen[first] {
					t.Errorf("%s: two rows of %s", name, first)
				}
				seen[first] = true
			}
		}
	}
}

// Each setting has its line with variable and flag, and each line its setting.
func TestConfigurationIsComplete(t *testing.T) {
	t.Parallel()
	var want []string
	for _, match := range regexp.MustCompile(`(?m)^  -(\S+) \((MEDIAGATE_\S+)\)$`).FindAllStringSubmatch(app.Usage(), -1) {
		want = append(want, match[2]+" -"+match[1])
	}
	var got []string
	line := regexp.MustCompile("(?m)^\\| `([a-z0-9_.]+)` \\| `(MEDIAGATE_[A-Z0-9_]+)`, `(-[a-z0-9-]+)` \\|")
	for _, match := range line.FindAllStringSubmatch(document(t, "docs/configuration.md"), -1) {
		got = append(got, match[2]+" "+match[3])
		if variable := "MEDIAGATE_" + strings.ToUpper(strings.ReplaceAll(match[1], ".", "_")); variable != match[2] {
			t.Errorf("%s stands beside %s", match[1], match[2])
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("settings, in their order (-code +document):\n%s", diff)
	}
}

// Each provider has its line among the channels, with all that a channel of it
// may name, and its vendor one among those that the sandbox plays.
func TestProvidersAreListed(t *testing.T) {
	t.Parallel()
	row := func(name, provider string) string {
		return regexp.MustCompile("(?m)^\\| `" + provider + "` \\|.*$").FindString(document(t, name))
	}
	for _, provider := range all.Builtin().Known() {
		settings := row("docs/configuration.md", provider)
		if settings == "" {
			t.Errorf("docs/configuration.md does not list %s", provider)
			continue
		}
		adapter, _ := all.Builtin().Adapter(provider)
		for _, name := range slices.Concat(adapter.Description.Credentials, adapter.Description.Options) {
			if !strings.Contains(settings, "`"+name+"`") {
				t.Errorf("docs/configuration.md does not name %s of %s", name, provider)
			}
		}
	}
	for _, channel := range sandbox.Channels("") {
		if !strings.Contains(row("docs/sandbox.md", channel.Provider), channel.Path+"`") {
			t.Errorf("docs/sandbox.md does not tell where %s is", channel.Provider)
		}
	}
}

// Each model is named where a reader looks for what is served.
func TestModelsAreListed(t *testing.T) {
	t.Parallel()
	models, err := catalog.Load("")
	if err != nil {
		t.Fatal(err)
	}
	for _, model := range models.Models() {
		for _, name := range []string{"README.md", "CHANGELOG.md"} {
			if !strings.Contains(document(t, name), "`"+model.ID+"`") {
				t.Errorf("%s does not name %s", name, model.ID)
			}
		}
	}
}

func TestFailpointsAreListed(t *testing.T) {
	t.Parallel()
	_, section, found := strings.Cut(document(t, "docs/testing.md"), "\n## Failpoints\n")
	if !found {
		t.Fatal("docs/testing.md has no section on failpoints")
	}
	var got []string
	for _, match := range regexp.MustCompile("(?m)^\\| `([a-z-]+)` \\|").FindAllStringSubmatch(section, -1) {
		got = append(got, match[1])
	}
	if diff := cmp.Diff(failpoint.Names(), got); diff != "" {
		t.Errorf("failpoints (-code +document):\n%s", diff)
	}
}

// Whoever reads why a task failed finds what that means.
func TestFailureCodesAreListed(t *testing.T) {
	t.Parallel()
	api := document(t, "docs/api.md")
	for _, code := range mediagate.FailureCodes() {
		if !strings.Contains(api, "\n| `"+string(code)+"` | ") {
			t.Errorf("docs/api.md does not explain %s", code)
		}
	}
}

// Whoever finds a parked task finds the page for it.
func TestEachParkReasonHasItsPage(t *testing.T) {
	t.Parallel()
	repairing := document(t, "docs/repairing.md")
	for _, reason := range []string{
		string(mediagate.ParkProviderAway), string(mediagate.ParkCredentials), string(mediagate.ParkFunds), string(mediagate.ParkSubmissionUnknown),
		string(mediagate.ParkChannelMissing), string(mediagate.ParkJobLost), string(mediagate.ParkResult), string(mediagate.ParkStorage), string(mediagate.ParkInternal),
	} {
		match := regexp.MustCompile("(?m)^\\| \\[`" + reason + "`\\]\\((runbook/[A-Za-z]+\\.md)\\)").FindStringSubmatch(repairing)
		if match == nil {
			t.Errorf("docs/repairing.md does not explain %s", reason)
			continue
		}
		if page := document(t, "docs/"+match[1]); !strings.HasPrefix(page, "# `"+reason+"`\n") {
			t.Errorf("%s is not about %s", match[1], reason)
		}
	}
}

// The table of rules names functions that are where it says.
func TestRulesLiveWhereArchitectureSays(t *testing.T) {
	t.Parallel()
	rows := regexp.MustCompile(`(?m)^\| (D\d+) \|[^|]*\| (.*) \|$`).FindAllStringSubmatch(document(t, "docs/architecture.md"), -1)
	if len(rows) != 21 {
		t.Errorf("%d rules, want 21", len(rows))
	}
	code, name := regexp.MustCompile("`([^`]+)`"), regexp.MustCompile(`^[A-Za-z]+$`)
	for _, row := range rows {
		file, text := "", ""
		for _, match := range code.FindAllStringSubmatch(row[2], -1) {
			switch word := match[1]; {
			case strings.HasSuffix(word, ".go"):
				file, text = word, document(t, word)
			case file == "" || !name.MatchString(word):
				// a setting, a column or a command
			case !regexp.MustCompile(`(?m)^func (\([^)]*\) )?` + word + `[(\[]`).MatchString(text):
				t.Errorf("%s: %s has no function %s", row[1], file, word)
			}
		}
	}
}

// section is the part of the document under the heading.
func section(t *testing.T, name, heading string) string {
	t.Helper()
	_, text, found := strings.Cut(document(t, name), "\n## "+heading+"\n")
	if !found {
		t.Fatalf("%s has no section %s", name, heading)
	}
	text, _, _ = strings.Cut(text, "\n## ")
	return text
}

// Whoever asks what a kill costs finds each point of the path.
func TestArchitectureSaysWhatEachCrashCosts(t *testing.T) {
	t.Parallel()
	var got []string
	for _, row := range regexp.MustCompile("(?m)^\\| (`[^|]*) \\|").FindAllStringSubmatch(section(t, "docs/architecture.md", "What a crash costs"), -1) {
		for _, match := range regexp.MustCompile("`([a-z-]+)`").FindAllStringSubmatch(row[1], -1) {
			got = append(got, match[1])
		}
	}
	if diff := cmp.Diff(failpoint.Names(), got); diff != "" {
		t.Errorf("failpoints (-code +document):\n%s", diff)
	}
}

// The reading order names files that are there, and says about how long they are.
func TestReadingOrder(t *testing.T) {
	t.Parallel()
	sum := 0
	for _, row := range regexp.MustCompile(`(?m)^\| ([^|]+) \| (\d+) \|`).FindAllStringSubmatch(section(t, "docs/architecture.md", "Reading order"), -1) {
		said, _ := strconv.Atoi(row[2])
		lines := 0
		for _, match := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(row[1], -1) {
			lines += strings.Count(document(t, match[1]), "\n")
		}
		if row[1] == "in all" {
			lines = sum
		}
		sum += lines
		if off := max(said-lines, lines-said); off > lines/10 {
			t.Errorf("%s: %d lines, the document says %d", row[1], lines, said)
		}
	}
	if sum == 0 {
		t.Error("the section names no files")
	}
}
