package e2e_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"
)

// program holds how a process is started. A restart uses the same values, so it finds its folder
// and its ports.
type program struct {
	name  string // in messages and of the log file
	bin   string // name in the folder of the programs, or an absolute path
	args  []string
	env   []string
	dir   string // working folder, and folder of the log
	ready string // URL that answers 200 when the process serves; empty: not polled

	// listens is used instead of ready. It names the listener whose /readyz is polled. The log
	// shows its address.
	listens string
}

// service is a program that runs or has run.
type service struct {
	program

	mu      sync.Mutex
	cmd     *exec.Cmd
	ended   chan struct{} // closed when the current process has ended
	started time.Time
	logged  int64 // offset in the log at which the current process begins
}

const (
	readyLimit = 60 * time.Second
	logTail    = 6 << 10
)

// launch starts the program for the duration of the test and waits until it serves.
func launch(t *testing.T, p program) *service {
	t.Helper()
	s := &service{program: p}
	t.Cleanup(func() {
		s.kill()
		if t.Failed() {
			t.Logf("log of %s, its end:\n%s", s.name, tail(s.logFile()))
		}
	})
	s.start(t)
	return s
}

func (s *service) logFile() string { return filepath.Join(s.dir, s.name+".log") }

// start starts the program, for the first time or again, and waits until it serves.
func (s *service) start(t *testing.T) {
	t.Helper()
	if err := s.spawn(); err != nil {
		t.Fatal(err)
	}
	if err := s.awaitReady(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// spawn starts the process in its own group, without any variable of our environment that could
// be a setting.
func (s *service) spawn() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	log, err := os.OpenFile(s.logFile(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	about, err := log.Stat()
	if err != nil {
		return err
	}
	bin := s.bin
	if !filepath.IsAbs(bin) {
		bin = filepath.Join(suite.bin, bin)
	}
	cmd := exec.Command(bin, s.args...) // not CommandContext: the tests end our own program by signals
	cmd.Dir, cmd.Stdout, cmd.Stderr = s.dir, log, log
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + s.dir, "TMPDIR=" + os.TempDir()}, s.env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start %s: %w", s.name, err)
	}
	suite.janitor.note("add", cmd.Process.Pid)
	ended := make(chan struct{})
	go func() {
		_ = cmd.Wait()
		suite.janitor.note("del", cmd.Process.Pid)
		close(ended)
	}()
	s.cmd, s.ended, s.started, s.logged = cmd, ended, time.Now(), about.Size()
	return nil
}

func (s *service) awaitReady(ctx context.Context) error {
	if s.ready == "" && s.listens == "" {
		return nil
	}
	err := until(ctx, readyLimit, func() error {
		if s.gone() {
			return &stopError{"it has ended: " + s.cmd.ProcessState.String()}
		}
		url, err := s.readyURL()
		if err != nil {
			return err
		}
		return answers(ctx, url)
	})
	if err != nil {
		return fmt.Errorf("%s does not serve: %w\n%s", s.name, err, tail(s.logFile()))
	}
	return nil
}

// readyURL returns the URL at which the process reports whether it is ready.
func (s *service) readyURL() (string, error) {
	if s.listens == "" {
		return s.ready, nil
	}
	log, err := os.Open(s.logFile())
	if err != nil {
		return "", err
	}
	defer log.Close()
	if _, err := log.Seek(s.logged, io.SeekStart); err != nil {
		return "", err
	}
	for lines := bufio.NewScanner(log); lines.Scan(); {
		var line struct{ Msg, Listener, Address string }
		if json.Unmarshal(lines.Bytes(), &line) == nil && line.Msg == "listening" && line.Listener == s.listens {
			return "http://" + line.Address + "/readyz", nil
		}
	}
	return "", fmt.Errorf("its log does not yet show where %s listens", s.listens)
}

// answers returns nil if the URL answers 200.
func answers(ctx context.Context, url string) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(resp.Body, 1<<10))
		return fmt.Errorf("%s: %s", resp.Status, text)
	}
	return nil
}

