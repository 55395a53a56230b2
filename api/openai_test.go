package api_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"io"
	"maps"
	"mime/multipart"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/api"
	"github.com/mediagate/mediagate/internal/limit"
)

const openAIVideos = "/v1/videos"

// TestOpenAIVideo makes a video through OpenAI's paths and reads it there and on our own.
func TestOpenAIVideo(t *testing.T) {
	t.Parallel()
	g := newGateway(t)
	a := g.post(openAIVideos, `{"model":"alpha-v3","prompt":"a red boat","seconds":"7","size":"1080x1920","negative_prompt":"text","metadata":{"reference":"mine"}}`)
	id, _ := a.at("id").(string)
	if a.status != http.StatusOK || a.header.Get("Location") != "/v1/tasks/"+id {
		t.Fatalf("%d %s %v", a.status, a.body, a.header)
	}
	created := g.clock.now().Unix()
	want := fmt.Sprintf(`{"id":%q,"object":"video","model":"alpha-v3","status":"queued","progress":0,"created_at":%d,"completed_at":null,"expires_at":null,"seconds":"7","size":"1080x1920","error":null}`+"\n", id, created)
	if a.body != want || g.get(openAIVideos+"/"+id).body != want {
		t.Errorf("the video is %s, want %s", a.body, want)
	}
	started := g.started()
	if len(started) != 1 || started[0].ID != id {
		t.Fatalf("started: %v", started)
	}
	task := g.row(id)
	for _, said := range []string{`"duration":7`, `"mode":"pro"`, `"aspect_ratio":"9:16"`, `"negative_prompt":"text"`} {
		if !strings.Contains(strings.ReplaceAll(string(task.Params), " ", ""), said) {
			t.Errorf("the parameters lack %s: %s", said, task.Params)
		}
	}
	if a := g.get("/v1/tasks/" + id); a.at("data", "reference") != "mine" || a.at("data", "status") != "pending" {
		t.Errorf("our own view: %s", a.body)
	}
	g.get(openAIVideos+"/"+id+"/content").wantStatus(t, http.StatusNotFound, "before the end")
	if a := g.send(request{method: http.MethodDelete, path: openAIVideos + "/" + id, key: g.key}); a.status != http.StatusConflict || a.at("error", "type") != "invalid_request_error" {
		t.Errorf("erased before the end: %d %s", a.status, a.body)
	}
	g.complete(id,
		mediagate.Result{Role: mediagate.RoleMain, Key: "results/" + id + "/1/0", MimeType: "video/mp4", Size: 9, Duration: 7, Width: 1080, Height: 1920, SHA256: strings.Repeat("ab", 32)},
		mediagate.Result{Role: mediagate.RoleCover, Key: "results/" + id + "/1/0-cover", MimeType: "image/jpeg", Size: 9, SHA256: strings.Repeat("ab", 32)})
	if a := g.get(openAIVideos + "/" + id); a.at("status") != "completed" || a.at("progress") != 100.0 || a.at("completed_at") == nil {
		t.Errorf("at the end: %s", a.body)
	}
	for path, key := range map[string]string{"/content": "/1/0?", "/content?variant=video": "/1/0?", "/content?variant=thumbnail": "/1/0-cover?"} {
		if a := g.get(openAIVideos + "/" + id + path); a.status != http.StatusFound || !strings.Contains(a.header.Get("Location"), key) {
			t.Errorf("%s: %d %v", path, a.status, a.header)
		}
	}
	if a := g.get(openAIVideos + "/" + id + "/content?variant=spritesheet"); a.status != http.StatusBadRequest || a.at("error", "param") != "variant" {
		t.Errorf("another variant: %d %s", a.status, a.body)
	}
	a = g.send(request{method: http.MethodDelete, path: openAIVideos + "/" + id, key: g.key})
	if a.status != http.StatusOK || a.body != `{"id":"`+id+`","object":"video.deleted","deleted":true}`+"\n" {
		t.Errorf("erased: %d %s", a.status, a.body)
	}
	g.get(openAIVideos+"/"+id).wantStatus(t, http.StatusNotFound, "after that")
}

