package app

import (
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"github.com/mediagate/mediagate/billing"
	"github.com/mediagate/mediagate/providers"
)

// minAdminKey is how long the operators' key must be.
const minAdminKey = 32

// Validate returns all that is wrong with the settings, each with its path.
func (c Config) Validate() error {
	if c.DatabaseURL == "" {
		return errors.Join(errors.New("database_url: must be a postgres:// URL"), c.ValidateEmbedded())
	}
	return c.ValidateEmbedded()
}

// ValidateEmbedded is Validate for a program that has a database of its own.
func (c Config) ValidateEmbedded() error {
	v := &validator{}
	v.check(c.DatabaseURL == "" || strings.HasPrefix(c.DatabaseURL, "postgres://") || strings.HasPrefix(c.DatabaseURL, "postgresql://"),
		"database_url", "must be a postgres:// URL")
	v.hostPort("temporal.address", c.Temporal.Address, false)
	v.check(c.Temporal.Namespace != "", "temporal.namespace", "must not be empty")
	v.check(c.S3.Bucket != "", "s3.bucket", "must not be empty")
	v.check(c.S3.Region != "", "s3.region", "must not be empty")
	v.check(c.S3.Endpoint == "" || webURL(c.S3.Endpoint), "s3.endpoint", "must be an http or https URL")
	v.check(c.S3.PublicEndpoint == "" || webURL(c.S3.PublicEndpoint), "s3.public_endpoint", "must be an http or https URL")
	v.check((c.S3.AccessKeyID == "") == (c.S3.SecretAccessKey == ""), "s3.secret_access_key", "goes with access_key_id: set both or neither")
	v.hostPort("api_listen", c.APIListen, true)
	v.hostPort("ops_listen", c.OpsListen, true)
	v.check(len(c.AdminKey) >= minAdminKey, "admin_key", "must have at least %d characters", minAdminKey)
	v.check(len(c.EncryptionKeys) > 0, "encryption_keys", "must hold at least one key")
	for i, key := range c.EncryptionKeys {
		raw, err := base64.StdEncoding.DecodeString(key)
		v.check(err == nil && len(raw) == 32, fmt.Sprintf("encryption_keys[%d]", i), "must be base64 of 32 bytes")
	}
	v.check(c.PublicURL == "" || webURL(c.PublicURL), "public_url", "must be an http or https URL")
	v.check(c.Currency != "", "currency", "must not be empty")
	v.check(c.CreditsPerUnit > 0, "credits_per_unit", "must be above 0")
	v.check(c.TrustedProxies >= 0, "trusted_proxies", "must not be negative")
	v.check(c.Moderation.Mode == "off", "moderation.mode", "%q is not available: off", c.Moderation.Mode)
	v.check(new(slog.LevelVar).UnmarshalText([]byte(c.LogLevel)) == nil, "log_level", "must be debug, info, warn or error")
	for path, d := range map[string]time.Duration{
		"retention.tasks": c.Retention.Tasks, "retention.results": c.Retention.Results, "retention.deliveries": c.Retention.Deliveries,
		"shutdown_grace": c.ShutdownGrace, "outbound.webhook_timeout": c.Outbound.WebhookTimeout, "art_modal_timeout": c.ArtModal,
		"task_timeout": c.TaskTimeout, "park_timeout": c.ParkTimeout, "park_retry": c.ParkRetry, "queue_timeout": c.QueueTimeout,
	} {
		v.check(d > 0, path, "must be above 0")
	}
	for i, cidr := range c.Outbound.Allow {
		_, err := netip.ParsePrefix(cidr)
		v.check(err == nil, fmt.Sprintf("outbound.allow[%d]", i), "%q is no CIDR", cidr)
	}
	v.groups(c.Groups)
	v.channels(c.Channels)
	return errors.Join(v.problems...)
}

type validator struct{ problems []error }

func (v *validator) check(ok bool, path, format string, args ...any) {
	if !ok {
		v.problems = append(v.problems, fmt.Errorf("%s: %s", path, fmt.Sprintf(format, args...)))
	}
}

func (v *validator) hostPort(path, value string, listen bool) {
	host, port, err := net.SplitHostPort(value)
	v.check(err == nil && port != "" && (listen || host != ""), path, "%q is not host:port", value)
}

func webURL(s string) bool {
	u, err := url.Parse(s)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != ""
}

func (v *validator) groups(groups map[string]Group) {
	_, ok := groups["default"]
	v.check(ok, "groups.default", "must exist")
	for name, g := range groups {
		if g.PriceFactor != "" {
			_, err := billing.ParseFactor(g.PriceFactor)
			v.check(err == nil, "groups."+name+".price_factor", "%q is no decimal factor", g.PriceFactor)
		}
		v.check(g.Capacity == 0, "groups."+name+".capacity", "is not available: 0")
	}
}

func (v *validator) channels(channels []Channel) {
	seen := map[string]bool{}
	for i, ch := range channels {
		path := fmt.Sprintf("channels[%d]", i)
		v.check(ch.Name != "", path+".name", "must not be empty")
		v.check(!seen[ch.Name], path+".name", "%q is taken", ch.Name)
		seen[ch.Name] = true
		v.check(ch.BaseURL == "" || webURL(ch.BaseURL), path+".base_url", "must be an http or https URL")
		v.check(ch.Weight > 0, path+".weight", "must be above 0")
		v.check(ch.Concurrency >= 0, path+".concurrency", "must not be negative")
		v.check(ch.RequestsPerSecond > 0, path+".requests_per_second", "must be above 0")
		v.check(ch.PollInterval.Min > 0 && ch.PollInterval.Min <= ch.PollInterval.Max, path+".poll_interval", "needs 0 < min <= max")
		v.check(len(ch.Passthrough) == 0, path+".passthrough", "is not available")
		if _, err := providers.New(ch.domain(), providers.Options{}); err != nil {
			v.problems = append(v.problems, fmt.Errorf("%s: %w", path, err))
		}
	}
}
