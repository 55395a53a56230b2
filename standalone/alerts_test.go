package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/promqltest"
	"github.com/prometheus/prometheus/util/teststorage"
	"go.temporal.io/sdk/client"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/internal/metrics"
	"github.com/mediagate/mediagate/storage"
	"github.com/mediagate/mediagate/storage/sqlite"
	"github.com/mediagate/mediagate/task"
	"github.com/mediagate/mediagate/workflows"
)

// scrapedProcess is a process as Prometheus sees it. It has its own store, whose clock the test
// moves, and the samples scraped so far.
type scrapedProcess struct {
	*testing.T
	*storage.Store
	metrics  *metrics.Metrics
	file     string
	now      time.Time
	account  mediagate.Account
	key      mediagate.Key
	tasks    int
	temporal func(context.Context) error
	offset   time.Duration
	slow     bool                 // the query of the figures takes too long
	ends     map[string]time.Time // when models end, by model

	scrapes []time.Time
	series  map[string]labels.Labels
	points  map[string]map[time.Time]float64
}

const scrapedChannel = "kling-a"

func newScrapedProcess(t *testing.T) *scrapedProcess {
	t.Helper()
	w := &scrapedProcess{
		T: t, now: time.Now().UTC().Truncate(time.Second), metrics: metrics.New("test", "all"), file: filepath.Join(t.TempDir(), "mediagate.db"),
		temporal: func(context.Context) error { return nil }, series: map[string]labels.Labels{}, points: map[string]map[time.Time]float64{},
	}
	var err error
	if w.Store, err = sqlite.OpenStore(t.Context(), w.file, storage.Config{Now: func() time.Time { return w.now }, Observer: w.metrics, EncryptionKeys: [][]byte{make([]byte, 32)}, AccountDefaults: mediagate.AccountLimits{Unpaid: new(mediagate.Micros(0))}}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.Close() })
	w.account, err = w.CreateAccount(t.Context(), mediagate.Account{Name: "a", Group: "default"})
	w.ok(err)
	_, _, _, err = w.Grant(t.Context(), w.account.ID, 1000*mediagate.MicrosPerUnit, "g")
	w.ok(err)
	w.key, err = w.CreateKey(t.Context(), mediagate.Key{AccountID: w.account.ID, Name: "k", Unlimited: true}, [32]byte{1})
	w.ok(err)
	w.ok(w.SeenChannel(t.Context(), []string{scrapedChannel}))
	w.metrics.Watch(metrics.Source{
		Figures: func(ctx context.Context) (mediagate.Figures, error) {
			if w.slow {
				return mediagate.Figures{}, context.DeadlineExceeded
			}
			return w.Figures(ctx)
		},
		Channels: w.ChannelStates, Removals: w.RemovalStates, Database: w.Ping, Temporal: func(ctx context.Context) error { return w.temporal(ctx) },
		ClockOffset: func() time.Duration { return w.offset }, Limits: w.Limits, Hints: func() map[string]int64 { return nil }, Ends: func() map[string]time.Time { return w.ends }, Concurrency: map[string]int{scrapedChannel: 5}, Now: func() time.Time { return w.now },
	})
	_, err = w.CheckLedger(t.Context())
	w.ok(err)
	w.metrics.LedgerChecked(mediagate.LedgerReport{OK: true})
	w.recordRemoval(0)
	return w
}

// recordRemoval records a run of retention that ended this long ago.
func (w *scrapedProcess) recordRemoval(ago time.Duration) {
	w.Helper()
	now := w.now
	w.now = now.Add(-ago)
	w.ok(w.NoteRemoval(w.Context(), mediagate.RemovalRun, "", 0, true))
	w.now = now
}

