package guide

import (
	"bytes"
	_ "embed"
	"fmt"
	"html/template"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
)

// Root is the path of the pages. All links lead below it.
const Root = "/docs"

// Reference names the page of the OpenAPI document.
const Reference = "reference"

// Style is the style sheet of all pages.
//
//go:embed style.css
var Style []byte

//go:embed page.html
var pageHTML string

var layout = template.Must(template.New("page").Parse(pageHTML))

// Page is a guide.
type Page struct {
	Name     string // below Root: api, models/alpha-v3; "models" is that folder's README
	Title    string
	Markdown []byte
	body     template.HTML
}

// Guide is a set of pages.
type Guide struct {
	Pages []Page // sorted by name, the guides before the models
}

// New renders Markdown files: those of a folder and its folders, and then the models' pages, which
// are given by file name. It drops raw HTML, and keeps only the text of a link to a file that is no
// page.
func New(files fs.FS, models map[string][]byte) (*Guide, error) {
	var names []string
	sources := maps.Clone(models)
	if sources == nil {
		sources = map[string][]byte{}
	}
	for _, pattern := range []string{"*.md", "*/*.md"} {
		found, err := fs.Glob(files, pattern)
		if err != nil {
			return nil, err
		}
		for _, name := range found {
			if sources[name], err = fs.ReadFile(files, name); err != nil {
				return nil, err
			}
		}
		names = append(names, found...)
	}
	names = append(names, slices.Sorted(maps.Keys(models))...)
	g := &Guide{}
	for _, name := range names {
		p := Page{Name: pageOf(name), Markdown: sources[name]}
		if err := p.render(name, sources); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		g.Pages = append(g.Pages, p)
	}
	return g, nil
}

// pageOf returns the name of a file's page.
func pageOf(file string) string {
	name := strings.TrimSuffix(file, ".md")
	if path.Base(name) == "README" {
		return path.Dir(name)
	}
	return name
}

func (p *Page) render(file string, known map[string][]byte) error {
	markdown := goldmark.New(
		goldmark.WithExtensions(extension.Table), goldmark.WithParserOptions(parser.WithAutoHeadingID()),
	)
	doc := markdown.Parser().Parse(text.NewReader(p.Markdown))
	if heading, ok := doc.FirstChild().(*ast.Heading); ok {
		p.Title = strings.ReplaceAll(string(heading.Lines().Value(p.Markdown)), "`", "")
	}
	var dead []*ast.Link
	err := ast.Walk(doc, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		link, ok := n.(*ast.Link)
		if !ok || !entering {
			return ast.WalkContinue, nil
		}
		if to, ok := target(file, string(link.Destination), known); ok {
			link.Destination = []byte(to)
		} else {
			dead = append(dead, link)
		}
		return ast.WalkContinue, nil
	})
	if err != nil {
		return err
	}
	for _, link := range dead { // keep the words of the link
		for child := link.FirstChild(); child != nil; child = link.FirstChild() {
			link.Parent().InsertBefore(link.Parent(), link, child)
		}
		link.Parent().RemoveChild(link.Parent(), link)
	}
	var out bytes.Buffer
	if err := markdown.Renderer().Render(&out, p.Markdown, doc); err != nil {
		return err
	}
	p.body = template.HTML(out.String()) //nolint:gosec // goldmark leaves raw HTML and unsafe addresses out
	return nil
}

// target returns where a file's link leads on the site. ok is false for a file that is no page.
func target(file, link string, known map[string][]byte) (to string, ok bool) {
	name, fragment, has := strings.Cut(link, "#")
	if name == "" || strings.Contains(name, "://") {
		return link, true
	}
	name = path.Join(path.Dir(file), name)
	if known[name] == nil {
		return "", false
	}
	to = Root + "/" + pageOf(name)
	if has {
		to += "#" + fragment
	}
	return to, true
}

// frame is the data of the layout.
type frame struct {
	Root, Title string
	Pages       []Page
	Body        template.HTML
}

// HTML renders the page with the layout.
func (g *Guide) HTML(p Page) ([]byte, error) { return g.page(p.Title, p.body) }

func (g *Guide) page(title string, body template.HTML) ([]byte, error) {
	var out bytes.Buffer
	err := layout.Execute(&out, frame{Root: Root, Title: title, Pages: g.Pages, Body: body})
	return out.Bytes(), err
}

// Index renders the page that lists the others.
func (g *Guide) Index() ([]byte, error) {
	var out bytes.Buffer
	if err := indexLayout.Execute(&out, frame{Root: Root, Pages: g.Pages}); err != nil {
		return nil, err
	}
	return g.page("The gateway's documents", template.HTML(out.String())) //nolint:gosec // a template made it
}

var indexLayout = template.Must(template.New("index").Parse(`<h1>The gateway's documents</h1>
<ul>{{range .Pages}}<li><a href="{{$.Root}}/{{.Name}}">{{.Title}}</a> (<a href="{{$.Root}}/{{.Name}}.md">Markdown</a>)</li>
{{end}}<li><a href="{{.Root}}/` + Reference + `">Every call</a> (<a href="/openapi.json">OpenAPI</a>)</li></ul>
`))

// LLMs lists the pages for language models (https://llmstxt.org). The links begin with the
// address, and are relative if that is empty.
func (g *Guide) LLMs(address string) []byte {
	var out bytes.Buffer
	fmt.Fprintf(&out, `# mediagate

> One HTTP API in front of many vendors of generated video, images, music and speech. A job is submitted and acknowledged with a task_id; the task ends by itself.

- Every call sends the header "Authorization: Bearer KEY".
- GET /v1/models?expand=category lists the models, GET /v1/models/{model}/schema tells what a request to one may hold and what it costs.
- POST the request to the schema's endpoint, such as /v1/videos/generations or /v1/images/generations, with an Idempotency-Key so that it can be repeated.
- GET /v1/tasks/{task_id}?wait=60 answers at the task's end or after 60 seconds; ask again until its status is completed, failed or cancelled.
- GET /v1/tasks/{task_id}/files/1 leads to the first file of the result.
- POST /mcp speaks the Model Context Protocol, with the same keys.
- POST /v1/quote, with the same body and its path as endpoint, tells the price and charges nothing.

## Documents

`)
	for _, p := range g.Pages {
		fmt.Fprintf(&out, "- [%s](%s%s/%s.md)\n", p.Title, address, Root, p.Name)
	}
	fmt.Fprintf(&out, "- [Every call, as OpenAPI](%s/openapi.json)\n", address)
	return out.Bytes()
}
