package api_test

import (
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/mediagate/mediagate"
)

// uploaded uploads a picture and returns the path of its link.
func (g *gateway) uploaded() string {
	g.t.Helper()
	a := g.upload(formOf(filePart(aPicture)))
	link, _ := a.at("url").(string)
	path, ok := strings.CutPrefix(link, "https://gw.example.com")
	if !ok {
		g.t.Fatalf("%d %s", a.status, a.body)
	}
	return path
}

func TestFile(t *testing.T) {
	t.Parallel()
	g := newGateway(t)
	path := g.uploaded()
	tag := `"` + strings.TrimPrefix(path, "/files/") + `"`
	at := g.clock.now().Format(http.TimeFormat)
	size := strconv.Itoa(len(aPicture))
	for name, test := range map[string]struct {
		method string
		header http.Header
		status int
		body   string
		length string
		part   string // Content-Range
	}{
		"whole":               {status: 200, body: aPicture, length: size},
		"HEAD":                {method: "HEAD", status: 200, length: size},
		"a part":              {header: http.Header{"Range": {"bytes=1-3"}}, status: 206, body: "PNG", length: "3", part: "bytes 1-3/" + size},
		"the end":             {header: http.Header{"Range": {"bytes=-4"}}, status: 206, body: "\xaeB`\x82", length: "4"},
		"several parts":       {header: http.Header{"Range": {"bytes=1-3,5-7"}}, status: 200, body: aPicture, length: size},
		"several, in two":     {header: http.Header{"Range": {"bytes=1-3", "bytes=5-7"}}, status: 200, body: aPicture, length: size},
		"beyond the end":      {header: http.Header{"Range": {"bytes=" + size + "-"}}, status: 416, length: "0", part: "bytes */" + size},
		"no range":            {header: http.Header{"Range": {"bytes=b-a"}}, status: 416, length: "0", part: "bytes */" + size},
		"of another unit":     {header: http.Header{"Range": {"lines=1-2"}}, status: 200, body: aPicture, length: size},
		"the client has it":   {header: http.Header{"If-None-Match": {tag}}, status: 304},
		"if match":            {header: http.Header{"If-Match": {`"other"`}}, status: 412},
		"if range":            {header: http.Header{"Range": {"bytes=1-3"}, "If-Range": {tag}}, status: 206, body: "PNG", length: "3"},
		"if range of another": {header: http.Header{"Range": {"bytes=1-3"}, "If-Range": {`"other"`}}, status: 200, body: aPicture, length: size},
		"packed":              {header: http.Header{"Accept-Encoding": {"gzip"}}, status: 200, body: aPicture, length: size},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := g.send(request{method: test.method, path: path, header: test.header})
			if a.status != test.status || a.body != test.body || a.header.Get("Content-Length") != test.length && a.status != 304 && a.status != 412 {
				t.Fatalf("%d, %d bytes, length %s; want %d, %d, %s", a.status, len(a.body), a.header.Get("Content-Length"), test.status, len(test.body), test.length)
			}
			if test.part != "" && a.header.Get("Content-Range") != test.part {
				t.Errorf("Content-Range is %q", a.header.Get("Content-Range"))
			}
			want := map[string]string{
				"X-Content-Type-Options": "nosniff", "Content-Security-Policy": "default-src 'none'; sandbox", "Set-Cookie": "",
				"Access-Control-Allow-Origin": "*", "Content-Encoding": "", "Referrer-Policy": "no-referrer",
			}
			if a.status < 300 {
				want["Content-Type"], want["Etag"], want["Accept-Ranges"], want["Last-Modified"] = "image/png", tag, "bytes", at
				want["Cache-Control"], want["Content-Disposition"] = "private, max-age=259200", `inline; filename=`+tag
			}
			for header, value := range want {
				if got := a.header.Get(header); got != value {
					t.Errorf("%s is %q, want %q", header, got, value)
				}
			}
		})
	}
}

// TestFileExpires checks that a link works for exactly 72 hours, even if its object is kept
// longer.
func TestFileExpires(t *testing.T) {
	t.Parallel()
	g := newGateway(t)
	g.clock.advance(750 * time.Millisecond)
	path := g.uploaded()
	g.clock.advance(72*time.Hour - 750*time.Millisecond - 1)
	if a := g.send(request{path: path}); a.status != 200 || a.header.Get("Cache-Control") != "private, max-age=0" {
		t.Errorf("in its last moment it answers %d, %s", a.status, a.header.Get("Cache-Control"))
	}
	g.clock.advance(1)
	for _, method := range []string{"GET", "HEAD"} {
		g.send(request{method: method, path: path}).wantStatus(t, 404, "after 72 hours", method)
	}
	if len(g.bucket.keys()) != 1 {
		t.Error("the object is gone, so that this shows nothing")
	}
}

