// Command demo runs the gateway's main job once, on real parts: it starts the
// standalone program in a fresh folder, submits a video and an image as any
// client would, shows their progress, verifies the signed webhooks, saves the
// files, and stops everything.
//
// It uses the standard library only: what it does, a client can do.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"
)

func main() {
	standalone := flag.String("standalone", "bin/mediagate-standalone", "the standalone `program`")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, 3*time.Minute)
	defer cancel()
	if err := demo(ctx, *standalone, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		stop()
		cancel()
		os.Exit(1) //nolint:gocritic // both deferred calls were made above
	}
}

// jobs are what the demo asks for.
func jobs() []job {
	return []job{
		{"a video", "/v1/videos/generations", map[string]any{
			"model": "alpha-v3", "duration": 5, "aspect_ratio": "16:9",
			"prompt": "a paper boat sails down a rainy street [[sandbox: duration=3s]]",
		}},
		{"an image", "/v1/images/generations", map[string]any{
			"model": "theta-image-turbo", "size": "4:3", "prompt": "a lighthouse at dawn, watercolour",
		}},
	}
}

type job struct {
	what     string
	endpoint string
	body     map[string]any
}

// where is what the demo reads of standalone.json.
type where struct {
	API string `json:"api"`
	UI  string `json:"ui"`
	Key string `json:"key"`
}

func demo(ctx context.Context, program string, out io.Writer) (err error) {
	folder, err := os.MkdirTemp("", "mediagate-demo-")
	if err != nil {
		return err
	}
	_, _ = fmt.Fprintf(out, "folder     %s\n", folder)
	data := filepath.Join(folder, "data")
	stop, err := start(ctx, program, data, filepath.Join(folder, "log.json"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stop()) }()
	at, err := ready(ctx, data)
	if err != nil {
		return err
	}
	_, _ = fmt.Fprintf(out, "API        %s\nTemporal   %s (while the demo runs)\n\n", at.API, at.UI)

	c := client{base: at.API, key: at.Key}
	before, err := c.balance(ctx)
	if err != nil {
		return err
	}
	secret, err := c.secret(ctx)
	if err != nil {
		return err
	}
	hooks, err := receive(secret)
	if err != nil {
		return err
	}
	defer hooks.close()

	for _, j := range jobs() {
		j.body["webhook"] = hooks.url
		id, err := c.submit(ctx, j)
		if err != nil {
			return err
		}
		_, _ = fmt.Fprintf(out, "%s: %s by %s\n", j.what, id, j.body["model"])
		task, err := c.follow(ctx, id, out)
		if err != nil {
			return err
		}
		file, err := save(ctx, task, folder)
		if err != nil {
			return err
		}
		_, _ = fmt.Fprintf(out, "  saved     %s\n", file)
		if err := hooks.expect(ctx, id); err != nil {
			return err
		}
		_, _ = fmt.Fprintf(out, "  webhook   delivered, signature verified\n  charged   %s USD\n\n", task.Cost)
	}
	after, err := c.balance(ctx)
	if err != nil {
		return err
	}
	_, _ = fmt.Fprintf(out, "balance    %.4f USD before, %.4f USD after\n", before, after)
	_, _ = fmt.Fprintf(out, "files      %s\n", folder)
	return nil
}

// start runs the standalone program on free ports; stop ends it cleanly.
func start(ctx context.Context, program, data, logFile string) (stop func() error, err error) {
	log, err := os.Create(logFile)
	if err != nil {
		return nil, err
	}
	free := "127.0.0.1:0"
	cmd := exec.CommandContext(ctx, program, "-data", data,
		"-api", free, "-temporal", free, "-ui", free, "-s3", free, "-sandbox", free, "-ops", free)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 25 * time.Second
	if err := cmd.Start(); err != nil {
		return nil, errors.Join(fmt.Errorf("start %s (make build makes it): %w", program, err), log.Close())
	}
	return func() error {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		err := cmd.Wait()
		if err != nil {
			err = fmt.Errorf("the standalone program ended badly, see %s: %w", logFile, err)
		}
		return errors.Join(err, log.Close())
	}, nil
}

// ready waits until standalone.json says where everything is.
func ready(ctx context.Context, data string) (where, error) {
	for {
		text, err := os.ReadFile(filepath.Join(data, "standalone.json"))
		if err == nil {
			var w where
			return w, json.Unmarshal(text, &w)
		}
		select {
		case <-ctx.Done():
			return where{}, errors.New("the standalone program did not come up in time")
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// save downloads the task's first file.
func save(ctx context.Context, t task, folder string) (string, error) {
	item, ok := t.first()
	if !ok {
		return "", fmt.Errorf("task %s has no result", t.ID)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, item.URL[0], nil)
	if err != nil {
		return "", err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return "", fmt.Errorf("the result's link answered %s", resp.Status)
	}
	name := filepath.Join(folder, t.ID+extension(item.MimeType))
	file, err := os.Create(name)
	if err != nil {
		return "", err
	}
	n, err := io.Copy(file, resp.Body)
	return fmt.Sprintf("%s (%s, %dx%d, %d bytes)", name, item.MimeType, item.Width, item.Height, n), errors.Join(err, file.Close())
}

func extension(mime string) string {
	switch mime {
	case "video/mp4":
		return ".mp4"
	case "image/png":
		return ".png"
	default:
		return ""
	}
}
