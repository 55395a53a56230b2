package client_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/mediagate/mediagate/client"
)

const origin = "https://gateway.example.com"

// script is one of exchanges/*.json. client/README.md describes its format. The clients in
// TypeScript and Python run the same scripts.
type script struct {
	Name    string
	Call    string
	Answers []json.RawMessage
	Each    []json.RawMessage

	Model, Endpoint, Key, ID string
	Method, Path, Category   string
	Fields                   map[string]any
	Strict                   bool
	Size, N                  int
	Secret, Body             string
	Header                   map[string]string
	Repeat                   int
	Forever                  bool
	Leave                    float64 // seconds
	Asks                     []wantedCall
	Calls, Keys              *int
	Lasts                    *float64 // seconds
	Progress                 *[]int
	Returns                  any
	Fails                    map[string]any
}

type wantedCall struct {
	Method, URL, Path string
	Header            map[string]*string
	JSON              any
	Text              []string
}

// answer is an answer of the gateway in a script.
type answer struct {
	Status     int
	Header     map[string]string
	JSON       json.RawMessage
	Text       string
	Cut, Stall *int    // after this many bytes of the body
	Pace       float64 // seconds before each byte of the body

	lost, silent bool
}

// call is a request as the gateway received it.
type call struct {
	method, url string
	header      http.Header
	body        []byte
}

// decode parses JSON. An unknown member is an error: the client would lack a behaviour that the
// script needs.
func decode(t *testing.T, text []byte, into any) {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
}

func exchanges(t *testing.T, name string, into any) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("exchanges", name+".json"))
	if err != nil {
		t.Fatal(err)
	}
	decode(t, text, into)
}

// answerOf parses an answer of a script: an object, "lost", "silent" or the name of an answer in
// answers.json.
func answerOf(t *testing.T, named map[string]json.RawMessage, text json.RawMessage) answer {
	t.Helper()
	var name string
	if json.Unmarshal(text, &name) == nil {
		switch name {
		case "lost":
			return answer{lost: true}
		case "silent":
			return answer{silent: true}
		}
		text = named[name]
	}
	a := answer{Status: http.StatusOK}
	decode(t, text, &a)
	return a
}

// gateway returns the answers of a script in order. Its client runs in a bubble of synctest,
// where time passes only while every goroutine waits.
type gateway struct {
	answers []answer
	forever bool // repeat the last answer
	calls   []call
}

func (g *gateway) RoundTrip(r *http.Request) (*http.Response, error) {
	var body []byte
	if r.Body != nil {
		body, _ = io.ReadAll(r.Body)
	}
	g.calls = append(g.calls, call{r.Method, r.URL.String(), r.Header, body})
	if len(g.answers) == 0 || len(g.calls) > 1000 {
		return nil, errors.New("the script has no answer left")
	}
	a := g.answers[0]
	if len(g.answers) > 1 || !g.forever {
		g.answers = g.answers[1:]
	}
	switch {
	case a.lost:
		return nil, errors.New("reset by peer")
	case a.silent:
		<-r.Context().Done()
		return nil, r.Context().Err()
	}
	response := &http.Response{
		StatusCode: a.Status, Status: fmt.Sprint(a.Status, " ", http.StatusText(a.Status)), Header: http.Header{}, Request: r,
		Body: &pieces{ctx: r.Context(), text: []byte(cmp.Or(string(a.JSON), a.Text)), a: a},
	}
	for name, value := range a.Header {
		response.Header.Set(name, value)
	}
	return response, nil
}

// pieces is the body of an answer.
type pieces struct {
	ctx  context.Context // of the request
	text []byte
	read int
	a    answer
}

func (p *pieces) Read(into []byte) (int, error) {
	if p.a.Pace > 0 {
		select {
		case <-p.ctx.Done():
			return 0, p.ctx.Err()
		case <-time.After(time.Duration(p.a.Pace * float64(time.Second))):
			into = into[:1]
		}
	}
	left := p.text[p.read:]
	if end := cmp.Or(p.a.Cut, p.a.Stall); end != nil {
		left = p.text[p.read:*end]
	}
	n := copy(into, left)
	p.read += n
	switch {
	case n > 0:
		return n, nil
	case p.a.Cut != nil:
		return 0, io.ErrUnexpectedEOF
	case p.a.Stall != nil:
		<-p.ctx.Done()
		return 0, p.ctx.Err()
	}
	return 0, io.EOF
}

