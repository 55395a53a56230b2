package api

import (
	"cmp"
	_ "embed"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/api/openapi"
	"github.com/mediagate/mediagate/catalog"
	"github.com/mediagate/mediagate/view"
)

//go:embed words.yaml
var wordsFile []byte

// describedRoutes is the table with the descriptions of its public routes.
func describedRoutes() []route {
	table, about := routes(), descriptions()
	for i := range table {
		table[i].about = about[table[i].method+" "+table[i].path]
	}
	return table
}

// reads reports whether the handler may know the query parameter: of a public
// route those that are described, and the key where it comes as one.
func (r route) reads(name string) bool {
	d := r.about
	if d == nil || r.access == accessLists && name == keyParameter {
		return true
	}
	named := func(p parameter) bool { return p.name == name }
	return slices.ContainsFunc(d.query, named) || slices.ContainsFunc(d.dialect, named)
}

// schemaName is the name of the schema of the body.
func (d *description) schemaName() string { return strings.ToUpper(d.id[:1]) + d.id[1:] }

// describer writes the OpenAPI document of a catalog.
type describer struct {
	models    *catalog.Catalog
	doc       openapi.Document
	reflector openapi.Reflector
	library   openapi.Library
	submits   map[string]string // the component of an endpoint's bodies, by its path
}

func wordsOf[T ~string](list []T) (values []any) {
	for _, word := range list {
		values = append(values, string(word))
	}
	return values
}

// describe writes the document of the public routes and the models. Without an
// address the API is where the document came from.
func describe(models *catalog.Catalog, version, address string) ([]byte, error) {
	d := &describer{models: models, submits: map[string]string{}}
	d.doc = openapi.Document{
		OpenAPI: openapi.Version,
		Info: openapi.Info{
			Title: "mediagate", Version: cmp.Or(version, "dev"),
			Summary: "One API in front of many vendors of generated video, images, music and speech.",
			Description: "Whatever answers GET answers HEAD. A path with a slash at its end is another path. " +
				"Query parameters and fields that are not described are ignored. " +
				"Later versions may add fields to answers.",
			License: openapi.License{Name: "Apache 2.0", Identifier: "Apache-2.0"},
		},
		Servers:  []openapi.Server{{URL: cmp.Or(address, "/")}},
		Security: []openapi.Requirement{{schemeBearer: {}}},
		Tags:     tags,
		Components: openapi.Components{
			Headers: responseHeaders,
			SecuritySchemes: openapi.Map[openapi.SecurityScheme]{
				{Name: schemeBearer, Value: openapi.SecurityScheme{Type: "http", Scheme: "bearer", Description: "An API key."}},
				{Name: schemeGemini, Value: openapi.SecurityScheme{
					Type: "apiKey", In: openapi.InHeader, Name: "x-goog-api-key", Description: "An API key, as clients of Gemini send it. Lists of models only.",
				}},
				{Name: schemeQuery, Value: openapi.SecurityScheme{
					Type: "apiKey", In: openapi.InQuery, Name: keyParameter, Description: "An API key, as clients of Gemini may send it. Lists of models only.",
				}},
			},
		},
	}
	d.reflector.Enums = map[reflect.Type][]any{
		reflect.TypeFor[mediagate.Status]():       wordsOf(mediagate.Statuses()),
		reflect.TypeFor[view.MusicStatus]():       wordsOf(view.MusicStatuses()),
		reflect.TypeFor[mediagate.Type]():         wordsOf(mediagate.TaskTypes()),
		reflect.TypeFor[mediagate.Scope]():        wordsOf(mediagate.Scopes()),
		reflect.TypeFor[mediagate.FailureCode]():  wordsOf(mediagate.FailureCodes()),
		reflect.TypeFor[mediagate.WebhookState](): wordsOf(mediagate.WebhookStates()),
	}
	var clips []any
	for _, shape := range view.Clips() {
		clips = append(clips, shape)
	}
	d.reflector.Unions = map[reflect.Type][]any{reflect.TypeFor[view.Clip](): clips}
	d.reflector.Components, d.library.Components = &d.doc.Components.Schemas, &d.doc.Components.Schemas
	if err := yaml.Unmarshal(wordsFile, &d.reflector.Words); err != nil {
		return nil, fmt.Errorf("words.yaml: %w", err)
	}
	for _, r := range describedRoutes() {
		if d.takesSubmits(r) {
			d.submits[r.path] = r.about.schemaName()
		}
	}
	for _, r := range describedRoutes() {
		if r.about == nil {
			continue
		}
		if err := d.addRoute(r); err != nil {
			return nil, fmt.Errorf("describing %s %s: %w", r.method, r.path, err)
		}
	}
	d.doc.Webhooks.Set("taskEnded", openapi.Map[*openapi.Operation]{{Name: "post", Value: d.callback()}})
	return openapi.Marshal(d.doc)
}

