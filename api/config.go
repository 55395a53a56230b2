package api

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"net"
	"slices"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/api/listener"
	"github.com/mediagate/mediagate/catalog"
	"github.com/mediagate/mediagate/catalog/price"
	"github.com/mediagate/mediagate/internal/limit"
)

// Config is what New needs. The first eleven are required.
type Config struct {
	Store   Store
	Catalog *catalog.Catalog
	Routes  Routes
	Uploads Uploads
	Files   Files
	FileURL func(mediagate.File) string // where clients and vendors reach an upload
	// TaskFileOf reads the address of a task's file, a path or below our public address.
	// Nil: no field takes one.
	TaskFileOf func(url string) (taskID string, n int, ok bool)
	Starter    Starter
	Runs       Runs
	Signer     Signer
	Remover    Remover
	Speaker    Speaker
	Checks     Checks
	// CheckWebhookURL judges the callback address of a submit without asking
	// DNS; its error's message becomes the reason why nothing will be sent.
	// Nil accepts any.
	CheckWebhookURL func(raw string) error
	// Deliverer delivers the tests of callback addresses. Nil: none can be tested.
	Deliverer Deliverer

	// OpenHint names the attempt whose token a vendor's callback carries; nil: no
	// token is ours.
	OpenHint func(token string) (taskID string, n int, ok bool)

	// Moderator judges what submits write; nil: nobody does.
	Moderator Moderator
	// ModeratorAsks says that it asks somebody, which costs: about what can be paid for
	// only, and each account has its share of the questions under way.
	ModeratorAsks bool

	// Limits are those of the process. Nil, or a nil one of them: no bound.
	Limits *limit.Process

	// Tracer makes spans of submits; nil: there are none.
	Tracer trace.Tracer

	Operators []Operator // those with keys; empty: nobody calls the admin API with a key
	// IdentityProvider signs operators in to the console. Nil: only keys do.
	IdentityProvider IdentityProvider

	AdminListener   net.Listener            // of the admin API, which is nowhere else then; nil: where the rest is. Serve closes it
	Channels        []Channel               // as configured
	Vendors         []Vendor                // by their names
	CreditsPerUnit  int64                   // 0: 1000
	Currency        string                  // empty: USD
	Groups          map[string]Group        // empty: "default", all models at list price
	AccountDefaults mediagate.AccountLimits // of accounts that name none
	TaskTimeout     time.Duration           // from submit to the end of waiting; 0: 2 h
	ModalTimeout    time.Duration           // how long a task waits for modal parameters; 0: 30 min
	ParkTimeout     time.Duration           // a parked task that nobody mends fails then; 0: 24 h
	ParkRetry       time.Duration           // a parked step is tried again so often; 0: 5 min
	QueueTimeout    time.Duration           // a task that no channel has a slot for fails then; 0: 24 h
	StoreTimeout    time.Duration           // for what one request asks of the database; 0: 10 s
	BodyPace        time.Duration           // over which bodies are held to the least pace; 0: limit.PaceOver
	BodyWait        time.Duration           // for room in Limits.Bodies; 0: 1 s
	UploadWait      time.Duration           // for room in Limits.Uploads; 0 or more than 10 s: 10 s, since the answer's time runs
	Grace           time.Duration           // for calls under way when the server is to stop; 0: 15 s
	LinkTTL         time.Duration           // of links in answers; 0 or more than 7 days: 7 days
	Keep            mediagate.Retention
	CORSOrigins     []string         // "*" is any
	TrustedProxies  listener.Proxies // in front of us
	IdleTimeout     time.Duration    // how long a connection without a request is kept; 0: 75 s
	Version         string           // shown by /healthz
	PublicURL       string           // where clients reach us, for the OpenAPI document; empty: where they had it from

	Console      fs.FS    // the web application at /console, with index.html; nil: there is none
	MediaOrigins []string // from which it loads files of tasks

	// Observe is called with each request that has ended; nil: nobody counts.
	Observe func(class string, status int, took time.Duration)

	Now    func() time.Time // nil: time.Now
	Logger *slog.Logger     // nil: slog.Default
}

