package runner_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/mediagate/mediagate/cmd/mediagate/runner"
)

// gateway plays a gateway whose tasks end as it says.
type gateway struct {
	*httptest.Server
	mu       sync.Mutex
	bodies   []string // of submits
	status   string   // of tasks
	refused  int      // by which submits are answered, if not 0
	onSubmit func()   // nil for none
	asked    chan struct{}
}

const contract = `{"endpoint":"/v1/%s/generations","input_schema":{"properties":{"prompt":{"type":"string"},"resolution":{"type":"string"},"duration":{"type":"integer"}%s}}}`

func serve(t *testing.T) *gateway {
	t.Helper()
	g := &gateway{status: "completed", asked: make(chan struct{}, 64)}
	mux := http.NewServeMux()
	answer := func(pattern string, f func(r *http.Request) (int, string)) {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Authorization") != "Bearer key" && !strings.HasPrefix(r.URL.Path, "/file") {
				t.Errorf("%s came with the key %q", r.URL, r.Header.Get("Authorization"))
			}
			g.mu.Lock()
			status, text := f(r)
			g.mu.Unlock()
			w.WriteHeader(status)
			_, _ = io.WriteString(w, text)
		})
	}
	answer("GET /v1/models", func(*http.Request) (int, string) {
		return 200, `{"data":[{"id":"alpha-v3"},{"id":"alpha-o1"},{"id":"beta"}]}`
	})
	answer("GET /v1/model-schema", func(r *http.Request) (int, string) {
		switch r.URL.Query().Get("model") {
		case "film":
			return 200, fmt.Sprintf(contract, "videos", `,"first_frame_image":{"type":"string"},"last_frame_image":{"type":"string"}`)
		case "picture":
			return 200, fmt.Sprintf(contract, "images", `,"image_urls":{"type":"array"},"video_urls":{"type":"array"},"audio_url":{"type":"string"}`)
		}
		return 404, `{"error":{"message":"model not found, or it has no contract"}}`
	})
	answer("POST /v1/uploads/{kind}", func(r *http.Request) (int, string) {
		_, header, _ := r.FormFile("file")
		return 200, fmt.Sprintf(`{"url":"https://gw/%s"}`, header.Filename)
	})
	answer("POST /v1/quote", func(r *http.Request) (int, string) {
		if r.Header.Get("Mediagate-Strict") != "true" {
			t.Error("a mistyped field would be ignored")
		}
		var body struct{ Endpoint, Model string }
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil || body.Endpoint == "" || body.Model == "" {
			t.Errorf("a quote of %+v, %v", body, err)
		}
		return 200, `{"cost":0.56,"currency":"USD"}`
	})
	submit := func(r *http.Request) (int, string) {
		text, _ := io.ReadAll(r.Body)
		g.bodies = append(g.bodies, fmt.Sprintf("%s %s %s", r.URL.Path, r.Header.Get("Idempotency-Key"), text))
		if g.onSubmit != nil {
			g.onSubmit()
			<-r.Context().Done()
		}
		if g.refused != 0 {
			return g.refused, `{"error":{"message":"prompt is bad \u001b[2J","param":"prompt","request_id":"req_1"}}`
		}
		return 200, `{"data":[{"task_id":"task_1"}]}`
	}
	answer("POST /v1/videos/generations", submit)
	answer("POST /v1/images/generations", submit)
	answer("POST /v1/music/generations", submit)
	answer("GET /v1/tasks/task_1", func(*http.Request) (int, string) {
		g.asked <- struct{}{}
		text := fmt.Sprintf(`{"data":{"id":"task_1","status":%q,"progress":30,"cost":0.56`, g.status)
		switch g.status {
		case "completed":
			text += fmt.Sprintf(`,"result":{"videos":[{"url":["%s/file"],"mime_type":"video/mp4"}]}`, g.URL)
		case "failed":
			text += `,"error":{"code":"generation_failed","message":"no luck"}`
		}
		return 200, text + "}}"
	})
	answer("GET /file", func(*http.Request) (int, string) { return 200, "film" })
	g.Server = httptest.NewServer(mux)
	t.Cleanup(g.Close)
	return g
}

// taskID is the id of a task whose files are inputs.
const taskID = "task_01KAJ5XW4M9Q7T2C8N6BVRE3HD"

