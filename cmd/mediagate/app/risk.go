package app

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strings"
	"time"
)

// warnOfRisks logs what no production should run with: an armed failpoint, and unencrypted calls
// to vendors, or to a Temporal with an API key.
func (g *Gateway) warnOfRisks(ctx context.Context, point string) {
	if point != "" {
		g.log.WarnContext(ctx, "a failpoint is armed: the process will end or stop itself there", "failpoint", point)
	}
	if host, _, _ := net.SplitHostPort(g.Config.Temporal.Address); g.Config.Temporal.APIKey != "" &&
		!g.Config.Temporal.encrypted() && !loopback(host) {
		g.log.WarnContext(ctx, "temporal.tls.mode is off: temporal.api_key and the data of tasks pass unencrypted")
	}
	for _, name := range unencrypted(g.Config.Channels) {
		g.log.WarnContext(ctx, "base_url is plain http: credentials, prompts and results pass unencrypted", "channel", name)
	}
}

// unencrypted names the channels whose vendor is called without TLS on another machine.
func unencrypted(channels []Channel) (names []string) {
	for _, c := range channels {
		if u, err := url.Parse(c.BaseURL); err == nil && u.Scheme == "http" && !loopback(u.Hostname()) {
			names = append(names, c.Name)
		}
	}
	return names
}

// loopback reports whether the host is this machine by its name.
func loopback(host string) bool {
	if a, err := netip.ParseAddr(host); err == nil {
		return a.Unmap().IsLoopback()
	}
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	return host == "localhost" || strings.HasSuffix(host, ".localhost")
}

// Unbounded names the channels without a limit of concurrency whose vendor cannot stop every job. A
// job that a client cancels there may run on, and we pay for it.
func (c Config) Unbounded() (names []string) {
	for _, ch := range c.Channels {
		adapter, _ := c.vendors.Adapter(ch.Provider)
		for _, o := range adapter.Description.Operations {
			if ch.Concurrency == 0 && !o.Sync && !o.Streams && !o.Cancel {
				names = append(names, ch.Name)
				break
			}
		}
	}
	return names
}

// endWarning is how many days before the last day of a model Ending warns.
const endWarning = 30

// Ending returns warnings about models that their vendors stop serving soon, or no longer serve.
func (c Config) Ending(now time.Time) (warnings []string) {
	models, _ := loadCatalog(c)
	if models == nil {
		return nil
	}
	for _, m := range models.Models() {
		if m.ID != m.Canonical || m.Ends.IsZero() || now.Before(m.Ends.AddDate(0, 0, -endWarning)) {
			continue
		}
		verb, instead := "ends", ""
		if !now.Before(m.Ends.AddDate(0, 0, 1)) {
			verb = "ended"
		}
		if m.Replacement != "" {
			instead = "; replacement: " + m.Replacement
		}
		warnings = append(warnings, fmt.Sprintf("model %s %s on %s%s", m.ID, verb, m.Ends.Format(time.DateOnly), instead))
	}
	return warnings
}

// Cautions are comments about settings that are allowed but risky.
func (c Config) Cautions() (text string) {
	for _, name := range c.Unbounded() {
		text += "# channel " + name + " has no concurrency, and its vendor cannot stop a job: what clients cancel runs on, as many jobs as they like, and is charged to us\n"
	}
	for _, channel := range c.Channels {
		if channel.Account == "" {
			text += "# channel " + channel.Name + " has no account: after its key was renewed, a job that the vendor does not show parks its task; give the channel an account: a name of yours for the account at the vendor, which stays when the key changes\n"
		}
	}
	if models, _ := loadCatalog(c); models != nil {
		for _, channel := range c.Channels {
			for _, id := range channel.Models {
				if _, known := models.Model(id); !known {
					text += "# channel " + channel.Name + " names a model that there is not: " + id + "\n"
				}
			}
		}
	}
	if c.OIDC.isSet() && c.AdminListen != "" {
		text += "# oidc: operators sign in at admin_listen and come back to public_url: a proxy has to lead them from there to admin_listen\n"
	}
	return text
}
