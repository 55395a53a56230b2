package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"math"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/cmd/mediagate/app"
	"github.com/mediagate/mediagate/providers"
	"github.com/mediagate/mediagate/providers/all"
)

func TestQuantile(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		values []float64
		q      float64
		want   float64
	}{
		"none":                           {nil, 0.5, 0},
		"one":                            {[]float64{3}, 0.99, 3},
		"middle of three":                {[]float64{9, 1, 4}, 0.5, 4},
		"mean of the middle two":         {[]float64{8, 1, 2, 4}, 0.5, 3},
		"p99 of a hundred is the last":   {countdown(100), 0.99, 99},
		"p99 of a thousand is not quite": {countdown(1000), 0.99, 990},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := quantile(test.values, test.q); got != test.want {
				t.Errorf("quantile(%v) = %v, want %v", test.q, got, test.want)
			}
		})
	}
}

// countdown is 0 to n-1, backwards.
func countdown(n int) []float64 {
	values := make([]float64, n)
	for i := range values {
		values[i] = float64(n - 1 - i)
	}
	return values
}

func TestCompareTakesTurns(t *testing.T) {
	t.Parallel()
	var order strings.Builder
	part := func(name string) slice {
		return once(func(context.Context) error {
			order.WriteString(name)
			return nil
		})
	}
	rest := func(context.Context) error { order.WriteString(" "); return nil }
	c, err := compare(t.Context(), 2, rest, part("f"), part("s"))
	if err != nil {
		t.Fatal(err)
	}
	if want := "f s f s s f f s s f "; len(c.rounds) != 2 || order.String() != want {
		t.Errorf("%d rounds in the order %q, want 2 in %q", len(c.rounds), &order, want)
	}
	if len(c.floor) != 4 || len(c.subject) != 4 {
		t.Errorf("%d and %d times, want 4 each, without those of the warm-up", len(c.floor), len(c.subject))
	}
	broken := errors.New("broken")
	_, err = compare(t.Context(), 1, rest, part("f"), once(func(context.Context) error { return broken }))
	if !errors.Is(err, broken) {
		t.Errorf("a slice's error: got %v", err)
	}
}

func TestRateRow(t *testing.T) {
	t.Parallel()
	against := func(byCPU bool, floor, subject rate) comparison {
		return comparison{rounds: []round{{floor: [2]rate{floor, floor}, subject: [2]rate{subject, subject}}}, byCPU: byCPU}
	}
	floor, subject := rate{wall: 1000, cpu: 50}, rate{wall: 900, cpu: 20}
	for name, test := range map[string]struct {
		c    comparison
		want row
	}{
		"by the clock": {against(false, floor, subject), row{"x", "900/s", "1000/s, y", "0.90 (0.90–0.90)", "≥ 0.80", true}},
		"by CPU time":  {against(true, floor, subject), row{"x", "50 ms CPU", "20 ms CPU, y", "0.40 (0.40–0.40)", "≥ 0.80", false}},
		"slow work":    {against(false, rate{wall: 0.5}, rate{wall: 0.4}), row{"x", "2.5 s", "2 s, y", "0.80 (0.80–0.80)", "≥ 0.80", true}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := rateRow("x", "y", test.c, 0.8); got != test.want {
				t.Errorf("got %+v, want %+v", got, test.want)
			}
		})
	}
}

