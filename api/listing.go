package api

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/catalog"
)

// ownedBy is the owner that lists give for every model.
const ownedBy = "mediagate"

// listed is a model as the lists have it.
type listed struct {
	id, canonical string
	category      string
	operation     string // its word in contracts, empty without one
	created       int64
	items         [detailAll + 1]json.RawMessage // by how much was asked for
}

// detail is how much of a model a list tells.
type detail int

const (
	detailBasic      detail = iota
	detailCategory          // and what kind of model it is
	detailParameters        // and what a request may hold
	detailAll        = detailParameters
)

// modelItem is one model of the list.
type modelItem struct {
	ID            string      `json:"id"`
	Object        string      `json:"object"`
	Created       int64       `json:"created"`
	OwnedBy       string      `json:"owned_by"`
	EndpointTypes []string    `json:"supported_endpoint_types"`
	Category      string      `json:"category,omitempty"`
	Tags          []string    `json:"capability_tags,omitempty"`
	Parameters    *parameters `json:"parameters,omitempty"`
}

// listModels makes the list of a catalog: whatever a client may see of a model
// is written once.
func listModels(c *catalog.Catalog) ([]listed, error) {
	list := make([]listed, 0, len(c.Models()))
	for _, m := range c.Models() {
		one, err := listModel(m)
		if err != nil {
			return nil, err
		}
		list = append(list, one)
	}
	return list, nil
}

func listModel(m *catalog.Model) (listed, error) {
	facts, _ := m.Type.Facts()
	one := listed{id: m.ID, canonical: m.Canonical, category: m.Category, operation: facts.Operation, created: m.Created.Unix()}
	return one, one.write(m.Tags, parametersOf(m))
}

// unlisted is a model that a key names and the catalog lacks. It has a contract
// where a channel serves it.
func unlisted(c *catalog.Catalog, id string, created int64) (listed, error) {
	if m, ok := c.Passthrough(id); ok {
		return listModel(m)
	}
	one := listed{id: id, canonical: id, category: mediagate.CategoryUnknown, created: created}
	return one, one.write(nil, nil)
}

// write makes the items.
func (l *listed) write(tags []string, p *parameters) error {
	item := modelItem{ID: l.id, Object: "model", Created: l.created, OwnedBy: ownedBy, EndpointTypes: []string{"openai"}}
	for detail := range l.items {
		switch detail {
		case int(detailCategory):
			item.Category, item.Tags = l.category, tags
		case int(detailParameters):
			item.Parameters = p
		}
		var err error
		if l.items[detail], err = encode(item); err != nil {
			return err
		}
	}
	return nil
}

// visible lists what the caller may see, by id: the models of the catalog that
// its group and its key allow, and those that its key names to the letter.
func (s *Server) visible(c *call) ([]listed, error) {
	rights := s.rightsOf(c)
	var list []listed
	for _, one := range c.models.list {
		if rights.allow(one.id, one.canonical) {
			list = append(list, one)
		}
	}
	for _, name := range c.caller.key.Models {
		if !literal(name) || !rights.allow(name) {
			continue
		}
		if _, ok := c.models.catalog.Model(name); ok {
			continue
		}
		one, err := unlisted(c.models.catalog, name, c.caller.key.CreatedAt.Unix())
		if err != nil {
			return nil, err
		}
		list = append(list, one)
	}
	slices.SortFunc(list, byID)
	return slices.CompactFunc(list, func(a, b listed) bool { return a.id == b.id }), nil
}

func byID(a, b listed) int { return cmp.Compare(a.id, b.id) }

// literal reports an entry of a key's list that names one model.
func literal(pattern string) bool { return !strings.Contains(pattern, "*") }

// modelList is the list in its own shape, of items that are written already or
// not yet.
type modelList[T any] struct {
	Success bool   `json:"success"`
	Object  string `json:"object"`
	Data    []T    `json:"data"`
}

// categories are the words of the list's filter.
var categories = []string{"chat", "image", "video", "audio", mediagate.CategoryUnknown}

// handleModels lists the models in the shape of those whose client asks.
func (s *Server) handleModels(c *call) error {
	q := c.query()
	switch {
	case c.Request().Header.Get("Anthropic-Version") != "":
		return s.listForAnthropic(c, q)
	case c.Request().Header.Get("X-Goog-Api-Key") != "" || q.Get("key") != "":
		return s.handleGeminiModels(c)
	}
	detail := readExpand(q.Get("expand"))
	category := ""
	if detail > detailBasic {
		var err error
		if category, err = oneOfQuery(q, "category", categories...); err != nil {
			return err
		}
	}
	models, err := s.visible(c)
	if err != nil {
		return err
	}
	page := modelList[json.RawMessage]{Success: true, Object: "list", Data: make([]json.RawMessage, 0, len(models))}
	for _, one := range models {
		if category == "" || one.category == category {
			page.Data = append(page.Data, one.items[detail])
		}
	}
	return c.cacheable(page)
}

// readExpand reads a list of words. With one that is none, none counts.
func readExpand(text string) detail {
	most := detailBasic
	for word := range strings.SplitSeq(text, ",") {
		switch strings.TrimSpace(word) {
		case "category":
			most = max(most, detailCategory)
		case "parameters":
			most = max(most, detailParameters)
		default:
			return detailBasic
		}
	}
	return most
}
