package e2e_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"sync"
	"testing"

	"github.com/mediagate/mediagate/internal/npmtest"
)

// TestConsoleCode checks the code that the console shows, in each language: it ends with the
// file, and prints the error of a refused request. The scenario reads each program from the page
// and has it run here.
func TestConsoleCode(t *testing.T) {
	t.Parallel()
	browser, err := exec.LookPath("chromium")
	if err != nil && os.Getenv("CI") == "" {
		t.Skip("chromium is missing: the console is not tested")
	}
	folder := npmtest.Install(t, "console", filepath.Join("testdata", "console"))
	w := newWorld(t, options{shape: standalone})
	root, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	p := codeRunner{root: root, key: w.key, pkg: sync.OnceValue(func() string { return typescriptClient(t, root) })}
	b := browsing{w: w, folder: folder, browser: browser, does: map[string]func(json.RawMessage) (any, error){
		"run": func(with json.RawMessage) (any, error) {
			var asked shownCode
			if err := json.Unmarshal(with, &asked); err != nil {
				return nil, err
			}
			asked.folder = t.TempDir()
			return p.run(t, asked)
		},
	}}
	b.run(t, "code", map[string]any{"key": w.key})
}

// typescriptClient builds the package of our TypeScript client and returns its folder. Programs
// below the folder can import the package by its name.
func typescriptClient(t *testing.T, root string) string {
	t.Helper()
	pkg := npmtest.InstallPackage(t, filepath.Join(root, "client", "typescript"))
	npmtest.Run(t, pkg, nil, nil, "node", "types.mjs", filepath.Join(root, "api", "openapi.yaml"))
	npmtest.Run(t, pkg, nil, nil, "node_modules/.bin/tsc")
	return pkg
}

// shownCode is a program that the console shows.
type shownCode struct {
	Language string `json:"language"`
	Code     string `json:"code"`
	Key      string `json:"key"`  // used instead of the valid key
	File     string `json:"file"` // the file that it saves without printing its name
	folder   string
}

// codeResult is the result of a program.
type codeResult struct {
	Code   int    `json:"code"`
	Output string `json:"output"`
	Bytes  int64  `json:"bytes"` // size of the file that it saved; 0: none
}

// codeRunner runs programs with the tools of their languages.
type codeRunner struct {
	root, key string
	pkg       func() string // folder of our TypeScript client
}

var savedFile = regexp.MustCompile(`(task_[0-9A-HJKMNP-TV-Z]{26}-[01]|speech)\.\w+`)

func (p codeRunner) run(t *testing.T, s shownCode) (codeResult, error) {
	t.Helper()
	args, err := p.prepare(t, s)
	if err != nil {
		return codeResult{}, err
	}
	key := p.key
	if s.Key != "" {
		key = s.Key
	}
	cmd := exec.CommandContext(t.Context(), args[0], args[1:]...)
	cmd.Dir = s.folder
	cmd.Env = append(os.Environ(), "MEDIAGATE_API_KEY="+key,
		"PYTHONPATH="+filepath.Join(p.root, "client", "python"), "PYTHONDONTWRITEBYTECODE=1", "PATH="+suite.bin+string(os.PathListSeparator)+os.Getenv("PATH"))
	out, err := cmd.CombinedOutput()
	result := codeResult{Output: string(out)}
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		result.Code = exit.ExitCode()
	} else if err != nil {
		return result, err
	}
	if s.File != "" {
		if info, err := os.Stat(filepath.Join(s.folder, s.File)); err == nil {
			result.Bytes = info.Size()
		}
	} else if name := savedFile.FindString(result.Output); name != "" {
		info, err := os.Stat(filepath.Join(s.folder, name))
		if err != nil {
			return result, fmt.Errorf("%s printed %s: %w", s.Language, out, err)
		}
		result.Bytes = info.Size()
	}
	return result, nil
}

// prepare writes the program to its folder, compiles it if its language needs that, and returns
// the command that runs it.
func (p codeRunner) prepare(t *testing.T, s shownCode) (args []string, err error) {
	t.Helper()
	folder := s.folder
	var name string
	switch s.Language {
	case "curl", "mediagate":
		name = "program.sh"
	case "Python", "Python client":
		name = "program.py"
	case "Go", "Go client":
		name = "main.go"
	case "TypeScript", "TypeScript client":
		folder, name = p.pkg(), "program.mts" // the folder in which the name of our client's package resolves
	default:
		return nil, fmt.Errorf("no tools for %s", s.Language)
	}
	path := filepath.Join(folder, name)
	if err := os.WriteFile(path, []byte(s.Code), 0o600); err != nil {
		return nil, err
	}
	switch filepath.Ext(name) {
	case ".sh":
		return []string{"sh", path}, nil
	case ".py":
		return []string{"python3", path}, nil
	case ".go": // built within the module, which contains our client
		binary := filepath.Join(folder, "program")
		npmtest.Run(t, p.root, nil, nil, "go", "build", "-o", binary, path)
		return []string{binary}, nil
	default: // the compiler only removes the types
		npmtest.Run(t, folder, nil, nil, "node_modules/.bin/tsc", "--noCheck", "--target", "es2022", "--module", "nodenext", path)
		return []string{"node", filepath.Join(folder, "program.mjs")}, nil
	}
}