// TestOpenAIVideoEnds checks that a failure has OpenAI's form.
func TestOpenAIVideoEnds(t *testing.T) {
	t.Parallel()
	g := newGateway(t)
	failed, cancelled := g.submit("/v1/videos/generations", boatBody), g.submit("/v1/videos/generations", boatBody)
	g.fail(failed, mediagate.Failure{Code: mediagate.CodeContentPolicy, Message: "refused"})
	g.cancel(cancelled)
	if a := g.get(openAIVideos + "/" + failed); a.at("status") != "failed" || a.at("error", "code") != "content_policy_violation" || a.at("error", "message") == "" || a.at("completed_at") != nil {
		t.Errorf("failed: %s", a.body)
	}
	_, writer := g.newKey(mediagate.Key{Unlimited: true, Scopes: []mediagate.Scope{mediagate.ScopeGenerate}})
	submit := request{method: http.MethodPost, path: openAIVideos, key: writer, body: boatBody, header: http.Header{"Idempotency-Key": {"k"}}}
	first := g.send(submit)
	blind, _ := first.at("id").(string)
	g.fail(blind, mediagate.Failure{Code: mediagate.CodeContentPolicy, Message: "refused"})
	if again := g.send(submit); first.status != http.StatusOK || again.body != first.body || again.header.Get("Idempotency-Replayed") != "true" {
		t.Errorf("a key that may not read is told %d %s, and then %s", first.status, first.body, again.body)
	}
	if a := g.get(openAIVideos + "/" + cancelled); a.at("status") != "failed" || a.at("error", "code") != "cancelled" {
		t.Errorf("cancelled: %s", a.body)
	}
}

func TestOpenAIVideoRefusals(t *testing.T) {
	t.Parallel()
	g := newGateway(t)
	still := g.submit("/v1/images/generations", `{"model":"theta-image-turbo","prompt":"a red boat"}`)
	const unknown = "task_01JZZZZZZZZZZZZZZZZZZZZZZZ"
	for name, test := range map[string]struct {
		request request
		status  int
		kind    string
		param   any
		says    string
	}{
		"no key":          {request{method: "POST", path: openAIVideos, body: "{}"}, 401, "authentication_error", nil, "No Authorization header"},
		"no model":        {request{method: "POST", path: openAIVideos, key: g.key, body: `{"prompt":"a"}`}, 400, "invalid_request_error", "model", "required"},
		"another's model": {request{method: "POST", path: openAIVideos, key: g.key, body: `{"model":"sora-2","prompt":"a"}`}, 400, "invalid_request_error", "model", "sora-2"},
		"a picture's":     {request{method: "POST", path: openAIVideos, key: g.key, body: `{"model":"theta-image-turbo","prompt":"a"}`}, 400, "invalid_request_error", "model", "theta-image-turbo"},
		"too long":        {request{method: "POST", path: openAIVideos, key: g.key, body: `{"model":"alpha-v3","prompt":"a","seconds":"16"}`}, 400, "invalid_request_error", "seconds", "3 and 15"},
		"a file's id":     {request{method: "POST", path: openAIVideos, key: g.key, body: `{"model":"alpha-v3","prompt":"a","input_reference":{"file_id":"file_1"}}`}, 400, "invalid_request_error", "input_reference.file_id", "image_url"},
		"method":          {request{method: "PUT", path: openAIVideos, key: g.key}, 405, "invalid_request_error", nil, "PUT"},
		"no id":           {request{path: openAIVideos + "/x", key: g.key}, 404, "not_found_error", "video_id", "not found"},
		"unknown":         {request{path: openAIVideos + "/" + unknown, key: g.key}, 404, "not_found_error", "video_id", "not found"},
		"a picture":       {request{path: openAIVideos + "/" + still, key: g.key}, 404, "not_found_error", "video_id", "not found"},
		"after":           {request{path: openAIVideos + "?after=x", key: g.key}, 400, "invalid_request_error", "after", "id"},
	} {
		a := g.send(test.request)
		message, _ := a.at("error", "message").(string)
		if a.status != test.status || a.at("error", "type") != test.kind || a.at("error", "param") != test.param || !strings.Contains(message, test.says) || a.at("error", "code") == nil {
			t.Errorf("%s: %d %s, want %d %s %v that says %q", name, a.status, a.body, test.status, test.kind, test.param, test.says)
		}
	}
	if n := len(g.started()); n != 1 {
		t.Errorf("%d tasks were started", n)
	}
}

