package readme_test

import (
	"bytes"
	"encoding/base64"
	"errors"
	"image"
	"image/color"
	"image/png"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mediagate/mediagate/internal/npmtest"
)

// TestOwnClients runs the examples of docs/clients.md and client/README.md line by line, and
// tests the rest of the packages for TypeScript and Python.
func TestOwnClients(t *testing.T) {
	t.Parallel()
	p := start(t)
	clients, err := filepath.Abs(filepath.Join(root, "client"))
	if err != nil {
		t.Fatal(err)
	}
	env := append(os.Environ(), "MEDIAGATE_URL="+p.API, "MEDIAGATE_API_KEY="+p.Key,
		"MEDIAGATE_CLIENTS="+clients, "PYTHONPATH="+filepath.Join(clients, "python"), "PYTHONDONTWRITEBYTECODE=1")
	samples := func(language string) []string {
		t.Helper()
		return append(blocks(t, "docs/clients.md", language+" clients"), blocks(t, "client/README.md", language+" script")...)
	}
	film := regexp.MustCompile(`task_[0-9A-Z]{26}-1\.mp4`)
	holds := func(output []byte, folder string) {
		t.Helper()
		names := film.FindAll(output, -1)
		if len(names) == 0 {
			t.Fatalf("no film is named: %s", output)
		}
		if text, err := os.ReadFile(filepath.Join(folder, string(names[0]))); err != nil || len(text) < 12 || string(text[4:8]) != "ftyp" {
			t.Errorf("%s is no film: %v", names[0], err)
		}
	}
	run := func(folder, name string, args ...string) []byte {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), name, args...)
		cmd.Dir, cmd.Env = folder, env
		out, err := cmd.Output()
		if err != nil {
			var problems []byte
			if exit, ok := errors.AsType[*exec.ExitError](err); ok {
				problems = exit.Stderr
			}
			t.Fatalf("%s %v: %v\n%s%s", name, args, err, out, problems)
		}
		return out
	}

	out := run(p.folder, "bash", "-euc", blocks(t, "docs/clients.md", "sh clients")[0])
	holds(out, p.folder)
	if !strings.Contains(string(out), `"task":{"id":"task_`) || !strings.Contains(string(out), ".mp3\n") {
		t.Errorf("it printed %s", out)
	}
	out = run(p.folder, "bash", "-euc", `PATH=$PWD/bin:$PATH; source <(mediagate completion bash)
		COMP_WORDS=(mediagate run alpha-v); COMP_CWORD=2; _mediagate; echo "${COMPREPLY[@]}"
		COMP_WORDS=(mediagate tasks re); COMP_CWORD=2; _mediagate; echo "${COMPREPLY[@]}"`)
	if want := "alpha-v3 alpha-video-o1\nretry reroute redeliver\n"; string(out) != want {
		t.Errorf("bash completes to %q, want %q", out, want)
	}

	tools := exec.CommandContext(t.Context(), "bin/mediagate", "mcp")
	tools.Dir, tools.Env = p.folder, env
	session, err := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, nil).Connect(t.Context(), &sdk.CommandTransport{Command: tools}, nil)
	if err != nil {
		t.Fatal(err)
	}
	made, err := session.CallTool(t.Context(), &sdk.CallToolParams{Name: "run", Arguments: map[string]any{
		"model": "theta-image-turbo", "arguments": map[string]any{"prompt": "a lighthouse"},
	}})
	if err != nil || made.IsError || len(made.Content) != 2 {
		t.Errorf("mediagate mcp: %+v, %v", made, err)
	}
	if err := session.Close(); err != nil {
		t.Error(err)
	}

	const chained = "image_urls[0]" // the field of a film that names its source
	for _, code := range samples("go") {
		folder := t.TempDir()
		program := filepath.Join(folder, "main.go")
		if err := os.WriteFile(program, []byte(code), 0o600); err != nil {
			t.Fatal(err)
		}
		binary := filepath.Join(folder, "program")
		run(root, "go", "build", "-o", binary, program)
		out := run(folder, binary)
		holds(out, folder)
		if strings.Contains(code, "FileOf") && !strings.Contains(string(out), chained) {
			t.Errorf("the film has no source: %s", out)
		}
	}

	const python = "/usr/bin/python3" // the Python of Debian
	for _, code := range samples("python") {
		folder := t.TempDir()
		out := run(folder, python, "-c", code)
		holds(out, folder)
		if strings.Contains(code, "file_of") && !strings.Contains(string(out), chained) {
			t.Errorf("the film has no source: %s", out)
		}
	}
	run(t.TempDir(), python, filepath.Join(clients, "python", "tests", "live.py"))

	pkg := npmtest.InstallPackage(t, filepath.Join(clients, "typescript"))
	document, err := filepath.Abs(filepath.Join(root, "api", "openapi.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	run(pkg, "node", "types.mjs", document)
	run(pkg, "node_modules/.bin/tsc")
	run(pkg, "npm", "test")
	var said []byte
	for _, code := range samples("js") {
		if err := os.WriteFile(filepath.Join(pkg, "example.mjs"), []byte(code), 0o600); err != nil {
			t.Fatal(err)
		}
		said = append(said, run(pkg, "node", "example.mjs")...)
	}
	if !strings.Contains(string(said), chained) || strings.Count(string(said), "completed") < 2 {
		t.Errorf("the chain did not complete: %s", said)
	}
	films, err := filepath.Glob(filepath.Join(pkg, "task_*.mp4"))
	if err != nil || len(films) != 2 {
		t.Fatalf("%v, %v", films, err)
	}
	for _, film := range films {
		holds([]byte(film), pkg)
	}
	var cat bytes.Buffer
	if err := png.Encode(&cat, image.NewPaletted(image.Rect(0, 0, 400, 400), color.Palette{color.Black, color.White})); err != nil {
		t.Fatal(err)
	}
	run(pkg, "node", "test/live.mjs", base64.StdEncoding.EncodeToString(cat.Bytes()))
}
