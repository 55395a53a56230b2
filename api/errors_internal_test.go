package api

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/mediagate/mediagate/docs"
)

// Each error has its row in the table of what to repeat, with its reason or for any.
func TestWhatToRepeatIsComplete(t *testing.T) {
	t.Parallel()
	page, err := docs.Pages.ReadFile("api.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(page), "\n### What to repeat\n")
	table, _, _ = strings.Cut(table, "\n### ")
	for _, r := range renderings {
		row := regexp.MustCompile(fmt.Sprintf("(?m)^\\| [^|]*\\b%d\\b[^|]*\\| (any |[^|]*`%s`)", r.status, r.reason))
		if !row.MatchString(table) {
			t.Errorf("no row of %d %s", r.status, r.reason)
		}
	}
}
