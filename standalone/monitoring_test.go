package main

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"
	"go.temporal.io/sdk/client"

	"github.com/mediagate/mediagate/workflows"
)

var promQL = parser.NewParser(parser.Options{})

// rules returns the rules of deploy/alerts.yml, as Prometheus reads them.
func rules(t *testing.T) []rulefmt.Rule {
	t.Helper()
	groups, errs := rulefmt.ParseFile("../deploy/alerts.yml", false, model.UTF8Validation, promQL)
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	var all []rulefmt.Rule
	for _, g := range groups.Groups {
		all = append(all, g.Rules...)
	}
	return all
}

// queries returns the queries of deploy/dashboard.json, by panel.
func queries(t *testing.T) map[string]string {
	t.Helper()
	text, err := os.ReadFile("../deploy/dashboard.json")
	if err != nil {
		t.Fatal(err)
	}
	var dashboard struct {
		Panels []struct {
			Title   string
			Targets []struct{ RefID, Expr string }
		}
	}
	if err := json.Unmarshal(text, &dashboard); err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for _, p := range dashboard.Panels {
		for _, q := range p.Targets {
			all[p.Title+" "+q.RefID] = q.Expr
		}
	}
	return all
}

// scrape holds the metrics of a process: the value of each series.
type scrape map[string]sample

type sample struct {
	labels labels.Labels
	value  float64
}

func scraped(t *testing.T, url string) scrape {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url+"/metrics", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%d %v %s", resp.StatusCode, err, text)
	}
	return parsed(t, string(text))
}

func parsed(t *testing.T, text string) scrape {
	t.Helper()
	s := scrape{}
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		at := strings.LastIndexByte(line, ' ')
		if at < 0 || strings.HasPrefix(line, "#") {
			continue
		}
		value, err := strconv.ParseFloat(line[at+1:], 64)
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		series, err := promQL.ParseMetric(line[:at])
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		s[line[:at]] = sample{series, value}
	}
	return s
}

// sum returns the sum of the series whose text matches the pattern.
func (s scrape) sum(pattern string) (sum float64) {
	match := regexp.MustCompile(pattern)
	for series, one := range s {
		if match.MatchString(series) {
			sum += one.value
		}
	}
	return sum
}

// names returns the labels of each metric.
func (s scrape) names() map[string]map[string]bool {
	names := map[string]map[string]bool{}
	for _, one := range s {
		name := one.labels.Get(model.MetricNameLabel)
		if names[name] == nil {
			names[name] = map[string]bool{"instance": true, "job": true}
		}
		one.labels.Range(func(l labels.Label) { names[name][l.Name] = true })
	}
	return names
}

// unknown returns the metrics and labels of an expression that the scrape lacks.
func (s scrape) unknown(t *testing.T, text string) (missing []string) {
	t.Helper()
	expr, err := promQL.ParseExpr(text)
	if err != nil {
		return []string{err.Error()}
	}
	names := s.names()
	parser.Inspect(expr, func(node parser.Node, path []parser.Node) error {
		selector, ok := node.(*parser.VectorSelector)
		if !ok {
			return nil
		}
		known := names[selector.Name]
		if known == nil {
			missing = append(missing, selector.Name)
			return nil
		}
		used := map[string]bool{}
		for _, m := range selector.LabelMatchers {
			used[m.Name] = true
		}
		for _, above := range path {
			if a, ok := above.(*parser.AggregateExpr); ok {
				for _, l := range a.Grouping {
					used[l] = true
				}
			}
		}
		for l := range used {
			if !known[l] {
				missing = append(missing, selector.Name+"{"+l+"}")
			}
		}
		return nil
	})
	return missing
}

// family returns the name under which documents list the metric of a series.
func family(name string) string {
	for _, suffix := range []string{"_bucket", "_sum", "_count"} {
		if cut, ok := strings.CutSuffix(name, suffix); ok && strings.HasSuffix(cut, "_seconds") {
			return cut
		}
	}
	return name
}