func (*pieces) Close() error { return nil }

// TestExchanges checks that the client does what the scripts say.
func TestExchanges(t *testing.T) {
	t.Parallel()
	named := map[string]json.RawMessage{}
	exchanges(t, "answers", &named)
	for _, file := range []string{"submit", "wait", "task", "webhook"} {
		var scripts []json.RawMessage
		exchanges(t, file, &scripts)
		for _, text := range scripts {
			s := script{Model: "m", Endpoint: "/v1/videos/generations", Key: "k", ID: "task_1", Repeat: 1}
			decode(t, text, &s)
			if s.Each == nil {
				s.Each = []json.RawMessage{nil}
			}
			for i, each := range s.Each {
				g := &gateway{forever: s.Forever}
				for _, text := range s.Answers {
					if string(text) == `"each"` {
						text = each
					}
					g.answers = append(g.answers, answerOf(t, named, text))
				}
				t.Run(fmt.Sprintf("%s/%s/%d", file, s.Name, i), func(t *testing.T) {
					folder := t.TempDir()
					synctest.Test(t, func(t *testing.T) { s.play(t, g, folder) })
				})
			}
		}
	}
}

// play makes the script's call and checks its result.
func (s script) play(t *testing.T, g *gateway, folder string) {
	t.Helper()
	calls, began := len(g.answers), time.Now()
	if s.Calls != nil {
		calls = *s.Calls
	}
	ctx := t.Context()
	if s.Leave > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Duration(s.Leave*float64(time.Second)))
		defer cancel()
	}
	c := &client.Client{URL: origin + "/", Key: "key", Strict: s.Strict, HTTP: &http.Client{Transport: g}}
	heard := []int{}
	for range s.Repeat {
		result, err := s.call(ctx, t, c, folder, func(t client.Task) { heard = append(heard, t.Progress) })
		s.checkResult(t, result, err)
	}
	if len(g.calls) != calls {
		t.Errorf("%d calls, want %d", len(g.calls), calls)
	}
	if s.Lasts != nil {
		if off := time.Since(began).Seconds() - *s.Lasts; max(off, -off) > 0.25 {
			t.Errorf("it lasted %s, want %v s", time.Since(began), *s.Lasts)
		}
	}
	if s.Progress != nil && !slices.Equal(heard, *s.Progress) {
		t.Errorf("it reported %v, want %v", heard, *s.Progress)
	}
	s.checkCalls(t, g.calls)
}

// call makes the script's call and returns the parts of the result that a script can name.
func (s script) call(
	ctx context.Context, t *testing.T, c *client.Client, folder string, progress func(client.Task),
) (any, error) {
	t.Helper()
	r := client.Request{Model: s.Model, Fields: s.Fields, Endpoint: s.Endpoint, IdempotencyKey: s.Key}
	task := func(t client.Task, err error) (any, error) {
		files := []any{}
		for _, f := range t.Files {
			files = append(files, f.URL)
		}
		return map[string]any{"status": t.Status, "files": files}, err
	}
	switch s.Call {
	case "submit":
		return c.Submit(ctx, r)
	case "run":
		return task(c.Run(ctx, r, progress))
	case "wait":
		return task(c.Wait(ctx, s.ID, progress))
	case "task":
		return task(c.Task(ctx, s.ID))
	case "cancel":
		return nil, c.Cancel(ctx, s.ID)
	case "call":
		var body, result any
		if s.Fields != nil {
			body = s.Fields
		}
		text, err := c.Call(ctx, s.Method, s.Path, body, nil)
		if len(text) > 0 {
			err = errors.Join(err, json.Unmarshal(text, &result))
		}
		return result, err
	case "quote":
		q, err := c.Quote(ctx, r)
		return fmt.Sprintf("%s %s", q.Cost, q.Currency), err
	case "models":
		models, err := c.Models(ctx, s.Category)
		ids := []any{}
		for _, m := range models {
			ids = append(ids, m.ID)
		}
		return ids, err
	case "upload":
		return c.Upload(ctx, client.Images, "cat.png", strings.NewReader(strings.Repeat("a", s.Size)))
	case "save":
		return s.save(ctx, t, c, folder)
	case "file_of":
		return client.FileOf(s.ID, s.N), nil
	case "verify_webhook":
		header := http.Header{}
		for name, value := range s.Header {
			header.Set(name, value)
		}
		return eventFields(client.VerifyWebhook(s.Secret, header, []byte(s.Body)))
	}
	return nil, fmt.Errorf("no client has the call %s", s.Call)
}

