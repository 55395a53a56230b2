package kling_test

import (
	"bytes"
	"encoding/base64"
	stdimage "image"
	"image/png"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"go.uber.org/goleak"

	"github.com/mediagate/mediagate/sandbox/kling"
	"github.com/mediagate/mediagate/sandbox/sandboxtest"
)

type m = sandboxtest.M

var with = sandboxtest.With

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var key = map[string]string{"Authorization": "Bearer sandbox-kling-api-key"}

func call(t *testing.T, b *sandboxtest.Sandbox, method, path string, body any) sandboxtest.Answer {
	t.Helper()
	return b.Call(t, method, "/kling/v1/videos/"+path, key, body)
}

func textVideo() m {
	return m{"model_name": "kling-v3", "prompt": "a fox", "duration": "5"}
}

func token(t *testing.T, secret string, method jwt.SigningMethod, claims jwt.MapClaims, typ any) string {
	t.Helper()
	tok := jwt.NewWithClaims(method, claims)
	if typ == nil {
		delete(tok.Header, "typ")
	} else {
		tok.Header["typ"] = typ
	}
	var key any = []byte(secret)
	if method == jwt.SigningMethodNone {
		key = jwt.UnsafeAllowNoneSignatureType
	}
	s, err := tok.SignedString(key)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestAuthentication(t *testing.T) {
	t.Parallel()
	b := sandboxtest.Open(t)
	now := b.Clock.Now()
	account := kling.Vendor().Account.Credentials
	good := jwt.MapClaims{"iss": account["access_key"], "exp": now.Add(30 * time.Minute).Unix(), "nbf": now.Add(-5 * time.Second).Unix()}
	claims := func(change m) jwt.MapClaims { return jwt.MapClaims(with(m(good), change)) }
	sign := func(c jwt.MapClaims) string {
		return "Bearer " + token(t, account["secret_key"], jwt.SigningMethodHS256, c, "JWT")
	}
	cases := map[string]struct {
		header string
		code   int // 0: let in, so the job is not found
	}{
		"token":          {sign(good), 0},
		"api key":        {"Bearer " + account["api_key"], 0},
		"no header":      {"", 1001},
		"other scheme":   {"Token abc", 1002},
		"foreign key":    {"Bearer nobody", 1000},
		"foreign issuer": {sign(claims(m{"iss": "nobody"})), 1000},
		"other secret":   {"Bearer " + token(t, "wrong", jwt.SigningMethodHS256, good, "JWT"), 1000},
		"no typ":         {"Bearer " + token(t, account["secret_key"], jwt.SigningMethodHS256, good, nil), 1002},
		"alg none":       {"Bearer " + token(t, "", jwt.SigningMethodNone, good, "JWT"), 1000},
		"no nbf":         {sign(claims(m{"nbf": nil})), 1002},
		"expired":        {sign(claims(m{"exp": now.Add(-time.Second).Unix()})), 1004},
		"valid in 1 s":   {sign(claims(m{"nbf": now.Add(time.Second).Unix()})), 1003},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			header := map[string]string{}
			if tc.header != "" {
				header["Authorization"] = tc.header
			}
			got := b.Call(t, "GET", "/kling/v1/videos/text2video/1", header, nil)
			status, code := 401, tc.code
			if code == 0 {
				status, code = 400, 1201
			}
			if got.Status != status || got.At("code") != float64(code) || got.Text("request_id") == "" {
				t.Errorf("%d %s, want %d code %d", got.Status, got.Raw, status, code)
			}
		})
	}
}

// picture makes bare base64 of a PNG.
func picture(t *testing.T, width, height int) string {
	t.Helper()
	var buf bytes.Buffer
	if err := png.Encode(&buf, stdimage.NewGray(stdimage.Rect(0, 0, width, height))); err != nil {
		t.Fatal(err)
	}
	return base64.StdEncoding.EncodeToString(buf.Bytes())
}

