package api_test

import (
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mediagate/mediagate"
)

// seen makes a worker have both channels.
func (g *gateway) seen() {
	g.t.Helper()
	g.must(g.store.SeenChannel(g.t.Context(), []string{"kling-a", "kling-b"}))
}

func TestChannelStates(t *testing.T) {
	t.Parallel()
	trip := func(g *gateway) {
		_, _, err := g.store.TripBreaker(t.Context(), mediagate.Trip{
			Channel: "kling-a", Reason: mediagate.ParkFunds, Began: g.clock.now(), OpenFor: 30 * time.Second,
		})
		g.must(err)
	}
	disable := func(g *gateway) {
		g.operate(http.MethodPatch, "/channels/kling-a", `{"enabled":false}`).wantStatus(t, 200)
	}
	for name, c := range map[string]struct {
		scene   func(*gateway)
		state   string
		reason  any
		changed bool
		probe   bool // it is told when the next one is
	}{
		"up":       {func(*gateway) {}, "up", nil, false, false},
		"broken":   {trip, "broken", "provider_out_of_funds", true, true},
		"disabled": {disable, "disabled", nil, true, false},
		"failing": {func(g *gateway) {
			g.must(g.store.CountCalls(t.Context(), []mediagate.ChannelCalls{{Channel: "kling-a", Minute: g.clock.now(), Submits: 2, Failures: 2}}))
		}, "failing", nil, false, false},
		"failing in part": {func(g *gateway) {
			g.must(g.store.CountCalls(t.Context(), []mediagate.ChannelCalls{{Channel: "kling-a", Minute: g.clock.now(), Submits: 2, Failures: 1}}))
		}, "up", nil, false, false},
		"both": {func(g *gateway) { trip(g); disable(g) }, "disabled", "provider_out_of_funds", true, false},
		"a probe is due": {func(g *gateway) {
			trip(g)
			g.clock.advance(30 * time.Second)
		}, "probing", "provider_out_of_funds", true, false},
		"a probe is under way": {func(g *gateway) {
			trip(g)
			g.clock.advance(30 * time.Second)
			_, _, err := g.store.ClaimProbe(t.Context(), "kling-a", "p", time.Minute)
			g.must(err)
		}, "probing", "provider_out_of_funds", true, false},
		"gone": {func(g *gateway) { g.clock.advance(10 * time.Minute) }, "gone", nil, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := newGateway(t)
			g.seen()
			c.scene(g)
			a := g.operate(http.MethodGet, "/channels/kling-a", "")
			if a.status != 200 || a.at("state") != c.state || a.at("reason") != c.reason || (a.at("since") != nil) != c.changed || (a.at("next_probe_at") != nil) != c.probe {
				t.Errorf("%d %s", a.status, a.body)
			}
		})
	}
}

// A model that the vendor no longer has is shown until its time is over, or the channel is enabled.
func TestChannelShowsRetiredModels(t *testing.T) {
	t.Parallel()
	g := newGateway(t)
	g.seen()
	retire := func(upstream string) {
		t.Helper()
		_, err := g.store.RetireModel(t.Context(), "kling-a", upstream, g.clock.now(), time.Hour)
		g.must(err)
	}
	want := func(upstreams ...string) {
		t.Helper()
		a := g.operate(http.MethodGet, "/channels/kling-a", "")
		if got := a.ids("retired", "upstream"); !slices.Equal(got, upstreams) || a.at("state") != "up" {
			t.Errorf("%d %s, want %q", a.status, a.body, upstreams)
		}
	}
	want()
	retire("kling-v2")
	g.clock.advance(time.Minute)
	retire("kling-v1")
	g.seen()
	want("kling-v1", "kling-v2")
	if a := g.operate(http.MethodGet, "/channels/kling-a", ""); a.at("retired", 0, "until") != float64(g.clock.now().Add(time.Hour).Unix()) {
		t.Errorf("%s", a.body)
	}
	g.clock.advance(59 * time.Minute)
	g.seen()
	want("kling-v1")
	g.operate(http.MethodPatch, "/channels/kling-a", `{"enabled":true}`).wantStatus(t, 200)
	want()
}

// TestChannelNumbers checks the numbers of a channel's jobs and its error rate.
func TestChannelNumbers(t *testing.T) {
	t.Parallel()
	g := newGateway(t)
	g.seen()
	began := g.clock.now()
	g.accept(g.submit(videos, `{"model":"alpha-v3","prompt":"a"}`))
	g.clock.advance(time.Minute)
	g.accept(g.submit(videos, `{"model":"alpha-v3","prompt":"b"}`))
	now := g.clock.now()
	const channel = "one"
	g.must(g.store.SeenChannel(t.Context(), []string{channel}))
	g.must(g.store.CountCalls(t.Context(), []mediagate.ChannelCalls{
		{Channel: channel, Minute: now.Add(-20 * time.Minute), Submits: 100, Failures: 100},
		{Channel: channel, Minute: now, Submits: 7, Failures: 2, LastError: "submit: ambiguous", LastErrorAt: now},
	}))
	a := g.operate(http.MethodGet, "/channels/"+channel, "")
	got := map[string]any{}
	for _, field := range []string{"in_flight", "waiting", "oldest", "polling", "error_rate", "last_error", "last_error_at"} {
		got[field] = a.at(field)
	}
	if diff := cmp.Diff(map[string]any{
		"in_flight": 2.0, "waiting": 0.0, "oldest": float64(began.Unix()), "polling": 2.0, "error_rate": 0.2857,
		"last_error": "submit: ambiguous", "last_error_at": float64(now.Unix()),
	}, got); diff != "" {
		t.Errorf("%d (-want +got):\n%s", a.status, diff)
	}
}