// The ways to send a key.
const (
	schemeBearer = "bearer"
	schemeGemini = "geminiKey"
	schemeQuery  = "queryKey"

	keyParameter = "key"
)

// responseHeaders are those that answers have.
var responseHeaders = openapi.Map[*openapi.Header]{
	header("X-Request-Id", "The request's id. Quote it to your operator.", true, &openapi.Schema{Type: "string"}),
	header("Idempotency-Replayed", "The acknowledgement is that of an earlier request with the same Idempotency-Key.", false, &openapi.Schema{Type: "string", Const: "true"}),
	header("Retry-After", "After how many seconds to repeat the request.", false, &openapi.Schema{Type: "integer", Minimum: new(1)}),
	header(ratePolicyHeader, "Where the key or its account may submit only so often: how many (q) in how many seconds (w), of each of the two that has a rate.", false,
		&openapi.Schema{Type: "string", More: map[string]any{"examples": []string{`"key";q=60;w=60, "account";q=600;w=60`}}}),
	header(rateLeftHeader, "Beside RateLimit-Policy: how many are left (r), and after how many seconds there is one more (t).", false,
		&openapi.Schema{Type: "string", More: map[string]any{"examples": []string{`"key";r=59;t=1, "account";r=600`}}}),
	header("Accept-Encoding", "The codings of a body that are taken.", true, &openapi.Schema{Type: "string", Const: "identity"}),
	header("WWW-Authenticate", "The scheme of authentication.", true, &openapi.Schema{Type: "string", Const: "Bearer"}),
	header("Cache-Control", "How long the answer may be kept.", true, &openapi.Schema{Type: "string"}),
	header("ETag", "Names the content: sent back as If-None-Match, it saves the answer.", true, &openapi.Schema{Type: "string"}),
	header("Accept-Ranges", "Parts of the file can be had.", true, &openapi.Schema{Type: "string", Const: "bytes"}),
	header("Content-Disposition", "Under which name to save the file.", false, &openapi.Schema{Type: "string"}),
	header("Content-Range", "Which part of the file it is.", true, &openapi.Schema{Type: "string"}),
	header("Content-Security-Policy", "Nothing in the file may run.", true, &openapi.Schema{Type: "string"}),
	header("Cross-Origin-Resource-Policy", "Pages of any origin may show the file.", true, &openapi.Schema{Type: "string", Const: "cross-origin"}),
	header("Last-Modified", "When the file was uploaded.", true, &openapi.Schema{Type: "string"}),
	header("Referrer-Policy", "The link is told nobody.", true, &openapi.Schema{Type: "string", Const: "no-referrer"}),
	header("X-Content-Type-Options", "The type is the one that is stated.", true, &openapi.Schema{Type: "string", Const: "nosniff"}),
	header("Vary", "The headers of the request on which the answer depends.", true, &openapi.Schema{Type: "string"}),
}

func header(name, about string, required bool, schema *openapi.Schema) openapi.Entry[*openapi.Header] {
	return openapi.Entry[*openapi.Header]{Name: name, Value: &openapi.Header{Description: about, Required: required, Schema: schema}}
}

