package api

import (
	"net/http"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/catalog"
)

// route is one row of the table: everything that is particular to an endpoint.
type route struct {
	method   string
	path     string
	envelope envelope // the zero value is form A
	access   access
	scope    mediagate.Scope        // that the key must have; empty for balances and routes without a key
	role     mediagate.OperatorRole // that the operator must have; empty for routes outside the admin API
	body     body
	bound    int64 // of the body, in bytes; modelsBody: the catalog's limit
	// time bounds the parts of the call that have no bound of their own. Reading the body and
	// querying the database have theirs.
	time    time.Duration
	handler func(*Server, *call) error
}

// streamClass is the class of answers that last as long as the client reads them.
const streamClass = "stream"

// class is the metrics label of the route's requests. Streams and speeches have classes of their
// own, since they last as long as the client listens.
func (r route) class() string {
	switch {
	case r.path == "":
		return "none"
	case r.path == speechPath:
		return "speech"
	case strings.HasSuffix(r.path, "/events"):
		return streamClass
	case r.access == accessAdmin:
		return "admin"
	case r.scope != "":
		return string(r.scope)
	default:
		return "other"
	}
}

// body says what a request has in its body.
type body uint8

const (
	bodyNone  body = iota // none; a body that comes anyway is skipped
	bodyJSON              // one object; for OpenAI's clients also a form, see readParts
	bodyMaybe             // one object; an empty body counts as {}
	bodyForm              // multipart, with one file that is streamed into the bucket
)

const (
	smallBody  = bodyLimit // for settings
	modelsBody = -1        // the largest limit of the endpoint's models
)

// longestWait bounds how long a call waits for a task.
const longestWait = 60 * time.Second

const (
	admin       = "/admin/v1"
	keysPath    = "/v1/keys"
	quotePath   = "/v1/quote"
	accountPath = "/v1/account"
	musicPath   = "/v1/music/generations"

	videosPath       = "/v1/videos/generations"
	imagesPath       = "/v1/images/generations"
	editsPath        = "/v1/images/edits"
	openAIVideosPath = "/v1/videos"

	openAPIPath = "/openapi.json"

	adminOpenAPIPath = admin + "/openapi.yaml"

	healthPath = "/healthz"
	readyPath  = "/readyz"
)

