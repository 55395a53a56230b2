package api_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/api"
)

// things are what an account has that others might name.
type things struct {
	account, key, spare                  string // the key that calls, and another
	video, song, flow, art, modal, voice string // ids of tasks
	running                              string // a video that is being made
	voiceID                              string // of the vendor's, as the clip's
	reference, idempotency               string
	endpoint, spareEndpoint, event       string // an event of the former
}

// nothings are well-formed names of what nobody has.
func nothings() things {
	id := func(n int) string { return fmt.Sprintf("task_01JZZZZZZZZZZZZZZZZZZZZZZ%d", n) }
	return things{
		account: "acc_01JZZZZZZZZZZZZZZZZZZZZZZZ", key: "key_01JZZZZZZZZZZZZZZZZZZZZZZZ", spare: "key_01JZZZZZZZZZZZZZZZZZZZZZZX",
		video: id(1), song: id(2), flow: id(3), art: id(4), modal: id(5), voice: id(6), running: id(7),
		voiceID: "voice-of-nobody", reference: "reference-of-nobody", idempotency: "idempotency-of-nobody",
		endpoint: "ep_01JZZZZZZZZZZZZZZZZZZZZZZZ", spareEndpoint: "ep_01JZZZZZZZZZZZZZZZZZZZZZZX", event: "evt_01JZZZZZZZZZZZZZZZZZZZZZZZ",
	}
}

// tenant is the gateway as one account uses it.
type tenant struct {
	*gateway
	things
}

// newTenant makes an account with one of all things.
func newTenant(g *gateway, name string) tenant {
	g.t.Helper()
	of := *g
	t := tenant{gateway: &of}
	var err error
	t.gateway.account, err = g.store.CreateAccount(g.t.Context(), mediagate.Account{Name: name, Group: "default"})
	g.must(err)
	t.grant("100000")
	t.keyRow, t.gateway.key = t.newKey(mediagate.Key{Unlimited: true})
	spare, _ := t.newKey(mediagate.Key{Unlimited: true})
	t.things = things{
		account: t.gateway.account.ID, key: t.keyRow.ID, spare: spare.ID, reference: "reference-of-" + name, idempotency: "idempotency-of-" + name, voiceID: "voice-of-" + name,
	}
	a := t.send(request{
		method: http.MethodPost, path: videos, key: t.gateway.key, header: http.Header{"Idempotency-Key": {t.idempotency}},
		body: `{"model":"alpha-v3","prompt":"` + name + `","metadata":{"reference":"` + t.reference + `"}}`,
	})
	t.video = a.taskID(g.t)
	t.made(t.video, nil, mediagate.Result{Key: "v/0", MimeType: "video/mp4", Size: 9, Duration: 5}) // who asks for its end need not wait
	t.running = t.submit(videos, videoBody)
	t.things.song, t.flow = t.gateway.song(songBody), t.gateway.song(flowBody)
	t.voice = t.submit(music+"/createVoice", `{"audio_url":"https://media.example.com/voice.mp3"}`)
	t.made(t.voice, &mediagate.Made{Voices: []string{t.voiceID}})
	t.art = t.submit(art, artBody)
	t.finishArt(t.art, mediagate.Made{Buttons: artButtons})
	t.modal = t.submit(art, artBody)
	t.accept(t.modal)
	g.askMore(t.modal)
	for _, id := range []*string{&t.endpoint, &t.spareEndpoint} {
		a := t.post(endpoints, `{"url":"https://hooks.example.com/a","events":["task.failed"]}`)
		*id, _ = a.at("id").(string)
	}
	t.event, _ = t.post(endpoints+"/"+t.endpoint+"/test", "").at("id").(string)
	return t
}

// probe is a call that names a thing.
type probe func(of things) request

func get(path func(of things) string) probe {
	return func(of things) request { return request{method: http.MethodGet, path: path(of)} }
}

func post(path string, body func(of things) string) probe {
	return func(of things) request {
		return request{method: http.MethodPost, path: path, body: body(of), header: http.Header{"Idempotency-Key": {of.idempotency}}}
	}
}

// postBody is a probe that names nothing but the idempotency key.
func postBody(path, body string) probe { return post(path, func(things) string { return body }) }

// probes are the calls of each route that could name what another has. Who adds
// a route adds a line here, by its method and path in the table: calls with one
// thing of each kind that the route takes, whether in path, query, header or
// body. A new kind of thing is a field of things, with a value in nothings and
// in newTenant. A route that takes none still has a call: its answer must not
// tell what others have.
func probes() map[string][]probe {
	task := func(before, after string) probe {
		return get(func(of things) string { return before + of.video + after })
	}
	press := func(name, body string) []probe {
		return []probe{post(art+"/"+name, func(of things) string { return `{"task_id":"` + of.art + `",` + body + `}` })}
	}
	plain := func(paths ...string) (list []probe) {
		for _, path := range paths {
			list = append(list, get(func(things) string { return path }))
		}
		return list
	}
	song := func(path, body string) []probe {
		return []probe{post(music+path, func(of things) string { return `{"model":"music-a","task_id":"` + of.song + `"` + body + `}` })}
	}
	clip := func(path, body string) []probe {
		return []probe{post(music+path, func(of things) string { return `{"model":"music-b","clip_id":"` + clipOne + of.flow + `"` + body + `}` })}
	}
	named := func(method, before, after, body string, name func(of things) string) []probe {
		return []probe{func(of things) request { return request{method: method, path: before + name(of) + after, body: body} }}
	}
	key := func(of things) string { return of.key }
	open := func(of things) string { return of.modal }
	endpoint := func(of things) string { return of.endpoint }
	const one, keys = "GET ", "/v1/keys"
	table := map[string][]probe{
		"GET /healthz":      plain("/healthz"),
		"GET /readyz":       plain("/readyz"),
		"GET /openapi.json": plain("/openapi.json"),

		"POST " + videos: {postBody(videos, videoBody), postBody(videos, `{"model":"alpha-v3"}`)},
		"POST /v1/videos": {
			postBody("/v1/videos", `{"model":"alpha-v3","prompt":"a red boat","seconds":"5","size":"1280x720"}`),
		},
		"GET /v1/videos":                   {get(func(of things) string { return "/v1/videos?order=asc&after=" + of.video })},
		"GET /v1/videos/:video_id":         {task("/v1/videos/", "")},
		"GET /v1/videos/:video_id/content": {task("/v1/videos/", "/content")},
		"DELETE /v1/videos/:video_id":      named("DELETE", "/v1/videos/", "", "", func(of things) string { return of.running }),
		"POST " + images:                   {postBody(images, imageBody)},
		"POST /v1/images/edits":            {postBody("/v1/images/edits", imageBody)},
		"POST " + speechPath:               {postBody(speechPath, speechBody)},
		"POST " + music:                    {postBody(music, flowBody), post(music, func(of things) string { return `{"model":"music-a","prompt":"la","voice_id":"` + of.voiceID + `"}` })},
		"POST " + music + "/remaster":      song("/remaster", ""),
		"POST " + music + "/stemsAll":      song("/stemsAll", ""),
		"POST " + music + "/createVoice":   {postBody(music+"/createVoice", `{"audio_url":"https://media.example.com/voice.mp3"}`)},
		"POST " + music + "/replaceMusic":  song("/replaceMusic", `,"infill_lyrics":"la",`+fullWords),
		"POST " + music + "/sample":        song("/sample", `,"gpt_description":"la",`+fullWords),
		"POST " + music + "/stemsMusicB":   clip("/stemsMusicB", ""),
		"POST " + music + "/replaceMusicB": clip("/replaceMusicB", `,"instruction":"la",`+fullWords),

		"POST " + art:                     {postBody(art, artBody)},
		"POST " + art + "/imagine":        {postBody(art+"/imagine", artBody)},
		"POST " + art + "/upscale":        append(press("upscale", `"index":1`), press("upscale", `"custom_id":"MJ::JOB::upsample::1::u"`)...),
		"POST " + art + "/variation":      press("variation", `"index":2`),
		"POST " + art + "/high-variation": press("high-variation", `"index":1`),
		"POST " + art + "/low-variation":  press("low-variation", `"index":1`),
		"POST " + art + "/inpaint":        press("inpaint", `"index":1`),
		"POST " + art + "/reroll":         press("reroll", `"speed":"fast"`),
		"POST " + art + "/pan":            press("pan", `"direction":"left"`),
		"POST " + art + "/zoom":           press("zoom", `"zoom_ratio":2`),
		"POST " + art + "/describe":       {postBody(art+"/describe", `{"image_urls":["https://example.com/a.png"]}`)},
		"POST " + art + "/blend":          {postBody(art+"/blend", `{"image_urls":["https://example.com/a.png","https://example.com/b.png"]}`)},
		"POST " + art + "/modal":          {post(art+"/modal", func(of things) string { return `{"task_id":"` + of.modal + `","prompt":"a dog"}` })},
		"POST /v1/quote": {
			post("/v1/quote", func(of things) string {
				return `{"endpoint":"` + art + `/reroll","task_id":"` + of.art + `"}`
			}),
			post("/v1/quote", func(of things) string {
				return `{"endpoint":"` + music + `/remaster","model":"music-a","task_id":"` + of.song + `"}`
			}),
		},

		"POST /v1/uploads/images": {func(of things) request {
			return request{method: http.MethodPost, path: "/v1/uploads/images", body: "no form", header: http.Header{"Idempotency-Key": {of.idempotency}}}
		}},
		"POST /v1/uploads/videos": {postBody("/v1/uploads/videos", "no form")},
		"POST /v1/uploads/audios": {postBody("/v1/uploads/audios", "no form")},
		// Whoever has the link of an upload may read it; links cannot be guessed.
		"GET /files/:name": plain("/files/nothing"),

		"POST /mcp": {func(of things) request {
			return request{
				method: http.MethodPost, path: "/mcp", header: http.Header{"Accept": {"application/json, text/event-stream"}, "Content-Type": {"application/json"}},
				body: `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"task","arguments":{"task_id":"` + of.video + `"}}}`,
			}
		}},
		"GET /docs":               plain("/docs"),
		"GET /docs/:page":         plain("/docs/api", "/docs/reference", "/docs/nothing"),
		"GET /docs/models/:page":  plain("/docs/models/alpha-v3"),
		"GET /docs/runbook/:page": plain("/docs/runbook/ChannelMissing"),
		"GET /llms.txt":           plain("/llms.txt"),

		"GET /console":               plain("/console"),
		"GET /console/*":             plain("/console/tasks"),
		"GET /console/session":       plain("/console/session"),
		"GET /console/oidc":          plain("/console/oidc"),
		"GET /console/oidc/start":    plain("/console/oidc/start"),
		"GET /console/oidc/callback": plain("/console/oidc/callback"),
		"POST /console/session": {func(things) request {
			return request{method: http.MethodPost, path: "/console/session", body: `{"key":"x"}`}
		}},
		"DELETE /console/session": {func(things) request { return request{method: http.MethodDelete, path: "/console/session"} }},

		"GET /v1/models":               plain("/v1/models", "/v1/models?expand=parameters"),
		"GET /v1beta/models":           plain("/v1beta/models"),
		"GET /v1/models/:model":        plain("/v1/models/alpha-v3", "/v1/models/nothing"),
		"GET /v1beta/models/:model":    plain("/v1beta/models/alpha-v3"),
		"GET /v1/models/:model/schema": plain("/v1/models/alpha-v3/schema", "/v1/models/nothing/schema"),
		"GET /v1/model-schema":         plain("/v1/model-schema?model=alpha-v3"),

		"GET /v1/tasks": {
			get(func(of things) string { return "/v1/tasks?after=" + of.video }),
			get(func(of things) string { return "/v1/tasks?reference=" + of.reference }),
			get(func(of things) string {
				return "/v1/tasks?created_after=0&after=" + of.song + "&reference=" + of.reference
			}),
		},
		one + "/v1/tasks/:task_id": {
			task("/v1/tasks/", ""), task("/v1/tasks/", "?wait=60&language=zh"),
			get(func(of things) string { return "/v1/tasks/" + of.song }), get(func(of things) string { return "/v1/tasks/" + of.art }),
		},
		one + "/v1/tasks/:task_id/events":   {task("/v1/tasks/", "/events"), get(func(of things) string { return "/v1/tasks/" + of.song + "/events" })},
		one + "/v1/tasks/:task_id/files/:n": {task("/v1/tasks/", "/files/1"), get(func(of things) string { return "/v1/tasks/" + of.song + "/files/1" })},
		one + "/v1/music/tasks/:task_id":    {task("/v1/music/tasks/", ""), get(func(of things) string { return "/v1/music/tasks/" + of.song })},
		"POST /v1/tasks/:task_id/cancel": {
			func(of things) request {
				return request{method: http.MethodPost, path: "/v1/tasks/" + of.video + "/cancel"}
			},
			func(of things) request {
				return request{method: http.MethodPost, path: "/v1/tasks/" + of.song + "/cancel"}
			},
		},
		one + "/v1/tasks/:task_id/deliveries": {task("/v1/tasks/", "/deliveries"), task("/v1/tasks/", "/deliveries?limit=1")},
		"POST /v1/tasks/:task_id/redeliver": {func(of things) request {
			return request{method: http.MethodPost, path: "/v1/tasks/" + of.video + "/redeliver"}
		}},
		one + "/v1/images/generations/:task_id": {task("/v1/images/generations/", "")},
		one + "/v1/artgen/:task_id":             {task("/v1/artgen/", ""), get(func(of things) string { return "/v1/artgen/" + of.art })},

		"GET /v1/balance":      plain("/v1/balance"),
		"GET /balance":         plain("/balance"),
		"GET /v1/user/balance": plain("/v1/user/balance"),
		"GET /user/balance":    plain("/user/balance"),

		"GET /v1/webhooks/secret":  plain("/v1/webhooks/secret"),
		"POST /v1/webhooks/secret": {postBody("/v1/webhooks/secret?force=true", "")},
		"POST /v1/webhooks/test":   {postBody("/v1/webhooks/test", `{"url":"https://hooks.example.com"}`)},

		"GET " + endpoints:                           named("GET", endpoints+"?after=", "", "", endpoint),
		"POST " + endpoints:                          {postBody(endpoints, `{"url":"https://hooks.example.com"}`)},
		"GET " + endpoints + "/:endpoint_id":         named("GET", endpoints+"/", "", "", endpoint),
		"PATCH " + endpoints + "/:endpoint_id":       named("PATCH", endpoints+"/", "", `{"description":"x"}`, endpoint),
		"DELETE " + endpoints + "/:endpoint_id":      named("DELETE", endpoints+"/", "", "", func(of things) string { return of.spareEndpoint }),
		"POST " + endpoints + "/:endpoint_id/test":   named("POST", endpoints+"/", "/test", "", endpoint),
		"POST " + endpoints + "/:endpoint_id/secret": named("POST", endpoints+"/", "/secret", "", endpoint),
		"GET " + endpoints + "/:endpoint_id/deliveries": {
			get(func(of things) string { return endpoints + "/" + of.endpoint + "/deliveries" }),
			get(func(of things) string { return endpoints + "/" + of.endpoint + "/deliveries?after=" + of.event }),
		},
		"POST " + endpoints + "/:endpoint_id/deliveries/:event_id/redeliver": {func(of things) request {
			return request{method: "POST", path: endpoints + "/" + of.endpoint + "/deliveries/" + of.event + "/redeliver"}
		}},

		"DELETE /v1/tasks/:task_id": named("DELETE", "/v1/tasks/", "", "", open), // which its owner is told
		"GET /v1/usage":             plain("/v1/usage?group_by=key,model,day"),
		"GET /v1/account":           plain("/v1/account"),
		"PATCH /v1/account":         {func(things) request { return request{method: "PATCH", path: "/v1/account", body: `{"webhook":null}`} }},
		"GET /v1/account/statement": plain("/v1/account/statement"),

		"GET " + keys:                      named("GET", keys+"?after=", "", "", key),
		"POST " + keys:                     {postBody(keys, `{"name":"x","unlimited":true}`)},
		"GET " + keys + "/:key_id":         named("GET", keys+"/", "", "", key),
		"PATCH " + keys + "/:key_id":       named("PATCH", keys+"/", "", `{"name":"x"}`, key),
		"DELETE " + keys + "/:key_id":      named("DELETE", keys+"/", "", "", func(of things) string { return of.spare }),
		"POST " + keys + "/:key_id/rotate": named("POST", keys+"/", "/rotate", "{}", key),

		"POST /callbacks/:token": {func(things) request { return request{method: "POST", path: "/callbacks/nobody"} }},
	}
	for _, name := range api.RouteNames() {
		if method, path, _ := strings.Cut(name, " "); strings.HasPrefix(path, "/admin/") {
			table[name] = []probe{operator(method, path)}
		}
	}
	return table
}

// operator is the probe of a route of the admin API. With a client's key it says no, whatever
// is named in its path, its query and its body.
func operator(method, path string) probe {
	return func(of things) request {
		named := strings.NewReplacer(":account_id", of.account, ":key_id", of.key, ":task_id", of.modal).Replace(path)
		r := request{method: method, path: named + "?account=" + of.account + "&after=" + of.key}
		if method != http.MethodGet && method != http.MethodDelete {
			r.body = `{"filter":{"account":"` + of.account + `"},"action":"fail","reason":"x","dry_run":true}`
		}
		return r
	}
}

// random is what is new in every answer.
var random = regexp.MustCompile(`req_[0-9A-Z]{26}|whsec_[A-Za-z0-9+/=]+|"created(_at)?":[0-9]+|"(id|key|prefix|last_four)":"(key|mgk)?_?[0-9A-Za-z]+"`)

// told is an answer without what differs by itself: the request's id, and the
// names that the request had in it.
func told(a answer, of things) string {
	header := a.header.Clone()
	header.Del("X-Request-Id")
	header.Del("Content-Length") // of names of other lengths
	text := fmt.Sprint(a.status, " ", header, "\n", a.body)
	text = random.ReplaceAllString(text, "~")
	for i, name := range []string{of.account, of.key, of.spare, of.video, of.song, of.flow, of.art, of.modal, of.running, of.voice, of.voiceID, of.reference, of.idempotency, of.endpoint, of.spareEndpoint, of.event} {
		text = strings.ReplaceAll(text, name, fmt.Sprintf("<%d>", i))
	}
	if a.status == http.StatusOK && (strings.Contains(text, `"submitted"`) || strings.Contains(text, `"queued"`)) {
		text = regexp.MustCompile(`task_[0-9A-Z]{26}`).ReplaceAllString(text, "<new>")
	}
	return text
}

// ask makes a call of the account's.
func (t tenant) ask(p probe, of things) string {
	t.t.Helper()
	r := p(of)
	r.key = t.gateway.key
	return told(t.send(r), of)
}

// Every route has its probes, and each answers alike about what another has and
// about what nobody has, with as many statements to the database.
func TestTenancyOfEveryRoute(t *testing.T) {
	t.Parallel()
	table := probes()
	if diff := cmp.Diff(slices.Sorted(slices.Values(api.RouteNames())), slices.Sorted(maps.Keys(table))); diff != "" {
		t.Fatalf("routes, and those that have probes (-want +got):\n%s", diff)
	}
	statements := &wire{}
	g := newGateway(t, func(c *api.Config) { c.Store = answered{statements.through(t, c)} })
	a, b := newTenant(g, "a"), newTenant(g, "b")
	for _, route := range slices.Sorted(maps.Keys(table)) {
		names, tells := false, false
		for i, p := range table[route] {
			if strange, own := p(nothings()), p(b.named()); strange.path != own.path || strange.body != own.body {
				names = !strings.HasPrefix(strange.path, "/admin/") || names
				tells = tells || b.ask(p, nothings()) != b.ask(p, b.named())
			}
			round := 0
			// What runs beside a call can only add statements.
			about := func(of things, there bool, times int) (said string, statementsOf int64) {
				statementsOf = 1 << 30
				for range times {
					round++
					of.idempotency = fmt.Sprintf("%t-%d-%d-%s", there, i, round, strings.ReplaceAll(route, " ", ""))
					if there {
						_ = b.ask(p, of) // uses the key, for this very call
					}
					before := statements.n.Load()
					said = a.ask(p, of)
					statementsOf = min(statementsOf, statements.n.Load()-before)
				}
				return said, statementsOf
			}
			_, _ = about(nothings(), false, 1) // what follows finds its way into memory
			unknown, n := about(nothings(), false, 2)
			foreign, m := about(b.things, true, 2)
			if diff := cmp.Diff(unknown, foreign); diff != "" {
				t.Errorf("%s, probe %d: about nobody's and another's (-nobody +other):\n%s", route, i, diff)
			}
			for again := 0; n != m && again < 5; again++ {
				_, fewer := about(nothings(), false, 1)
				n = min(n, fewer)
				_, fewer = about(b.things, true, 1)
				m = min(m, fewer)
			}
			if n != m {
				t.Errorf("%s, probe %d: %d statements about nobody's, %d about another's", route, i, n, m)
			}
		}
		if names && !tells {
			t.Errorf("%s tells not even the owner about its things: its probes end before they are looked for", route)
		}
	}
	if statements.n.Load() == 0 {
		t.Error("no statement was counted")
	}
}

