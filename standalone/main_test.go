package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.temporal.io/sdk/client"

	"github.com/mediagate/mediagate/internal/failpoint"
)

// asProgram makes the test binary run the program itself, so that tests can kill it.
const asProgram = "STANDALONE_TEST_AS_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// process is a running program.
type process struct {
	cmd    *exec.Cmd
	stdout *lockedBuffer
	stderr *lockedBuffer
	ended  chan struct{}
}

func launch(t *testing.T, env []string, args ...string) *process {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	p := &process{stdout: &lockedBuffer{}, stderr: &lockedBuffer{}, ended: make(chan struct{})}
	p.cmd = exec.Command(self, args...) // not CommandContext: the test itself ends the process by signals
	p.cmd.Env = append(os.Environ(), append(env, asProgram+"=1")...)
	p.cmd.Stdout, p.cmd.Stderr = p.stdout, p.stderr
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(p.ended)
		_ = p.cmd.Wait()
	}()
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill()
		<-p.ended
		if t.Failed() {
			t.Logf("stderr:\n%s", p.stderr)
		}
	})
	return p
}

// wait waits for the end of the process and returns its exit status.
func (p *process) wait(t *testing.T) int {
	t.Helper()
	select {
	case <-p.ended:
		return p.cmd.ProcessState.ExitCode()
	case <-time.After(30 * time.Second):
		t.Fatalf("still running:\n%s", p.stderr)
		return 0
	}
}

func (p *process) signal(t *testing.T, s syscall.Signal) {
	t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		t.Fatal(err)
	}
}

// infraArgs returns the arguments that start every embedded server on a free port.
func infraArgs(data string) []string {
	return []string{
		"-data", data, "-infra", "temporal,ui,s3,sandbox",
		"-temporal", "127.0.0.1:0", "-ui", "127.0.0.1:0", "-s3", "127.0.0.1:0", "-sandbox", "127.0.0.1:0",
	}
}

// awaitAnnouncement waits for the standalone.json of the process and returns its content.
func awaitAnnouncement(t *testing.T, p *process, data string) announcement {
	t.Helper()
	limit := time.After(60 * time.Second)
	for {
		text, err := os.ReadFile(filepath.Join(data, "standalone.json"))
		if err == nil {
			var a announcement
			if err := json.Unmarshal(text, &a); err != nil {
				t.Fatalf("standalone.json is not whole: %v\n%s", err, text)
			}
			if a.PID == p.cmd.Process.Pid {
				return a
			}
		} else if !errors.Is(err, os.ErrNotExist) {
			t.Fatal(err)
		}
		select {
		case <-p.ended:
			t.Fatalf("ended with %d:\n%s", p.cmd.ProcessState.ExitCode(), p.stderr)
		case <-limit:
			t.Fatal("standalone.json does not appear")
		case <-time.After(10 * time.Millisecond):
		}
	}
}

func TestInfraLife(t *testing.T) {
	t.Parallel()
	data := filepath.Join(t.TempDir(), "data")
	first := launch(t, nil, infraArgs(data)...)
	where := awaitAnnouncement(t, first, data)

	if where.API != "" || where.Ops != "" || where.Key != "" || where.AdminKey != "" {
		t.Errorf("announces what -infra does not start: %+v", where)
	}
	for name, url := range map[string]string{
		"ui": where.UI + "/healthz", "sandbox": where.Sandbox + "/_sandbox/jobs", "s3": where.S3.Endpoint + "/healthz",
	} {
		if status := get(t, url); status != http.StatusOK {
			t.Errorf("%s answers %d", name, status)
		}
	}
	for name, url := range map[string]string{"ui": where.UI + "/api/v1/settings", "sandbox": where.Sandbox + "/_sandbox/jobs", "vendor": where.Sandbox + "/kling/v1/x"} {
		if status := getAs(t, url, "evil.example"); status != http.StatusForbidden {
			t.Errorf("%s answers %d under a foreign name", name, status)
		}
	}
	startWorkflow(t, where.Temporal, "kept")

	second := launch(t, nil, infraArgs(data)...)
	if status := second.wait(t); status != exitFailed {
		t.Errorf("a second process on the folder exits %d, want %d", status, exitFailed)
	}
	if !strings.Contains(second.stderr.String(), "another process is using the data folder") {
		t.Errorf("the second process does not say why:\n%s", second.stderr)
	}

	first.signal(t, syscall.SIGKILL)
	first.wait(t)
	third := launch(t, nil, infraArgs(data)...)
	again := awaitAnnouncement(t, third, data)
	if where.S3.AccessKeyID != again.S3.AccessKeyID || where.S3.SecretAccessKey != again.S3.SecretAccessKey {
		t.Error("the S3 keys changed over a restart")
	}
	if !hasWorkflow(t, again.Temporal, "kept") {
		t.Error("kill -9 lost a workflow")
	}

	third.signal(t, syscall.SIGTERM)
	if status := third.wait(t); status != exitDone {
		t.Errorf("exit %d after SIGTERM, want %d", status, exitDone)
	}
	if _, err := os.Stat(filepath.Join(data, "standalone.json")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("standalone.json outlives a clean stop (stat: %v)", err)
	}
	for line := range strings.Lines(third.stderr.String()) {
		if !json.Valid([]byte(line)) {
			t.Errorf("standard error holds a line that is not JSON: %s", line)
		}
	}
	if !strings.Contains(third.stdout.String(), again.UI) {
		t.Errorf("the banner lacks the addresses:\n%s", third.stdout)
	}
}

