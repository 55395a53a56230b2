package e2e_test

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	workflowpb "go.temporal.io/api/workflow/v1"

	"github.com/mediagate/mediagate/sandbox/sample"
)

// Files that every model takes.
const (
	goodImage = "fox.png"
	goodFilm  = "source.mp4" // of five seconds
)

// mediaServer is where clients have their media, some of whom mean no good.
type mediaServer struct {
	address string
	crawls  *crawls
	large   *atomic.Int64 // bytes of large files that were sent
}

// crawls are files on their way that come a byte a second.
type crawls struct{ now, most atomic.Int64 }

func (c *crawls) add() {
	for now, most := c.now.Add(1), c.most.Load(); now > most && !c.most.CompareAndSwap(most, now); most = c.most.Load() {
	}
}

func (m mediaServer) url(name string) string { return "http://" + m.address + "/" + name }

func newMediaServer(t *testing.T) mediaServer {
	t.Helper()
	listener, err := net.Listen("tcp", anyAddr)
	if err != nil {
		t.Fatal(err)
	}
	m := mediaServer{address: listener.Addr().String(), crawls: &crawls{}, large: &atomic.Int64{}}
	server := &http.Server{Handler: m.handler(), ReadHeaderTimeout: 5 * time.Second}
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(func() { _ = server.Close() })
	return m
}

// claims is a small file that says it is a picture of that size.
func claims(width, height uint32) []byte {
	b := sample.Image(16, 16)
	binary.BigEndian.PutUint32(b[16:], width)
	binary.BigEndian.PutUint32(b[20:], height)
	binary.BigEndian.PutUint32(b[29:], crc32.ChecksumIEEE(b[12:29]))
	return b
}

func (m mediaServer) handler() http.Handler {
	mux := http.NewServeMux()
	file := func(name, kind string, body []byte) {
		mux.HandleFunc("GET /"+name, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", kind)
			_, _ = w.Write(body)
		})
	}
	redirect := func(name, to string) {
		mux.HandleFunc("GET /"+name, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, to, http.StatusFound) })
	}
	good := sample.Image(640, 360)
	file(goodImage, "image/png", good)
	file(goodFilm, "video/mp4", sample.Video(sample.VideoSpec{Width: 640, Height: 360, Seconds: 5}))
	file("named-otherwise", "text/html", good)
	file("no-image.png", "image/png", []byte("this is no image"))
	file("cut.png", "image/png", good[:20])
	file("one-pixel.png", "image/png", claims(1, 1))
	file("small.png", "image/png", claims(127, 200))
	file("wide.png", "image/png", claims(801, 200))
	file("vast.png", "image/png", claims(30_000, 30_000))
	file("film.png", "image/png", sample.Video(sample.VideoSpec{Width: 320, Height: 180, Seconds: 1}))
	file("page.png", "image/gif", []byte("GIF89a<script>alert(1)</script>"))
	file("login.png", "text/html", []byte("<!DOCTYPE html><html><body>Log in to see this image"))
	redirect("metadata.png", "http://169.254.169.254/latest/meta-data/")
	redirect("loop.png", "/loop.png")
	mux.HandleFunc("GET /cookie.png", func(w http.ResponseWriter, r *http.Request) {
		if _, err := r.Cookie("session"); err != nil {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		_, _ = w.Write(good)
	})
	mux.HandleFunc("GET /packed.png", func(w http.ResponseWriter, _ *http.Request) {
		var packed bytes.Buffer
		z := gzip.NewWriter(&packed)
		_, _ = z.Write(make([]byte, 10<<20))
		_ = z.Close()
		w.Header().Set("Content-Type", "image/png")
		w.Header().Set("Content-Encoding", "gzip")
		_, _ = w.Write(packed.Bytes())
	})
	mux.HandleFunc("GET /large.png", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", fmt.Sprint(60<<20))
		_, _ = w.Write(good)
	})
	mux.HandleFunc("GET /endless.png", func(w http.ResponseWriter, r *http.Request) {
		_, _ = w.Write(append(bytes.Clone(good[:bytes.Index(good, []byte("IDAT"))-4]), "\x7f\xff\xff\xffIDAT"...)) // and pixels without end
		for r.Context().Err() == nil {
			if _, err := w.Write(make([]byte, 64<<10)); err != nil {
				return
			}
		}
	})
	mux.HandleFunc("GET /crawl.png", func(w http.ResponseWriter, r *http.Request) {
		m.crawls.add()
		defer m.crawls.now.Add(-1)
		for i := 0; r.Context().Err() == nil; i++ {
			_, _ = w.Write(good[i%len(good):][:1])
			_ = http.NewResponseController(w).Flush()
			select {
			case <-r.Context().Done():
			case <-time.After(time.Second):
			}
		}
	})
	mux.HandleFunc("GET /film-of-50-MiB.png", func(w http.ResponseWriter, r *http.Request) {
		const size = 50 << 20
		head := []byte("\x00\x00\x00\x10ftypisom\x00\x00\x00\x00\x03\x1f\xff\xf0free") // and nothing that says what it shows
		w.Header().Set("Content-Length", fmt.Sprint(size))
		_, _ = w.Write(head)
		for sent := int64(len(head)); sent < size && r.Context().Err() == nil; {
			n, _ := w.Write(make([]byte, min(64<<10, size-sent)))
			m.large.Add(int64(n))
			sent += int64(n)
		}
	})
	mux.HandleFunc("GET /liar.png", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", fmt.Sprint(len(good)))
		_, _ = w.Write(good[:20])
	})
	return mux
}

