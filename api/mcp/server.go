package mcp

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mediagate/mediagate/catalog"
	"github.com/mediagate/mediagate/client"
)

const (
	// answerWithin bounds how long a tool takes. Many hosts time out after 60 s, and would never learn
	// of a task that is paid for.
	answerWithin = 45 * time.Second
	// runWait is the part of answerWithin for which run waits for its task. The rest is for the
	// submit.
	runWait = 40 * time.Second
	// readTime is how long reading a task may take on top of the wait.
	readTime = 5 * time.Second
	// progressEvery is how often a waiting tool reports progress.
	progressEvery = 5 * time.Second
	// defaultLimit is how many tasks are listed without a limit.
	defaultLimit = 10
)

// Begin is called when a tool begins to answer. The tool goes on until the returned context ends.
type Begin func(context.Context) (context.Context, context.CancelFunc)

// NewServer makes a server whose tools call the gateway with the client. A server on standard input
// and output passes context.WithCancel as begin.
func NewServer(version string, gateway *client.Client, begin Begin) *sdk.Server {
	s := sdk.NewServer(&sdk.Implementation{Name: "mediagate", Title: "mediagate", Version: version}, &sdk.ServerOptions{
		Instructions: "Makes video, images and music. Find a model with models, read the fields of a request with schema, " +
			"and make something with run. quote returns the price and makes nothing. A task that has begun goes on " +
			"whatever happens here: run answers with its id after 45 s, and task waits for the rest. Do not run the " +
			"same request again because of a slow answer: look for its task with tasks. The next request can name a " +
			"file of a task by the task's id, even before the file exists.",
		// The tools of a server never change. So a client that subscribes to changes gets its answer at
		// once, and keeps no connection open.
		Capabilities: &sdk.ServerCapabilities{Tools: &sdk.ToolCapabilities{}},
	})
	t := tools{gateway}
	reads := &sdk.ToolAnnotations{ReadOnlyHint: true}
	model := argument{name: "model", kind: kindText, required: true, description: "a model's id"}
	request := []argument{
		model,
		{
			name: "arguments", kind: kindObject, required: true,
			description: "the fields of the request without model, as in the model's schema. A field that takes the URL " +
				"of a file also takes a file of a task by the task's id, as task_… or task_…#2 for its second file, even " +
				"while that task still runs",
		},
		{
			name: "endpoint", kind: kindText,
			description: "the path of the submit; required for music, such as /v1/music/generations; " +
				"otherwise that of the schema",
		},
	}
	add(s, begin, sdk.Tool{
		Name: "models", Annotations: reads,
		Description: "Lists the models that can be used, with what they can do.",
	}, []argument{
		{name: "category", kind: kindText, description: "only these: video, image or audio"},
	}, t.models)
	add(s, begin, sdk.Tool{
		Name: "schema", Annotations: reads,
		Description: "Returns the JSON Schema of a request to a video or image model, with its path and its price.",
	}, []argument{model}, t.schema)
	add(s, begin, sdk.Tool{
		Name: "quote", Annotations: reads,
		Description: "Returns the price of a request. Nothing is made or charged.",
	}, request, t.quote)
	add(s, begin, sdk.Tool{
		Name: "run",
		Description: "Makes something, which costs money: submits a request and waits up to 45 s for the end of its task. " +
			"Answers with links to the files, or with the task's id if it takes longer: wait for the rest with task.",
	}, append(slices.Clip(request), argument{
		name: "idempotency_key", kind: kindText,
		description: "the same key for the same request never makes or charges twice, within 24 hours",
	}), t.run)
	add(s, begin, sdk.Tool{
		Name: "task", Annotations: reads,
		Description: "Returns the state of a task, with links to its files once it is completed.",
	}, []argument{
		{name: "task_id", kind: kindText, required: true, description: "the id of a task"},
		{
			name: "wait", kind: kindInteger, most: int(answerWithin / time.Second),
			description: "how many seconds to wait for the task's end",
		},
	}, t.task)
	add(s, begin, sdk.Tool{
		Name: "tasks", Annotations: reads,
		Description: "Lists the newest tasks, newest first.",
	}, []argument{
		{name: "limit", kind: kindInteger, most: 100, description: "how many at most; 10 by default"},
		{name: "status", kind: kindText, description: "only these: pending, processing, completed, failed or cancelled"},
	}, t.tasks)
	add(s, begin, sdk.Tool{
		Name:        "upload",
		Description: "Stores a picture for 72 hours and returns its address, which requests may name as an image.",
	}, []argument{
		{name: "filename", kind: kindText, required: true, description: "the name of the picture"},
		{
			name: "data", kind: kindText, required: true,
			description: "the picture in base64, or as a data URI: JPEG, PNG, WebP or GIF of at most 20 MiB",
		},
	}, t.upload)
	return s
}