func headerRefs(names ...string) (headers openapi.Map[*openapi.Header]) {
	for _, name := range append([]string{"X-Request-Id"}, names...) {
		headers.Set(name, &openapi.Header{Ref: "#/components/headers/" + name})
	}
	return headers
}

// addRoute adds the operation of a route.
func (d *describer) addRoute(r route) error {
	path, o := r.path, &openapi.Operation{
		ID: r.about.id, Tags: []string{string(r.about.tag)}, Summary: r.about.summary, Description: r.about.about,
	}
	switch {
	case r.access == accessOpen:
		o.Security = new([]openapi.Requirement{})
	case r.access == accessLists && r.about.dialect == nil: // its own is Gemini's
		o.Security = new([]openapi.Requirement{{schemeBearer: {}}, {schemeGemini: {}}, {schemeQuery: {}}})
	default: // as the whole document says
	}
	for segment := range strings.SplitSeq(r.path, "/") {
		if name, ok := strings.CutPrefix(segment, ":"); ok {
			path = strings.Replace(path, segment, "{"+name+"}", 1)
			p, known := pathParameters[name]
			if !known {
				return fmt.Errorf("the path's %s has no description", name)
			}
			p.name, p.required = name, true
			o.Parameters = append(o.Parameters, p.in(openapi.InPath))
		}
	}
	for _, p := range r.about.query {
		o.Parameters = append(o.Parameters, p.in(openapi.InQuery))
	}
	headers := r.about.header
	submit := d.takesSubmits(r) && !r.about.streams()
	if submit {
		headers = append([]parameter{idempotencyKey}, headers...)
	}
	for _, p := range headers {
		o.Parameters = append(o.Parameters, p.in(openapi.InHeader))
	}
	if err := d.addBody(r, o); err != nil {
		return err
	}
	if err := d.addAnswers(r, o); err != nil {
		return err
	}
	for _, kind := range kindsOf(r, submit) {
		status := strconv.Itoa(renderingOf(kind, r.envelope).status)
		if _, told := o.Responses.Get(status); told { // as the handler's own
			continue
		}
		o.Responses.Set(status, &openapi.Response{Ref: "#/components/responses/" + d.errorRow(r.envelope, kind)})
	}
	item, _ := d.doc.Paths.Get(path)
	item.Set(strings.ToLower(r.method), o)
	d.doc.Paths.Set(path, item)
	return nil
}

func (p parameter) in(place string) openapi.Parameter {
	return openapi.Parameter{Name: p.name, In: place, Description: p.about, Required: p.required, Schema: p.schema}
}

func (d *describer) takesSubmits(r route) bool {
	return r.method == http.MethodPost && slices.ContainsFunc(d.models.Endpoints(), func(e catalog.Endpoint) bool { return e.Path == r.path })
}

// kindsOf are the errors of a route that follow from its row, and its own, by
// their status.
func kindsOf(r route, submit bool) []mediagate.Kind {
	kinds := append([]mediagate.Kind{mediagate.KindInternal}, r.about.errors...)
	if r.access != accessOpen {
		kinds = append(kinds, mediagate.KindInvalid, mediagate.KindUnauthenticated, mediagate.KindForbidden)
	}
	if r.path != healthPath && r.path != readyPath { // which are answered on any connection
		kinds = append(kinds, mediagate.KindUnavailable)
	}
	if r.body != bodyNone {
		kinds = append(kinds, mediagate.KindInvalid, mediagate.KindStalled, mediagate.KindTooLarge, mediagate.KindUnsupported, mediagate.KindRateLimited)
	}
	if len(r.about.query) > 0 || strings.Contains(r.path, "/:") && r.access != accessOpen {
		kinds = append(kinds, mediagate.KindInvalid)
	}
	if submit {
		kinds = append(kinds, mediagate.KindPayment, mediagate.KindConflict, mediagate.KindModerated)
	}
	slices.SortFunc(kinds, func(a, b mediagate.Kind) int { return cmp.Compare(renderings[a].status, renderings[b].status) })
	return slices.Compact(kinds)
}

