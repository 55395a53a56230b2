package api_test

import (
	"context"
	"encoding/base64"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mediagate/mediagate"
)

// bearing sends a key with each request.
type bearing struct{ key string }

func (b bearing) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+b.key)
	return http.DefaultTransport.RoundTrip(r)
}

// connect is a session of the SDK's own client.
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

// said is the text of a result.
func said(r *sdk.CallToolResult) (text string) {
	for _, content := range r.Content {
		if t, ok := content.(*sdk.TextContent); ok {
			text += t.Text
		}
	}
	return text
}

// The SDK's own client lists and calls every tool, over HTTP, with the caller's key.
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
	if got := strings.Join(names, " "); got != "models quote run schema task upload" {
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
	if r := call("upload", map[string]any{"filename": "cat.png", "data": base64.StdEncoding.EncodeToString(pngOf(t, 16, 16))}); r.IsError || !strings.Contains(said(r), "https://gw.example.com/files/") {
		t.Errorf("upload: %s", said(r))
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
	if r := call("task", map[string]any{"task_id": id}); r.IsError || !strings.Contains(said(r), `"completed"`) {
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
		"no submit":       {"run", map[string]any{"model": "x", "endpoint": "/v1/keys", "arguments": map[string]any{}}, "endpoint must be"},
		"out of a submit": {"run", map[string]any{"model": "x", "endpoint": "/v1/videos/generations/../../keys", "arguments": map[string]any{}}, "endpoint must be"},
		"an unknown task": {"task", map[string]any{"task_id": "task_x"}, "invalid task id"},
		"another path":    {"task", map[string]any{"task_id": "../keys"}, "(4"},
		"no picture":      {"upload", map[string]any{"filename": "a", "data": "aGVsbG8="}, "file"},
		"no base64":       {"upload", map[string]any{"filename": "a", "data": "~"}, "base64"},
	} {
		if r := call(test.tool, test.arguments); !r.IsError || !strings.Contains(said(r), test.says) {
			t.Errorf("%s: %v %s", name, r.IsError, said(r))
		}
	}
	if n := g.starts(); n != 1 {
		t.Errorf("%d tasks were made", n)
	}
}

// Nothing is heard without a key that may read; what is no message is refused.
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

// Tools never change: whoever listens for that is answered, and holds no connection.
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

// A client that leaves ends the wait, and not the task.
func TestMCPLeave(t *testing.T) {
	t.Parallel()
	g := newGateway(t)
	session := g.connect(g.serve(), g.key, nil)
	ctx, leave := context.WithCancel(t.Context())
	go func() {
		g.awaitStart(0)
		leave()
	}()
	if _, err := session.CallTool(ctx, &sdk.CallToolParams{Name: "run", Arguments: map[string]any{"model": "alpha-v3", "arguments": map[string]any{"prompt": "a"}}}); err == nil {
		t.Error("the call was answered")
	}
	if a := g.get("/v1/tasks/" + g.started()[0].ID); a.at("data", "status") != "pending" || a.at("data", "cancel_requested") != nil {
		t.Errorf("the task: %s", a.body)
	}
}

// A picture asked for in OpenAI's words is a task as any other to our own clients: they
// are told its id at once, and what became of it by the task.
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
