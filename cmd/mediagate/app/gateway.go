package app

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/oklog/ulid/v2"
	"go.temporal.io/sdk/client"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/activities"
	"github.com/mediagate/mediagate/api"
	"github.com/mediagate/mediagate/catalog"
	"github.com/mediagate/mediagate/channel"
	"github.com/mediagate/mediagate/console"
	"github.com/mediagate/mediagate/internal/hint"
	"github.com/mediagate/mediagate/internal/limit"
	"github.com/mediagate/mediagate/internal/metrics"
	"github.com/mediagate/mediagate/internal/moderation"
	"github.com/mediagate/mediagate/internal/outbound"
	"github.com/mediagate/mediagate/internal/webhook"
	"github.com/mediagate/mediagate/providers"
	"github.com/mediagate/mediagate/storage"
	"github.com/mediagate/mediagate/storage/blob"
	"github.com/mediagate/mediagate/worker"
	"github.com/mediagate/mediagate/workflows"
)

// Options are what a program decides apart from the settings.
type Options struct {
	Version string
	Logger  *slog.Logger
	Role    Role
	// LocalCallbacks gives vendors with a base_url in our own network the address at which this
	// process's API listens, for callbacks, if there is no public_url.
	LocalCallbacks bool
	// Sources are where the settings came from. The API rereads its operators from there. With nil they
	// stay as they are.
	Sources *Sources
	// OpenStore opens the database. The default is PostgreSQL at database_url.
	OpenStore func(ctx context.Context, c storage.Config) (*storage.Store, error)
}

// Gateway is everything that the settings name, opened.
type Gateway struct {
	Config   Config
	Store    *storage.Store
	Temporal client.Client
	Bucket   *blob.Store

	opts     Options
	log      *slog.Logger
	rules    outbound.Rules
	files    fetcher
	site     outbound.Site
	hints    hint.Keys
	catalog  *catalog.Catalog // as of the start
	reloader *reloader[*catalog.Catalog]
	channels *channel.Configured
	breakers *channel.Breakers
	polling  atomic.Bool // the worker polls its queues
	traces   *traces     // nil for none
	metrics  *metrics.Metrics
	bounds   *limit.Process
	server   atomic.Pointer[api.Server] // nil for none

	moderator       api.Moderator                // nil for none
	lists           *reloader[*moderation.Lists] // nil for none
	closeModeration func()
	operators       *reloader[[]api.Operator] // nil if no file names operators
}

