package mcp_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mediagate/mediagate/api/mcp"
	"github.com/mediagate/mediagate/client"
)

// gateway answers calls in the place of one over HTTP.
type gateway func(*http.Request) (*http.Response, error)

func (g gateway) RoundTrip(r *http.Request) (*http.Response, error) { return g(r) }

func jsonAnswer(body string) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(body))}, nil
}

// connect is a client of a server of the tools, both within the process.
func connect(t *testing.T, g gateway, options *sdk.ClientOptions) *sdk.ClientSession {
	t.Helper()
	ours, theirs := sdk.NewInMemoryTransports()
	server := mcp.NewServer("1", &client.Client{URL: "http://gateway", Key: "k", HTTP: &http.Client{Transport: g}}, context.WithCancel)
	serving, err := server.Connect(t.Context(), ours, nil)
	if err != nil {
		t.Fatal(err)
	}
	session, err := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, options).Connect(t.Context(), theirs, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = session.Close()
		_ = serving.Wait()
	})
	return session
}

func textOf(r *sdk.CallToolResult) (text string) {
	for _, content := range r.Content {
		if t, ok := content.(*sdk.TextContent); ok {
			text += t.Text + "\n"
		}
	}
	return text
}

const taskID = "task_01KAJ5XW4M9Q7T2C8N6BVRE3HD"

const pending = `{"code": 200, "data": {"id": "task_1", "status": "pending", "progress": 0,
	"sources": [{"task_id": "task_0", "file": 2, "field": "image_urls[0]", "status": "processing"}]}}`

// A run whose task takes minutes answers within 45 s, with the task's id and the words to
// ask for the rest. Meanwhile each report of progress is more than the one before.
func TestRunAnswersInTime(t *testing.T) {
	t.Parallel()
	for name, stuck := range map[string]bool{"a task that goes on": false, "a gateway that is silent": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				g := gateway(func(r *http.Request) (*http.Response, error) {
					switch {
					case r.Method != http.MethodPost:
						return jsonAnswer(pending)
					case stuck:
						<-r.Context().Done()
						return nil, r.Context().Err()
					}
					if r.Header.Get("Mediagate-Adopt") != "true" || r.Header.Get("Prefer") != "respond-async, wait=40" {
						t.Errorf("the submit's header: %v", r.Header)
					}
					time.Sleep(40 * time.Second)
					return jsonAnswer(`{"code": 200, "data": [{"status": "submitted", "task_id": "task_1"}]}`)
				})
				var mu sync.Mutex
				var reports []float64
				session := connect(t, g, &sdk.ClientOptions{ProgressNotificationHandler: func(_ context.Context, n *sdk.ProgressNotificationClientRequest) {
					mu.Lock()
					defer mu.Unlock()
					reports = append(reports, n.Params.Progress)
				}})
				params := &sdk.CallToolParams{Name: "run", Arguments: map[string]any{
					"model": "alpha-v3", "endpoint": "/v1/videos/generations", "arguments": map[string]any{"prompt": "a"},
				}}
				params.SetProgressToken("p")
				began := time.Now()
				r, err := session.CallTool(t.Context(), params)
				if err != nil {
					t.Fatal(err)
				}
				if took := time.Since(began); took > 45*time.Second {
					t.Errorf("it answered after %s", took)
				}
				want := `{"task_id": "task_1", "wait": 45}` + "\nimage_urls[0] is file 2 of task_0, which is processing."
				if stuck {
					want = "the same run within ten minutes returns it"
				}
				if text := textOf(r); r.IsError != stuck || !strings.Contains(text, want) || strings.Contains(text, "context") {
					t.Errorf("it answered %v %s", r.IsError, text)
				}
				synctest.Wait()
				mu.Lock()
				defer mu.Unlock()
				last := 0.0
				for _, progress := range reports {
					if progress <= last {
						t.Errorf("progress: %v", reports)
					}
					last = progress
				}
				if len(reports) < 8 {
					t.Errorf("%d reports of progress", len(reports))
				}
			})
		})
	}
}

