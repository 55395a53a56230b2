package api_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"image"
	"image/jpeg"
	"io"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"net/textproto"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sync/errgroup"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/api"
	"github.com/mediagate/mediagate/internal/limit"
	"github.com/mediagate/mediagate/sandbox/sample"
)

const uploadPath = "/v1/uploads/images"

func fileURL(f mediagate.File) string { return "https://gw.example.com/" + f.Key() }

// PutFile keeps a file once its reader has come to its end.
func (b *bucket) PutFile(_ context.Context, f mediagate.File, file io.Reader, maxBytes int64) (int64, error) {
	if b.fail != nil {
		return 0, b.fail
	}
	content, err := io.ReadAll(file)
	if err != nil {
		return 0, fmt.Errorf("reading the file: %w", err)
	}
	if int64(len(content)) > maxBytes {
		return 0, mediagate.Errorf(mediagate.KindInvalid, "the file is larger than %d bytes", maxBytes)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.files == nil {
		b.files = map[string][]byte{}
	}
	b.files[f.Key()] = content
	return int64(len(content)), nil
}

func (b *bucket) Size(_ context.Context, key string) (int64, error) {
	content, ok := b.content(key)
	if !ok {
		return 0, mediagate.Errorf(mediagate.KindGone, "gone")
	}
	return int64(len(content)), b.fail
}

func (b *bucket) OpenAt(_ context.Context, key string, offset int64) (io.ReadCloser, error) {
	content, ok := b.content(key)
	if !ok {
		return nil, mediagate.Errorf(mediagate.KindGone, "gone")
	}
	return io.NopCloser(bytes.NewReader(content[offset:])), nil
}

func (b *bucket) content(key string) ([]byte, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	content, ok := b.files[key]
	return content, ok
}

func (b *bucket) keys() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	var keys []string
	for key := range b.files {
		keys = append(keys, key)
	}
	return keys
}

const boundary = "xxBOUNDARYxx"

// formOf writes a form; each part is its disposition and its content.
func formOf(parts ...[2]string) string {
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	_ = w.SetBoundary(boundary)
	for _, part := range parts {
		p, _ := w.CreatePart(textproto.MIMEHeader{"Content-Disposition": {part[0]}, "Content-Type": {"text/html"}})
		_, _ = io.WriteString(p, part[1])
	}
	_ = w.Close()
	return b.String()
}

func filePart(content string) [2]string {
	return [2]string{`form-data; name="file"; filename="fox.png"`, content}
}

func (g *gateway) upload(body string) answer {
	g.t.Helper()
	return g.send(request{
		method: http.MethodPost, path: uploadPath, key: g.key, body: body,
		header: http.Header{"Content-Type": {"multipart/form-data; boundary=" + boundary}},
	})
}

// uploadFrom uploads what the reader gives. Its length is known where the reader is one of a
// text.
func (g *gateway) uploadFrom(body io.Reader, kind string) *httptest.ResponseRecorder {
	g.t.Helper()
	req := httptest.NewRequestWithContext(g.t.Context(), http.MethodPost, uploadPath, body)
	req.Header.Set("Authorization", "Bearer "+g.key)
	if kind != "" {
		req.Header.Set("Content-Type", kind)
	}
	w := httptest.NewRecorder()
	g.server.ServeHTTP(w, req)
	return w
}

var aPicture = string(sample.Image(64, 48))

// dataOf is a file as a data URI.
func dataOf(file string) string {
	return "data:image/png;base64," + base64.StdEncoding.EncodeToString([]byte(file))
}

// pictureOf is a PNG of that many bytes, by a chunk of the image's own.
func pictureOf(size int) string {
	const end = 12
	b := strings.Builder{}
	b.WriteString(aPicture[:len(aPicture)-end])
	for left := size - len(aPicture); left > 0; {
		n := min(left, 1<<20)
		if rest := left - n; rest > 0 && rest < 12 {
			n -= 12
		}
		b.WriteString(string(chunkOf("IDAT", make([]byte, n-12))))
		left -= n
	}
	b.WriteString(aPicture[len(aPicture)-end:])
	return b.String()
}