type tools struct{ gateway *client.Client }

func (t tools) models(ctx context.Context, _ *sdk.CallToolRequest, in input) (*sdk.CallToolResult, error) {
	q := url.Values{"expand": {"category"}}
	if category := in.text("category"); category != "" {
		q.Set("category", category)
	}
	return t.list(ctx, "/v1/models", q)
}

func (t tools) tasks(ctx context.Context, _ *sdk.CallToolRequest, in input) (*sdk.CallToolResult, error) {
	q := url.Values{"limit": {strconv.FormatInt(cmp.Or(in.number("limit"), defaultLimit), 10)}}
	if status := in.text("status"); status != "" {
		q.Set("status", status)
	}
	return t.list(ctx, "/v1/tasks", q)
}

func (t tools) list(ctx context.Context, path string, q url.Values) (*sdk.CallToolResult, error) {
	ctx, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	return textResult(t.gateway.Call(ctx, http.MethodGet, path+"?"+q.Encode(), nil, nil))
}

func (t tools) schema(ctx context.Context, _ *sdk.CallToolRequest, in input) (*sdk.CallToolResult, error) {
	ctx, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	return textResult(t.gateway.Schema(ctx, in.text("model")))
}

func requestOf(in input) (client.Request, error) {
	fields, err := in.fields("arguments")
	return client.Request{
		Model: in.text("model"), Fields: fields, Endpoint: in.text("endpoint"), IdempotencyKey: in.text("idempotency_key"),
	}, err
}

func (t tools) quote(ctx context.Context, _ *sdk.CallToolRequest, in input) (*sdk.CallToolResult, error) {
	request, err := requestOf(in)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	q, err := t.gateway.Quote(ctx, request)
	return textResult(q.Raw, err)
}

func (t tools) run(ctx context.Context, call *sdk.CallToolRequest, in input) (*sdk.CallToolResult, error) {
	request, err := requestOf(in)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	defer reportProgress(ctx, call, "waiting for the task")()
	state, err := t.gateway.SubmitAndWait(ctx, request, runWait)
	switch {
	case err == nil:
		return taskResult(call, state), nil
	case state.ID != "":
		return nil, fmt.Errorf("task %s was made; ask for it with task: %w", state.ID, plainError(err))
	case isRefusal(err):
		return nil, plainError(err)
	default:
		return nil, fmt.Errorf("%w; the task may have been made: the same run within ten minutes returns it", plainError(err))
	}
}

func (t tools) task(ctx context.Context, call *sdk.CallToolRequest, in input) (*sdk.CallToolResult, error) {
	wait := time.Duration(in.number("wait")) * time.Second
	ctx, cancel := context.WithTimeout(ctx, answerWithin+readTime)
	defer cancel()
	if wait > 0 {
		defer reportProgress(ctx, call, "waiting for task "+in.text("task_id"))()
	}
	state, err := t.gateway.TaskAfter(ctx, in.text("task_id"), wait)
	if err != nil {
		return nil, plainError(err)
	}
	return taskResult(call, state), nil
}