func TestOpenAIVideoList(t *testing.T) {
	t.Parallel()
	g := newGateway(t)
	if a := g.get(openAIVideos); a.body != `{"object":"list","data":[],"first_id":null,"last_id":null,"has_more":false}`+"\n" {
		t.Errorf("an empty list: %s", a.body)
	}
	ids := make([]string, 3)
	for i := range ids {
		g.clock.advance(time.Second)
		ids[i] = g.submit("/v1/videos/generations", boatBody)
		g.submit("/v1/images/generations", `{"model":"theta-image-turbo","prompt":"a red boat"}`)
	}
	for query, want := range map[string][]string{
		"?limit=2":                           {ids[2], ids[1]},
		"?limit=2&after=" + ids[1]:           {ids[0]},
		"?limit=2&order=asc":                 {ids[0], ids[1]},
		"?limit=2&order=asc&after=" + ids[1]: {ids[2]},
	} {
		a := g.get(openAIVideos + query)
		more := len(want) == 2
		if !slices.Equal(a.ids("data", "id"), want) || a.at("last_id") != want[len(want)-1] || a.at("has_more") != more {
			t.Errorf("%s: %s", query, a.body)
		}
	}
}

// videoForm returns a form with a picture and a fixed boundary.
func videoForm(t *testing.T, file []byte, fields ...string) (body string, header http.Header) {
	t.Helper()
	if file == nil {
		return pictureForm(t, "input_reference", nil, fields...)
	}
	return pictureForm(t, "input_reference", [][]byte{file}, fields...)
}

// pictureForm returns a form with several pictures in one field.
func pictureForm(t *testing.T, of string, pictures [][]byte, fields ...string) (body string, header http.Header) {
	t.Helper()
	var buf bytes.Buffer
	w := multipart.NewWriter(&buf)
	for i := 0; i < len(fields); i += 2 {
		must(t, w.WriteField(fields[i], fields[i+1]))
	}
	for _, picture := range pictures {
		part, err := w.CreateFormFile(of, "cat.png")
		if err == nil {
			_, err = part.Write(picture)
		}
		must(t, err)
	}
	must(t, w.Close())
	return buf.String(), http.Header{"Content-Type": {w.FormDataContentType()}}
}

// pngOf returns a picture of the size.
func pngOf(t *testing.T, width, height int) []byte {
	t.Helper()
	var b bytes.Buffer
	must(t, png.Encode(&b, image.NewPaletted(image.Rect(0, 0, width, height), color.Palette{color.Black, color.White})))
	return b.Bytes()
}

