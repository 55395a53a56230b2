package api

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"net/http"
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

	document func() (*published, error) // their OpenAPI document, made when it is first asked for
}

// newModels prepares a catalog.
func (s *Server) newModels(c *catalog.Catalog, routes Routes) (*models, error) {
	m := &models{
		catalog: c, routes: routes,
		endpoints: map[string]bool{}, outlines: map[string]*catalog.Outline{}, bounds: map[string]int64{},
	}
	for _, endpoint := range c.Endpoints() {
		m.endpoints[endpoint.Path] = true
		m.outlines[endpoint.Path] = c.Outline(endpoint.Path)
		m.bounds[endpoint.Path] = largestBody(c, endpoint.Path)
	}
	m.outlines[quotePath] = c.Outline("")
	m.outlines[quotePath].Fields["endpoint"] = &catalog.Outline{}
	m.bounds[quotePath] = largestBody(c, "") + endpointRoom
	m.document = sync.OnceValues(func() (*published, error) { return s.publishedDocument(c) })
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
		page.Data = append(page.Data, anthropicModel{
			Type: "model", ID: one.id, DisplayName: one.id, CreatedAt: time.Unix(one.created, 0).UTC().Format(time.RFC3339),
		})
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
		item := geminiModel{Name: "models/" + one.id, DisplayName: one.id, Methods: []string{}}
		if one.operation != "" {
			item.Methods = append(item.Methods, one.operation)
		}
		page.Models = append(page.Models, item)
	}
	return c.cacheable(page)
}

// foreignKeys are the keys where clients of Anthropic and Gemini put them.
func (c *call) foreignKeys() []string {
	header := c.Request().Header
	keys := slices.Concat(header.Values("X-Api-Key"), header.Values("X-Goog-Api-Key"), c.query()["key"])
	return slices.DeleteFunc(keys, func(key string) bool { return key == "" })
}

// parameters is what a request to a model may hold, and where it goes.
type parameters struct {
	Operation     string          `json:"operation"`
	Method        string          `json:"method"`
	Endpoint      string          `json:"endpoint"`
	Endpoints     []string        `json:"endpoints,omitempty"` // of models that have several
	SchemaVersion string          `json:"schema_version"`
	Source        string          `json:"source"`
	InputSchema   json.RawMessage `json:"input_schema"`
}

// Where a contract comes from: the model's own, or the one that all models
// share which no catalog has.
const (
	sourceCatalog = "catalog"
	sourceBase    = "base"
)

// parametersOf is the contract of a model's first operation. Models that make
// no videos or images have none.
func parametersOf(m *catalog.Model) *parameters {
	return contractOf(m, m.Operations()[0])
}

func contractOf(m *catalog.Model, o *catalog.Operation) *parameters {
	facts, _ := m.Type.Facts()
	if facts.Operation == "" {
		return nil
	}
	p := &parameters{
		Operation: facts.Operation, Method: http.MethodPost, Endpoint: o.Endpoint,
		SchemaVersion: o.SchemaVersion(), Source: sourceCatalog, InputSchema: o.Schema(),
	}
	if m.Uncataloged {
		p.Source = sourceBase
	}
	if all := m.Operations(); len(all) > 1 {
		for _, one := range all {
			p.Endpoints = append(p.Endpoints, one.Endpoint)
		}
	}
	return p
}

// contract is all that a client must know to use a model.
type contract struct {
	ID       string   `json:"id"`
	Category string   `json:"category"`
	Tags     []string `json:"capability_tags,omitempty"`
	parameters
	Idempotency idempotencyRules `json:"idempotency"`
	Response    responseRules    `json:"response"`
	Pricing     pricing          `json:"pricing"`
}

// idempotencyRules say how a submit can be repeated.
type idempotencyRules struct {
	Supported      bool   `json:"supported"`
	Header         string `json:"header"`
	MaxLength      int    `json:"max_length"`
	TTLSeconds     int    `json:"ttl_seconds"`
	Scope          string `json:"scope"`
	ReplayHeader   string `json:"replay_header"`
	MismatchStatus int    `json:"mismatch_status"`
}

// responseRules say how to come by the result.
type responseRules struct {
	Mode          string       `json:"mode"`
	Ack           ackRules     `json:"ack"`
	Poll          pollRules    `json:"poll"`
	ResultPointer string       `json:"result_pointer"`
	MediaTypes    []string     `json:"media_types"`
	Webhook       webhookRules `json:"webhook"`
}

type ackRules struct {
	Status        int    `json:"status"`
	TaskIDPointer string `json:"task_id_pointer"`
}

type pollRules struct {
	Method          string   `json:"method"`
	Endpoint        string   `json:"endpoint"`
	IntervalSeconds int      `json:"interval_seconds"`
	Terminal        []string `json:"terminal"`
}

type webhookRules struct {
	Field  string `json:"field"`
	Suffix string `json:"suffix"`
}

// pricing is what a model costs, at the prices of the caller's group and in
// the words of a quote.
type pricing struct {
	Currency       string       `json:"currency"`
	CreditsPerUnit int64        `json:"credits_per_unit"`
	Unit           string       `json:"unit"`
	Quantity       []string     `json:"quantity"`       // the fields whose product it is; none: one
	Zero           int64        `json:"zero,omitempty"` // what a quantity of zero counts
	Holds          []priceHold  `json:"holds,omitempty"`
	Rows           []pricingRow `json:"rows"`
}

