package e2e_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	"image/png"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mediagate/mediagate/sandbox/sample"
)

// The sides of one of the sandbox's pictures of 16:9; a grid has twice that.
const (
	pictureWidth  = 512
	pictureHeight = 288
)

// art is an art task in its own words.
type art struct {
	ID, Status, Action, Progress, Prompt string
	Grid                                 string   `json:"grid_image_url"`
	Images                               []string `json:"image_urls"`
	Buttons                              []struct{ CustomID, Label string }
	FailReason                           string `json:"fail_reason"`
	Descriptions                         []string
	Cost                                 json.Number
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

func pixels(t *testing.T, file []byte) image.Image {
	t.Helper()
	picture, err := png.Decode(bytes.NewReader(file))
	if err != nil {
		t.Fatalf("no PNG of %d bytes: %v", len(file), err)
	}
	return picture
}

// equal compares two pictures, pixel by pixel.
func equal(a, b image.Image) error {
	if a.Bounds().Size() != b.Bounds().Size() {
		return fmt.Errorf("sides %s and %s", a.Bounds().Size(), b.Bounds().Size())
	}
	for y := range a.Bounds().Dy() {
		for x := range a.Bounds().Dx() {
			r1, g1, b1, a1 := a.At(a.Bounds().Min.X+x, a.Bounds().Min.Y+y).RGBA()
			r2, g2, b2, a2 := b.At(b.Bounds().Min.X+x, b.Bounds().Min.Y+y).RGBA()
			if r1 != r2 || g1 != g2 || b1 != b2 || a1 != a2 {
				return fmt.Errorf("pixel %d, %d differs", x, y)
			}
		}
	}
	return nil
}

// checkGrid compares the task's grid with the vendor's and the four pictures
// with its quarters, on both endpoints. The sides are those of one picture.
func (w *world) checkGrid(t *task, width, height int) art {
	w.t.Helper()
	a := w.art(t)
	if a.Status != "SUCCESS" || a.Progress != "100%" || len(a.Images) != 4 || len(a.Buttons) != 9 {
		w.t.Fatalf("%s is %+v", t.model, a)
	}
	w.same("grid of "+t.model, a.Grid, "image/png", sample.PNGGrid(2*width, 2*height))
	for i, link := range a.Images {
		file, err := w.file(link)
		if err == nil {
			err = equal(pixels(w.t, file.body), pixels(w.t, sample.Quarter(i+1, width, height)))
		}
		if err != nil {
			w.t.Errorf("picture %d of %s: %v", i+1, t.model, err)
		}
	}
	w.checkImages(t, append([]string{a.Grid}, a.Images...))
	return a
}

// checkPicture compares the task's one picture with a quarter of a grid.
func (w *world) checkPicture(t *task, quarter, width, height int) art {
	w.t.Helper()
	a := w.art(t)
	if a.Status != "SUCCESS" || a.Progress != "100%" || len(a.Images) != 1 || a.Grid != "" {
		w.t.Fatalf("%s is %+v", t.model, a)
	}
	w.same("picture of "+t.model, a.Images[0], "image/png", sample.Quarter(quarter, width, height))
	w.checkImages(t, a.Images)
	return a
}

// checkImages compares the images of the unified endpoint with links of the
// other, signatures aside.
func (w *world) checkImages(t *task, links []string) {
	w.t.Helper()
	o, err := w.read(t.id)
	if err != nil {
		w.t.Fatal(err)
	}
	var got []string
	for _, i := range o.items() {
		got = append(got, i.URL...)
	}
	if diff := cmp.Diff(unsignedAll(links), unsignedAll(got)); diff != "" {
		w.t.Errorf("images of %s (-art +unified):\n%s", t.model, diff)
	}
}

func unsignedAll(links []string) []string {
	out := slices.Clone(links)
	for i := range out {
		out[i], _, _ = strings.Cut(out[i], "?")
	}
	return out
}

// button is the customId of the button that begins so.
func (a art) button(t *testing.T, prefix string) string {
	t.Helper()
	for _, b := range a.Buttons {
		if strings.HasPrefix(b.CustomID, prefix) {
			return b.CustomID
		}
	}
	t.Fatalf("no button %s: %+v", prefix, a.Buttons)
	return ""
}

// Steps of art: four pictures in a grid, or one.
func grids(path, price string, body map[string]any) step {
	return step{path: artgen + path, price: price, files: 5, body: body}
}

func single(path, price string, body map[string]any) step {
	return step{path: artgen + path, price: price, body: body}
}

func imagine() step {
	return grids("", "0.04", map[string]any{"prompt": "a lighthouse at dawn", "size": "16:9"})
}

// upscaled makes four pictures and one of the second.
func (c *chain) upscaled() (grid, picture *task) {
	c.t.Helper()
	grid = c.run(imagine())
	c.checkGrid(grid, pictureWidth, pictureHeight)
	picture = c.run(single("/upscale", "0.01", map[string]any{"task_id": grid.id, "index": 2}))
	c.checkPicture(picture, 2, pictureWidth, pictureHeight)
	return grid, picture
}

// mask is an uploaded picture, as large as one that it is for.
func (c *chain) mask() string {
	c.t.Helper()
	return c.upload("mask.png", sample.Image(pictureWidth, pictureHeight))
}

// A part of one of four pictures is painted anew under an uploaded mask. Of two
// modal calls at once one is taken. The whole is followed as a stream.
func chainInpaint(c *chain) {
	_, picture := c.upscaled()
	mask := c.mask()
	inpaint := c.order(grids("/inpaint", "0.04", map[string]any{"task_id": picture.id}))
	events := c.follow(inpaint)
	c.awaitModal(inpaint)
	c.refused(artgen+"/modal", map[string]any{"task_id": inpaint.id, "prompt": "no mask"}, "mask_url is required")

	body := map[string]any{"task_id": inpaint.id, "prompt": "a straw hat", "mask_url": mask}
	answers := make([]answer, 2)
	var both sync.WaitGroup
	for i := range answers {
		both.Go(func() {
			answers[i] = c.call(http.MethodPost, artgen+"/modal", body, "Idempotency-Key", fmt.Sprint("modal ", i))
		})
	}
	both.Wait()
	won := slices.IndexFunc(answers, func(a answer) bool { return a.status == http.StatusOK })
	if won < 0 || answers[1-won].status != http.StatusConflict {
		c.t.Fatalf("two modal calls at once: %d %s, %d %s", answers[0].status, answers[0].body, answers[1].status, answers[1].body)
	}
	if id, err := taskID(answers[won]); err != nil || id != inpaint.id {
		c.t.Errorf("the modal call names %s, %v", id, err)
	}
	for i, status := range map[int]int{won: http.StatusOK, 1 - won: http.StatusConflict} {
		a := c.call(http.MethodPost, artgen+"/modal", body, "Idempotency-Key", fmt.Sprint("modal ", i))
		if a.status != status || (a.header.Get("Idempotency-Replayed") == "true") != (status == http.StatusOK) {
			c.t.Errorf("the modal call again: %d %s, want %d", a.status, a.body, status)
		}
	}
	c.checkLeft()
	c.done(inpaint)
	if a := c.checkGrid(inpaint, pictureWidth, pictureHeight); a.Action != "INPAINT" || a.Prompt != "a straw hat" {
		c.t.Errorf("what was painted is %+v", a)
	}
	c.checkEvents(inpaint, <-events)
	if a := c.call(http.MethodPost, artgen+"/modal", body); a.status != http.StatusConflict {
		c.t.Errorf("a modal call for what is done: %d %s", a.status, a.body)
	}
}

// event is one of a stream.
type event struct {
	id   int
	name string
	data object
	err  error
}

// readEvents reads a stream to its end.
func readEvents(stream io.Reader) (all []event) {
	var one event
	for lines := bufio.NewScanner(stream); lines.Scan(); {
		name, value, _ := strings.Cut(lines.Text(), ": ")
		switch name {
		case "id":
			one.id, one.err = strconv.Atoi(value)
		case "event":
			one.name = value
		case "data":
			one.err = errors.Join(one.err, json.Unmarshal([]byte(value), &one.data))
		case "":
			if one.name != "" { // else that was a sign of life
				all = append(all, one)
			}
			one = event{}
		}
	}
	return all
}

// follow reads the task's events until the stream ends.
func (c *chain) follow(t *task) <-chan []event {
	c.t.Helper()
	req, err := http.NewRequestWithContext(c.t.Context(), http.MethodGet, c.apiURLs[0]+"/v1/tasks/"+t.id+"/events", nil)
	if err != nil {
		c.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+c.key)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		c.t.Fatal(err)
	}
	if kind := resp.Header.Get("Content-Type"); resp.StatusCode != http.StatusOK || kind != "text/event-stream" {
		c.t.Fatalf("events: %d %s", resp.StatusCode, kind)
	}
	out := make(chan []event, 1)
	go func() {
		defer resp.Body.Close()
		out <- readEvents(resp.Body)
	}()
	return out
}