// routes is the API surface. A path with a trailing slash is another path.
func routes() []route {
	const get, post, patch, del = http.MethodGet, http.MethodPost, http.MethodPatch, http.MethodDelete
	const generate, read, manage = mediagate.ScopeGenerate, mediagate.ScopeRead, mediagate.ScopeManage
	const roleRead, roleOperate, roleAdmin = mediagate.RoleRead, mediagate.RoleOperate, mediagate.RoleAdmin
	return append(submitRoutes(), []route{
		{method: get, path: healthPath, access: accessOpen, handler: (*Server).handleHealth},
		{method: get, path: readyPath, access: accessOpen, handler: (*Server).handleReady},
		{method: get, path: openAPIPath, access: accessOpen, handler: (*Server).handleOpenAPI},
		{method: post, path: mcpPath, access: accessKey, scope: read, body: bodyJSON, bound: mcpBody, handler: (*Server).handleMCP},
		{method: get, path: docsPath, access: accessOpen, handler: (*Server).handleDocs},
		{method: get, path: docsPath + "/:page", access: accessOpen, handler: (*Server).handleDocs},
		{method: get, path: docsPath + "/models/:page", access: accessOpen, handler: (*Server).handleDocs},
		{method: get, path: docsPath + "/runbook/:page", access: accessOpen, handler: (*Server).handleDocs},
		{method: get, path: llmsPath, access: accessOpen, handler: (*Server).handleLLMs},
		{method: post, path: callbackPath, access: accessVendors, handler: (*Server).handleCallback},

		{method: get, path: consolePath, access: accessOpen, handler: (*Server).handleConsole},
		{method: get, path: consoleFiles, access: accessOpen, handler: (*Server).handleConsole},
		{method: get, path: sessionPath, access: accessOpen, handler: (*Server).handleSession},
		{method: post, path: sessionPath, access: accessOpen, body: bodyJSON, bound: signInBody, handler: (*Server).handleSignIn},
		{method: del, path: sessionPath, access: accessOpen, handler: (*Server).handleSignOut},
		{method: get, path: oidcPath, access: accessOpen, handler: (*Server).handleOIDC},
		{method: get, path: oidcStartPath, envelope: envelopePage, access: accessOpen, time: oidcTime, handler: (*Server).handleOIDCStart},
		{method: get, path: oidcCallbackPath, envelope: envelopePage, access: accessOpen, time: oidcTime, handler: (*Server).handleOIDCCallback},

		{method: post, path: openAIVideosPath, envelope: envelopeOpenAI, access: accessKey, scope: generate, body: bodyJSON, bound: modelsBody, time: uploadTime + ModerationTime, handler: (*Server).handleOpenAIVideo},
		{method: get, path: openAIVideosPath, envelope: envelopeOpenAI, access: accessKey, scope: read, handler: (*Server).handleOpenAIVideos},
		{method: get, path: openAIVideosPath + "/:video_id", envelope: envelopeOpenAI, access: accessKey, scope: read, handler: (*Server).handleOpenAIVideoState},
		{method: del, path: openAIVideosPath + "/:video_id", envelope: envelopeOpenAI, access: accessKey, scope: manage, time: removeTime, handler: (*Server).handleOpenAIVideoErasure},
		{method: get, path: openAIVideosPath + "/:video_id/content", envelope: envelopeOpenAI, access: accessKey, scope: read, handler: (*Server).handleOpenAIVideoFile},

		{method: post, path: editsPath, access: accessKey, scope: generate, body: bodyJSON, bound: modelsBody, time: uploadTime + ModerationTime, handler: (*Server).handleImageEdits},
		{method: post, path: quotePath, access: accessKey, scope: read, body: bodyJSON, bound: modelsBody, handler: (*Server).handleQuote},

		{method: post, path: uploadImages, envelope: envelopeUpload, access: accessKey, scope: generate, body: bodyForm, bound: formLimit, time: uploadTime, handler: (*Server).handleUpload},
		{method: post, path: uploadVideos, envelope: envelopeUpload, access: accessKey, scope: generate, body: bodyForm, bound: videoForm, time: uploadTime, handler: (*Server).handleUpload},
		{method: post, path: uploadAudios, envelope: envelopeUpload, access: accessKey, scope: generate, body: bodyForm, bound: formLimit, time: uploadTime, handler: (*Server).handleUpload},
		{method: get, path: filePath, access: accessOpen, handler: (*Server).handleFile},

		{method: get, path: "/v1/models", access: accessLists, scope: read, handler: (*Server).handleModels},
		{method: get, path: "/v1beta/models", access: accessLists, scope: read, handler: (*Server).handleGeminiModels},
		{method: get, path: "/v1/models/:model", access: accessLists, scope: read, handler: (*Server).handleModel},
		{method: get, path: "/v1beta/models/:model", access: accessLists, scope: read, handler: (*Server).handleGeminiModel},
		{method: get, path: "/v1/models/:model/schema", access: accessKey, scope: read, handler: (*Server).handleContract},
		{method: get, path: "/v1/model-schema", access: accessKey, scope: read, handler: (*Server).handleContractByQuery},

		{method: get, path: "/v1/tasks", access: accessKey, scope: read, handler: (*Server).handleTasks},
		{method: get, path: "/v1/tasks/:task_id", access: accessKey, scope: read, time: longestWait, handler: (*Server).handleTask},
		{method: del, path: "/v1/tasks/:task_id", access: accessKey, scope: manage, time: removeTime, handler: (*Server).handleErasure},
		{method: get, path: "/v1/tasks/:task_id/events", access: accessKey, scope: read, handler: (*Server).handleEvents},
		{method: get, path: "/v1/tasks/:task_id/files/:n", access: accessKey, scope: read, handler: (*Server).handleResultFile},
		{method: get, path: "/v1/music/tasks/:task_id", envelope: envelopeMusic, access: accessKey, scope: read, handler: (*Server).handleMusicTask},
		{method: get, path: "/v1/tasks/:task_id/deliveries", access: accessKey, scope: read, handler: (*Server).handleDeliveries},
		{method: post, path: redeliverPath, access: accessKey, scope: manage, handler: (*Server).handleRedelivery},
		{method: post, path: "/v1/tasks/:task_id/cancel", access: accessKey, scope: generate, handler: (*Server).handleCancel},
		{method: get, path: "/v1/images/generations/:task_id", access: accessKey, scope: read, handler: (*Server).handleLegacyPoll},

		{method: get, path: "/v1/artgen/:task_id", access: accessKey, scope: read, handler: (*Server).handleArt},

		{method: get, path: "/v1/balance", envelope: envelopeBalance, access: accessBalance, handler: (*Server).handleTokenBalance},
		{method: get, path: "/balance", envelope: envelopeBalance, access: accessBalance, handler: (*Server).handleTokenBalance},
		{method: get, path: "/v1/user/balance", envelope: envelopeBalance, access: accessBalance, handler: (*Server).handleUserBalance},
		{method: get, path: "/user/balance", envelope: envelopeBalance, access: accessBalance, handler: (*Server).handleUserBalance},

		{method: get, path: "/v1/usage", access: accessKey, scope: read, handler: (*Server).handleUsage},
		{method: get, path: accountPath, access: accessKey, scope: read, handler: (*Server).handleAccount},
		{method: patch, path: accountPath, access: accessKey, scope: manage, body: bodyJSON, bound: smallBody, handler: (*Server).handleAccountChange},
		{method: get, path: accountPath + "/statement", access: accessKey, scope: read, handler: (*Server).handleStatement},

		{method: get, path: webhookSecretPath, access: accessKey, scope: manage, handler: (*Server).handleWebhookSecret},
		{method: post, path: webhookSecretPath, access: accessKey, scope: manage, handler: (*Server).handleWebhookSecretRotation},
		{method: post, path: webhookTestPath, access: accessKey, scope: manage, body: bodyMaybe, bound: smallBody, time: webhookTestTime, handler: (*Server).handleWebhookTest},

		{method: get, path: endpointsPath, access: accessKey, scope: manage, handler: (*Server).handleEndpoints},
		{method: post, path: endpointsPath, access: accessKey, scope: manage, body: bodyJSON, bound: smallBody, handler: (*Server).handleEndpointCreation},
		{method: get, path: endpointsPath + "/:endpoint_id", access: accessKey, scope: manage, handler: (*Server).handleEndpoint},
		{method: patch, path: endpointsPath + "/:endpoint_id", access: accessKey, scope: manage, body: bodyJSON, bound: smallBody, handler: (*Server).handleEndpointChange},
		{method: del, path: endpointsPath + "/:endpoint_id", access: accessKey, scope: manage, handler: (*Server).handleEndpointDeletion},
		{method: post, path: endpointsPath + "/:endpoint_id/test", access: accessKey, scope: manage, handler: (*Server).handleEndpointTest},
		{method: post, path: endpointsPath + "/:endpoint_id/secret", access: accessKey, scope: manage, handler: (*Server).handleEndpointSecretRotation},
		{method: get, path: endpointsPath + "/:endpoint_id/deliveries", access: accessKey, scope: manage, handler: (*Server).handleEndpointDeliveries},
		{method: post, path: endpointsPath + "/:endpoint_id/deliveries/:event_id/redeliver", access: accessKey, scope: manage, handler: (*Server).handleEventRedelivery},

		{method: get, path: keysPath, access: accessKey, scope: manage, handler: (*Server).handleKeys},
		{method: post, path: keysPath, access: accessKey, scope: manage, body: bodyJSON, bound: smallBody, handler: (*Server).handleKeyCreation},
		{method: get, path: keysPath + "/:key_id", access: accessKey, scope: manage, handler: (*Server).handleKey},
		{method: patch, path: keysPath + "/:key_id", access: accessKey, scope: manage, body: bodyJSON, bound: smallBody, handler: (*Server).handleKeyChange},
		{method: del, path: keysPath + "/:key_id", access: accessKey, scope: manage, handler: (*Server).handleKeyDeletion},
		{method: post, path: keysPath + "/:key_id/rotate", access: accessKey, scope: manage, body: bodyMaybe, bound: smallBody, handler: (*Server).handleKeyRotation},

		{method: get, path: adminOpenAPIPath, access: accessAdmin, role: roleRead, handler: (*Server).handleAdminOpenAPI},
		{method: post, path: admin + "/accounts", access: accessAdmin, role: roleAdmin, body: bodyJSON, bound: smallBody, handler: (*Server).handleAccountCreation},
		{method: get, path: admin + "/accounts", access: accessAdmin, role: roleRead, handler: (*Server).handleAccounts},
		{method: get, path: admin + "/accounts/:account_id", access: accessAdmin, role: roleRead, handler: (*Server).handleAccount},
		{method: patch, path: admin + "/accounts/:account_id", access: accessAdmin, role: roleAdmin, body: bodyJSON, bound: smallBody, handler: (*Server).handleAccountChange},
		{method: post, path: admin + "/accounts/:account_id/grants", access: accessAdmin, role: roleAdmin, body: bodyJSON, bound: smallBody, handler: (*Server).handleGrant},
		{method: get, path: admin + "/accounts/:account_id/ledger", access: accessAdmin, role: roleRead, handler: (*Server).handleLedger},
		{method: get, path: admin + "/accounts/:account_id/statement", access: accessAdmin, role: roleRead, handler: (*Server).handleStatement},
		{method: post, path: admin + "/accounts/:account_id/keys", access: accessAdmin, role: roleAdmin, body: bodyJSON, bound: smallBody, handler: (*Server).handleKeyCreation},
		{method: get, path: admin + "/accounts/:account_id/endpoints", access: accessAdmin, role: roleRead, handler: (*Server).handleEndpoints},
		{method: get, path: admin + "/keys", access: accessAdmin, role: roleRead, handler: (*Server).handleKeys},
		{method: get, path: admin + "/keys/:key_id", access: accessAdmin, role: roleRead, handler: (*Server).handleKey},
		{method: patch, path: admin + "/keys/:key_id", access: accessAdmin, role: roleAdmin, body: bodyJSON, bound: smallBody, handler: (*Server).handleKeyChange},
		{method: post, path: admin + "/keys/:key_id/rotate", access: accessAdmin, role: roleAdmin, body: bodyMaybe, bound: smallBody, handler: (*Server).handleKeyRotation},
		{method: del, path: admin + "/keys/:key_id", access: accessAdmin, role: roleAdmin, handler: (*Server).handleKeyDeletion},
		{method: get, path: admin + "/tasks", access: accessAdmin, role: roleRead, handler: (*Server).handleAdminTasks},
		{method: get, path: admin + "/tasks/:task_id", access: accessAdmin, role: roleRead, handler: (*Server).handleAdminTask},
		{method: post, path: admin + "/tasks/:task_id/actions", access: accessAdmin, role: roleOperate, body: bodyJSON, bound: smallBody, handler: (*Server).handleAdminAction},
		{method: post, path: admin + "/tasks/actions", access: accessAdmin, role: roleOperate, body: bodyJSON, bound: smallBody, handler: (*Server).handleTaskActions},
		{method: get, path: admin + "/tasks/actions/:job_id", access: accessAdmin, role: roleRead, handler: (*Server).handleJob},
		{method: get, path: admin + "/channels", access: accessAdmin, role: roleRead, handler: (*Server).handleChannels},
		{method: get, path: admin + "/channels/:channel", access: accessAdmin, role: roleRead, handler: (*Server).handleChannel},
		{method: patch, path: admin + "/channels/:channel", access: accessAdmin, role: roleOperate, body: bodyJSON, bound: smallBody, handler: (*Server).handleChannelChange},
		{method: get, path: admin + "/vendors", access: accessAdmin, role: roleRead, handler: (*Server).handleVendors},
		{method: get, path: admin + "/usage", access: accessAdmin, role: roleRead, handler: (*Server).handleAdminUsage},
		{method: get, path: admin + "/ledger/check", access: accessAdmin, role: roleRead, handler: (*Server).handleLedgerCheck},
		{method: post, path: admin + "/recover", access: accessAdmin, role: roleAdmin, body: bodyJSON, bound: smallBody, handler: (*Server).handleRecover},
		{method: get, path: admin + "/audit", access: accessAdmin, role: roleRead, handler: (*Server).handleAudit},
	}...)
}

