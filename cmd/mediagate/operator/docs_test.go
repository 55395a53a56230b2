package operator_test

import (
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/mediagate/mediagate/cmd/mediagate/operator"
)

// inDocs finds a command in a code span or a line of a code block, up to its comment.
var (
	inDocs = regexp.MustCompile("(?:^|[`\\s])(?:bin/)?mediagate ([a-z]+(?: [^`\n]*)?)")
	word   = regexp.MustCompile(`[^\s"]*"[^"]*"|[^\s"]+`)
)

// TestCommandsOfTheDocs checks that all commands and flags in the docs exist.
func TestCommandsOfTheDocs(t *testing.T) {
	t.Parallel()
	root := filepath.Join("..", "..", "..")
	files, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	pages, err := filepath.Glob(filepath.Join(root, "docs", "runbook", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	g := serve(t, http.StatusOK, `{"id":"x","data":[],"has_more":false,"status":"completed"}`)
	found := 0
	for _, file := range append(append(files, pages...), filepath.Join(root, "README.md")) {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			for _, m := range inDocs.FindAllStringSubmatch(line, -1) {
				said, _, _ := strings.Cut(m[1], " #")
				var args []string
				for _, w := range word.FindAllString(said, -1) {
					args = append(args, strings.NewReplacer(`"`, "", "TIME", "2026-03-01T12:00:00Z").Replace(w))
				}
				files := args[0] == "vendors" && len(args) > 1 && args[1] != "list" // those need no gateway
				if !operator.Has(args[0]) || len(args) < 3 || files {               // another's, or a mere name
					continue
				}
				found++
				g.requests()
				if code, _, stderr := run(t, g.env(), args...); code == 2 {
					t.Errorf("%s: %q is wrong use: %s", filepath.Base(file), m[1], stderr)
				}
			}
		}
	}
	if found < 20 {
		t.Errorf("%d commands were found in the docs, want many", found)
	}
}