func TestUpload(t *testing.T) {
	t.Parallel()
	g := newGateway(t)
	commented := aPicture[:33] + string(chunkOf("tEXt", []byte("Comment\x00who took it, and where"))) + aPicture[33:]
	a := g.upload(formOf([2]string{`form-data; name="note"`, "hello"}, filePart(commented), [2]string{`form-data; name="after"; filename="x"`, "bye"}))
	if a.status != http.StatusOK {
		t.Fatalf("%d %s", a.status, a.body)
	}
	keys := g.bucket.keys()
	if len(keys) != 1 {
		t.Fatalf("stored: %v", keys)
	}
	want := fmt.Sprintf(`{"url":"https://gw.example.com/%s","filename":"fox.png","content_type":"image/png","bytes":%d,"created_at":%d}`+"\n",
		keys[0], len(aPicture), g.clock.now().Unix())
	if diff := cmp.Diff(want, a.body); diff != "" {
		t.Errorf("answer (-want +got):\n%s", diff)
	}
	if got := string(g.bucket.files[keys[0]]); got != aPicture {
		t.Error("the picture is not what was uploaded, without its comment")
	}
}

func TestUploadNames(t *testing.T) {
	t.Parallel()
	g := newGateway(t)
	for disposition, want := range map[string]string{
		`form-data; name="file"; filename="fox.png"`:                          "fox.png",
		`form-data; name="file"; filename="a/b/fox.png"`:                      "fox.png",
		`form-data; name="file"; filename="C:\\pictures\\fox.png"`:            "fox.png",
		`form-data; name="file"; filename="../../etc/passwd"`:                 "passwd",
		`form-data; name="file"; filename=".."`:                               "upload",
		`form-data; name="file"; filename=""`:                                 "upload",
		`form-data; name="file"`:                                              "upload",
		"form-data; name=\"file\"; filename*=UTF-8''a%01%7F%0Ab.png":          "ab.png",
		"form-data; name=\"file\"; filename=\"gnp.\u202efox\"":                "gnp.fox",
		`form-data; name="file"; filename="狐 & <b>.png"`:                      "狐 & <b>.png",
		`form-data; name=file; filename=my photo.png`:                         "my photo.png",
		`form-data; filename=my photo.png; name="file"`:                       "my photo.png",
		`form-data; name = "file" ; filename = "my; photo.png"`:               "my; photo.png",
		`form-data; name="file"; filename="a "fox".png"`:                      `a "fox".png`,
		`form-data; name="file"; filename=C:\my pictures\fox.png`:             "fox.png",
		`form-data; name="file"; filename=my fox; filename=a.png`:             "my fox",
		`form-data; name="file"; filename=my fox; filename*=UTF-8''%e7%8b%90`: "狐",
		`form-data; name="file"; filename=`:                                   "upload",
		"form-data; name=\"file\"; filename=f\xfcchse (2).png":                "fchse (2).png",
		`form-data; name="file"; filename=[1].png; size`:                      "[1].png",
		`form-data; name="file"; filename="` + strings.Repeat("狐", 300) + `"`: strings.Repeat("狐", 255),
	} {
		a := g.upload(formOf([2]string{disposition, aPicture}))
		if a.status != http.StatusOK || a.at("filename") != want {
			t.Errorf("%s becomes %v, want %q: %d", disposition, a.at("filename"), want, a.status)
		}
	}
}

func plainJPEG(t *testing.T) string {
	t.Helper()
	var b bytes.Buffer
	must(t, jpeg.Encode(&b, image.NewYCbCr(image.Rect(0, 0, 32, 32), image.YCbCrSubsampleRatio420), nil))
	return b.String()
}

