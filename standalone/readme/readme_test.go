package readme_test

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

const scriptPatience = 3 * time.Minute

// TestREADME runs the tagged blocks of the README and of the tour in one shell, one after the
// other, as a reader would paste them.
func TestREADME(t *testing.T) {
	t.Parallel()
	p := start(t)
	ctx, cancel := context.WithTimeout(t.Context(), scriptPatience)
	defer cancel()
	const mark = "\necho '--- block'\n"
	script := "set -euo pipefail\n" + strings.Join(slices.Concat(blocks(t, "README.md", "sh run"), blocks(t, "docs/tour.md", "sh run")), mark)
	shell := exec.CommandContext(ctx, "bash", "-x", "-c", script)
	shell.Dir = p.folder
	shell.Env = append(os.Environ(), "HOOK_PORT="+strconv.Itoa(port(t)))
	// A receiver in the background is killed with the shell's group.
	shell.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	shell.Cancel = func() error { return syscall.Kill(-shell.Process.Pid, syscall.SIGKILL) }
	var out, trace bytes.Buffer
	shell.Stdout, shell.Stderr = &out, &trace
	if err := shell.Run(); err != nil {
		t.Fatalf("%v\n%s\n%s", err, trace.String(), out.String())
	}
	// Besides their success, the blocks must produce the output that the text promises.
	for promise, want := range map[string]string{
		"the quote names a price":           `"cost":0.56,`,
		"the video completes":               `"status":"completed","model":"alpha-v3"`,
		"the image is found by reference":   `"reference":"order-18"`,
		"the upload becomes a video":        `"status":"completed","model":"delta-02"`,
		"the chain completes":               `"status":"completed","model":"beta-q3"`,
		"the film has its source":           `"field":"image_urls[0]","status":"completed"}]`,
		"the webhook is signed":             "/hooks/callback task_",
		"the refused task says why":         `"code":"content_policy_violation"`,
		"the slow task ends as cancelled":   `"status":"cancelled","model":"alpha-video-o1"`,
		"the operator's list has the demo":  "demo",
		"the ledger holds, by the commands": ", 0 problems",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%s: no %q in the output", promise, want)
		}
	}
	if t.Failed() {
		t.Logf("output:\n%s", out.String())
	}
	for name, begins := range map[string]string{
		"boat.mp4": "....ftyp", "tracks.zip": "PK\x03\x04", "second.png": "\x89PNG", "ahoy.mp3": "\xff\xfb",
	} {
		file, err := os.ReadFile(filepath.Join(p.folder, name))
		if err != nil {
			t.Error(err)
			continue
		}
		skipped := strings.Count(begins, ".")
		if len(file) < len(begins) || string(file[skipped:len(begins)]) != begins[skipped:] {
			t.Errorf("%s (%d bytes) is no such file", name, len(file))
		}
	}
}