// addAnswers adds those that are no errors. Several with one status are
// alternatives.
func (d *describer) addAnswers(r route, o *openapi.Operation) error {
	for _, a := range r.about.answers {
		status := strconv.Itoa(a.status)
		response, again := o.Responses.Get(status)
		if !again {
			headers := a.headers
			if r.counted() {
				headers = append(slices.Clone(headers), ratePolicyHeader, rateLeftHeader)
			}
			response = &openapi.Response{Description: a.about, Headers: headerRefs(headers...)}
			o.Responses.Set(status, response)
		}
		for _, name := range a.headers {
			response.Headers.Set(name, &openapi.Header{Ref: "#/components/headers/" + name})
		}
		for _, format := range a.files {
			response.Content.Set(format, &openapi.MediaType{Schema: openapi.Binary()})
		}
		if a.body == nil {
			continue
		}
		schema, media := d.reflector.Of(a.body), &openapi.MediaType{}
		other, alternative := response.Content.Get(a.mediaType())
		switch {
		case alternative:
			media = other
			if a.part {
				media.Schema = &openapi.Schema{More: map[string]any{"anyOf": []*openapi.Schema{media.Schema, schema}}}
				break
			}
			if media.Schema.OneOf == nil {
				media.Schema = &openapi.Schema{OneOf: []*openapi.Schema{media.Schema}}
			}
			media.Schema.OneOf = append(media.Schema.OneOf, schema)
		default:
			media.Schema = schema
			response.Content.Set(a.mediaType(), media)
		}
		value, err := openapi.Marshal(a.body)
		if err != nil {
			return err
		}
		if string(value) != "{}" {
			media.Examples.Set("example"+strconv.Itoa(len(media.Examples)+1), &openapi.Example{Summary: a.about, Value: value})
		}
	}
	return nil
}

// envelopeNames are put behind the name of a response.
var envelopeNames = map[envelope]string{envelopeA: "", envelopeMusic: "Music", envelopeReplace: "Music", envelopeUpload: "Upload", envelopeBalance: "Balance"}

// errorRow is the response of a kind of error in an envelope: a component,
// whose name it returns.
func (d *describer) errorRow(e envelope, kind mediagate.Kind) string {
	r, words := renderingOf(kind, e), errorWords[kind]
	name := strings.ReplaceAll(http.StatusText(r.status), " ", "") + envelopeNames[e]
	several := kind == mediagate.KindConflict || kind == mediagate.KindRateLimited // codes
	if e == envelopeReplace && r.status == http.StatusForbidden {
		name, several = name+"Replace", true
	}
	if _, done := d.doc.Components.Responses.Get(name); done {
		return name
	}
	body := envelopeOf(&call{envelope: e, requestID: exampleRequestID}, r, &mediagate.Error{Kind: kind, Message: words.message}, words.message)
	fixed := &openapi.Schema{}
	constant := func(field string, value any) { fixed.Properties.Set(field, &openapi.Schema{Const: value}) }
	switch e {
	case envelopeMusic, envelopeReplace:
		constant("type", r.wordB)
		if !several {
			constant("code", r.codeB)
		}
	case envelopeUpload:
		constant("type", r.wordB)
	default:
		constant("code", r.status)
		constant("type", r.word)
	}
	schema := &openapi.Schema{Type: "object"}
	field := func(name string, s *openapi.Schema) {
		schema.Properties.Set(name, s)
		schema.Required = append(schema.Required, name)
	}
	if body.Success != nil {
		field("success", &openapi.Schema{Const: *body.Success})
		field("message", &openapi.Schema{Type: "string"})
	}
	field("error", &openapi.Schema{AllOf: []*openapi.Schema{d.reflector.Of(body.Error), fixed}})
	value, _ := openapi.Marshal(body)
	d.doc.Components.Responses.Set(name, &openapi.Response{
		Description: words.about, Headers: errorHeaders(r.status, e),
		Content: openapi.JSONContent(&openapi.MediaType{
			Schema: schema, Examples: openapi.Map[*openapi.Example]{{Name: "example1", Value: &openapi.Example{Value: value}}},
		}),
	})
	return name
}