// Open opens what the settings name. The database must answer, but Temporal and the bucket may be
// away.
func Open(ctx context.Context, c Config, o Options) (*Gateway, error) {
	g := &Gateway{Config: c, opts: o, log: o.Logger, metrics: metrics.New(o.Version, o.Role.String())}
	sizes := c.sizes()
	if o.OpenStore != nil { // SQLite, which has one writer at a time
		sizes.Writers = 4
	}
	if int(sizes.Connections) < c.APIConnections.Total {
		g.log.WarnContext(
			ctx, "fewer connections than api_connections.total: the process may open too few files", "connections",
			sizes.Connections,
		)
	}
	g.bounds = limit.For(sizes)
	var err error
	if g.rules, err = c.rules(); err != nil {
		return nil, err
	}
	keys, err := c.encryptionKeys()
	if err != nil {
		return nil, err
	}
	if g.hints, err = hint.NewKeys(keys); err != nil {
		return nil, fmt.Errorf("encryption_keys: %w", err)
	}
	g.reloader = &reloader[*catalog.Catalog]{
		setting: "catalog_dir", log: o.Logger, size: modelsIn,
		state: func() string { return catalogState(c.CatalogDir) },
		load: func() (*catalog.Catalog, []string) {
			return loadCatalog(c, catalog.WithMediaURLCheck(g.checkMediaURL), catalog.WithTaskFileOf(g.taskFileOf))
		},
	}
	var problems []string
	if g.catalog, problems = g.reloader.first(); len(problems) > 0 {
		return nil, fmt.Errorf("catalog: %s", strings.Join(problems, "; "))
	}
	if err := g.openModeration(); err != nil {
		return nil, err
	}
	if g.traces, err = openTraces(ctx, o.Version, o.Logger); err != nil {
		return nil, err
	}
	ways, err := c.ways()
	if err != nil {
		return nil, err
	}
	g.files = fetcher{g.rules, ways}
	channels := domainChannels(c.Channels, g.catalog)
	o.Role.warnOfMissingCredentials(ctx, c.vendors, channels, o.Logger)
	if g.channels, err = openChannels(
		c.vendors, o.Role.openable(channels), providers.Options{Version: o.Version}, g.files, g.metrics.VendorCalls, g.traces,
	); err != nil {
		return nil, err
	}
	if g.Bucket, err = blob.Open(ctx, blob.Config{
		Endpoint: c.S3.Endpoint, PublicEndpoint: c.S3.PublicEndpoint, Region: c.S3.Region, Bucket: c.S3.Bucket,
		AccessKeyID: c.S3.AccessKeyID, SecretAccessKey: c.S3.SecretAccessKey, PathStyle: c.S3.PathStyle,
		Memory: g.bounds.CopyMemory, ClientMemory: clientMemory(),
	}); err != nil {
		return nil, fmt.Errorf("s3: %w", err)
	}
	around, err := g.traces.interceptors()
	if err != nil {
		return nil, err
	}
	counted, err := g.metrics.Temporal()
	if err != nil {
		return nil, err
	}
	if g.Temporal, err = c.Temporal.Client(
		o.Logger, func(o *client.Options) { o.Interceptors, o.MetricsHandler = around, counted },
	); err != nil {
		return nil, err
	}
	if g.Store, err = openStore(ctx, c, keys, o, g.metrics, g.bounds.Writers); err != nil {
		g.Close()
		return nil, err
	}
	g.watch()
	g.breakers = &channel.Breakers{Store: g.Store, Now: g.Store.Now, Logger: g.log, NewID: newID}
	return g, nil
}

// modelsIn returns the number of models in a catalog.
func modelsIn(c *catalog.Catalog) int { return len(c.Models()) }

// newID returns a new id that sorts by time.
func newID(prefix string) string { return prefix + ulid.Make().String() }

// encryptionKeys decodes the keys from base64.
func (c Config) encryptionKeys() ([][]byte, error) {
	keys := make([][]byte, len(c.EncryptionKeys))
	for i, text := range c.EncryptionKeys {
		var err error
		if keys[i], err = base64.StdEncoding.DecodeString(text); err != nil {
			return nil, fmt.Errorf("encryption_keys[%d]: %w", i, err)
		}
	}
	return keys, nil
}

func openStore(
	ctx context.Context, c Config, keys [][]byte, o Options, observer storage.Observer, writers *limit.Limit,
) (*storage.Store, error) {
	sc := storage.Config{
		EncryptionKeys: keys, Logger: o.Logger, MaxOpenConns: c.DatabasePool.Size, MaxConnAge: c.DatabasePool.MaxAge,
		Pooler: storage.Pooler(c.DatabasePooler), Observer: observer, Writers: writers,
		AccountDefaults: c.AccountDefaults.limits(),
	}
	if o.OpenStore != nil {
		return o.OpenStore(ctx, sc)
	}
	return storage.OpenPostgres(ctx, c.DatabaseURL, sc)
}

// Close closes what Open opened.
func (g *Gateway) Close() {
	if g.Temporal != nil {
		g.Temporal.Close()
	}
	if g.closeModeration != nil {
		g.closeModeration()
	}
	if g.channels != nil {
		g.channels.Close()
	}
	if g.Bucket != nil {
		g.Bucket.Close()
	}
	if g.Store != nil {
		if err := g.Store.Close(); err != nil {
			g.log.Warn("database not closed", "error", err)
		}
	}
	g.traces.close(g.log)
}

