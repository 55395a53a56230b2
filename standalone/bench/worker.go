package main

import (
	"bufio"
	"context"
	"encoding/gob"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"runtime"
	"sync"

	"github.com/mediagate/mediagate/cmd/mediagate/app"
)

// memory is what a worker process uses, garbage collected.
type memory struct {
	Heap       uint64 `json:"heap"`
	Stacks     uint64 `json:"stacks"`
	Goroutines int    `json:"goroutines"`
}

func (m memory) bytes() int64 { return int64(m.Heap + m.Stacks) }

// process is this program again, as a part of a measurement.
type process struct {
	cmd    *exec.Cmd
	in     io.WriteCloser
	out    *json.Decoder
	ending sync.Once
	err    error
}

// startProcess starts it as what the flag says, worker, api or flood, which
// begins by reading its settings.
func startProcess(ctx context.Context, o options, as string, settings any) (*process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	args := []string{"-" + as}
	if o.profile != "" && as != "flood" {
		args = append(args, "-cpuprofile", o.profile+"."+as)
	}
	cmd := exec.CommandContext(context.WithoutCancel(ctx), self, args...) //nolint:gosec // ourselves
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	w := &process{cmd: cmd, in: in, out: json.NewDecoder(out)}
	if err := sendSettings(in, settings); err != nil {
		return nil, errors.Join(err, w.stop())
	}
	return w, nil
}

// memory asks the worker what it uses now.
func (w *process) memory() (m memory, err error) {
	if _, err := io.WriteString(w.in, "memory\n"); err != nil {
		return m, fmt.Errorf("ask the worker: %w", err)
	}
	if err := w.out.Decode(&m); err != nil {
		return m, fmt.Errorf("ask the worker: %w", err)
	}
	return m, nil
}

// stop ends the process by closing its input.
func (w *process) stop() error {
	w.ending.Do(func() { w.err = errors.Join(w.in.Close(), w.cmd.Wait()) })
	return w.err
}

// kill ends the worker as kill -9 does. That it did not end by itself is no error.
func (w *process) kill() {
	w.ending.Do(func() {
		_ = w.cmd.Process.Kill()
		_ = w.cmd.Wait()
		_ = w.in.Close()
	})
}

// serveWorker is the worker process: settings first, then a question a line,
// until the input ends.
func serveWorker(ctx context.Context, in io.Reader, out io.Writer, o options) error {
	lines := bufio.NewReader(in)
	g, end, err := openPart(ctx, lines, o, func(app.Config) *slog.Logger { return slog.New(slog.DiscardHandler) })
	if err != nil {
		return err
	}
	defer end()
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() { done <- g.RunWorker(ctx) }()
	for {
		if _, err := lines.ReadString('\n'); err != nil {
			cancel()
			if err := <-done; !errors.Is(err, context.Canceled) {
				return err
			}
			return nil
		}
		if err := json.NewEncoder(out).Encode(usage()); err != nil {
			cancel()
			return errors.Join(err, <-done)
		}
	}
}

// openPart opens the gateway of a process that is a part of a measurement, and
// its profile; end closes both.
func openPart(ctx context.Context, lines *bufio.Reader, o options, logger func(app.Config) *slog.Logger) (g *app.Gateway, end func(), err error) {
	stopProfile, err := profile(o.profile)
	if err != nil {
		return nil, nil, err
	}
	c, err := readSettings[app.Config](lines)
	if err == nil {
		g, err = app.Open(ctx, c, app.Options{Version: "bench", Logger: logger(c)})
	}
	if err != nil {
		stopProfile()
		return nil, nil, err
	}
	return g, func() { g.Close(); stopProfile() }, nil
}

// sendSettings writes what readSettings reads. As JSON the gateway's settings have
// no secrets.
func sendSettings(w io.Writer, settings any) error { return gob.NewEncoder(w).Encode(settings) }

// readSettings reads what sendSettings wrote, and not a byte more.
func readSettings[T any](lines *bufio.Reader) (c T, err error) {
	if err := gob.NewDecoder(lines).Decode(&c); err != nil {
		return c, fmt.Errorf("read the settings: %w", err)
	}
	return c, nil
}

// usage collects garbage, twice since finalizers free more, and measures.
func usage() memory {
	runtime.GC()
	runtime.GC()
	var s runtime.MemStats
	runtime.ReadMemStats(&s)
	return memory{Heap: s.HeapAlloc, Stacks: s.StackInuse, Goroutines: runtime.NumGoroutine()}
}