func TestTimeRow(t *testing.T) {
	t.Parallel()
	alone, slower := []time.Duration{10 * time.Millisecond}, []time.Duration{25 * time.Millisecond}
	if got, want := timeRow("x", "y", 0.99, slower, alone, 2), (row{"x, p99", "25 ms", "10 ms, y", "× 2.50", "≤ × 2.00", false}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if got := timeRow("x", "y", 0.99, slower, alone, 2.5); !got.met {
		t.Errorf("at its aim: %+v", got)
	}
}

// Whoever goes first is twice as fast here; the ratio must not show it.
func TestFirstHasNoAdvantage(t *testing.T) {
	t.Parallel()
	rounds := []round{{
		floor:   [2]rate{{wall: 20, cpu: 40}, {wall: 10, cpu: 20}},
		subject: [2]rate{{wall: 8, cpu: 8}, {wall: 16, cpu: 16}},
	}}
	for byCPU, want := range map[bool]float64{false: 0.8, true: 0.4} {
		if got := (comparison{rounds: rounds, byCPU: byCPU}).ratios()[0]; math.Abs(got-want) > 1e-9 {
			t.Errorf("by CPU time %t: %v, want %v", byCPU, got, want)
		}
	}
}

func TestParse(t *testing.T) {
	t.Parallel()
	o, err := parse([]string{"-quick", "-only", "read,mirror"}, io.Discard)
	if err != nil || !o.quick || !cmp.Equal(o.only, []string{"read", "mirror"}) {
		t.Errorf("parsed %+v, %v", o, err)
	}
	for name, args := range map[string][]string{"no such measurement": {"-only", "reads"}, "an argument": {"read"}} {
		if _, err := parse(args, io.Discard); err == nil {
			t.Errorf("%s was taken", name)
		}
	}
}

// The worker process gets its settings with their secrets: nothing may be lost.
func TestSettingsSurviveThePipe(t *testing.T) {
	t.Parallel()
	c := app.Defaults()
	c.Channels = []app.Channel{{
		Name: "kling", Provider: "kling", Credentials: map[string]string{"api_key": "secret"}, RequestsPerSecond: 2.5,
		PollInterval: app.PollInterval{Min: time.Second, Max: time.Minute},
	}}
	c.EncryptionKeys = []string{"key"}
	var pipe bytes.Buffer
	if err := sendSettings(&pipe, c); err != nil {
		t.Fatal(err)
	}
	pipe.WriteString("usage\n")
	lines := bufio.NewReader(&pipe)
	back, err := readSettings[app.Config](lines)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(c, back); diff != "" {
		t.Errorf("settings (-sent +received):\n%s", diff)
	}
	if rest, err := lines.ReadString('\n'); rest != "usage\n" {
		t.Errorf("after the settings comes %q, %v", rest, err)
	}
}

// The worst bodies are at both bounds of what is allowed, and not beyond.
func TestWorstBodies(t *testing.T) {
	t.Parallel()
	for _, body := range worstBodies() {
		var values func(v any) int
		values = func(v any) int {
			n := 1
			switch v := v.(type) {
			case map[string]any:
				for _, inside := range v {
					n += values(inside)
				}
			case []any:
				for _, inside := range v {
					n += values(inside)
				}
			}
			return n
		}
		var v any
		if err := json.Unmarshal([]byte(body), &v); err != nil {
			t.Fatal(err)
		}
		if n := values(v); len(body) != 1<<20 || n > 20_000 || n < 19_900 {
			t.Errorf("%d bytes, %d values", len(body), n)
		}
	}
}

func TestPeakMemory(t *testing.T) {
	t.Parallel()
	if peak, err := peakMemory(os.Getpid()); err != nil || peak < 1<<20 {
		t.Errorf("%d bytes, %v", peak, err)
	}
}

// The vendor must say what the real adapters understand.
func TestVendorSpeaksKling(t *testing.T) {
	t.Parallel()
	v, p := vendorOf(t, "kling", klingPrefix)
	v.reset(func() time.Duration { return time.Hour }, false)
	s, err := p.Submit(t.Context(), job("video", `{"prompt": "a kite", "mode": "std", "duration": 5}`))
	if err != nil {
		t.Fatal(err)
	}
	report, err := p.Poll(t.Context(), s.Ref)
	if err != nil || report.State != mediagate.JobRunning {
		t.Fatalf("before its end: %+v, %v", report, err)
	}
	v.reset(func() time.Duration { return 0 }, false)
	if s, err = p.Submit(t.Context(), job("video", `{"prompt": "a kite", "mode": "std", "duration": 5}`)); err != nil {
		t.Fatal(err)
	}
	if report, err = p.Poll(t.Context(), s.Ref); err != nil || report.Outcome == nil || !report.Outcome.Succeeded {
		t.Fatalf("after its end: %+v, %v", report, err)
	}
	fetch(t, report.Outcome.Media[0].URL, "ftyp")
}

func TestVendorSpeaksDashScope(t *testing.T) {
	t.Parallel()
	_, p := vendorOf(t, "dashscope", dashscopePrefix)
	s, err := p.Submit(t.Context(), job("image", `{"prompt": "a kite", "size": "1:1", "resolution": "1K"}`))
	if err != nil || s.Outcome == nil || len(s.Outcome.Media) != 1 {
		t.Fatalf("submitted: %+v, %v", s, err)
	}
	fetch(t, s.Outcome.Media[0].URL, "PNG")
}

func TestVendorNotesPolls(t *testing.T) {
	t.Parallel()
	v, p := vendorOf(t, "kling", klingPrefix)
	v.reset(func() time.Duration { return time.Hour }, false)
	ref := mediagate.JobRef{JobID: "job-1", Operation: "video", State: "text2video"}
	for range 3 {
		if _, err := p.Poll(t.Context(), ref); err != nil {
			t.Fatal(err)
		}
	}
	if gaps := v.takeGaps(); len(gaps) != 2 {
		t.Errorf("%d gaps between three polls", len(gaps))
	}
}

func vendorOf(t *testing.T, provider, prefix string) (*vendor, providers.Provider) {
	t.Helper()
	v := startVendor()
	t.Cleanup(v.close)
	p, err := all.New(mediagate.Channel{
		Name: provider, Provider: provider, BaseURL: v.url + prefix, Credentials: mediagate.Secrets(map[string]string{"api_key": strings.Repeat("k", 40)}),
	}, providers.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if closer, ok := p.(providers.Closer); ok {
		t.Cleanup(closer.Close)
	}
	return v, p
}

func job(operation, params string) mediagate.Job {
	return mediagate.Job{
		TaskID: "task_1", ExternalID: "task_1", Upstream: "model", Operation: operation, Params: []byte(params),
		SendBefore: time.Now().Add(time.Minute),
	}
}

func fetch(t *testing.T, url, mark string) {
	t.Helper()
	v := &gateway{url: url, http: newHTTP()}
	defer v.http.CloseIdleConnections()
	body, err := v.get(t.Context(), "")
	if err != nil || !bytes.Contains(body[:min(len(body), 16)], []byte(mark)) {
		t.Errorf("%s: %d bytes, %v; want %s at the beginning", url, len(body), err, mark)
	}
}

// The measurements still work: two of them, on the whole machine, whatever
// the figures are.
func TestMeasuring(t *testing.T) {
	if testing.Short() {
		t.Skip("starts all servers")
	}
	t.Parallel()
	var table, log bytes.Buffer
	err := run(t.Context(), []string{"-quick", "-only", "mirror,visible"}, strings.NewReader(""), &table, &log)
	if err != nil {
		t.Fatalf("%v\n%s", err, log.String())
	}
	for _, row := range []string{"a file of 160 MiB", "polled every 2s"} {
		if !strings.Contains(table.String(), row) {
			t.Errorf("the table lacks %q:\n%s", row, table.String())
		}
	}
}