// TestOpenAIVideoForm checks that the picture of a form is stored once the request is valid.
func TestOpenAIVideoForm(t *testing.T) {
	t.Parallel()
	g := newGateway(t)
	picture := pngOf(t, 300, 300)
	send := func(file []byte, more http.Header, fields ...string) answer {
		t.Helper()
		body, header := videoForm(t, file, fields...)
		maps.Copy(header, more)
		return g.send(request{method: http.MethodPost, path: openAIVideos, key: g.key, body: body, header: header})
	}
	stored := func() int {
		g.bucket.mu.Lock()
		defer g.bucket.mu.Unlock()
		return len(g.bucket.files)
	}
	again := http.Header{"Idempotency-Key": {"k"}}
	a := send(picture, again, "model", "epsilon3.1-fast-official", "prompt", "a red boat", "seconds", "4", "size", "1280x720")
	id, _ := a.at("id").(string)
	task, err := g.store.TaskByID(t.Context(), id)
	if a.status != http.StatusOK || err != nil || !strings.Contains(string(task.Params), `https://gw.example.com/files/`) || stored() != 1 || a.at("seconds") != "4" {
		t.Fatalf("%d %s, %s, %d stored: %v", a.status, a.body, task.Params, stored(), err)
	}
	twice := send(picture, again, "size", "1280x720", "model", "epsilon3.1-fast-official", "prompt", "a red boat", "seconds", "4")
	if twice.at("id") != id || twice.header.Get("Idempotency-Replayed") != "true" || stored() != 1 {
		t.Errorf("the same under another boundary: %d %s", twice.status, twice.body)
	}
	send(pngOf(t, 200, 200), again, "model", "epsilon3.1-fast-official", "prompt", "a red boat", "seconds", "4", "size", "1280x720").
		wantStatus(t, http.StatusConflict, "another picture under the same key")
	inline := "data:image/png;base64," + base64.StdEncoding.EncodeToString(picture)
	for name, a := range map[string]answer{
		"in a form":  send(nil, nil, "model", "epsilon3.1-fast-official", "prompt", "a", "input_reference[image_url]", inline),
		"in JSON":    g.post(openAIVideos, `{"model":"epsilon3.1-fast-official","prompt":"a","input_reference":{"image_url":"`+inline+`"}}`),
		"in a list":  g.post(openAIVideos, `{"model":"alpha-v3","prompt":"a","input_reference":{"image_url":"`+inline+`"}}`),
		"by address": send(nil, nil, "model", "epsilon3.1-fast-official", "prompt", "a", "input_reference[image_url]", "https://example.com/a.png"),
	} {
		a.wantStatus(t, http.StatusOK, "a reference", name)
	}
	before := stored()
	for name, test := range map[string]struct {
		file   []byte
		fields []string
		param  any
	}{
		"a file's id":       {nil, []string{"model", "alpha-v3", "prompt", "a", "input_reference[file_id]", "file_1"}, "input_reference.file_id"},
		"no base64":         {nil, []string{"model", "alpha-v3", "prompt", "a", "input_reference[image_url]", "data:image/png;base64,~"}, "input_reference"},
		"no picture":        {[]byte("hello"), []string{"model", "epsilon3.1-fast-official", "prompt", "a"}, "input_reference"},
		"a bad field":       {picture, []string{"model", "epsilon3.1-fast-official", "prompt", "a", "seconds", "5"}, "seconds"},
		"no list":           {nil, []string{"model", "alpha-v3", "prompt", "a", "image_urls", `["https://example.com/a.png"`}, "image_urls"},
		"a list and a text": {nil, []string{"model", "alpha-v3", "prompt", "a", "image_urls[]", "https://example.com/a.png", "image_urls", "x"}, "image_urls"},
		"a field twice":     {picture, []string{"model", "epsilon3.1-fast-official", "prompt", "a", "prompt", "b"}, "prompt"},
		"two references":    {picture, []string{"model", "epsilon3.1-fast-official", "prompt", "a", "input_reference", "https://example.com/a.png"}, "input_reference"},
		"no text":           {picture, []string{"model", "epsilon3.1-fast-official", "prompt", "\xff"}, nil},
	} {
		if a := send(test.file, nil, test.fields...); a.status != http.StatusBadRequest || a.at("error", "param") != test.param {
			t.Errorf("%s: %d %s, want 400 of %v", name, a.status, a.body, test.param)
		}
	}
	body, header := videoForm(t, picture, "model", "epsilon3.1-fast-official", "prompt", "a")
	g.send(request{method: http.MethodPost, path: openAIVideos, key: g.key, body: body[:len(body)-20], header: header}).
		wantStatus(t, http.StatusBadRequest, "half a form")
	if n := stored(); n != before || n != 4 {
		t.Errorf("%d files are stored, %d of tasks", n, before)
	}
}