// run runs the command there.
func (g *gateway) run(ctx context.Context, s runner.Streams, args ...string) (code int, stdout, stderr string) {
	var out, problems bytes.Buffer
	s.Out, s.Err = &out, &problems
	code = runner.Run(ctx, args, []string{"MEDIAGATE_URL=" + g.URL, "MEDIAGATE_API_KEY=key"}, s)
	return code, out.String(), problems.String()
}

// TestRun checks that the arguments become the request, and that its files are saved to the
// folder.
func TestRun(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	cat := filepath.Join(folder, "cat.png")
	if err := os.WriteFile(cat, []byte("meow"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		args []string
		want string // path, key and body of the submit
	}{
		"a prompt":      {[]string{"film", "-p", "a boat", "-key", "k"}, `/v1/videos/generations k {"model":"film","prompt":"a boat"}`},
		"fields":        {[]string{"film", "-set", "duration=5", "-set", "resolution=1080", "-set", "x=yes", "-set", `metadata={"reference":"7"}`, "-key", "k"}, `/v1/videos/generations k {"duration":5,"metadata":{"reference":"7"},"model":"film","resolution":"1080","x":"yes"}`},
		"flags first":   {[]string{"-p", "a boat", "-key", "k", "film", "-set", "duration=5"}, `/v1/videos/generations k {"duration":5,"model":"film","prompt":"a boat"}`},
		"a frame":       {[]string{"film", "--image", cat}, `{"first_frame_image":"https://gw/cat.png","model":"film"}`},
		"two frames":    {[]string{"film", "-image", cat, "-image", "https://x/y.png"}, `{"first_frame_image":"https://gw/cat.png","last_frame_image":"https://x/y.png","model":"film"}`},
		"many pictures": {[]string{"picture", "-image", "https://x/y.png", "-key", "k"}, `/v1/images/generations k {"image_urls":["https://x/y.png"],"model":"picture"}`},
		"a sound":       {[]string{"picture", "-audio", "https://x/y.mp3", "-video", cat}, `{"audio_url":"https://x/y.mp3","model":"picture","video_urls":["https://gw/cat.png"]}`},
		"a task":        {[]string{"picture", "-image", taskID, "-image", taskID + "#2", "-key", "k"}, `k {"image_urls":["/v1/tasks/` + taskID + `/files/1","/v1/tasks/` + taskID + `/files/2"],"model":"picture"}`},
		"a task's file": {[]string{"picture", "-image", "/v1/tasks/" + taskID + "/files/2", "-key", "k"}, `k {"image_urls":["/v1/tasks/` + taskID + `/files/2"],"model":"picture"}`},
		"music":         {[]string{"song", "-endpoint", "/v1/music/generations", "-p", "la", "-key", "k"}, `/v1/music/generations k {"model":"song","prompt":"la"}`},
	} {
		g, out := serve(t), t.TempDir()
		code, stdout, stderr := g.run(t.Context(), runner.Streams{}, append(test.args, "-out", out)...)
		path := filepath.Join(out, "task_1-1.mp4")
		if film, err := os.ReadFile(path); code != 0 || stdout != path+"\n" || err != nil || string(film) != "film" {
			t.Errorf("%s: %d %q %q, %q %v", name, code, stdout, stderr, film, err)
		}
		if !strings.Contains(stderr, "costs at most 0.56 USD") || !strings.Contains(stderr, "task task_1") {
			t.Errorf("%s: it said %q", name, stderr)
		}
		if len(g.bodies) != 1 || !strings.HasSuffix(g.bodies[0], test.want) {
			t.Errorf("%s: submits %q, want %q", name, g.bodies, test.want)
		}
	}
}

// TestExitCodes checks that each end without a file has its exit code and message.
func TestExitCodes(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		args           []string
		status         string
		refused        int
		in             string
		terminal       bool
		code           int
		stdout, stderr string
		submits        int
	}{
		"no model":             {nil, "completed", 0, "", false, 2, "", "name a model", 0},
		"help":                 {[]string{"-h"}, "completed", 0, "", false, 0, "usage: mediagate run MODEL", "", 0},
		"a prompt without -p":  {[]string{"film", "a boat"}, "completed", 0, "", false, 2, "", "a prompt follows -p", 0},
		"no such flag":         {[]string{"film", "-size", "1"}, "completed", 0, "", false, 2, "", "-size", 0},
		"no pair":              {[]string{"film", "-set", "duration"}, "completed", 0, "", false, 2, "", "FIELD=VALUE", 0},
		"no folder":            {[]string{"film", "-out", "/does/not/exist"}, "completed", 0, "", false, 2, "", "-out must be a folder", 0},
		"another format":       {[]string{"film", "-o", "yaml"}, "completed", 0, "", false, 2, "", "text or json", 0},
		"a resumed request":    {[]string{"-resume", "task_1", "-p", "a boat"}, "completed", 0, "", false, 2, "", "-resume", 0},
		"no such file":         {[]string{"film", "-image", "none.png"}, "completed", 0, "", false, 2, "", "-image: open none.png", 0},
		"a file like a task":   {[]string{"film", "-image", "./" + taskID}, "completed", 0, "", false, 2, "", "-image: open ./" + taskID, 0},
		"no file of a task":    {[]string{"film", "-image", taskID + "#0"}, "completed", 0, "", false, 2, "", "-image: \"" + taskID + "#0\" is no file of a task, which is TASK or TASK#N with N from 1", 0},
		"nowhere for pictures": {[]string{"film", "-image", "https://a/1", "-image", "https://a/2", "-image", "https://a/3"}, "completed", 0, "", false, 2, "", "where 3 images go", 0},
		"no contract":          {[]string{"song", "-p", "la"}, "completed", 0, "", false, 2, "", "-endpoint /v1/music/generations", 0},
		"a key for a file":     {[]string{"film", "-image", "cat.png", "-key", "k"}, "completed", 0, "", false, 2, "", "upload it once", 0},
		"a speech":             {[]string{"eta", "-endpoint", "/v1/audio/speech", "-set", "input=Ahoy"}, "completed", 0, "", false, 2, "", "a speech has no task", 0},
		"refused":              {[]string{"film", "-p", "a"}, "completed", 400, "", false, 2, "", `prompt is bad \x1b[2J (400 of prompt, request req_1)`, 1},
		"failed":               {[]string{"film", "-p", "a"}, "failed", 0, "", false, 1, "", "no luck (generation_failed)", 1},
		"failed, as JSON":      {[]string{"film", "-p", "a", "-o", "json"}, "failed", 0, "", false, 1, `"files":[]}`, "no luck", 1},
		"cancelled":            {[]string{"film", "-p", "a"}, "cancelled", 0, "", false, 1, "", "task task_1 is cancelled", 1},
		"too expensive":        {[]string{"film", "-p", "a"}, "completed", 0, "n\n", true, 2, "", "nothing was made", 0},
		"nothing said":         {[]string{"film", "-p", "a"}, "completed", 0, "", true, 2, "", "nothing was made", 0},
		"agreed":               {[]string{"film", "-p", "a"}, "completed", 0, "y\n", true, 0, "task_1-1.mp4", "Go on? [y/N]", 1},
		"not asked":            {[]string{"film", "-p", "a", "-yes"}, "completed", 0, "", true, 0, "task_1-1.mp4", "", 1},
		"resumed":              {[]string{"-resume", "task_1", "-o", "json"}, "completed", 0, "", false, 0, `task_1-1.mp4"]}`, "completed after", 0},
	} {
		g := serve(t)
		g.status, g.refused = test.status, test.refused
		args := test.args
		if len(args) > 0 && !strings.Contains(strings.Join(args, " "), "-out") {
			args = append(args, "-out", t.TempDir())
		}
		code, stdout, stderr := g.run(t.Context(), runner.Streams{In: strings.NewReader(test.in), Terminal: test.terminal}, args...)
		if code != test.code || !strings.Contains(stdout, test.stdout) || test.stdout == "" && stdout != "" || !strings.Contains(stderr, test.stderr) {
			t.Errorf("%s: %d\n%q\n%q", name, code, stdout, stderr)
		}
		if len(g.bodies) != test.submits {
			t.Errorf("%s: %d submits, want %d", name, len(g.bodies), test.submits)
		}
		if test.terminal != strings.Contains(stderr, "\r") && test.code == 0 && strings.Contains(stderr, "[#") {
			t.Errorf("%s: a bar: %q", name, stderr)
		}
	}
}