// checkEvents compares a stream with what is promised of it: every state in
// order, ids and progress that rise, an end that is the task's.
func (c *chain) checkEvents(t *task, events []event) {
	c.t.Helper()
	var states []string
	progress, id := -1, -1
	for _, e := range events {
		if e.err != nil || e.name != "task" || e.data.ID != t.id || e.id <= id || e.data.Progress < progress {
			c.t.Errorf("event %+v after %d with %d%%", e, id, progress)
		}
		id, progress = e.id, e.data.Progress
		if len(states) == 0 || states[len(states)-1] != e.data.Status {
			states = append(states, e.data.Status)
		}
	}
	if got := strings.Join(states, " "); !strings.HasSuffix(got, "processing completed") || progress != 100 {
		c.t.Errorf("the stream shows %q and ends with %d%%", got, progress)
	}
	last := events[len(events)-1]
	if o, err := c.read(t.id); err != nil || len(last.data.items()) != len(o.items()) || last.data.Cost != o.Cost {
		c.t.Errorf("the stream ends with %+v, the task is %+v (%v)", last.data, o, err)
	}
	// What becomes of the webhook is told as well, to who comes again.
	eventually(c.t, recoverTime, "the stream has nothing more to tell", func() error {
		a := c.call(http.MethodGet, "/tasks/"+t.id+"/events", nil, "Last-Event-ID", strconv.Itoa(id))
		if a.status == http.StatusNoContent {
			return nil
		}
		more := readEvents(bytes.NewReader(a.body))
		if a.status != http.StatusOK || len(more) != 1 || more[0].id <= id || more[0].data.Status != "completed" {
			return &stopError{fmt.Sprintf("after %d it answers %d %s", id, a.status, a.body)}
		}
		id = more[0].id
		return fmt.Errorf("it tells of %d", id)
	})
}

