package metrics

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/mediagate/mediagate"
)

// ledgerKept is how long a process reports the problems of its last check. A worker checks every six
// hours, and another worker may check each time: the result of the earlier one must then disappear.
const ledgerKept = 12 * time.Hour

// ledger is the last check of the ledger by this process.
type ledger struct {
	mu       sync.Mutex
	at       time.Time // zero: no check yet
	problems int
}

var (
	ledgerAt = prometheus.NewDesc("mediagate_ledger_check_timestamp_seconds",
		"When this process last checked the ledger.", nil, nil)
	ledgerProblems = prometheus.NewDesc("mediagate_ledger_problems",
		"Problems that the last check found in the ledger.", nil, nil)
)

// Describe implements prometheus.Collector.
func (l *ledger) Describe(to chan<- *prometheus.Desc) { to <- ledgerAt; to <- ledgerProblems }

// Collect implements prometheus.Collector.
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

// LedgerChecked records a completed check.
func (m *Metrics) LedgerChecked(r mediagate.LedgerReport) {
	m.ledger.mu.Lock()
	defer m.ledger.mu.Unlock()
	m.ledger.at, m.ledger.problems = time.Now(), len(r.Problems)
}
