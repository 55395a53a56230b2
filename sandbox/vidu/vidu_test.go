package vidu_test

import (
	"encoding/base64"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/mediagate/mediagate/sandbox/sandboxtest"
)

type m = sandboxtest.M

var with = sandboxtest.With

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var key = map[string]string{"Authorization": "Token vda_sandbox_vidu"}

const (
	submitPath = "/reference2video"
	picture    = "https://cdn.example.com/a.png"
)

func call(t *testing.T, b *sandboxtest.Sandbox, method, path string, body any) sandboxtest.Answer {
	t.Helper()
	return b.Call(t, method, "/vidu/ent/v2"+path, key, body)
}

func video(prompt string) m {
	return m{
		"model": "viduq3", "prompt": prompt, "images": []any{picture}, "duration": 5, "resolution": "720p", "aspect_ratio": "16:9",
		"audio": true, "watermark": false, "payload": "task_1",
	}
}

func pngURI(t *testing.T, width, height int) string {
	t.Helper()
	return "data:image/png;base64," + base64.StdEncoding.EncodeToString(sandboxtest.PNG(t, width, height))
}

func TestRules(t *testing.T) {
	t.Parallel()
	b := sandboxtest.Open(t)
	images := func(items ...any) m { return m{"images": items} }
	mix := func(changes m) m { return with(changes, m{"model": "viduq3-mix"}) }
	for name, tc := range map[string]struct {
		change m
		reason string // "" when no rule is broken
		field  string // that the message names
	}{
		"everything": {m{"seed": 1, "bgm": true, "off_peak": true, "wm_position": 4, "wm_url": picture, "meta_data": `{"a":1}`, "movement_amplitude": "auto", "callback_url": picture}, "", ""},

		"no model":    {m{"model": nil}, "FieldLacking", "model"},
		"other model": {m{"model": "viduq9"}, "ModelUnavailable", "model"},
		"no prompt":   {m{"prompt": nil}, "FieldLacking", "prompt"},
		"5001":        {m{"prompt": strings.Repeat("🦊", 5001)}, "FieldInvalid", "prompt"},
		"unknown":     {m{"style": "general"}, "FieldUnwanted", "style"},
		"subjects":    {m{"subjects": []any{}}, "FieldUnwanted", "subjects"},

		"no images":       {m{"images": nil}, "FieldLacking", "images"},
		"8 images":        {m{"images": slices.Repeat([]any{picture}, 8)}, "FieldItemCountOutOfRange", "images"},
		"ftp":             {images("ftp://cdn.example.com/a.png"), "ImageFormatInvalid", "images[0]"},
		"a GIF":           {images("data:image/gif;base64,aGVsbG8="), "ImageFormatInvalid", "images[0]"},
		"127 pixels":      {images(picture, pngURI(t, 127, 200)), "PageSizeOutOfRange", "images[1]"},
		"less than 1:4":   {images(pngURI(t, 128, 513)), "PageSizeOutOfRange", "images[0]"},
		"duration 2":      {m{"duration": 2}, "FieldInvalid", "duration"},
		"duration 17":     {m{"duration": 17}, "FieldInvalid", "duration"},
		"mix 17":          {mix(m{"duration": 17}), "FieldInvalid", "duration"},
		"mix 540p":        {mix(m{"resolution": "540p"}), "FieldInvalid", "resolution"},
		"ratio 21:9":      {m{"aspect_ratio": "21:9"}, "FieldInvalid", "aspect_ratio"},
		"seed too large":  {m{"seed": 4294967296}, "FieldInvalid", "seed"},
		"wm_position 5":   {m{"wm_position": 5}, "FieldInvalid", "wm_position"},
		"wm_url":          {m{"wm_url": "there"}, "FieldInvalid", "wm_url"},
		"meta_data":       {m{"meta_data": "{"}, "FieldInvalid", "meta_data"},
		"movement":        {m{"movement_amplitude": "huge"}, "FieldInvalid", "movement_amplitude"},
		"payload, longer": {m{"payload": strings.Repeat("a", 1<<20+1)}, "FieldInvalid", "payload"},
		"above 20 MB":     {images(picture + strings.Repeat("a", 20<<20)), "BadRequest", "body"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := call(t, b, "POST", submitPath, with(video("a fox"), tc.change))
			if tc.reason == "" {
				if got.Status != 200 || got.Text("task_id") == "" || got.Text("state") != "created" {
					t.Fatalf("%d %.300s", got.Status, got.Raw)
				}
				return
			}
			if got.Status != 400 || got.Text("reason") != tc.reason || !strings.Contains(got.Text("message"), tc.field) {
				t.Errorf("%d %.300s, want %s of %s", got.Status, got.Raw, tc.reason, tc.field)
			}
		})
	}
}

