package api_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/api"
)

func (g *gateway) quote(path, body string) answer {
	g.t.Helper()
	return g.post("/v1/quote", strings.Replace(body, "{", `{"endpoint":"`+path+`",`, 1))
}

// untouched fails when anything of a refused submit is left.
func (g *gateway) untouched() {
	g.t.Helper()
	list := g.get("/v1/tasks")
	if tasks, _ := list.at("data").([]any); len(tasks) != 0 {
		g.t.Errorf("tasks: %s", list.body)
	}
	account, err := g.store.Account(g.t.Context(), g.account.ID)
	g.must(err)
	if account.Held != 0 || account.Available != 100*mediagate.MicrosPerUnit {
		g.t.Errorf("available %s, held %s", account.Available, account.Held)
	}
	if g.starts() != 0 || len(g.bucket.files) != 0 {
		g.t.Errorf("%d workflows, %d uploads", g.starts(), len(g.bucket.files))
	}
}

// What no vendor can be told is refused in the words of an adapter, by submit
// and quote alike, and leaves nothing.
func TestWhatNoVendorTakesIsRefused(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		err     error
		status  int
		kind    string
		message string
	}{
		"refused":          {mediagate.Invalid("mode", "mode must be std or pro here"), 400, "invalid_request_error", "mode must be std or pro here"},
		"field not named":  {mediagate.Invalid("mode", "must be std or pro"), 400, "invalid_request_error", "mode: must be std or pro"},
		"adapter at fault": {errors.New("secret detail"), 500, "server_error", "internal error"},
		"another kind":     {mediagate.Errorf(mediagate.KindNotFound, "operation unknown"), 500, "server_error", "internal error"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := newGateway(t)
			g.vendors.says = func(string, mediagate.Route, json.RawMessage) api.Expression {
				return api.Expression{Err: test.err}
			}
			submit, quote := g.post(videos, videoBody), g.quote(videos, videoBody)
			submit.wantError(t, test.status, test.kind, test.message)
			quote.wantError(t, test.status, test.kind, test.message)
			if submit.at("error", "message") != quote.at("error", "message") {
				t.Errorf("the submit says %s, the quote %s", submit.body, quote.body)
			}
			g.untouched()
		})
	}
}

// A route that makes another thing than was asked for stands in where no other
// route has a channel, and at the price of what it makes.
func TestRoutesThatMakeAnotherThing(t *testing.T) {
	t.Parallel()
	const silent = `{"model":"epsilon3.1-fast-official","prompt":"a cat","generate_audio":false}`
	const sounded = `{"model":"epsilon3.1-fast-official","prompt":"a cat","generate_audio":true}`
	for name, test := range map[string]struct {
		served []string
		body   string
		cost   string
		routes []string
	}{
		"both":            {[]string{"vertex", "veo"}, silent, "0.8", []string{"vertex"}},
		"the exact one":   {[]string{"vertex"}, silent, "0.8", []string{"vertex"}},
		"the other":       {[]string{"veo"}, silent, "1.2", []string{"vertex", "veo"}},
		"neither":         {nil, silent, "0.8", []string{"vertex"}},
		"both, as asked":  {[]string{"vertex", "veo"}, sounded, "1.2", []string{"vertex", "veo"}},
		"other, as asked": {[]string{"veo"}, sounded, "1.2", []string{"vertex", "veo"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := newGateway(t)
			g.vendors.says = func(_ string, route mediagate.Route, _ json.RawMessage) api.Expression {
				return api.Expression{Unserved: !slices.Contains(test.served, route.Provider)}
			}
			if quote := g.quote(videos, test.body); fmt.Sprint(quote.at("cost")) != test.cost {
				t.Errorf("quoted %d %s, want %s", quote.status, quote.body, test.cost)
			}
			task, err := g.store.TaskByID(t.Context(), g.submit(videos, test.body))
			g.must(err)
			var routes []string
			for _, route := range task.Plan.Routes {
				routes = append(routes, route.Provider)
			}
			if held := fmt.Sprint(task.Hold.Number()); !slices.Equal(routes, test.routes) || held != test.cost {
				t.Errorf("%s is held for %s, want %s for %s", held, routes, test.cost, test.routes)
			}
		})
	}
	half := newGateway(t)
	_, key := half.newKey(mediagate.Key{Unlimited: true, Group: "half"})
	half.vendors.says = func(_ string, route mediagate.Route, _ json.RawMessage) api.Expression {
		return api.Expression{Unserved: route.Provider == "vertex"}
	}
	if quote := half.send(request{method: http.MethodPost, path: "/v1/quote", key: key, body: strings.Replace(silent, "{", `{"endpoint":"`+videos+`",`, 1)}); fmt.Sprint(quote.at("cost")) != "0.6" {
		t.Errorf("at half the price: %s", quote.body)
	}
}

