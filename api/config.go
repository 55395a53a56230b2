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

// Config is what New needs. The fields before Checks are required, except TaskFileOf.
type Config struct {
	Store   Store
	Catalog *catalog.Catalog
	Routes  Routes
	Uploads Uploads
	Files   Files
	FileURL func(mediagate.File) string // the public link of an upload
	// TaskFileOf parses the address of a task's file: a path, or a URL below our public address. With
	// nil no field takes such files.
	TaskFileOf func(url string) (taskID string, n int, ok bool)
	Starter    Starter
	Runs       Runs
	Signer     Signer
	Remover    Remover
	Speaker    Speaker
	Checks     Checks
	// CheckWebhookURL checks a callback address without a DNS lookup. Its error's message becomes the
	// reason why nothing is sent. Nil accepts all addresses.
	CheckWebhookURL func(raw string) error
	// Deliverer delivers tests of callback addresses. With nil they cannot be tested.
	Deliverer Deliverer

	// OpenHint returns the attempt that the token of a vendor's callback belongs to. With nil no token
	// is ours.
	OpenHint func(token string) (taskID string, n int, ok bool)

	// Moderator checks the content of submits. With nil there is no check.
	Moderator Moderator
	// ModeratorCalls says that the moderator calls another service. Then only submits that can be paid
	// for are checked, and each account has its share of the calls in progress.
	ModeratorCalls bool

	// Limits are the limits of the process. A nil limit among them bounds nothing. If Limits itself
	// is nil, nothing is bounded.
	Limits *limit.Process

	// Tracer makes the spans of submits. With nil there are none.
	Tracer trace.Tracer

	Operators []Operator // operators with keys; empty: no key opens the admin API
	// IdentityProvider signs operators in to the console. With nil only keys do.
	IdentityProvider IdentityProvider

	// AdminListener is the admin API's own listener, which Serve closes. With nil the admin API is
	// served with the rest.
	AdminListener   net.Listener
	Channels        []Channel               // as configured
	Vendors         []Vendor                // sorted by name
	CreditsPerUnit  int64                   // 0: 1000
	Currency        string                  // empty: USD
	Groups          map[string]Group        // empty: "default", all models at list price
	AccountDefaults mediagate.AccountLimits // of accounts without limits of their own
	TaskTimeout     time.Duration           // from the submit to the end of waiting for the vendor; 0: 2 h
	ModalTimeout    time.Duration           // how long a task waits for modal parameters; 0: 30 min
	ParkTimeout     time.Duration           // after which a parked task fails; 0: 24 h
	ParkRetry       time.Duration           // between two attempts at a parked step; 0: 5 min
	QueueTimeout    time.Duration           // after which a task without a slot fails; 0: 24 h
	StoreTimeout    time.Duration           // for the database queries of one request; 0: 10 s
	BodyPace        time.Duration           // the time over which limit.LeastPace is measured; 0: limit.PaceOver
	BodyWait        time.Duration           // for a permit of Limits.Bodies; 0: 1 s
	UploadWait      time.Duration           // for a permit of Limits.Uploads; 0 or more than 10 s: 10 s, since it counts against the answer's deadline
	Grace           time.Duration           // for calls in progress when the server stops; 0: 15 s
	LinkTTL         time.Duration           // how long links in answers work; 0 or more than 7 days: 7 days
	Keep            mediagate.Retention
	CORSOrigins     []string         // "*" allows all
	TrustedProxies  listener.Proxies // in front of us
	IdleTimeout     time.Duration    // how long a connection without a request is kept; 0: 75 s
	Version         string           // shown by /healthz
	PublicURL       string           // our public address, for the OpenAPI document; empty: the address that the document was read from

	Console      fs.FS    // the web application at /console, with index.html; nil: none
	MediaOrigins []string // the origins of the task files that the console shows

	// Observe is called after each request. It may be nil.
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

// Channel is one of our vendor accounts as operators may see it.
type Channel struct {
	Name        string
	Provider    string
	Models      []string // empty: all models of its provider
	Priority    int
	Weight      int
	Concurrency int
	Serves      func(model string, route mediagate.Route) bool
}

const (
	defaultGroup = "default"
	maxLinkTTL   = 7 * 24 * time.Hour // the longest life of a SigV4 link

	maxUploadWait = 10 * time.Second
)

// withDefaults fills in the zero values. Its error names all missing fields.
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

// group is a Group with its price factor parsed.
type group struct {
	factor   price.Factor
	models   []string
	capacity int
}

// parseGroups parses the price factors of all groups. Its error names all invalid ones.
func parseGroups(settings map[string]Group) (map[string]group, error) {
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
