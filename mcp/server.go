package mcp

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mediagate/mediagate/client"
)

// longest is how long a run waits for its task. It goes on, and the answer names it.
const longest = 15 * time.Minute

// NewServer makes a server whose tools call the gateway by the client.
func NewServer(version string, gateway *client.Client) *sdk.Server {
	s := sdk.NewServer(&sdk.Implementation{Name: "mediagate", Title: "mediagate", Version: version}, &sdk.ServerOptions{
		Instructions: "Makes video, images and music. Look for a model with models, read what it takes with schema, and make something with run. " +
			"quote tells the price and makes nothing. A task that was begun goes on whatever happens here: ask for it with task.",
		// The tools of a server never change. Whoever asks to hear of it is answered at once, and
		// holds no connection.
		Capabilities: &sdk.ServerCapabilities{Tools: &sdk.ToolCapabilities{}},
	})
	t := tools{gateway}
	reads := &sdk.ToolAnnotations{ReadOnlyHint: true}
	sdk.AddTool(s, &sdk.Tool{Name: "models", Description: "Lists the models that can be used, with what they can do.", Annotations: reads}, t.models)
	sdk.AddTool(s, &sdk.Tool{Name: "schema", Description: "Tells what a request to a video or image model may hold, as JSON Schema, where it goes and what it costs.", Annotations: reads}, t.schema)
	sdk.AddTool(s, &sdk.Tool{Name: "quote", Description: "Tells the price of a request. Nothing is made or charged.", Annotations: reads}, t.quote)
	sdk.AddTool(s, &sdk.Tool{Name: "run", Description: "Makes something, which costs money: submits a request and waits for the end of its task. Answers with links to the files."}, t.run)
	sdk.AddTool(s, &sdk.Tool{Name: "task", Description: "Tells how a task stands, and links to its files once it is completed.", Annotations: reads}, t.task)
	sdk.AddTool(s, &sdk.Tool{Name: "upload", Description: "Stores a picture for 72 hours and tells its address, which requests may name as an image."}, t.upload)
	return s
}

type tools struct{ gateway *client.Client }

type modelsIn struct {
	Category string `json:"category,omitempty" jsonschema:"only these: video, image or audio"`
}

type modelIn struct {
	Model string `json:"model" jsonschema:"a model's id"`
}

type requestIn struct {
	Model     string         `json:"model" jsonschema:"a model's id"`
	Arguments map[string]any `json:"arguments" jsonschema:"the fields of the request without model, as the model's schema has them"`
	Endpoint  string         `json:"endpoint,omitempty" jsonschema:"the path of the submit; needed for music, such as /v1/music/generations; otherwise the schema's"`
}

type runIn struct {
	Model          string         `json:"model" jsonschema:"a model's id"`
	Arguments      map[string]any `json:"arguments" jsonschema:"the fields of the request without model, as the model's schema has them"`
	Endpoint       string         `json:"endpoint,omitempty" jsonschema:"the path of the submit; needed for music, such as /v1/music/generations; otherwise the schema's"`
	IdempotencyKey string         `json:"idempotency_key,omitempty" jsonschema:"the same key for the same request never makes or charges twice, within 24 hours"`
}

type taskIn struct {
	TaskID string `json:"task_id" jsonschema:"the id of a task"`
}

type uploadIn struct {
	Filename string `json:"filename" jsonschema:"the name of the picture"`
	Data     string `json:"data" jsonschema:"the picture in base64: JPEG, PNG, WebP or GIF of at most 20 MiB"`
}

func (t tools) models(ctx context.Context, _ *sdk.CallToolRequest, in modelsIn) (*sdk.CallToolResult, any, error) {
	q := url.Values{"expand": {"category"}}
	if in.Category != "" {
		q.Set("category", in.Category)
	}
	return told(t.gateway.Call(ctx, http.MethodGet, "/v1/models?"+q.Encode(), nil, nil))
}

func (t tools) schema(ctx context.Context, _ *sdk.CallToolRequest, in modelIn) (*sdk.CallToolResult, any, error) {
	return told(t.gateway.Schema(ctx, in.Model))
}

func (t tools) quote(ctx context.Context, _ *sdk.CallToolRequest, in requestIn) (*sdk.CallToolResult, any, error) {
	q, err := t.gateway.Quote(ctx, client.Request{Model: in.Model, Fields: in.Arguments, Endpoint: in.Endpoint})
	return told(q.Raw, err)
}

func (t tools) run(ctx context.Context, call *sdk.CallToolRequest, in runIn) (*sdk.CallToolResult, any, error) {
	id, err := t.gateway.Submit(ctx, client.Request{Model: in.Model, Fields: in.Arguments, Endpoint: in.Endpoint, IdempotencyKey: in.IdempotencyKey})
	if err != nil {
		return nil, nil, err
	}
	return t.follow(ctx, call, id)
}

// follow waits for the end of a task, and tells the client of its progress meanwhile.
func (t tools) follow(ctx context.Context, call *sdk.CallToolRequest, id string) (*sdk.CallToolResult, any, error) {
	waited, cancel := context.WithTimeout(ctx, longest)
	defer cancel()
	token := call.Params.GetProgressToken()
	state, err := t.gateway.Wait(waited, id, func(now client.Task) {
		if token == nil {
			return
		}
		err := call.Session.NotifyProgress(ctx, &sdk.ProgressNotificationParams{
			ProgressToken: token, Progress: float64(now.Progress), Total: 100, Message: "task " + id + " is " + now.Status,
		})
		if err != nil { // nobody listens any more
			cancel()
		}
	})
	if err != nil {
		return nil, nil, fmt.Errorf("task %s goes on, ask for it with task: %w", id, err)
	}
	return result(state)
}

func (t tools) task(ctx context.Context, _ *sdk.CallToolRequest, in taskIn) (*sdk.CallToolResult, any, error) {
	state, err := t.gateway.Task(ctx, in.TaskID)
	if err != nil {
		return nil, nil, err
	}
	return result(state)
}

// result is the task as it is, and links to its files.
func result(t client.Task) (*sdk.CallToolResult, any, error) {
	r := &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: string(t.Raw)}}, IsError: t.Ended() && t.Status != "completed"}
	for _, f := range t.Files {
		r.Content = append(r.Content, &sdk.ResourceLink{URI: f.URL, Name: fmt.Sprintf("%s-%d", t.ID, f.N), MIMEType: f.MediaType})
	}
	return r, nil, nil
}

func (t tools) upload(ctx context.Context, _ *sdk.CallToolRequest, in uploadIn) (*sdk.CallToolResult, any, error) {
	picture, err := base64.StdEncoding.DecodeString(in.Data)
	if err != nil {
		return nil, nil, errors.New("data must be base64")
	}
	address, err := t.gateway.Upload(ctx, client.Images, in.Filename, bytes.NewReader(picture))
	return told([]byte(address), err)
}

// told is an answer of the gateway as it came.
func told(text json.RawMessage, err error) (*sdk.CallToolResult, any, error) {
	if err != nil {
		return nil, nil, err
	}
	return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: string(text)}}}, nil, nil
}
