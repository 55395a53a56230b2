package api

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/catalog"
)

// models is what clients can ask for: a catalog, the routes to vendors that go
// with it, and all that follows from the two. It never changes; a new catalog
// makes a new one, and a call uses one from its beginning to its end.
type models struct {
	catalog   *catalog.Catalog
	routes    Routes
	endpoints map[string]bool             // that take submits
	outlines  map[string]*catalog.Outline // of their bodies, and of the quote's
	bounds    map[string]int64            // of the same
	list      []listed                    // by id

	document  func() (*published, error) // their OpenAPI document, made when it is first asked for
	reference func() (*published, error) // and the page of it
}

// newModels prepares a catalog.
func (s *Server) newModels(c *catalog.Catalog, routes Routes) (*models, error) {
	m := &models{
		catalog: c, routes: routes,
		endpoints: map[string]bool{}, outlines: map[string]*catalog.Outline{}, bounds: map[string]int64{},
	}
	for _, endpoint := range catalog.Endpoints() {
		m.endpoints[endpoint.Path] = true
		m.outlines[endpoint.Path] = c.Outline(endpoint.Path)
		m.bounds[endpoint.Path] = largestBody(c, endpoint.Path)
	}
	m.outlines[openAIVideosPath], m.bounds[openAIVideosPath] = openAIOutline(c), m.bounds[videosPath]
	for _, name := range append(catalog.OpenAIPictureFields(), formatField) {
		m.outlines[imagesPath].Fields[name] = &catalog.Outline{}
	}
	m.bounds[editsPath] = formLimit
	m.outlines[quotePath] = c.Outline("")
	m.outlines[quotePath].Fields["endpoint"] = &catalog.Outline{}
	m.bounds[quotePath] = largestBody(c, "") + endpointRoom
	m.document = sync.OnceValues(func() (*published, error) { return s.publishedDocument(c) })
	m.reference = sync.OnceValues(func() (*published, error) { return publishedReference(m.document) })
	var err error
	m.list, err = listModels(c)
	return m, err
}

// Replace puts a new catalog in the place of the present one, and with it the
// routes that ask the adapters for its models. Calls under way go on with what
// they began with.
func (s *Server) Replace(c *catalog.Catalog, routes Routes) error {
	m, err := s.newModels(c, routes)
	if err != nil {
		return err
	}
	s.models.Store(m)
	return nil
}

// ModelEnds tells of the models with a known end, by id, the last day on which their vendors
// serve them. Aliases are left out.
func (s *Server) ModelEnds() map[string]time.Time {
	ends := map[string]time.Time{}
	for _, m := range s.models.Load().catalog.Models() {
		if m.ID == m.Canonical && !m.Ends.IsZero() {
			ends[m.ID] = m.Ends
		}
	}
	return ends
}

// endpointRoom is enough for what the body of a quote has beside the submit's:
// its endpoint.
const endpointRoom = 256

// largestBody is that of the models of an endpoint, without one of all models.
func largestBody(c *catalog.Catalog, endpoint string) int64 {
	var most int64
	for _, m := range c.Models() {
		for _, o := range m.Operations() {
			if endpoint == "" || o.Endpoint == endpoint {
				most = max(most, o.MaxBody)
			}
		}
	}
	if most == 0 {
		most = bodyLimit
	}
	return most
}

// canonical is the model's id where the name is an alias of it. One that is
// switched off by now has the name that it had.
func (m *models) canonical(name string) string {
	if known, ok := m.catalog.Model(name); ok {
		return known.Canonical
	}
	return name
}

// ownedBy is the owner that lists give for every model.
const ownedBy = "mediagate"

// listed is a model as the lists have it.
type listed struct {
	id, canonical string
	category      string
	operation     string // its word in contracts, empty without one
	created       int64
	ending        ending
	items         [detailAll + 1]json.RawMessage // by how much was asked for
}

// ending says when the vendor ceases to serve a model, if that is known, and what to use then.
type ending struct {
	Ends        string `json:"ends,omitempty"` // the last day, in UTC
	Replacement string `json:"replacement,omitempty"`
}

