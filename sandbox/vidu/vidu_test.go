package vidu_test

import (
	"bytes"
	"encoding/base64"
	"image"
	"image/png"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/mediagate/mediagate/sandbox"
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
	var buf bytes.Buffer
	if err := png.Encode(&buf, image.NewGray(image.Rect(0, 0, width, height))); err != nil {
		t.Fatal(err)
	}
	return "data:image/png;base64," + base64.StdEncoding.EncodeToString(buf.Bytes())
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
		"plain":      {m{}, "", ""},
		"least":      {m{"duration": nil, "resolution": nil, "aspect_ratio": nil, "audio": nil, "watermark": nil, "payload": nil}, "", ""},
		"everything": {m{"seed": 1, "bgm": true, "off_peak": true, "wm_position": 4, "wm_url": picture, "meta_data": `{"a":1}`, "movement_amplitude": "auto", "callback_url": picture}, "", ""},

		"no model":    {m{"model": nil}, "FieldLacking", "model"},
		"other model": {m{"model": "viduq9"}, "ModelUnavailable", "model"},
		"no prompt":   {m{"prompt": nil}, "FieldLacking", "prompt"},
		"blank":       {m{"prompt": " "}, "FieldLacking", "prompt"},
		"number":      {m{"prompt": 5}, "FieldInvalid", "prompt"},
		"5000":        {m{"prompt": strings.Repeat("🦊", 5000)}, "", ""},
		"5001":        {m{"prompt": strings.Repeat("🦊", 5001)}, "FieldInvalid", "prompt"},
		"unknown":     {m{"style": "general"}, "FieldUnwanted", "style"},
		"subjects":    {m{"subjects": []any{}}, "FieldUnwanted", "subjects"},

		"no images":       {m{"images": nil}, "FieldLacking", "images"},
		"empty images":    {m{"images": []any{}}, "FieldItemCountOutOfRange", "images"},
		"7 images":        {m{"images": slices.Repeat([]any{picture}, 7)}, "", ""},
		"8 images":        {m{"images": slices.Repeat([]any{picture}, 8)}, "FieldItemCountOutOfRange", "images"},
		"images a text":   {m{"images": picture}, "FieldInvalid", "images"},
		"an object":       {images(m{"url": picture}), "FieldInvalid", "images[0]"},
		"ftp":             {images("ftp://cdn.example.com/a.png"), "ImageFormatInvalid", "images[0]"},
		"no picture":      {images("data:image/png;base64,aGVsbG8="), "ImageFormatInvalid", "images[0]"},
		"a GIF":           {images("data:image/gif;base64,aGVsbG8="), "ImageFormatInvalid", "images[0]"},
		"128 pixels":      {images(pngURI(t, 128, 128)), "", ""},
		"127 pixels":      {images(picture, pngURI(t, 127, 200)), "PageSizeOutOfRange", "images[1]"},
		"1:4":             {images(pngURI(t, 128, 512)), "", ""},
		"less than 1:4":   {images(pngURI(t, 128, 513)), "PageSizeOutOfRange", "images[0]"},
		"4:1":             {images(pngURI(t, 512, 128)), "", ""},
		"more than 4:1":   {images(pngURI(t, 513, 128)), "PageSizeOutOfRange", "images[0]"},
		"duration 2":      {m{"duration": 2}, "FieldInvalid", "duration"},
		"duration 3":      {m{"duration": 3}, "", ""},
		"duration 16":     {m{"duration": 16}, "", ""},
		"duration 17":     {m{"duration": 17}, "FieldInvalid", "duration"},
		"duration a text": {m{"duration": "5"}, "FieldInvalid", "duration"},
		"mix 0":           {mix(m{"duration": 0}), "FieldInvalid", "duration"},
		"mix 1":           {mix(m{"duration": 1}), "", ""},
		"mix 17":          {mix(m{"duration": 17}), "FieldInvalid", "duration"},
		"540p":            {m{"resolution": "540p"}, "", ""},
		"mix 540p":        {mix(m{"resolution": "540p"}), "FieldInvalid", "resolution"},
		"mix 1080p":       {mix(m{"resolution": "1080p"}), "", ""},
		"720P":            {m{"resolution": "720P"}, "FieldInvalid", "resolution"},
		"ratio auto":      {m{"aspect_ratio": "auto"}, "", ""},
		"ratio 21:9":      {m{"aspect_ratio": "21:9"}, "FieldInvalid", "aspect_ratio"},
		"seed 0":          {m{"seed": 0}, "", ""},
		"seed most":       {m{"seed": 4294967295}, "", ""},
		"seed -1":         {m{"seed": -1}, "FieldInvalid", "seed"},
		"seed too large":  {m{"seed": 4294967296}, "FieldInvalid", "seed"},
		"audio a text":    {m{"audio": "true"}, "FieldInvalid", "audio"},
		"watermark 1":     {m{"watermark": 1}, "FieldInvalid", "watermark"},
		"bgm a text":      {m{"bgm": "no"}, "FieldInvalid", "bgm"},
		"off_peak 0":      {m{"off_peak": 0}, "FieldInvalid", "off_peak"},
		"wm_position 0":   {m{"wm_position": 0}, "FieldInvalid", "wm_position"},
		"wm_position 5":   {m{"wm_position": 5}, "FieldInvalid", "wm_position"},
		"wm_url":          {m{"wm_url": "there"}, "FieldInvalid", "wm_url"},
		"meta_data":       {m{"meta_data": "{"}, "FieldInvalid", "meta_data"},
		"movement":        {m{"movement_amplitude": "huge"}, "FieldInvalid", "movement_amplitude"},
		"callback":        {m{"callback_url": "there"}, "FieldInvalid", "callback_url"},
		"payload of 1 MB": {m{"payload": strings.Repeat("é", 1<<20)}, "", ""},
		"payload, longer": {m{"payload": strings.Repeat("a", 1<<20+1)}, "FieldInvalid", "payload"},
		"bad directive":   {m{"prompt": "a [[sandbox: fail=no]]"}, "FieldInvalid", "prompt"},
		"20 MB":           {images(picture, picture+strings.Repeat("a", 20<<20-1000)), "", ""},
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
		"text":                    {"/text2video", m{"images": nil, "style": "anime"}, "", ""},
		"text, pro":               {"/text2video", m{"images": nil, "model": "viduq3-pro"}, "", ""},
		"text, with an image":     {"/text2video", m{}, "FieldUnwanted", "images"},
		"text, ratio auto":        {"/text2video", m{"images": nil, "aspect_ratio": "auto"}, "FieldInvalid", "aspect_ratio"},
		"text, another style":     {"/text2video", m{"images": nil, "style": "noir"}, "FieldInvalid", "style"},
		"text, none":              {"/text2video", m{"images": nil, "prompt": nil}, "FieldLacking", "prompt"},
		"text, of references":     {"/text2video", m{"images": nil, "model": "viduq3"}, "ModelUnavailable", "model"},
		"a frame":                 {"/img2video", m{"aspect_ratio": nil, "is_rec": false}, "", ""},
		"a frame alone":           {"/img2video", m{"aspect_ratio": nil, "prompt": nil}, "", ""},
		"a frame and a ratio":     {"/img2video", m{}, "FieldUnwanted", "aspect_ratio"},
		"no frame":                {"/img2video", m{"aspect_ratio": nil, "images": nil}, "FieldLacking", "images"},
		"a frame too many":        {"/img2video", m{"aspect_ratio": nil, "images": images(2)}, "FieldItemCountOutOfRange", "images"},
		"two frames":              {"/start-end2video", m{"aspect_ratio": nil, "images": images(2)}, "", ""},
		"one of two frames":       {"/start-end2video", m{"aspect_ratio": nil}, "FieldItemCountOutOfRange", "images"},
		"references, of frames":   {"/reference2video", m{}, "ModelUnavailable", "model"},
		"a frame, too long":       {"/img2video", m{"aspect_ratio": nil, "duration": 17}, "FieldInvalid", "duration"},
		"a frame, of references":  {"/img2video", m{"aspect_ratio": nil, "model": "viduq3-mix"}, "ModelUnavailable", "model"},
		"a frame with a style":    {"/img2video", m{"aspect_ratio": nil, "style": "anime"}, "FieldUnwanted", "style"},
		"text, 16:9, recommended": {"/text2video", m{"images": nil, "is_rec": true}, "FieldUnwanted", "is_rec"},
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

func TestKey(t *testing.T) {
	t.Parallel()
	b := sandboxtest.Open(t)
	for name, header := range map[string]string{
		"none": "", "wrong": "Token no", "another scheme": "Bearer vda_sandbox_vidu", "no scheme": "vda_sandbox_vidu",
	} {
		got := b.Call(t, "POST", "/vidu/ent/v2"+submitPath, map[string]string{"Authorization": header}, video("a fox"))
		if got.Status != 401 || got.Text("reason") != "Unauthorized" {
			t.Errorf("%s: %d %s", name, got.Status, got.Raw)
		}
	}
	made := call(t, b, "POST", submitPath, video("a fox")).Text("task_id")
	foreign := b.Call(t, "GET", "/vidu/ent/v2/tasks/"+made+"/creations", map[string]string{"Authorization": "Token vda_sandbox_vidu@acme"}, nil)
	if foreign.Status != 404 || foreign.Text("reason") != "TaskNotFound" {
		t.Errorf("another customer reads it: %d %s", foreign.Status, foreign.Raw)
	}
	if got := call(t, b, "GET", "/nowhere", nil); got.Status != 404 || got.Text("reason") != "NotFound" {
		t.Errorf("no such page: %d %s", got.Status, got.Raw)
	}
}

// A job from its making to its file: the credits are known from the start, the
// payload comes back, and each query gives links for a day from then on.
func TestLife(t *testing.T) {
	t.Parallel()
	b := sandboxtest.Open(t)
	made := call(t, b, "POST", submitPath, with(video("a fox [[sandbox: duration=100s]]"), m{"aspect_ratio": "9:16", "resolution": "1080p"}))
	if made.At("credits") != 125.0 || made.Text("payload") != "task_1" {
		t.Errorf("created as %s", made.Raw)
	}
	id := made.Text("task_id")
	query := func() sandboxtest.Answer {
		t.Helper()
		got := call(t, b, "GET", "/tasks/"+id+"/creations", nil)
		if got.Status != 200 || got.Text("id") != id || got.Text("payload") != "task_1" || got.At("credits") != 125.0 {
			t.Fatalf("%d %s", got.Status, got.Raw)
		}
		return got
	}
	for _, step := range []struct {
		after time.Duration
		word  string
	}{{0, "created"}, {6 * time.Second, "queueing"}, {6 * time.Second, "processing"}, {90 * time.Second, "success"}} {
		b.Clock.Advance(step.after)
		got := query()
		if got.Text("state") != step.word {
			t.Errorf("state %q, want %q", got.Text("state"), step.word)
		}
		if files := got.At("creations").([]any); (len(files) == 1) != (step.word == "success") {
			t.Errorf("%s with %d files", step.word, len(files))
		}
	}
	first := query()
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

func TestDirectives(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		directive     string
		submit, query string // the reason of a refusal
		status        int    // of it
		code          string // of a failed job
	}{
		"moderation at submit": {"fail=moderation, at=submit", "AuditSubmitIllegal", "", 400, ""},
		"rejected":             {"fail=reject", "FieldInvalid", "", 400, ""},
		"internal at submit":   {"fail=internal, at=submit", "InternalServiceFailure", "", 500, ""},
		"moderation at poll":   {"fail=moderation", "", "", 0, "CreationPolicyViolation"},
		"rejected at poll":     {"fail=reject, at=poll", "", "", 0, "InternalServiceFailure"},
		"internal at poll":     {"fail=internal, times=1", "", "InternalServiceFailure", 500, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := sandboxtest.Open(t)
			made := call(t, b, "POST", submitPath, video("a fox [[sandbox: "+tc.directive+"]]"))
			if tc.submit != "" {
				if made.Status != tc.status || made.Text("reason") != tc.submit || len(b.Jobs(t, "")) != 0 {
					t.Errorf("%d %s", made.Status, made.Raw)
				}
				return
			}
			b.Clock.Advance(time.Minute)
			path := "/tasks/" + made.Text("task_id") + "/creations"
			if tc.query != "" {
				if got := call(t, b, "GET", path, nil); got.Status != tc.status || got.Text("reason") != tc.query {
					t.Errorf("%d %s", got.Status, got.Raw)
				}
			}
			got := call(t, b, "GET", path, nil)
			want := "success"
			if tc.code != "" {
				want = "failed"
			}
			if got.Status != 200 || got.Text("state") != want || got.Text("err_code") != tc.code {
				t.Errorf("%d %s", got.Status, got.Raw)
			}
		})
	}
}