// TestOpenAIVideoFormFields checks that the texts of a form become the types of the model's
// schema, and names with brackets lists and objects. A picture needs no file name.
func TestOpenAIVideoFormFields(t *testing.T) {
	t.Parallel()
	g := newGateway(t)
	for name, test := range map[string]struct {
		fields []string
		want   string // of the parameters
	}{
		"the next items":      {[]string{"model", "alpha-v3", "image_urls[]", "https://example.com/b.png", "image_urls[]", "https://example.com/a.png"}, `"image_urls":["https://example.com/b.png","https://example.com/a.png"]`},
		"items by place":      {[]string{"model", "alpha-v3", "image_urls[1]", "https://example.com/a.png", "image_urls[0]", "https://example.com/b.png"}, `"image_urls":["https://example.com/b.png","https://example.com/a.png"]`},
		"objects in a list":   {[]string{"model", "alpha-v3", "duration", "5", "multi_shot", "true", "shot_type", "customize", "multi_prompt[0][index]", "1", "multi_prompt[0][prompt]", "2", "multi_prompt[0][duration]", "5"}, `"multi_prompt":[{"duration":5,"index":1,"prompt":"2"}]`},
		"objects, one by one": {[]string{"model", "gamma2.6", "image_with_roles[][url]", "https://example.com/a.png", "image_with_roles[][role]", "first_frame", "image_with_roles[][url]", "https://example.com/b.png", "image_with_roles[][role]", "last_frame"}, `"image_with_roles":[{"role":"first_frame","url":"https://example.com/a.png"},{"role":"last_frame","url":"https://example.com/b.png"}]`},
		"lists in objects": {
			[]string{
				"model", "alpha-v3", "prompt", "@cat and @dog",
				"element_list[][name]", "cat", "element_list[][description]", "a cat",
				"element_list[][element_input_urls][]", "https://example.com/a.png", "element_list[][element_input_urls][]", "https://example.com/b.png",
				"element_list[][name]", "dog", "element_list[][description]", "a dog",
				"element_list[][element_input_urls][]", "https://example.com/c.png", "element_list[][element_input_urls][]", "https://example.com/d.png",
			},
			`"element_input_urls":["https://example.com/a.png","https://example.com/b.png"],"name":"cat"|"element_input_urls":["https://example.com/c.png","https://example.com/d.png"],"name":"dog"`,
		},
		"JSON":               {[]string{"model", "alpha-v3", "image_urls", `["https://example.com/a.png"]`}, `"image_urls":["https://example.com/a.png"]`},
		"a prompt like JSON": {[]string{"model", "alpha-v3", "prompt", "[a boat]"}, `"prompt":"[a boat]"`},
	} {
		fields := test.fields
		if !slices.Contains(fields, "prompt") {
			fields = append(fields, "prompt", "a boat")
		}
		body, header := videoForm(t, nil, append(fields, "metadata[reference]", name)...)
		a := g.send(request{method: http.MethodPost, path: openAIVideos, key: g.key, body: body, header: header})
		id, _ := a.at("id").(string)
		task, err := g.store.TaskByID(t.Context(), id)
		if err != nil || task.Reference != name {
			t.Errorf("%s: %d %s, %v", name, a.status, a.body, err)
			continue
		}
		var params bytes.Buffer
		g.must(json.Compact(&params, task.Params))
		for want := range strings.SplitSeq(test.want, "|") {
			if !strings.Contains(params.String(), want) {
				t.Errorf("%s: the parameters are %s, want %s", name, params.String(), want)
			}
		}
	}
	body, header := videoForm(t, nil, "model", "epsilon3.1-fast-official", "prompt", "a", "input_reference", string(pngOf(t, 300, 300)))
	g.send(request{method: http.MethodPost, path: openAIVideos, key: g.key, body: body, header: header}).
		wantStatus(t, http.StatusOK, "a picture without a name")
}

// TestOpenAIFormOrder checks that forms whose parts of one field come in another order are
// different requests: the parts are a list.
func TestOpenAIFormOrder(t *testing.T) {
	t.Parallel()
	g := newGateway(t)
	first := []string{"image_urls[1]", "https://example.com/a.png", "image_urls[]", "https://example.com/b.png"}
	second := []string{"image_urls[]", "https://example.com/b.png", "image_urls[1]", "https://example.com/a.png"}
	for i, test := range []struct {
		urls   []string
		status int
	}{{first, http.StatusOK}, {second, http.StatusConflict}, {first, http.StatusOK}} {
		body, header := videoForm(t, nil, append(test.urls, "model", "alpha-v3", "prompt", "a")...)
		header.Set("Idempotency-Key", "k")
		if a := g.send(request{method: http.MethodPost, path: openAIVideos, key: g.key, body: body, header: header}); a.status != test.status {
			t.Errorf("%d: %d %s, want %d", i, a.status, a.body, test.status)
		}
	}
}

