// Command demo runs the gateway's main job once, on real parts: it starts the
// standalone program in a fresh folder, makes a video, an image, a song and, of
// an image that it uploads, four pictures and one of them in full, as any client
// would. It shows their progress, verifies the signed webhooks, saves the files,
// has a sentence spoken, and stops everything.
//
// It uses the standard library only: what it does, a client can do.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"image"
	"image/color"
	"image/draw"
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

// jobs are what the demo asks for, one after the other; picture is the link to
// an image that was uploaded.
func jobs(picture string) []job {
	return []job{
		{"a video", "/v1/videos/generations", map[string]any{
			"model": "alpha-v3", "duration": 5, "aspect_ratio": "16:9",
			"prompt": "a paper boat sails down a rainy street [[sandbox: duration=3s]]",
		}},
		{"an image", "/v1/images/generations", map[string]any{
			"model": "theta-image-turbo", "size": "4:3", "prompt": "a lighthouse at dawn, watercolour",
		}},
		{"a song", "/v1/music/generations", map[string]any{
			"model": "music-a", "title": "Paper boat", "tags": "sea shanty", "prompt": "[Verse]\nA paper boat sails down the street",
		}},
		{"four pictures, after the uploaded one", "/v1/artgen/generations", map[string]any{
			"prompt": "a lighthouse like this, at night", "image_urls": []string{picture}, "size": "16:9",
		}},
		{"the second of them", "/v1/artgen/generations/upscale", map[string]any{"task_id": last, "index": 2}},
	}
}

type job struct {
	what     string
	endpoint string
	body     map[string]any
}

// last stands in a job's body for the id of the task before.
const last = "the task before"

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
	had, err := c.balance(ctx)
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

	picture, err := c.upload(ctx, "lighthouse.png", lighthouse())
	if err != nil {
		return err
	}
	_, _ = fmt.Fprintf(out, "an upload: %s\n\n", picture)
	before := ""
	for _, j := range jobs(picture) {
		j.body["webhook"] = hooks.url
		if j.body["task_id"] == last {
			j.body["task_id"] = before
		}
		id, err := c.submit(ctx, j)
		if err != nil {
			return err
		}
		before = id
		_, _ = fmt.Fprintf(out, "%s: %s\n", j.what, id)
		task, err := c.follow(ctx, id, out)
		if err != nil {
			return err
		}
		_, _ = fmt.Fprintf(out, "            by %s\n", task.Model)
		files, err := save(ctx, task, folder)
		if err != nil {
			return err
		}
		for _, file := range files {
			_, _ = fmt.Fprintf(out, "  saved     %s\n", file)
		}
		if err := hooks.expect(ctx, id); err != nil {
			return err
		}
		_, _ = fmt.Fprintf(out, "  webhook   delivered, signature verified\n  charged   %s USD\n\n", task.Cost)
	}
	spoken := filepath.Join(folder, "speech.mp3")
	size, err := c.speak(ctx, "The boat has passed the lighthouse.", spoken)
	if err != nil {
		return err
	}
	_, _ = fmt.Fprintf(out, "a sentence, spoken while it is made\n  saved     %s (%d bytes)\n\n", spoken, size)
	left, err := c.balance(ctx)
	if err != nil {
		return err
	}
	_, _ = fmt.Fprintf(out, "balance    %.4f USD before, %.4f USD after\n", had, left)
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

// save downloads the task's files.
func save(ctx context.Context, t task, folder string) ([]string, error) {
	var saved []string
	for i, item := range t.items() {
		name := filepath.Join(folder, fmt.Sprintf("%s-%d%s", t.ID, i+1, extension(item.MimeType)))
		n, err := download(ctx, item.URL[0], name)
		if err != nil {
			return nil, err
		}
		about := fmt.Sprintf("%dx%d", item.Width, item.Height)
		if item.Width == 0 {
			about = fmt.Sprintf("%.1f s", item.Duration)
		}
		saved = append(saved, fmt.Sprintf("%s (%s, %s, %d bytes)", name, item.MimeType, about, n))
	}
	if len(saved) == 0 {
		return nil, fmt.Errorf("task %s has no result", t.ID)
	}
	return saved, nil
}

func download(ctx context.Context, link, name string) (int64, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, link, nil)
	if err != nil {
		return 0, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return 0, fmt.Errorf("the result's link answered %s", resp.Status)
	}
	return store(name, resp.Body)
}

func store(name string, content io.Reader) (int64, error) {
	file, err := os.Create(name)
	if err != nil {
		return 0, err
	}
	n, err := io.Copy(file, content)
	return n, errors.Join(err, file.Close())
}

func extension(mime string) string {
	switch mime {
	case "video/mp4":
		return ".mp4"
	case "image/png":
		return ".png"
	case "audio/mpeg":
		return ".mp3"
	default:
		return ""
	}
}

// lighthouse is a small picture: a tower and its light before the sky.
func lighthouse() image.Image {
	const width, height = 320, 180
	picture := image.NewRGBA(image.Rect(0, 0, width, height))
	draw.Draw(picture, picture.Bounds(), image.NewUniform(color.RGBA{24, 32, 72, 255}), image.Point{}, draw.Src)
	draw.Draw(picture, image.Rect(150, 60, 170, height), image.NewUniform(color.White), image.Point{}, draw.Src)
	draw.Draw(picture, image.Rect(145, 45, 175, 60), image.NewUniform(color.RGBA{255, 220, 96, 255}), image.Point{}, draw.Src)
	return picture
}
