package api_test

import (
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/api"
)

// bearing sends a key with each request.
type bearing struct{ key string }

func (b bearing) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+b.key)
	return http.DefaultTransport.RoundTrip(r)
}

// connect opens a session with the SDK's own client.
func (g *gateway) connect(address, key string, options *sdk.ClientOptions) *sdk.ClientSession {
	g.t.Helper()
	client := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, options)
	session, err := client.Connect(g.t.Context(), &sdk.StreamableClientTransport{
		Endpoint: "http://" + address + "/mcp", HTTPClient: &http.Client{Transport: bearing{key}}, DisableStandaloneSSE: true,
	}, nil)
	g.must(err)
	g.t.Cleanup(func() { _ = session.Close() })
	return session
}

// said returns the text of a result.
func said(r *sdk.CallToolResult) (text string) {
	for _, content := range r.Content {
		if t, ok := content.(*sdk.TextContent); ok {
			text += t.Text
		}
	}
	return text
}

// TestMCP checks that the SDK's client lists and calls every tool over HTTP with the caller's
// key.
func TestMCP(t *testing.T) {
	t.Parallel()
	g := newGateway(t)
	address := g.serve()
	var heard atomic.Int64
	session := g.connect(address, g.key, &sdk.ClientOptions{
		ProgressNotificationHandler: func(context.Context, *sdk.ProgressNotificationClientRequest) { heard.Add(1) },
	})
	call := func(name string, arguments map[string]any) *sdk.CallToolResult {
		t.Helper()
		params := &sdk.CallToolParams{Name: name, Arguments: arguments}
		params.SetProgressToken(name)
		r, err := session.CallTool(t.Context(), params)
		g.must(err)
		return r
	}
	listed, err := session.ListTools(t.Context(), nil)
	g.must(err)
	var names []string
	for _, tool := range listed.Tools {
		names = append(names, tool.Name)
	}
	slices.Sort(names)
	if got := strings.Join(names, " "); got != "models quote run schema task tasks upload" {
		t.Errorf("the tools are %s", got)
	}

	if r := call("models", map[string]any{"category": "video"}); r.IsError || !strings.Contains(said(r), `"alpha-v3"`) || strings.Contains(said(r), "theta") {
		t.Errorf("models: %s", said(r))
	}
	if r := call("schema", map[string]any{"model": "alpha-v3"}); r.IsError || !strings.Contains(said(r), `"input_schema"`) {
		t.Errorf("schema: %s", said(r))
	}
	boat := map[string]any{"model": "alpha-v3", "arguments": map[string]any{"prompt": "a red boat", "duration": 5}}
	if r := call("quote", boat); r.IsError || !strings.Contains(said(r), `"cost":`) {
		t.Errorf("quote: %s", said(r))
	}
	if n := g.starts(); n != 0 {
		t.Fatalf("%d tasks were made by tools that make none", n)
	}
	picture := pngOf(t, 16, 16)
	for name, data := range map[string]string{
		"standard": base64.StdEncoding.EncodeToString(picture), "for URLs": base64.URLEncoding.EncodeToString(picture),
		"without padding": base64.RawStdEncoding.EncodeToString(picture), "in lines": strings.Join(strings.SplitAfter(base64.StdEncoding.EncodeToString(picture), "A"), "\n"),
		"a data URI": "data:image/png;base64," + base64.StdEncoding.EncodeToString(picture),
	} {
		if r := call("upload", map[string]any{"filename": "cat.png", "data": data}); r.IsError || !strings.Contains(said(r), "https://gw.example.com/files/") {
			t.Errorf("upload, %s: %s", name, said(r))
		}
	}

	ended := make(chan string, 1)
	go func() {
		id := g.awaitStart(0).ID
		g.complete(id, mediagate.Result{Role: mediagate.RoleMain, Key: "results/" + id + "/1/0", MimeType: "video/mp4", Size: 9, SHA256: strings.Repeat("ab", 32)})
		ended <- id
	}()
	r, id := call("run", boat), <-ended
	link, _ := r.Content[len(r.Content)-1].(*sdk.ResourceLink)
	if r.IsError || !strings.Contains(said(r), id) || link == nil || !strings.HasPrefix(link.URI, "https://s3.example.com/") || link.MIMEType != "video/mp4" {
		t.Errorf("run: %s, %+v", said(r), r.Content)
	}
	if heard.Load() == 0 {
		t.Error("nothing was heard of its progress")
	}
	if r := call("tasks", map[string]any{"limit": 1, "status": nil}); r.IsError || !strings.Contains(said(r), id) {
		t.Errorf("tasks: %s", said(r))
	}
	if r := call("task", map[string]any{"task_id": id, "wait": 45}); r.IsError || !strings.Contains(said(r), `"completed"`) {
		t.Errorf("task: %s", said(r))
	}
	if r := call("run", map[string]any{"model": "music-a", "endpoint": "/v1/music/generations/createVoice", "arguments": map[string]any{}}); !r.IsError || !strings.Contains(said(r), "audio_url") {
		t.Errorf("music: %s", said(r))
	}

	for name, test := range map[string]struct {
		tool      string
		arguments map[string]any
		says      string
	}{
		"a bad field":     {"run", map[string]any{"model": "alpha-v3", "arguments": map[string]any{"prompt": "a", "duration": 99}}, "out_of_range of duration"},
		"unknown model":   {"run", map[string]any{"model": "nothing", "arguments": map[string]any{}}, "not found"},
		"out of a submit": {"run", map[string]any{"model": "x", "endpoint": "/v1/videos/generations/../../keys", "arguments": map[string]any{}}, "endpoint must be"},
		"an unknown task": {"task", map[string]any{"task_id": "task_x"}, "invalid task id"},
		"another path":    {"task", map[string]any{"task_id": "../keys"}, "(4"},
		"no picture":      {"upload", map[string]any{"filename": "a", "data": "aGVsbG8="}, "file"},
	} {
		if r := call(test.tool, test.arguments); !r.IsError || !strings.Contains(said(r), test.says) {
			t.Errorf("%s: %v %s", name, r.IsError, said(r))
		}
	}
	if n := g.starts(); n != 1 {
		t.Errorf("%d tasks were made", n)
	}
}

