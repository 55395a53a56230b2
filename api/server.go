package api

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/labstack/echo/v4"
	"github.com/oklog/ulid/v2"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/api/listener"
)

// Server answers the API's requests. It is an http.Handler. Serve runs it on a listener.
type Server struct {
	cfg            Config
	now            func() time.Time
	log            *slog.Logger
	echo           *echo.Echo
	envelopes      map[string]envelope // by route path
	methods        map[string][]string // by route path
	models         atomic.Pointer[models]
	operators      atomic.Pointer[[]Operator]
	groups         map[string]group
	connections    *listener.Connections
	keys           *lookupCache[*caller]
	sessions       *lookupCache[mediagate.Session]
	crossOrigin    *http.CrossOriginProtection // for sign-ins
	console        *console
	throttle       *loginThrottle
	logins         *listener.SampledLog // failed logins of operators
	lastUses       *lastUses
	starts         *starts
	watch          *watcher
	streamInterval time.Duration // see the constant
	hints          *hints
	speeches       sync.WaitGroup // in progress, with the ends of their holds
	ready          *Recent[partsReport]
	life           context.Context // ends with Close
	end            context.CancelFunc

	adminDocument func() (*published, error)

	entropy ulid.MonotonicReader
}

// New makes a Server. Close must be called when the Server is not used any more. Serve calls it at
// its end.
func New(cfg Config) (*Server, error) {
	cfg, err := cfg.withDefaults()
	groups, groupsErr := parseGroups(cfg.Groups)
	if err = errors.Join(err, groupsErr); err != nil {
		return nil, err
	}
	s := &Server{
		cfg: cfg, now: cfg.Now, log: cfg.Logger, echo: echo.New(),
		envelopes: map[string]envelope{}, methods: map[string][]string{}, groups: groups,
		throttle:       &loginThrottle{now: cfg.Now},
		logins:         listener.NewSampledLog(cfg.Logger, "failed logins of operators"),
		lastUses:       newLastUses(cfg.Store, cfg.Logger),
		starts:         newStarts(cfg.Starter, cfg.Store, cfg.Limits, cfg.Logger),
		watch:          newWatcher(cfg.Store, cfg.Logger),
		streamInterval: streamInterval,
		entropy:        &ulid.LockedMonotonicReader{MonotonicReader: ulid.Monotonic(rand.Reader, 0)},
	}
	s.adminDocument = sync.OnceValues(s.publishedAdminDocument)
	if err := s.Replace(cfg.Catalog, cfg.Routes); err != nil {
		return nil, err
	}
	s.ReplaceOperators(cfg.Operators)
	if s.console, err = newConsole(cfg.Console, cfg.MediaOrigins); err != nil {
		return nil, err
	}
	s.crossOrigin = http.NewCrossOriginProtection()
	if origin := originOf(cfg.PublicURL); origin != "" { // a proxy may send another Host
		if err := s.crossOrigin.AddTrustedOrigin(origin); err != nil {
			return nil, err
		}
	}
	s.keys = newLookupCache(cfg.Now, s.readCaller)
	s.sessions = newLookupCache(cfg.Now, cfg.Store.Session)
	s.connections = s.newConnections(cfg.Limits.Connections, cfg.Limits.Overflow)
	s.life, s.end = context.WithCancel(context.Background())
	s.hints = newHints(s.life, cfg.OpenHint, cfg.Store, cfg.Logger)
	s.ready = NewRecent(cfg.Now, s.checkParts)
	s.echo.Use(s.observe)
	s.mount(s.echo)
	return s, nil
}

// ServeHTTP answers one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.echo.ServeHTTP(w, r) }

// The bounds of a connection. A body may take requestTimeout, and its pieces have deadlines of
// their own (see arrival). net/http counts answerTimeout from the end of the header, so after the
// slowest body 30 s are left for the answer. That is more than StoreTimeout, so the client gets an
// answer even if the database is too slow. A request that waits 60 s for a task ends within both.
const (
	headerTimeout  = 10 * time.Second
	requestTimeout = 100 * time.Second
	answerTimeout  = 130 * time.Second
	cutTime        = 3 * time.Second // for the end of calls that are cut off
)

