package app

import (
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"net"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/catalog"
	"github.com/mediagate/mediagate/catalog/price"
	"github.com/mediagate/mediagate/internal/outbound"
	"github.com/mediagate/mediagate/providers"
	"github.com/mediagate/mediagate/providers/all"
	"github.com/mediagate/mediagate/storage"
	"github.com/mediagate/mediagate/storage/blob"
)

// minAdminKey is the minimum length of an operator's key.
const minAdminKey = 32

// maxWebhookTimeout leaves a delivery's activity, which ends after 45 seconds, the time to record
// the result.
const maxWebhookTimeout = 30 * time.Second

// Validate returns all problems of the settings, each with its path.
func (c Config) Validate() error {
	var problems []error
	for _, p := range c.problems(false, RoleAll) {
		problems = append(problems, p)
	}
	return errors.Join(problems...)
}

// problem is what is wrong with a setting.
type problem struct{ path, text string }

func (p problem) Error() string { return p.path + ": " + p.text }

// problems validates the settings. A program with its own database, embedded, needs no
// database_url.
func (c Config) problems(embedded bool, role Role) []problem {
	v := &validator{}
	if role == RoleReplay {
		v.temporal(c.Temporal)
		return v.problems
	}
	switch {
	case embedded && c.DatabaseURL == "":
	case !strings.HasPrefix(c.DatabaseURL, "postgres://") && !strings.HasPrefix(c.DatabaseURL, "postgresql://"):
		v.add("database_url", "must be a postgres:// URL")
	case strings.Contains(c.DatabaseURL, "#"):
		v.add("database_url", "must have no fragment: a # in a password is %23")
	default:
		if err := storage.CheckURL(c.DatabaseURL); err != nil {
			v.add("database_url", err.Error())
		}
	}
	v.check(c.DatabasePool.Size > 1, "database_pool.size", "must be at least 2")
	switch storage.Pooler(c.DatabasePooler) {
	case "", storage.PoolerNone, storage.PoolerTransaction:
	default:
		v.add("database_pooler", `must be "none" or "transaction"; leave it out to have it found`)
	}
	v.temporal(c.Temporal)
	v.check(c.S3.Bucket != "", "s3.bucket", "must not be empty")
	v.check(c.S3.Region != "", "s3.region", "must not be empty")
	v.address("s3.endpoint", c.S3.Endpoint, baseAddress)
	v.address("s3.public_endpoint", c.S3.PublicEndpoint, bareAddress)
	if (c.S3.AccessKeyID == "") != (c.S3.SecretAccessKey == "") {
		v.add("s3.secret_access_key", "goes with access_key_id: set both or neither")
	}
	v.hostPort("api_listen", c.APIListen, true)
	v.check(c.APIConnections.Total > 0, "api_connections.total", "must be above 0")
	v.hostPort("ops_listen", c.OpsListen, true)
	if c.AdminListen != "" {
		v.hostPort("admin_listen", c.AdminListen, true)
		v.check(
			!samePort(c.AdminListen, c.APIListen), "admin_listen", "is the address of api_listen: take another, or leave it out",
		)
	}
	if c.AdminKey != "" || role.needsOperators() {
		v.adminKey("admin_key", c.AdminKey)
	}
	v.operators(c, role)
	v.oidc(c, role)
	v.check(len(c.EncryptionKeys) > 0, "encryption_keys", "must hold at least one key")
	for i, key := range c.EncryptionKeys {
		raw, err := base64.StdEncoding.DecodeString(key)
		path := fmt.Sprintf("encryption_keys[%d]", i)
		v.check(err == nil && len(raw) == 32, path, "must be base64 of 32 bytes")
		v.check(err != nil || len(raw) != 32 || !regular(raw), path, "%s", tooRegular)
	}
	v.address("public_url", c.PublicURL, bareAddress)
	v.address("temporal.ui_url", c.Temporal.UIURL, baseAddress)
	for i, entry := range c.OwnDomains {
		if _, _, err := outbound.ParseOwn([]string{entry}); err != nil {
			v.add(fmt.Sprintf("own_domains[%d]", i), err.Error())
		}
	}
	for i, origin := range c.CORSOrigins {
		v.check(
			isOrigin(origin), fmt.Sprintf("cors_origins[%d]", i),
			"must be scheme://host, with a port where it is not the scheme's own, or *",
		)
	}
	v.check(c.Currency != "", "currency", "must not be empty")
	v.check(c.CreditsPerUnit > 0, "credits_per_unit", "must be above 0")
	v.check(
		c.MirrorMemory >= blob.MinMemory, "mirror_memory", "must be at least %s, what one copy needs",
		ByteSize(blob.MinMemory),
	)
	v.accountDefaults(c.AccountDefaults)
	v.catalog(c)
	v.proxies("trusted_proxies", c.TrustedProxies)
	v.moderation(c.Moderation)
	v.check(new(slog.LevelVar).UnmarshalText([]byte(c.LogLevel)) == nil, "log_level", "must be debug, info, warn or error")
	for _, d := range []struct {
		path  string
		value time.Duration
	}{
		{"database_pool.max_age", c.DatabasePool.MaxAge},
		{"idle_timeout", c.IdleTimeout},
		{"shutdown_grace", c.ShutdownGrace},
		{"outbound.webhook_timeout", c.Outbound.WebhookTimeout},
		{"art_modal_timeout", c.ArtModal},
		{"task_timeout", c.TaskTimeout},
		{"park_timeout", c.ParkTimeout},
		{"park_retry", c.ParkRetry},
		{"queue_timeout", c.QueueTimeout},
		{"moderation.timeout", c.Moderation.Timeout},
	} {
		v.check(d.value > 0, d.path, "must be above 0")
	}
	for _, d := range []struct {
		path  string
		value time.Duration
	}{{"retention.tasks", c.Retention.Tasks}, {"retention.results", c.Retention.Results}, {"retention.deliveries", c.Retention.Deliveries}} {
		v.check(d.value == 0 || d.value >= minKept, d.path, "must be at least %s, or 0 for ever", minKept)
	}
	keptWithTask := c.Retention.Results > 0 && c.Retention.Results <= c.Retention.Tasks
	v.check(c.Retention.Tasks == 0 || keptWithTask, "retention.results",
		"must be at most retention.tasks: files are found by their task")
	v.check(
		c.LinkTTL >= minLinkTTL && c.LinkTTL <= blob.MaxLink, "link_ttl", "must be between %s and %s", minLinkTTL,
		blob.MaxLink,
	)
	v.check(
		c.Outbound.WebhookTimeout <= maxWebhookTimeout, "outbound.webhook_timeout", "must be at most %s", maxWebhookTimeout,
	)
	for i, cidr := range c.Outbound.Allow {
		_, err := netip.ParsePrefix(cidr)
		v.check(err == nil, fmt.Sprintf("outbound.allow[%d]", i), "%q is no CIDR", cidr)
	}
	v.proxy("outbound.proxy", c.Outbound.Proxy)
	v.groups(c.Groups)
	v.channels(c, role)
	return v.problems
}

