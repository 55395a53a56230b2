package metrics

import (
	"cmp"
	"context"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/internal/limit"
)

const (
	figuresKept    = 10 * time.Second // minimum time between two readings
	figuresShare   = 20               // and this many times as long as the last reading took
	figuresTimeout = 5 * time.Second  // of a reading; a scrape waits for it
)

// Source has the functions that a scrape calls.
type Source struct {
	Figures     func(ctx context.Context) (mediagate.Figures, error)
	Channels    func(ctx context.Context) ([]mediagate.ChannelState, error)
	Removals    func(ctx context.Context) (map[mediagate.Removal]mediagate.RemovalState, error)
	Database    func(ctx context.Context) error
	Temporal    func(ctx context.Context) error
	ClockOffset func() time.Duration
	Limits      func() []limit.Figures
	Hints       func() map[string]int64     // vendors' callbacks by outcome; empty without the API
	Ends        func() map[string]time.Time // last days of models that end, by id; nil without the API
	Concurrency map[string]int              // of the configured channels; 0: no limit
	Now         func() time.Time
}

// Watch makes each scrape read the source.
func (m *Metrics) Watch(s Source) {
	for channel := range s.Concurrency {
		m.unknownWords.WithLabelValues(channel)
	}
	m.registry.MustRegister(&watched{source: s})
}

// watched reads the source at most once in figuresKept, for any number of scrapes. A reading is
// complete or absent: while the database does not answer, or is too slow, there are no figures, and
// mediagate_database_up shows why.
type watched struct {
	source Source

	mu   sync.Mutex
	next time.Time // the earliest time of the next reading
	last reading
}

type reading struct {
	database, temporal bool
	figures            *mediagate.Figures // nil: none
	channels           []mediagate.ChannelState
	removals           map[mediagate.Removal]mediagate.RemovalState
	took               time.Duration
}

// The descriptions of the metrics.
var (
	databaseUp    = describe("database_up", "Whether the database answers and takes writes.")
	temporalUp    = describe("temporal_up", "Whether Temporal serves the namespace.")
	clockOffset   = describe("clock_offset_seconds", "How far this machine's clock is behind the database's.")
	figuresTook   = describe("figures_seconds", "How long the last reading of the figures took; absent while there are none.")
	tasksOpen     = describe("tasks_open", "Open tasks by the step that they wait for.", "type", "status", "step")
	tasksOldest   = describe("tasks_oldest_seconds", "The longest wait among the open tasks at this step.", "step")
	tasksStuck    = describe("tasks_stuck", "Stuck tasks by reason: parked tasks and, with run_overdue, tasks whose run does not ask for its next step.", "reason")
	wakesCount    = describe("wakes", "Wakes of runs and of callbacks' rounds.", "kind")
	wakesDue      = describe("wakes_due", "Wakes that are past their time.", "kind")
	wakesTried    = describe("wakes_tried", "Wakes that the scan has tried without success.", "kind")
	wakesOverdue  = describe("wakes_overdue_seconds", "How long the oldest due wake has been due.", "kind")
	channelState  = describe("channel_state", "1, with the state of the channel: closed, open, probing or disabled, and why it is open.", "channel", "state", "reason")
	slotsTaken    = describe("slots_taken", "Jobs of a channel that run or may run, and slots granted.", "channel")
	slotsLimit    = describe("slots_limit", "Jobs that a channel may have at once; absent where there is no bound.", "channel")
	slotsWaiting  = describe("slots_waiting", "Tasks that wait for a slot of the channel.", "channel")
	pollsAwaited  = describe("polls_awaited", "Jobs that the channel polls for.", "channel")
	pollsOverdue  = describe("polls_overdue_seconds", "How long the oldest due poll has been due.", "channel")
	limitMost     = describe("limit_most", "Capacity of a limit of this process.", "limit")
	limitHeld     = describe("limit_held", "Units of the limit that are taken.", "limit")
	limitWaiting  = describe("limit_waiting", "Requests that wait for units of the limit.", "limit")
	limitRefusals = describe("limit_refused_total", "Requests that got no units of the limit.", "limit")
	limitWaited   = describe("limit_waited_seconds_total", "Time that requests have waited for units of the limit, counted when their wait ends.", "limit")
	removed       = describe("retention_removed_total", "Rows and objects that retention has removed, by all processes so far.", "kind")
	removedAt     = describe("retention_timestamp_seconds", "When a run of retention last came to its end; absent before the first.")
	abandoned     = describe("abandoned_jobs", "Jobs of cancelled tasks that may still run at their vendors.")
	unpaid        = describe("unpaid", "Cost by our prices of the jobs that abandoned_jobs counts, in the currency.")
	unpaidMost    = describe("accounts_above_unpaid", "Accounts whose unpaid cost exceeds their limit, so that they may submit nothing.")
	eventsPending = describe("endpoint_deliveries_pending", "Events that are still to be delivered to endpoints of accounts.")
	eventsOverdue = describe("endpoint_deliveries_overdue_seconds", "How long the oldest due attempt at an endpoint has been due.")
	modelEnds     = describe("model_ends_timestamp_seconds", "Start of the last day on which the vendor serves the model; absent for models without a known end.", "model")
	vendorHints   = describe("vendor_callbacks_total", "Vendors' callbacks by their effect; challenges are counted in addition.", "outcome")
)