// TestMCPAccess checks that every call needs a key that may read, and that invalid messages are
// refused.
func TestMCPAccess(t *testing.T) {
	t.Parallel()
	g := newGateway(t)
	_, writer := g.newKey(mediagate.Key{Unlimited: true, Scopes: []mediagate.Scope{mediagate.ScopeGenerate}})
	const list = `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{}}`
	header := http.Header{"Accept": {"application/json, text/event-stream"}, "Content-Type": {"application/json"}}
	for name, test := range map[string]struct {
		request request
		status  int
	}{
		"no key":       {request{method: http.MethodPost, path: "/mcp", body: list, header: header}, 401},
		"a bad key":    {request{method: http.MethodPost, path: "/mcp", key: "nothing", body: list, header: header}, 401},
		"one scope":    {request{method: http.MethodPost, path: "/mcp", key: writer, body: list, header: header}, 403},
		"no message":   {request{method: http.MethodPost, path: "/mcp", key: g.key, body: "{", header: header}, 400},
		"GET":          {request{path: "/mcp", key: g.key}, 405},
		"a batch":      {request{method: http.MethodPost, path: "/mcp", key: g.key, body: "[" + list + "," + list + "]", header: header}, 400},
		"many values":  {request{method: http.MethodPost, path: "/mcp", key: g.key, body: strings.Replace(list, "{}", `{"x":[`+strings.Repeat("{},", 20_000)+"{}]}", 1), header: header}, 400},
		"a good one":   {request{method: http.MethodPost, path: "/mcp", key: g.key, body: list, header: header}, 200},
		"another Host": {request{method: http.MethodPost, path: "http://api.example.com/mcp", key: g.key, body: list, header: header, remote: "127.0.0.1:1"}, 200},
	} {
		if a := g.send(test.request); a.status != test.status || test.status == 401 && a.at("error", "reason") != "authentication_failed" {
			t.Errorf("%s: %d %s", name, a.status, a.body)
		}
	}
}

// TestMCPListen checks that a client that listens for changes of the tools is answered at once
// and holds no connection: the tools never change.
func TestMCPListen(t *testing.T) {
	t.Parallel()
	g := newGateway(t)
	const version = "2026-07-28"
	answered := make(chan answer, 1)
	go func() {
		answered <- g.send(request{
			method: http.MethodPost, path: "/mcp", key: g.key,
			body: `{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true},
				"_meta":{"io.modelcontextprotocol/protocolVersion":"` + version + `","io.modelcontextprotocol/clientInfo":{"name":"test","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}}}`,
			header: http.Header{
				"Accept": {"application/json, text/event-stream"}, "Content-Type": {"application/json"},
				"Mcp-Protocol-Version": {version}, "Mcp-Method": {"subscriptions/listen"},
			},
		})
	}()
	select {
	case a := <-answered:
		if a.status != http.StatusOK || !strings.Contains(a.body, `"result"`) {
			t.Errorf("%d %s", a.status, a.body)
		}
	case <-time.After(patience):
		t.Error("it holds the connection")
	}
}