// minKept is the shortest retention. It exceeds the duration of a submit that works on kept data.
const minKept = time.Hour

// minLinkTTL is the shortest time in which a client can use a link.
const minLinkTTL = time.Minute

// leastDistinct is how many different bytes a key must have. Of 32 random bytes about thirty
// differ, of as many random hexadecimal digits fourteen. A key with fewer than half of that was
// typed by hand.
const leastDistinct = 7

const tooRegular = "repeats the same few characters: take a random one, as of openssl rand -base64 32"

// regular reports whether a key could be guessed.
func regular(key []byte) bool {
	seen := map[byte]bool{}
	for _, b := range key {
		seen[b] = true
	}
	return len(seen) < leastDistinct
}

type validator struct{ problems []problem }

func (v *validator) add(path, text string) { v.problems = append(v.problems, problem{path, text}) }

func (v *validator) check(ok bool, path, format string, args ...any) {
	if !ok {
		v.add(path, fmt.Sprintf(format, args...))
	}
}

func (v *validator) hostPort(path, value string, listen bool) {
	host, port, err := net.SplitHostPort(value)
	v.check(
		err == nil && port != "" && (listen || host != "") && !strings.ContainsAny(value, "/?#@"), path,
		"%q is not host:port", value,
	)
	number, notANumber := strconv.Atoi(port)
	v.check(
		notANumber != nil || number >= 0 && number <= math.MaxUint16, path, "%q has no port from 0 to %d", value,
		math.MaxUint16,
	)
}

// samePort reports whether both texts name the same address, so that one process cannot listen on
// both. Port 0 is a different port each time.
func samePort(a, b string) bool {
	_, port, err := net.SplitHostPort(a)
	return err == nil && port != "0" && a == b
}

// catalog reads the models as the start does. With only built-in files there is nothing to find:
// tests check these against the adapters.
func (v *validator) catalog(c Config) {
	passed := passthrough(c.vendors, c.Channels)
	if c.CatalogDir == "" && c.VendorDir == "" && len(passed) == 0 {
		return
	}
	if c.CatalogDir != "" {
		if _, err := os.ReadDir(c.CatalogDir); err != nil {
			v.add("catalog_dir", err.Error())
			return
		}
	}
	var options []catalog.Option
	if rules, err := c.rules(); err == nil {
		options = append(options, catalog.WithMediaURLCheck(rules.CheckMediaURL))
	}
	models, problems := loadCatalog(c, options...)
	if models != nil && len(problems) == 0 { // a model file with a fault may have the fields
		v.checkVendorFields(c.vendors, models)
	}
	for _, problem := range problems {
		path := "catalog_dir"
		if strings.HasPrefix(problem, "channel ") {
			path = "channels"
		}
		v.add(path, problem)
	}
}

// loadCatalog reads the configured models, and lists all problems with file and key, including
// those with adapters.
func loadCatalog(c Config, options ...catalog.Option) (*catalog.Catalog, []string) {
	models, err := catalog.Load(
		c.CatalogDir, append(options, catalog.WithPassthrough(passthrough(c.vendors, c.Channels)))...,
	)
	var problems []string
	for _, problem := range leaves(err) {
		problems = append(problems, strings.TrimPrefix(problem.Error(), "catalog: "))
	}
	if models != nil {
		problems = append(problems, checkOffers(offers(models), c.vendors)...)
	}
	return models, problems
}

// leaves splits a joined error.
func leaves(err error) []error {
	if err == nil {
		return nil
	}
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return []error{err}
	}
	var list []error
	for _, one := range joined.Unwrap() {
		list = append(list, leaves(one)...)
	}
	return list
}

func (v *validator) groups(groups map[string]Group) {
	_, ok := groups["default"]
	v.check(ok, "groups.default", "must exist")
	for _, name := range slices.Sorted(maps.Keys(groups)) {
		g, path := groups[name], below("groups", name)
		if g.PriceFactor != "" {
			_, err := price.ParseFactor(g.PriceFactor)
			v.check(err == nil, path+".price_factor", "%q is no decimal factor", g.PriceFactor)
		}
		v.check(g.Capacity >= 0, path+".capacity", "must be a number of tasks, or 0 for no limit")
	}
}