func describe(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("mediagate_"+name, help, labels, nil)
}

// Describe implements prometheus.Collector. It describes nothing, since the metrics differ from
// reading to reading.
func (w *watched) Describe(chan<- *prometheus.Desc) {}

// Collect implements prometheus.Collector.
func (w *watched) Collect(to chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, value float64, labels ...string) {
		to <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, labels...)
	}
	gauge(clockOffset, w.source.ClockOffset().Seconds())
	for _, l := range w.source.Limits() {
		gauge(limitMost, float64(l.Capacity), l.Name)
		gauge(limitHeld, float64(l.Held), l.Name)
		gauge(limitWaiting, float64(l.Waiting), l.Name)
		to <- prometheus.MustNewConstMetric(limitRefusals, prometheus.CounterValue, float64(l.Refused), l.Name)
		to <- prometheus.MustNewConstMetric(limitWaited, prometheus.CounterValue, l.Waited.Seconds(), l.Name)
	}
	for outcome, n := range w.source.Hints() {
		to <- prometheus.MustNewConstMetric(vendorHints, prometheus.CounterValue, float64(n), outcome)
	}
	for model, day := range w.source.Ends() {
		gauge(modelEnds, float64(day.Unix()), model)
	}
	r := w.read()
	gauge(databaseUp, truth(r.database))
	gauge(temporalUp, truth(r.temporal))
	if r.figures != nil {
		gauge(figuresTook, r.took.Seconds())
		w.collectTasks(*r.figures, gauge)
		w.collectChannels(r, gauge)
		gauge(abandoned, float64(r.figures.Abandoned.Jobs))
		gauge(unpaid, float64(r.figures.Abandoned.Cost)/float64(mediagate.MicrosPerUnit))
		gauge(unpaidMost, float64(r.figures.Unpaid))
		gauge(eventsPending, float64(r.figures.Endpoints.Pending))
		gauge(eventsOverdue, age(*r.figures, r.figures.Endpoints.DueAt))
		for _, kind := range mediagate.Removals() {
			to <- prometheus.MustNewConstMetric(
				removed, prometheus.CounterValue, float64(r.removals[kind].Removed), string(kind),
			)
		}
		if last := r.removals[mediagate.RemovalRun].EndedAt; !last.IsZero() {
			gauge(removedAt, float64(last.Unix()))
		}
	}
}

func truth(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}

