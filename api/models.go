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

// models is what clients can ask for: a catalog, the routes to vendors that go with it, and what
// follows from the two. It is immutable. A new catalog makes a new value, and a call uses the
// same one from beginning to end.
type models struct {
	catalog    *catalog.Catalog
	routes     Routes
	endpoints  map[string]bool               // the paths that take submits
	fieldMasks map[string]*catalog.FieldMask // for their bodies and the quote's
	bounds     map[string]int64              // in bytes, for the same bodies
	list       []listedModel                 // sorted by id

	// These are rendered on first use: the OpenAPI document, the guides, and the document's page.
	document  func() (*published, error)
	documents func() (*library, error)
	reference func() (*published, error)
}

// newModels prepares a catalog.
func (s *Server) newModels(c *catalog.Catalog, routes Routes) (*models, error) {
	m := &models{
		catalog: c, routes: routes,
		endpoints: map[string]bool{}, fieldMasks: map[string]*catalog.FieldMask{}, bounds: map[string]int64{},
	}
	for _, endpoint := range catalog.Endpoints() {
		m.endpoints[endpoint.Path] = true
		m.fieldMasks[endpoint.Path] = c.FieldMask(endpoint.Path)
		m.bounds[endpoint.Path] = largestBody(c, endpoint.Path)
	}
	m.fieldMasks[openAIVideosPath], m.bounds[openAIVideosPath] = openAIFieldMask(c), m.bounds[videosPath]
	for _, name := range append(catalog.OpenAIPictureFields(), formatField) {
		m.fieldMasks[imagesPath].Fields[name] = &catalog.FieldMask{}
	}
	m.bounds[editsPath] = formLimit
	m.fieldMasks[quotePath] = c.FieldMask("")
	m.fieldMasks[quotePath].Fields["endpoint"] = &catalog.FieldMask{}
	m.bounds[quotePath] = largestBody(c, "") + endpointRoom
	m.document = sync.OnceValues(func() (*published, error) { return s.publishedDocument(c) })
	m.documents = sync.OnceValues(func() (*library, error) { return s.newLibrary(c) })
	m.reference = sync.OnceValues(m.publishedReference)
	var err error
	m.list, err = listModels(c)
	return m, err
}

// Replace puts a new catalog in force, together with the routes that ask the adapters about its
// models. Calls in progress keep the catalog and the routes that they began with.
func (s *Server) Replace(c *catalog.Catalog, routes Routes) error {
	m, err := s.newModels(c, routes)
	if err != nil {
		return err
	}
	s.models.Store(m)
	return nil
}

// ModelEnds returns the last day on which the vendor serves a model, by id, for the models whose
// end is known. Aliases are left out.
func (s *Server) ModelEnds() map[string]time.Time {
	ends := map[string]time.Time{}
	for _, m := range s.models.Load().catalog.Models() {
		if m.ID == m.Canonical && !m.Ends.IsZero() {
			ends[m.ID] = m.Ends
		}
	}
	return ends
}

// endpointRoom is how much larger the body of a quote may be than that of its submit, since it
// also names the endpoint.
const endpointRoom = 256

// largestBody returns the largest body limit among the models of an endpoint, or among all models
// if endpoint is empty.
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

// canonical returns the model id that the name is an alias of. It returns a name that the catalog
// does not know unchanged: the model may have been switched off.
func (m *models) canonical(name string) string {
	if known, ok := m.catalog.Model(name); ok {
		return known.Canonical
	}
	return name
}

// ownedBy is the owner that lists give for every model.
const ownedBy = "mediagate"

// listedModel is a model as the lists show it.
type listedModel struct {
	id, canonical string
	category      string
	operation     string // the name of its operation in contracts; empty if it has no contract
	created       int64
	ending        ending
	shapes        [detailAll + 1]modelItem       // by level of detail
	items         [detailAll + 1]json.RawMessage // the same, encoded
	prices        []catalog.PriceSpan            // of its operations; none if the catalog lacks the model
}

// ending is the last day on which the vendor serves a model, if it is known, and the model to use
// instead.
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

// detail is how much a list shows of a model.
type detail int

const (
	detailBasic      detail = iota
	detailCategory          // also the category and tags
	detailParameters        // also what a request may hold
	detailAll        = detailParameters
)

// expansion is what a request for models adds to the basic form.
type expansion struct {
	detail  detail
	pricing bool // what the models cost
}

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

// pricedItem is a model with its prices. They depend on the caller's group, so the item is encoded
// for each call.
type pricedItem struct {
	modelItem
	Pricing *modelPricing `json:"pricing,omitempty"`
}

// modelPricing is the range of a model's unit prices over all operations that make a task.
type modelPricing struct {
	Currency   string           `json:"currency"`
	Unit       string           `json:"unit"` // what the lowest price is for
	From       json.Number      `json:"from"`
	To         json.Number      `json:"to"`
	Operations []operationPrice `json:"operations"`
}

// operationPrice is the range of an operation's unit prices.
type operationPrice struct {
	Endpoint string      `json:"endpoint"`
	Unit     string      `json:"unit"`
	From     json.Number `json:"from"`
	To       json.Number `json:"to"`
}

