package kling_test

import (
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/mediagate/mediagate/sandbox/kling"
	"github.com/mediagate/mediagate/sandbox/sandboxtest"
)

func newerCall(t *testing.T, b *sandboxtest.Sandbox, method, path string, body any) sandboxtest.Answer {
	t.Helper()
	return b.Call(t, method, "/kling/"+path, key, body)
}

func settings(change m) m {
	return with(m{"multi_shot": false, "audio": "off", "resolution": "720p", "aspect_ratio": "16:9", "duration": 5}, change)
}

func newerText(change, set m) m {
	return with(m{"prompt": "a fox", "settings": settings(set), "options": m{}}, change)
}

func made(items ...m) []m { return append([]m{{"type": "prompt", "text": "a fox"}}, items...) }

func link(kind, id string) m {
	item := m{"type": kind, "url": "https://cdn.example.com/" + kind}
	if id != "" {
		item["id"] = id
	}
	return item
}

func subject(id string) m { return m{"type": "element", "element_id": "7", "id": id} }

func TestNewerRules(t *testing.T) {
	t.Parallel()
	b := sandboxtest.Open(t)
	noRatio := m{"aspect_ratio": nil}
	frames := func(set m, items ...m) m {
		return m{"contents": made(items...), "settings": settings(with(noRatio, set))}
	}
	omni := func(set m, items ...m) m { return m{"contents": made(items...), "settings": settings(set)} }
	o1 := m{"multi_shot": nil}
	said := func(text string, items ...m) m {
		body := omni(o1, items...)
		body["contents"].([]m)[0]["text"] = text
		return body
	}
	cases := map[string]struct {
		path  string
		body  m
		field string // of the refusal; empty: accepted
	}{
		"text":                   {"text-to-video/kling-3.0", newerText(nil, nil), ""},
		"text, everything":       {"text-to-video/kling-3.0", newerText(m{"options": m{"external_task_id": "e1", "callback_url": "https://cb.example.com", "watermark_info": m{"enabled": true}}}, m{"resolution": "4k", "audio": "native", "duration": 15}), ""},
		"text 3072":              {"text-to-video/kling-3.0", newerText(m{"prompt": strings.Repeat("é", 3072)}, nil), ""},
		"text 3073":              {"text-to-video/kling-3.0", newerText(m{"prompt": strings.Repeat("é", 3073)}, nil), "prompt"},
		"no text":                {"text-to-video/kling-3.0", newerText(m{"prompt": nil}, nil), "prompt"},
		"duration as a text":     {"text-to-video/kling-3.0", newerText(nil, m{"duration": "5"}), "settings.duration"},
		"2 s":                    {"text-to-video/kling-3.0", newerText(nil, m{"duration": 2}), "settings.duration"},
		"16 s":                   {"text-to-video/kling-3.0", newerText(nil, m{"duration": 16}), "settings.duration"},
		"mode":                   {"text-to-video/kling-3.0", newerText(nil, m{"mode": "std"}), "settings.mode"},
		"model_name":             {"text-to-video/kling-3.0", newerText(m{"model_name": "kling-v3"}, nil), "model_name"},
		"negative_prompt":        {"text-to-video/kling-3.0", newerText(m{"negative_prompt": "x"}, nil), "negative_prompt"},
		"original sound of text": {"text-to-video/kling-3.0", newerText(nil, m{"audio": "original"}), "settings.audio"},
		"sound as a boolean":     {"text-to-video/kling-3.0", newerText(nil, m{"audio": true}), "settings.audio"},
		"ratio 4:3":              {"text-to-video/kling-3.0", newerText(nil, m{"aspect_ratio": "4:3"}), "settings.aspect_ratio"},
		"external id outside":    {"text-to-video/kling-3.0", newerText(m{"external_task_id": "e"}, nil), "external_task_id"},
		"contents of text":       {"text-to-video/kling-3.0", newerText(m{"contents": made()}, nil), "contents"},
		"shots":                  {"text-to-video/kling-3.0", newerText(m{"prompt": "shot 1, 2, a; shot 2, 3, b;"}, m{"multi_shot": true}), ""},
		"shots of another sum":   {"text-to-video/kling-3.0", newerText(m{"prompt": "shot 1, 2, a; shot 2, 2, b;"}, m{"multi_shot": true}), "prompt"},
		"shots by default":       {"text-to-video/kling-3.0", newerText(m{"prompt": "shot 1, 2, a; shot 2, 2, b;"}, m{"multi_shot": nil}), "prompt"},
		"shots in disorder":      {"text-to-video/kling-3.0", newerText(m{"prompt": "shot 2, 2, a; shot 1, 3, b;"}, m{"multi_shot": true}), "prompt"},
		"7 shots":                {"text-to-video/kling-3.0", newerText(m{"prompt": "shot 1, 1, a; shot 2, 1, a; shot 3, 1, a; shot 4, 1, a; shot 5, 1, a; shot 6, 1, a; shot 7, 1, a;"}, m{"multi_shot": true, "duration": 7}), "prompt"},
		"a shot of 512":          {"text-to-video/kling-3.0", newerText(m{"prompt": "shot 1, 5, " + strings.Repeat("é", 512) + ";"}, m{"multi_shot": true}), ""},
		"a shot of 513":          {"text-to-video/kling-3.0", newerText(m{"prompt": "shot 1, 5, " + strings.Repeat("é", 513) + ";"}, m{"multi_shot": true}), "prompt"},
		"frames":                 {"image-to-video/kling-3.0", frames(nil, link("first_frame", ""), link("last_frame", ""), subject("a")), ""},
		"no frame":               {"image-to-video/kling-3.0", frames(nil), "contents"},
		"last frame alone":       {"image-to-video/kling-3.0", frames(nil, link("last_frame", "")), "contents"},
		"frames with a ratio":    {"image-to-video/kling-3.0", frames(m{"aspect_ratio": "16:9"}, link("first_frame", "")), "settings.aspect_ratio"},
		"a picture to refer to":  {"image-to-video/kling-3.0", frames(nil, link("first_frame", ""), link("refer_image", "i")), "contents[2].type"},
		"4 elements":             {"image-to-video/kling-3.0", frames(nil, link("first_frame", ""), subject("a"), subject("b"), subject("c"), subject("d")), "contents"},
		"an element by number":   {"image-to-video/kling-3.0", frames(nil, link("first_frame", ""), m{"type": "element", "element_id": 7}), "contents[2].element_id"},
		"ids that repeat":        {"image-to-video/kling-3.0", frames(nil, link("first_frame", ""), subject("a"), subject("a")), "contents[3].id"},
		"omni":                   {"omni-video/kling-3.0-omni", omni(m{"audio": "native"}, link("refer_image", "image_1"), subject("s")), ""},
		"omni 4k":                {"omni-video/kling-3.0-omni", omni(m{"resolution": "4k"}, link("refer_image", "image_1")), "settings.resolution"},
		"omni without a ratio":   {"omni-video/kling-3.0-omni", omni(noRatio, link("refer_image", "image_1")), "settings.aspect_ratio"},
		"omni, first frame":      {"omni-video/kling-3.0-omni", omni(noRatio, link("first_frame", "")), ""},
		"o1 text":                {"omni-video/kling-o1", omni(o1), ""},
		"o1 text, 6 s":           {"omni-video/kling-o1", omni(with(o1, m{"duration": 6})), "settings.duration"},
		"o1 picture, 6 s":        {"omni-video/kling-o1", omni(with(o1, m{"duration": 6}), link("refer_image", "image_1")), ""},
		"o1 shots":               {"omni-video/kling-o1", omni(nil), "settings.multi_shot"},
		"o1 sound":               {"omni-video/kling-o1", omni(with(o1, m{"audio": "native"})), "settings.audio"},
		"o1 original":            {"omni-video/kling-o1", omni(with(o1, m{"audio": "original"}), link("base_video", "video_1")), ""},
		"o1 original of nothing": {"omni-video/kling-o1", omni(with(o1, m{"audio": "original"})), "settings.audio"},
		"two videos":             {"omni-video/kling-o1", omni(o1, link("base_video", "a"), link("feature_video", "b")), "contents"},
		"reference":              {"omni-video/kling-o1", said("@image_1 runs", link("refer_image", "image_1")), ""},
		"reference to nothing":   {"omni-video/kling-o1", said("@image_2 runs", link("refer_image", "image_1")), "contents"},
		"older reference":        {"omni-video/kling-o1", said("<<<image_1>>> runs", link("refer_image", "image_1")), ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := newerCall(t, b, "POST", tc.path, tc.body)
			if tc.field == "" {
				if got.Status != 200 || got.At("code") != 0.0 || got.Text("data", "status") != "submitted" || got.Text("data", "id") == "" {
					t.Errorf("refused: %d %s", got.Status, got.Raw)
				}
				return
			}
			if got.Status != 400 || got.At("code") != 1201.0 || !strings.HasPrefix(got.Text("message"), tc.field+":") {
				t.Errorf("%d %s, want 400 code 1201 naming %s", got.Status, got.Raw, tc.field)
			}
		})
	}
}