// age returns the seconds from since to the figures' time by the database's clock; 0 for a zero
// since.
func age(f mediagate.Figures, since time.Time) float64 {
	if since.IsZero() {
		return 0
	}
	return max(0, f.At.Sub(since).Seconds())
}

func (w *watched) collectTasks(f mediagate.Figures, gauge func(*prometheus.Desc, float64, ...string)) {
	oldest := make(map[mediagate.WaitStep]float64)
	for _, o := range f.Open {
		gauge(tasksOpen, float64(o.Count), string(o.Type), string(o.Status), string(o.Step))
		oldest[o.Step] = max(oldest[o.Step], age(f, o.Since))
	}
	for _, step := range mediagate.WaitSteps() {
		gauge(tasksOldest, oldest[step], string(step))
	}
	for _, reason := range mediagate.StuckReasons() {
		gauge(tasksStuck, float64(f.Stuck[reason]), reason)
	}
	for _, kind := range []mediagate.WakeKind{mediagate.WakeRun, mediagate.WakeRound} {
		wakes := mediagate.WakeFigures{}
		for _, k := range f.Wakes {
			if k.Kind == kind {
				wakes = k
			}
		}
		gauge(wakesCount, float64(wakes.Count), string(kind))
		gauge(wakesDue, float64(wakes.Due), string(kind))
		gauge(wakesTried, float64(wakes.Tried), string(kind))
		gauge(wakesOverdue, age(f, wakes.Overdue), string(kind))
	}
}

// collectChannels sends the metrics of the configured channels, and of others that still have jobs.
func (w *watched) collectChannels(r reading, gauge func(*prometheus.Desc, float64, ...string)) {
	figures := make(map[string]mediagate.ChannelFigures)
	for name := range w.source.Concurrency {
		figures[name] = mediagate.ChannelFigures{Channel: name}
	}
	for _, c := range r.figures.Channels {
		figures[c.Channel] = c
	}
	for name, c := range figures {
		gauge(slotsTaken, float64(c.Jobs), name)
		gauge(slotsWaiting, float64(c.Queued), name)
		gauge(pollsAwaited, float64(c.Awaited), name)
		gauge(pollsOverdue, age(*r.figures, c.DueAt), name)
		if most := w.source.Concurrency[name]; most > 0 {
			gauge(slotsLimit, float64(most), name)
		}
	}
	for _, s := range r.channels {
		if _, configured := w.source.Concurrency[s.Name]; configured {
			gauge(channelState, 1, s.Name, stateOf(s, r.figures.At), cmp.Or(string(s.Reason), "none"))
		}
	}
}

func stateOf(s mediagate.ChannelState, now time.Time) string {
	switch {
	case !s.Enabled:
		return "disabled"
	case !s.Open:
		return "closed"
	case now.Before(s.ProbeUntil):
		return "probing"
	default:
		return "open"
	}
}

// read returns the last reading, or a new one if the last one is too old.
func (w *watched) read() reading {
	w.mu.Lock()
	defer w.mu.Unlock()
	began := w.source.Now()
	if began.Before(w.next) {
		return w.last
	}
	ctx, cancel := context.WithTimeout(context.Background(), figuresTimeout)
	defer cancel()
	var r reading
	var asking sync.WaitGroup
	asking.Go(func() { r.temporal = mediagate.Guarded(func() error { return w.source.Temporal(ctx) }) == nil })
	if r.database = w.source.Database(ctx) == nil; r.database {
		start := time.Now()
		figures, err := w.source.Figures(ctx)
		if err == nil {
			r.channels, err = w.source.Channels(ctx)
		}
		if err == nil {
			r.removals, err = w.source.Removals(ctx)
		}
		if err == nil {
			r.figures, r.took = &figures, time.Since(start)
		}
	}
	asking.Wait()
	now := w.source.Now()
	w.last, w.next = r, now.Add(max(figuresKept, figuresShare*now.Sub(began)))
	return r
}
