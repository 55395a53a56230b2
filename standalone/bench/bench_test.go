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
		"p99 of a hundred is the last":   {count(100), 0.99, 99},
		"p99 of a thousand is not quite": {count(1000), 0.99, 990},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := quantile(test.values, test.q); got != test.want {
				t.Errorf("quantile(%v) = %v, want %v", test.q, got, test.want)
			}
		})
	}
}

// count is 0 to n-1, backwards.
func count(n int) []float64 {
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
		return func(context.Context) (float64, error) {
			order.WriteString(name)
			return 1, nil
		}
	}
	c, err := compare(t.Context(), 2, options{verbose: io.Discard}, "turns", part("f"), part("s"))
	if err != nil {
		t.Fatal(err)
	}
	if len(c) != 2 || order.String() != "fssffssf" {
		t.Errorf("%d rounds in the order %s, want 2 in fssffssf", len(c), &order)
	}
	broken := errors.New("broken")
	_, err = compare(t.Context(), 1, options{verbose: io.Discard}, "turns", part("f"), func(context.Context) (float64, error) { return 0, broken })
	if !errors.Is(err, broken) {
		t.Errorf("a slice's error: got %v", err)
	}
}

func TestVerdict(t *testing.T) {
	t.Parallel()
	fast := rate{wall: 10, cpu: 10}
	against := func(floor, subject rate) comparison {
		return comparison{{floor: [2]rate{floor, floor}, subject: [2]rate{subject, subject}}}
	}
	byClock := against(fast, rate{wall: 9, cpu: 5})
	byCPU := against(fast, rate{wall: 5, cpu: 9})
	unknown := against(rate{wall: 10}, rate{wall: 9})
	for name, test := range map[string]struct {
		c      comparison
		others float64
		want   string
	}{
		"alone, the clock counts":            {byClock, 0.1, "ok"},
		"alone, the CPU does not":            {byCPU, 0.1, "missed"},
		"crowded, the CPU counts":            {byCPU, 0.11, "ok"},
		"crowded, the clock does not":        {byClock, 0.11, "missed"},
		"crowded, with no CPU time to go by": {unknown, 0.11, "ok"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := ratioRow("x", "y", test.c, 0.8).verdict(test.others); got != test.want {
				t.Errorf("verdict: %s, want %s", got, test.want)
			}
		})
	}
}

// Whoever goes first is twice as fast here; the ratio must not show it.
func TestFirstHasNoAdvantage(t *testing.T) {
	t.Parallel()
	c := comparison{{
		floor:   [2]rate{{wall: 20, cpu: 20}, {wall: 10, cpu: 10}},
		subject: [2]rate{{wall: 8, cpu: 8}, {wall: 16, cpu: 16}},
	}}
	if got := c.byTime()[0]; math.Abs(got-0.8) > 1e-9 {
		t.Errorf("by the clock: %v, want 0.8", got)
	}
	if got := c.byCPU()[0]; math.Abs(got-0.8) > 1e-9 {
		t.Errorf("by CPU time: %v, want 0.8", got)
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
	c.EncryptionKeys = []string{randomKey()}
	var pipe bytes.Buffer
	if err := sendSettings(&pipe, c); err != nil {
		t.Fatal(err)
	}
	pipe.WriteString("memory\n")
	lines := bufio.NewReader(&pipe)
	back, err := readSettings[app.Config](lines)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(c, back); diff != "" {
		t.Errorf("settings (-sent +received):\n%s", diff)
	}
	if rest, err := lines.ReadString('\n'); rest != "memory\n" {
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
		if err := json.Unmarshal(body, &v); err != nil {
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
	v.reset(func(int) time.Duration { return time.Hour })
	s, err := p.Submit(t.Context(), job("video", `{"prompt": "a kite", "mode": "std", "duration": 5}`))
	if err != nil {
		t.Fatal(err)
	}
	report, err := p.Poll(t.Context(), s.Ref)
	if err != nil || report.State != mediagate.JobRunning {
		t.Fatalf("before its end: %+v, %v", report, err)
	}
	v.reset(func(int) time.Duration { return 0 })
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
	v.reset(func(int) time.Duration { return time.Hour })
	v.observe(true)
	ref := mediagate.JobRef{JobID: "job-1", Operation: "video", State: "text2video"}
	for range 3 {
		if _, err := p.Poll(t.Context(), ref); err != nil {
			t.Fatal(err)
		}
	}
	if gaps := v.observe(false); len(gaps) != 2 {
		t.Errorf("%d gaps between three polls", len(gaps))
	}
}

func vendorOf(t *testing.T, provider, prefix string) (*vendor, providers.Provider) {
	t.Helper()
	v, err := startVendor(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := v.close(); err != nil {
			t.Error(err)
		}
	})
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
	v := &gateway{http: newHTTP()}
	defer v.http.CloseIdleConnections()
	v.url = url
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
	for _, row := range []string{"mirroring a file of 160 MiB", "vendor's end to completed"} {
		if !strings.Contains(table.String(), row) {
			t.Errorf("the table lacks %q:\n%s", row, table.String())
		}
	}
}

func TestPerThousand(t *testing.T) {
	t.Parallel()
	looks := func(mib ...int64) []int64 {
		for i := range mib {
			mib[i] <<= 20
		}
		return mib
	}
	for name, test := range map[string]struct {
		looks []int64 // every hundred tasks
		want  float64
	}{
		"too few":                  {looks(1, 2, 3), 0},
		"flat":                     {looks(5, 5, 5, 5), 0},
		"steady":                   {looks(1, 2, 3, 4, 5, 6, 7, 8), 10},
		"the first half is passed": {looks(0, 100, 200, 300, 300, 300, 300, 300), 0},
		"falls":                    {looks(9, 9, 9, 9, 9, 9, 8, 8), -5},
		"the garbage of one look":  {looks(0, 0, 0, 0, 10, 30, 10, 30), 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := perThousand(test.looks); math.Abs(got-test.want) > 1e-9 {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}

// What a task costs is the median of all slices, and its aim that of the ratio.
func TestCostRow(t *testing.T) {
	t.Parallel()
	rates := func(cpu float64) [2]rate { return [2]rate{{1, cpu}, {1, cpu}} }
	for name, test := range map[string]struct {
		c       comparison
		ok, met bool
	}{
		"cheap":   {comparison{{floor: rates(50), subject: rates(25)}}, true, true},
		"dear":    {comparison{{floor: rates(50), subject: rates(10)}}, true, false},
		"unknown": {comparison{{floor: [2]rate{{1, 0}, {1, 0}}, subject: [2]rate{{1, 0}, {1, 0}}}}, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, ok := costRow("x", test.c, 0.4)
			if ok != test.ok || r.met != test.met || r.metByCPU != test.met {
				t.Errorf("row %+v, %v", r, ok)
			}
			if name == "cheap" && (r.byCPU != "40 ms" || r.floor != "the same, 20 ms" || r.aim != "≤ 2.5×") {
				t.Errorf("row %+v", r)
			}
		})
	}
}
