package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// measureConsole opens pages of the console in a browser that was never there before.
// Bytes are those that cross the network, the floor is the same browser with an answer of
// a few bytes.
func measureConsole(ctx context.Context, m *machine) ([]row, error) {
	g, _, err := m.startStandalone(ctx)
	if err != nil {
		return nil, err
	}
	browser, err := exec.LookPath("chromium")
	if err != nil {
		return nil, err
	}
	folder := filepath.Join(m.dir, "browser")
	if err := os.CopyFS(folder, os.DirFS(filepath.Join(m.source, "e2e", "testdata", "console"))); err != nil {
		return nil, err
	}
	if _, err := output(ctx, folder, "npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"); err != nil {
		return nil, err
	}
	args, err := json.Marshal(map[string]any{"key": g.secret, "times": m.size(9, 3)})
	if err != nil {
		return nil, err
	}
	out, err := output(ctx, folder, "node", "scenarios.mjs", browser, g.url, "load", string(args))
	if err != nil {
		return nil, err
	}
	var rows []row
	for lines := json.NewDecoder(bytes.NewReader(out)); lines.More(); {
		var loaded struct {
			Page     string
			Bytes    int64
			Requests int
			PaintMS  float64 `json:"paint_ms"`
			FloorMS  float64 `json:"floor_ms"`
		}
		if err := lines.Decode(&loaded); err != nil {
			return nil, err
		}
		const most = 200_000
		rows = append(rows,
			row{
				what: loaded.Page + ", first load", measured: fmt.Sprintf("%d kB in %d requests", loaded.Bytes/1000, loaded.Requests),
				aim: fmt.Sprintf("≤ %d kB", most/1000), met: loaded.Bytes <= most,
			},
			row{
				what: loaded.Page + ", until something is shown, median", measured: short(time.Duration(loaded.PaintMS * float64(time.Millisecond))),
				floor: short(time.Duration(loaded.FloorMS*float64(time.Millisecond))) + ", an answer of a few bytes",
				ratio: fmt.Sprintf("× %.2f", loaded.PaintMS/max(loaded.FloorMS, 1)),
			})
	}
	return rows, nil
}

// output runs a program in the folder and returns what it prints.
func output(ctx context.Context, folder, name string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, name, args...) //nolint:gosec // npm and node, in a folder of ours
	cmd.Dir = folder
	var problems bytes.Buffer
	cmd.Stderr = &problems
	out, err := cmd.Output()
	if err != nil {
		err = fmt.Errorf("%s: %w\n%s", name, err, problems.Bytes())
	}
	return out, err
}