func TestCancel(t *testing.T) {
	t.Parallel()
	b := sandboxtest.Open(t)
	make100 := func() string {
		t.Helper()
		return call(t, b, "POST", submitPath, video("a fox [[sandbox: duration=100s]]")).Text("task_id")
	}
	waiting, bodyless := make100(), make100()
	if got := call(t, b, "POST", "/tasks/"+waiting+"/cancel", m{"id": "other"}); got.Status != 400 {
		t.Errorf("the id of another: %d %s", got.Status, got.Raw)
	}
	if got := call(t, b, "POST", "/tasks/"+waiting+"/cancel", m{"id": waiting}); got.Status != 200 {
		t.Errorf("a waiting one: %d %s", got.Status, got.Raw)
	}
	if got := call(t, b, "POST", "/tasks/"+bodyless+"/cancel", nil); got.Status != 200 {
		t.Errorf("without a body: %d %s", got.Status, got.Raw)
	}
	if got := call(t, b, "GET", "/tasks/"+waiting+"/creations", nil); got.Text("state") != "failed" || got.Text("err_code") != "UserCancelled" {
		t.Errorf("a stopped one: %s", got.Raw)
	}
	if got := call(t, b, "POST", "/tasks/"+waiting+"/cancel", nil); got.Status != 400 || got.Text("reason") != "BadRequest" {
		t.Errorf("a stopped one again: %d %s", got.Status, got.Raw)
	}
	running := make100()
	b.Clock.Advance(50 * time.Second)
	if got := call(t, b, "POST", "/tasks/"+running+"/cancel", nil); got.Status != 400 || got.Text("reason") != "BadRequest" {
		t.Errorf("a running one: %d %s", got.Status, got.Raw)
	}
	if got := call(t, b, "POST", "/tasks/1/cancel", nil); got.Status != 404 || got.Text("reason") != "TaskNotFound" {
		t.Errorf("none: %d %s", got.Status, got.Raw)
	}
}

// The slots of an account are the vendor's own limit.
func TestBusy(t *testing.T) {
	t.Parallel()
	account := sandbox.Account{Provider: "vidu", Credentials: map[string]string{"api_key": "vda_sandbox_vidu"}, Concurrency: 1}
	b := sandboxtest.OpenIn(t, t.TempDir(), sandboxtest.NewClock(), []sandbox.Account{account})
	call(t, b, "POST", submitPath, video("a fox"))
	if got := call(t, b, "POST", submitPath, video("a fox")); got.Status != 429 || got.Text("reason") != "QuotaExceeded" {
		t.Errorf("%d %s", got.Status, got.Raw)
	}
}