func TestNewerEnvelopes(t *testing.T) {
	t.Parallel()
	b := sandboxtest.Open(t)
	now := b.Clock.Now()
	account := kling.Vendor().Account.Credentials
	signed := token(t, account["secret_key"], jwt.SigningMethodHS256, jwt.MapClaims{
		"iss": account["access_key"], "exp": now.Add(time.Minute).Unix(), "nbf": now.Unix(),
	}, "JWT")
	for name, tc := range map[string]struct {
		method, path string
		header       map[string]string
		status, code int
	}{
		"unknown model":     {"POST", "text-to-video/kling-9", key, 404, 1203},
		"older name":        {"POST", "text-to-video/kling-v3", key, 404, 1203},
		"other operation":   {"POST", "omni-video/kling-3.0", key, 404, 1203},
		"a signed token":    {"GET", "tasks?task_ids=1", map[string]string{"Authorization": "Bearer " + signed}, 401, 1002},
		"a foreign key":     {"GET", "tasks?task_ids=1", map[string]string{"Authorization": "Bearer nobody"}, 401, 1000},
		"no ids":            {"GET", "tasks", key, 400, 1201},
		"both kinds of ids": {"GET", "tasks?task_ids=1&external_task_ids=2", key, 400, 1201},
		"unknown id":        {"GET", "tasks?task_ids=1", key, 200, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := b.Call(t, tc.method, "/kling/"+tc.path, tc.header, newerText(nil, nil))
			if got.Status != tc.status || got.At("code") != float64(tc.code) {
				t.Errorf("%d %s, want %d code %d", got.Status, got.Raw, tc.status, tc.code)
			}
		})
	}
}