// rules returns the address rules of the settings.
func (c Config) rules() (outbound.Rules, error) {
	var r outbound.Rules
	for _, text := range c.Outbound.Allow {
		p, err := netip.ParsePrefix(text)
		if err != nil {
			return r, fmt.Errorf("outbound.allow: %w", err)
		}
		r.Allow = append(r.Allow, p)
	}
	domains, prefixes, err := outbound.ParseOwn(c.OwnDomains)
	if err != nil {
		return r, fmt.Errorf("own_domains: %w", err)
	}
	machine, err := outbound.InterfacePrefixes()
	if err != nil {
		return r, err
	}
	r.OwnDomains, r.OwnPrefixes = domains, append(prefixes, machine...)
	if u, err := url.Parse(c.PublicURL); err == nil && u.Hostname() != "" {
		// The address of a proxy in front is on none of this machine's interfaces.
		if ip, err := netip.ParseAddr(u.Hostname()); err == nil {
			r.OwnPrefixes = append(r.OwnPrefixes, netip.PrefixFrom(ip.Unmap(), ip.Unmap().BitLen()))
		} else {
			r.OwnDomains = append(r.OwnDomains, u.Hostname())
		}
	}
	return r, nil
}

// migrateTemporal bounds how long Migrate waits for Temporal, whose processes take some seconds
// to learn of a new namespace.
const migrateTemporal = time.Minute

// Migrate brings the database, the bucket and the Temporal namespace to the state that this
// version needs. It may run at any time, and several times at once.
func (g *Gateway) Migrate(ctx context.Context) error {
	if err := g.Store.Migrate(ctx); err != nil {
		return fmt.Errorf("migrate the database: %w", err)
	}
	if err := g.Bucket.EnsureBucket(ctx); err != nil {
		return fmt.Errorf("make the bucket: %w", err)
	}
	try, cancel := context.WithTimeout(ctx, migrateTemporal)
	defer cancel()
	if err := workflows.EnsureNamespace(try, g.Temporal, g.Config.Temporal.Namespace, g.log); err != nil {
		return fmt.Errorf("prepare Temporal: %w", err)
	}
	if err := g.Bucket.Probe(ctx); err != nil { // last, since everything else is ready by then
		return fmt.Errorf("try the bucket: %w", err)
	}
	return nil
}

// Reseal encrypts with the first encryption key the webhook secrets that only other keys open. Its
// error names the secrets that no key opens. It reseals the others even so.
func (g *Gateway) Reseal(ctx context.Context) error {
	resealed, seals, err := g.Store.ResealWebhookSecrets(ctx)
	g.log.InfoContext(
		ctx, "webhook secrets sealed anew", "secrets", resealed, "by_first_key", seals.First, "by_no_key", seals.Lost,
	)
	if err != nil {
		return fmt.Errorf("seal webhook secrets anew: %w", err)
	}
	return lostSeals(seals)
}

// lostSeals returns an error that names the secrets that no encryption key opens.
func lostSeals(seals mediagate.Seals) error {
	if seals.Lost == 0 {
		return nil
	}
	return fmt.Errorf(
		"encryption_keys: %d webhook secrets are sealed by a key that is missing:\n%w", seals.Lost,
		errors.Join(seals.Errs...),
	)
}

// checkSeals reports early which webhook secrets no encryption key opens, since their accounts
// get no callbacks. It also reports how many secrets still need a former key.
func (g *Gateway) checkSeals(ctx context.Context) {
	seals, err := g.Store.WebhookSeals(ctx)
	if err == nil {
		err = lostSeals(seals)
	}
	switch {
	case ctx.Err() != nil:
	case err != nil:
		g.log.ErrorContext(ctx, "webhook secrets cannot be opened", "error", err)
	case seals.Former > 0:
		g.log.InfoContext(
			ctx, "webhook secrets need a former encryption key until migrate seals them anew", "secrets", seals.Former,
		)
	}
}

