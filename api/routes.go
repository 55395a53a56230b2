package api

import (
	"net/http"

	"github.com/labstack/echo/v4"
)

// route is one row of the table: all that is particular about an endpoint.
type route struct {
	method   string
	path     string
	envelope envelope
	access   access
	limit    int64 // of the body, in bytes; modelLimit, or 0 where none is read
	handler  func(*Server, *call) error
}

const (
	noBody     = 0
	smallBody  = bodyLimit // of what operators send
	modelLimit = -1        // what the largest of the endpoint's models takes
)

const (
	admin     = "/admin/v1"
	quotePath = "/v1/quote"
)

// routes is the API surface. A path with a trailing slash is another path.
func routes() []route {
	const get, post, patch, del = http.MethodGet, http.MethodPost, http.MethodPatch, http.MethodDelete
	return []route{
		{get, "/healthz", envelopeA, accessOpen, noBody, (*Server).handleHealth},
		{get, "/readyz", envelopeA, accessOpen, noBody, (*Server).handleReady},

		{post, "/v1/videos/generations", envelopeA, accessKey, modelLimit, (*Server).handleSubmit},
		{post, "/v1/images/generations", envelopeA, accessKey, modelLimit, (*Server).handleSubmit},
		{post, quotePath, envelopeA, accessKey, modelLimit, (*Server).handleQuote},

		{get, "/v1/tasks", envelopeA, accessKey, noBody, (*Server).handleTasks},
		{get, "/v1/tasks/:task_id", envelopeA, accessKey, noBody, (*Server).handleTask},
		{post, "/v1/tasks/:task_id/cancel", envelopeA, accessKey, noBody, (*Server).handleCancel},
		{get, "/v1/images/generations/:task_id", envelopeA, accessKey, noBody, (*Server).handleLegacyPoll},

		{get, "/v1/balance", envelopeBalance, accessBalance, noBody, (*Server).handleTokenBalance},
		{get, "/balance", envelopeBalance, accessBalance, noBody, (*Server).handleTokenBalance},
		{get, "/v1/user/balance", envelopeBalance, accessBalance, noBody, (*Server).handleUserBalance},
		{get, "/user/balance", envelopeBalance, accessBalance, noBody, (*Server).handleUserBalance},

		{get, "/v1/webhooks/secret", envelopeA, accessKey, noBody, (*Server).handleWebhookSecret},
		{post, "/v1/webhooks/secret", envelopeA, accessKey, noBody, (*Server).handleWebhookSecretRotation},

		{post, admin + "/accounts", envelopeA, accessAdmin, smallBody, (*Server).handleAccountCreation},
		{get, admin + "/accounts", envelopeA, accessAdmin, noBody, (*Server).handleAccounts},
		{get, admin + "/accounts/:account_id", envelopeA, accessAdmin, noBody, (*Server).handleAccount},
		{patch, admin + "/accounts/:account_id", envelopeA, accessAdmin, smallBody, (*Server).handleAccountChange},
		{post, admin + "/accounts/:account_id/grants", envelopeA, accessAdmin, smallBody, (*Server).handleGrant},
		{get, admin + "/accounts/:account_id/ledger", envelopeA, accessAdmin, noBody, (*Server).handleLedger},
		{post, admin + "/accounts/:account_id/keys", envelopeA, accessAdmin, smallBody, (*Server).handleKeyCreation},
		{get, admin + "/keys", envelopeA, accessAdmin, noBody, (*Server).handleKeys},
		{get, admin + "/keys/:key_id", envelopeA, accessAdmin, noBody, (*Server).handleKey},
		{del, admin + "/keys/:key_id", envelopeA, accessAdmin, noBody, (*Server).handleKeyDeletion},
		{get, admin + "/ledger/check", envelopeA, accessAdmin, noBody, (*Server).handleLedgerCheck},
	}
}

// mount registers the table with Echo. Whatever answers GET answers HEAD.
func (s *Server) mount(e *echo.Echo) {
	for _, r := range routes() {
		s.envelopes[r.path] = r.envelope
		if r.limit == modelLimit {
			r.limit = s.submitLimit(r.path)
		}
		handler := func(ec echo.Context) error {
			c := callOf(ec)
			c.limit = r.limit
			c.within(s.cfg.StoreTimeout)
			defer c.release()
			if err := s.authenticate(c, r.access); err != nil {
				return c.late(err)
			}
			c.claim = claim{budget: s.budget, who: c.who()}
			defer c.claim.release()
			return c.late(r.handler(s, c))
		}
		methods := []string{r.method}
		if r.method == http.MethodGet {
			methods = append(methods, http.MethodHead)
		}
		e.Match(methods, r.path, handler)
		s.methods[r.path] = append(s.methods[r.path], methods...)
	}
}

// endpointRoom is enough for what the body of a quote has beside the submit's:
// its endpoint.
const endpointRoom = 256

// submitLimit is the largest body that a model of the endpoint takes; of all
// models for the quote, which takes any model's body with an endpoint beside.
func (s *Server) submitLimit(endpoint string) int64 {
	var most int64
	for _, m := range s.cfg.Catalog.Models() {
		if m.Endpoint == endpoint || endpoint == quotePath {
			most = max(most, m.MaxBody)
		}
	}
	if most == 0 {
		most = bodyLimit
	}
	if endpoint == quotePath {
		most += endpointRoom
	}
	return most
}