// All else that can be done with pictures.
func chainPictures(c *chain) {
	grid, picture := c.upscaled()
	buttons := c.art(picture)
	one, two := c.upload("one.png", sample.Image(320, 180)), c.upload("two.png", sample.Image(180, 320))
	on := func(t *task, fields ...any) map[string]any {
		body := map[string]any{"task_id": t.id}
		for i := 0; i+1 < len(fields); i += 2 {
			body[fmt.Sprint(fields[i])] = fields[i+1]
		}
		return body
	}
	wide := map[string]*task{
		"VARIATION":      c.order(grids("/variation", "0.015", on(grid, "index", 3, "speed", "relax"))),
		"HIGH_VARIATION": c.order(grids("/high-variation", "0.04", on(picture))),
		"LOW_VARIATION":  c.order(grids("/low-variation", "0.108", on(picture, "speed", "turbo"))),
		"REROLL":         c.order(grids("/reroll", "0.04", on(grid))),
		"PAN":            c.order(grids("/pan", "0.04", on(picture, "direction", "left"))),
		"ZOOM":           c.order(grids("/zoom", "0.04", on(picture, "zoom_ratio", 1.5))),
		"IMAGINE":        c.order(grids("/imagine", "0.04", map[string]any{"prompt": "a boat", "size": "16:9", "image_urls": []string{one, two}})),
	}
	blend := c.order(grids("/blend", "0.04", map[string]any{"image_urls": []string{one, two}, "dimensions": "LANDSCAPE"}))
	describe := c.order(step{path: artgen + "/describe", price: "0.01", files: -1, body: map[string]any{"image_urls": []string{one}}})
	pressed := c.order(single("/upscale", "0.01", on(picture, "custom_id", buttons.button(c.t, "MJ::JOB::upsample_v6_2x_subtle::"))))
	zoomed := c.order(grids("/zoom", "0.04", on(picture, "custom_id", buttons.button(c.t, "MJ::CustomZoom::"))))

	c.awaitModal(zoomed)
	if id, err := taskID(c.call(http.MethodPost, artgen+"/modal", on(zoomed, "prompt", "a lighthouse, from afar"))); err != nil || id != zoomed.id {
		c.t.Errorf("modal of a zoom: %s, %v", id, err)
	}
	wide["zoomed"] = zoomed
	for action, t := range wide {
		c.done(t)
		if a := c.checkGrid(t, pictureWidth, pictureHeight); a.Action != action && t != zoomed {
			c.t.Errorf("the action of %s is %s", t.model, a.Action)
		}
	}
	c.done(blend)
	c.checkGrid(blend, 512, 340)
	c.done(pressed)
	c.checkPicture(pressed, 2, 2*pictureWidth, 2*pictureHeight)
	c.done(describe)
	if a := c.art(describe); a.Status != "SUCCESS" || len(a.Descriptions) != 4 || len(a.Images) != 0 {
		c.t.Errorf("descriptions %+v", a)
	}

	c.refused(artgen+"/upscale", on(picture, "index", 1), "MJ::JOB::low_variation::1::", "MJ::Inpaint::1::")
	c.refused(artgen+"/upscale", on(grid, "index", 5), "index")
	c.refused(artgen+"/pan", on(picture, "direction", "left", "custom_id", "MJ::JOB::pan_left::9"), "custom_id")
	c.refused(artgen+"/reroll", on(describe), "MJ::")
}

