package api_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/api"
	"github.com/mediagate/mediagate/task"
)

// ask reads the path as a client does that has the answer with that tag.
func (g *gateway) ask(path, etag string) answer {
	g.t.Helper()
	return g.send(request{path: path, key: g.key, header: http.Header{"If-None-Match": {etag}}})
}

// A client that says which answer it has gets it only once it differs.
func TestTaskETag(t *testing.T) {
	t.Parallel()
	g := newGateway(t)
	for folder, id := range map[string]string{
		"/v1/tasks/":       g.submit(videos, videoBody),
		images + "/":       g.submit(images, imageBody),
		"/v1/music/tasks/": g.submit(music, songBody),
		"/v1/artgen/":      g.submit(art, artBody),
	} {
		path := folder + id
		first := g.get(path)
		tag := first.header.Get("Etag")
		if first.status != http.StatusOK || tag == "" || first.header.Get("Cache-Control") != "private, no-cache" ||
			first.header.Get("X-Content-Type-Options") != "nosniff" {
			t.Fatalf("%s: %d %v", path, first.status, first.header)
		}
		for _, has := range []string{tag, `"other", ` + tag, "*", tag[len("W/"):]} {
			a := g.ask(path, has)
			if a.status != http.StatusNotModified || a.body != "" || a.header.Get("Etag") != tag ||
				a.header.Get("Cache-Control") != "private, no-cache" {
				t.Errorf("%s, which the client has as %s: %d %q %v", path, has, a.status, a.body, a.header)
			}
		}
		if a := g.ask(path, `W/"other"`); a.status != http.StatusOK || a.body != first.body {
			t.Errorf("%s, of which the client has another answer: %d %s", path, a.status, a.body)
		}
		g.change(id, task.CancelRequested{})
		if a := g.ask(path, tag); a.status != http.StatusOK || a.header.Get("Etag") == tag {
			t.Errorf("%s after a change: %d %v", path, a.status, a.header)
		}
	}
}

// The request lacks what it worked on once that is erased.
func TestTaskETagOfARequest(t *testing.T) {
	t.Parallel()
	g := newGateway(t)
	song := g.song(songBody)
	id := g.submit(music+"/remaster", `{"task_id":"`+song+`","audio_index":1}`)
	g.cancel(id)
	path := "/v1/tasks/" + id + "?request=true"
	first := g.get(path)
	if first.at("data", "request", "task_id") != song {
		t.Fatalf("the request: %s", first.body)
	}
	g.erased(song)
	if a := g.ask(path, first.header.Get("Etag")); a.status != http.StatusOK || strings.Contains(a.body, song) {
		t.Errorf("after the erasure: %d %s", a.status, a.body)
	}
}

// Each language has a tag of its own, and so has each release, which may show a task in
// another way.
func TestTaskETagOfOneRendering(t *testing.T) {
	t.Parallel()
	g := newGateway(t)
	path := "/v1/tasks/" + g.submit(videos, videoBody)
	other := g.another(func(c *api.Config) { c.Version = "1.2.4" })
	seen := map[string]string{}
	for name, a := range map[string]answer{
		"stored words":    g.get(path),
		"Korean":          g.get(path + "?language=ko"),
		"Japanese":        g.get(path + "?language=ja"),
		"another release": other.get(path),
	} {
		tag := a.header.Get("Etag")
		if tag == "" || seen[tag] != "" {
			t.Errorf("%s has the tag %q of %q", name, tag, seen[tag])
		}
		seen[tag] = name
	}
}

// If-None-Match does not shorten a long poll: it waits for the task's end, and answers 304
// where nothing has changed.
func TestLongPollWithETag(t *testing.T) {
	t.Parallel()
	g := newGateway(t)
	id := g.submit(videos, videoBody)
	path := "/v1/tasks/" + id
	tag := g.get(path).header.Get("Etag")
	start := time.Now()
	if a := g.ask(path+"?wait=1", tag); a.status != http.StatusNotModified || time.Since(start) < time.Second {
		t.Errorf("nothing happened: %d after %s", a.status, time.Since(start))
	}
	answered := make(chan answer)
	go func() { answered <- g.ask(path+"?wait=60", tag) }()
	awaitWaiting(t, g.server, 1)
	g.complete(id)
	a := <-answered
	if a.status != http.StatusOK || a.at("data", "status") != "completed" {
		t.Errorf("at the end: %d %s", a.status, a.body)
	}
	if a = g.ask(path+"?wait=60", a.header.Get("Etag")); a.status != http.StatusNotModified {
		t.Errorf("a task that has ended: %d %s", a.status, a.body)
	}
}

// renewed are credentials that end at each full hour, and the links with them.
type renewed struct {
	api.Signer
	now func() time.Time
}

func (r renewed) Sign(ctx context.Context, file mediagate.Result, ttl time.Duration) (mediagate.Link, error) {
	ends := r.now().Truncate(time.Hour).Add(time.Hour)
	return r.Signer.Sign(ctx, file, min(ttl, ends.Sub(r.now())))
}

// A 304 never leaves a client with a link that has ended, or ends before half of link_ttl,
// unless a new one would not live longer.
func TestLinksOfNotModified(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		change func(*api.Config)
		left   time.Duration // of a link that lived for all of link_ttl, at least
		step   time.Duration // between two reads
	}{
		"an hour":           {func(c *api.Config) { c.LinkTTL = time.Hour }, 30 * time.Minute, time.Minute},
		"a minute":          {func(c *api.Config) { c.LinkTTL = time.Minute }, 30 * time.Second, 4 * time.Second},
		"a week":            {func(*api.Config) {}, 6 * 24 * time.Hour, 2 * time.Hour},
		"files of two days": {func(c *api.Config) { c.Keep.Results = 48 * time.Hour }, 6 * 24 * time.Hour, time.Hour},
		"credentials of an hour": {
			func(c *api.Config) { c.Signer = renewed{c.Signer, c.Now} }, 6 * 24 * time.Hour, 7 * time.Minute,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := newGateway(t, test.change)
			g.clock.advance(7 * time.Minute)
			id := g.submit(images, imageBody)
			g.complete(id)
			path := "/v1/tasks/" + id
			link := func(a answer) (ends time.Time, gone bool) {
				unix, _ := a.at("data", "result", "images", 0, "expires_at").(float64)
				return time.Unix(int64(unix), 0), a.at("data", "result", "images", 0, "url", 0) == nil
			}
			has, kept := g.get(path), 0
			const reads = 120
			for range reads {
				g.clock.advance(test.step)
				a := g.ask(path, has.header.Get("Etag"))
				if a.status == http.StatusOK {
					has = a
					continue
				}
				kept++
				ends, gone := link(has)
				newEnds, newGone := link(g.get(path))
				left := ends.Sub(g.clock.now())
				if gone != newGone || !gone && left < test.left && newEnds.Sub(ends) > time.Minute {
					t.Fatalf("the client was left with a link until %s, a new one has %s", ends, newEnds)
				}
			}
			if kept < reads/2 {
				t.Errorf("%d of %d reads were spared", kept, reads)
			}
		})
	}
}