const (
	runCall    = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"run","arguments":{"model":"alpha-v3","arguments":{"prompt":"a"}}%s}}`
	newestMeta = `,"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"test","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}`
)

// rawRun is a run as a host of that version of the protocol sends it.
func rawRun(key, version string) (r request, fields []string) {
	meta := ""
	fields = []string{"Content-Type: application/json", "Accept: application/json, text/event-stream", "Mcp-Protocol-Version: " + version}
	if version == "2026-07-28" {
		meta = newestMeta
		fields = append(fields, "Mcp-Method: tools/call", "Mcp-Name: run")
	}
	return request{method: http.MethodPost, path: "/mcp", key: key, body: fmt.Sprintf(runCall, meta)}, fields
}

// TestMCPLeave checks that a client that leaves ends the wait but not the task, in every version
// of the protocol. The same run gets the same task; a run after the answer makes its own.
func TestMCPLeave(t *testing.T) {
	t.Parallel()
	for _, version := range []string{"2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"} {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			g, awaitLoss := losesAnswers(t)
			address := g.serve()
			r, fields := rawRun(g.key, version)
			leaves := dial(t, address)
			leaves.send(r.text("1.1", fields...))
			id := g.awaitStart(0).ID
			eventually(t, "it waits", func() bool { return api.Waiting(g.server) == 1 })
			leaves.abort()
			awaitLoss()
			eventually(t, "nobody waits", func() bool { return api.Waiting(g.server) == 0 })
			if a := g.get("/v1/tasks/" + id); a.at("data", "status") != "pending" || a.at("data", "cancel_requested") != nil {
				t.Errorf("the task: %s", a.body)
			}
			g.complete(id, mediagate.Result{Role: mediagate.RoleMain, Key: "results/" + id + "/1/0", MimeType: "video/mp4", Size: 9, SHA256: strings.Repeat("ab", 32)})
			again := dial(t, address)
			again.send(r.text("1.1", fields...))
			if a := again.answer(); !strings.Contains(a.body, id) || strings.Contains(a.body, "resource_link") != (version >= "2025-06-18") || !strings.Contains(a.body, "https://s3.example.com/") {
				t.Errorf("the same run: %d %s", a.status, a.body)
			}
			dial(t, address).send(r.text("1.1", fields...))
			if other := g.awaitStart(1).ID; other == id {
				t.Error("a run after the answer made no task")
			}
		})
	}
}

// TestMCPStop checks that a stream sends its header at once, and that a stopping process answers
// waiting clients at once.
func TestMCPStop(t *testing.T) {
	t.Parallel()
	g := newGateway(t)
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	g.must(err)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	served := make(chan error, 1)
	go func() { served <- g.server.Serve(ctx, listener) }()
	r, fields := rawRun(g.key, "2025-11-25")
	host := dial(t, listener.Addr().String())
	host.send(r.text("1.1", fields...))
	response, err := http.ReadResponse(host.answers, nil)
	g.must(err)
	defer func() { _ = response.Body.Close() }()
	if h := response.Header; h.Get("Content-Type") != "text/event-stream" || h.Get("X-Accel-Buffering") != "no" {
		t.Errorf("the header: %v", h)
	}
	id := g.awaitStart(0).ID
	eventually(t, "it waits", func() bool { return api.Waiting(g.server) == 1 })
	stop()
	body, err := io.ReadAll(response.Body)
	g.must(err)
	if !strings.Contains(string(body), id) || !strings.Contains(string(body), "has not ended and goes on") {
		t.Errorf("the answer: %s", body)
	}
	select {
	case err := <-served:
		g.must(err)
	case <-time.After(patience):
		t.Error("the process does not stop")
	}
}

// TestMCPForms checks that a host is answered in a form that it accepts, and that refusals have
// our own form.
func TestMCPForms(t *testing.T) {
	t.Parallel()
	g := newGateway(t, func(c *api.Config) {
		c.PublicURL, c.CORSOrigins = "https://gw.example.com", []string{"https://host.example.com"}
	})
	const list = `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{}}`
	const events, plain = "text/event-stream", "application/json"
	for name, test := range map[string]struct {
		field, value string
		status       int
		form         string
	}{
		"both":                {"Accept", "application/json, text/event-stream", 200, events},
		"none":                {"Accept", "", 200, events},
		"anything":            {"Accept", "*/*", 200, events},
		"JSON":                {"Accept", "application/json; charset=utf-8", 200, plain},
		"application":         {"Accept", "application/*", 200, plain},
		"events":              {"Accept", "text/event-stream", 200, events},
		"no events":           {"Accept", "*/*, text/event-stream;q=0", 200, plain},
		"neither":             {"Accept", "text/html", 406, plain},
		"neither, by weight":  {"Accept", "application/json;q=0", 406, plain},
		"a form":              {"Content-Type", "application/x-www-form-urlencoded", 415, plain},
		"no type":             {"Content-Type", "", 415, plain},
		"JSON by its charset": {"Content-Type", "application/json; charset=utf-8", 200, events},
		"an unknown version":  {"Mcp-Protocol-Version", "2024-01-01", 400, plain},
		"a foreign origin":    {"Origin", "https://evil.example.com", 403, plain},
		"no origin":           {"Origin", "null", 403, plain},
		"our own origin":      {"Origin", "https://gw.example.com", 200, events},
		"an admitted origin":  {"Origin", "https://host.example.com", 200, events},
	} {
		header := http.Header{"Content-Type": {plain}}
		if header.Set(test.field, test.value); test.value == "" {
			header.Del(test.field)
		}
		a := g.send(request{method: http.MethodPost, path: "/mcp", key: g.key, body: list, header: header})
		if a.status != test.status || a.header.Get("Content-Type") != test.form || test.status != 200 && a.at("error", "request_id") == nil {
			t.Errorf("%s: %d %v %s", name, a.status, a.header, a.body)
		}
	}
	for name, body := range map[string]string{
		"no message": `{"a":1}`, "a name that is none": `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":5}}`,
		"an id that is none": `{"jsonrpc":"2.0","id":{},"method":"tools/list"}`, "another version of JSON-RPC": `{"jsonrpc":"1.0","id":1,"method":"tools/list"}`,
	} {
		a := g.send(request{method: http.MethodPost, path: "/mcp", key: g.key, body: body, header: http.Header{"Content-Type": {plain}}})
		message, _ := a.at("error", "message").(string)
		if a.status != http.StatusBadRequest || message == "" || strings.Contains(message, "marshal") || strings.Contains(message, "Go ") || strings.Contains(message, "json:") {
			t.Errorf("%s: %d %s", name, a.status, a.body)
		}
	}
}