// Nobody tells a task what it waits for: it fails in time, and costs nothing.
func chainPatience(c *chain) {
	_, picture := c.upscaled()
	inpaint := c.order(grids("/inpaint", "0.04", map[string]any{"task_id": picture.id}))
	c.awaitModal(inpaint)
	c.expires(inpaint)
	c.charged.Sub(c.charged, amount(c.world, inpaint.price))
	c.checkLeft()
	a := c.call(http.MethodPost, artgen+"/modal", map[string]any{"task_id": inpaint.id, "prompt": "late", "mask_url": c.media.url(goodImage)})
	if a.status != http.StatusConflict {
		c.t.Errorf("a modal call after the time: %d %s", a.status, a.body)
	}
}

// expires waits for the end of a task that nobody tells what it waits for.
func (w *world) expires(t *task) {
	w.t.Helper()
	t.want, t.code = "failed", "modal_expired"
	w.await(t, recoverTime, "expires", func(o object) bool { return o.Status == "failed" })
	if a := w.art(t); a.Status != "FAILURE" || a.FailReason == "" || a.Cost != "0" {
		w.t.Errorf("the task that expired is %+v", a)
	}
}

// A user stops a song, pictures, and pictures that wait.
func chainCancels(c *chain) {
	_, picture := c.upscaled()
	slow := func(s step, field string) step {
		body := maps.Clone(s.body)
		body[field] = fmt.Sprint(body[field], " [[sandbox: duration=1h]]")
		s.body = body
		return s
	}
	many := imagine()
	stopped := "harbour-" + strings.ToLower(randomText(12))
	many.body["prompt"] = stopped
	song, pictures := c.order(slow(songStep, "prompt")), c.order(slow(many, "prompt"))
	c.awaitProcessing(song)
	c.awaitProcessing(pictures)
	waiting := c.order(grids("/inpaint", "0.04", map[string]any{"task_id": picture.id}))
	c.awaitModal(waiting)
	for _, t := range []*task{waiting, song, pictures} {
		c.cancel(t)
		t.want = "cancelled"
	}
	for _, t := range []*task{song, pictures, waiting} {
		c.await(t, time.Minute, "is cancelled", func(o object) bool { return o.Status == "cancelled" })
		c.charged.Sub(c.charged, amount(c.world, t.price))
	}
	c.checkLeft()
	eventually(c.t, time.Minute, "the vendor has stopped the pictures", func() error {
		jobs, err := c.jobs(&task{ref: stopped})
		if err == nil && (len(jobs) != 1 || jobs[0].State != "cancelled") {
			err = fmt.Errorf("its jobs are %+v", jobs)
		}
		return err
	})
	for _, t := range []*task{pictures, waiting} {
		if a := c.art(t); a.Status != "FAILURE" || a.FailReason != "cancelled" {
			c.t.Errorf("the cancelled task is %+v", a)
		}
	}
	if a := c.call(http.MethodPost, artgen+"/modal", map[string]any{"task_id": waiting.id, "mask_url": c.mask()}); a.status != http.StatusConflict {
		c.t.Errorf("a modal call after the cancel: %d %s", a.status, a.body)
	}
}