func (v *validator) channels(c Config, role Role) {
	seen := map[string]bool{}
	for i, ch := range c.Channels {
		path := fmt.Sprintf("channels[%d]", i)
		v.check(ch.Name != "", path+".name", "must not be empty")
		v.check(ch.Name == "" || !seen[ch.Name], path+".name", "%q is taken", ch.Name)
		seen[ch.Name] = true
		v.check(ch.Weight > 0, path+".weight", "must be above 0")
		v.check(ch.Concurrency >= 0, path+".concurrency", "must not be negative")
		v.check(ch.RequestsPerSecond > 0, path+".requests_per_second", "must be above 0")
		v.check(
			ch.PollInterval.Min > 0 && ch.PollInterval.Min <= ch.PollInterval.Max, path+".poll_interval", "needs 0 < min <= max",
		)
		v.check(
			strings.TrimSpace(ch.Account) == ch.Account, path+".account", "must not be blank, nor begin or end with a space",
		)
		credentials := path + ".credentials"
		if apart := c.ChannelCredentials[ch.Name]; len(apart) > 0 && maps.Equal(apart, ch.Credentials) {
			credentials = below("channel_credentials", ch.Name)
		}
		if ch.Proxy != noProxy {
			v.proxy(path+".proxy", ch.Proxy)
		}
		v.vendor(c.vendors, path, credentials, ch, role)
	}
	v.former(c.Channels)
	v.passthrough(c.vendors, c.Channels)
}

// former checks the earlier names of channels: each must lead to one channel.
func (v *validator) former(channels []Channel) {
	present, heirs := map[string]bool{}, map[string]bool{}
	for _, ch := range channels {
		present[ch.Name] = true
	}
	for i, ch := range channels {
		for j, name := range ch.Former {
			path := fmt.Sprintf("channels[%d].former[%d]", i, j)
			v.check(name != "", path, "must not be empty")
			v.check(name == "" || !present[name], path, "%q is the name of a channel", name)
			v.check(name == "" || !heirs[name], path, "%q is given twice", name)
			heirs[name] = true
		}
	}
}

// vendor has the adapter check a channel. The adapter's problem with base_url counts only if the
// check here found none. Its problems with credentials count only if the channel has credentials or
// the process needs them. Credentials have their own path, since they may stand apart from the
// channel.
func (v *validator) vendor(vendors all.Vendors, path, credentials string, ch Channel, role Role) {
	badURL := ch.BaseURL != "" && baseAddress.problem(ch.BaseURL) != ""
	v.address(path+".base_url", ch.BaseURL, baseAddress)
	_, err := vendors.New(ch.domain(), providers.Options{})
	for _, one := range leaves(err) {
		wrong, ok := errors.AsType[*mediagate.Error](one)
		if !ok || wrong.Param == "" {
			v.add(path, one.Error())
			continue
		}
		if wrong.Param == "base_url" && badURL {
			continue
		}
		if strings.HasPrefix(wrong.Param, "credentials") && len(ch.Credentials) == 0 && !role.needsCredentials() {
			continue
		}
		text := strings.TrimPrefix(wrong.Message, fmt.Sprintf("channel %q: ", ch.Name))
		at := path + "." + wrong.Param
		if name, ok := strings.CutPrefix(wrong.Param, "credentials."); ok {
			at = credentials + "." + name
		}
		v.add(at, strings.TrimPrefix(text, wrong.Param+" "))
	}
}

func domainMessage(err error) string {
	if wrong, ok := errors.AsType[*mediagate.Error](err); ok {
		return wrong.Message
	}
	return err.Error()
}

// accountDefaults validates the default limits of accounts.
func (v *validator) accountDefaults(d AccountDefaults) {
	const most = 1_000_000_000
	v.check(
		d.Rate == nil || 0 <= *d.Rate && *d.Rate <= most, "account_defaults.rate",
		"must be between 0 and %d, or null for no limit", most,
	)
	v.check(
		d.InFlight == nil || 0 <= *d.InFlight && *d.InFlight <= most, "account_defaults.in_flight",
		"must be between 0 and %d, or null for no limit", most,
	)
	if d.Unpaid != nil {
		unpaid, err := mediagate.ParseMicros(*d.Unpaid)
		v.check(
			err == nil && unpaid >= 0, "account_defaults.unpaid",
			`must be a decimal like "25" with at most 6 decimals, not negative, or null for no limit`,
		)
	}
	v.check(
		d.UploadsPerDay == nil || *d.UploadsPerDay >= 0, "account_defaults.uploads_per_day",
		"must be a size like 20GiB, or null for no limit",
	)
}
