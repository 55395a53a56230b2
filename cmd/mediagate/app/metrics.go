package app

import (
	"context"
	"time"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/activities"
	"github.com/mediagate/mediagate/internal/limit"
	"github.com/mediagate/mediagate/internal/metrics"
)

// String names the role.
func (r Role) String() string {
	switch r {
	case RoleAPI:
		return "api"
	case RoleWorker:
		return "worker"
	case RoleMigrate:
		return "migrate"
	default:
		return "all"
	}
}

// watch makes the database, Temporal and this process's limits part of each scrape.
func (g *Gateway) watch() {
	concurrency := make(map[string]int)
	for _, c := range g.Config.Channels {
		concurrency[c.Name] = c.Concurrency
	}
	g.metrics.Watch(metrics.Source{
		Figures: g.Store.Figures, Channels: g.Store.ChannelStates, Removals: g.Store.RemovalStates, Database: g.Store.Ping,
		Temporal:    g.pingTemporal,
		ClockOffset: g.Store.ClockOffset,
		Limits:      g.limits, Hints: g.hintCounts, Ends: g.modelEnds, Concurrency: concurrency, Now: g.Store.Now,
	})
}

// limits returns the limits of the parts that this process runs.
func (g *Gateway) limits() []limit.Figures {
	return append(g.Store.Limits(), g.bounds.Figures()...)
}

// hintCounts returns the counts of vendors' callbacks, if this process serves the API.
func (g *Gateway) hintCounts() map[string]int64 {
	server := g.server.Load()
	if server == nil {
		return nil
	}
	return server.Callbacks()
}

// modelEnds returns the last days of the models that this process serves, if it serves the API.
func (g *Gateway) modelEnds() map[string]time.Time {
	server := g.server.Load()
	if server == nil {
		return nil
	}
	return server.ModelEnds()
}

// countedDeliverer counts the attempts at callbacks.
type countedDeliverer struct {
	activities.Deliverer
	count func(outcome string)
}

// Deliver makes one delivery attempt.
func (d countedDeliverer) Deliver(
	ctx context.Context, taskID string, t mediagate.WebhookTarget,
) (mediagate.DeliveryResult, error) {
	r, err := d.Deliverer.Deliver(ctx, taskID, t)
	if err != nil {
		d.count("error")
	} else {
		d.count(string(r.Outcome))
	}
	return r, err
}

// countedLedger records the results of ledger checks.
type countedLedger struct {
	activities.Ledger
	note func(mediagate.LedgerReport)
}

// CheckLedger checks the ledger.
func (l countedLedger) CheckLedger(ctx context.Context) (mediagate.LedgerReport, error) {
	r, err := l.Ledger.CheckLedger(ctx)
	if err == nil {
		l.note(r)
	}
	return r, err
}