// Every tool answers within the time that hosts wait for it, also where the gateway is silent.
func TestSilentGateway(t *testing.T) {
	t.Parallel()
	const request = `"model": "a", "endpoint": "/v1/videos/generations", "arguments": {}`
	for name, test := range map[string]struct{ tool, arguments string }{
		"models":               {"models", `{}`},
		"schema":               {"schema", `{"model": "a"}`},
		"quote":                {"quote", `{` + request + `}`},
		"run":                  {"run", `{` + request + `}`},
		"task":                 {"task", `{"task_id": "task_1"}`},
		"task that is awaited": {"task", `{"task_id": "task_1", "wait": 45}`},
		"tasks":                {"tasks", `{}`},
		"upload":               {"upload", `{"filename": "a.png", "data": "aGVsbG8="}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				session := connect(t, func(r *http.Request) (*http.Response, error) {
					<-r.Context().Done()
					return nil, r.Context().Err()
				}, nil)
				began := time.Now()
				r, err := session.CallTool(t.Context(), &sdk.CallToolParams{Name: test.tool, Arguments: json.RawMessage(test.arguments)})
				if err != nil {
					t.Fatal(err)
				}
				if took := time.Since(began); !r.IsError || took > 55*time.Second {
					t.Errorf("it answered %v %s after %s", r.IsError, textOf(r), took)
				}
			})
		})
	}
}

// Arguments are taken as models write them, and refused by their names.
func TestArguments(t *testing.T) {
	t.Parallel()
	const request = `"model": "a", "endpoint": "/v1/videos/generations"`
	for name, test := range map[string]struct {
		tool, arguments string
		body            string // that reaches the gateway
		says            string // where none does
	}{
		"an object":                {tool: "quote", arguments: `{` + request + `, "arguments": {"seed": 4294967295}}`, body: `{"seed":4294967295}`},
		"a text of an object":      {tool: "quote", arguments: `{` + request + `, "arguments": "{\"seed\": 7}"}`, body: `{"seed":7}`},
		"nulls":                    {tool: "quote", arguments: `{` + request + `, "arguments": {"seed": 7, "size": null}}`, body: `{"seed":7}`},
		"all as a text":            {tool: "quote", arguments: `"{\"model\": \"a\", \"endpoint\": \"/v1/videos/generations\", \"arguments\": \"{}\"}"`, body: `{}`},
		"files of tasks":           {tool: "quote", arguments: `{` + request + `, "arguments": {"image_urls": ["` + taskID + `", {"url": "` + taskID + `#2"}]}}`, body: `{"image_urls":["/v1/tasks/` + taskID + `/files/1",{"url":"/v1/tasks/` + taskID + `/files/2"}]}`},
		"ids of tasks":             {tool: "quote", arguments: `{` + request + `, "arguments": {"task_id": "` + taskID + `"}}`, body: `{"task_id":"` + taskID + `"}`},
		"no file of a task":        {tool: "run", arguments: `{` + request + `, "arguments": {"first_frame_image": "` + taskID + `#0"}}`, says: `first_frame_image: "` + taskID + `#0" is no file of a task, which is TASK or TASK#N with N from 1`},
		"no object":                {tool: "quote", arguments: `[1]`, says: "the arguments must be an object"},
		"a list":                   {tool: "quote", arguments: `{` + request + `, "arguments": [1]}`, says: "arguments must be an object"},
		"a text of no object":      {tool: "quote", arguments: `{` + request + `, "arguments": "a boat"}`, says: "arguments must be an object"},
		"nothing":                  {tool: "quote", arguments: `{` + request + `}`, says: "arguments is required"},
		"null where one has to be": {tool: "quote", arguments: `{"model": null, "arguments": {}}`, says: "model is required"},
		"a number for a text":      {tool: "quote", arguments: `{"model": 5, "arguments": {}}`, says: "model must be a string"},
		"an empty text":            {tool: "task", arguments: `{"task_id": ""}`, says: "task_id must not be empty"},
		"an unknown argument":      {tool: "task", arguments: `{"task_id": "t", "id": "t"}`, says: `"id" is not an argument of this tool; its arguments are: task_id, wait`},
		"an escaped path":          {tool: "run", arguments: `{"model": "a", "endpoint": "/v1/videos/generations/%2e%2e/%2e%2e/keys", "arguments": {}}`, says: "endpoint must be the path of a submit of video, images, music or art (400 of endpoint)"},
		"a path with a query":      {tool: "run", arguments: `{"model": "a", "endpoint": "/v1/videos/generations?key=k", "arguments": {}}`, says: "endpoint must be the path of a submit of video, images, music or art (400 of endpoint)"},
		"a wait too long":          {tool: "task", arguments: `{"task_id": "t", "wait": 46}`, says: "wait must be a whole number from 0 to 45"},
		"a wait that is a text":    {tool: "task", arguments: `{"task_id": "t", "wait": "5"}`, says: "wait must be a whole number from 0 to 45"},
		"no base64":                {tool: "upload", arguments: `{"filename": "a.png", "data": "~"}`, says: "data is not valid base64"},
		"another data URI":         {tool: "upload", arguments: `{"filename": "a.png", "data": "data:image/svg+xml,<svg/>"}`, says: "data must be base64, or a data URI in base64"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got string
			session := connect(t, func(r *http.Request) (*http.Response, error) {
				body, err := io.ReadAll(r.Body)
				if err != nil {
					return nil, err
				}
				got = string(body)
				return jsonAnswer(`{}`)
			}, nil)
			r, err := session.CallTool(t.Context(), &sdk.CallToolParams{Name: test.tool, Arguments: json.RawMessage(test.arguments)})
			if err != nil {
				t.Fatal(err)
			}
			if test.says != "" && (!r.IsError || strings.TrimSpace(textOf(r)) != test.says || got != "") {
				t.Errorf("%v %s; the gateway got %s", r.IsError, textOf(r), got)
			}
			if test.says == "" && (r.IsError || !strings.Contains(got, strings.Trim(test.body, "{}"))) {
				t.Errorf("%v %s; the gateway got %s", r.IsError, textOf(r), got)
			}
		})
	}
}