// monitored starts a product whose metrics cover a bit of everything: a completed video with a
// callback, an image, a failed task, a task that still runs, a call for an unknown callback, a
// model with an end, and a run of retention.
func monitored(t *testing.T) (announcement, func() scrape) {
	t.Helper()
	hook := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	t.Cleanup(hook.Close)
	dir := t.TempDir()
	data := filepath.Join(dir, "data")
	free := []string{"-data", data}
	for _, name := range []string{"api", "temporal", "ui", "s3", "sandbox", "ops"} {
		free = append(free, "-"+name, "127.0.0.1:0")
	}
	models := t.TempDir()
	if err := os.WriteFile(filepath.Join(models, "alpha.yaml"), []byte("id: alpha-v3\nends: 2099-12-31\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	p := launch(t, []string{"MEDIAGATE_CATALOG_DIR=" + models}, free...)
	a := awaitAnnouncement(t, p, data)
	submit := func(path, body string) {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, a.API+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+a.Key)
		req.Header.Set("Content-Type", "application/json")
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		if text, _ := io.ReadAll(resp.Body); resp.StatusCode != http.StatusOK {
			t.Fatalf("%d %s", resp.StatusCode, text)
		}
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, a.API+"/callbacks/nobody", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	submit("/v1/videos/generations", fmt.Sprintf(`{"model":"alpha-v3","prompt":"a cat [[sandbox: duration=1s]]","webhook":%q}`, hook.URL))
	submit("/v1/images/generations", `{"model":"theta-image-turbo","prompt":"a dog"}`)
	submit("/v1/videos/generations", `{"model":"alpha-v3","prompt":"an eel [[sandbox: duration=1s, fail=moderation, at=poll]]"}`)
	submit("/v1/videos/generations", `{"model":"alpha-v3","prompt":"a fox [[sandbox: duration=10m]]"}`) // still runs during the scrape
	c := dial(t, a.Temporal)
	t.Cleanup(c.Close)
	retention := c.ScheduleClient().GetHandle(t.Context(), workflows.IDRetention) // retention runs once an hour
	for limit := time.Now().Add(time.Minute); retention.Trigger(t.Context(), client.ScheduleTriggerOptions{}) != nil; time.Sleep(100 * time.Millisecond) {
		if time.Now().After(limit) {
			t.Fatal("there is no schedule of retention")
		}
	}
	return a, func() scrape { return scraped(t, a.Ops) }
}

// TestMetricsOfTheProduct checks that every metric named by the rules, the dashboard and the
// documents exists, and that every existing metric is documented.
func TestMetricsOfTheProduct(t *testing.T) {
	t.Parallel()
	a, look := monitored(t)
	var s scrape
	limit := time.Now().Add(2 * time.Minute)
	for {
		if s = look(); s.sum("^mediagate_tasks_ended_total") >= 3 && s.sum("^mediagate_callbacks_ended_total") >= 1 &&
			s.sum("^mediagate_polls_awaited") >= 1 && s.sum("^mediagate_retention_timestamp_seconds") > 0 {
			break
		}
		if time.Now().After(limit) {
			t.Fatalf("%v tasks ended, %v callbacks, %v polled for", s.sum("^mediagate_tasks_ended_total"), s.sum("^mediagate_callbacks_ended_total"), s.sum("^mediagate_polls_awaited"))
		}
		time.Sleep(200 * time.Millisecond)
	}
	for series, least := range map[string]float64{ // each hook must be connected
		`^mediagate_tasks_submitted_total{type="video"}`:                                            3,
		`^mediagate_tasks_ended_total{.*status="completed",type="image"}`:                           1,
		`^mediagate_tasks_ended_total{failure="[a-z_]+",status="failed",type="video"}`:              1,
		`^mediagate_task_seconds_count`:                                                             3,
		`^mediagate_step_seconds_count{outcome="ok",step="SubmitJob"}`:                              3,
		`^mediagate_vendor_call_seconds_count{answer="2xx",channel="[^"]+",effect="submits"}`:       3,
		`^mediagate_vendor_call_seconds_count{answer="2xx",channel="sandbox-kling",effect="reads"}`: 1,
		`^mediagate_vendor_job_seconds_count{channel="sandbox-kling",outcome="succeeded"}`:          1,
		`^mediagate_vendor_job_seconds_count{channel="sandbox-kling",outcome="failed"}`:             1,
		`^mediagate_poll_late_seconds_count{channel="sandbox-kling"}`:                               2,
		`^mediagate_delivery_attempts_total{outcome="delivered"}`:                                   1,
		`^mediagate_callbacks_ended_total{state="delivered"}`:                                       1,
		`^mediagate_http_request_seconds_count{class="generate",status="2xx"}`:                      4,
		`^mediagate_ledger_check_timestamp_seconds`:                                                 1,
		`^mediagate_vendor_callbacks_total{outcome="unknown"}`:                                      1,
		`^mediagate_database_up`:                                    1,
		`^mediagate_temporal_up`:                                    1,
		`^mediagate_build_info{role="all"`:                          1,
		`^mediagate_model_ends_timestamp_seconds{model="alpha-v3"}`: 4102358400,
		`^mediagate_polls_awaited{channel="sandbox-kling"}`:         1,
		`^mediagate_slots_taken{channel="sandbox-kling"}`:           1,
		`^temporal_request_total`:                                   1,
	} {
		if got := s.sum(series); got < least {
			t.Errorf("%s is %v, want at least %v", series, got, least)
		}
	}

	for name, one := range s {
		for _, secret := range []string{"task_", "acc_", "key_", "mgk_", a.Key, "a cat"} {
			if strings.Contains(name, `"`+secret) {
				t.Errorf("%s: %v", name, one.value)
			}
		}
	}
	for _, rule := range rules(t) {
		if missing := s.unknown(t, rule.Expr); missing != nil {
			t.Errorf("alert %s names %v", rule.Alert, missing)
		}
	}
	for panel, query := range queries(t) {
		if missing := s.unknown(t, query); missing != nil && !slices.Equal(missing, []string{"mediagate_slots_limit"}) { // no channel of the sandbox has one
			t.Errorf("panel %s names %v", panel, missing)
		}
	}

	watching, err := os.ReadFile("../docs/watching.md")
	if err != nil {
		t.Fatal(err)
	}
	documented := map[string]string{}
	for _, row := range regexp.MustCompile("(?m)^\\| `(mediagate_[a-z_]+)` \\|([^|]*)\\|").FindAllStringSubmatch(string(watching), -1) {
		documented[row[1]] = strings.Join(slices.Sorted(slices.Values(strings.FieldsFunc(row[2], func(r rune) bool { return strings.ContainsRune("`, ", r) }))), " ")
	}
	there := map[string]string{"mediagate_slots_limit": "channel"}
	for name, ls := range s.names() {
		if !strings.HasPrefix(name, "mediagate_") {
			continue
		}
		for _, l := range []string{"instance", "job", "le", model.MetricNameLabel} {
			delete(ls, l)
		}
		there[family(name)] = strings.Join(slices.Sorted(maps.Keys(ls)), " ")
	}
	if diff := cmp.Diff(there, documented); diff != "" {
		t.Errorf("metrics and their labels (-there +docs/watching.md):\n%s", diff)
	}
	for _, name := range regexp.MustCompile("`(temporal_[a-z_]+)`").FindAllStringSubmatch(string(watching), -1) {
		if known := s.names(); known[name[1]] == nil && known[name[1]+"_count"] == nil {
			t.Errorf("there is no %s", name[1])
		}
	}
}

// TestEachAlertHasItsPage checks that each alert has a page and a row, and each page of an alert
// an alert.
func TestEachAlertHasItsPage(t *testing.T) {
	t.Parallel()
	watching, err := os.ReadFile("../docs/watching.md")
	if err != nil {
		t.Fatal(err)
	}
	var alerts []string
	for _, r := range rules(t) {
		alerts = append(alerts, r.Alert)
		page := "docs/runbook/" + r.Alert + ".md"
		text, err := os.ReadFile(filepath.Join("..", page))
		if err != nil {
			t.Error(err)
			continue
		}
		if r.Annotations["runbook"] != page || r.Annotations["summary"] == "" || !slices.Contains([]string{"page", "ticket"}, r.Labels["severity"]) {
			t.Errorf("%s: %v %v", r.Alert, r.Annotations, r.Labels)
		}
		if !strings.HasPrefix(string(text), "# "+r.Alert) {
			t.Errorf("%s does not begin with its name", page)
		}
		for _, part := range []string{"**Seen as**: the alert", "**It means**", "**Do**"} {
			if !strings.Contains(string(text), part) {
				t.Errorf("%s has no %s", page, part)
			}
		}
	}
	var rows, pages []string
	for _, row := range regexp.MustCompile(`(?m)^\| \[([A-Za-z]+)\]\(runbook/`).FindAllStringSubmatch(string(watching), -1) {
		rows = append(rows, row[1])
	}
	if diff := cmp.Diff(alerts, rows); diff != "" {
		t.Errorf("alerts (-rules +docs/watching.md):\n%s", diff)
	}
	entries, err := os.ReadDir("../docs/runbook")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		text, err := os.ReadFile(filepath.Join("../docs/runbook", e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(text), "**Seen as**: the alert") {
			pages = append(pages, strings.TrimSuffix(e.Name(), ".md"))
		}
	}
	slices.Sort(alerts)
	if diff := cmp.Diff(alerts, pages); diff != "" {
		t.Errorf("alerts (-rules +pages):\n%s", diff)
	}
}

// isNumber reports whether a sample is a finite number.
func isNumber(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }
