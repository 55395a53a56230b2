package api_test

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/mediagate/mediagate"
)

const (
	art     = "/v1/artgen/generations"
	artBody = `{"prompt":"a cat"}`
	mask    = `"https://example.com/mask.png"`
)

var artButtons = []mediagate.Button{
	{CustomID: "MJ::JOB::upsample::1::u", Label: "U1"},
	{CustomID: "MJ::JOB::upsample::2::u", Label: "U2"},
	{CustomID: "MJ::JOB::variation::2::u", Label: "V2"},
	{CustomID: "MJ::JOB::reroll::0::u::SOLO", Label: "🔄"},
	{CustomID: "MJ::Outpaint::50::1::u", Label: "Zoom Out 2x"},
	{CustomID: "MJ::Outpaint::75::1::u", Label: "Zoom Out 1.5x"},
	{CustomID: "MJ::JOB::pan_left::1::u", Label: "⬅️"},
	{CustomID: "MJ::Inpaint::1::u::SOLO", Label: "Vary (Region)"},
	{CustomID: "MJ::JOB::low_variation::1::u::SOLO", Label: "Vary (Subtle)"},
	{CustomID: "MJ::JOB::high_variation::1::u::SOLO", Label: "Vary (Strong)"},
}

// finishArt completes an art task with a grid and its quarters.
func (g *gateway) finishArt(id string, made mediagate.Made) {
	g.t.Helper()
	results := []mediagate.Result{
		{Role: mediagate.RoleGrid, Key: "results/grid.png", MimeType: "image/png", Size: 9, SHA256: strings.Repeat("ab", 32), Width: 2048, Height: 2048},
	}
	for i := range 4 {
		results = append(results, mediagate.Result{
			Index: i, Key: "results/" + string(rune('0'+i)) + ".png", MimeType: "image/png", Size: 9, SHA256: strings.Repeat("cd", 32), Width: 1024, Height: 1024,
		})
	}
	g.make(id, mediagate.Outcome{Made: &made}, results...)
}

// TestArtTask checks the states of an art task in its own fields. docs/results.md has a completed
// one.
func TestArtTask(t *testing.T) {
	t.Parallel()
	g := newGateway(t)
	id := g.submit(art, artBody)
	alias := g.submit(art+"/imagine", `{"prompt":"a cat","model":7}`) // the path says the model
	for _, id := range []string{id, alias} {
		a := g.get("/v1/artgen/" + id)
		for field, want := range map[string]any{
			"id": id, "status": "SUBMITTED", "action": "IMAGINE", "progress": "0%", "grid_image_url": "", "prompt": "a cat",
			"fail_reason": "", "model": "art", "type": "art", "cost": 0., "credits_cost": 0.,
		} {
			if got := a.at(field); got != want {
				t.Errorf("%s = %v, want %v", field, got, want)
			}
		}
	}
	g.finishArt(id, mediagate.Made{Buttons: artButtons})
	a := g.get("/v1/artgen/" + id)
	grid, _ := a.at("grid_image_url").(string)
	if a.at("status") != "SUCCESS" || !strings.Contains(grid, "results/grid.png") {
		t.Errorf("the completed task: %s", a.body)
	}
	unified := g.get("/v1/tasks/" + id)
	if a := g.get("/v1/images/generations/" + id); a.at("url") != unified.at("data", "result", "images", 0, "url", 0) {
		t.Errorf("the older poll, whose file is the first result: %s", a.body)
	}
	if listed := g.get("/v1/tasks?type=art&status=completed"); listed.at("data", 0, "buttons", 0, "label") != "U1" {
		t.Errorf("in the list: %s", listed.body)
	}
	cancelled := g.submit(art, artBody)
	g.cancel(cancelled)
	if a := g.get("/v1/artgen/" + cancelled); a.at("status") != "FAILURE" || a.at("fail_reason") != "cancelled" {
		t.Errorf("cancelled: %s", a.body)
	}
	failed := g.submit(art, artBody)
	g.fail(failed, mediagate.Failure{Code: mediagate.CodeContentPolicy, Message: "no"})
	if a := g.get("/v1/artgen/" + failed); a.at("status") != "FAILURE" || a.at("fail_reason") != "no" {
		t.Errorf("failed: %s", a.body)
	}
	described := g.submit(art+"/describe", `{"image_urls":["https://example.com/a.png"]}`)
	g.make(described, mediagate.Outcome{Made: &mediagate.Made{Descriptions: []string{"a cat", "a grey cat"}}})
	if a := g.get("/v1/tasks/" + described); a.at("data", "result", "descriptions", 1) != "a grey cat" || a.at("data", "result", "images") != nil {
		t.Errorf("described: %s", a.body)
	}
	for _, bad := range []string{"nonsense", noTask, g.submit(videos, videoBody)} {
		g.get("/v1/artgen/"+bad).wantError(t, http.StatusNotFound, "not_found_error", "task not found")
	}
}