// API builds the API. admin is the admin API's own listener, or nil.
func (g *Gateway) API(admin net.Listener) (*api.Server, error) {
	c := g.Config
	groups := make(map[string]api.Group, len(c.Groups))
	for name, group := range c.Groups {
		groups[name] = api.Group{PriceFactor: group.PriceFactor, Models: group.Models, Capacity: group.Capacity}
	}
	proxies, err := c.TrustedProxies.trusted()
	if err != nil {
		return nil, err
	}
	operators, err := g.openOperators()
	if err != nil {
		return nil, err
	}
	identity, err := g.identityProvider()
	if err != nil {
		return nil, err
	}
	config := api.Config{
		Store: g.Store, Catalog: g.catalog, Routes: g.routes(g.catalog), Uploads: uploads{g.Bucket}, Files: g.Bucket,
		FileURL: g.fileURL, TaskFileOf: g.taskFileOf,
		Starter: workflows.Client{Temporal: g.Temporal, Namespace: c.Temporal.Namespace, Pages: workflows.PagesOf(
			c.Temporal.UIURL, c.Temporal.Namespace,
		)}, Runs: workflows.Client{Temporal: g.Temporal},
		Signer: g.Bucket, Remover: g.Bucket,
		Speaker: &channel.Speakers{Channels: g.channels, Breakers: g.breakers, Now: g.Store.Now}, Grace: c.ShutdownGrace,
		Checks: api.Checks{
			Database: g.Store.Ping, Clock: g.Store.CheckClock, Temporal: g.pingTemporal,
			Bucket: checkBucket(g.Bucket, g.Store.Now, g.log), Catalog: g.reloader.check,
			Moderation: g.lists.check, Operators: g.operators.check,
		},
		Limits: g.bounds, Moderator: g.moderator, ModeratorCalls: c.Moderation.Mode == moderationEndpoint,
		OpenHint: g.hints.Open, Tracer: g.traces.Tracer(),
		CheckWebhookURL: func(raw string) error {
			_, err := g.rules.CheckWebhookURL(raw)
			return err
		},
		Deliverer: g.deliverer(),
		Operators: operators, AdminListener: admin, Channels: apiChannels(domainChannels(c.Channels, g.catalog)),
		Vendors: apiVendors(c.vendors), CreditsPerUnit: c.CreditsPerUnit, Currency: c.Currency, Groups: groups,
		AccountDefaults: c.AccountDefaults.limits(),
		LinkTTL:         c.LinkTTL, Keep: mediagate.Retention(c.Retention), CORSOrigins: c.origins(), TrustedProxies: proxies,
		TaskTimeout: c.TaskTimeout, ModalTimeout: c.ArtModal, ParkTimeout: c.ParkTimeout, ParkRetry: c.ParkRetry,
		QueueTimeout: c.QueueTimeout,
		IdleTimeout:  c.IdleTimeout,
		Console:      console.Files(), MediaOrigins: slices.Compact([]string{g.Bucket.Origin(), g.site.Origin()}),
		Version: g.opts.Version, PublicURL: g.publicURL(), Now: g.Store.Now, Logger: g.log,
		Observe: g.metrics.Request,
	}
	if identity != nil {
		config.IdentityProvider, config.Checks.OIDC = identity, identity.Check
	}
	server, err := api.New(config)
	if err != nil {
		return nil, err
	}
	if g.operators != nil {
		g.operators.use = func(list []api.Operator) error {
			server.ReplaceOperators(list)
			return nil
		}
	}
	g.server.Store(server)
	g.reloader.use = func(models *catalog.Catalog) error { return server.Replace(models, g.routes(models)) }
	return server, nil
}

// routes asks the adapters about the models of a catalog.
func (g *Gateway) routes(models *catalog.Catalog) api.Routes {
	return routes{g.Config.vendors.Adapter, g.Config.vendors.Fingerprints, domainChannels(g.Config.Channels, models)}
}

// deliverer makes the sender of callbacks.
func (g *Gateway) deliverer() deliverer {
	return deliverer{traces: g.traces, sender: webhook.New(webhook.Config{
		Rules: g.rules, Timeout: g.Config.Outbound.WebhookTimeout, Version: g.opts.Version,
	})}
}