// TestMCPOriginWithPort checks that an origin without the scheme's default port is allowed,
// whatever public_url says. Browsers omit the port.
func TestMCPOriginWithPort(t *testing.T) {
	t.Parallel()
	const list = `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{}}`
	for public, origins := range map[string]map[string]int{
		"https://gw.example.com:443":  {"https://gw.example.com": 200, "http://gw.example.com": 403, "https://gw.example.com:8443": 403},
		"http://GW.example.com:80":    {"http://gw.example.com": 200, "https://gw.example.com": 403},
		"https://gw.example.com:8443": {"https://gw.example.com:8443": 200, "https://gw.example.com": 403},
	} {
		g := newGateway(t, func(c *api.Config) { c.PublicURL = public })
		for origin, status := range origins {
			header := http.Header{"Content-Type": {"application/json"}, "Origin": {origin}}
			if a := g.send(request{method: http.MethodPost, path: "/mcp", key: g.key, body: list, header: header}); a.status != status {
				t.Errorf("%s at %s: %d %s, want %d", origin, public, a.status, a.body, status)
			}
		}
	}
}

// TestMCPPicture checks that a picture requested with OpenAI's fields is a task like any other
// for our own clients: they get its id at once and its result from the task.
func TestMCPPicture(t *testing.T) {
	t.Parallel()
	g := newGateway(t)
	session := g.connect(g.serve(), g.key, nil)
	go func() {
		id := g.awaitStart(0).ID
		g.complete(id, mediagate.Result{Role: mediagate.RoleMain, Key: "results/" + id + "/1/0", MimeType: "image/png", Size: 9, SHA256: strings.Repeat("ab", 32)})
	}()
	r, err := session.CallTool(t.Context(), &sdk.CallToolParams{Name: "run", Arguments: map[string]any{
		"model": "theta-image-turbo", "arguments": map[string]any{"prompt": "a", "size": "2048x1360", "response_format": "b64_json"},
	}})
	g.must(err)
	if r.IsError || !strings.Contains(said(r), g.started()[0].ID) || !strings.Contains(said(r), `"completed"`) {
		t.Errorf("run: %v %s", r.IsError, said(r))
	}
	if n := g.starts(); n != 1 {
		t.Errorf("%d tasks were made", n)
	}
}