// TestChannelOfFormerSettings checks that a channel removed from the settings is listed while it
// has jobs.
func TestChannelOfFormerSettings(t *testing.T) {
	t.Parallel()
	g := newGateway(t)
	id := g.submit(videos, `{"model":"alpha-v3","prompt":"a"}`)
	g.accept(id)
	const name = "one"
	g.must(g.store.SeenChannel(t.Context(), []string{name, "long-gone"}))
	g.clock.advance(10 * time.Minute)
	a := g.operate(http.MethodGet, "/channels", "")
	if a.at("data", 2, "name") != name || a.at("data", 2, "state") != "gone" || a.at("data", 2, "in_flight") != 1.0 || a.at("data", 3) != nil {
		t.Errorf("%d %s", a.status, a.body)
	}
	if a = g.operate(http.MethodPatch, "/channels/"+name, `{"enabled":false}`); a.status != 200 || a.at("enabled") != false {
		t.Errorf("%d %s", a.status, a.body)
	}
	g.operate(http.MethodGet, "/channels/long-gone", "").wantError(t, 404, "not_found_error", "channel not found")
}

func TestChannelPages(t *testing.T) {
	t.Parallel()
	g := newGateway(t)
	for query, want := range map[string]string{"?limit=1": "[kling-a]", "?after=kling-a": "[kling-b]", "?after=kling-b": "[]"} {
		a := g.operate(http.MethodGet, "/channels"+query, "")
		if got := fmt.Sprint(a.ids("data", "name")); got != want || a.at("has_more") != (query == "?limit=1") {
			t.Errorf("%s: %s", query, a.body)
		}
	}
	for query, param := range map[string]string{"limit=0": "limit", "limit=x": "limit", "limit=101": "limit", "after=nobody": "after", "after=%00": "after"} {
		g.operate(http.MethodGet, "/channels?"+query, "").wantError(t, 400, "invalid_request_error", param)
	}
}

func TestChannelChange(t *testing.T) {
	t.Parallel()
	g := newGateway(t)
	g.seen()
	_, _, err := g.store.TripBreaker(t.Context(), mediagate.Trip{Channel: "kling-a", Reason: mediagate.ParkCredentials, Began: g.clock.now(), OpenFor: time.Hour})
	g.must(err)
	for body, want := range map[string]string{
		`{}`: "enabled", `{"enabled":null}`: "enabled", `{"enabled":"true"}`: "enabled", `{"enabled":1}`: "enabled", `[]`: "JSON object", `{`: "JSON",
		`{"enabled":true,"priority":2}`: "priority", `{"priority":2}`: "priority", `{"enabled":true,"reason":1}`: "reason", `{"enabled":true,"enabled":false}`: "enabled", "": "the body is empty",
	} {
		g.operate(http.MethodPatch, "/channels/kling-a", body).wantError(t, 400, "invalid_request_error", want)
	}
	for _, name := range []string{"nobody", "KLING-A", "%00", "%ff", "kling-a%20"} {
		g.operate(http.MethodPatch, "/channels/"+name, `{"enabled":true}`).wantError(t, 404, "not_found_error", "channel not found")
		g.operate(http.MethodGet, "/channels/"+name, "").wantError(t, 404, "not_found_error", "channel not found")
	}
	if a := g.operate(http.MethodGet, "/channels/kling-a", ""); a.at("state") != "broken" {
		t.Errorf("a refused change did something: %s", a.body)
	}
	for _, step := range []struct {
		body, state string
		reason      any
	}{
		{`{"enabled":true}`, "up", nil},
		{`{"enabled":false,"reason":"INC-7"}`, "disabled", "INC-7"},
		{`{"enabled":false,"reason":"later"}`, "disabled", "INC-7"}, // it is disabled already
		{`{"enabled":true,"reason":"mended"}`, "up", nil},
		{`{"enabled":false}`, "disabled", nil},
		{`{"enabled":true}`, "up", nil},
	} {
		a := g.operate(http.MethodPatch, "/channels/kling-a", step.body)
		if a.status != 200 || a.at("state") != step.state || a.at("enabled") != (step.state == "up") || a.at("reason") != nil || a.at("disabled_reason") != step.reason {
			t.Errorf("%s: %d %s", step.body, a.status, a.body)
		}
		if got := g.operate(http.MethodGet, "/channels/kling-a", ""); got.body != a.body {
			t.Errorf("read back: %s, want %s", got.body, a.body)
		}
	}
}