// TestInterrupted checks that the message after an interrupt, or about an unreachable gateway,
// says how to continue.
func TestInterrupted(t *testing.T) {
	t.Parallel()
	g := serve(t)
	g.status = "processing"
	ctx, interrupt := context.WithCancel(t.Context())
	out := filepath.Join(t.TempDir(), "my films")
	if err := os.Mkdir(out, 0o700); err != nil {
		t.Fatal(err)
	}
	go func() {
		<-g.asked
		interrupt()
	}()
	code, stdout, stderr := g.run(ctx, runner.Streams{}, "film", "-p", "a", "-out", out)
	if code != 3 || stdout != "" || !strings.Contains(stderr, "mediagate run -resume task_1 -out '"+out+"'\n") || !strings.Contains(stderr, "interrupted") {
		t.Errorf("%d %q %q", code, stdout, stderr)
	}
	var problems bytes.Buffer
	for _, environ := range [][]string{nil, {"MEDIAGATE_URL=gopher://a", "MEDIAGATE_API_KEY=k"}, {"MEDIAGATE_URL=http://a"}} {
		if code := runner.Run(t.Context(), []string{"film"}, environ, runner.Streams{Out: io.Discard, Err: &problems}); code != 2 {
			t.Errorf("%q: %d", environ, code)
		}
	}
}

