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

// untouched expects that a refused submit left nothing.
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

// TestUnsupportedRequestIsRefused checks that submit and quote refuse a request that no vendor
// supports with the adapter's message, and leave nothing.
func TestUnsupportedRequestIsRefused(t *testing.T) {
	t.Parallel()
	g := newGateway(t)
	for name, test := range map[string]struct {
		err     error
		status  int
		kind    string
		message string
	}{
		"refused":          {mediagate.Invalid("mode", "mode must be std or pro here"), 400, "invalid_request_error", "mode must be std or pro here"},
		"adapter at fault": {errors.New("secret detail"), 500, "server_error", "internal error"},
	} {
		t.Run(name, func(t *testing.T) {
			g.vendors.says = func(string, mediagate.Route, json.RawMessage) api.Support {
				return api.Support{Err: test.err}
			}
			g.post(videos, videoBody).wantError(t, test.status, test.kind, test.message)
			g.quote(videos, videoBody).wantError(t, test.status, test.kind, test.message)
			g.untouched()
		})
	}
}

// TestRoutesThatMakeAnotherThing checks that a route with another result is used if no other
// route has a channel, at the price of its result.
func TestRoutesThatMakeAnotherThing(t *testing.T) {
	t.Parallel()
	const silent = `{"model":"epsilon3.1-fast-official","prompt":"a cat","generate_audio":false}`
	const sounded = `{"model":"epsilon3.1-fast-official","prompt":"a cat","generate_audio":true}`
	g := newGateway(t)
	for name, test := range map[string]struct {
		served []string
		body   string
		cost   string
		routes []string
	}{
		"both":           {[]string{"vertex", "veo"}, silent, "0.8", []string{"vertex"}},
		"the other":      {[]string{"veo"}, silent, "1.2", []string{"vertex", "veo"}},
		"neither":        {nil, silent, "0.8", []string{"vertex"}},
		"both, as asked": {[]string{"vertex", "veo"}, sounded, "1.2", []string{"vertex", "veo"}},
	} {
		t.Run(name, func(t *testing.T) {
			g.vendors.says = func(_ string, route mediagate.Route, _ json.RawMessage) api.Support {
				return api.Support{Unserved: !slices.Contains(test.served, route.Provider)}
			}
			if quote := g.quote(videos, test.body); fmt.Sprint(quote.at("cost")) != test.cost {
				t.Errorf("quoted %d %s, want %s", quote.status, quote.body, test.cost)
			}
			task := g.row(g.submit(videos, test.body))
			var routes []string
			for _, route := range task.Plan.Routes {
				routes = append(routes, route.Provider)
			}
			if held := fmt.Sprint(task.Hold.Number()); !slices.Equal(routes, test.routes) || held != test.cost {
				t.Errorf("%s is held for %s, want %s for %s", held, routes, test.cost, test.routes)
			}
		})
	}
	_, key := g.newKey(mediagate.Key{Unlimited: true, Group: "half"})
	g.vendors.says = func(_ string, route mediagate.Route, _ json.RawMessage) api.Support {
		return api.Support{Unserved: route.Provider == "vertex"}
	}
	if quote := g.send(request{method: http.MethodPost, path: "/v1/quote", key: key, body: strings.Replace(silent, "{", `{"endpoint":"`+videos+`",`, 1)}); fmt.Sprint(quote.at("cost")) != "0.6" {
		t.Errorf("at half the price: %s", quote.body)
	}
}

// TestRefusalNamesTheSentField checks that a refusal names the client's field if that was folded
// into the field that the adapter refuses.
func TestRefusalNamesTheSentField(t *testing.T) {
	t.Parallel()
	const said = `"messages":[{"role":"user","content":"a cat"}]`
	g := newGateway(t)
	g.vendors.says = func(string, mediagate.Route, json.RawMessage) api.Support {
		return api.Support{Err: mediagate.Invalid("prompt", "prompt is too long here")}
	}
	for name, test := range map[string]struct{ body, message string }{
		"messages alone":  {`{"model":"gamma2.6",` + said + `}`, "messages: prompt is too long here"},
		"a blank beside":  {`{"model":"gamma2.6","prompt":" ",` + said + `}`, "messages: prompt is too long here"},
		"a prompt beside": {`{"model":"gamma2.6","prompt":"a",` + said + `}`, "prompt is too long here"},
	} {
		if got := g.post(videos, test.body).at("error", "message"); got != test.message {
			t.Errorf("%s: message %q, want %q", name, got, test.message)
		}
	}
}

// TestSupportIsCheckedLast checks the contract's order of checks: the schema and the rights of
// the key come before the adapters.
func TestSupportIsCheckedLast(t *testing.T) {
	t.Parallel()
	g := newGateway(t)
	_, onlyTheta := g.newKey(mediagate.Key{Unlimited: true, Models: []string{"theta-*"}})
	g.post(videos, `{"model":"alpha-v3","prompt":"a","duration":99}`).wantError(t, 400, "invalid_request_error", "duration")
	g.send(request{method: http.MethodPost, path: videos, key: onlyTheta, body: videoBody}).wantError(t, 403, "permission_error", "alpha-v3")
	if len(g.vendors.asked) != 0 {
		t.Errorf("asked for %v", g.vendors.asked)
	}
}

// TestPlanHoldsSupport checks that adapters get the parameters of the later job and the model
// that the client named, and that the plan stores their answers.
func TestPlanHoldsSupport(t *testing.T) {
	t.Parallel()
	g := newGateway(t)
	var model, prompt string
	g.vendors.says = func(m string, _ mediagate.Route, params json.RawMessage) api.Support {
		var p struct{ Prompt string }
		if err := json.Unmarshal(params, &p); err != nil {
			t.Error(err)
		}
		model, prompt = m, p.Prompt
		return api.Support{Sync: true}
	}
	row := g.row(g.submit(videos, videoBody))
	if model != "alpha-v3" || prompt != "a cat" {
		t.Errorf("asked for %q, %q", model, prompt)
	}
	if len(row.Plan.Routes) == 0 || !row.Plan.Routes[0].Sync || len(row.Plan.Skipped) != 0 {
		t.Errorf("stored: %+v", row.Plan)
	}
}