// Whatever is wrong is named, in the envelope of uploads, and nothing is stored.
func TestUploadRefuses(t *testing.T) {
	t.Parallel()
	good := formOf(filePart(aPicture))
	multi := "multipart/form-data; boundary=" + boundary
	g := newGateway(t)
	for name, test := range map[string]struct {
		body, kind, says string
		status           int
	}{
		"an SVG named .png":      {formOf(filePart("<svg xmlns='http://www.w3.org/2000/svg'/>")), multi, "file is no JPEG, PNG, WebP or GIF image", 400},
		"PNG and HTML":           {formOf(filePart(aPicture + "<script>alert(1)</script>")), multi, "file goes on after the end of the image", 400},
		"a cut image":            {formOf(filePart(aPicture[:len(aPicture)-20])), multi, "file ends before the image is complete", 400},
		"an empty file":          {formOf(filePart("")), multi, "file is empty", 400},
		"two of them":            {formOf(filePart(aPicture), filePart(aPicture)), multi, "file is given twice", 400},
		"none":                   {formOf([2]string{`form-data; name="image"; filename="fox.png"`, aPicture}), multi, "file is missing", 400},
		"a form without parts":   {"--" + boundary + "--\r\n", multi, "file is missing", 400},
		"no body":                {"", multi, "file cannot be read", 400},
		"cut behind the file":    {good[:len(good)-len("--\r\n")], multi, "file cannot be read", 400},
		"cut in the file":        {good[:len(good)/2], multi, "file ", 400},
		"cut in a head":          {good[:40], multi, "file cannot be read", 400},
		"JSON":                   {`{"file":"x"}`, "application/json", "file is missing: the Content-Type must be multipart/form-data with a boundary", 400},
		"no boundary":            {good, "multipart/form-data", "file is missing: the Content-Type", 400},
		"no Content-Type":        {good, "", "file is missing: the Content-Type", 400},
		"a vast head":            {strings.Replace(good, "form-data;", "form-data; x=\""+strings.Repeat("x", 70<<10)+"\";", 1), multi, "file cannot be read", 400},
		"a vast preamble":        {strings.Repeat("x\r\n", 30<<10) + good, multi, "file cannot be read", 400},
		"parts beyond all":       {formOf(slices.Repeat([][2]string{{`form-data; name="a"`, "b"}}, 200)...), multi, "more than 100 parts", 400},
		"a JPEG and 20 MiB":      {formOf(filePart(plainJPEG(t) + strings.Repeat("\x00", 20<<20))), multi, "file must be at most 20971520 bytes", 413},
		"one byte too many":      {formOf(filePart(pictureOf(20<<20 + 1))), multi, "file must be at most 20971520 bytes", 413},
		"other fields too large": {formOf(filePart(aPicture), [2]string{`form-data; name="a"`, strings.Repeat("x", 22<<20)}), multi, "file must be at most", 413},
	} {
		for _, length := range []string{"known", "unknown"} {
			t.Run(name+", its length "+length, func(t *testing.T) {
				var body io.Reader = strings.NewReader(test.body)
				if length == "unknown" {
					body = iotest.HalfReader(io.MultiReader(body))
				}
				w := g.uploadFrom(body, test.kind)
				wantUploadError(t, w, test.status, test.says)
				if keys := g.bucket.keys(); len(keys) > 0 {
					t.Errorf("stored: %v", keys)
				}
			})
		}
	}
}

// wantUploadError checks an error of form B without param and code.
func wantUploadError(t *testing.T, w *httptest.ResponseRecorder, status int, says string) {
	t.Helper()
	got := decodeObject(t, w.Body.Bytes())
	e, _ := got["error"].(map[string]any)
	kind := map[int]string{400: "invalid_request", 413: "invalid_request_error"}[status]
	message, _ := e["message"].(string)
	if w.Code != status || e["type"] != kind || !strings.Contains(message, says) || len(e) != 3 || e["request_id"] != w.Header().Get("X-Request-Id") {
		t.Errorf("%d %s, want %d, %s and %q", w.Code, w.Body, status, kind, says)
	}
}

