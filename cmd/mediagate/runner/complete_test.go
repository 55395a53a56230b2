package runner_test

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/mediagate/mediagate/cmd/mediagate/runner"
)

// TestCompleteWords checks that models with characters special to a shell are not offered.
func TestCompleteWords(t *testing.T) {
	t.Parallel()
	gateway := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"data":[{"id":"alpha-v3"},{"id":"al$(id)"},{"id":"al\u001b[2J"},{"id":"al pha"},{"id":"al\npha"}]}`)
	}))
	defer gateway.Close()
	var out bytes.Buffer
	runner.Complete(t.Context(), []string{"run", "al"}, nil, []string{"MEDIAGATE_URL=" + gateway.URL, "MEDIAGATE_API_KEY=key"}, &out)
	if out.String() != "alpha-v3\n" {
		t.Errorf("offered: %q", out.String())
	}
}

// TestCompletionRunsNothing checks that bash runs nothing of the offered words.
func TestCompletionRunsNothing(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	var script bytes.Buffer
	if err := runner.Completion("bash", &script); err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(folder, "mediagate")
	if err := os.WriteFile(program, []byte("#!/bin/sh\necho alpha\necho '$(touch ran)'\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	script.WriteString("COMP_WORDS=('" + program + "' run ''); COMP_CWORD=2; _mediagate; echo \"${COMPREPLY[0]}\"\n")
	shell := exec.CommandContext(t.Context(), "bash", "-c", script.String())
	shell.Dir = folder
	if out, err := shell.CombinedOutput(); err != nil || string(out) != "alpha\n" {
		t.Errorf("%q, %v", out, err)
	}
	if _, err := os.Stat(filepath.Join(folder, "ran")); err == nil {
		t.Error("the shell ran an offer")
	}
}
