package metrics_test

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/internal/limit"
	"github.com/mediagate/mediagate/internal/metrics"
)

// scrape is what Prometheus reads, without comments.
func scrape(t *testing.T, m *metrics.Metrics) map[string]string {
	t.Helper()
	w := httptest.NewRecorder()
	m.Handler(slog.New(slog.DiscardHandler)).ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", http.NoBody))
	if w.Code != http.StatusOK {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	values := map[string]string{}
	for line := range strings.Lines(w.Body.String()) {
		if at := strings.LastIndexByte(strings.TrimSpace(line), ' '); at > 0 && !strings.HasPrefix(line, "#") {
			values[line[:at]] = strings.TrimSpace(line[at:])
		}
	}
	return values
}

func source(now func() time.Time) metrics.Source {
	return metrics.Source{
		Figures:  func(context.Context) (mediagate.Figures, error) { return mediagate.Figures{At: now()}, nil },
		Channels: func(context.Context) ([]mediagate.ChannelState, error) { return nil, nil },
		Removals: func(context.Context) (map[mediagate.Removal]mediagate.RemovalState, error) { return nil, nil },
		Database: func(context.Context) error { return nil }, Temporal: func(context.Context) error { return nil },
		ClockOffset: func() time.Duration { return 0 }, Limits: func() []limit.Figures { return nil }, Hints: func() map[string]int64 { return nil },
		Ends: func() map[string]time.Time { return nil }, Now: now,
	}
}

func TestWhatHappensIsCounted(t *testing.T) {
	t.Parallel()
	m := metrics.New("1.2.3", "all")
	m.TaskSubmitted(mediagate.TypeArt)
	m.TaskEnded(mediagate.TypeVideo, mediagate.StatusFailed, "timeout", 3*time.Second)
	m.CallbackEnded(mediagate.WebhookAbandoned)
	m.DeliveryAttempt("retry")
	m.StepEnded("MirrorResult", "gone", time.Second)
	m.VendorCalls("kling-a")("submits", 429, time.Second)
	m.VendorCalls("kling-a")("reads", 0, time.Second)
	m.VendorCalls("kling-a")("reads", 204, time.Second)
	m.VendorCalls("kling-a")("reads", 999, time.Second)
	m.JobEnded("kling-a", true, time.Minute)
	m.Polled("kling-a", -time.Second)
	m.UnknownWord("kling-a")
	m.LostTail(mediagate.EvidenceStray)
	m.Request("generate", 503, time.Second)
	m.LedgerChecked(mediagate.LedgerReport{Problems: []string{"a", "b"}})
	got := scrape(t, m)
	for series, want := range map[string]string{
		`mediagate_build_info{role="all",version="1.2.3"}`:                                     "1",
		`mediagate_tasks_submitted_total{type="art"}`:                                          "1",
		`mediagate_tasks_submitted_total{type="video"}`:                                        "0",
		`mediagate_tasks_ended_total{failure="timeout",status="failed",type="video"}`:          "1",
		`mediagate_task_seconds_sum{status="failed",type="video"}`:                             "3",
		`mediagate_callbacks_ended_total{state="abandoned"}`:                                   "1",
		`mediagate_delivery_attempts_total{outcome="retry"}`:                                   "1",
		`mediagate_step_seconds_count{outcome="gone",step="MirrorResult"}`:                     "1",
		`mediagate_vendor_call_seconds_count{answer="429",channel="kling-a",effect="submits"}`: "1",
		`mediagate_vendor_call_seconds_count{answer="none",channel="kling-a",effect="reads"}`:  "1",
		`mediagate_vendor_call_seconds_count{answer="2xx",channel="kling-a",effect="reads"}`:   "1",
		`mediagate_vendor_call_seconds_count{answer="other",channel="kling-a",effect="reads"}`: "1",
		`mediagate_vendor_job_seconds_sum{channel="kling-a",outcome="succeeded"}`:              "60",
		`mediagate_poll_late_seconds_sum{channel="kling-a"}`:                                   "0",
		`mediagate_unknown_words_total{channel="kling-a"}`:                                     "1",
		`mediagate_lost_tail_total{evidence="answer_fits_no_attempt"}`:                         "1",
		`mediagate_lost_tail_total{evidence="run_ahead_of_row"}`:                               "0",
		`mediagate_http_request_seconds_count{class="generate",status="5xx"}`:                  "1",
		`mediagate_ledger_problems`:                                                            "2",
	} {
		if got[series] != want {
			t.Errorf("%s is %q, want %q", series, got[series], want)
		}
	}
}

func TestPanicsAreCounted(t *testing.T) {
	t.Parallel()
	before := mediagate.Panics()
	_ = mediagate.Guarded(func() error { panic("a bug") })
	if mediagate.Panics() <= before {
		t.Error("not counted")
	}
}

// The check of the ledger moves from worker to worker: what one found hours ago is not
// what the ledger is like.
func TestLedgerProblemsAreForgotten(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := metrics.New("", "worker")
		if _, ok := scrape(t, m)["mediagate_ledger_check_timestamp_seconds"]; ok {
			t.Error("a check before the first")
		}
		m.LedgerChecked(mediagate.LedgerReport{OK: true})
		time.Sleep(12 * time.Hour)
		got := scrape(t, m)
		if _, ok := got["mediagate_ledger_problems"]; ok || got["mediagate_ledger_check_timestamp_seconds"] == "" {
			t.Errorf("%v", got["mediagate_ledger_problems"])
		}
	})
}