// TestOpenAIPictureEdits checks that a form with pictures is answered with the results.
func TestOpenAIPictureEdits(t *testing.T) {
	t.Parallel()
	g := newGateway(t)
	const edits, model = "/v1/images/edits", "zeta-3.1-flash-image-preview"
	form := func(pictures int, fields ...string) request {
		body, header := pictureForm(t, "image[]", slices.Repeat([][]byte{pngOf(t, 300, 300)}, pictures), fields...)
		return request{method: http.MethodPost, path: edits, key: g.key, body: body, header: header}
	}
	go func() {
		id := g.awaitStart(0).ID
		g.complete(id, mediagate.Result{Role: mediagate.RoleMain, Key: "results/" + id + "/1/0", MimeType: "image/png", Size: 7, SHA256: strings.Repeat("ab", 32)})
	}()
	a := g.send(form(2, "model", model, "prompt", "a hat", "n", "1", "size", "auto", "quality", "auto", "response_format", "url"))
	link, _ := a.at("data", 0, "url").(string)
	task, err := g.store.TaskByID(t.Context(), strings.TrimPrefix(a.header.Get("Location"), "/v1/tasks/"))
	if a.status != http.StatusOK || err != nil || link == "" || strings.Count(string(task.Params), "https://gw.example.com/files/") != 2 {
		t.Errorf("%d %s, %s: %v", a.status, a.body, task.Params, err)
	}
	stored := len(g.bucket.files)
	for name, test := range map[string]struct {
		request request
		field   string
	}{
		"no picture":      {form(0, "model", model, "prompt", "a"), "image"},
		"an address":      {form(0, "model", model, "prompt", "a", "image", "https://example.com/a.png"), "image"},
		"a model of text": {form(1, "model", "theta-image-turbo", "prompt", "a"), "image"},
		"a mask":          {form(1, "model", model, "prompt", "a", "mask", string(pngOf(t, 300, 300))), "mask"},
		"no form":         {request{method: http.MethodPost, path: edits, key: g.key, body: `{"model":"` + model + `","prompt":"a"}`}, "form"},
	} {
		a := g.send(test.request)
		if message, _ := a.at("error", "message").(string); a.status != http.StatusBadRequest || !strings.Contains(message, test.field) {
			t.Errorf("%s: %d %s", name, a.status, a.body)
		}
	}
	if n := len(g.bucket.files); n != stored {
		t.Errorf("%d files are stored, %d of the task", n, stored)
	}
}

// TestOpenAIPictures checks that a body of OpenAI's form is answered with the pictures, and every
// other body with our own acknowledgement.
func TestOpenAIPictures(t *testing.T) {
	t.Parallel()
	g := newGateway(t)
	const images = "/v1/images/generations"
	// end gives the next task its pictures, or the failure.
	end := func(failure *mediagate.Failure) {
		after := g.starts()
		go func() {
			id := g.awaitStart(after).ID
			if failure != nil {
				g.fail(id, *failure)
				return
			}
			key := "results/" + id + "/1/0"
			g.bucket.put(key, "picture")
			g.complete(id, mediagate.Result{Role: mediagate.RoleMain, Key: key, MimeType: "image/png", Size: 7, SHA256: strings.Repeat("ab", 32)})
		}()
	}
	const least = `{"model":"theta-image-turbo","prompt":"a red boat"}`
	for name, test := range map[string]struct {
		body, params string
		header       http.Header
	}{
		"by its format":     {`{"model":"theta-image-turbo","prompt":"a red boat","response_format":"url","n":1}`, `"size":"1:1"`, nil},
		"by its size":       {`{"model":"theta-image-turbo","prompt":"a red boat","size":"2048x1360"}`, `"size":"3:2"`, nil},
		"by its SDK":        {least, `"size":"1:1"`, http.Header{"X-Stainless-Lang": {"js"}}},
		"by its agent":      {least, `"size":"1:1"`, http.Header{"User-Agent": {"OpenAI/Python 2.0.0"}}},
		"all that SDKs say": {`{"model":"theta-image-turbo","prompt":"a","size":"auto","user":"u","moderation":"auto","background":"auto","quality":"standard","output_format":"png","stream":false,"partial_images":0,"n":1,"response_format":null}`, `"size":"1:1"`, http.Header{"X-Stainless-Lang": {"js"}}},
	} {
		end(nil)
		a := g.send(request{method: http.MethodPost, path: images, key: g.key, body: test.body, header: test.header})
		link, _ := a.at("data", 0, "url").(string)
		if a.status != http.StatusOK || a.at("created") == nil || !strings.HasPrefix(link, "https://s3.example.com/") || a.header.Get("Location") == "" {
			t.Errorf("%s: %d %s", name, a.status, a.body)
		}
		task, err := g.store.TaskByID(t.Context(), strings.TrimPrefix(a.header.Get("Location"), "/v1/tasks/"))
		if err != nil || !strings.Contains(strings.ReplaceAll(string(task.Params), `": "`, `":"`), test.params) {
			t.Errorf("%s: the parameters are %s, want %s (%v)", name, task.Params, test.params, err)
		}
	}
	end(nil)
	a := g.post(images, `{"model":"theta-image-turbo","prompt":"a red boat","response_format":"b64_json"}`)
	var got struct {
		Data []struct {
			Picture string `json:"b64_json"`
		}
	}
	if err := json.Unmarshal([]byte(a.body), &got); err != nil || len(got.Data) != 1 || got.Data[0].Picture != base64.StdEncoding.EncodeToString([]byte("picture")) {
		t.Errorf("the picture itself: %d %s", a.status, a.body)
	}

	for code, want := range map[mediagate.FailureCode]int{
		mediagate.CodeContentPolicy: 422, mediagate.CodeInvalidParameters: 400, mediagate.CodeImageProcessing: 400, mediagate.CodeGenerationFailed: 502,
	} {
		end(&mediagate.Failure{Code: code, Message: "it went wrong"})
		a := g.post(images, `{"model":"theta-image-turbo","prompt":"a red boat","response_format":"url"}`)
		message, _ := a.at("error", "message").(string)
		if a.status != want || !strings.Contains(message, "task_") || !strings.Contains(message, string(code)) || (a.header.Get("X-Should-Retry") == "false") != (want >= 500) {
			t.Errorf("%s: %d %s %v, want %d", code, a.status, a.body, a.header, want)
		}
	}
	before := len(g.started())
	_, writer := g.newKey(mediagate.Key{Unlimited: true, Scopes: []mediagate.Scope{mediagate.ScopeGenerate}})
	for name, test := range map[string]struct {
		key, body string
		status    int
		says      string
	}{
		"another format": {g.key, `{"model":"theta-image-turbo","prompt":"a","response_format":"png"}`, 400, "response_format"},
		"no such size":   {g.key, `{"model":"theta-image-turbo","prompt":"a","size":"1000x1000"}`, 400, "size"},
		"who reads none": {writer, `{"model":"theta-image-turbo","prompt":"a","response_format":"url"}`, 403, "read"},
	} {
		a := g.send(request{method: http.MethodPost, path: images, key: test.key, body: test.body})
		if message, _ := a.at("error", "message").(string); a.status != test.status || !strings.Contains(message, test.says) {
			t.Errorf("%s: %d %s", name, a.status, a.body)
		}
	}
	if after := len(g.started()); after != before {
		t.Errorf("%d tasks were started by what was refused", after-before)
	}
	if a := g.post(images, `{"model":"theta-image-turbo","prompt":"a","size":"3:2","quality":"hd"}`); !strings.Contains(a.body, "submitted") {
		t.Errorf("our own form: %d %s", a.status, a.body)
	}
}

