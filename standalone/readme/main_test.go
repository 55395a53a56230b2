package readme_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mediagate/mediagate/internal/freeport"
)

const (
	root = "../.."
	data = ".mediagate" // the program's default, which the README relies on

	startPatience = 60 * time.Second
	stopPatience  = 30 * time.Second
)

func TestMain(m *testing.M) {
	// A reader of the README has none of the variables that a developer may have exported.
	for _, pair := range os.Environ() {
		if name, _, _ := strings.Cut(pair, "="); strings.HasPrefix(name, "MEDIAGATE_") {
			_ = os.Unsetenv(name)
		}
	}
	os.Exit(m.Run())
}

// place is the part of standalone.json that the tests need.
type place struct {
	PID int    `json:"pid"`
	API string `json:"api"`
	Key string `json:"key"`

	folder string // the program's working folder, which looks like a reader's clone
}

// start runs the built program on free ports until the test ends, in a folder that looks like a
// built clone.
func start(t *testing.T) place {
	t.Helper()
	bin, err := filepath.Abs(filepath.Join(root, "bin"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"mediagate", "mediagate-standalone"} {
		if _, err := os.Stat(filepath.Join(bin, name)); err != nil {
			t.Fatalf("bin/%s is not there: run make build", name)
		}
	}
	p := place{folder: t.TempDir()}
	if err := os.Symlink(bin, filepath.Join(p.folder, "bin")); err != nil {
		t.Fatal(err)
	}
	log, err := os.Create(filepath.Join(p.folder, "log"))
	if err != nil {
		t.Fatal(err)
	}
	const free = "127.0.0.1:0"
	cmd := exec.Command("bin/mediagate-standalone", "-data", data,
		"-api", free, "-temporal", free, "-ui", free, "-s3", free, "-sandbox", free, "-ops", free)
	cmd.Dir, cmd.Stdout, cmd.Stderr = p.folder, log, log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	t.Cleanup(func() { stop(t, cmd, ended, log) })
	p.await(t, ended)
	return p
}

// await waits for standalone.json and reads it.
func (p *place) await(t *testing.T, ended chan error) {
	t.Helper()
	limit := time.After(startPatience)
	for {
		text, err := os.ReadFile(filepath.Join(p.folder, data, "standalone.json"))
		if err == nil {
			if err := json.Unmarshal(text, p); err != nil {
				t.Fatalf("standalone.json: %v", err)
			}
			return
		}
		select {
		case err := <-ended:
			ended <- err
			t.Fatalf("the program ended: %v", err)
		case <-limit:
			t.Fatal("standalone.json does not appear")
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// stop stops the program. If the test failed, it prints the end of the program's log.
func stop(t *testing.T, cmd *exec.Cmd, ended chan error, log *os.File) {
	t.Helper()
	_ = cmd.Process.Signal(syscall.SIGTERM)
	select {
	case err := <-ended:
		if err != nil {
			t.Errorf("the program did not end cleanly: %v", err)
		}
	case <-time.After(stopPatience):
		_ = cmd.Process.Kill()
		<-ended
		t.Error("the program did not stop")
	}
	if err := log.Close(); err != nil {
		t.Error(err)
	}
	if !t.Failed() {
		return
	}
	text, err := os.ReadFile(log.Name())
	if err != nil {
		t.Error(err)
	}
	t.Logf("the program's log ends:\n%s", text[max(0, len(text)-8<<10):])
}

// blocks returns the fenced blocks of a document with the tag.
func blocks(t *testing.T, name, tag string) []string {
	t.Helper()
	return blocksOf(t, name, document(t, name), tag)
}

// blocksOf returns the blocks of a text with the tag.
func blocksOf(t *testing.T, name, text, tag string) []string {
	t.Helper()
	var found []string
	pattern := regexp.MustCompile("(?ms)^```" + regexp.QuoteMeta(tag) + "\n(.*?)^```$")
	for _, match := range pattern.FindAllStringSubmatch(text, -1) {
		found = append(found, match[1])
	}
	if len(found) == 0 {
		t.Fatalf("%s has no block tagged %q", name, tag)
	}
	return found
}

// document reads a file of the project.
func document(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// port returns a free port for a receiver of the documents, which cannot choose one itself.
func port(t *testing.T) int {
	t.Helper()
	p, err := freeport.Take("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return p.Number
}

// call calls the API and decodes the answer.
func (p *place) call(ctx context.Context, t *testing.T, method, path, body string, into any) {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, method, p.API+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+p.Key)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(resp.Body)
	if err := errors.Join(err, resp.Body.Close()); err != nil {
		t.Fatal(err)
	}
	if resp.StatusCode != http.StatusOK {
		t.Fatalf("%s %s: %s\n%s", method, path, resp.Status, text)
	}
	if err := json.Unmarshal(text, into); err != nil {
		t.Fatalf("%s %s: %v\n%s", method, path, err, text)
	}
}

// task is the part of a task that the tests read.
type task struct {
	ID     string `json:"id"`
	Status string `json:"status"`
	Result struct {
		Images []struct{} `json:"images"`
	} `json:"result"`
	Webhook struct {
		State  string `json:"state"`
		Reason string `json:"reason"`
	} `json:"webhook"`
}

// image makes an image and returns its task after the end.
func (p *place) image(ctx context.Context, t *testing.T, more map[string]any) task {
	t.Helper()
	fields := map[string]any{"model": "theta-image-turbo", "prompt": "a lighthouse at dawn"}
	maps.Copy(fields, more)
	body, err := json.Marshal(fields)
	if err != nil {
		t.Fatal(err)
	}
	var submitted struct {
		Data []struct {
			TaskID string `json:"task_id"`
		} `json:"data"`
	}
	p.call(ctx, t, http.MethodPost, "/v1/images/generations", string(body), &submitted)
	ended := p.task(ctx, t, submitted.Data[0].TaskID+"?wait=60")
	if ended.Status != "completed" || len(ended.Result.Images) != 1 {
		t.Fatalf("the image was not made: %+v", ended)
	}
	return ended
}

func (p *place) task(ctx context.Context, t *testing.T, idAndQuery string) task {
	t.Helper()
	var answer struct {
		Data task `json:"data"`
	}
	p.call(ctx, t, http.MethodGet, "/v1/tasks/"+idAndQuery, "", &answer)
	return answer.Data
}