func TestFigures(t *testing.T) {
	t.Parallel()
	m := metrics.New("", "worker")
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	s := source(func() time.Time { return now })
	s.Concurrency = map[string]int{"kling-a": 50, "vidu-a": 0}
	s.ClockOffset = func() time.Duration { return -1500 * time.Millisecond }
	s.Removals = func(context.Context) (map[mediagate.Removal]mediagate.RemovalState, error) {
		return map[mediagate.Removal]mediagate.RemovalState{
			mediagate.RemoveTasks: {Removed: 5}, mediagate.RemovalRun: {EndedAt: time.Unix(1_700_000_000, 0)},
		}, nil
	}
	s.Limits = func() []limit.Figures {
		return []limit.Figures{{Name: "connections", Capacity: 10, Held: 3, Refused: 7, Waited: 2 * time.Second}, {Name: "waits", Held: 1}}
	}
	s.Hints = func() map[string]int64 { return map[string]int64{"due": 2, "unknown": 9} }
	s.Figures = func(context.Context) (mediagate.Figures, error) {
		return mediagate.Figures{
			At: now, Abandoned: mediagate.Abandoned{Jobs: 3, Cost: 1_500_000}, Unpaid: 1,
			Endpoints: mediagate.EndpointFigures{Pending: 4, DueAt: now.Add(-90 * time.Second)},
			Open: []mediagate.OpenTasks{
				{Type: mediagate.TypeVideo, Status: mediagate.StatusProcessing, Step: mediagate.WaitVendor, Count: 5, Since: now.Add(-time.Minute)},
				{Type: mediagate.TypeImage, Status: mediagate.StatusPending, Step: mediagate.WaitVendor, Count: 1, Since: now.Add(-time.Hour)},
			},
			Stuck:    map[string]int{"provider_out_of_funds": 4},
			Wakes:    []mediagate.WakeFigures{{Kind: mediagate.WakeRun, Count: 6, Due: 2, Tried: 1, Overdue: now.Add(-90 * time.Second)}},
			Channels: []mediagate.ChannelFigures{{Channel: "kling-a", Jobs: 6, Queued: 2, Awaited: 5, DueAt: now.Add(-30 * time.Second)}, {Channel: "gone", Awaited: 1, DueAt: now.Add(time.Second)}},
		}, nil
	}
	s.Channels = func(context.Context) ([]mediagate.ChannelState, error) {
		return []mediagate.ChannelState{
			{Name: "kling-a", Enabled: true, Open: true, Reason: mediagate.ParkFunds},
			{Name: "vidu-a"},
			{Name: "gone", Enabled: true, Open: true},
		}, nil
	}
	m.Watch(s)
	got := scrape(t, m)
	for series, want := range map[string]string{
		`mediagate_database_up`:          "1",
		`mediagate_temporal_up`:          "1",
		`mediagate_clock_offset_seconds`: "-1.5",
		`mediagate_tasks_open{status="processing",step="vendor",type="video"}`:                   "5",
		`mediagate_tasks_oldest_seconds{step="vendor"}`:                                          "3600",
		`mediagate_tasks_oldest_seconds{step="queue"}`:                                           "0",
		`mediagate_tasks_stuck{reason="provider_out_of_funds"}`:                                  "4",
		`mediagate_tasks_stuck{reason="run_overdue"}`:                                            "0",
		`mediagate_wakes{kind="run"}`:                                                            "6",
		`mediagate_wakes_due{kind="run"}`:                                                        "2",
		`mediagate_wakes_tried{kind="run"}`:                                                      "1",
		`mediagate_wakes_overdue_seconds{kind="run"}`:                                            "90",
		`mediagate_wakes_overdue_seconds{kind="round"}`:                                          "0",
		`mediagate_slots_taken{channel="kling-a"}`:                                               "6",
		`mediagate_slots_limit{channel="kling-a"}`:                                               "50",
		`mediagate_slots_limit{channel="vidu-a"}`:                                                "",
		`mediagate_slots_waiting{channel="kling-a"}`:                                             "2",
		`mediagate_polls_awaited{channel="vidu-a"}`:                                              "0",
		`mediagate_polls_overdue_seconds{channel="kling-a"}`:                                     "30",
		`mediagate_polls_overdue_seconds{channel="gone"}`:                                        "0",
		`mediagate_channel_state{channel="kling-a",reason="provider_out_of_funds",state="open"}`: "1",
		`mediagate_channel_state{channel="vidu-a",reason="none",state="disabled"}`:               "1",
		`mediagate_channel_state{channel="gone",reason="",state="open"}`:                         "", // no channel of the settings
		`mediagate_limit_most{limit="connections"}`:                                              "10",
		`mediagate_limit_held{limit="waits"}`:                                                    "1",
		`mediagate_abandoned_jobs`:                                                               "3",
		`mediagate_unpaid`:                                                                       "1.5",
		`mediagate_endpoint_deliveries_pending`:                                                  "4",
		`mediagate_endpoint_deliveries_overdue_seconds`:                                          "90",
		`mediagate_accounts_above_unpaid`:                                                        "1",
		`mediagate_retention_removed_total{kind="tasks"}`:                                        "5",
		`mediagate_retention_timestamp_seconds`:                                                  "1.7e+09",
		`mediagate_limit_waited_seconds_total{limit="connections"}`:                              "2",
		`mediagate_limit_refused_total{limit="connections"}`:                                     "7",
		`mediagate_vendor_callbacks_total{outcome="unknown"}`:                                    "9",
	} {
		if got[series] != want {
			t.Errorf("%s is %q, want %q", series, got[series], want)
		}
	}
}