// Group is a class of accounts and keys.
type Group struct {
	PriceFactor string   // decimal; empty: "1"
	Models      []string // patterns with *; empty: all
	Capacity    int      // tasks in flight at once; 0: no limit
}

// Channel is one of our accounts with vendors, as operators may see it.
type Channel struct {
	Name        string
	Provider    string
	Models      []string // empty: all that its provider serves
	Priority    int
	Weight      int
	Concurrency int
	Serves      func(model string, route mediagate.Route) bool
}

const (
	defaultGroup = "default"
	maxLinkTTL   = 7 * 24 * time.Hour // a SigV4 link lasts no longer

	maxUploadWait = 10 * time.Second
)

// withDefaults returns the configuration with its zero values filled in, or
// all that is missing.
func (c Config) withDefaults() (Config, error) {
	var problems []error
	missing := func(absent bool, name string) {
		if absent {
			problems = append(problems, errors.New("api: Config."+name+" is required"))
		}
	}
	missing(c.Store == nil, "Store")
	missing(c.Catalog == nil, "Catalog")
	missing(c.Routes == nil, "Routes")
	missing(c.Uploads == nil, "Uploads")
	missing(c.Files == nil, "Files")
	missing(c.FileURL == nil, "FileURL")
	missing(c.Starter == nil, "Starter")
	missing(c.Runs == nil, "Runs")
	missing(c.Signer == nil, "Signer")
	missing(c.Remover == nil, "Remover")
	missing(c.Speaker == nil, "Speaker")
	if c.Limits == nil {
		c.Limits = &limit.Process{}
	}
	if c.CreditsPerUnit == 0 {
		c.CreditsPerUnit = 1000
	}
	if c.Currency == "" {
		c.Currency = "USD"
	}
	if len(c.Groups) == 0 {
		c.Groups = map[string]Group{defaultGroup: {}}
	}
	if c.ModalTimeout <= 0 {
		c.ModalTimeout = 30 * time.Minute
	}
	if c.ParkTimeout <= 0 {
		c.ParkTimeout = 24 * time.Hour
	}
	if c.ParkRetry <= 0 {
		c.ParkRetry = 5 * time.Minute
	}
	if c.QueueTimeout <= 0 {
		c.QueueTimeout = 24 * time.Hour
	}
	if c.TaskTimeout <= 0 {
		c.TaskTimeout = 2 * time.Hour
	}
	if c.StoreTimeout <= 0 {
		c.StoreTimeout = 10 * time.Second
	}
	if c.BodyWait <= 0 {
		c.BodyWait = time.Second
	}
	if c.UploadWait <= 0 || c.UploadWait > maxUploadWait {
		c.UploadWait = maxUploadWait
	}
	if c.IdleTimeout <= 0 {
		c.IdleTimeout = 75 * time.Second
	}
	if c.Grace <= 0 {
		c.Grace = 15 * time.Second
	}
	if c.LinkTTL <= 0 || c.LinkTTL > maxLinkTTL {
		c.LinkTTL = maxLinkTTL
	}
	if c.CheckWebhookURL == nil {
		c.CheckWebhookURL = func(string) error { return nil }
	}
	if c.Observe == nil {
		c.Observe = func(string, int, time.Duration) {}
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	return c, errors.Join(problems...)
}

// group is a Group made ready.
type group struct {
	factor   price.Factor
	models   []string
	capacity int
}

// readyGroups reads the factors of all groups, or says which are wrong.
func readyGroups(settings map[string]Group) (map[string]group, error) {
	groups := make(map[string]group, len(settings))
	var problems []error
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		g := group{models: settings[name].Models, capacity: settings[name].Capacity}
		if text := settings[name].PriceFactor; text != "" {
			var err error
			if g.factor, err = price.ParseFactor(text); err != nil {
				problems = append(problems, fmt.Errorf("api: groups.%s.price_factor: %w", name, err))
			}
		}
		groups[name] = g
	}
	return groups, errors.Join(problems...)
}