// Serve answers on the listener, and on the admin API's own, until ctx ends. Then it releases long
// polls, lets running requests and speeches finish, starts the runs of the tasks that still wait
// for their start, and returns nil. It cuts off what does not end within the grace time.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	listeners := s.listeners(l)
	failed := make(chan error, len(listeners))
	for _, d := range listeners {
		go func() { failed <- d.Serve(d.listener) }()
	}
	var sweeping sync.WaitGroup
	sweeping.Go(s.sweepSpeeches)
	defer sweeping.Wait()
	select {
	case err := <-failed:
		for _, d := range listeners {
			_ = d.Close()
		}
		s.Close()
		return fmt.Errorf("serving the API: %w", err)
	case <-ctx.Done():
	}
	s.watch.close()
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.cfg.Grace)
	defer cancel()
	err := shutDown(grace, listeners, s.end) // so that cut calls can tell that the server did it
	s.starts.drain(grace)
	s.awaitSpeeches()
	for range listeners {
		if served := <-failed; !errors.Is(served, http.ErrServerClosed) {
			s.log.WarnContext(ctx, "a listener of the API stopped by itself", "error", served)
		}
	}
	s.Close()
	if err != nil && !errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("stopping the API: %w", err)
	}
	return nil
}

// awaitSpeeches waits, for a limited time, until the speeches that were cut off have stored their
// ends. If a speech has not, another process voids its hold later.
func (s *Server) awaitSpeeches() {
	ended := make(chan struct{})
	go func() {
		s.speeches.Wait()
		close(ended)
	}()
	select {
	case <-ended:
	case <-time.After(cutTime):
	}
}

// Close releases waiting requests, ends those that have not ended by themselves, and writes what
// is still in memory.
func (s *Server) Close() {
	s.watch.close()
	s.end()
	s.starts.close()
	s.lastUses.close()
}

// newID returns a new id that sorts by time.
func (s *Server) newID(prefix string) string { return s.newIDAt(prefix, s.now()) }

// newIDAt is newID for something made at that time.
func (s *Server) newIDAt(prefix string, made time.Time) string {
	return prefix + ulid.MustNew(ulid.Timestamp(made), s.entropy).String()
}

func callOf(ec echo.Context) *call {
	c, _ := ec.Get(callKey).(*call)
	return c
}

// observe surrounds every request, with or without a route: it gives the request an id, renders
// its error, and writes its log line.
func (s *Server) observe(next echo.HandlerFunc) echo.HandlerFunc {
	return func(ec echo.Context) error {
		overLimit := s.beginCall(ec.Request())
		c := &call{Context: ec, requestID: s.newID("req_"), started: time.Now(), server: s.life}
		c.client = listener.ClientAddress(ec.Request(), s.cfg.TrustedProxies)
		ec.Set(callKey, c)
		ec.Response().Header().Set("X-Request-Id", c.requestID)
		ec.Response().Before(c.skipBody)
		route := s.routePath(ec)
		known, routed := s.envelopes[route]
		if routed = routed && s.isServedHere(ec.Request(), route); routed {
			c.envelope = known
		} else {
			c.envelope = envelopeFor(ec.Request().URL.Path)
		}
		preflight := s.cors(c)
		if overLimit {
			c.giveUpBody()
		}
		if listener.HasUncertainEnd(ec.Request()) {
			c.Response().Header().Set("Connection", "close")
		}
		var err error
		switch {
		case overLimit && route != healthPath && route != readyPath:
			err = errConnections
		case ec.Request().Method == http.MethodOptions && ec.Request().RequestURI == "*": // asks whether the server is alive
			err = ec.NoContent(http.StatusOK)
		case !routed && s.asksForConsole(ec.Request()):
			ec.Response().Header().Set("Vary", "Accept")
			err = ec.Redirect(http.StatusFound, consolePath)
		case !routed:
			err = errRoute(ec.Request())
		case preflight:
			err = ec.NoContent(http.StatusNoContent)
		case !slices.Contains(s.methods[route], ec.Request().Method):
			ec.Response().Header().Set("Allow", strings.Join(s.methods[route], ", "))
			err = errMethod(ec.Request())
		default:
			err = s.callHandler(next, c)
		}
		if err == nil && !c.Response().Committed {
			err = errNoAnswer
		}
		cut := errors.Is(err, errCut)
		switch {
		case cut:
			err = nil // the connection is cut, without an answer
		case err != nil:
			err = s.answerError(c, err)
		}
		if !c.Response().Committed {
			cut, c.Response().Status = true, statusCut
		}
		s.cfg.Observe(c.class(), c.Response().Status, time.Since(c.started))
		s.logCall(c, err)
		if cut { // or net/http would end the answer as if it were complete
			panic(http.ErrAbortHandler)
		}
		return nil
	}
}