// TestFileOfOthers checks that only uploads are read, for any path.
func TestFileOfOthers(t *testing.T) {
	t.Parallel()
	g := newGateway(t)
	path := g.uploaded()
	f, _ := mediagate.NewFile(g.clock.now(), "image/png")
	g.bucket.files["results/task_1/1/0"] = []byte("secret")
	g.bucket.files["files/note.txt"] = []byte("secret")
	for _, other := range []string{
		"/files/" + f.Name(), "/files/note.txt", "/files/..%2Fresults%2Ftask_1%2F1%2F0", "/files/../results/task_1/1/0", "/files/results/task_1/1/0",
		"/files/", "/files", "/files/.", path + "/", path + "/..", "/files/%2e%2e", strings.Replace(path, ".png", ".gif", 1), strings.ToLower(path),
		"/files//" + strings.TrimPrefix(path, "/files/"), path + "%00", strings.Replace(path, "files", "FILES", 1), "/results/task_1/1/0",
	} {
		a := g.send(request{path: other})
		if a.status != 404 || strings.Contains(a.body, "secret") || a.at("error", "code") != 404.0 {
			t.Errorf("%s answers %d: %s", other, a.status, a.body)
		}
	}
	a := g.send(request{method: http.MethodPost, path: path})
	a.wantError(t, 405, "invalid_request_error", "method not allowed")
	g.bucket.fail = mediagate.Errorf(mediagate.KindUnavailable, "away")
	a = g.send(request{path: path})
	a.wantError(t, 503, "server_error", "temporarily unavailable")
}

// TestFileCORS checks that any page may read a file whose link it has.
func TestFileCORS(t *testing.T) {
	t.Parallel()
	g := newGateway(t)
	a := g.send(request{method: http.MethodOptions, path: g.uploaded(), header: http.Header{
		"Origin": {"https://page.example.com"}, "Access-Control-Request-Method": {"GET"}, "Access-Control-Request-Headers": {"range,x-mine"},
	}})
	if a.header.Get("Access-Control-Allow-Headers") != "range,x-mine" || !strings.Contains(a.header.Get("Access-Control-Expose-Headers"), "Content-Range") {
		t.Errorf("a preflight answers %v", a.header)
	}
	if a.status != 204 || a.header.Get("Access-Control-Allow-Origin") != "*" || a.header.Get("Access-Control-Allow-Credentials") != "" {
		t.Errorf("a preflight answers %d, %v", a.status, a.header)
	}
}

// TestResultFileStreamed checks that a task's file is streamed on request, whole or in part.
func TestResultFileStreamed(t *testing.T) {
	t.Parallel()
	g := newGateway(t)
	id := g.submit("/v1/videos/generations", boatBody)
	const film = "the bytes of a film"
	key, sum := "results/"+id+"/1/0", strings.Repeat("ab", 32)
	g.complete(id, mediagate.Result{Role: mediagate.RoleMain, Key: key, MimeType: "video/mp4", Size: int64(len(film)), SHA256: sum})
	for _, path := range []string{"/v1/tasks/" + id + "/files/1", "/v1/videos/" + id + "/content"} {
		g.get(path+"?stream=true").wantStatus(t, http.StatusNotFound, "of a file that is gone", path)
	}
	g.bucket.put(key, film)
	for _, path := range []string{"/v1/tasks/" + id + "/files/1", "/v1/videos/" + id + "/content"} {
		for name, test := range map[string]struct {
			method, query string
			header        http.Header
			status        int
			body          string
		}{
			"whole":          {query: "?stream=true", status: 200, body: film},
			"HEAD":           {method: "HEAD", query: "?stream=true", status: 200},
			"a part":         {query: "?stream=true", header: http.Header{"Range": {"bytes=4-8"}}, status: 206, body: "bytes"},
			"beyond the end": {query: "?stream=true", header: http.Header{"Range": {"bytes=99-"}}, status: 416},
			"not asked for":  {query: "?stream=false", status: 302},
			"neither":        {query: "?stream=1", status: 400},
		} {
			a := g.send(request{method: test.method, path: path + test.query, key: g.key, header: test.header})
			if a.status != test.status || a.status < 300 && a.body != test.body {
				t.Errorf("%s, %s: %d %q, want %d %q", path, name, a.status, a.body, test.status, test.body)
			}
			if test.status < 300 && (a.header.Get("Content-Type") != "video/mp4" || a.header.Get("Location") != "" || a.header.Get("Content-Length") == "") {
				t.Errorf("%s, %s: %v", path, name, a.header)
			}
		}
	}
	g.get("/v1/videos/"+id+"/content?stream=true&variant=thumbnail").
		wantStatus(t, http.StatusNotFound, "what is no film")
	a := g.get("/v1/tasks/" + id + "/files/1?stream=true&download=boat.mp4")
	if a.body != film || a.header.Get("Content-Disposition") != "attachment; filename=boat.mp4" {
		t.Errorf("under a name: %q %v", a.body, a.header)
	}
}
