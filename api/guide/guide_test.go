package guide_test

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/mediagate/mediagate/api/guide"
)

// A page is what its Markdown says, but for HTML in it, and links lead to pages or nowhere.
func TestPages(t *testing.T) {
	t.Parallel()
	g, err := guide.New(fstest.MapFS{
		"one.md": {Data: []byte("# One & only\n\n## A part\n\n[two](models/two.md#a-part) [up](../README.md) [all](models/README.md) [site](https://example.com) [bad](javascript:alert(1))\n\n<script>alert(1)</script>\n\n| a | b |\n|---|---|\n| 1 | <b>2</b> |\n")},
	}, map[string][]byte{
		"models/README.md": []byte("# Models\n\n[one](../one.md) [two](two.md)\n"),
		"models/two.md":    []byte("# Two\n\n## A part\n\ntext\n"),
	})
	if err != nil {
		t.Fatal(err)
	}
	pages := map[string]string{}
	for _, p := range g.Pages {
		text, err := g.HTML(p)
		if err != nil {
			t.Fatal(err)
		}
		pages[p.Name] = string(text)
	}
	if len(pages) != 3 {
		t.Fatalf("the pages are %v", pages)
	}
	one := pages["one"]
	for _, want := range []string{
		"<title>One &amp; only · mediagate</title>", `<h2 id="a-part">A part</h2>`, `href="/docs/models/two#a-part"`, "> up <", `href="/docs/models"`,
		`href="https://example.com"`, "<td>1</td>",
	} {
		if !strings.Contains(strings.ReplaceAll(one, "</a> up <a", "> up <"), want) {
			t.Errorf("the page lacks %s:\n%s", want, one)
		}
	}
	for _, never := range []string{"<script", "alert(1)</", "<b>", "javascript:", "README"} {
		if strings.Contains(one, never) {
			t.Errorf("the page has %s:\n%s", never, one)
		}
	}
	if models := pages["models"]; !strings.Contains(models, `href="/docs/one"`) || !strings.Contains(models, `href="/docs/models/two"`) {
		t.Errorf("the folder's page:\n%s", models)
	}
	if llms := string(g.LLMs("https://api.example.com")); !strings.HasPrefix(llms, "# mediagate\n\n> ") || !strings.Contains(llms, "\n- [Two](https://api.example.com/docs/models/two.md)\n") {
		t.Errorf("for language models:\n%s", llms)
	}
}