// errorHeaders are those that renderError sets, and those of calls that a rate
// counts: such routes share their errors with others of the envelope.
func errorHeaders(status int, e envelope) openapi.Map[*openapi.Header] {
	var names []string
	switch status {
	case http.StatusUnauthorized:
		names = append(names, "WWW-Authenticate")
	case http.StatusUnsupportedMediaType:
		names = append(names, "Accept-Encoding")
	case http.StatusTooManyRequests, http.StatusServiceUnavailable:
		names = append(names, "Retry-After")
	}
	if e != envelopeBalance {
		names = append(names, ratePolicyHeader, rateLeftHeader)
	}
	return headerRefs(names...)
}

// callback is what is sent to a client's address.
func (d *describer) callback() *openapi.Operation {
	ended := exampleTask()
	schema := &openapi.Schema{AllOf: []*openapi.Schema{d.reflector.Of(ended), {Properties: openapi.Map[*openapi.Schema]{
		{Name: "status", Value: &openapi.Schema{Enum: wordsOf([]mediagate.Status{mediagate.StatusCompleted, mediagate.StatusFailed})}},
		{Name: "webhook", Value: openapi.Never},
	}}}}
	value, _ := openapi.Marshal(ended)
	header := func(name, about, example string) openapi.Parameter {
		return parameter{name: name, about: about, required: true, schema: &openapi.Schema{
			Type: "string", More: map[string]any{"examples": []string{example}},
		}}.in(openapi.InHeader)
	}
	answer := func(about string) *openapi.Response { return &openapi.Response{Description: about} }
	return &openapi.Operation{
		ID: "taskEnded", Tags: []string{string(tagWebhooks)}, Summary: "A task has ended",
		Description: "Sent to the submit's webhook with /callback appended, once the task is completed or has failed. " +
			"Signed by the Standard Webhooks scheme with the account's secret. The body is the same to the byte on each attempt.",
		Parameters: []openapi.Parameter{
			header("webhook-id", "The task's id, by which receivers recognize repetitions.", exampleTaskID),
			header("webhook-timestamp", "Unix seconds of the attempt.", strconv.Itoa(exampleCreated)),
			header("webhook-signature", "v1, and the HMAC-SHA256 of id.timestamp.body in base64; two of them, with a space between, while two secrets sign.", "v1,K5oZfzN95Z9UVu1EsfQmfVNQhnkZ2pj9o9NDN/H/pI4="),
			header("User-Agent", "mediagate-webhook and its version.", "mediagate-webhook/1.0.0"),
		},
		RequestBody: &openapi.RequestBody{Required: true, Content: openapi.JSONContent(&openapi.MediaType{
			Schema: schema, Examples: openapi.Map[*openapi.Example]{{Name: "example1", Value: &openapi.Example{Value: value}}},
		})},
		Responses: openapi.Map[*openapi.Response]{
			{Name: "2XX", Value: answer("The task was taken. Answer first, and work later: an attempt has ten seconds.")},
			{Name: "3XX", Value: answer("Not followed. The attempt is repeated like after a 5XX.")},
			{Name: "4XX", Value: answer("Not wanted. It is not sent again.")},
			{Name: "5XX", Value: answer("Not now. It is sent again 10, 30 and 60 seconds after the attempt before.")},
		},
		Security: new([]openapi.Requirement{}),
	}
}

// publishedDocument is the OpenAPI document of a catalog as it is sent.
func (s *Server) publishedDocument(models *catalog.Catalog) (*published, error) {
	text, err := describe(models, s.cfg.Version, s.cfg.PublicURL)
	if err != nil {
		return nil, &mediagate.Error{Kind: mediagate.KindInternal, Message: "writing the OpenAPI document", Err: err}
	}
	return publish(text), nil
}

func (s *Server) handleOpenAPI(c *call) error {
	text, err := c.models.document()
	if err != nil {
		return err
	}
	c.publish(text)
	return nil
}