func (t tools) upload(ctx context.Context, _ *sdk.CallToolRequest, in input) (*sdk.CallToolResult, error) {
	data := in.text("data")
	head, _, isURI := strings.Cut(data, ",")
	switch {
	case !isURI:
		data = "," + data
	case !strings.HasSuffix(strings.ToLower(strings.TrimSpace(head)), ";base64"):
		return nil, errors.New("data must be base64, or a data URI in base64")
	}
	picture, err := readAll(catalog.ImageData(data))
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	address, err := t.gateway.Upload(ctx, client.Images, in.text("filename"), picture)
	return textResult([]byte(address), err)
}

// reportProgress reports every few seconds how much time has passed, if the client asked for
// progress, until stop is called. It does not report the task's own progress, which may stand
// still: each report must be higher than the last, and hosts take reports as a sign of life.
func reportProgress(ctx context.Context, call *sdk.CallToolRequest, message string) (stop func()) {
	token := call.Params.GetProgressToken()
	if token == nil {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	began := time.Now()
	go func() {
		defer close(ended)
		ticker := time.NewTicker(progressEvery)
		defer ticker.Stop()
		for {
			// Errors are ignored: a client that reads plain JSON gets no progress.
			_ = call.Session.NotifyProgress(ctx, &sdk.ProgressNotificationParams{
				ProgressToken: token, Progress: max(time.Since(began), time.Nanosecond).Seconds(), Total: answerWithin.Seconds(),
				Message: message,
			})
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
			}
		}
	}()
	return func() {
		cancel()
		<-ended
	}
}

// taskResult returns the task as it is, with links to its files, or with instructions to wait for
// it.
func taskResult(call *sdk.CallToolRequest, t client.Task) *sdk.CallToolResult {
	r := &sdk.CallToolResult{
		Content: []sdk.Content{&sdk.TextContent{Text: string(t.Raw)}}, IsError: t.Ended() && t.Status != "completed",
	}
	if !t.Ended() {
		var text strings.Builder
		fmt.Fprintf(
			&text, `The task has not ended and goes on. Wait for it with the tool task: {"task_id": %q, "wait": %d}`,
			t.ID, int(answerWithin/time.Second),
		)
		for _, source := range t.Sources {
			fmt.Fprintf(&text, "\n%s is file %d of %s, which is %s.", source.Field, source.File, source.TaskID, source.Status)
		}
		r.Content = append(r.Content, &sdk.TextContent{Text: text.String()})
	}
	for _, f := range t.Files {
		if takesLinks(call) {
			r.Content = append(
				r.Content, &sdk.ResourceLink{URI: f.URL, Name: fmt.Sprintf("%s-%d", t.ID, f.N), MIMEType: f.MediaType},
			)
		} else {
			r.Content = append(r.Content, &sdk.TextContent{Text: fmt.Sprintf("File %d, %s: %s", f.N, f.MediaType, f.URL)})
		}
	}
	return r
}

// takesLinks reports whether the client's protocol version has links in results. Clients of older
// versions would refuse the whole result.
func takesLinks(call *sdk.CallToolRequest) bool {
	const since = "2025-06-18"
	if version, ok := call.Params.Meta["io.modelcontextprotocol/protocolVersion"].(string); ok {
		return version >= since
	}
	began := call.Session.InitializeParams()
	return began != nil && began.ProtocolVersion >= since
}

// textResult returns an answer of the gateway unchanged.
func textResult(text json.RawMessage, err error) (*sdk.CallToolResult, error) {
	if err != nil {
		return nil, plainError(err)
	}
	return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: string(text)}}}, nil
}

// isRefusal reports whether the gateway refused the request, which then made nothing.
func isRefusal(err error) bool {
	refused, ok := errors.AsType[*client.Error](err)
	return ok && !refused.Temporary()
}

// plainError returns the gateway's own error, or one without the terms of Go packages.
func plainError(err error) error {
	if refused, ok := errors.AsType[*client.Error](err); ok {
		return refused
	}
	switch {
	case errors.Is(err, context.Canceled):
		return errors.New("the call was cancelled")
	case errors.Is(err, context.DeadlineExceeded):
		return errors.New("the gateway did not answer in time")
	default:
		return errors.New("the gateway cannot be reached, or its answer cannot be read")
	}
}
