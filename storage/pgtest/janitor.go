package pgtest

import (
	"fmt"
	"io"
	"os/exec"
	"strconv"
	"syscall"
)

// janitor is a small process that outlives ours. When we die without saying
// goodbye (a panic in a test, its timeout, SIGKILL), the pipe it reads from
// closes; then it ends the server and removes the folder.
type janitor struct {
	cmd  *exec.Cmd
	pipe io.Closer
}

const janitorScript = `cat >/dev/null
kill -QUIT "$1" 2>/dev/null
for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
	kill -0 "$1" 2>/dev/null || break
	sleep 0.1
done
if [ -n "$2" ]; then rm -rf "$2"; fi`

// hire starts a janitor for the process; folder may be empty.
func hire(pid int, folder string) (*janitor, error) {
	cmd := exec.Command("/bin/sh", //nolint:gosec,noctx // a fixed script; it outlives us on purpose
		"-c", janitorScript, "janitor", strconv.Itoa(pid), folder)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // an interrupt at the terminal is not for it
	pipe, err := cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("start the janitor: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start the janitor: %w", err)
	}
	return &janitor{cmd: cmd, pipe: pipe}, nil
}

// dismiss ends the janitor before it does anything: we clean up ourselves.
func (j *janitor) dismiss() {
	_ = j.cmd.Process.Kill()
	_ = j.cmd.Wait()
	_ = j.pipe.Close()
}