func TestInfraStartsOnlyWhatIsNamed(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	p := launch(t, nil, "-data", data, "-infra", "sandbox", "-sandbox", "127.0.0.1:0")
	awaitAnnouncement(t, p, data)
	text, err := os.ReadFile(filepath.Join(data, "standalone.json"))
	if err != nil {
		t.Fatal(err)
	}
	var got map[string]any
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	var names []string
	for name := range got {
		names = append(names, name)
	}
	slices.Sort(names)
	if diff := cmp.Diff([]string{"pid", "sandbox", "version"}, names); diff != "" {
		t.Errorf("standalone.json (-want +got):\n%s", diff)
	}
	p.signal(t, syscall.SIGINT)
	if status := p.wait(t); status != exitDone {
		t.Errorf("exit %d after SIGINT, want %d", status, exitDone)
	}
}

func TestExitStatus(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		env    []string
		args   []string
		status int
		stdout string
	}{
		"failpoints":        {args: []string{"-list-failpoints"}, status: exitDone, stdout: strings.Join(failpoint.Names(), "\n") + "\n"},
		"help":              {args: []string{"-h"}, status: exitDone},
		"wrong use":         {args: []string{"-infra", "everything"}, status: exitUsage},
		"unknown failpoint": {env: []string{"MEDIAGATE_FAILPOINT=nowhere"}, args: []string{"-infra", "sandbox", "-sandbox", "127.0.0.1:0"}, status: exitFailed},
		"folder is a file":  {args: []string{"-data", os.Args[0], "-infra", "sandbox"}, status: exitFailed},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			args := test.args
			if !slices.Contains(args, "-data") {
				args = append([]string{"-data", t.TempDir()}, args...)
			}
			p := launch(t, test.env, args...)
			if got := p.wait(t); got != test.status {
				t.Errorf("exit %d, want %d", got, test.status)
			}
			if got := p.stdout.String(); test.stdout != "" && got != test.stdout {
				t.Errorf("stdout = %q, want %q", got, test.stdout)
			}
		})
	}
}

func get(t *testing.T, url string) int {
	t.Helper()
	return getAs(t, url, "")
}

// getAs returns the status of a GET with a Host that may differ from the URL's.
func getAs(t *testing.T, url, host string) int {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Host = host // empty: the URL's host
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	return resp.StatusCode
}

func startWorkflow(t *testing.T, addr, id string) {
	t.Helper()
	c := dial(t, addr)
	defer c.Close()
	if _, err := c.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{ID: id, TaskQueue: "nobody"}, "Nothing"); err != nil {
		t.Fatalf("start a workflow: %v", err)
	}
}

func hasWorkflow(t *testing.T, addr, id string) bool {
	t.Helper()
	c := dial(t, addr)
	defer c.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	found, err := c.DescribeWorkflowExecution(ctx, id, "")
	return err == nil && found.GetWorkflowExecutionInfo().GetExecution().GetWorkflowId() == id
}

func dial(t *testing.T, addr string) client.Client {
	t.Helper()
	c, err := client.Dial(client.Options{HostPort: addr, Namespace: "mediagate", Logger: silent{}})
	if err != nil {
		t.Fatalf("dial Temporal: %v", err)
	}
	return c
}

type silent struct{}

func (silent) Debug(string, ...any) {}
func (silent) Info(string, ...any)  {}
func (silent) Warn(string, ...any)  {}
func (silent) Error(string, ...any) {}

// lockedBuffer is a buffer that a process writes while a test reads it.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}