// TestOpenAITimeoutNamesTheTask checks that an error after the submit is not a refusal, which
// would make the client submit another task.
func TestOpenAITimeoutNamesTheTask(t *testing.T) {
	t.Parallel()
	const images, still = "/v1/images/generations", `{"model":"theta-image-turbo","prompt":"a red boat","response_format":"b64_json"}`
	g := newGateway(t, bounds(func(p *limit.Process) { p.Waits = limit.New("", 0) }))
	told := func(a answer) {
		t.Helper()
		id := strings.TrimPrefix(a.header.Get("Location"), "/v1/tasks/")
		message, _ := a.at("error", "message").(string)
		if a.status != http.StatusGatewayTimeout || a.at("error", "reason") != "timeout" || !strings.HasPrefix(id, "task_") || !strings.Contains(message, id) || a.header.Get("X-Should-Retry") != "false" {
			t.Errorf("%d %s %v", a.status, a.body, a.header)
		}
	}
	told(g.post(images, still)) // nobody can wait
	a := g.send(request{method: http.MethodPost, path: openAIVideos, key: g.key, body: boatBody, header: http.Header{"Prefer": {"wait=60"}}})
	if a.status != http.StatusOK || a.at("status") != "queued" {
		t.Errorf("a video: %d %s", a.status, a.body)
	}

	again := http.Header{"Idempotency-Key": {"k"}}
	submit := request{method: http.MethodPost, path: images, key: g.key, body: still, header: again}
	told(g.send(submit))
	id := g.started()[2].ID
	g.complete(id, mediagate.Result{Role: mediagate.RoleMain, Key: "results/" + id + "/1/0", MimeType: "image/png", Size: 7, SHA256: strings.Repeat("ab", 32)})
	told(g.send(submit)) // the bucket has no such file
	if n := g.starts(); n != 3 {
		t.Errorf("%d tasks were made, want 3", n)
	}
}