// TestInterruptedSubmit checks that the message after an interrupted submit says how to find its
// task: by the same request with the same key and the addresses of its uploaded files.
func TestInterruptedSubmit(t *testing.T) {
	t.Parallel()
	g, folder := serve(t), t.TempDir()
	cat := filepath.Join(folder, "cat.png")
	if err := os.WriteFile(cat, []byte("meow"), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, interrupt := context.WithCancel(t.Context())
	g.onSubmit = interrupt
	code, _, stderr := g.run(ctx, runner.Streams{}, "film", "-image", cat, "-out", folder)
	_, key, _ := strings.Cut(stderr, " -key ")
	key, again, _ := strings.Cut(key, " ")
	if code != 3 || key == "" || !strings.HasPrefix(again, "-image https://gw/cat.png\n") {
		t.Fatalf("%d %q", code, stderr)
	}
	g.onSubmit = nil
	code, _, stderr = g.run(t.Context(), runner.Streams{}, "film", "-image", "https://gw/cat.png", "-key", key, "-out", folder)
	if code != 0 || len(g.bodies) != 2 || g.bodies[0] != g.bodies[1] {
		t.Errorf("%d %q, %q", code, stderr, g.bodies)
	}
}

// TestDataFolder checks that a standalone's folder names its gateway and key.
func TestDataFolder(t *testing.T) {
	t.Parallel()
	g, data := serve(t), t.TempDir()
	if err := os.WriteFile(filepath.Join(data, "standalone.json"), fmt.Appendf(nil, `{"api":%q,"key":"key","admin_key":"x"}`, g.URL), 0o600); err != nil {
		t.Fatal(err)
	}
	var out, problems bytes.Buffer
	if code := runner.Run(t.Context(), []string{"film", "-p", "a", "-data", data, "-out", t.TempDir()}, nil, runner.Streams{Out: &out, Err: &problems}); code != 0 {
		t.Errorf("%d %s", code, problems.String())
	}
	if code := runner.Run(t.Context(), []string{"film", "-data", t.TempDir()}, nil, runner.Streams{Out: &out, Err: &problems}); code != 2 {
		t.Errorf("%d without a standalone", code)
	}
}

func TestComplete(t *testing.T) {
	t.Parallel()
	g := serve(t)
	commands := []string{"run", "tasks list", "tasks show", "keys list", "completion bash"}
	environ := []string{"MEDIAGATE_URL=" + g.URL, "MEDIAGATE_API_KEY=key"}
	for words, want := range map[string]string{
		"":                 "run tasks keys completion",
		"t":                "tasks",
		"tasks ":           "list show",
		"tasks s":          "show",
		"tasks show ":      "",
		"completion ":      "bash",
		"run al":           "alpha-v3 alpha-o1",
		"run alpha-v3 -se": "-set",
		"run alpha-v3 -o":  "-o -out",
		"run alpha-v3 x":   "",
		"none ":            "",
	} {
		var out bytes.Buffer
		runner.Complete(t.Context(), strings.Split(words, " "), commands, environ, &out)
		if got := strings.Join(strings.Fields(out.String()), " "); got != want {
			t.Errorf("%q: %q, want %q", words, got, want)
		}
	}
	var out bytes.Buffer
	runner.Complete(t.Context(), []string{"run", ""}, commands, nil, &out) // no gateway is known
	if out.Len() > 0 {
		t.Errorf("models out of nowhere: %s", out.String())
	}
	for _, shell := range []string{"bash", "zsh", "fish"} {
		if err := runner.Completion(shell, &out); err != nil || !strings.Contains(out.String(), "mediagate complete") && !strings.Contains(out.String(), "complete -") {
			t.Errorf("%s: %v", shell, err)
		}
	}
	if runner.Completion("tcsh", &out) == nil {
		t.Error("there is a script for any shell")
	}
}