// submitRoutes returns the catalog's endpoints, each of which takes a submit.
func submitRoutes() []route {
	var list []route
	for _, e := range catalog.Endpoints() {
		r := route{
			method:  http.MethodPost,
			path:    e.Path,
			access:  accessKey,
			scope:   mediagate.ScopeGenerate,
			body:    bodyJSON,
			bound:   modelsBody,
			time:    ModerationTime,
			handler: (*Server).handleSubmit,
		}
		switch e.Path {
		case videosPath:
			r.time += uploadTime
		case imagesPath:
			r.time += uploadTime
			r.handler = (*Server).handleImages
		case speechPath:
			r.handler = (*Server).handleSpeech
		case catalog.ModalEndpoint:
			r.handler = (*Server).handleModal
		case musicPath + "/replaceMusic", musicPath + "/replaceMusicB":
			r.envelope = envelopeReplace
		default:
			if strings.HasPrefix(e.Path, musicPath) {
				r.envelope = envelopeMusic
			}
		}
		list = append(list, r)
	}
	return list
}

// mount registers the routes with Echo. A route for GET also serves HEAD.
func (s *Server) mount(e *echo.Echo) {
	for _, r := range routes() {
		s.envelopes[r.path] = r.envelope
		handler := func(ec echo.Context) error {
			c := callOf(ec)
			c.route, c.models = r, s.models.Load()
			if r.bound == modelsBody {
				c.route.bound = c.models.bounds[r.path]
			}
			c.setTimeout(s.cfg.StoreTimeout)
			defer c.cancelContext()
			if err := s.authenticate(c); err != nil {
				return c.asTimeout(err)
			}
			if c.caller != nil && r.body != bodyNone {
				var err error
				if c.requestPermit, err = c.tryAcquire(s.cfg.Limits.Requests, 1, "requests in progress"); err != nil {
					return err
				}
				defer func() { c.requestPermit.Release() }()
			}
			if r.isRated() {
				if err := s.takeRates(c); err != nil {
					return c.asTimeout(err)
				}
			}
			if err := s.countSelfService(c); err != nil {
				return c.asTimeout(err)
			}
			if !r.access.keyless() && r.method != http.MethodGet {
				c.setActor(c.asActor())
			}
			if err := c.plainBody(); err != nil {
				return err
			}
			defer func() { c.bodyPermit.Release() }()
			err := r.handler(s, c)
			s.noteAnswer(c, err)
			return c.asTimeout(err)
		}
		methods := []string{r.method}
		if r.method == http.MethodGet {
			methods = append(methods, http.MethodHead)
		}
		e.Match(methods, r.path, handler)
		s.methods[r.path] = append(s.methods[r.path], methods...)
	}
}
