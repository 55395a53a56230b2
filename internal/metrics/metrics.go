package metrics

import (
	"log/slog"
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/mediagate/mediagate"
)

// Metrics are the metrics of one process.
type Metrics struct {
	registry *prometheus.Registry

	submitted    *prometheus.CounterVec
	ended        *prometheus.CounterVec
	taskTime     *prometheus.HistogramVec
	stepTime     *prometheus.HistogramVec
	vendorTime   *prometheus.HistogramVec
	jobTime      *prometheus.HistogramVec
	pollLate     *prometheus.HistogramVec
	unknownWords *prometheus.CounterVec
	attempts     *prometheus.CounterVec
	callbacks    *prometheus.CounterVec
	lostTail     *prometheus.CounterVec
	requests     *prometheus.HistogramVec
	ledger       ledger
}

// The buckets of durations, in seconds.
var (
	callBuckets = []float64{.01, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 120}
	stepBuckets = []float64{.01, .05, .25, 1, 5, 15, 60, 300, 1800}
	taskBuckets = []float64{1, 5, 15, 30, 60, 120, 300, 600, 1800, 7200, 86400}
	lateBuckets = []float64{.1, .5, 1, 2, 5, 10, 30, 60, 300}
)

// New makes the metrics of a process with that version and role: it serves the API, runs the worker,
// or does both.
func New(version, role string) *Metrics {
	m := &Metrics{registry: prometheus.NewRegistry()}
	m.registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		c := prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
		m.registry.MustRegister(c)
		return c
	}
	histogram := func(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
		h := prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets}, labels)
		m.registry.MustRegister(h)
		return h
	}
	m.submitted = counter("mediagate_tasks_submitted_total", "Tasks that were acknowledged by this process.", "type")
	m.ended = counter(
		"mediagate_tasks_ended_total", "Tasks that this process ended; failure is the code of failed ones.", "type", "status",
		"failure",
	)
	m.taskTime = histogram(
		"mediagate_task_seconds", "From the submit to the end of a task.", taskBuckets, "type", "status",
	)
	m.stepTime = histogram(
		"mediagate_step_seconds", "Activity attempts; outcome is ok, waits, stopped, or the kind of the error.", stepBuckets,
		"step", "outcome",
	)
	m.vendorTime = histogram(
		"mediagate_vendor_call_seconds", "Calls to vendors, to the head of the answer.", callBuckets, "channel", "effect",
		"answer",
	)
	m.jobTime = histogram(
		"mediagate_vendor_job_seconds", "From the vendor's acceptance of a job to the poll that saw its end.", taskBuckets,
		"channel", "outcome",
	)
	m.pollLate = histogram(
		"mediagate_poll_late_seconds", "How late polls are: the time from when a poll was due to the poll.",
		lateBuckets, "channel",
	)
	m.unknownWords = counter(
		"mediagate_unknown_words_total", "Answers of vendors with a status word that the adapter does not know.", "channel",
	)
	m.attempts = counter("mediagate_delivery_attempts_total", "Attempts to deliver a callback.", "outcome")
	m.callbacks = counter("mediagate_callbacks_ended_total", "Callbacks whose last round ended.", "state")
	m.lostTail = counter(
		"mediagate_lost_tail_total", "Signs that the database has lost what it had committed.", "evidence",
	)
	m.requests = histogram("mediagate_http_request_seconds", "Requests to the API.", callBuckets, "class", "status")
	build := prometheus.NewGaugeVec(
		prometheus.GaugeOpts{Name: "mediagate_build_info", Help: "1, with the version and the role of the process."},
		[]string{"version", "role"},
	)
	build.WithLabelValues(version, role).Set(1)
	panics := prometheus.NewCounterFunc(prometheus.CounterOpts{
		Name: "mediagate_panics_total", Help: "Panics that were caught.",
	},
		func() float64 { return float64(mediagate.Panics()) })
	m.registry.MustRegister(build, panics, &m.ledger)
	m.start()
	return m
}