// TestOpenAIPicturesAdopted checks that the same request adopts the task of a request for
// pictures whose answer was lost. Other requests make their own tasks.
func TestOpenAIPicturesAdopted(t *testing.T) {
	t.Parallel()
	const images, still = "/v1/images/generations", `{"model":"theta-image-turbo","prompt":"a red boat","response_format":"url"}`
	g := newGateway(t, bounds(func(p *limit.Process) { p.Waits = limit.New("", 0) })) // each wait ends with 504
	_, otherKey := g.newKey(mediagate.Key{Unlimited: true})
	first := ""
	for _, step := range []struct {
		what    string
		request request
		same    bool
	}{
		{"the first one", request{body: still}, false},
		{"again", request{body: still}, true},
		{"another path", request{path: openAIVideos, body: boatBody, header: http.Header{"Prefer": {"wait=1"}}}, false},
		{"another key", request{body: still, key: otherKey}, false},
		{"with an idempotency key", request{body: still, header: http.Header{"Idempotency-Key": {"k"}}}, false},
		{"one that does not wait", request{body: still, header: http.Header{"Prefer": {"respond-async"}}}, false},
	} {
		r := step.request
		r.method, r.path, r.key = http.MethodPost, cmp.Or(r.path, images), cmp.Or(r.key, g.key)
		a := g.send(r)
		id, replayed := strings.TrimPrefix(a.header.Get("Location"), "/v1/tasks/"), a.header.Get("Idempotency-Replayed") == "true"
		if first == "" {
			first = id
		} else if !strings.HasPrefix(id, "task_") || (id == first) != step.same || replayed != step.same {
			t.Errorf("%s: %d %s, task %s, replayed %t; the first one's is %s", step.what, a.status, a.body, id, replayed, first)
		}
	}
}

// forgetful is the store of a process that dies before it records the end of a wait.
type forgetful struct{ api.Store }

func (forgetful) Answered(context.Context, string, string) error   { return errors.New("killed") }
func (forgetful) Unanswered(context.Context, string, string) error { return errors.New("killed") }

// TestOpenAIPicturesAdoptedFromTheDead checks that the task of a process that was killed during a
// client's wait is adopted once that wait must be over.
func TestOpenAIPicturesAdoptedFromTheDead(t *testing.T) {
	t.Parallel()
	const images, still = "/v1/images/generations", `{"model":"theta-image-turbo","prompt":"a red boat","response_format":"url"}`
	g := newGateway(t, func(c *api.Config) { c.Store = forgetful{c.Store} }, bounds(func(p *limit.Process) { p.Waits = limit.New("", 0) }))
	first := g.post(images, still).header.Get("Location")
	early := g.post(images, still).header.Get("Location")
	g.clock.advance(3 * time.Minute)
	late := g.post(images, still)
	if early == first || late.header.Get("Location") != first || late.header.Get("Idempotency-Replayed") != "true" {
		t.Errorf("the tasks are %s, %s and %s", first, early, late.header.Get("Location"))
	}
}

// breaking is a bucket whose files break off after 64 KiB.
type breaking struct{ api.Files }

func (breaking) OpenAt(context.Context, string, int64) (io.ReadCloser, error) {
	return io.NopCloser(io.MultiReader(strings.NewReader(strings.Repeat("x", 64<<10)), iotest.ErrReader(errors.New("reset")))), nil
}

// TestOpenAIPicturesBreakOff checks that pictures which break off in the bucket give a complete
// but unreadable answer. OpenAI's client for Python would repeat a request whose answer was cut
// off, and make another task.
func TestOpenAIPicturesBreakOff(t *testing.T) {
	t.Parallel()
	g := newGateway(t, func(c *api.Config) { c.Files = breaking{c.Files} })
	go func() {
		id := g.awaitStart(0).ID
		g.complete(id, mediagate.Result{Role: mediagate.RoleMain, Key: "results/" + id + "/1/0", MimeType: "image/png", Size: 1 << 20, SHA256: strings.Repeat("ab", 32)})
	}()
	s := dial(t, g.serve())
	s.send(request{
		method: http.MethodPost, path: "/v1/images/generations", key: g.key,
		body: `{"model":"theta-image-turbo","prompt":"a red boat","response_format":"b64_json"}`,
	}.text("1.1"))
	a := s.answer()
	if json.Valid([]byte(a.body)) || len(a.body) < 64<<10 || a.header.Get("Location") == "" {
		t.Errorf("%d bytes of %v", len(a.body), a.header)
	}
}