// routePath returns the path of the route that the request names, or "". If the request's path is
// exactly the path of a route, it names that route, whatever its method. Echo's router would instead
// look for another route that takes the method, such as one with a parameter in that place.
func (s *Server) routePath(ec echo.Context) string {
	switch own := echo.GetPath(ec.Request()); {
	case s.methods[own] != nil:
		return own
	case sameShape(ec), ec.Path() == consoleFiles:
		return ec.Path()
	default:
		return ""
	}
}

// sameShape reports whether the path has as many segments as the route. Echo's router also
// accepts a last parameter that spans several segments, and an empty one.
func sameShape(ec echo.Context) bool {
	path := echo.GetPath(ec.Request())
	return !strings.HasSuffix(path, "/") && !strings.Contains(path, "//") &&
		strings.Count(path, "/") == strings.Count(ec.Path(), "/")
}

// callHandler runs the handler and turns a panic into an internal error. http.ErrAbortHandler,
// the panic that asks net/http to cut the connection, becomes errCut, so that the request still
// gets its log line.
func (s *Server) callHandler(next echo.HandlerFunc, c *call) (err error) {
	defer func() {
		if p := recover(); p != nil {
			if p == http.ErrAbortHandler { //nolint:errorlint // a panic value, compared as net/http does
				err = errCut
				return
			}
			err = mediagate.Panicked(p)
		}
	}()
	return next(c.Context)
}

// statusCut is the status in the log for a connection that was cut without an answer.
const statusCut = 499

var (
	errNoAnswer = &mediagate.Error{Kind: mediagate.KindInternal, Message: "the handler wrote no answer"}
	// errCut asks to end the connection without an answer, because the client has left or because
	// every answer would be wrong.
	errCut = errors.New("connection cut")
)

// answerError answers a failed call and returns the error for the log.
func (s *Server) answerError(c *call, err error) error {
	if c.Response().Committed {
		return err
	}
	if balance, ok := balanceFailure(err); ok {
		_ = c.ok(balance)
		return err
	}
	if rerr := renderError(c, err); rerr != nil {
		return errors.Join(err, rerr)
	}
	return err
}

// isServerFault reports whether the error is the server's fault, whatever the client was told.
func isServerFault(err error) bool {
	return renderingOf(domainError(err).Kind, envelopeA).status >= http.StatusInternalServerError
}

// shortMethod bounds the method in the log, since a client may send any text.
func shortMethod(method string) string {
	const most = 20
	if len(method) > most {
		return method[:most] + "…"
	}
	return method
}

// logCall writes the one log line of the request. Only server faults are logged with their cause:
// other errors may quote what the client sent.
func (s *Server) logCall(c *call, err error) {
	status, level := c.Response().Status, slog.LevelInfo
	if status >= http.StatusInternalServerError || err != nil && isServerFault(err) {
		level = slog.LevelError
	}
	if c.quiet {
		level = slog.LevelDebug
	}
	ctx := c.Request().Context()
	if !s.log.Enabled(ctx, level) {
		return
	}
	attrs := make([]slog.Attr, 0, 10)
	attrs = append(attrs,
		slog.String("method", shortMethod(c.Request().Method)), slog.String("route", c.Path()),
		slog.Int("status", status), slog.Float64("duration_ms", float64(time.Since(c.started).Microseconds())/1000),
		slog.String("request", c.requestID))
	if c.client.IsValid() {
		attrs = append(attrs, slog.String("client", c.client.String()))
	}
	if c.caller != nil {
		attrs = append(attrs, slog.String("account", c.caller.key.AccountID), slog.String("key", c.caller.key.Prefix))
	}
	if c.operator.name != "" {
		attrs = append(attrs, slog.String("operator", c.operator.name))
	}
	if c.taskID != "" {
		attrs = append(attrs, slog.String("task", c.taskID))
	}
	if c.speech != nil {
		attrs = append(attrs, c.speech.attrs()...)
	}
	if err != nil {
		e := domainError(err)
		attrs = append(attrs, slog.String("kind", e.Kind.String()))
		if e.Param != "" {
			attrs = append(attrs, slog.String("param", e.Param))
		}
		if level == slog.LevelError {
			attrs = append(attrs, slog.String("error", err.Error()))
		}
	}
	s.log.LogAttrs(ctx, level, "request", attrs...)
}
