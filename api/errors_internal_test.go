package api

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/mediagate/mediagate/docs"
)

// TestRetryTableIsComplete checks that each error has a row in the table of retries, for its
// reason or for any.
func TestRetryTableIsComplete(t *testing.T) {
	t.Parallel()
	page, err := docs.Pages.ReadFile("api.md")
	must(t, err)
	_, table, _ := strings.Cut(string(page), "\n### What to repeat\n")
	table, _, _ = strings.Cut(table, "\n### ")
	for _, r := range renderings {
		row := regexp.MustCompile(fmt.Sprintf("(?m)^\\| [^|]*\\b%d\\b[^|]*\\| (any |[^|]*`%s`)", r.status, r.reason))
		if !row.MatchString(table) {
			t.Errorf("no row of %d %s", r.status, r.reason)
		}
	}
}
