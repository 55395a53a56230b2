package pgtest

import (
	"fmt"
	"io"
	"os/exec"
	"strconv"
	"syscall"
)

// janitor is a small process that cleans up if this process dies without calling Stop, for example
// by a panic in a test, a test's timeout, or SIGKILL. The pipe from which the janitor reads then
// closes, and the janitor ends the server and removes the folder.
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

// hire starts a janitor that ends the process with that id and removes the folder, if one is given.
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

// dismiss ends the janitor before it does anything, since the caller cleans up itself.
func (j *janitor) dismiss() {
	_ = j.cmd.Process.Kill()
	_ = j.cmd.Wait()
	_ = j.pipe.Close()
}
