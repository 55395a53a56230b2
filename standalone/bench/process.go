package main

import (
	"bufio"
	"context"
	"encoding/gob"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"sync"

	"github.com/mediagate/mediagate/cmd/mediagate/app"
)

// process is this program again, as a part of a measurement. It reads its settings
// first, and ends when its input does.
type process struct {
	cmd    *exec.Cmd
	in     io.WriteCloser
	out    *json.Decoder
	ending sync.Once
	err    error
}

// start starts a process as the part of that name, until the measurement is over.
func (m *machine) start(ctx context.Context, part string, settings any) (*process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(context.WithoutCancel(ctx), self, "-part", part) //nolint:gosec // ourselves
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
	p := &process{cmd: cmd, in: in, out: json.NewDecoder(out)}
	m.closers = append(m.closers, p.stop)
	return p, sendSettings(in, settings)
}

// stop ends the process by closing its input.
func (p *process) stop() error {
	p.ending.Do(func() { p.err = errors.Join(p.in.Close(), p.cmd.Wait()) })
	return p.err
}

// servePart is such a process.
func servePart(ctx context.Context, part string, in *bufio.Reader, out io.Writer) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	switch answers := json.NewEncoder(out); part {
	case "worker":
		return serveWorker(ctx, in, answers)
	case "api":
		return serveAPI(ctx, in, answers)
	case "crowd":
		return serveCrowd(ctx, in, answers)
	default:
		return fmt.Errorf("-part: there is no part %q", part)
	}
}

// serveWorker is a worker, which answers each line with what it uses.
func serveWorker(ctx context.Context, in *bufio.Reader, answers *json.Encoder) error {
	g, err := openPart(ctx, in)
	if err != nil {
		return err
	}
	defer g.Close()
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() { done <- g.RunWorker(ctx) }()
	for err == nil {
		if _, err = in.ReadString('\n'); err == nil {
			err = answers.Encode(usage())
		}
	}
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

// serveAPI is an API, which begins with saying its address.
func serveAPI(ctx context.Context, in *bufio.Reader, answers *json.Encoder) error {
	g, err := openPart(ctx, in)
	if err != nil {
		return err
	}
	defer g.Close()
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() { done <- g.Run(ctx, app.Roles{API: listener}) }()
	err = answers.Encode("http://" + listener.Addr().String())
	_, _ = io.Copy(io.Discard, in)
	cancel()
	return errors.Join(err, <-done)
}

// openPart opens the gateway of the settings that are read, with the memory of
// production.
func openPart(ctx context.Context, in *bufio.Reader) (*app.Gateway, error) {
	c, err := readSettings[app.Config](in)
	if err != nil {
		return nil, err
	}
	log := app.NewLogger(c, io.Discard)
	app.LimitMemory(ctx, log)
	return app.Open(ctx, c, app.Options{Version: "bench", Logger: log})
}

// sendSettings writes what readSettings reads. As JSON the gateway's settings have
// no secrets.
func sendSettings(w io.Writer, settings any) error { return gob.NewEncoder(w).Encode(settings) }

// readSettings reads what sendSettings wrote, and not a byte more.
func readSettings[T any](in *bufio.Reader) (c T, err error) {
	if err := gob.NewDecoder(in).Decode(&c); err != nil {
		return c, fmt.Errorf("read the settings: %w", err)
	}
	return c, nil
}

// usage is the heap and the stacks of this process in bytes. It collects garbage
// before, twice since finalizers free more.
func usage() uint64 {
	runtime.GC()
	runtime.GC()
	var s runtime.MemStats
	runtime.ReadMemStats(&s)
	return s.HeapAlloc + s.StackInuse
}

// usage asks a worker what it uses.
func (p *process) usage() (bytes uint64, err error) {
	if _, err := io.WriteString(p.in, "usage\n"); err != nil {
		return 0, fmt.Errorf("ask the worker: %w", err)
	}
	if err := p.out.Decode(&bytes); err != nil {
		return 0, fmt.Errorf("ask the worker: %w", err)
	}
	return bytes, nil
}

// peakMemory is the most that a process has had resident, in bytes.
func peakMemory(pid int) (int64, error) {
	status, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(status)) {
		if rest, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			kib, err := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
			return kib << 10, err
		}
	}
	return 0, errors.New("/proc says nothing of a process's memory")
}

// peakRow is the row of such a figure.
func peakRow(what string, pid int, most int64) (row, error) {
	peak, err := peakMemory(pid)
	return row{
		what: what, measured: fmt.Sprintf("%d MiB", peak>>20), floor: "resident, at its peak", aim: fmt.Sprintf("≤ %d MiB", most>>20), met: peak <= most,
	}, err
}
