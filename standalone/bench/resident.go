package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"
)

const (
	residentClients = 16
	residentEvery   = 100       // tasks between two looks
	residentMost    = 700 << 20 // of the standalone, at its peak
	residentGrowth  = 10.0      // MiB for 1,000 tasks, once its caches are full
	residentBody    = `{"model": "theta-image-turbo", "prompt": "a red kite [[sandbox: duration=0s]]"}`
	residentStart   = time.Minute
)

// measureResident runs tasks through the standalone program, all of it in one
// process, and looks at its memory: at its peak, and how it grows in the second
// half of the tasks. Its own caches fill with the first few thousand.
func measureResident(ctx context.Context, m *machine, o options) (_ []row, err error) {
	tasks := 20_000
	switch {
	case o.long:
		tasks = 100_000
	case o.quick:
		tasks = 5_000
	}
	s, err := m.startStandalone(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.stop()) }()

	var mu sync.Mutex
	var looks []int64
	done := 0
	if err := times(ctx, residentClients, tasks, func(ctx context.Context, _ int) error {
		if err := s.finish(ctx); err != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		if done++; done%residentEvery != 0 {
			return nil
		}
		resident, err := residentMemory(s.pid)
		looks = append(looks, resident)
		if done%1000 == 0 {
			_, _ = fmt.Fprintf(o.verbose, "bench:   standalone: %d MiB after %d tasks\n", resident>>20, done)
		}
		return err
	}); err != nil {
		return nil, err
	}
	peak, err := peakMemory(s.pid)
	if err != nil {
		return nil, err
	}
	growth := perThousand(looks)
	return []row{
		{
			what: fmt.Sprintf("memory of the standalone in %d tasks", tasks), floor: "resident, at its peak",
			value: fmt.Sprintf("%d MiB", peak>>20), aim: fmt.Sprintf("≤ %d MiB", residentMost>>20), met: peak <= residentMost,
		},
		{
			what: "its growth in the second half of them", floor: "1,000 tasks",
			value: fmt.Sprintf("%+.1f MiB", growth), aim: fmt.Sprintf("≤ %+.0f MiB", residentGrowth), met: growth <= residentGrowth,
		},
	}, nil
}

// perThousand is how many MiB the memory grows by in a thousand tasks, by the means
// of the third and the fourth quarter of the looks: one by itself says more of the
// garbage collector.
func perThousand(looks []int64) float64 {
	quarter := len(looks) / 4
	if quarter == 0 {
		return 0
	}
	mean := func(looks []int64) float64 {
		var sum int64
		for _, bytes := range looks {
			sum += bytes
		}
		return float64(sum) / float64(len(looks))
	}
	third, fourth := looks[len(looks)-2*quarter:len(looks)-quarter], looks[len(looks)-quarter:]
	return (mean(fourth) - mean(third)) / (1 << 20) / (float64(quarter*residentEvery) / 1000)
}

// standalone is the program of this module, running in a folder of its own, as its
// client.
type standalone struct {
	gateway
	cmd *exec.Cmd
	pid int
}

// startStandalone builds the program and starts it on free ports.
func (m *machine) startStandalone(ctx context.Context) (*standalone, error) {
	program, folder := filepath.Join(m.dir, "mediagate-standalone"), filepath.Join(m.dir, "standalone")
	build := exec.CommandContext(ctx, "go", "build", "-o", program, "github.com/mediagate/mediagate/standalone") //nolint:gosec // ourselves
	build.Dir = m.source
	if out, err := build.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("build the standalone: %w\n%s", err, out)
	}
	log, err := os.Create(folder + ".log")
	if err != nil {
		return nil, err
	}
	defer log.Close()
	const free = "127.0.0.1:0"
	cmd := exec.CommandContext(context.WithoutCancel(ctx), program, "-data", folder, //nolint:gosec // what was built
		"-api", free, "-temporal", free, "-ui", free, "-s3", free, "-sandbox", free, "-ops", free)
	cmd.Stderr = log
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	s := &standalone{gateway: gateway{http: newHTTP()}, cmd: cmd, pid: cmd.Process.Pid}
	if err := until(ctx, "the standalone serves", residentStart, func(context.Context) (bool, error) {
		raw, err := os.ReadFile(filepath.Join(folder, "standalone.json"))
		if errors.Is(err, os.ErrNotExist) {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		var where struct {
			API, Key string
			AdminKey string `json:"admin_key"`
		}
		if err := json.Unmarshal(raw, &where); err != nil {
			return false, err
		}
		s.url, s.secret = where.API, where.Key
		operator := gateway{url: where.API, secret: where.AdminKey, http: s.http}
		return true, operator.fund(ctx)
	}); err != nil {
		return nil, errors.Join(err, s.stop())
	}
	return s, nil
}

// fund gives the account of the first start more than all tasks cost.
func (g *gateway) fund(ctx context.Context) error {
	const accounts = "/admin/v1/accounts"
	answer, err := g.get(ctx, accounts)
	if err != nil {
		return err
	}
	var list struct{ Data []struct{ ID string } }
	if err := json.Unmarshal(answer, &list); err != nil {
		return err
	}
	if len(list.Data) != 1 {
		return fmt.Errorf("the standalone has more than one account, or none: %s", answer)
	}
	_, err = g.post(ctx, accounts+"/"+list.Data[0].ID+"/grants", []byte(`{"amount": "1000000", "reference": "a hundred thousand tasks"}`), nil)
	return err
}

// stop ends the program as a signal does.
func (s *standalone) stop() error {
	s.http.CloseIdleConnections()
	return errors.Join(s.cmd.Process.Signal(syscall.SIGTERM), s.cmd.Wait())
}

// finish submits a task and waits for its end.
func (s *standalone) finish(ctx context.Context) error {
	answer, err := s.post(ctx, imagePath, []byte(residentBody), nil)
	if err != nil {
		return err
	}
	id, err := acknowledged(answer)
	if err != nil {
		return err
	}
	return until(ctx, id+" has ended", 5*time.Minute, func(ctx context.Context) (bool, error) {
		answer, err := s.get(ctx, "/v1/tasks/"+id+"?wait=30") // at its end
		if err != nil {
			return false, err
		}
		var task struct{ Data struct{ Status string } }
		if err := json.Unmarshal(answer, &task); err != nil {
			return false, err
		}
		switch status := task.Data.Status; status {
		case "completed":
			return true, nil
		case "failed", "cancelled":
			return false, fmt.Errorf("%s is %s: %s", id, status, answer)
		default:
			return false, nil
		}
	})
}

// residentMemory is what a process has resident now.
func residentMemory(pid int) (int64, error) { return processMemory(pid, "VmRSS:") }
