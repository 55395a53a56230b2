package toy_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

const (
	root          = "../.."
	startPatience = 60 * time.Second
	taskPatience  = 60 * time.Second
	stopPatience  = 30 * time.Second
)

// lines are what the documents ask for beside new files: a line in each table.
var lines = []struct{ file, before, line string }{
	{"providers/all/all.go", "\t\"github.com/mediagate/mediagate/providers/kling\"", "\t\"github.com/mediagate/mediagate/providers/toy\""},
	{"providers/all/all.go", "\t\t\"kling\":", "\t\t\"toy\": row(toy.Description(), toy.New, vendorhttp.KeyAccount, toy.Express),"},
	{"sandbox/sandbox.go", "\t\"github.com/mediagate/mediagate/sandbox/kling\"", "\t\"github.com/mediagate/mediagate/sandbox/toy\""},
	{"sandbox/sandbox.go", "\t\tkling.Vendor(),", "\t\ttoy.Vendor(),"},
}

// A vendor is a folder and a line here and in the sandbox, a model is a file;
// nothing else has to know, and a task runs to its end.
func TestToyVendorAndModel(t *testing.T) {
	t.Parallel()
	tree := copyTree(t)
	if err := os.CopyFS(tree, os.DirFS("testdata")); err != nil {
		t.Fatal(err)
	}
	for _, l := range lines {
		insert(t, filepath.Join(tree, l.file), l.before, l.line)
	}
	conforms(t, tree)
	g := start(t, build(t, tree))

	var refused struct {
		Error struct{ Message string }
	}
	body := `{"model":"toy-1","prompt":"a cat","style":"noir"}`
	if status := g.call(t, http.MethodPost, "/v1/images/generations", body, &refused); status != http.StatusBadRequest || refused.Error.Message != "style must be plain here" {
		t.Errorf("what the vendor has no word for is answered %d, %q", status, refused.Error.Message)
	}

	var taken struct {
		Data []struct {
			TaskID string `json:"task_id"`
		}
	}
	body = `{"model":"toy-1","prompt":"a cat"}`
	if status := g.call(t, http.MethodPost, "/v1/images/generations", body, &taken); status != http.StatusOK || len(taken.Data) != 1 {
		t.Fatalf("the submit is answered %d, %+v", status, taken)
	}
	var task struct {
		Data struct {
			Status string
			Cost   json.Number
			Result struct{ Images []struct{ URL []string } }
		}
	}
	g.call(t, http.MethodGet, "/v1/tasks/"+taken.Data[0].TaskID+"?wait="+fmt.Sprint(int(taskPatience/time.Second)), "", &task)
	if task.Data.Status != "completed" || task.Data.Cost != "0.01" || len(task.Data.Result.Images) != 1 {
		t.Fatalf("the task is %+v", task.Data)
	}
	if file := g.fetch(t, task.Data.Result.Images[0].URL[0]); !bytes.HasPrefix(file, []byte("\x89PNG\r\n")) {
		t.Errorf("the picture begins with %q", file[:min(len(file), 16)])
	}
}

// copyTree copies what the program is built from.
func copyTree(t *testing.T) string {
	t.Helper()
	tree := filepath.Join(t.TempDir(), "tree")
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		name := entry.Name()
		switch {
		case entry.IsDir() && rel != "." && (strings.HasPrefix(name, ".") || name == "bin" || name == "testdata"):
			return fs.SkipDir
		case entry.IsDir():
			return os.MkdirAll(filepath.Join(tree, rel), 0o700)
		case !entry.Type().IsRegular() || strings.HasSuffix(name, "_test.go"):
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(tree, rel), text, 0o600)
	})
	if err != nil {
		t.Fatal(err)
	}
	return tree
}

// insert puts a line before the one that begins as said: exactly one must.
func insert(t *testing.T, file, before, line string) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	all := strings.Split(string(text), "\n")
	begins := func(s string) bool { return strings.HasPrefix(s, before) }
	at := slices.IndexFunc(all, begins)
	if at < 0 || slices.ContainsFunc(all[at+1:], begins) {
		t.Fatalf("%s has not exactly one line that begins with %q", file, before)
	}
	if err := os.WriteFile(file, []byte(strings.Join(slices.Insert(all, at, line), "\n")), 0o600); err != nil {
		t.Fatal(err)
	}
}

// conforms runs the suite of adapters on the example, which others begin with.
func conforms(t *testing.T, tree string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "test", "./providers/toy")
	cmd.Dir = tree
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("go test: %v\n%s", err, out)
	}
}

// build makes the program.
func build(t *testing.T, tree string) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "mediagate-standalone")
	cmd := exec.CommandContext(t.Context(), "go", "build", "-buildvcs=false", "-o", program, ".")
	cmd.Dir = filepath.Join(tree, "standalone")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	return program
}

// gateway is a program that runs.
type gateway struct {
	API string `json:"api"`
	Key string `json:"key"`
}

// start runs the program on a fresh folder and free ports until the test ends.
func start(t *testing.T, program string) gateway {
	t.Helper()
	dir := t.TempDir()
	log, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		t.Fatal(err)
	}
	const free = "127.0.0.1:0"
	cmd := exec.Command(program, "-data", filepath.Join(dir, "data"),
		"-api", free, "-temporal", free, "-ui", free, "-s3", free, "-sandbox", free, "-ops", free)
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, log, log
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "TMPDIR=" + os.TempDir()} // no setting of a developer's
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	t.Cleanup(func() { stop(t, cmd, ended, log) })

	limit := time.After(startPatience)
	for {
		var g gateway
		text, err := os.ReadFile(filepath.Join(dir, "data", "standalone.json"))
		if err == nil && json.Unmarshal(text, &g) == nil {
			return g
		}
		select {
		case err := <-ended:
			ended <- err
			t.Fatalf("the program ended: %v", err)
		case <-limit:
			t.Fatal("the program does not serve")
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func stop(t *testing.T, cmd *exec.Cmd, ended chan error, log *os.File) {
	t.Helper()
	_ = cmd.Process.Signal(syscall.SIGTERM)
	select {
	case err := <-ended:
		if err != nil {
			t.Errorf("the program ended badly: %v", err)
		}
	case <-time.After(stopPatience):
		_ = cmd.Process.Kill()
		<-ended
		t.Error("the program did not stop")
	}
	_ = log.Close()
	if t.Failed() {
		text, _ := os.ReadFile(log.Name())
		t.Logf("the program's log ends:\n%s", text[max(0, len(text)-8<<10):])
	}
}

// call asks the gateway and decodes its answer.
func (g gateway) call(t *testing.T, method, path, body string, into any) int {
	t.Helper()
	status, answer := g.do(t, method, g.API+path, body)
	if err := json.Unmarshal(answer, into); err != nil {
		t.Fatalf("%s %s: %v: %s", method, path, err, answer)
	}
	return status
}

// fetch reads a file by its link.
func (g gateway) fetch(t *testing.T, link string) []byte {
	t.Helper()
	status, file := gateway{}.do(t, http.MethodGet, link, "")
	if status != http.StatusOK {
		t.Fatalf("the file is answered %d, %s", status, file)
	}
	return file
}

func (g gateway) do(t *testing.T, method, url, body string) (int, []byte) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), taskPatience+10*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if g.Key != "" {
		req.Header.Set("Authorization", "Bearer "+g.Key)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, answer
}