// start makes the counters whose rates alerts use. A counter that appears with its first count has
// no rate.
func (m *Metrics) start() {
	for _, t := range mediagate.TaskTypes() {
		m.submitted.WithLabelValues(string(t))
		m.ended.WithLabelValues(string(t), string(mediagate.StatusCompleted), "")
	}
	for _, state := range mediagate.WebhookStates() {
		if state != mediagate.WebhookPending {
			m.callbacks.WithLabelValues(string(state))
		}
	}
	for _, kind := range mediagate.Evidences() {
		m.lostTail.WithLabelValues(string(kind))
	}
	for _, status := range []string{"2xx", "5xx"} {
		m.requests.WithLabelValues("generate", status)
	}
}

// Handler answers scrapes.
func (m *Metrics) Handler(log *slog.Logger) http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelWarn), ErrorHandling: promhttp.ContinueOnError,
		MaxRequestsInFlight: 4,
	})
}

// TaskSubmitted counts a task that was acknowledged.
func (m *Metrics) TaskSubmitted(t mediagate.Type) { m.submitted.WithLabelValues(string(t)).Inc() }

// TaskEnded counts the end of a task.
func (m *Metrics) TaskEnded(
	t mediagate.Type, status mediagate.Status, failure mediagate.FailureCode, took time.Duration,
) {
	m.ended.WithLabelValues(string(t), string(status), string(failure)).Inc()
	m.taskTime.WithLabelValues(string(t), string(status)).Observe(took.Seconds())
}

// CallbackEnded counts the end of a callback's round.
func (m *Metrics) CallbackEnded(state mediagate.WebhookState) {
	m.callbacks.WithLabelValues(string(state)).Inc()
}

// DeliveryAttempt counts an attempt at a callback.
func (m *Metrics) DeliveryAttempt(outcome string) { m.attempts.WithLabelValues(outcome).Inc() }

// StepEnded counts an activity attempt.
func (m *Metrics) StepEnded(step, outcome string, took time.Duration) {
	m.stepTime.WithLabelValues(step, outcome).Observe(took.Seconds())
}

// VendorCalls returns a function that counts the calls of a channel. A status of 0 is no answer.
func (m *Metrics) VendorCalls(channel string) func(effect string, status int, took time.Duration) {
	return func(effect string, status int, took time.Duration) {
		m.vendorTime.WithLabelValues(channel, effect, answerClass(status)).Observe(took.Seconds())
	}
}

// answerClass returns the label of a status. It keeps the statuses that need different action by
// operators.
func answerClass(status int) string {
	switch status {
	case 0:
		return "none"
	case http.StatusUnauthorized, http.StatusPaymentRequired, http.StatusForbidden, http.StatusNotFound,
		http.StatusTooManyRequests:
		return strconv.Itoa(status)
	default:
		return statusClass(status)
	}
}

// statusClass returns the class of an HTTP status, such as 2xx.
func statusClass(status int) string {
	if status < 100 || status > 599 {
		return "other"
	}
	return strconv.Itoa(status/100) + "xx"
}

// JobEnded counts the end of a vendor's job.
func (m *Metrics) JobEnded(channel string, succeeded bool, took time.Duration) {
	outcome := "failed"
	if succeeded {
		outcome = "succeeded"
	}
	m.jobTime.WithLabelValues(channel, outcome).Observe(took.Seconds())
}

// Polled counts a poll and how late it was.
func (m *Metrics) Polled(channel string, late time.Duration) {
	m.pollLate.WithLabelValues(channel).Observe(max(0, late.Seconds()))
}

// UnknownWord counts an answer with a status word that the adapter does not know.
func (m *Metrics) UnknownWord(channel string) { m.unknownWords.WithLabelValues(channel).Inc() }

// LostTail counts a sign that the database has lost what it had committed.
func (m *Metrics) LostTail(kind mediagate.Evidence) { m.lostTail.WithLabelValues(string(kind)).Inc() }

// Request counts a request of a class of routes.
func (m *Metrics) Request(class string, status int, took time.Duration) {
	m.requests.WithLabelValues(class, statusClass(status)).Observe(took.Seconds())
}