// The largest file passes, to the byte, whether its length is known or not.
func TestUploadOfTheLargestFile(t *testing.T) {
	t.Parallel()
	g := newGateway(t)
	file := pictureOf(20 << 20)
	if len(file) != 20971520 {
		t.Fatalf("the file has %d bytes", len(file))
	}
	for _, known := range []bool{true, false} {
		var body io.Reader = strings.NewReader(formOf(filePart(file)))
		if !known {
			body = io.MultiReader(body)
		}
		w := g.uploadFrom(body, "multipart/form-data; boundary="+boundary)
		if w.Code != http.StatusOK || decodeObject(t, w.Body.Bytes())["bytes"] != 20971520.0 {
			t.Errorf("known: %v: %d %s", known, w.Code, w.Body)
		}
	}
}

func TestUploadFaults(t *testing.T) {
	t.Parallel()
	form := formOf(filePart(aPicture))
	t.Run("the bucket is away", func(t *testing.T) {
		t.Parallel()
		g := newGateway(t)
		g.bucket.fail = errors.New("secret detail")
		a := g.upload(form)
		if a.status != 500 || strings.Contains(a.body, "secret") || a.at("error", "type") != "server_error" {
			t.Errorf("%d %s", a.status, a.body)
		}
	})
	t.Run("a client that stalls", func(t *testing.T) {
		t.Parallel()
		g := newGateway(t, func(c *api.Config) { c.BodyPace = 50 * time.Millisecond })
		s := dial(t, g.serve())
		upload := request{method: http.MethodPost, path: uploadPath, key: g.key, body: form}
		text := upload.text("1.1", "Content-Type: multipart/form-data; boundary="+boundary)
		s.send(text[:len(text)-30])
		a := s.answer()
		if a.status != http.StatusRequestTimeout || a.at("error", "message") != "file: the body did not arrive in time" {
			t.Errorf("%d %s", a.status, a.body)
		}
		if keys := g.bucket.keys(); len(keys) > 0 {
			t.Errorf("stored: %v", keys)
		}
	})
}

// Many at once hold no more memory than few: no file is in memory as a whole.
func TestUploadsHoldLittle(t *testing.T) {
	const uploads, size, atOnce = 8, 8 << 20, 4 // more of a key wait, and are refused after a while
	g := newGateway(t, func(c *api.Config) { c.Files = drain{} })
	address := g.serve()
	form := formOf(filePart(pictureOf(size)))
	upload := func() error {
		req, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+address+uploadPath, strings.NewReader(form))
		req.Header.Set("Authorization", "Bearer "+g.key)
		req.Header.Set("Content-Type", "multipart/form-data; boundary="+boundary)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		if text, _ := io.ReadAll(resp.Body); resp.StatusCode != http.StatusOK {
			return fmt.Errorf("%d %s", resp.StatusCode, text)
		}
		return nil
	}
	if err := upload(); err != nil { // the first request of a process makes the document that all answers are held to
		t.Fatal(err)
	}
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	var group errgroup.Group
	group.SetLimit(atOnce)
	for range uploads {
		group.Go(upload)
	}
	must(t, group.Wait())
	runtime.ReadMemStats(&after)
	// All that was allocated, whether it is gone or not.
	if each := (after.TotalAlloc - before.TotalAlloc) / uploads; each > size/2 {
		t.Errorf("an upload of %d bytes takes %d", size, each)
	}
}

// drain is a bucket that keeps nothing.
type drain struct{ api.Files }

func (drain) PutFile(_ context.Context, _ mediagate.File, file io.Reader, _ int64) (int64, error) {
	return io.Copy(io.Discard, file)
}

func chunkOf(kind string, data []byte) []byte {
	b := binary.BigEndian.AppendUint32(nil, uint32(len(data)))
	b = append(append(b, kind...), data...)
	return binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b[4:]))
}

func decodeObject(t *testing.T, text []byte) map[string]any {
	t.Helper()
	var object map[string]any
	if err := json.Unmarshal(text, &object); err != nil {
		t.Fatalf("no object: %s", text)
	}
	return object
}