// Videos of text and of frames have endpoints and models of their own.
func TestFrames(t *testing.T) {
	t.Parallel()
	b := sandboxtest.Open(t)
	images := func(n int) []any { return slices.Repeat([]any{picture}, n) }
	for name, tc := range map[string]struct {
		path   string
		change m
		reason string
		field  string
	}{
		"text":                  {"/text2video", m{"images": nil, "style": "anime"}, "", ""},
		"text, with an image":   {"/text2video", m{}, "FieldUnwanted", "images"},
		"text, ratio auto":      {"/text2video", m{"images": nil, "aspect_ratio": "auto"}, "FieldInvalid", "aspect_ratio"},
		"text, of references":   {"/text2video", m{"images": nil, "model": "viduq3"}, "ModelUnavailable", "model"},
		"a frame":               {"/img2video", m{"aspect_ratio": nil, "is_rec": false}, "", ""},
		"a frame and a ratio":   {"/img2video", m{}, "FieldUnwanted", "aspect_ratio"},
		"a frame too many":      {"/img2video", m{"aspect_ratio": nil, "images": images(2)}, "FieldItemCountOutOfRange", "images"},
		"two frames":            {"/start-end2video", m{"aspect_ratio": nil, "images": images(2)}, "", ""},
		"one of two frames":     {"/start-end2video", m{"aspect_ratio": nil}, "FieldItemCountOutOfRange", "images"},
		"references, of frames": {"/reference2video", m{}, "ModelUnavailable", "model"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := call(t, b, "POST", tc.path, with(with(video("a fox"), m{"model": "viduq3-turbo"}), tc.change))
			if tc.reason == "" {
				if got.Status != 200 || got.Text("task_id") == "" {
					t.Fatalf("%d %.300s", got.Status, got.Raw)
				}
				return
			}
			if got.Status != 400 || got.Text("reason") != tc.reason || !strings.Contains(got.Text("message"), tc.field) {
				t.Errorf("%d %.300s, want %s of %s", got.Status, got.Raw, tc.reason, tc.field)
			}
		})
	}
}

func TestCredits(t *testing.T) {
	t.Parallel()
	b := sandboxtest.Open(t)
	for name, tc := range map[string]struct {
		change m
		want   float64
	}{
		"q3 540p":        {m{"resolution": "540p", "duration": 3}, 30},
		"q3 720p":        {m{}, 100},
		"q3 1080p":       {m{"resolution": "1080p"}, 125},
		"mix 720p, 1 s":  {m{"model": "viduq3-mix", "duration": 1}, 25},
		"mix 1080p, 1 s": {m{"model": "viduq3-mix", "duration": 1, "resolution": "1080p"}, 30},
	} {
		if got := call(t, b, "POST", submitPath, with(video("a fox"), tc.change)); got.At("credits") != tc.want {
			t.Errorf("%s: %s", name, got.Raw)
		}
	}
}

func TestKey(t *testing.T) {
	t.Parallel()
	b := sandboxtest.Open(t)
	for name, header := range map[string]string{"none": "", "another scheme": "Bearer vda_sandbox_vidu", "no scheme": "vda_sandbox_vidu"} {
		got := b.Call(t, "POST", "/vidu/ent/v2"+submitPath, map[string]string{"Authorization": header}, video("a fox"))
		if got.Status != 401 || got.Text("reason") != "Unauthorized" {
			t.Errorf("%s: %d %s", name, got.Status, got.Raw)
		}
	}
	if got := call(t, b, "GET", "/nowhere", nil); got.Status != 404 || got.Text("reason") != "NotFound" {
		t.Errorf("no such page: %d %s", got.Status, got.Raw)
	}
	if got := call(t, b, "POST", "/tasks/1/cancel", nil); got.Status != 404 || got.Text("reason") != "TaskNotFound" {
		t.Errorf("no such job: %d %s", got.Status, got.Raw)
	}
}

// The payload comes back, a job has three files, and each query gives links for a day
// from then on.
func TestFiles(t *testing.T) {
	t.Parallel()
	b := sandboxtest.Open(t)
	made := call(t, b, "POST", submitPath, video("a fox"))
	query := func() sandboxtest.Answer { return call(t, b, "GET", "/tasks/"+made.Text("task_id")+"/creations", nil) }
	if got := query(); got.Text("state") != "created" || len(got.At("creations").([]any)) != 0 {
		t.Errorf("at first: %s", got.Raw)
	}
	b.Clock.Advance(2 * time.Second)
	first := query()
	if made.Text("payload") != "task_1" || first.Text("payload") != "task_1" || first.At("credits") != 100.0 {
		t.Errorf("made %s, ended %s", made.Raw, first.Raw)
	}
	for _, name := range []string{"url", "watermarked_url", "cover_url"} {
		if got := b.Call(t, "GET", first.Text("creations", 0, name), nil, nil); got.Status != 200 || len(got.Raw) == 0 {
			t.Errorf("%s: %d", name, got.Status)
		}
	}
	b.Clock.Advance(24 * time.Hour)
	if got := b.Call(t, "GET", first.Text("creations", 0, "url"), nil, nil); got.Status != 403 {
		t.Errorf("an old link: %d", got.Status)
	}
	if got := b.Call(t, "GET", query().Text("creations", 0, "url"), nil, nil); got.Status != 200 {
		t.Errorf("a fresh link: %d", got.Status)
	}
}
