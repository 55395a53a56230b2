package e2e_test

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/mediagate/mediagate/sandbox/sample"
)

// The sides of one of the sandbox's 16:9 pictures. The sides of a grid are twice as long.
const (
	pictureWidth  = 512
	pictureHeight = 288
)

// art is a task as the art endpoints return it.
type art struct {
	Status, Progress string
	Grid             string   `json:"grid_image_url"`
	Images           []string `json:"image_urls"`
	Buttons          []struct{ CustomID, Label string }
	FailReason       string `json:"fail_reason"`
	Cost             json.Number
}

func (w *world) art(t *task) art {
	w.t.Helper()
	var a art
	if err := w.get("/v1/artgen/"+t.id, w.key, &a); err != nil {
		w.t.Fatalf("art task: %v", err)
	}
	return a
}

// awaitModal waits until the task waits for modal parameters.
func (w *world) awaitModal(t *task) {
	w.t.Helper()
	eventually(w.t, time.Minute, t.id+" is in MODAL", func() error {
		switch a := w.art(t); a.Status {
		case "MODAL":
			return nil
		case "FAILURE", "SUCCESS":
			return &stopError{fmt.Sprintf("it is %+v", a)}
		default:
			return fmt.Errorf("it is %s", a.Status)
		}
	})
	if o, err := w.read(t.id); err != nil || o.Status != "processing" {
		w.t.Errorf("in MODAL the task is %+v (%v) on the unified endpoint", o, err)
	}
}

// checkGrid compares the task's grid with the vendor's. The sides are those of one picture. The
// check of the task's end reads the four pictures.
func (w *world) checkGrid(t *task, width, height int) {
	w.t.Helper()
	a := w.art(t)
	if a.Status != "SUCCESS" || a.Progress != "100%" || len(a.Images) != 4 || len(a.Buttons) != 9 {
		w.t.Fatalf("%s is %+v", t.model, a)
	}
	w.same("grid of "+t.model, a.Grid, "image/png", sample.PNGGrid(2*width, 2*height))
}

// checkPicture compares the task's only picture with a quarter of a grid.
func (w *world) checkPicture(t *task, quarter, width, height int) {
	w.t.Helper()
	a := w.art(t)
	if a.Status != "SUCCESS" || a.Progress != "100%" || len(a.Images) != 1 || a.Grid != "" {
		w.t.Fatalf("%s is %+v", t.model, a)
	}
	w.same("picture of "+t.model, a.Images[0], "image/png", sample.Quarter(quarter, width, height))
}

// grids returns a step that makes four pictures in a grid, and single one that makes one
// picture.
func grids(path, price string, body map[string]any) step {
	return step{path: artgen + path, price: price, files: 5, body: body}
}

func single(path, price string, body map[string]any) step {
	return step{path: artgen + path, price: price, body: body}
}

func imagine() step {
	return grids("", "0.04", map[string]any{"prompt": "a lighthouse at dawn", "size": "16:9"})
}

// upscaled makes four pictures and enlarges the second.
func (c *user) upscaled() (grid, picture *task) {
	c.t.Helper()
	grid = c.run(imagine())
	c.checkGrid(grid, pictureWidth, pictureHeight)
	picture = c.run(single("/upscale", "0.01", map[string]any{"task_id": grid.id, "index": 2}))
	c.checkPicture(picture, 2, pictureWidth, pictureHeight)
	return grid, picture
}

// mask uploads a picture with the size of the picture that it masks.
func (c *user) mask() string {
	c.t.Helper()
	return c.upload("mask.png", sample.Image(pictureWidth, pictureHeight))
}

// expires waits for the end of a task that never gets the modal parameters that it waits for.
func (w *world) expires(t *task) {
	w.t.Helper()
	t.wantStatus, t.wantCode = "failed", "modal_expired"
	w.await(t, recoverTime, "expires", func(o object) bool { return o.Status == "failed" })
	if a := w.art(t); a.Status != "FAILURE" || a.FailReason == "" || a.Cost != "0" {
		w.t.Errorf("the task that expired is %+v", a)
	}
}
