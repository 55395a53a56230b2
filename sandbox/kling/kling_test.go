package kling_test

import (
	"bytes"
	"encoding/base64"
	"fmt"
	stdimage "image"
	"image/png"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"go.uber.org/goleak"

	"github.com/mediagate/mediagate/sandbox"
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

func TestKlingAuthentication(t *testing.T) {
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
		"token":           {sign(good), 0},
		"api key":         {"Bearer " + account["api_key"], 0},
		"no header":       {"", 1001},
		"other scheme":    {"Token abc", 1002},
		"empty":           {"Bearer ", 1002},
		"foreign key":     {"Bearer nobody", 1000},
		"foreign issuer":  {sign(claims(m{"iss": "nobody"})), 1000},
		"other secret":    {"Bearer " + token(t, "wrong", jwt.SigningMethodHS256, good, "JWT"), 1000},
		"no typ":          {"Bearer " + token(t, account["secret_key"], jwt.SigningMethodHS256, good, nil), 1002},
		"HS512":           {"Bearer " + token(t, account["secret_key"], jwt.SigningMethodHS512, good, "JWT"), 1000},
		"alg none":        {"Bearer " + token(t, "", jwt.SigningMethodNone, good, "JWT"), 1000},
		"no exp":          {sign(claims(m{"exp": nil})), 1002},
		"no nbf":          {sign(claims(m{"nbf": nil})), 1002},
		"expired":         {sign(claims(m{"exp": now.Add(-time.Second).Unix()})), 1004},
		"expires in 1 s":  {sign(claims(m{"exp": now.Add(time.Second).Unix()})), 0},
		"valid in 1 s":    {sign(claims(m{"nbf": now.Add(time.Second).Unix()})), 1003},
		"valid since now": {sign(claims(m{"nbf": now.Unix()})), 0},
		"three words":     {"Bearer a.b.c", 1002},
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

// ruleCase is a change to a valid body; field names the rule that must refuse
// it, "" when it is valid.
type ruleCase struct {
	change m
	field  string
}

func runRules(t *testing.T, endpoint string, base m, cases map[string]ruleCase) {
	t.Helper()
	b := sandboxtest.Open(t)
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := call(t, b, "POST", endpoint, with(base, tc.change))
			if tc.field == "" {
				if got.Status != 200 || got.At("code") != 0.0 || got.Text("data", "task_status") != "submitted" {
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

func TestKlingText2VideoRules(t *testing.T) {
	t.Parallel()
	multi := func(change m) m {
		return with(m{"multi_shot": true, "shot_type": "customize", "multi_prompt": shots("2", "3"), "prompt": ""}, change)
	}
	runRules(t, "text2video", textVideo(), map[string]ruleCase{
		"plain":                 {m{}, ""},
		"everything":            {m{"negative_prompt": "x", "mode": "pro", "sound": "on", "aspect_ratio": "1:1", "multi_shot": false, "watermark_info": m{"enabled": true}, "callback_url": "https://cb.example.com", "external_task_id": "task_1"}, ""},
		"no model":              {m{"model_name": nil}, "model_name"},
		"model number":          {m{"model_name": 3}, "model_name"},
		"no prompt":             {m{"prompt": nil}, "prompt"},
		"blank prompt":          {m{"prompt": "  "}, "prompt"},
		"prompt 2500":           {m{"prompt": strings.Repeat("é", 2500)}, ""},
		"prompt 2501":           {m{"prompt": strings.Repeat("é", 2501)}, "prompt"},
		"negative 2500":         {m{"negative_prompt": strings.Repeat("x", 2500)}, ""},
		"negative 2501":         {m{"negative_prompt": strings.Repeat("x", 2501)}, "negative_prompt"},
		"duration number":       {m{"duration": 5}, "duration"},
		"duration 2":            {m{"duration": "2"}, "duration"},
		"duration 3":            {m{"duration": "3"}, ""},
		"duration 15":           {m{"duration": "15"}, ""},
		"duration 16":           {m{"duration": "16"}, "duration"},
		"duration 5.0":          {m{"duration": "5.0"}, "duration"},
		"duration 05":           {m{"duration": "05"}, "duration"},
		"no duration":           {m{"duration": nil}, ""},
		"mode 4k":               {m{"mode": "4k"}, ""},
		"mode 8k":               {m{"mode": "8k"}, "mode"},
		"sound boolean":         {m{"sound": true}, "sound"},
		"ratio 4:3":             {m{"aspect_ratio": "4:3"}, "aspect_ratio"},
		"elements":              {m{"element_list": ids(1)}, "element_list"},
		"image":                 {m{"image": "https://cdn.example.com/a.png"}, "image"},
		"cfg_scale":             {m{"cfg_scale": 0.5}, "cfg_scale"},
		"unknown":               {m{"fps": 24}, "fps"},
		"watermark word":        {m{"watermark_info": m{"enabled": "yes"}}, "watermark_info.enabled"},
		"watermark bare":        {m{"watermark_info": true}, "watermark_info"},
		"external id number":    {m{"external_task_id": 1}, "external_task_id"},
		"callback no url":       {m{"callback_url": "there"}, "callback_url"},
		"multi word":            {m{"multi_shot": "true"}, "multi_shot"},
		"multi":                 {multi(nil), ""},
		"multi no type":         {multi(m{"shot_type": nil}), "shot_type"},
		"multi other type":      {multi(m{"shot_type": "free"}), "shot_type"},
		"multi intelligence":    {m{"multi_shot": true, "shot_type": "intelligence"}, ""},
		"intelligence, no text": {m{"multi_shot": true, "shot_type": "intelligence", "prompt": nil}, "prompt"},
		"multi no shots":        {multi(m{"multi_prompt": nil}), "multi_prompt"},
		"multi empty":           {multi(m{"multi_prompt": []m{}}), "multi_prompt"},
		"6 shots":               {multi(m{"duration": "6", "multi_prompt": shots("1", "1", "1", "1", "1", "1")}), ""},
		"7 shots":               {multi(m{"duration": "7", "multi_prompt": shots("1", "1", "1", "1", "1", "1", "1")}), "multi_prompt"},
		"sum below":             {multi(m{"multi_prompt": shots("2", "2")}), "multi_prompt"},
		"sum above":             {multi(m{"multi_prompt": shots("3", "3")}), "multi_prompt"},
		"shot 0 s":              {multi(m{"multi_prompt": shots("0", "5")}), "multi_prompt[0].duration"},
		"shot number":           {multi(m{"multi_prompt": []m{{"index": 1, "prompt": "x", "duration": 5}}}), "multi_prompt[0].duration"},
		"shot 512":              {multi(m{"multi_prompt": []m{{"index": 1, "prompt": strings.Repeat("x", 512), "duration": "5"}}}), ""},
		"shot 513":              {multi(m{"multi_prompt": []m{{"index": 1, "prompt": strings.Repeat("x", 513), "duration": "5"}}}), "multi_prompt[0].prompt"},
		"shot index twice":      {multi(m{"multi_prompt": []m{{"index": 1, "prompt": "x", "duration": "2"}, {"index": 1, "prompt": "x", "duration": "3"}}}), "multi_prompt[1].index"},
		"shot index string":     {multi(m{"multi_prompt": []m{{"index": "1", "prompt": "x", "duration": "5"}}}), "multi_prompt[0].index"},
		"v2-6 5 s":              {m{"model_name": "kling-v2-6"}, ""},
		"v2-6 6 s":              {m{"model_name": "kling-v2-6", "duration": "6"}, "duration"},
		"v2-6 sound std":        {m{"model_name": "kling-v2-6", "sound": "on", "mode": "std"}, "sound"},
		"v2-6 sound pro":        {m{"model_name": "kling-v2-6", "sound": "on", "mode": "pro"}, ""},
		"v2-5 multi":            {multi(m{"model_name": "kling-v2-5-turbo"}), "multi_shot"},
	})
}

func TestKlingImage2VideoRules(t *testing.T) {
	t.Parallel()
	base := with(textVideo(), m{"image": "https://cdn.example.com/a.png"})
	runRules(t, "image2video", base, map[string]ruleCase{
		"plain":              {m{}, ""},
		"both":               {m{"image_tail": "https://cdn.example.com/b.png"}, ""},
		"tail only":          {m{"image": nil, "image_tail": "https://cdn.example.com/b.png"}, ""},
		"none":               {m{"image": nil}, "image"},
		"ratio":              {m{"aspect_ratio": "16:9"}, "aspect_ratio"},
		"data uri":           {m{"image": "data:image/png;base64," + picture(t, 300, 300)}, "image"},
		"base64 300":         {m{"image": picture(t, 300, 300)}, ""},
		"base64 299":         {m{"image": picture(t, 299, 300)}, "image"},
		"base64 2.5:1":       {m{"image": picture(t, 750, 300)}, ""},
		"base64 over 2.5:1":  {m{"image": picture(t, 751, 300)}, "image"},
		"base64 1:2.5":       {m{"image": picture(t, 300, 750)}, ""},
		"base64 below 1:2.5": {m{"image": picture(t, 300, 751)}, "image"},
		"base64 no picture":  {m{"image": base64.StdEncoding.EncodeToString([]byte("hello"))}, "image"},
		"base64 too large":   {m{"image": base64.StdEncoding.EncodeToString(make([]byte, 10<<20+1))}, "image"},
		"3 elements":         {m{"element_list": ids(3)}, ""},
		"4 elements":         {m{"element_list": ids(4)}, "element_list"},
		"element string":     {m{"element_list": []m{{"element_id": "1"}}}, "element_list[0].element_id"},
		"element named":      {m{"element_list": []m{{"name": "fox"}}}, "element_list[0].name"},
		"2 voices":           {m{"sound": "on", "voice_list": []m{{"voice_id": "a"}, {"voice_id": "b"}}}, ""},
		"3 voices":           {m{"sound": "on", "voice_list": slices.Repeat([]m{{"voice_id": "a"}}, 3)}, "voice_list"},
		"voices silent":      {m{"voice_list": []m{{"voice_id": "a"}}}, "voice_list"},
		"voices, elements":   {m{"sound": "on", "voice_list": []m{{"voice_id": "a"}}, "element_list": ids(1)}, "voice_list"},
	})
}

func TestKlingOmniRules(t *testing.T) {
	t.Parallel()
	base := m{"model_name": "kling-video-o1", "prompt": "a fox", "duration": "5", "mode": "std", "aspect_ratio": "16:9"}
	frame := func(kind string) m { return m{"image_url": "https://cdn.example.com/f.png", "type": kind} }
	runRules(t, "omni-video", base, map[string]ruleCase{
		"plain":                 {m{}, ""},
		"default model":         {m{"model_name": nil}, ""},
		"no ratio":              {m{"aspect_ratio": nil}, "aspect_ratio"},
		"no ratio, first frame": {m{"aspect_ratio": nil, "image_list": []m{frame("first_frame")}}, ""},
		"no ratio, edit":        {m{"aspect_ratio": nil, "video_list": video(nil)}, ""},
		"no ratio, feature":     {m{"aspect_ratio": nil, "video_list": video(m{"refer_type": "feature"})}, "aspect_ratio"},
		"mode 4k":               {m{"mode": "4k"}, "mode"},
		"7 images":              {m{"image_list": links(7)}, ""},
		"8 images":              {m{"image_list": links(8)}, "image_list"},
		"6 + 1":                 {m{"image_list": links(6), "element_list": ids(1)}, ""},
		"6 + 2":                 {m{"image_list": links(6), "element_list": ids(2)}, "image_list"},
		"4 with video":          {m{"image_list": links(4), "video_list": video(nil)}, ""},
		"5 with video":          {m{"image_list": links(5), "video_list": video(nil)}, "image_list"},
		"2 videos":              {m{"video_list": slices.Concat(video(nil), video(nil))}, "video_list"},
		"video word":            {m{"video_list": video(m{"refer_type": "copy"})}, "video_list[0].refer_type"},
		"video sound word":      {m{"video_list": video(m{"keep_original_sound": true})}, "video_list[0].keep_original_sound"},
		"text 6 s":              {m{"duration": "6"}, "duration"},
		"text 10 s":             {m{"duration": "10"}, ""},
		"first frame 6 s":       {m{"duration": "6", "image_list": []m{frame("first_frame")}}, "duration"},
		"reference 6 s":         {m{"duration": "6", "image_list": links(1)}, ""},
		"reference 3 s":         {m{"duration": "3", "image_list": links(1)}, ""},
		"reference 2 s":         {m{"duration": "2", "image_list": links(1)}, "duration"},
		"reference 11 s":        {m{"duration": "11", "image_list": links(1)}, "duration"},
		"reference and frames":  {m{"model_name": "kling-v3-omni", "image_list": append([]m{frame("first_frame"), frame("end_frame")}, links(5)...)}, ""},
		"o1, frames":            {m{"image_list": []m{frame("first_frame"), frame("end_frame")}}, ""},
		"o1, frames and more":   {m{"image_list": append([]m{frame("first_frame"), frame("end_frame")}, links(1)...)}, "image_list"},
		"o1, frame and more":    {m{"image_list": append([]m{frame("first_frame")}, links(2)...)}, ""},
		"o1, frames, element":   {m{"image_list": []m{frame("first_frame"), frame("end_frame")}, "element_list": ids(1)}, "element_list"},
		"frames, 3 elements":    {m{"model_name": "kling-v3-omni", "image_list": []m{frame("first_frame"), frame("end_frame")}, "element_list": ids(3)}, ""},
		"frame, 4 elements":     {m{"image_list": []m{frame("first_frame")}, "element_list": ids(4)}, "element_list"},
		"no frame, 4 elements":  {m{"element_list": ids(4)}, ""},
		"end frame alone":       {m{"image_list": []m{frame("end_frame")}}, "image_list"},
		"frame, video to edit":  {m{"image_list": []m{frame("first_frame")}, "video_list": video(nil)}, "image_list"},
		"frame, feature video":  {m{"image_list": []m{frame("first_frame")}, "video_list": video(m{"refer_type": "feature"})}, ""},
		"named element":         {m{"element_list": []m{{"name": "fox"}}}, "element_list[0].name"},
		"shot reference":        {m{"model_name": "kling-v3-omni", "multi_shot": true, "shot_type": "customize", "image_list": links(1), "multi_prompt": []m{{"index": 1, "prompt": "<<<image_1>>>", "duration": "5"}}}, ""},
		"shot reference beyond": {m{"model_name": "kling-v3-omni", "multi_shot": true, "shot_type": "customize", "image_list": links(1), "multi_prompt": []m{{"index": 1, "prompt": "<<<image_2>>>", "duration": "5"}}}, "prompt"},
		"two first frames":      {m{"image_list": []m{frame("first_frame"), frame("first_frame")}}, "image_list"},
		"frame word":            {m{"image_list": []m{frame("middle")}}, "image_list[0].type"},
		"image reference":       {m{"prompt": "<<<image_2>>>", "image_list": links(2)}, ""},
		"image beyond":          {m{"prompt": "<<<image_3>>>", "image_list": links(2)}, "prompt"},
		"image 0":               {m{"prompt": "<<<image_0>>>", "image_list": links(2)}, "prompt"},
		"element reference":     {m{"prompt": "<<<element_1>>>", "element_list": ids(1)}, ""},
		"element beyond":        {m{"prompt": "<<<element_1>>>"}, "prompt"},
		"video reference":       {m{"prompt": "<<<video_1>>>", "video_list": video(nil)}, ""},
		"sound on":              {m{"sound": "on"}, "sound"},
		"sound off":             {m{"sound": "off"}, ""},
		"v3 sound":              {m{"model_name": "kling-v3-omni", "sound": "on"}, ""},
		"v3 sound with video":   {m{"model_name": "kling-v3-omni", "sound": "on", "video_list": video(nil)}, "sound"},
		"multi_shot":            {m{"multi_shot": true, "shot_type": "intelligence"}, "multi_shot"},
		"v3 multi_shot":         {m{"model_name": "kling-v3-omni", "multi_shot": true, "shot_type": "intelligence"}, ""},
		"negative":              {m{"negative_prompt": "x"}, "negative_prompt"},
	})
}

func TestKlingEnvelopes(t *testing.T) {
	t.Parallel()
	b := sandboxtest.Open(t)
	cases := map[string]struct {
		method, path string
		body         any
		status, code int
	}{
		"unknown model":    {"POST", "text2video", with(textVideo(), m{"model_name": "kling-v9"}), 404, 1203},
		"omni model":       {"POST", "text2video", with(textVideo(), m{"model_name": "kling-video-o1"}), 404, 1203},
		"unknown endpoint": {"POST", "lip-sync", m{}, 404, 1203},
		"wrong method":     {"DELETE", "text2video/1", nil, 404, 1202},
		"no JSON":          {"POST", "text2video", "{", 400, 1200},
		"array":            {"POST", "text2video", "[]", 400, 1200},
		"trailing":         {"POST", "text2video", `{"prompt":"x"} {}`, 400, 1200},
		"not UTF-8":        {"POST", "text2video", "{\"prompt\":\"\xff\"}", 400, 1200},
		"unknown task":     {"GET", "text2video/1", nil, 400, 1201},
		"page 0":           {"GET", "text2video?pageNum=0", nil, 400, 1201},
		"page 1001":        {"GET", "text2video?pageNum=1001", nil, 400, 1201},
		"size 501":         {"GET", "text2video?pageSize=501", nil, 400, 1201},
		"size 500":         {"GET", "text2video?pageSize=500&pageNum=1000", nil, 200, 0},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := call(t, b, tc.method, tc.path, tc.body)
			if got.Status != tc.status || got.At("code") != float64(tc.code) || got.Text("message") == "" || got.Text("request_id") == "" {
				t.Errorf("%d %s, want %d code %d", got.Status, got.Raw, tc.status, tc.code)
			}
		})
	}
}

func TestKlingLife(t *testing.T) {
	t.Parallel()
	b := sandboxtest.Open(t)
	got := call(t, b, "POST", "text2video", with(textVideo(), m{
		"external_task_id": "task_7", "watermark_info": m{"enabled": true}, "aspect_ratio": "9:16", "duration": "3",
	}))
	id := got.Text("data", "task_id")
	if got.At("data", "created_at") != float64(b.Clock.Now().UnixMilli()) || got.Text("data", "task_info", "external_task_id") != "task_7" {
		t.Fatalf("created: %s", got.Raw)
	}
	for _, step := range []struct {
		after time.Duration
		word  string
	}{{0, "submitted"}, {199 * time.Millisecond, "submitted"}, {time.Millisecond, "processing"}, {1799 * time.Millisecond, "processing"}, {time.Millisecond, "succeed"}} {
		b.Clock.Advance(step.after)
		for _, key := range []string{id, "task_7"} {
			if got = call(t, b, "GET", "text2video/"+key, nil); got.Text("data", "task_status") != step.word || got.Text("data", "task_id") != id {
				t.Fatalf("%s: %s, want %s", key, got.Raw, step.word)
			}
		}
	}
	video := func(field string) string { return got.Text("data", "task_result", "videos", 0, field) }
	if video("duration") != "3" || video("url") == video("watermark_url") || got.Text("data", "final_unit_deduction") == "" {
		t.Errorf("result: %s", got.Raw)
	}
	clean, marked := b.Call(t, "GET", video("url"), nil, nil), b.Call(t, "GET", video("watermark_url"), nil, nil)
	if clean.Status != 200 || marked.Status != 200 || bytes.Equal(clean.Raw, marked.Raw) {
		t.Errorf("files: %d and %d, %d and %d bytes", clean.Status, marked.Status, len(clean.Raw), len(marked.Raw))
	}
	if got := call(t, b, "GET", "image2video/"+id, nil); got.Status != 400 || got.At("code") != 1201.0 {
		t.Errorf("found under another endpoint: %s", got.Raw)
	}
	got = call(t, b, "POST", "image2video", with(textVideo(), m{"image": "https://cdn.example.com/a.png", "external_task_id": "task_7"}))
	if got.Status != 400 || got.At("code") != 1201.0 || !strings.Contains(got.Text("message"), "external_task_id") {
		t.Errorf("a second job under one external id: %d %s", got.Status, got.Raw)
	}
	if jobs := b.Jobs(t, "?provider=kling&reference=task_7"); len(jobs) != 1 {
		t.Errorf("%d jobs", len(jobs))
	}
}

func TestKlingList(t *testing.T) {
	t.Parallel()
	b := sandboxtest.Open(t)
	for i := range 3 {
		call(t, b, "POST", "text2video", with(textVideo(), m{"external_task_id": fmt.Sprint("e", i)}))
	}
	call(t, b, "POST", "omni-video", m{"prompt": "x", "aspect_ratio": "1:1"})
	for query, want := range map[string][]string{
		"": {"e2", "e1", "e0"}, "?pageSize=2": {"e2", "e1"}, "?pageSize=2&pageNum=2": {"e0"}, "?pageSize=2&pageNum=3": nil,
	} {
		got := call(t, b, "GET", "text2video"+query, nil)
		list, _ := got.At("data").([]any)
		var names []string
		for i := range list {
			names = append(names, got.Text("data", i, "task_info", "external_task_id"))
		}
		if !slices.Equal(names, want) {
			t.Errorf("%q: %v, want %v", query, names, want)
		}
	}
}

func TestKlingAccounts(t *testing.T) {
	t.Parallel()
	b := sandboxtest.OpenIn(t, t.TempDir(), sandboxtest.NewClock(), []sandbox.Account{
		{Provider: "kling", Credentials: map[string]string{"api_key": "one"}, Concurrency: 2},
		{Provider: "kling", Credentials: map[string]string{"api_key": "two"}},
	})
	submit := func(key, external string) sandboxtest.Answer {
		return b.Call(t, "POST", "/kling/v1/videos/text2video", map[string]string{"Authorization": "Bearer " + key}, with(textVideo(), m{"external_task_id": external}))
	}
	for _, external := range []string{"a", "b"} {
		if got := submit("one", external); got.Status != 200 {
			t.Fatalf("%s", got.Raw)
		}
	}
	if got := submit("one", "c"); got.Status != 429 || got.At("code") != 1303.0 {
		t.Errorf("a third job: %d %s", got.Status, got.Raw)
	}
	if got := submit("two", "a"); got.Status != 200 {
		t.Errorf("another account's: %s", got.Raw)
	}
	b.Clock.Advance(2 * time.Second)
	if got := submit("one", "c"); got.Status != 200 {
		t.Errorf("after the others ended: %s", got.Raw)
	}
	got := b.Call(t, "GET", "/kling/v1/videos/text2video/c", map[string]string{"Authorization": "Bearer two"}, nil)
	if got.At("code") != 1201.0 {
		t.Errorf("a foreign job is shown: %s", got.Raw)
	}
}

// A customer whose key says so is let have that many jobs at once.
func TestKlingLimitInTheKey(t *testing.T) {
	t.Parallel()
	b := sandboxtest.Open(t)
	key := kling.Vendor().Account.Credentials["api_key"] + "@few*2"
	for i, want := range []int{200, 200, 429} {
		got := b.Call(t, "POST", "/kling/v1/videos/text2video", map[string]string{"Authorization": "Bearer " + key},
			with(textVideo(), m{"external_task_id": fmt.Sprint(i)}))
		if got.Status != want {
			t.Errorf("job %d: %d %s, want %d", i+1, got.Status, got.Raw, want)
		}
	}
}

// A vendor's customer renews its key and keeps its jobs; another one's key
// opens nothing of them.
func TestKlingVariantsOfKeys(t *testing.T) {
	t.Parallel()
	b := sandboxtest.Open(t)
	account := kling.Vendor().Account.Credentials
	key, access := account["api_key"], account["access_key"]
	bearer := func(access string) string {
		return "Bearer " + token(t, account["secret_key"], jwt.SigningMethodHS256, jwt.MapClaims{
			"iss": access, "exp": b.Clock.Now().Add(30 * time.Minute).Unix(), "nbf": b.Clock.Now().Add(-5 * time.Second).Unix(),
		}, "JWT")
	}
	for _, one := range []struct{ external, key string }{{"mine", "Bearer " + key}, {"other", "Bearer " + key + "@acme"}} {
		got := b.Call(t, "POST", "/kling/v1/videos/text2video", map[string]string{"Authorization": one.key}, with(textVideo(), m{"external_task_id": one.external}))
		if got.Status != 200 {
			t.Fatalf("%s: %s", one.external, got.Raw)
		}
	}
	for name, test := range map[string]struct {
		authorization string
		mine, other   float64 // codes
	}{
		"the key":                       {"Bearer " + key, 0, 1201},
		"renewed":                       {"Bearer " + key + "~2", 0, 1201},
		"another customer":              {"Bearer " + key + "@acme", 1201, 0},
		"another customer's, renewed":   {"Bearer " + key + "@acme~x", 1201, 0},
		"access key, renewed":           {bearer(access + "~2"), 0, 1201},
		"another customer's access key": {bearer(access + "@acme"), 1201, 0},
		"with a limit":                  {"Bearer " + key + "@acme*5", 1201, 0},
		"with a limit, renewed":         {"Bearer " + key + "@acme*5~2", 1201, 0},
		"with a limit that is none":     {"Bearer " + key + "@acme*no", 1000, 1000},
		"no key":                        {"Bearer ~2", 1000, 1000},
		"an unknown key":                {"Bearer another@acme", 1000, 1000},
	} {
		for external, want := range map[string]float64{"mine": test.mine, "other": test.other} {
			got := b.Call(t, "GET", "/kling/v1/videos/text2video/"+external, map[string]string{"Authorization": test.authorization}, nil)
			if got.At("code") != want {
				t.Errorf("%s asks for %s: %s, want code %v", name, external, got.Raw, want)
			}
		}
	}
}