// shots makes multi-shot items of the given lengths.
func shots(seconds ...string) []m {
	var out []m
	for i, s := range seconds {
		out = append(out, m{"index": i + 1, "prompt": "shot", "duration": s})
	}
	return out
}

func ids(n int) []m { return slices.Repeat([]m{{"element_id": 160000000000001}}, n) }

func links(n int) []m { return slices.Repeat([]m{{"image_url": "https://cdn.example.com/a.png"}}, n) }

func video(changes m) []m {
	return []m{with(m{"video_url": "https://cdn.example.com/a.mp4"}, changes)}
}

// What the vendor refuses, by a change to a request that it accepts, and the field
// that its refusal names.
func TestRules(t *testing.T) {
	t.Parallel()
	multi := func(change m) m {
		return with(m{"multi_shot": true, "shot_type": "customize", "multi_prompt": shots("2", "3"), "prompt": ""}, change)
	}
	frame := func(kind string) m { return m{"image_url": "https://cdn.example.com/f.png", "type": kind} }
	type change struct {
		change m
		field  string
	}
	for endpoint, rules := range map[string]struct {
		accepted m
		cases    map[string]change
	}{
		"text2video": {textVideo(), map[string]change{
			"no model":              {m{"model_name": nil}, "model_name"},
			"prompt 2501":           {m{"prompt": strings.Repeat("é", 2501)}, "prompt"},
			"negative 2501":         {m{"negative_prompt": strings.Repeat("x", 2501)}, "negative_prompt"},
			"duration number":       {m{"duration": 5}, "duration"},
			"duration 2":            {m{"duration": "2"}, "duration"},
			"duration 16":           {m{"duration": "16"}, "duration"},
			"mode 8k":               {m{"mode": "8k"}, "mode"},
			"ratio 4:3":             {m{"aspect_ratio": "4:3"}, "aspect_ratio"},
			"elements":              {m{"element_list": ids(1)}, "element_list"},
			"image":                 {m{"image": "https://cdn.example.com/a.png"}, "image"},
			"cfg_scale":             {m{"cfg_scale": 0.5}, "cfg_scale"},
			"unknown":               {m{"fps": 24}, "fps"},
			"watermark word":        {m{"watermark_info": m{"enabled": "yes"}}, "watermark_info.enabled"},
			"callback no url":       {m{"callback_url": "there"}, "callback_url"},
			"multi no type":         {multi(m{"shot_type": nil}), "shot_type"},
			"intelligence, no text": {m{"multi_shot": true, "shot_type": "intelligence", "prompt": nil}, "prompt"},
			"multi no shots":        {multi(m{"multi_prompt": nil}), "multi_prompt"},
			"7 shots":               {multi(m{"duration": "7", "multi_prompt": shots("1", "1", "1", "1", "1", "1", "1")}), "multi_prompt"},
			"sum above":             {multi(m{"multi_prompt": shots("3", "3")}), "multi_prompt"},
			"shot 513":              {multi(m{"multi_prompt": []m{{"index": 1, "prompt": strings.Repeat("x", 513), "duration": "5"}}}), "multi_prompt[0].prompt"},
			"shot index twice":      {multi(m{"multi_prompt": []m{{"index": 1, "prompt": "x", "duration": "2"}, {"index": 1, "prompt": "x", "duration": "3"}}}), "multi_prompt[1].index"},
			"v2-6 6 s":              {m{"model_name": "kling-v2-6", "duration": "6"}, "duration"},
			"v2-6 sound std":        {m{"model_name": "kling-v2-6", "sound": "on", "mode": "std"}, "sound"},
			"v2-5 multi":            {multi(m{"model_name": "kling-v2-5-turbo"}), "multi_shot"},
		}},
		"image2video": {with(textVideo(), m{"image": "https://cdn.example.com/a.png"}), map[string]change{
			"none":               {m{"image": nil}, "image"},
			"ratio":              {m{"aspect_ratio": "16:9"}, "aspect_ratio"},
			"data uri":           {m{"image": "data:image/png;base64," + picture(t, 300, 300)}, "image"},
			"base64 299":         {m{"image": picture(t, 299, 300)}, "image"},
			"base64 below 1:2.5": {m{"image": picture(t, 300, 751)}, "image"},
			"base64 no picture":  {m{"image": base64.StdEncoding.EncodeToString([]byte("hello"))}, "image"},
			"base64 too large":   {m{"image": base64.StdEncoding.EncodeToString(make([]byte, 10<<20+1))}, "image"},
			"4 elements":         {m{"element_list": ids(4)}, "element_list"},
			"element named":      {m{"element_list": []m{{"name": "fox"}}}, "element_list[0].name"},
			"3 voices":           {m{"sound": "on", "voice_list": slices.Repeat([]m{{"voice_id": "a"}}, 3)}, "voice_list"},
			"voices silent":      {m{"voice_list": []m{{"voice_id": "a"}}}, "voice_list"},
			"voices, elements":   {m{"sound": "on", "voice_list": []m{{"voice_id": "a"}}, "element_list": ids(1)}, "voice_list"},
		}},
		"omni-video": {m{"model_name": "kling-video-o1", "prompt": "a fox", "duration": "5", "mode": "std", "aspect_ratio": "16:9"}, map[string]change{
			"no ratio":              {m{"aspect_ratio": nil}, "aspect_ratio"},
			"mode 4k":               {m{"mode": "4k"}, "mode"},
			"8 images":              {m{"image_list": links(8)}, "image_list"},
			"6 + 2":                 {m{"image_list": links(6), "element_list": ids(2)}, "image_list"},
			"5 with video":          {m{"image_list": links(5), "video_list": video(nil)}, "image_list"},
			"text 6 s":              {m{"duration": "6"}, "duration"},
			"first frame 6 s":       {m{"duration": "6", "image_list": []m{frame("first_frame")}}, "duration"},
			"reference 2 s":         {m{"duration": "2", "image_list": links(1)}, "duration"},
			"reference 11 s":        {m{"duration": "11", "image_list": links(1)}, "duration"},
			"o1, frames and more":   {m{"image_list": append([]m{frame("first_frame"), frame("end_frame")}, links(1)...)}, "image_list"},
			"o1, frames, element":   {m{"image_list": []m{frame("first_frame"), frame("end_frame")}, "element_list": ids(1)}, "element_list"},
			"frame, 4 elements":     {m{"image_list": []m{frame("first_frame")}, "element_list": ids(4)}, "element_list"},
			"end frame alone":       {m{"image_list": []m{frame("end_frame")}}, "image_list"},
			"frame, video to edit":  {m{"image_list": []m{frame("first_frame")}, "video_list": video(nil)}, "image_list"},
			"shot reference beyond": {m{"model_name": "kling-v3-omni", "multi_shot": true, "shot_type": "customize", "image_list": links(1), "multi_prompt": []m{{"index": 1, "prompt": "<<<image_2>>>", "duration": "5"}}}, "prompt"},
			"two first frames":      {m{"image_list": []m{frame("first_frame"), frame("first_frame")}}, "image_list"},
			"image beyond":          {m{"prompt": "<<<image_3>>>", "image_list": links(2)}, "prompt"},
			"element beyond":        {m{"prompt": "<<<element_1>>>"}, "prompt"},
			"sound on":              {m{"sound": "on"}, "sound"},
			"v3 sound with video":   {m{"model_name": "kling-v3-omni", "sound": "on", "video_list": video(nil)}, "sound"},
			"multi_shot":            {m{"multi_shot": true, "shot_type": "intelligence"}, "multi_shot"},
			"negative":              {m{"negative_prompt": "x"}, "negative_prompt"},
		}},
	} {
		t.Run(endpoint, func(t *testing.T) {
			t.Parallel()
			b := sandboxtest.Open(t)
			if got := call(t, b, "POST", endpoint, rules.accepted); got.Status != 200 {
				t.Fatalf("refused: %d %s", got.Status, got.Raw)
			}
			for name, tc := range rules.cases {
				got := call(t, b, "POST", endpoint, with(rules.accepted, tc.change))
				if got.Status != 400 || got.At("code") != 1201.0 || !strings.HasPrefix(got.Text("message"), tc.field+":") {
					t.Errorf("%s: %d %s, want 400 code 1201 naming %s", name, got.Status, got.Raw, tc.field)
				}
			}
		})
	}
}