func endingOf(m *catalog.Model) ending {
	if m.Ends.IsZero() {
		return ending{}
	}
	return ending{m.Ends.Format(time.DateOnly), m.Replacement}
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
	ID            string   `json:"id"`
	Object        string   `json:"object"`
	Created       int64    `json:"created"`
	OwnedBy       string   `json:"owned_by"`
	EndpointTypes []string `json:"supported_endpoint_types"`
	ending
	Category   string      `json:"category,omitempty"`
	Tags       []string    `json:"capability_tags,omitempty"`
	Parameters *parameters `json:"parameters,omitempty"`
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
	one := listed{id: m.ID, canonical: m.Canonical, category: m.Category, operation: facts.Operation, created: m.Created.Unix(), ending: endingOf(m)}
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
	item := modelItem{ID: l.id, Object: "model", Created: l.created, OwnedBy: ownedBy, EndpointTypes: []string{"openai"}, ending: l.ending}
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
	switch c.asked() {
	case dialectAnthropic:
		return s.listForAnthropic(c, q)
	case dialectGemini:
		return s.handleGeminiModels(c)
	default:
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

// dialect is the service whose clients expect an answer of that shape.
type dialect uint8

const (
	dialectOurs dialect = iota
	dialectAnthropic
	dialectGemini
)

// asked is the dialect of whoever asks for models.
func (c *call) asked() dialect {
	switch header := c.Request().Header; {
	case header.Get("Anthropic-Version") != "":
		return dialectAnthropic
	case header.Get("X-Goog-Api-Key") != "" || c.query().Get("key") != "":
		return dialectGemini
	default:
		return dialectOurs
	}
}

// handleModel answers with one model of the list.
func (s *Server) handleModel(c *call) error {
	one, err := s.pathModel(c)
	if err != nil {
		return err
	}
	switch c.asked() {
	case dialectAnthropic:
		return c.cacheable(one.forAnthropic())
	case dialectGemini:
		return c.cacheable(one.forGemini())
	default:
		return c.cacheable(one.items[readExpand(c.query().Get("expand"))])
	}
}

func (s *Server) handleGeminiModel(c *call) error {
	one, err := s.pathModel(c)
	if err != nil {
		return err
	}
	return c.cacheable(one.forGemini())
}

// pathModel is the model of the list that the path names.
func (s *Server) pathModel(c *call) (listed, error) {
	id := c.pathText("model")
	models, err := s.visible(c)
	if err != nil {
		return listed{}, err
	}
	i, ok := slices.BinarySearchFunc(models, listed{id: id}, byID)
	if !ok {
		return listed{}, &mediagate.Error{Kind: mediagate.KindNotFound, Message: "model " + mediagate.Quote(id) + " not found", Param: "model"}
	}
	return models[i], nil
}

// pathText is a parameter of the path, which Echo leaves as it is where it is escaped.
func (c *call) pathText(name string) string {
	id := c.Param(name)
	if c.Request().URL.RawPath != "" {
		if plain, err := url.PathUnescape(id); err == nil {
			return plain
		}
	}
	return id
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

// The lists in the shapes of other services, for their clients.

// mostListed is the largest page of such a list.
const mostListed = 1000

// anthropicList is a page as clients of Anthropic read it.
type anthropicList struct {
	Data    []anthropicModel `json:"data"`
	FirstID *string          `json:"first_id"`
	LastID  *string          `json:"last_id"`
	HasMore bool             `json:"has_more"`
}

type anthropicModel struct {
	Type        string `json:"type"`
	ID          string `json:"id"`
	DisplayName string `json:"display_name"`
	CreatedAt   string `json:"created_at"`
}

func (l listed) forAnthropic() anthropicModel {
	return anthropicModel{Type: "model", ID: l.id, DisplayName: l.id, CreatedAt: time.Unix(l.created, 0).UTC().Format(time.RFC3339)}
}

func (s *Server) listForAnthropic(c *call, q url.Values) error {
	limit, err := intQuery(q, "limit", 1, mostListed, defaultLimit)
	if err != nil {
		return err
	}
	models, err := s.visible(c)
	if err != nil {
		return err
	}
	begin, end := 0, len(models)
	if begin, err = place(models, q, "after_id", begin-1); err != nil {
		return err
	}
	if end, err = place(models, q, "before_id", end); err != nil {
		return err
	}
	models = models[min(begin+1, end):end]
	more := len(models) > limit
	switch {
	case !more:
	case q.Get("before_id") != "" && q.Get("after_id") == "":
		models = models[len(models)-limit:] // those right before it
	default:
		models = models[:limit]
	}
	page := anthropicList{Data: make([]anthropicModel, 0, len(models)), HasMore: more}
	for _, one := range models {
		page.Data = append(page.Data, one.forAnthropic())
	}
	if len(models) > 0 {
		page.FirstID, page.LastID = &models[0].id, &models[len(models)-1].id
	}
	return c.cacheable(page)
}

// place is where the model stands that a parameter names.
func place(models []listed, q url.Values, name string, absent int) (int, error) {
	id := q.Get(name)
	if id == "" {
		return absent, nil
	}
	i, ok := slices.BinarySearchFunc(models, listed{id: id}, byID)
	if !ok {
		return 0, mediagate.Invalid(name, "%s must be the id of a model in the list", name)
	}
	return i, nil
}

// geminiList is a page as clients of Gemini read it.
type geminiList struct {
	Models []geminiModel `json:"models"`
	Next   string        `json:"nextPageToken,omitempty"`
}

type geminiModel struct {
	Name        string   `json:"name"`
	DisplayName string   `json:"displayName"`
	Methods     []string `json:"supportedGenerationMethods"`
}

func (l listed) forGemini() geminiModel {
	item := geminiModel{Name: "models/" + l.id, DisplayName: l.id, Methods: []string{}}
	if l.operation != "" {
		item.Methods = append(item.Methods, l.operation)
	}
	return item
}

// defaultPageSize is how many models a page of Gemini's shape has.
const defaultPageSize = 50

func (s *Server) handleGeminiModels(c *call) error {
	q := c.query()
	size, err := intQuery(q, "pageSize", 1, mostListed, defaultPageSize)
	if err != nil {
		return err
	}
	models, err := s.visible(c)
	if err != nil {
		return err
	}
	if token := q.Get("pageToken"); token != "" {
		last, err := base64.RawURLEncoding.DecodeString(token)
		if err != nil {
			return mediagate.Invalid("pageToken", "pageToken must be the nextPageToken of a page before")
		}
		// The model itself may be gone since.
		begin, there := slices.BinarySearchFunc(models, listed{id: string(last)}, byID)
		if there {
			begin++
		}
		models = models[begin:]
	}
	page := geminiList{Models: make([]geminiModel, 0, min(size, len(models)))}
	if len(models) > size {
		models = models[:size]
		page.Next = base64.RawURLEncoding.EncodeToString([]byte(models[size-1].id))
	}
	for _, one := range models {
		page.Models = append(page.Models, one.forGemini())
	}
	return c.cacheable(page)
}

// foreignKeys are the keys where clients of Anthropic and Gemini put them.
func (c *call) foreignKeys() []string {
	header := c.Request().Header
	keys := slices.Concat(header.Values("X-Api-Key"), header.Values("X-Goog-Api-Key"), c.query()["key"])
	return slices.DeleteFunc(keys, func(key string) bool { return key == "" })
}