// priceHold is what a quote counts beside the quantity where a list is given.
type priceHold struct {
	Given string         `json:"given"`
	Where map[string]any `json:"where,omitempty"` // what an item of it has
	Least int64          `json:"least,omitempty"` // units of the first field in quantity
	More  int64          `json:"more,omitempty"`
}

type pricingRow struct {
	Item      string         `json:"item"`
	When      map[string]any `json:"when"`
	UnitPrice json.Number    `json:"unit_price"`
}

var errNoModel = mediagate.Invalid("model", "model is required")

// errNoContract is the one answer for models that have no contract, that the caller
// may not see, and that there are not.
func errNoContract(id string) error {
	return &mediagate.Error{Kind: mediagate.KindNotFound, Message: "model " + mediagate.Quote(id) + " not found, or it has no contract", Param: "model"}
}

func (s *Server) handleContract(c *call) error {
	id := c.Param("model")
	if c.Request().URL.RawPath != "" { // whose parts Echo leaves as they are
		if plain, err := url.PathUnescape(id); err == nil {
			id = plain
		}
	}
	return s.answerContract(c, id)
}

// handleContractByQuery is for ids that have a slash.
func (s *Server) handleContractByQuery(c *call) error {
	id := c.query().Get("model")
	if id == "" {
		return errNoModel
	}
	return s.answerContract(c, id)
}

// answerContract tells a model that the caller may not see from one that there
// is not in no way.
func (s *Server) answerContract(c *call, id string) error {
	rights := s.rightsOf(c)
	m, ok := c.models.catalog.Model(id)
	if !ok && slices.Contains(c.caller.key.Models, id) {
		m, ok = c.models.catalog.Passthrough(id)
	}
	if !ok || !rights.allow(m.ID, m.Canonical) {
		return errNoContract(id)
	}
	operations := m.Operations()
	o := operations[0]
	if endpoint := c.query().Get("endpoint"); endpoint != "" {
		i := slices.IndexFunc(operations, func(o *catalog.Operation) bool { return o.Endpoint == endpoint })
		if i < 0 {
			return mediagate.Invalid("endpoint", "endpoint must be one of the model's")
		}
		o = operations[i]
	}
	p := contractOf(m, o)
	if p == nil {
		return errNoContract(id)
	}
	prices, err := s.pricing(o, rights)
	if err != nil {
		return err
	}
	return c.cacheable(contract{
		ID: m.ID, Category: m.Category, Tags: m.Tags, parameters: *p,
		Idempotency: idempotency(),
		Response:    s.responseRules(o), Pricing: prices,
	})
}

// idempotency are the rules of all submits.
func idempotency() idempotencyRules {
	return idempotencyRules{
		Supported: true, Header: idempotencyHeader, MaxLength: maxIdempotencyKey, TTLSeconds: int(idempotencyTTL / time.Second),
		Scope: "account", ReplayHeader: replayedHeader, MismatchStatus: http.StatusConflict,
	}
}

func (s *Server) responseRules(o *catalog.Operation) responseRules {
	facts, _ := o.Model.Type.Facts()
	return responseRules{
		Mode: "async",
		Ack:  ackRules{Status: http.StatusOK, TaskIDPointer: "/data/0/task_id"},
		Poll: pollRules{
			Method: http.MethodGet, Endpoint: "/v1/tasks/{task_id}", IntervalSeconds: pollEvery(o.Expected()),
			Terminal: []string{string(mediagate.StatusCompleted), string(mediagate.StatusFailed), string(mediagate.StatusCancelled)},
		},
		ResultPointer: "/data/result/" + string(facts.List),
		MediaTypes:    mediaTypes[o.Media()],
		Webhook:       webhookRules{Field: "webhook", Suffix: "/callback"},
	}
}

// mediaTypes are those that results of a class usually have.
var mediaTypes = map[string][]string{
	"video": {"video/mp4"},
	"image": {"image/png", "image/jpeg", "image/webp"},
}

// pollEvery is the pace at which a poll is worth its while: some twenty of them
// until the usual end, none faster than every two seconds.
func pollEvery(expected time.Duration) int {
	return int(min(max(expected/20, 2*time.Second), 15*time.Second) / time.Second)
}

func (s *Server) pricing(o *catalog.Operation, r rights) (pricing, error) {
	prices, err := o.Pricing()
	if err != nil {
		return pricing{}, err
	}
	p := pricing{
		Currency: s.cfg.Currency, CreditsPerUnit: s.cfg.CreditsPerUnit, Unit: string(prices.Unit),
		Quantity: append([]string{}, prices.Quantity...), Zero: prices.Zero, Rows: make([]pricingRow, 0, len(prices.Rows)),
	}
	for _, hold := range prices.Holds {
		p.Holds = append(p.Holds, priceHold(hold))
	}
	for _, row := range prices.Rows {
		charge := r.factor.Charges([]mediagate.Charge{row.Charge})[0]
		p.Rows = append(p.Rows, pricingRow{Item: charge.Item, When: row.When, UnitPrice: charge.UnitPrice.Number()})
	}
	return p, nil
}