// However many scrape, the database is asked now and then; a reading that took long
// rests for longer.
func TestFiguresAreReadNowAndThen(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := metrics.New("", "worker")
		s, looks, takes := source(time.Now), 0, time.Duration(0)
		s.Figures = func(context.Context) (mediagate.Figures, error) {
			looks++
			time.Sleep(takes)
			return mediagate.Figures{At: time.Now()}, nil
		}
		m.Watch(s)
		look := func(after time.Duration, want int) {
			t.Helper()
			time.Sleep(after)
			scrape(t, m)
			scrape(t, m)
			if looks != want {
				t.Errorf("after %s: %d readings, want %d", after, looks, want)
			}
		}
		look(0, 1)
		look(9*time.Second, 1)
		takes = 2 * time.Second
		look(time.Second, 2)
		look(39*time.Second, 2)
		look(time.Second, 3)
	})
}

// What cannot be read is absent, and says so.
func TestFiguresThatCannotBeRead(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		change                  func(s *metrics.Source)
		database, temporal, has string
	}{
		"all well":            {func(*metrics.Source) {}, "1", "1", "0"},
		"no database":         {func(s *metrics.Source) { s.Database = func(context.Context) error { return errors.New("away") } }, "0", "1", ""},
		"no Temporal":         {func(s *metrics.Source) { s.Temporal = func(context.Context) error { return errors.New("away") } }, "1", "0", "0"},
		"a check that panics": {func(s *metrics.Source) { s.Temporal = func(context.Context) error { panic("a bug") } }, "1", "0", "0"},
		"figures that take too long": {func(s *metrics.Source) {
			s.Figures = func(ctx context.Context) (mediagate.Figures, error) {
				<-ctx.Done()
				return mediagate.Figures{}, ctx.Err()
			}
		}, "1", "1", ""},
		"half a reading": {func(s *metrics.Source) {
			s.Channels = func(context.Context) ([]mediagate.ChannelState, error) { return nil, errors.New("away") }
		}, "1", "1", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				m, s := metrics.New("", "worker"), source(time.Now)
				test.change(&s)
				m.Watch(s)
				got := scrape(t, m)
				if got["mediagate_database_up"] != test.database || got["mediagate_temporal_up"] != test.temporal ||
					got[`mediagate_tasks_stuck{reason="run_overdue"}`] != test.has || (got["mediagate_figures_seconds"] != "") != (test.has != "") {
					t.Errorf("%v", got)
				}
			})
		})
	}
}

// The SDK's metrics have names of its own.
func TestTemporalMetrics(t *testing.T) {
	t.Parallel()
	m := metrics.New("", "worker")
	h, err := m.Temporal()
	if err != nil {
		t.Fatal(err)
	}
	h = h.WithTags(map[string]string{"operation": "PollWorkflowTaskQueue"})
	h.Counter("temporal_request").Inc(2)
	h.Timer("temporal_request_latency").Record(3 * time.Second)
	h.Gauge("temporal_num_pollers").Update(4)
	got := scrape(t, m)
	for series, want := range map[string]string{
		`temporal_request_total{operation="PollWorkflowTaskQueue"}`:               "2",
		`temporal_request_latency_seconds_sum{operation="PollWorkflowTaskQueue"}`: "3",
		`temporal_num_pollers{operation="PollWorkflowTaskQueue"}`:                 "4",
	} {
		if got[series] != want {
			t.Errorf("%s is %q, want %q", series, got[series], want)
		}
	}
}
