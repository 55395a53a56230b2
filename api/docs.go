package api

import (
	"strings"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/api/guide"
	"github.com/mediagate/mediagate/catalog"
	"github.com/mediagate/mediagate/docs"
)

const (
	docsPath = guide.Root
	llmsPath = "/llms.txt"

	docsPolicy = "default-src 'none'; style-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)

// library is the rendered guides: those of the program, and a page for each model that the group
// default may use, at its prices, since the guides are read without a key.
type library struct {
	guide *guide.Guide
	pages map[string]*published // by path
}

func (s *Server) newLibrary(c *catalog.Catalog) (*library, error) {
	everybody, found := s.groups[defaultGroup]
	models, err := c.Pages(catalog.Readers{
		Currency: s.cfg.Currency, Factor: everybody.factor,
		Allowed: func(m *catalog.Model) bool { return found && matchesAny(everybody.models, m.ID, m.Canonical) },
	})
	if err != nil {
		return nil, err
	}
	g, err := guide.New(docs.Pages, models)
	if err != nil {
		return nil, err
	}
	l := &library{guide: g, pages: map[string]*published{}}
	add := func(path, format string, text []byte) {
		l.pages[path] = publish(text)
		l.pages[path].format = format
	}
	const page, markdown = "text/html; charset=utf-8", "text/markdown; charset=utf-8"
	index, err := g.Index()
	if err != nil {
		return nil, err
	}
	add(docsPath, page, index)
	add(docsPath+"/style.css", "text/css; charset=utf-8", guide.Style)
	operators, err := guide.New(docs.OperatorPages, nil) // not listed among the guides
	if err != nil {
		return nil, err
	}
	for _, g := range []*guide.Guide{g, operators} {
		for _, p := range g.Pages {
			text, err := g.HTML(p)
			if err != nil {
				return nil, err
			}
			add(docsPath+"/"+p.Name, page, text)
			add(docsPath+"/"+p.Name+".md", markdown, p.Markdown)
		}
	}
	return l, nil
}

// handleDocs serves a guide.
func (s *Server) handleDocs(c *call) error {
	l, err := c.models.documents()
	if err != nil {
		return err
	}
	path := c.Request().URL.Path
	page := l.pages[path]
	if path == docsPath+"/"+guide.Reference {
		page, err = c.models.reference()
	}
	if err == nil && page == nil {
		err = errRoute(c.Request())
	}
	if err != nil {
		return err
	}
	header := c.Response().Header()
	header.Set("Content-Security-Policy", docsPolicy)
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Referrer-Policy", "no-referrer")
	c.publish(page)
	return nil
}

// publishedReference renders the OpenAPI document as a page.
func (m *models) publishedReference() (*published, error) {
	text, err := m.document()
	if err != nil {
		return nil, err
	}
	l, err := m.documents()
	if err != nil {
		return nil, err
	}
	html, err := l.guide.Reference(text.plain)
	if err != nil {
		return nil, &mediagate.Error{Kind: mediagate.KindInternal, Message: "rendering the reference", Err: err}
	}
	p := publish(html)
	p.format = "text/html; charset=utf-8"
	return p, nil
}

// handleLLMs lists the guides for language models.
func (s *Server) handleLLMs(c *call) error {
	l, err := c.models.documents()
	if err != nil {
		return err
	}
	p := publish(l.guide.LLMs(strings.TrimSuffix(s.cfg.PublicURL, "/")))
	p.format = "text/plain; charset=utf-8"
	c.publish(p)
	return nil
}