func TestEnvelopes(t *testing.T) {
	t.Parallel()
	b := sandboxtest.Open(t)
	now := b.Clock.Now()
	account := kling.Vendor().Account.Credentials
	signed := token(t, account["secret_key"], jwt.SigningMethodHS256, jwt.MapClaims{
		"iss": account["access_key"], "exp": now.Add(time.Minute).Unix(), "nbf": now.Unix(),
	}, "JWT")
	for name, tc := range map[string]struct {
		method, path, key string
		body              any
		status, code      int
	}{
		"unknown model":          {"POST", "v1/videos/text2video", account["api_key"], with(textVideo(), m{"model_name": "kling-v9"}), 404, 1203},
		"unknown endpoint":       {"POST", "v1/videos/lip-sync", account["api_key"], m{}, 404, 1203},
		"wrong method":           {"DELETE", "v1/videos/text2video/1", account["api_key"], nil, 404, 1202},
		"no JSON":                {"POST", "v1/videos/text2video", account["api_key"], "{", 400, 1200},
		"newer, unknown model":   {"POST", "text-to-video/kling-9", account["api_key"], m{}, 404, 1203},
		"newer, other operation": {"POST", "omni-video/kling-3.0", account["api_key"], m{}, 404, 1203},
		"newer, a signed token":  {"GET", "tasks?task_ids=1", signed, nil, 401, 1002},
		"newer, a foreign key":   {"GET", "tasks?task_ids=1", "nobody", nil, 401, 1000},
		"newer, no ids":          {"GET", "tasks", account["api_key"], nil, 400, 1201},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := b.Call(t, tc.method, "/kling/"+tc.path, map[string]string{"Authorization": "Bearer " + tc.key}, tc.body)
			if got.Status != tc.status || got.At("code") != float64(tc.code) || got.Text("message") == "" || got.Text("request_id") == "" {
				t.Errorf("%d %s, want %d code %d", got.Status, got.Raw, tc.status, tc.code)
			}
		})
	}
}

