package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"github.com/mediagate/mediagate"
)

// measureMemory runs tasks through the standalone program, all of it in one
// process, and looks at the most memory that it had.
func measureMemory(ctx context.Context, m *machine) ([]row, error) {
	g, pid, err := m.startStandalone(ctx)
	if err != nil {
		return nil, err
	}
	tasks := m.size(20_000, 5_000)
	if _, err := times(16, tasks, g.submitAndWait)(ctx); err != nil {
		return nil, err
	}
	peak, err := peakRow(fmt.Sprintf("in %d tasks, 16 at a time", tasks), pid, 700<<20)
	return []row{peak}, err
}

// startStandalone builds the program of this module and starts it on free ports,
// in a folder of its own. It returns its one account and its process id.
func (m *machine) startStandalone(ctx context.Context) (*gateway, int, error) {
	program, folder := filepath.Join(m.dir, "mediagate-standalone"), filepath.Join(m.dir, "standalone")
	build := exec.CommandContext(ctx, "go", "build", "-o", program, "github.com/mediagate/mediagate/standalone") //nolint:gosec // ourselves
	build.Dir = m.source
	if out, err := build.CombinedOutput(); err != nil {
		return nil, 0, fmt.Errorf("build the standalone: %w\n%s", err, out)
	}
	const free = "127.0.0.1:0"
	cmd := exec.CommandContext(context.WithoutCancel(ctx), program, "-data", folder, //nolint:gosec // what was built
		"-api", free, "-temporal", free, "-ui", free, "-s3", free, "-sandbox", free, "-ops", free)
	if err := cmd.Start(); err != nil {
		return nil, 0, err
	}
	m.closers = append(m.closers, func() error { return errors.Join(cmd.Process.Signal(syscall.SIGTERM), cmd.Wait()) })
	g := &gateway{m: m, http: newHTTP()}
	m.later(g.http.CloseIdleConnections)
	return g, cmd.Process.Pid, until(ctx, "the standalone serves", breath, time.Minute, func(context.Context) (bool, error) {
		raw, err := os.ReadFile(filepath.Join(folder, "standalone.json"))
		if errors.Is(err, os.ErrNotExist) {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		var where struct{ API, Key string }
		err = json.Unmarshal(raw, &where)
		g.url, g.secret = where.API, where.Key
		return true, err
	})
}

// submitAndWait has the sandbox make an image at once, and waits for it as a client
// does.
func (g *gateway) submitAndWait(ctx context.Context) error {
	id, err := g.submit(ctx, imagePath, `{"model": "theta-image-turbo", "prompt": "a red kite [[sandbox: duration=0s]]"}`)
	if err != nil {
		return err
	}
	return until(ctx, id+" has ended", breath, 5*time.Minute, func(ctx context.Context) (bool, error) {
		answer, err := g.get(ctx, "/v1/tasks/"+id+"?wait=30") // at its end
		if err != nil {
			return false, err
		}
		var task struct {
			Data struct{ Status mediagate.Status }
		}
		if err := json.Unmarshal(answer, &task); err != nil {
			return false, err
		}
		status := task.Data.Status
		if status.Terminal() && status != mediagate.StatusCompleted {
			return false, fmt.Errorf("%s is %s: %s", id, status, answer)
		}
		return status == mediagate.StatusCompleted, nil
	})
}