// A refusal names what the client sent, where that was folded into the field
// that an adapter refuses.
func TestRefusalNamesWhatWasSent(t *testing.T) {
	t.Parallel()
	const said = `"messages":[{"role":"user","content":"a cat"}]`
	for name, test := range map[string]struct{ body, param, message string }{
		"messages alone":  {`{"model":"gamma2.6",` + said + `}`, "prompt", "messages: prompt is too long here"},
		"a blank beside":  {`{"model":"gamma2.6","prompt":" ",` + said + `}`, "prompt", "messages: prompt is too long here"},
		"a prompt beside": {`{"model":"gamma2.6","prompt":"a",` + said + `}`, "prompt", "prompt is too long here"},
		"no messages":     {`{"model":"gamma2.6","prompt":"a"}`, "prompt", "prompt is too long here"},
		"another field":   {`{"model":"gamma2.6",` + said + `}`, "duration", "duration is too long here"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := newGateway(t)
			g.vendors.says = func(string, mediagate.Route, json.RawMessage) api.Expression {
				return api.Expression{Err: mediagate.Invalid(test.param, "%s is too long here", test.param)}
			}
			a := g.post(videos, test.body)
			a.wantError(t, 400, "invalid_request_error", test.message)
			if got := a.at("error", "message"); got != test.message {
				t.Errorf("message %q, want %q", got, test.message)
			}
		})
	}
}

// What only a route without a channel could take is refused in the words of one
// that has a channel, by submit and quote alike, and leaves nothing.
func TestWhatOnlyRoutesWithoutChannelsTakeIsRefused(t *testing.T) {
	t.Parallel()
	g := newGateway(t)
	g.vendors.says = func(_ string, route mediagate.Route, _ json.RawMessage) api.Expression {
		if route.Provider == "kling" {
			return api.Expression{Unserved: true}
		}
		return api.Expression{Err: mediagate.Invalid("mode", "mode must be std or pro here")}
	}
	submit, quote := g.post(videos, videoBody), g.quote(videos, videoBody)
	submit.wantError(t, 400, "invalid_request_error", "mode must be std or pro")
	quote.wantError(t, 400, "invalid_request_error", "mode must be std or pro")
	g.untouched()
}

// The order of the checks is the contract's: what the schema refuses no vendor
// is asked for, and who may not use the model learns nothing of vendors.
func TestVendorsAreAskedLast(t *testing.T) {
	t.Parallel()
	g := newGateway(t)
	_, onlyTheta := g.newKey(mediagate.Key{Unlimited: true, Models: []string{"theta-*"}})
	g.post(videos, `{"model":"alpha-v3","prompt":"a","duration":99}`).wantError(t, 400, "invalid_request_error", "duration")
	g.send(request{method: http.MethodPost, path: videos, key: onlyTheta, body: videoBody}).wantError(t, 403, "permission_error", "alpha-v3")
	if len(g.vendors.asked) != 0 {
		t.Errorf("asked for %v", g.vendors.asked)
	}
}

// Vendors are asked with the parameters that a job will have, for the model
// that the client named, and what they say of the routes is stored.
func TestPlanHoldsWhatVendorsSay(t *testing.T) {
	t.Parallel()
	g := newGateway(t)
	var model, prompt string
	g.vendors.says = func(m string, _ mediagate.Route, params json.RawMessage) api.Expression {
		var p struct{ Prompt string }
		if err := json.Unmarshal(params, &p); err != nil {
			t.Error(err)
		}
		model, prompt = m, p.Prompt
		return api.Expression{Sync: true}
	}
	row, err := g.store.TaskByID(t.Context(), g.submit(videos, videoBody))
	g.must(err)
	if model != "alpha-v3" || prompt != "a cat" {
		t.Errorf("asked for %q, %q", model, prompt)
	}
	if len(row.Plan.Routes) == 0 || !row.Plan.Routes[0].Sync || len(row.Plan.Skipped) != 0 {
		t.Errorf("stored: %+v", row.Plan)
	}
}
