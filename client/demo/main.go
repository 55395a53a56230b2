// Command demo runs the gateway's main job once, with real components. It starts the standalone
// program in a fresh folder. Through package client, as any user would, it makes a video, an
// image and a song. It uploads an image, makes four images from it, and upscales one of them.
// It shows the progress of the tasks, verifies the signed webhooks, saves the files, makes a
// speech, and stops everything.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"io"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/mediagate/mediagate/client"
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

// jobs returns the jobs of the demo, in order. picture is the address of an uploaded image.
func jobs(picture string) []job {
	return []job{
		{"a video", "/v1/videos/generations", "alpha-v3", map[string]any{
			"duration": 5, "aspect_ratio": "16:9",
			"prompt": "a paper boat sails down a rainy street [[sandbox: duration=3s]]",
		}},
		{"an image", "/v1/images/generations", "theta-image-turbo", map[string]any{
			"size": "4:3", "prompt": "a lighthouse at dawn, watercolour",
		}},
		{"a song", "/v1/music/generations", "music-a", map[string]any{
			"title": "Paper boat", "tags": "sea shanty", "prompt": "[Verse]\nA paper boat sails down the street",
		}},
		{"four images, after the uploaded one", "/v1/artgen/generations", "art", map[string]any{
			"prompt": "a lighthouse like this, at night", "image_urls": []string{picture}, "size": "16:9",
		}},
		{"the second of them", "/v1/artgen/generations/upscale", "art", map[string]any{"task_id": last, "index": 2}},
	}
}

type job struct {
	what     string
	endpoint string
	model    string
	fields   map[string]any
}

// last is replaced in a job's fields by the id of the task before.
const last = "the task before"

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

	c := &client.Client{URL: at.API, Key: at.Key}
	had, err := balance(ctx, c)
	if err != nil {
		return err
	}
	var signing struct {
		Secret string `json:"secret"`
	}
	if err := get(ctx, c, "/v1/webhooks/secret", &signing); err != nil {
		return err
	}
	hooks, err := receive(signing.Secret)
	if err != nil {
		return err
	}
	defer hooks.close()

	var lighthouse bytes.Buffer
	if err := png.Encode(&lighthouse, drawLighthouse()); err != nil {
		return err
	}
	picture, err := c.Upload(ctx, client.Images, "lighthouse.png", &lighthouse)
	if err != nil {
		return err
	}
	_, _ = fmt.Fprintf(out, "an upload: %s\n\n", picture)
	before := ""
	for _, j := range jobs(picture) {
		j.fields["webhook"] = hooks.url
		if j.fields["task_id"] == last {
			j.fields["task_id"] = before
		}
		if before, err = run(ctx, c, j, folder, out); err != nil {
			return err
		}
		task, err := hooks.expect(ctx, before)
		if err != nil {
			return err
		}
		_, _ = fmt.Fprintf(out, "  webhook   delivered, signature verified\n  charged   %s USD\n\n", task.Cost)
	}
	spoken := filepath.Join(folder, "speech.mp3")
	size, err := speak(ctx, c, "The boat has passed the lighthouse.", spoken)
	if err != nil {
		return err
	}
	_, _ = fmt.Fprintf(out, "a sentence\n  saved     %s (%d bytes)\n\n", spoken, size)
	left, err := balance(ctx, c)
	if err != nil {
		return err
	}
	_, _ = fmt.Fprintf(out, "balance    %.4f USD before, %.4f USD after\n", had, left)
	_, _ = fmt.Fprintf(out, "files      %s\n", folder)
	return nil
}

// run submits a job, shows its progress until it has ended, and saves its files. It returns
// the task's id.
func run(ctx context.Context, c *client.Client, j job, folder string, out io.Writer) (id string, err error) {
	id, err = c.Submit(ctx, client.Request{Endpoint: j.endpoint, Model: j.model, Fields: j.fields})
	if err != nil {
		return "", err
	}
	_, _ = fmt.Fprintf(out, "%s: %s\n", j.what, id)
	shown := ""
	show := func(t client.Task) {
		if line := fmt.Sprintf("  %-9s %d%%", t.Status, t.Progress); line != shown {
			_, _ = fmt.Fprintln(out, line)
			shown = line
		}
	}
	task, err := c.Wait(ctx, id, show)
	if err != nil {
		return "", err
	}
	show(task)
	if task.Status != "completed" {
		return "", &client.TaskError{Task: task}
	}
	_, _ = fmt.Fprintf(out, "            by %s\n", task.Model)
	paths, err := c.Save(ctx, task, folder)
	if err != nil {
		return "", err
	}
	if len(paths) == 0 {
		return "", fmt.Errorf("task %s has no result", id)
	}
	for i, path := range paths {
		_, _ = fmt.Fprintf(out, "  saved     %s (%s, %d bytes)\n", path, task.Files[i].MediaType, task.Files[i].Size)
	}
	return id, nil
}

// speak has a text spoken and saves the sound.
func speak(ctx context.Context, c *client.Client, text, path string) (size int, err error) {
	sound, err := c.Call(ctx, http.MethodPost, "/v1/audio/speech", map[string]string{
		"model": "eta-4o-mini-tts", "voice": "coral", "input": text,
	}, nil)
	if err != nil {
		return 0, err
	}
	return len(sound), os.WriteFile(path, sound, 0o600)
}

func balance(ctx context.Context, c *client.Client) (float64, error) {
	var b struct {
		Remain float64 `json:"remain_balance"`
	}
	return b.Remain, get(ctx, c, "/v1/user/balance", &b)
}

func get(ctx context.Context, c *client.Client, path string, answer any) error {
	text, err := c.Call(ctx, http.MethodGet, path, nil, nil)
	if err != nil {
		return err
	}
	return json.Unmarshal(text, answer)
}

// drawLighthouse draws a tower with its light in front of the sky.
func drawLighthouse() image.Image {
	const width, height = 320, 180
	picture := image.NewRGBA(image.Rect(0, 0, width, height))
	draw.Draw(picture, picture.Bounds(), image.NewUniform(color.RGBA{24, 32, 72, 255}), image.Point{}, draw.Src)
	draw.Draw(picture, image.Rect(150, 60, 170, height), image.NewUniform(color.White), image.Point{}, draw.Src)
	draw.Draw(picture, image.Rect(145, 45, 175, 60), image.NewUniform(color.RGBA{255, 220, 96, 255}),
		image.Point{}, draw.Src)
	return picture
}