// eventFields returns the parts of an event that a script can name.
func eventFields(e client.Event, err error) (any, error) {
	if err != nil {
		return nil, err
	}
	var data, timestamp, status any
	if err := json.Unmarshal(e.Data, &data); err != nil {
		return nil, err
	}
	if !e.Timestamp.IsZero() {
		timestamp = e.Timestamp.Format(time.RFC3339Nano)
	}
	if e.Task != nil {
		status = e.Task.Status
	}
	return map[string]any{"type": e.Type, "timestamp": timestamp, "task": status, "data": data}, nil
}

// save saves the file of a task and returns the content of the folder.
func (s script) save(ctx context.Context, t *testing.T, c *client.Client, folder string) (any, error) {
	t.Helper()
	task := client.Task{ID: s.ID, Files: []client.File{{N: 1, URL: "https://s3.example.com/a", MediaType: "video/mp4"}}}
	paths, failure := c.Save(ctx, task, folder)
	left, err := os.ReadDir(folder)
	if err != nil {
		return nil, err
	}
	if len(left) != len(paths) || len(paths) == 1 && filepath.Base(paths[0]) != "task_1-1.mp4" {
		t.Errorf("the folder holds %v after %v", left, failure)
	}
	texts := []any{}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		texts = append(texts, string(text))
	}
	return texts, failure
}

func (s script) checkResult(t *testing.T, result any, err error) {
	t.Helper()
	if s.Fails == nil {
		want, isPart := s.Returns.(map[string]any)
		if got, ok := result.(map[string]any); ok && isPart && s.Call != "call" {
			for name := range got {
				if _, named := want[name]; !named {
					delete(got, name)
				}
			}
		}
		if diff := gocmp.Diff(s.Returns, result); diff != "" || err != nil {
			t.Errorf("%v (-want +got):\n%s", err, diff)
		}
		return
	}
	if err == nil {
		t.Fatalf("it returned %v", result)
	}
	said := map[string]any{}
	if failed, ok := errors.AsType[*client.TaskError](err); ok {
		said["task"] = failed.Task.Status
	}
	if e, ok := errors.AsType[*client.Error](err); ok {
		said = map[string]any{
			"status": float64(e.Status), "message": e.Message, "type": e.Type,
			"param": e.Param, "reason": e.Reason, "request_id": e.RequestID,
		}
	}
	for name, want := range s.Fails {
		if name == "says" {
			if !strings.Contains(err.Error(), want.(string)) {
				t.Errorf("it says %q, want %q", err, want)
			}
		} else if said[name] != want {
			t.Errorf("%s is %v, want %v, of %v", name, said[name], want, err)
		}
	}
}

func (s script) checkCalls(t *testing.T, calls []call) {
	t.Helper()
	keys := map[string]bool{}
	for _, a := range calls {
		if a.header.Get("Idempotency-Key") != "" {
			keys[a.header.Get("Idempotency-Key")] = true
		}
	}
	if s.Keys != nil && len(keys) != *s.Keys || s.Keys == nil && (len(keys) > 1 || len(keys) == 1 && !keys["k"]) {
		t.Errorf("the idempotency keys are %v", keys)
	}
	for i, want := range s.Asks {
		if i == len(calls) {
			break // the number of calls is wrong, which is reported elsewhere
		}
		a := calls[i]
		path := strings.TrimPrefix(a.url, origin)
		for _, pair := range [][2]string{{want.Method, a.method}, {want.URL, a.url}, {want.Path, path}} {
			if pair[0] != "" && pair[0] != pair[1] {
				t.Errorf("call %d: %s, want %s", i, pair[1], pair[0])
			}
		}
		for name, value := range want.Header {
			var wanted []string // none, for null
			if value != nil {
				wanted = []string{*value}
			}
			if got := a.header.Values(name); !slices.Equal(got, wanted) {
				t.Errorf("call %d: %s is %q, want %q", i, name, got, wanted)
			}
		}
		if want.JSON != nil {
			var got any
			if err := json.Unmarshal(a.body, &got); err != nil || !gocmp.Equal(got, want.JSON) {
				t.Errorf("call %d: the body is %s, %v", i, a.body, err)
			}
		}
		for _, text := range want.Text {
			if !bytes.Contains(a.body, []byte(text)) {
				t.Errorf("call %d: the body has no %q", i, text)
			}
		}
	}
}