func TestNewerLife(t *testing.T) {
	t.Parallel()
	b := sandboxtest.Open(t)
	first := newerCall(t, b, "POST", "text-to-video/kling-3.0", newerText(m{"options": m{"external_task_id": "task_7", "watermark_info": m{"enabled": true}}}, nil))
	second := newerCall(t, b, "POST", "text-to-video/kling-3.0", newerText(m{"prompt": "[[sandbox: fail=moderation, at=poll]]"}, nil))
	older := call(t, b, "POST", "text2video", textVideo())
	one, two := first.Text("data", "id"), second.Text("data", "id")
	if first.Text("data", "external_id") != "task_7" {
		t.Errorf("made: %s", first.Raw)
	}
	b.Clock.Advance(time.Hour)
	got := newerCall(t, b, "GET", "tasks?task_ids="+one+","+older.Text("data", "task_id")+",9,"+two, nil)
	if len(got.At("data").([]any)) != 2 || got.Text("data", 0, "status") != "succeeded" || got.Text("data", 1, "status") != "failed" || got.Text("data", 1, "message") == "" {
		t.Errorf("a batch: %s", got.Raw)
	}
	clean, marked := got.Text("data", 0, "outputs", 0, "url"), got.Text("data", 0, "outputs", 0, "watermark_url")
	if b.Call(t, "GET", clean, nil, nil).Status != 200 || b.Call(t, "GET", marked, nil, nil).Status != 200 || got.Text("data", 0, "billing", 0, "amount") != "5" {
		t.Errorf("the result: %s", got.Raw)
	}
	if got = newerCall(t, b, "GET", "tasks?external_task_ids=task_7", nil); got.Text("data", 0, "id") != one {
		t.Errorf("by the external id: %s", got.Raw)
	}
	for path, what := range map[string]string{"tasks?task_ids=task_7": "our id as the vendor's", "tasks?external_task_ids=" + one: "the vendor's id as ours"} {
		if got = newerCall(t, b, "GET", path, nil); len(got.At("data").([]any)) != 0 {
			t.Errorf("%s: %s", what, got.Raw)
		}
	}
	if got = call(t, b, "GET", "text2video/"+one, nil); got.Status != 400 {
		t.Errorf("found by the older generation: %s", got.Raw)
	}
	if got = call(t, b, "POST", "text2video", with(textVideo(), m{"external_task_id": "task_7"})); got.Status != 400 {
		t.Errorf("a second job under one external id: %s", got.Raw)
	}
}