// An external id is one job's, over all endpoints and both generations; a job is found
// by the endpoint that made it.
func TestExternalIDs(t *testing.T) {
	t.Parallel()
	b := sandboxtest.Open(t)
	first := call(t, b, "POST", "text2video", with(textVideo(), m{"external_task_id": "task_7"})).Text("data", "task_id")
	framed := with(textVideo(), m{"image": "https://cdn.example.com/a.png", "external_task_id": "task_7"})
	if got := call(t, b, "POST", "image2video", framed); got.At("code") != 1201.0 || !strings.Contains(got.Text("message"), "external_task_id") {
		t.Errorf("another endpoint: %s", got.Raw)
	}
	newer := newerText(m{"options": m{"external_task_id": "task_7"}}, nil)
	if got := newerCall(t, b, "POST", "text-to-video/kling-3.0", newer); got.At("code") != 1201.0 {
		t.Errorf("the newer generation: %s", got.Raw)
	}
	if got := call(t, b, "GET", "image2video/"+first, nil); got.At("code") != 1201.0 {
		t.Errorf("found by another endpoint: %s", got.Raw)
	}
	for _, query := range []string{"task_ids=" + first, "task_ids=task_7", "external_task_ids=" + first} {
		if got := newerCall(t, b, "GET", "tasks?"+query, nil); got.Status != 200 || len(got.At("data").([]any)) != 0 {
			t.Errorf("found by the newer generation: %s: %s", query, got.Raw)
		}
	}
}