// pricingOf returns the prices of a model at the rights of the caller, or nil for a model that the
// catalog lacks.
func (s *Server) pricingOf(l listedModel, r rights) *modelPricing {
	if len(l.prices) == 0 {
		return nil
	}
	p := &modelPricing{Currency: s.cfg.Currency}
	least, most := l.prices[0], l.prices[0].To
	for _, span := range l.prices {
		if span.From < least.From {
			least = span
		}
		most = max(most, span.To)
		p.Operations = append(p.Operations, operationPrice{
			Endpoint: span.Endpoint, Unit: string(span.Unit),
			From: r.factor.Price(span.From).Number(), To: r.factor.Price(span.To).Number(),
		})
	}
	p.Unit, p.From, p.To = string(least.Unit), r.factor.Price(least.From).Number(), r.factor.Price(most).Number()
	return p
}

// listItem encodes a model as the caller asks for it.
func (s *Server) listItem(c *call, l listedModel, e expansion) (json.RawMessage, error) {
	if !e.pricing {
		return l.items[e.detail], nil
	}
	return encode(pricedItem{l.shapes[e.detail], s.pricingOf(l, s.rightsOf(c))})
}

// listModels makes the list of a catalog. Each item is encoded only once.
func listModels(c *catalog.Catalog) ([]listedModel, error) {
	list := make([]listedModel, 0, len(c.Models()))
	for _, m := range c.Models() {
		one, err := listModel(m)
		if err != nil {
			return nil, err
		}
		list = append(list, one)
	}
	return list, nil
}

func listModel(m *catalog.Model) (listedModel, error) {
	facts, _ := m.Type.Facts()
	one := listedModel{
		id:        m.ID,
		canonical: m.Canonical,
		category:  m.Category,
		operation: facts.Operation,
		created:   m.Created.Unix(),
		ending:    endingOf(m),
	}
	var err error
	if one.prices, err = m.PriceSpans(); err != nil {
		return one, err
	}
	return one, one.write(m.Tags, contractOf(m, m.Operations()[0]))
}

// unlistedModel returns a model that a key names but the catalog does not have. It has a contract
// if a channel passes it through.
func unlistedModel(c *catalog.Catalog, id string, created int64) (listedModel, error) {
	if m, ok := c.Passthrough(id); ok {
		return listModel(m)
	}
	one := listedModel{id: id, canonical: id, category: mediagate.CategoryUnknown, created: created}
	return one, one.write(nil, nil)
}

// write encodes the items.
func (l *listedModel) write(tags []string, p *parameters) error {
	item := modelItem{
		ID:            l.id,
		Object:        "model",
		Created:       l.created,
		OwnedBy:       ownedBy,
		EndpointTypes: []string{"openai"},
		ending:        l.ending,
	}
	for detail := range l.items {
		switch detail {
		case int(detailCategory):
			item.Category, item.Tags = l.category, tags
		case int(detailParameters):
			item.Parameters = p
		}
		l.shapes[detail] = item
		var err error
		if l.items[detail], err = encode(item); err != nil {
			return err
		}
	}
	return nil
}

// visible lists the models that the caller may see, by id: those in the catalog that its group
// and its key allow, and those that its key names literally.
func (s *Server) visible(c *call) ([]listedModel, error) {
	rights := s.rightsOf(c)
	var list []listedModel
	for _, one := range c.models.list {
		if rights.allow(one.id, one.canonical) {
			list = append(list, one)
		}
	}
	for _, name := range c.caller.key.Models {
		if !isLiteral(name) || !rights.allow(name) {
			continue
		}
		if _, ok := c.models.catalog.Model(name); ok {
			continue
		}
		one, err := unlistedModel(c.models.catalog, name, c.caller.key.CreatedAt.Unix())
		if err != nil {
			return nil, err
		}
		list = append(list, one)
	}
	slices.SortFunc(list, byID)
	return slices.CompactFunc(list, func(a, b listedModel) bool { return a.id == b.id }), nil
}

func byID(a, b listedModel) int { return cmp.Compare(a.id, b.id) }

// isLiteral reports whether an entry of a key's list names a single model.
func isLiteral(pattern string) bool { return !strings.Contains(pattern, "*") }

// modelList is the list in our own form. Its items are encoded already.
type modelList struct {
	Success bool              `json:"success"`
	Object  string            `json:"object"`
	Data    []json.RawMessage `json:"data"`
}

// categories are the values of the list's filter.
var categories = []string{"chat", "image", "video", "audio", mediagate.CategoryUnknown}

// handleModels lists the models in the form that the client's service uses.
func (s *Server) handleModels(c *call) error {
	q := c.query()
	switch c.listDialect() {
	case dialectAnthropic:
		return s.listForAnthropic(c, q)
	case dialectGemini:
		return s.handleGeminiModels(c)
	default:
	}
	expand := readExpand(q.Get("expand"))
	category := ""
	if expand.detail > detailBasic {
		var err error
		if category, err = oneOfQuery(q, "category", categories...); err != nil {
			return err
		}
	}
	models, err := s.visible(c)
	if err != nil {
		return err
	}
	page := modelList{Success: true, Object: "list", Data: make([]json.RawMessage, 0, len(models))}
	for _, one := range models {
		if category != "" && one.category != category {
			continue
		}
		item, err := s.listItem(c, one, expand)
		if err != nil {
			return err
		}
		page.Data = append(page.Data, item)
	}
	return c.cacheable(page)
}