func (w *scrapedProcess) ok(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// advance lets time pass, while Prometheus scrapes every minute.
func (w *scrapedProcess) advance(d time.Duration) {
	w.Helper()
	for end := w.now.Add(d); w.now.Before(end); {
		w.now = w.now.Add(min(time.Minute, end.Sub(w.now)))
		w.scrape()
	}
}

func (w *scrapedProcess) scrape() {
	w.Helper()
	w.scrapes = append(w.scrapes, w.now)
	answer := httptest.NewRecorder()
	w.metrics.Handler(slog.New(slog.DiscardHandler)).ServeHTTP(answer, httptest.NewRequestWithContext(w.Context(), http.MethodGet, "/metrics", http.NoBody))
	for name, one := range parsed(w.T, answer.Body.String()) {
		if !isNumber(one.value) {
			continue
		}
		if w.points[name] == nil {
			w.series[name] = labels.NewBuilder(one.labels).Set("instance", "worker:9090").Labels()
			w.points[name] = map[time.Time]float64{}
		}
		w.points[name][w.now] = one.value
	}
}

// firing returns the alerts whose conditions hold now.
func (w *scrapedProcess) firing() (names []string) {
	w.Helper()
	st := teststorage.New(w.T)
	batch := st.Appender(w.Context())
	for name, points := range w.points {
		was := false
		for _, at := range w.scrapes {
			sample, is := points[at]
			if !is {
				sample = math.Float64frombits(value.StaleNaN) // Prometheus marks series that a scrape lacks in this way
			}
			if is || was {
				_, err := batch.Append(0, w.series[name], at.UnixMilli(), sample)
				w.ok(err)
			}
			was = is
		}
	}
	w.ok(batch.Commit())
	engine := promqltest.NewTestEngine(w.T, false, 0, promqltest.DefaultMaxSamplesPerQuery)
	for _, rule := range rules(w.T) {
		query, err := engine.NewInstantQuery(w.Context(), st, promql.NewPrometheusQueryOpts(false, 0), rule.Expr, w.now)
		w.ok(err)
		result := query.Exec(w.Context())
		w.ok(result.Err)
		vector, err := result.Vector()
		w.ok(err)
		if len(vector) > 0 {
			names = append(names, rule.Alert)
		}
		query.Close()
	}
	return names
}

// submit stores a task and applies events to it.
func (w *scrapedProcess) submit(events ...task.Event) (id string) {
	w.Helper()
	w.tasks++
	id = fmt.Sprintf("task_01J00000000000000000000%03d", w.tasks)
	_, _, err := w.Submit(w.Context(), mediagate.NewTask{
		Task: mediagate.Task{
			ID: id, AccountID: w.account.ID, KeyID: w.key.ID, Model: "alpha-v3", Type: mediagate.TypeVideo, Params: []byte(`{}`),
			Plan:    mediagate.Plan{Routes: []mediagate.Route{{Provider: "kling", Upstream: "v3", Operation: "text2video"}}, Timeout: 2 * time.Hour, ParkTimeout: 24 * time.Hour, ParkRetry: 5 * time.Minute, QueueTimeout: 24 * time.Hour},
			Charges: []mediagate.Charge{{Item: "alpha-v3", Unit: mediagate.UnitSecond, Quantity: 1, UnitPrice: 1}}, Hold: 1, CreatedAt: w.now, DeadlineAt: w.now.Add(2 * time.Hour),
			Webhook: mediagate.Webhook{URL: "https://receiver.example.com", State: mediagate.WebhookPending},
		},
		Path: "/v1/videos/generations",
	})
	w.ok(err)
	if len(events) > 0 {
		_, err = w.Change(w.Context(), id, events...)
		w.ok(err)
	}
	return id
}

// storeAccepted stores a task whose job the vendor has and whose next poll is due now.
func (w *scrapedProcess) storeAccepted() {
	w.Helper()
	id := w.submit()
	sent := task.Sending{
		N: 1, Channel: scrapedChannel, Provider: "kling", Fingerprint: "fp", Route: mediagate.Route{Provider: "kling", Operation: "text2video"}, ExternalID: id,
		SendBefore: w.now.Add(10 * time.Second), CallEnds: w.now.Add(45 * time.Second),
	}
	_, err := w.Change(w.Context(), id, task.IntentStored{Sending: sent}, task.Accepted{Sending: sent, Submission: mediagate.Submission{Ref: mediagate.JobRef{JobID: "j"}}, FirstPollAt: w.now}, task.Asked{})
	w.ok(err)
}

// recordStep records that the task's run has asked for its next step, as a live run does.
func (w *scrapedProcess) recordStep(id string) {
	w.Helper()
	_, err := w.Change(w.Context(), id, task.Asked{})
	w.ok(err)
}

// end ends a task and puts its callback into the state.
func (w *scrapedProcess) end(state mediagate.WebhookState) {
	w.Helper()
	id := w.submit(task.FailRequested{})
	_, err := w.Change(w.Context(), id, task.EndDue{})
	w.ok(err)
	w.ok(w.RecordDelivery(w.Context(), mediagate.Delivery{TaskID: id, Round: 1, Attempt: 1, At: w.now}, state, ""))
}

// TestAlertsFire checks that each alert fires after its event, and that no alert fires before.
func TestAlertsFire(t *testing.T) {
	t.Parallel()
	causes := map[string]func(w *scrapedProcess){
		"TasksStuck": func(w *scrapedProcess) {
			w.submit(task.StepEnded{Step: task.Submit, N: 1, Failed: true, Kind: mediagate.KindShutOut, Code: string(mediagate.ParkFunds)})
		},
		"TasksWaitTooLong": func(w *scrapedProcess) {
			id := w.submit()
			for range 8 {
				w.recordStep(id)
				w.advance(9 * time.Minute)
			}
		},
		"WakesOverdue": func(w *scrapedProcess) {
			w.submit()
			w.advance(3 * time.Minute)
		},
		"PollsOverdue": func(w *scrapedProcess) {
			w.storeAccepted()
			w.advance(3 * time.Minute)
		},
		"ChannelRefused": func(w *scrapedProcess) {
			_, _, err := w.TripBreaker(w.Context(), mediagate.Trip{Channel: scrapedChannel, Reason: mediagate.ParkCredentials, Began: w.now, OpenFor: time.Hour})
			w.ok(err)
		},
		"ChannelAway": func(w *scrapedProcess) {
			_, _, err := w.TripBreaker(w.Context(), mediagate.Trip{Channel: scrapedChannel, Reason: mediagate.ParkProviderAway, Began: w.now, OpenFor: time.Hour})
			w.ok(err)
		},
		"DatabaseLapsed": func(w *scrapedProcess) { w.metrics.LostTail(mediagate.EvidenceAnswer) },
		"UnknownWords":   func(w *scrapedProcess) { w.metrics.UnknownWord(scrapedChannel) },
		"UnpaidWork": func(w *scrapedProcess) {
			w.storeAccepted()
			id := fmt.Sprintf("task_01J00000000000000000000%03d", w.tasks)
			_, err := w.Change(w.Context(), id, task.CancelRequested{}, task.EndDue{})
			w.ok(err)
		},
		"CallbacksAbandoned": func(w *scrapedProcess) {
			for range 7 {
				w.end(mediagate.WebhookAbandoned)
			}
			w.end(mediagate.WebhookDelivered)
		},
		"LedgerBroken": func(w *scrapedProcess) {
			db, err := sql.Open("sqlite", w.file)
			w.ok(err)
			defer db.Close()
			_, err = db.ExecContext(w.Context(), "UPDATE accounts SET available = available + 1")
			w.ok(err)
			report, err := w.CheckLedger(w.Context())
			w.ok(err)
			w.metrics.LedgerChecked(report)
		},
		"RetentionBehind": func(w *scrapedProcess) { w.recordRemoval(25 * time.Hour) },
		"LedgerCheckLate": func(w *scrapedProcess) { w.advance(18*time.Hour + time.Minute) },
		"APIErrors": func(w *scrapedProcess) {
			for range 97 {
				w.metrics.Request("generate", http.StatusOK, time.Millisecond)
			}
			for range 3 {
				w.metrics.Request("generate", http.StatusServiceUnavailable, time.Millisecond)
			}
		},
		"DatabaseAway": func(w *scrapedProcess) { w.ok(w.Close()) },
		"TemporalAway": func(w *scrapedProcess) {
			closed := httptest.NewServer(http.NotFoundHandler())
			address := closed.Listener.Addr().String()
			closed.Close()
			c, err := client.NewLazyClient(client.Options{HostPort: address})
			w.ok(err)
			w.Cleanup(c.Close)
			w.temporal = func(ctx context.Context) error { return workflows.CheckNamespace(ctx, c, "mediagate") }
		},
		"FiguresMissing": func(w *scrapedProcess) { w.slow = true },
		"ModelEnds": func(w *scrapedProcess) {
			w.ends = map[string]time.Time{"alpha-v3": w.now.Add(29 * 24 * time.Hour), "beta-q3": w.now.Add(31 * 24 * time.Hour)}
		},
		"ClockSkew": func(w *scrapedProcess) { w.offset = -11 * time.Second },
		"Panics":    func(*scrapedProcess) { _ = mediagate.Guarded(func() error { panic(errors.New("a bug")) }) },
	}
	var alerts []string
	for _, rule := range rules(t) {
		alerts = append(alerts, rule.Alert)
	}
	if diff := cmp.Diff(slices.Sorted(slices.Values(alerts)), slices.Sorted(maps.Keys(causes))); diff != "" {
		t.Errorf("alerts (-rules +tests):\n%s", diff)
	}
	for alert, happen := range causes {
		t.Run(alert, func(t *testing.T) { // not parallel, because panics are counted for the whole process
			w := newScrapedProcess(t)
			w.advance(10 * time.Minute)
			if before := w.firing(); before != nil {
				t.Fatalf("%v before anything has happened", before)
			}
			happen(w)
			w.advance(2 * time.Minute)
			if diff := cmp.Diff([]string{alert}, w.firing()); diff != "" {
				t.Errorf("firing (-want +got):\n%s", diff)
			}
		})
	}
}
