package metrics

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/mediagate/mediagate"
)

// ledgerKept is for how long the result of a check counts. One worker checks each six
// hours, and it may be another one each time: what the one before has found is then
// forgotten.
const ledgerKept = 12 * time.Hour

// ledger is the last check of the ledger by this process.
type ledger struct {
	mu       sync.Mutex
	at       time.Time // zero: none
	problems int
}

var (
	ledgerAt = prometheus.NewDesc("mediagate_ledger_check_timestamp_seconds",
		"When this process last checked the ledger.", nil, nil)
	ledgerProblems = prometheus.NewDesc("mediagate_ledger_problems",
		"Problems that the last check found in the ledger.", nil, nil)
)

// Describe is of prometheus.Collector.
func (l *ledger) Describe(to chan<- *prometheus.Desc) { to <- ledgerAt; to <- ledgerProblems }

// Collect is of prometheus.Collector.
func (l *ledger) Collect(to chan<- prometheus.Metric) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.at.IsZero() {
		return
	}
	to <- prometheus.MustNewConstMetric(ledgerAt, prometheus.GaugeValue, float64(l.at.UnixMilli())/1000)
	if time.Since(l.at) < ledgerKept {
		to <- prometheus.MustNewConstMetric(ledgerProblems, prometheus.GaugeValue, float64(l.problems))
	}
}

// LedgerChecked notes a check that went through.
func (m *Metrics) LedgerChecked(r mediagate.LedgerReport) {
	m.ledger.mu.Lock()
	defer m.ledger.mu.Unlock()
	m.ledger.at, m.ledger.problems = time.Now(), len(r.Problems)
}
