package kling_test

import (
	"strings"
	"testing"

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
		"text, everything":       {"text-to-video/kling-3.0", newerText(m{"options": m{"external_task_id": "e1", "callback_url": "https://cb.example.com", "watermark_info": m{"enabled": true}}}, m{"resolution": "4k", "audio": "native", "duration": 15}), ""},
		"text 3073":              {"text-to-video/kling-3.0", newerText(m{"prompt": strings.Repeat("é", 3073)}, nil), "prompt"},
		"2 s":                    {"text-to-video/kling-3.0", newerText(nil, m{"duration": 2}), "settings.duration"},
		"original sound of text": {"text-to-video/kling-3.0", newerText(nil, m{"audio": "original"}), "settings.audio"},
		"ratio 4:3":              {"text-to-video/kling-3.0", newerText(nil, m{"aspect_ratio": "4:3"}), "settings.aspect_ratio"},
		"shots of another sum":   {"text-to-video/kling-3.0", newerText(m{"prompt": "shot 1, 2, a; shot 2, 2, b;"}, m{"multi_shot": true}), "prompt"},
		"shots by default":       {"text-to-video/kling-3.0", newerText(m{"prompt": "shot 1, 2, a; shot 2, 2, b;"}, m{"multi_shot": nil}), "prompt"},
		"shots in disorder":      {"text-to-video/kling-3.0", newerText(m{"prompt": "shot 2, 2, a; shot 1, 3, b;"}, m{"multi_shot": true}), "prompt"},
		"7 shots":                {"text-to-video/kling-3.0", newerText(m{"prompt": "shot 1, 1, a; shot 2, 1, a; shot 3, 1, a; shot 4, 1, a; shot 5, 1, a; shot 6, 1, a; shot 7, 1, a;"}, m{"multi_shot": true, "duration": 7}), "prompt"},
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
		"o1 text, 6 s":           {"omni-video/kling-o1", omni(with(o1, m{"duration": 6})), "settings.duration"},
		"o1 shots":               {"omni-video/kling-o1", omni(nil), "settings.multi_shot"},
		"o1 sound":               {"omni-video/kling-o1", omni(with(o1, m{"audio": "native"})), "settings.audio"},
		"o1 original of nothing": {"omni-video/kling-o1", omni(with(o1, m{"audio": "original"})), "settings.audio"},
		"two videos":             {"omni-video/kling-o1", omni(o1, link("base_video", "a"), link("feature_video", "b")), "contents"},
		"reference to nothing":   {"omni-video/kling-o1", said("@image_2 runs", link("refer_image", "image_1")), "contents"},
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