// The uploads that an account has under way hold its share at most of what the bucket's
// side may: twice what came of small ones, and of none more than three parts of 5 MiB.
func TestUploadsOfOneAccountLeaveRoom(t *testing.T) {
	t.Parallel()
	const most = 120 << 20
	for came, each := range map[int]int64{64 << 10: 192 << 10, 1 << 20: 2<<20 + 64<<10, 8 << 20: 15 << 20} {
		t.Run(fmt.Sprint(came), func(t *testing.T) {
			t.Parallel()
			g := newGateway(t, bounds(func(p *limit.Process) { p.Uploads = limit.New("", most) }), func(c *api.Config) {
				c.Files, c.UploadWait, c.BodyPace = drain{}, 50*time.Millisecond, patience // what is held on a busy machine is not let go
			})
			address := g.serve()
			begun := request{method: http.MethodPost, path: uploadPath, key: g.key}.text("1.1", fmt.Sprintf("Content-Length: %d", 20<<20), "Content-Type: multipart/form-data; boundary="+boundary) +
				formOf(filePart(pictureOf(came)))[:came]
			for refused := false; !refused; {
				before, s := g.held(), dial(t, address)
				s.send(begun)
				eventually(t, "it has come or is refused", func() bool {
					refused = !s.waits(time.Millisecond)
					return refused || g.held() >= before+each
				})
				if refused {
					if a := s.answer(); a.status != http.StatusTooManyRequests || a.header.Get("Retry-After") != "1" || !strings.Contains(a.body, "uploads in progress") {
						t.Errorf("%d %v %s", a.status, a.header, a.body)
					}
				}
			}
			if held := g.held(); held > most/2 || held < most/2-2*each {
				t.Errorf("%d bytes are held", held)
			}
		})
	}
}

// Files cost us: whoever never had money leaves none, and nobody more in a day than the
// account may. What is not stored counts for no more than that it came.
func TestUploadsHaveAPrice(t *testing.T) {
	t.Parallel()
	g := newGateway(t, func(c *api.Config) {
		c.AccountDefaults.UploadsPerDay = new(int64(2*len(aPicture) + 100))
	})
	poor, err := g.store.CreateAccount(t.Context(), mediagate.Account{Name: "poor", Group: "default"})
	g.must(err)
	theirs := *g
	theirs.key = g.operate(http.MethodPost, "/accounts/"+poor.ID+"/keys", `{"name":"k","unlimited":true}`).text("key")
	send := func() answer { return theirs.upload(formOf(filePart(aPicture))) }
	refused := func(a answer, status int, kind, says string) {
		t.Helper()
		if message, _ := a.at("error", "message").(string); a.status != status || a.at("error", "type") != kind || !strings.Contains(message, says) {
			t.Errorf("%d %s, want %d, %s and %q", a.status, a.body, status, kind, says)
		}
	}
	refused(send(), 402, "payment_required", "needs a balance")
	_, _, _, err = g.store.Grant(t.Context(), poor.ID, 1, "a cent's hundredth")
	g.must(err)
	for i := range 3 {
		a := send()
		if i < 2 {
			if a.status != 200 {
				t.Errorf("upload %d: %d %s", i, a.status, a.body)
			}
			continue
		}
		refused(a, 429, "rate_limit_error", "uploads_per_day")
		if after, _ := strconv.Atoi(a.header.Get("Retry-After")); after < 3600 {
			t.Errorf("Retry-After %d, want hours", after)
		}
	}
	if n := len(g.bucket.files); n != 2 {
		t.Errorf("%d files are stored, want 2", n)
	}
	g.operate(http.MethodPatch, "/accounts/"+poor.ID, `{"uploads_per_day":0}`)
	g.clock.advance(time.Second) // keys are read again
	a := send()
	refused(a, 429, "rate_limit_error", "uploads_per_day")
	if a.header.Get("Retry-After") != "" {
		t.Error("waiting would help")
	}
}