func TestArtFollowUps(t *testing.T) {
	t.Parallel()
	g := newGateway(t)
	parent := g.submit(art, artBody)
	g.finishArt(parent, mediagate.Made{Buttons: artButtons})
	named := func(rest string) string { return `{"task_id":"` + parent + `"` + rest + `}` }
	for name, test := range map[string]struct{ path, body, button, action string }{
		"upscale":              {"/upscale", named(`,"index":2`), "MJ::JOB::upsample::2::u", "UPSCALE"},
		"variation":            {"/variation", named(`,"index":2`), "MJ::JOB::variation::2::u", "VARIATION"},
		"high variation":       {"/high-variation", named(""), "MJ::JOB::high_variation::1::u::SOLO", "HIGH_VARIATION"},
		"low variation":        {"/low-variation", named(`,"index":3`), "MJ::JOB::low_variation::1::u::SOLO", "LOW_VARIATION"},
		"inpaint":              {"/inpaint", named(""), "MJ::Inpaint::1::u::SOLO", "INPAINT"},
		"reroll":               {"/reroll", named(`,"speed":"turbo"`), "MJ::JOB::reroll::0::u::SOLO", "REROLL"},
		"pan":                  {"/pan", named(`,"direction":"left"`), "MJ::JOB::pan_left::1::u", "PAN"},
		"zoom":                 {"/zoom", named(`,"zoom_ratio":1.5`), "MJ::Outpaint::75::1::u", "ZOOM"},
		"zoom 2":               {"/zoom", named(`,"zoom_ratio":2.0`), "MJ::Outpaint::50::1::u", "ZOOM"},
		"a button by its name": {"/upscale", named(`,"index":2,"custom_id":"MJ::JOB::upsample::1::u"`), "MJ::JOB::upsample::1::u", "UPSCALE"},
		"one of another path":  {"/upscale", named(`,"index":2,"custom_id":"MJ::JOB::reroll::0::u::SOLO"`), "MJ::JOB::reroll::0::u::SOLO", "REROLL"},
		"one of this path too": {"/reroll", named(`,"index":"any","custom_id":"MJ::JOB::upsample::2::u"`), "MJ::JOB::upsample::2::u", "UPSCALE"},
	} {
		t.Run(name, func(t *testing.T) {
			task := g.row(g.submit(art+test.path, test.body))
			got := task.Plan.Source
			want := &mediagate.Source{TaskID: parent, Provider: "kling", Channel: "one", Fingerprint: "f", Ref: mediagate.JobRef{JobID: "job"}, Button: test.button}
			but := cmpopts.IgnoreFields(mediagate.Source{}, "Fields") // they are in the tests of the catalog
			if diff := cmp.Diff(want, got, but); diff != "" || task.Plan.Action != test.action || task.Plan.Modal != 30*time.Minute {
				t.Errorf("action %s, modal %v, source (-want +got):\n%s", task.Plan.Action, task.Plan.Modal, diff)
			}
			var params map[string]any
			g.must(json.Unmarshal(task.Params, &params))
			if len(params) != 1 || params["speed"] == nil {
				t.Errorf("the canonical request is %s", task.Params)
			}
			if a := g.get("/v1/artgen/" + task.ID); a.at("source_task_id") != parent {
				t.Errorf("source_task_id: %s", a.body)
			}
		})
	}

	// A button costs what it does, whatever the path.
	for id, want := range map[string]float64{"MJ::JOB::reroll::0::u::SOLO": 0.108, "MJ::JOB::upsample::1::u": 0.01} {
		for _, path := range []string{"/upscale", "/pan", "/reroll"} {
			q := g.post("/v1/quote", named(`,"endpoint":"`+art+path+`","speed":"turbo","custom_id":"`+id+`"`))
			if q.at("cost") != want {
				t.Errorf("the quote of %s at %s: %s", id, path, q.body)
			}
		}
	}

	open := g.submit(art, artBody)
	video := g.submit(videos, videoBody)
	g.complete(video)
	bare := g.submit(art+"/describe", `{"image_urls":["https://example.com/a.png"]}`)
	g.make(bare, mediagate.Outcome{Made: &mediagate.Made{Descriptions: []string{"a cat"}}})
	before := g.starts()
	for name, test := range map[string]struct{ path, body, want string }{
		"no task":       {"/upscale", `{"index":1}`, "task_id is required"},
		"malformed":     {"/upscale", `{"task_id":"nonsense","index":1}`, "task_id is unknown"},
		"unknown":       {"/upscale", `{"task_id":"` + noTask + `","index":1}`, "task_id is unknown"},
		"a video":       {"/upscale", `{"task_id":"` + video + `","index":1}`, "task_id must be of art, the task's type is video and its model alpha-v3"},
		"not completed": {"/upscale", `{"task_id":"` + open + `","index":1}`, "task_id must be of a completed task"},
		"no match":      {"/upscale", named(`,"index":4`), "it offers MJ::JOB::upsample::1::u (U1), MJ::JOB::upsample::2::u (U2)"},
		"no pan there":  {"/pan", named(`,"direction":"up"`), "direction: the task offers no such action"},
		"not on offer":  {"/upscale", named(`,"custom_id":"MJ::JOB::upsample::1::other"`), "custom_id is not on offer by the task, its type is art and its action IMAGINE: it offers MJ::JOB"},
		"no buttons":    {"/reroll", `{"task_id":"` + bare + `"}`, "its type is art and its action DESCRIBE: it offers none"},
		"no grid":       {"/upscale", `{"task_id":"` + bare + `","index":1}`, "index: the task offers no such action, its type is art and its action DESCRIBE: it offers none"},
	} {
		t.Run(name, func(t *testing.T) {
			g.post(art+test.path, test.body).wantError(t, http.StatusBadRequest, "invalid_request_error", test.want)
		})
	}
	if g.starts() != before {
		t.Error("a refused request started a task")
	}
}