// pingTemporal checks whether tasks can be started. A server that lacks our namespace or refuses us
// counts as absent.
func (g *Gateway) pingTemporal(ctx context.Context) error {
	return workflows.CheckNamespace(ctx, g.Temporal, g.Config.Temporal.Namespace)
}

// checkTemporal reports early, with the reason, that Temporal does not answer or refuses us. The
// API serves without Temporal, so nothing else would report it.
func (g *Gateway) checkTemporal(ctx context.Context) {
	try, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	switch err := g.pingTemporal(try); {
	case err == nil, ctx.Err() != nil:
	case workflows.IsFinal(err):
		g.log.ErrorContext(ctx, "Temporal refuses our calls: tasks wait until this is corrected", "error", err)
	default:
		g.log.WarnContext(ctx, "Temporal does not answer, tasks wait for it", "error", err)
	}
}

// allowPages sets the bucket's CORS rule at the start of an API.
func (g *Gateway) allowPages(ctx context.Context) {
	if err := g.Bucket.AllowPages(ctx); err != nil && ctx.Err() == nil {
		g.log.WarnContext(
			ctx, "the bucket's CORS rule is not set: the console and pages of cors_origins may not read results by their links",
			"error", err,
		)
	}
}

// RunWorker serves the task queues until ctx ends, and drains them within the grace time.
func (g *Gateway) RunWorker(ctx context.Context) error {
	if err := g.awaitTemporal(ctx); err != nil {
		return err
	}
	settings := activities.DefaultSettings()
	settings.CreditsPerUnit, settings.Keep = g.Config.CreditsPerUnit, mediagate.Retention(g.Config.Retention)
	defer g.countCalls(ctx)() // runs after the last call has ended
	acts := &activities.Activities{
		Store: g.Store, Channels: g.channels, Breakers: g.breakers, Descriptions: descriptions{g.Config.vendors},
		Fetcher: g.files, Bucket: bucket{g.Bucket}, Sweeper: g.Bucket,
		Deliverer: countedDeliverer{g.deliverer(), g.metrics.DeliveryAttempt},
		Engine:    workflows.Client{Temporal: g.Temporal, Namespace: g.Config.Temporal.Namespace},
		Ledger:    countedLedger{g.Store, g.metrics.LedgerChecked}, Meter: g.metrics, Evidence: g.metrics, FileOf: g.fileOf,
		CallbackURL: g.callbackURL, Limits: g.bounds, Settings: settings, Now: g.Store.Now, Logger: g.log,
		StartedAt: g.Store.Now(),
		NewID:     newID,
		Tracer:    g.traces.Tracer(),
	}
	return worker.Run(ctx, worker.Config{
		Temporal: g.Temporal, Activities: acts, Providers: g.Config.vendors.Names(), Channels: g.channels.Names(),
		Grace: g.Config.ShutdownGrace, Logger: g.log, RecordChannels: g.Store.SeenChannel,
		OnServing: func() { g.polling.Store(true) }, Observe: g.metrics.StepEnded,
	})
}

// countCalls stores what the breakers count, until stop is called.
func (g *Gateway) countCalls(ctx context.Context) (stop func()) {
	counting, counted := context.WithCancel(context.WithoutCancel(ctx))
	var counter sync.WaitGroup
	counter.Go(func() { g.breakers.Run(counting) })
	return func() {
		counted()
		counter.Wait()
	}
}

// awaitTemporal waits until Temporal serves the namespace, since a worker can do nothing without
// it. It returns early only with an error that waiting cannot resolve.
func (g *Gateway) awaitTemporal(ctx context.Context) error {
	for {
		try, cancel := context.WithTimeout(ctx, 10*time.Second)
		err := workflows.EnsureNamespace(try, g.Temporal, g.Config.Temporal.Namespace, g.log)
		cancel()
		if err == nil || ctx.Err() != nil {
			return ctx.Err()
		}
		if workflows.IsFinal(err) {
			return fmt.Errorf("prepare Temporal: %w", err)
		}
		g.log.WarnContext(ctx, "waiting for Temporal", "error", err)
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(2 * time.Second):
		}
	}
}