// named are the things of the account, with an idempotency key that nobody has.
func (t tenant) named() things {
	of := t.things
	of.idempotency = nothings().idempotency + "-but-" + of.account
	return of
}

// What an account sees does not change by what others do, nor by which of their
// names it uses.
func TestTenancyProperty(t *testing.T) {
	t.Parallel()
	g := newGateway(t)
	tenants := []tenant{newTenant(g, "one"), newTenant(g, "two"), newTenant(g, "three")}
	table := probes()
	routes := slices.Sorted(maps.Keys(table))
	round := 0
	rapid.Check(t, func(t *rapid.T) {
		round++
		order := rapid.Permutation(tenants).Draw(t, "pair")
		a, b := order[0], order[1]
		route := rapid.SampledFrom(routes).Draw(t, "route")
		p := rapid.SampledFrom(table[route]).Draw(t, "probe")
		before := a.own()
		of := b.things
		of.idempotency = fmt.Sprintf("%s-%d", b.idempotency, round)
		if rapid.Bool().Draw(t, "the other was there before") {
			_ = b.ask(p, of)
		}
		none := nothings()
		none.idempotency = fmt.Sprintf("%s-%d", none.idempotency, round)
		if after := a.own(); before != after {
			t.Errorf("%s of another changed what an account sees:\n%s", route, cmp.Diff(before, after))
		}
		if diff := cmp.Diff(a.ask(p, none), a.ask(p, of)); diff != "" {
			t.Errorf("%s about nobody's and another's (-nobody +other):\n%s", route, diff)
		}
	})
}

// own is what the account sees of itself.
func (t tenant) own() string {
	t.t.Helper()
	var all []string
	for _, path := range []string{
		"/v1/tasks?limit=3", "/v1/tasks?reference=" + t.reference, "/v1/balance", "/v1/user/balance", "/v1/webhooks/secret",
	} {
		a := t.get(path)
		if a.status != http.StatusOK || !json.Valid([]byte(a.body)) {
			t.t.Errorf("%s: %d %s", path, a.status, a.body)
		}
		all = append(all, path, strings.ReplaceAll(a.body, a.header.Get("X-Request-Id"), "~"))
	}
	return strings.Join(all, "\n")
}