// dialect is the service in whose form a client reads lists.
type dialect uint8

const (
	dialectOurs dialect = iota
	dialectAnthropic
	dialectGemini
)

// listDialect returns the dialect of a call for models, by its headers and by ?key=.
func (c *call) listDialect() dialect {
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
	switch c.listDialect() {
	case dialectAnthropic:
		return c.cacheable(one.forAnthropic())
	case dialectGemini:
		return c.cacheable(one.forGemini())
	default:
		item, err := s.listItem(c, one, readExpand(c.query().Get("expand")))
		if err != nil {
			return err
		}
		return c.cacheable(item)
	}
}

func (s *Server) handleGeminiModel(c *call) error {
	one, err := s.pathModel(c)
	if err != nil {
		return err
	}
	return c.cacheable(one.forGemini())
}

// pathModel returns the listed model in the path.
func (s *Server) pathModel(c *call) (listedModel, error) {
	id := c.pathText("model")
	models, err := s.visible(c)
	if err != nil {
		return listedModel{}, err
	}
	i, ok := slices.BinarySearchFunc(models, listedModel{id: id}, byID)
	if !ok {
		return listedModel{}, &mediagate.Error{
			Kind: mediagate.KindNotFound, Message: "model " + mediagate.Quote(id) + " not found", Param: "model",
		}
	}
	return models[i], nil
}

// pathText returns a parameter of the path, unescaped. Echo leaves escaped ones as they are.
func (c *call) pathText(name string) string {
	id := c.Param(name)
	if c.Request().URL.RawPath != "" {
		if plain, err := url.PathUnescape(id); err == nil {
			return plain
		}
	}
	return id
}

// readExpand reads the words of expand. One unknown word makes it ignore all of them. Each word adds
// category and tags.
func readExpand(text string) expansion {
	var e expansion
	for word := range strings.SplitSeq(text, ",") {
		switch strings.TrimSpace(word) {
		case "category":
			e.detail = max(e.detail, detailCategory)
		case "parameters":
			e.detail = max(e.detail, detailParameters)
		case "pricing":
			e.detail, e.pricing = max(e.detail, detailCategory), true
		default:
			return expansion{}
		}
	}
	return e
}

// The rest of this file lists the models in the forms of other services.

// mostListed is the largest page of these lists.
const mostListed = 1000

// anthropicList is a page in Anthropic's form.
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

func (l listedModel) forAnthropic() anthropicModel {
	return anthropicModel{
		Type: "model", ID: l.id, DisplayName: l.id, CreatedAt: time.Unix(l.created, 0).UTC().Format(time.RFC3339),
	}
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
	if begin, err = indexOfParam(models, q, "after_id", begin-1); err != nil {
		return err
	}
	if end, err = indexOfParam(models, q, "before_id", end); err != nil {
		return err
	}
	models = models[min(begin+1, end):end]
	more := len(models) > limit
	switch {
	case !more:
	case q.Get("before_id") != "" && q.Get("after_id") == "":
		models = models[len(models)-limit:] // the ones next to before_id
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

// indexOfParam returns the index of the model that a parameter names, or absent if the query lacks it.
func indexOfParam(models []listedModel, q url.Values, name string, absent int) (int, error) {
	id := q.Get(name)
	if id == "" {
		return absent, nil
	}
	i, ok := slices.BinarySearchFunc(models, listedModel{id: id}, byID)
	if !ok {
		return 0, mediagate.Invalid(name, "%s must be the id of a model in the list", name)
	}
	return i, nil
}

// geminiList is a page in Gemini's form.
type geminiList struct {
	Models []geminiModel `json:"models"`
	Next   string        `json:"nextPageToken,omitempty"`
}

type geminiModel struct {
	Name        string   `json:"name"`
	DisplayName string   `json:"displayName"`
	Methods     []string `json:"supportedGenerationMethods"`
}

func (l listedModel) forGemini() geminiModel {
	item := geminiModel{Name: "models/" + l.id, DisplayName: l.id, Methods: []string{}}
	if l.operation != "" {
		item.Methods = append(item.Methods, l.operation)
	}
	return item
}

// defaultPageSize is the default of pageSize, in Gemini's form.
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
			return mediagate.Invalid("pageToken", "pageToken must be the nextPageToken of the previous page")
		}
		// The model of the token may be gone by now.
		begin, there := slices.BinarySearchFunc(models, listedModel{id: string(last)}, byID)
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

// foreignKeys returns the keys that stand where clients of Anthropic and Gemini put them.
func (c *call) foreignKeys() []string {
	header := c.Request().Header
	keys := slices.Concat(header.Values("X-Api-Key"), header.Values("X-Goog-Api-Key"), c.query()["key"])
	return slices.DeleteFunc(keys, func(key string) bool { return key == "" })
}