// gone reports whether the process has ended.
func (s *service) gone() bool {
	select {
	case <-s.ended:
		return true
	default:
		return false
	}
}

// signal sends a signal to the process, unless the process has ended.
func (s *service) signal(sig syscall.Signal) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cmd != nil && !s.gone() {
		_ = s.cmd.Process.Signal(sig)
	}
}

// kill kills the whole group with kill -9 and waits until the process has ended.
func (s *service) kill() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cmd == nil {
		return
	}
	if !s.gone() {
		_ = syscall.Kill(-s.cmd.Process.Pid, syscall.SIGKILL)
	}
	<-s.ended
}

// restart kills the process and starts it again.
func (s *service) restart(t *testing.T) {
	t.Helper()
	s.kill()
	s.start(t)
}

// awaitKilled waits until the process has killed itself.
func (s *service) awaitKilled(t *testing.T, limit time.Duration) {
	t.Helper()
	select {
	case <-s.ended:
	case <-time.After(limit):
		t.Fatalf("%s has not reached its failpoint within %s", s.name, limit)
	}
	status, ok := s.cmd.ProcessState.Sys().(syscall.WaitStatus)
	if !ok || !status.Signaled() || status.Signal() != syscall.SIGKILL {
		t.Fatalf("%s ended with %s, not by SIGKILL", s.name, s.cmd.ProcessState)
	}
}

// awaitStopped waits until the process is stopped by SIGSTOP.
func (s *service) awaitStopped(t *testing.T, limit time.Duration) {
	t.Helper()
	eventually(t, limit, s.name+" stops", func() error {
		state, err := processState(s.cmd.Process.Pid)
		if err == nil && state != "T" {
			err = fmt.Errorf("its state is %q", state)
		}
		return err
	})
}

// processState returns the letter that ps shows for the process.
func processState(pid int) (string, error) {
	out, err := exec.Command("ps", "-o", "state=", "-p", strconv.Itoa(pid)).Output() // the argument is a number, and ps returns at once
	return string(bytes.TrimSpace(out[:min(len(out), 1)])), err
}

// terminate sends SIGTERM to the process. It returns the exit status and how long the process
// took to end.
func (s *service) terminate(t *testing.T, limit time.Duration) (int, time.Duration) {
	t.Helper()
	began := time.Now()
	s.signal(syscall.SIGTERM)
	select {
	case <-s.ended:
	case <-time.After(limit):
		t.Fatalf("%s still runs %s after SIGTERM", s.name, limit)
	}
	return s.cmd.ProcessState.ExitCode(), time.Since(began)
}

// tail returns the end of a file.
func tail(name string) string {
	text, err := os.ReadFile(name)
	if err != nil {
		return err.Error()
	}
	return string(text[max(0, len(text)-logTail):])
}

// janitor is a small process that outlives ours. If we die without cleaning up (a panic, the
// tests' own timeout, SIGKILL), the pipe that it reads closes, and it kills the remaining
// groups.
type janitor struct {
	mu   sync.Mutex
	cmd  *exec.Cmd
	pipe io.WriteCloser
}

const janitorScript = `all=
while read -r op pid; do
	case $op in
	add) all="$all $pid" ;;
	del) rest=; for p in $all; do [ "$p" = "$pid" ] || rest="$rest $p"; done; all=$rest ;;
	esac
done
for p in $all; do kill -KILL "-$p" 2>/dev/null; done`

func hireJanitor() (*janitor, error) {
	cmd := exec.Command("/bin/sh", "-c", janitorScript)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	pipe, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	return &janitor{cmd: cmd, pipe: pipe}, cmd.Start()
}

func (j *janitor) note(op string, pid int) {
	j.mu.Lock()
	defer j.mu.Unlock()
	_, _ = fmt.Fprintln(j.pipe, op, pid)
}

// dismiss lets the janitor kill the remaining groups and waits for its end.
func (j *janitor) dismiss() {
	_ = j.pipe.Close()
	_ = j.cmd.Wait()
}