func TestModalCall(t *testing.T) {
	t.Parallel()
	g := newGateway(t)
	parent := g.submit(art, artBody)
	g.finishArt(parent, mediagate.Made{Buttons: artButtons})
	modal := func(path string) string {
		id := g.submit(art+path, `{"task_id":"`+parent+`"}`)
		g.accept(id)
		g.askMore(id)
		return id
	}
	id := modal("/inpaint")
	named := func(id, rest string) string { return `{"task_id":"` + id + `"` + rest + `}` }
	if a, u := g.get("/v1/artgen/"+id), g.get("/v1/tasks/"+id); a.at("status") != "MODAL" || u.at("data", "status") != "processing" {
		t.Errorf("in MODAL: %s, %s", a.body, u.body)
	}
	pressed := g.submit(art+"/pan", `{"task_id":"`+parent+`","custom_id":"MJ::Inpaint::1::u::SOLO"}`)
	g.accept(pressed)
	g.askMore(pressed)
	open := g.submit(art, artBody)
	for name, test := range map[string]struct {
		body   string
		status int
		want   string
	}{
		"no task":          {`{"prompt":"a hat"}`, http.StatusBadRequest, "task_id is required"},
		"no mask":          {named(id, `,"prompt":"a hat"`), http.StatusBadRequest, "mask_url is required"},
		"no mask, by path": {named(pressed, `,"prompt":"a hat"`), http.StatusBadRequest, "mask_url is required"},
		"nothing":          {named(open, ``), http.StatusBadRequest, "prompt or mask_url is required"},
		"private mask":     {named(id, `,"mask_url":"http://10.0.0.1/mask.png"`), http.StatusBadRequest, "mask_url"},
		"not in MODAL":     {named(open, `,"prompt":"a hat"`), http.StatusConflict, "does not wait for modal parameters"},
		"one that ended":   {named(parent, `,"prompt":"a hat"`), http.StatusConflict, "does not wait for modal parameters"},
	} {
		t.Run(name, func(t *testing.T) {
			g.post(art+"/modal", test.body).wantError(t, test.status, "invalid_request_error", test.want)
		})
	}
	balance := g.get("/v1/balance").body
	body := named(id, `,"prompt":"a hat","mask_url":`+mask)
	call := request{method: http.MethodPost, path: art + "/modal", key: g.key, body: body, header: http.Header{"Idempotency-Key": {"m"}}}
	first, again := g.send(call), g.send(call)
	if first.taskID(t) != id || again.taskID(t) != id || first.header.Get("Idempotency-Replayed") != "" || again.header.Get("Idempotency-Replayed") != "true" {
		t.Errorf("the answers: %s, %s", first.body, again.body)
	}
	if !slices.Equal(g.starter.woken, []string{id}) {
		t.Errorf("signalled: %v", g.starter.woken)
	}
	if got := g.get("/v1/balance").body; got != balance {
		t.Errorf("the balance was %s and is %s", balance, got)
	}
	if a, u := g.get("/v1/artgen/"+id), g.get("/v1/tasks/"+id); a.at("status") != "SUBMITTED" || a.at("prompt") != "a hat" || u.at("data", "status") != "pending" {
		t.Errorf("after the call: %s, %s", a.body, u.body)
	}
	task := g.row(id)
	var said map[string]any
	g.must(json.Unmarshal(task.Modal.Input, &said))
	if diff := cmp.Diff(map[string]any{"prompt": "a hat", "mask_url": "https://example.com/mask.png", "speed": "fast"}, said); diff != "" {
		t.Errorf("what is kept (-want +got):\n%s", diff)
	}
	g.post(art+"/modal", body).wantError(t, http.StatusConflict, "invalid_request_error", "does not wait")

	// What was paid for is what is made, whatever the call says of it.
	paid := g.submit(art+"/inpaint", `{"task_id":"`+parent+`","speed":"relax"}`)
	g.accept(paid)
	g.askMore(paid)
	g.post(art+"/modal", named(paid, `,"prompt":"<&>","speed":"turbo","mask_url":`+mask)).taskID(t)
	task = g.row(paid)
	said = nil
	g.must(json.Unmarshal(task.Modal.Input, &said))
	if said["speed"] != "relax" || said["prompt"] != "<&>" {
		t.Errorf("relax, then turbo: %s", task.Modal.Input)
	}

	zoomed := modal("/reroll") // which asks for more where the vendor is set so
	if got := g.post(art+"/modal", named(zoomed, `,"prompt":"a hat"`)).taskID(t); got != zoomed {
		t.Errorf("a prompt alone: %s", got)
	}
	if q := g.post("/v1/quote", `{"endpoint":"`+art+`/modal","task_id":"`+modal("/inpaint")+`","mask_url":`+mask+`}`); q.at("cost") != 0. {
		t.Errorf("the quote of a modal call: %s", q.body)
	}
}