// Whatever a client sends, its task ends, with the money back and with words
// that name which of its files is no good.
func TestBadInput(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{shape: standalone})
	const broken, bounds = "image_processing_error", "invalid_parameters"
	says := map[*task]string{}
	for name, c := range map[string]struct{ code, says string }{
		goodImage:         {},
		"named-otherwise": {},
		"no-image.png":    {broken, "image_urls[1] is not an image"},
		"cut.png":         {broken, "image_urls[1] ends before the image is complete"},
		"one-pixel.png":   {broken, "image_urls[1] is 1 × 1 pixels, too small"},
		"small.png":       {bounds, "image_urls[1] is 127 × 200 pixels, at least 128 × 128 are required"},
		"wide.png":        {bounds, "image_urls[1] is 801 × 200 pixels, a ratio of width to height between 1:4 and 4:1 is required"},
		"vast.png":        {broken, "image_urls[1] is 30000 × 30000 pixels: at most 16384 a side"},
		goodFilm:          {broken, "image_urls[1] is a video, not an image"},
		"film.png":        {broken, "image_urls[1] is a video, not an image"},
		"page.png":        {broken, "image_urls[1] is 29500 × 29283 pixels: at most 16384 a side"},
		"login.png":       {broken, "image_urls[1] is not an image"},
		"metadata.png":    {broken, "image_urls[1] has an address that is not allowed, or leads to one"},
		"loop.png":        {broken, "image_urls[1] has an address that is not allowed, or leads to one"},
		"cookie.png":      {broken, "image_urls[1] cannot be fetched from its address"},
		"nowhere.png":     {broken, "image_urls[1] cannot be fetched from its address"},
		"packed.png":      {broken, "image_urls[1] is not an image"},
		"large.png":       {bounds, "image_urls[1] has more than 52428800 bytes"},
		"endless.png":     {bounds, "image_urls[1] has more than 52428800 bytes"},
		"crawl.png":       {broken, "image_urls[1] arrives too slowly"},
		"liar.png":        {broken, "image_urls[1] broke off"},
	} {
		task := w.submit(job{model: beta, fields: map[string]any{"image_urls": []string{w.media.url(goodImage), w.media.url(name)}}})
		if c.code != "" {
			task.want, task.code, task.minJobs, task.maxJobs = "failed", c.code, 0, 0
			says[task] = c.says
		}
	}
	w.verify(recoverTime)
	for task, want := range says {
		o, err := w.read(task.id)
		if err != nil || o.Error == nil || !strings.HasPrefix(o.Error.Message, want) {
			t.Errorf("%+v (%v), want %s", o.Error, err, want)
		}
	}
}

// The files of an account that come a byte at a time keep its own tasks waiting, and are
// looked at few at a time: another account's file is looked at beside them.
func TestCrawlingInputs(t *testing.T) {
	t.Parallel()
	const crowd = 80
	w := newWorld(t, options{shape: standalone})
	crawling := job{model: beta, fields: map[string]any{"image_urls": []string{w.media.url("crawl.png")}}}
	for _, task := range w.submitMany(crowd, crawling) {
		task.want, task.code, task.minJobs, task.maxJobs = "failed", "image_processing_error", 0, 0
	}
	other := w.user(t)
	eventually(t, recoverTime, "the crowd has its share", func() error {
		if now := w.media.crawls.now.Load(); now < 32 {
			return fmt.Errorf("%d of its files are on their way", now)
		}
		return nil
	})
	task := other.submit(job{model: beta})
	other.await(task, recoverTime, "is done", func(o object) bool { return o.Status == "completed" })
	if most := w.media.crawls.most.Load(); most > 32 {
		t.Errorf("up to %d files of one account were looked at at once, want half of 64", most)
	}
	ends := w.awaitEnds(recoverTime)
	w.checkEnds(ends)
	w.checkMoney(ends)
}

// Tasks that fail for their files cost their account nothing, and us what we fetch: in a day
// no more than the account's money is worth. What comes after that waits, and another
// account's file is looked at.
func TestFetchesOfADay(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{shape: standalone})
	poor := w.user(t)
	poor.admin(http.MethodPost, "/accounts/"+poor.account+"/grants", map[string]any{"amount": "-999.50", "reference": "spent elsewhere"}, &struct{}{})
	const most = (64 + 512) << 20
	c := w.dial()
	t.Cleanup(c.Close)
	large := job{model: beta, fields: map[string]any{"duration": 1, "image_urls": []string{w.media.url("film-of-50-MiB.png")}}, noHook: true}
	var waits *task
	for range 12 {
		next := poor.submit(large)
		ended := poor.await(next, recoverTime, "fails or waits", func(o object) bool {
			about, _ := c.DescribeWorkflowExecution(t.Context(), next.id, "") // nothing of a run that is about to begin
			return o.Status == "failed" || slices.ContainsFunc(about.GetPendingActivities(), func(a *workflowpb.PendingActivityInfo) bool {
				return strings.Contains(a.GetLastFailure().GetMessage(), "waits for its turn behind what was fetched for the account today")
			})
		})
		if ended.Status != "failed" {
			waits = next
			break
		}
	}
	if sent := w.media.large.Load(); waits == nil || sent > most+8<<20 {
		t.Fatalf("%d MiB were fetched for an account with 0.50, want at most 576; one waits: %v", sent>>20, waits != nil)
	}
	w.await(w.submit(job{model: beta}), recoverTime, "is done", func(o object) bool { return o.Status == "completed" })
	poor.cancel(waits)
	poor.await(waits, recoverTime, "is cancelled", func(o object) bool { return o.Status == "cancelled" })
	var money struct{ Available, Held, Spent string }
	if poor.admin(http.MethodGet, "/accounts/"+poor.account, nil, &money); money.Available != "0.50" || money.Held != "0.00" {
		t.Errorf("the account has %+v", money)
	}
	w.verify(recoverTime)
}
